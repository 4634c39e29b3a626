/* SPDX-License-Identifier: MIT
 *
 * unit_calls.h - for tests of single calls with cmocka: two engines on an ensemble in memory
 * (unit_stage.h), nodes as an operator sees and changes them, questions with their answers.
 */
#ifndef SIM_UNIT_CALLS_H
#define SIM_UNIT_CALLS_H

#include "unit_stage.h"

#include <stdio.h>
#include <string.h>

/* The name of an entry of a third mount, without the number. */
#define OF_MOUNT "_c_01234567-89ab-cdef-0011-223344556677-web9.7-lock-"
#define DEFAULTS ((struct lc_attributes){.uid = 1, .gid = 2, .mode = 0755, .lock_file_mode = 0644})
#define MAGIC "zklockfs: 1\n"
#define CHANGE(...) ((struct lc_change){__VA_ARGS__})
#define EVICTOR(...) (&(struct lc_evictor){__VA_ARGS__})

static inline struct node *node_of(struct stage *stage, const char *path)
{
	return tree_find(&stage->world.committed, path);
}

/* A write of an operator, or of another client. */
static inline void put_now(struct stage *stage, const char *path, const char *data)
{
	enum ensemble_kind kind =
		tree_find(&stage->world.proposed, path) ? ENSEMBLE_SET : ENSEMBLE_CREATE;

	assert_int_equal(
		world_do(&stage->world, 0,
	                 OP(.kind = kind, .path = path, .data = data, .data_len = (int)strlen(data),
	                    .version = ENSEMBLE_ANY_VERSION),
	                 1, NULL),
		ENSEMBLE_OK);
}

static inline void put(struct stage *stage, const char *path, const char *data)
{
	put_now(stage, path, data);
	run(stage, 10 * MS);
}

static inline void take_away(struct stage *stage, const char *path)
{
	assert_int_equal(
		world_do(&stage->world, 0,
	                 OP(.kind = ENSEMBLE_DELETE, .path = path, .version = ENSEMBLE_ANY_VERSION),
	                 1, NULL),
		ENSEMBLE_OK);
}

static inline void assert_data(struct stage *stage, const char *path, const char *data)
{
	const struct node *node = node_of(stage, path);

	assert_non_null(node);
	expect((size_t)node->data_len == strlen(data) &&
	               (node->data_len == 0 || memcmp(node->data, data, strlen(data)) == 0),
	       "%s holds '%.*s' instead of '%s'", path, node->data_len, (const char *)node->data,
	       data);
}

/* The number of bytes behind the empty line. */
static inline size_t value_len_of(struct stage *stage, const char *path)
{
	const struct node *node = node_of(stage, path);
	const char *data = node->data, *gap = memmem(data, (size_t)node->data_len, "\n\n", 2);

	return gap ? (size_t)(data + node->data_len - gap) - 2 : 0;
}

/* ---- questions ---- */

/* Waits for the answer, and frees the question. */
static inline int answer_of(struct question *question)
{
	int result;

	run(question->stage, 3 * SECOND);
	result = question->result;
	assert_int_not_equal(result, NONE);
	stage_forget(question);
	return result;
}

static inline struct question *ask_change(struct host *host, const char *lock,
                                          struct lc_change change)
{
	return stage_ask_change(host, lock, &change);
}

static inline struct lc_lock_info info_of(struct host *host, const char *lock)
{
	struct question *q = stage_ask_stat(host, lock, 0);
	struct lc_lock_info info;

	run(q->stage, 100 * MS);
	assert_int_equal(q->result, 0);
	info = q->info;
	stage_forget(q);
	return info;
}

static inline void assert_value(struct host *host, const char *lock, const char *value)
{
	struct question *q = stage_ask_value(host, lock, 0);

	run(q->stage, 100 * MS);
	assert_int_equal(q->result, 0);
	assert_int_equal(q->value_len, strlen(value));
	assert_memory_equal(q->value, value, q->value_len);
	stage_forget(q);
}

static inline int evict(struct host *host, const char *lock, const char *znode)
{
	return answer_of(
		stage_ask_evict(host, lock, znode, EVICTOR(.name = "uid 0 pid 1 (sh) on m9")));
}

/* ---- takers ---- */

/* The taker means the lock with that czxid. */
static inline void begin_take_of(struct taker *taker, struct host *host, const char *lock,
                                 enum lc_mode mode, int64_t czxid)
{
	struct lc_request request = {.lock = lock,
	                             .mode = mode,
	                             .wait_us = LC_FOREVER,
	                             .pid = 7,
	                             .command = "test",
	                             .czxid = czxid};

	stage_take(taker, host, &request);
	assert_int_equal(taker->result, NONE);
}

static inline void take(struct taker *taker, struct host *host, const char *lock, enum lc_mode mode)
{
	begin_take(taker, host, lock, mode);
	run(taker->stage, 200 * MS);
}

static inline void begin_try(struct taker *taker, struct host *host, enum lc_mode mode,
                             struct taker *old)
{
	struct lc_request request = {.lock = "build",
	                             .mode = mode,
	                             .pid = 7,
	                             .command = "test",
	                             .replaces = old ? old->lc : NULL};

	stage_take(taker, host, &request);
	assert_int_equal(taker->result, NONE);
}

static inline struct question *ask_set_value(struct taker *taker, const char *value, bool append)
{
	return stage_ask_set_value(taker, value, strlen(value), append);
}

static inline const char *first_entry(struct stage *stage, const char *lock)
{
	static char znode[256];
	struct question *q = stage_ask_list(&stage->hosts[0], lock, 0);

	run(stage, 100 * MS);
	assert_int_equal(q->result, 0);
	assert_true(q->entries > 0);
	snprintf(znode, sizeof(znode), "%s", q->entry);
	stage_forget(q);
	return znode;
}

/* The server adds a number to the name; `ret_znode`: the whole name. */
static inline void make_entry(struct stage *stage, int64_t session, const char *prefix,
                              const char *data, char ret_znode[256])
{
	char path[256];
	const char *made = NULL;

	snprintf(path, sizeof(path), BUILD "/%s", prefix);
	assert_int_equal(world_do(&stage->world, session,
	                          OP(.kind = ENSEMBLE_CREATE, .path = path, .data = data,
	                             .data_len = (int)strlen(data), .ephemeral = session != 0,
	                             .sequence = true),
	                          1, &made),
	                 ENSEMBLE_OK);
	snprintf(ret_znode, 256, "%s", strrchr(made, '/') + 1);
	run(stage, 10 * MS);
}

/* The number of requests that this host has sent so far. */
static inline unsigned long requests(struct host *host)
{
	struct lc_status status;

	lc_status(host->lc, &status);
	return status.counters.requests;
}

#endif
