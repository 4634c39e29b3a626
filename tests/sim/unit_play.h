/* SPDX-License-Identifier: MIT
 *
 * unit_play.h - for tests of an engine that goes on in another process: a lock and some takers of
 * one host, which is then reloaded, or killed. The new engine gets a saved state, or a state made
 * of the records that a killed process leaves.
 */
#ifndef SIM_UNIT_PLAY_H
#define SIM_UNIT_PLAY_H

#include "unit_stage.h"

#include <string.h>
#include <utlist.h>

#define TAKERS_MAX 4
#define RECORDS_MAX 32

static bool by_records;

/* A stage with a lock, and the takers of its first host that are claimed when it reloads. */
struct play {
	struct stage *stage;
	struct host *here, *there;
	struct taker takers[TAKERS_MAX];
	struct taker other; /* on the other host */
	int64_t lead_us;
	struct lc_record records[RECORDS_MAX]; /* of the first host, sorted */
	size_t record_count;
};

static inline enum ensemble_result act(struct play *play, struct ensemble_op op)
{
	return stage_act(play->stage, 0, op, NULL);
}

/* The index of the record of that key, or where it would be. */
static inline size_t place_of(const struct play *play, uint64_t key)
{
	size_t i = 0;

	while (i < play->record_count && play->records[i].key < key)
		i++;
	return i;
}

static inline void record_changed(void *ctx, uint64_t key, const void *bytes, size_t len)
{
	struct play *play = ctx;
	size_t i = place_of(play, key);
	struct lc_record *record = &play->records[i];

	if (i < play->record_count && record->key == key) {
		free((void *)record->bytes);
		memmove(record, record + 1, (--play->record_count - i) * sizeof(*record));
	}
	if (!bytes)
		return;
	assert_true(play->record_count < RECORDS_MAX);
	memmove(record + 1, record, (play->record_count++ - i) * sizeof(*record));
	*record = (struct lc_record){key, memcpy(malloc(len), bytes, len), len};
}

static inline void count_record(void *ctx, uint64_t key, const void *bytes, size_t len)
{
	struct play *play = ((void **)ctx)[0];
	size_t i = place_of(play, key);

	assert_true(i < play->record_count && play->records[i].key == key);
	assert_int_equal(play->records[i].len, len);
	assert_memory_equal(play->records[i].bytes, bytes, len);
	++*(size_t *)((void **)ctx)[1];
}

/* Records all changes, as at the end of a turn. */
static inline void record(struct play *play)
{
	size_t count = 0;
	void *ctx[] = {play, &count};

	assert_int_equal(lc_save_changes(play->here->lc, record_changed, play), 0);
	assert_int_equal(lc_save_all(play->here->lc, count_record, ctx), 0);
	assert_int_equal(count, play->record_count);
}

static inline void join(struct play *play, void **ret_state, size_t *ret_len)
{
	assert_int_equal(lc_join_state(play->records, play->record_count, ret_state, ret_len), 0);
	assert_int_equal(lc_check_state(*ret_state, *ret_len), 0);
}

static inline void forget_records(struct play *play)
{
	for (size_t i = 0; i < play->record_count; i++)
		free((void *)play->records[i].bytes);
	play->record_count = 0;
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
	forget_records(play);
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

static inline void save(struct play *play, void **ret_state, size_t *ret_len)
{
	record(play);
	if (by_records) {
		join(play, ret_state, ret_len);
		return;
	}
	assert_int_equal(lc_save(play->here->lc, ret_state, ret_len), 0);
	assert_int_equal(lc_check_state(*ret_state, *ret_len), 0);
}

/* Claims all takers but those in `lost_ones`, a bit for each. */
static inline void adopt(struct play *play, void *state, size_t len, unsigned lost_ones)
{
	assert_int_equal(stage_adopt(play->here, state, len, play->lead_us), 0);
	free(state);
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
	void *state;
	size_t len;

	save(play, &state, &len);
	adopt(play, state, len, 0);
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
