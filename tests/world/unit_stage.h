/* SPDX-License-Identifier: MIT
 *
 * unit_stage.h - a stage for tests with cmocka: two hosts with engines that are ready. The test
 * fails if an engine breaks a promise.
 */
#ifndef WORLD_UNIT_STAGE_H
#define WORLD_UNIT_STAGE_H

#include "stage.h"
#include "unit.h"

#include <stdlib.h>

#define BUILD ROOT "/build"

static void fail_test(struct stage *stage, const char *text)
{
	(void)stage;
	fail_msg("%s", text);
}

static inline void run(struct stage *stage, int64_t duration_us)
{
	stage_run(stage, duration_us);
}

static inline struct stage *begin_servers(int servers, uint64_t seed)
{
	static const struct stage_hooks hooks = {.complain = fail_test};
	struct stage *stage = calloc(1, sizeof(*stage));

	assert_non_null(stage);
	stage_init_servers(stage, servers, 1000 * SECOND, seed, &hooks, NULL);
	for (int i = 0; i < HOSTS_MAX; i++) {
		struct host *host = stage_host(stage, seed + 77 + (uint64_t)i);

		assert_int_equal(stage_start(host, ROOT, 0), 0);
		run(stage, SECOND);
		assert_true(lc_ready(host->lc));
	}
	return stage;
}

static inline struct stage *begin(uint64_t seed)
{
	return begin_servers(1, seed);
}

static inline struct stage *with_build(struct stage *stage)
{
	assert_int_equal(stage_act(stage, 0, ensemble_create(BUILD, NULL, 0), NULL), ENSEMBLE_OK);
	run(stage, 10 * MS);
	return stage;
}

/* As begin(), and there is a lock. */
static inline struct stage *begin_build(uint64_t seed)
{
	return with_build(begin(seed));
}

static inline void finish(struct stage *stage)
{
	stage_finish(stage);
	free(stage);
}

/* The taker may wait for ever. */
static inline void begin_take(struct taker *taker, struct host *host, const char *lock,
                              enum lc_mode mode)
{
	struct lc_request request = {
		.lock = lock, .mode = mode, .wait_us = LC_FOREVER, .pid = 7, .command = "test"};

	stage_take(taker, host, &request);
	assert_int_equal(taker->result, NONE);
}

static inline void leave(struct taker *taker)
{
	stage_leave(taker);
	run(taker->stage, 200 * MS);
}

#endif
