/* SPDX-License-Identifier: MIT
 *
 * unit_play.h - for tests of an engine that goes on in another process: a lock and some takers of
 * one host, which is then reloaded, or killed. The new engine goes on from the records of the one
 * before.
 */
#ifndef SIM_UNIT_PLAY_H
#define SIM_UNIT_PLAY_H

#include "unit_stage.h"

#include <string.h>
#include <utlist.h>

#define TAKERS_MAX 4

/* A stage with a lock, and the takers of its first host that are claimed when it reloads. */
struct play {
	struct stage *stage;
	struct host *here, *there;
	struct taker takers[TAKERS_MAX];
	struct taker other; /* on the other host */
	int64_t lead_us;
};

static inline enum ensemble_result act(struct play *play, struct ensemble_op op)
{
	return stage_act(play->stage, 0, op, NULL);
}

/* Records all changes, as at the end of a turn. */
static inline void record(struct play *play)
{
	const char *why;
	unsigned kind;

	assert_true(notes_record(&play->here->notes, play->here->lc, &kind, &why));
}

static inline struct play *open_play(uint64_t seed, int64_t lead_us)
{
	struct play *play = calloc(1, sizeof(*play));

	assert_non_null(play);
	play->stage = begin(seed);
	play->here = &play->stage->hosts[0];
	play->there = &play->stage->hosts[1];
	play->lead_us = lead_us;
	if (lead_us) {
		stage_stop(play->here, true);
		assert_int_equal(stage_start(play->here, ROOT, lead_us), 0);
	}
	assert_int_equal(act(play, ensemble_create(BUILD, NULL, 0)), ENSEMBLE_OK);
	run(play->stage, SECOND);
	record(play);
	return play;
}

static inline void close_play(struct play *play)
{
	for (int i = 0; i < TAKERS_MAX; i++)
		stage_leave(&play->takers[i]);
	stage_leave(&play->other);
	run(play->stage, 2 * SECOND);
	assert_true(lc_idle(play->here->lc));
	record(play);
	finish(play->stage);
	free(play);
}

/* A test that gets a play as its state. */
struct play_setting {
	uint64_t seed;
	int64_t lead_us;
};

static inline int set_up_play(void **state)
{
	const struct play_setting *setting = *state;

	*state = open_play(setting->seed, setting->lead_us);
	return 0;
}

static inline int tear_down_play(void **state)
{
	close_play(*state);
	return 0;
}

#define PLAY_TEST(test, seed, lead_us)                                              \
	cmocka_unit_test_prestate_setup_teardown(test, set_up_play, tear_down_play, \
	                                         &((struct play_setting){seed, lead_us}))

static inline struct taker *take_for(struct play *play, int i, int64_t wait_us, enum lc_mode mode,
                                     struct taker *old)
{
	struct lc_request request = {
		.lock = "build",
		.mode = mode,
		.wait_us = wait_us,
		.pid = 7,
		.command = "test",
		.replaces = old ? old->lc : NULL,
	};

	stage_take(&play->takers[i], play->here, &request);
	assert_int_equal(play->takers[i].result, NONE);
	return &play->takers[i];
}

static inline struct taker *take(struct play *play, int i)
{
	struct taker *taker = take_for(play, i, LC_FOREVER, LC_EXCLUSIVE, NULL);

	run(play->stage, 100 * MS);
	return taker;
}

static inline struct taker *take_there(struct play *play, enum lc_mode mode)
{
	begin_take(&play->other, play->there, "build", mode);
	run(play->stage, 100 * MS);
	return &play->other;
}

/* Whether another engine could go on from what was recorded last. */
static inline int check(struct play *play, const char *root)
{
	struct lc_config config = host_config(play->here, root);
	struct codec codec = {.loads = true, .checks = true};
	struct lc *lc = NULL;
	int r;

	config.session_timeout_us = TIMEOUT_US;
	config.tick_time_us = 2 * SECOND;
	r = lc_adopt(&config, NULL, &codec, &lc);
	assert_null(lc);
	return r;
}

/* Goes on from what was recorded last. Claims all takers but those in `lost_ones`, a bit for
 * each. */
static inline void adopt(struct play *play, unsigned lost_ones)
{
	assert_int_equal(stage_adopt(play->here, play->lead_us), 0);
	for (unsigned i = 0; i < TAKERS_MAX; i++) {
		struct taker *taker = &play->takers[i];

		if (taker->phase == NEVER || taker->phase == LEFT)
			continue;
		if (lost_ones & 1u << i)
			taker->phase = LEFT;
		else
			stage_claim(taker);
	}
	lc_claimed(play->here->lc);
}

static inline void reload(struct play *play)
{
	record(play);
	adopt(play, 0);
}

/* Requests that are still under way never arrive. */
static inline void reload_and_lose(struct play *play)
{
	conn_break(play->here->wire.conn, 0);
	reload(play);
}

static inline int entries(struct play *play)
{
	struct node *parent = tree_find(&play->stage->world.committed, BUILD), *node;
	int count = 0;

	DL_FOREACH(parent->children, node)
		count++;
	return count;
}

static inline struct lc_status status_of(struct host *host)
{
	struct lc_status status;

	lc_status(host->lc, &status);
	return status;
}

#endif
