/* SPDX-License-Identifier: MIT
 *
 * An engine that goes on in another process, in each state that it may be in: what holds goes on
 * holding, what waits keeps its place, what was under way is found out, what was told is not told
 * again, and what was not is. All of it twice: from a state that was saved, and from the records
 * that a process leaves which is killed.
 */
#include "unit_stage.h"

#include "state.h"

#include <errno.h>
#include <string.h>
#include <utlist.h>

#define BUILD ROOT "/build"
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

static enum ensemble_result act(struct play *play, struct ensemble_op op)
{
	return stage_act(play->stage, 0, op, NULL);
}

/* Where the record of that key is, or would be. */
static size_t place_of(const struct play *play, uint64_t key)
{
	size_t i = 0;

	while (i < play->record_count && play->records[i].key < key)
		i++;
	return i;
}

static void record_changed(void *ctx, uint64_t key, const void *bytes, size_t len)
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

static void count_record(void *ctx, uint64_t key, const void *bytes, size_t len)
{
	struct play *play = ((void **)ctx)[0];
	size_t i = place_of(play, key);

	assert_true(i < play->record_count && play->records[i].key == key);
	assert_int_equal(play->records[i].len, len);
	assert_memory_equal(play->records[i].bytes, bytes, len);
	++*(size_t *)((void **)ctx)[1];
}

/* As at the end of a turn. */
static void record(struct play *play)
{
	size_t count = 0;
	void *ctx[] = {play, &count};

	assert_int_equal(lc_save_changes(play->here->lc, record_changed, play), 0);
	assert_int_equal(lc_save_all(play->here->lc, count_record, ctx), 0);
	assert_int_equal(count, play->record_count);
}

static void join(struct play *play, void **ret_state, size_t *ret_len)
{
	assert_int_equal(lc_join_state(play->records, play->record_count, ret_state, ret_len), 0);
	assert_int_equal(lc_check_state(*ret_state, *ret_len), 0);
}

static void forget_records(struct play *play)
{
	for (size_t i = 0; i < play->record_count; i++)
		free((void *)play->records[i].bytes);
	play->record_count = 0;
}

static struct play *open_play(uint64_t seed, int64_t lead_us)
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

static void close_play(struct play *play)
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

static struct taker *take_for(struct play *play, int i, int64_t wait_us, enum lc_mode mode,
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

static struct taker *take(struct play *play, int i)
{
	struct taker *taker = take_for(play, i, LC_FOREVER, LC_EXCLUSIVE, NULL);

	run(play->stage, 100 * MS);
	return taker;
}

static struct taker *take_there(struct play *play, enum lc_mode mode)
{
	begin_take(&play->other, play->there, "build", mode);
	run(play->stage, 100 * MS);
	return &play->other;
}

static void save(struct play *play, void **ret_state, size_t *ret_len)
{
	record(play);
	if (by_records) {
		join(play, ret_state, ret_len);
		return;
	}
	assert_int_equal(lc_save(play->here->lc, ret_state, ret_len), 0);
	assert_int_equal(lc_check_state(*ret_state, *ret_len), 0);
}

/* All but those in `lost_ones`, a bit each. */
static void adopt(struct play *play, void *state, size_t len, unsigned lost_ones)
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

static void reload(struct play *play)
{
	void *state;
	size_t len;

	save(play, &state, &len);
	adopt(play, state, len, 0);
}

/* Nothing that it has sent, and has not arrived, will arrive. */
static void reload_and_lose(struct play *play)
{
	conn_break(play->here->wire.conn, 0);
	reload(play);
}

static int entries(struct play *play)
{
	struct node *parent = tree_find(&play->stage->world.committed, BUILD), *node;
	int count = 0;

	DL_FOREACH(parent->children, node)
		count++;
	return count;
}

static struct lc_status status_of(struct host *host)
{
	struct lc_status status;

	lc_status(host->lc, &status);
	return status;
}

/* ---- holding and waiting ---- */

static void goes_on(void **state)
{
	struct play *play = open_play(1, 0);
	struct taker *holder = take(play, 0), *other = take_there(play, LC_EXCLUSIVE);
	struct taker *waiter = take(play, 1);
	int64_t token = lc_token(holder->lc);
	struct lc_status before = status_of(play->here), after;

	(void)state;
	lc_set_reason(holder->lc, "a release", 9);
	run(play->stage, 100 * MS);
	before = status_of(play->here);
	for (int i = 0; i < 3; i++) {
		reload(play);
		assert_true(lc_holds(holder->lc)); /* before there is any contact */
		assert_int_equal(lc_token(holder->lc), token);
		assert_string_equal(lc_reason(holder->lc), "a release");
		assert_int_equal(status_of(play->here).state, LC_SUSPENDED);
		run(play->stage, SECOND);
		assert_true(lc_ready(play->here->lc));
	}
	after = status_of(play->here);
	assert_int_equal(after.session, before.session);
	assert_int_equal(after.sessions, before.sessions);
	assert_int_equal(after.connections, before.connections + 3);
	assert_int_equal(after.counters.takes, before.counters.takes);
	assert_int_equal(after.counters.grants, before.counters.grants);
	assert_int_equal(after.entry_bytes, before.entry_bytes);
	assert_int_equal(after.holders, 1);
	assert_int_equal(after.waiters, 1);
	assert_int_equal(entries(play), 3);
	leave(holder);
	assert_int_equal(waiter->result, NONE);
	assert_int_equal(other->result, 0);
	leave(other);
	assert_int_equal(waiter->result, 0);
	close_play(play);
}

static void old_one_goes_on(void **state)
{
	struct play *play = open_play(2, 0);
	struct taker *holder = take(play, 0), *waiter = take(play, 1);
	void *saved;
	size_t len;

	(void)state;
	save(play, &saved, &len);
	free(saved);
	run(play->stage, SECOND);
	assert_true(lc_holds(holder->lc));
	leave(holder);
	assert_int_equal(waiter->result, 0);
	close_play(play);
}

/* The lease is what it was, not a moment more. */
static void deadline_stays(void **state)
{
	struct play *play = open_play(3, 0);
	struct taker *holder = take(play, 0);
	int64_t left_us;

	(void)state;
	world_hang(&play->stage->world, 0, 60 * SECOND);
	run(play->stage, SECOND);
	left_us = status_of(play->here).lease_left_us;
	reload(play);
	assert_int_equal(status_of(play->here).lease_left_us, left_us);
	run(play->stage, left_us - 10 * MS);
	assert_true(lc_holds(holder->lc));
	run(play->stage, 20 * MS);
	assert_int_equal(holder->phase, LOST);
	assert_int_equal(holder->lost, 1);
	reload(play);
	assert_false(lc_holds(holder->lc));
	run(play->stage, 100 * SECOND);
	assert_int_equal(holder->lost, 1);
	close_play(play);
}

static void nobody_before_the_barrier(void **state)
{
	struct play *play = open_play(4, 0);
	struct taker *other = take_there(play, LC_EXCLUSIVE), *waiter = take(play, 0);
	void *saved;
	size_t len;

	(void)state;
	save(play, &saved, &len);
	stage_leave(other);
	run(play->stage, 100 * MS);
	assert_int_equal(waiter->result, 0); /* by the old one, of which nothing is known */
	waiter->phase = WAITING;
	waiter->result = NONE;
	world_hang(&play->stage->world, 0, SECOND);
	adopt(play, saved, len, 0);
	run(play->stage, 900 * MS);
	assert_int_equal(waiter->result, NONE);
	run(play->stage, 2 * SECOND);
	assert_int_equal(waiter->result, 0);
	close_play(play);
}

static void time_goes_on(void **state)
{
	struct play *play = open_play(5, 0);
	struct taker *other = take_there(play, LC_EXCLUSIVE);
	struct taker *waiter = take_for(play, 0, 5 * SECOND, LC_EXCLUSIVE, NULL);

	(void)state;
	run(play->stage, 3 * SECOND);
	reload(play);
	run(play->stage, 1900 * MS);
	assert_int_equal(waiter->result, NONE);
	run(play->stage, 200 * MS);
	assert_int_equal(waiter->result, -ETIMEDOUT);
	assert_true(lc_holds(other->lc));
	close_play(play);
}

/* It has to lose the lock then, though nothing else happens. */
static void end_stays(void **state)
{
	struct play *play = open_play(6, 0);
	struct taker *holder = take(play, 0);

	(void)state;
	lc_limit(holder->lc, host_clock_us(play->here) + 5 * SECOND);
	run(play->stage, 3 * SECOND);
	reload(play);
	run(play->stage, 1900 * MS);
	assert_true(lc_holds(holder->lc));
	reload(play);
	run(play->stage, 200 * MS);
	assert_int_equal(holder->lost, 1);
	assert_int_equal(status_of(play->here).counters.overdue, 1);
	close_play(play);
}

/* Nor may it use the lock after its end, before a timer has run. */
static void end_stays_at_use(void **state)
{
	struct play *play = open_play(6, 0);
	struct taker *holder = take_for(play, 0, LC_FOREVER, LC_SHARED, NULL);
	struct taker *other = take_for(play, 1, LC_FOREVER, LC_SHARED, NULL);

	(void)state;
	run(play->stage, 100 * MS);
	record(play);
	lc_limit(holder->lc, host_clock_us(play->here) + SECOND);
	reload(play);
	host_pause(play->here, 3 * SECOND);
	run(play->stage, 2 * SECOND);
	assert_true(lc_holds(other->lc));
	assert_false(lc_holds(holder->lc));
	close_play(play);
}

/* Questions have as long as after a lost connection. */
static void asked_while_away(void **state)
{
	struct play *play = open_play(7, 0);
	struct question *question;

	(void)state;
	world_hang(&play->stage->world, 0, SECOND);
	reload(play);
	question = stage_ask_stat(play->here, "build", 0);
	run(play->stage, 1900 * MS);
	assert_int_equal(question->result, 0);
	close_play(play);
}

/* ---- what was under way ---- */

/* How far it came: not even to the batch, on its way, done and not answered. */
static void create_under_way(void **state)
{
	static const int64_t delays_us[] = {0, 0, 200, 200, 1000, 1000, 2500, 2500, 4000, 6000};

	(void)state;
	for (size_t i = 0; i < LENGTH(delays_us); i++) {
		struct play *play = open_play(10 + i, 0);
		struct taker *taker = take_for(play, 0, LC_FOREVER, LC_EXCLUSIVE, NULL);
		struct taker *next = take_for(play, 1, LC_FOREVER, LC_EXCLUSIVE, NULL);

		run(play->stage, delays_us[i]);
		if (i % 2)
			reload(play);
		else
			reload_and_lose(play);
		run(play->stage, SECOND);
		assert_int_equal(entries(play), 2);
		assert_int_equal(taker->result, 0);
		assert_int_equal(next->result, NONE);
		close_play(play);
	}
}

static void delete_under_way(void **state)
{
	static const int64_t delays_us[] = {0, 0, 200, 200, 1000, 1000, 2500, 4000};

	(void)state;
	for (size_t i = 0; i < LENGTH(delays_us); i++) {
		struct play *play = open_play(20 + i, 0);
		struct taker *holder = take(play, 0);
		uint64_t id = holder->id;

		stage_leave(holder);
		run(play->stage, delays_us[i]);
		if (i % 2)
			reload(play);
		else
			reload_and_lose(play);
		assert_null(lc_claim(play->here->lc, id, NULL, NULL, NULL));
		run(play->stage, SECOND);
		assert_int_equal(entries(play), 0);
		assert_true(lc_idle(play->here->lc));
		close_play(play);
	}
}

static void reason_under_way(void **state)
{
	struct play *play = open_play(30, 0);
	struct taker *holder = take(play, 0);
	const struct node *node;

	(void)state;
	lc_set_reason(holder->lc, "sale of the year", 16);
	reload_and_lose(play);
	run(play->stage, SECOND);
	node = tree_find(&play->stage->world.committed, stage_path(holder));
	assert_non_null(memmem(node->data, (size_t)node->data_len, "sale of the year", 16));
	close_play(play);
}

static void try_under_way(void **state)
{
	struct play *play = open_play(31, 0);
	struct taker *other = take_there(play, LC_EXCLUSIVE);
	struct taker *taker = take_for(play, 0, 0, LC_EXCLUSIVE, NULL);

	(void)state;
	run(play->stage, 200);
	reload(play);
	run(play->stage, SECOND);
	assert_int_equal(taker->result, -EAGAIN);
	stage_leave(taker);
	leave(other);
	taker = take_for(play, 0, 0, LC_EXCLUSIVE, NULL);
	run(play->stage, 200);
	reload(play);
	run(play->stage, SECOND);
	assert_int_equal(taker->result, 0);
	close_play(play);
}

/* ---- what was told, and what was not ---- */

/* A release has let the next one in, and it was not told: the ensemble is asked first. */
static void grant_not_told(void **state)
{
	struct play *play = open_play(40, 0);
	struct taker *holder = take(play, 0), *next = take(play, 1);

	(void)state;
	stage_leave(holder);
	assert_int_equal(status_of(play->here).holders, 1);
	world_hang(&play->stage->world, 0, SECOND);
	reload(play);
	assert_int_equal(status_of(play->here).holders, 0);
	run(play->stage, 900 * MS);
	assert_int_equal(next->result, NONE);
	run(play->stage, 2 * SECOND);
	assert_int_equal(next->result, 0);
	close_play(play);
}

static void refusal_not_told(void **state)
{
	struct play *play = open_play(41, 0);
	struct taker *holder = take(play, 0), *waiter = take(play, 1), scrap;

	(void)state;
	lc_drain(play->here->lc);
	reload(play);
	assert_int_equal(waiter->result, NONE);
	run(play->stage, SECOND);
	assert_int_equal(waiter->result, -ESHUTDOWN);
	assert_true(lc_holds(holder->lc));
	stage_take(&scrap, play->here, &(struct lc_request){.lock = "build", .command = "test"});
	assert_int_equal(scrap.result, -ESHUTDOWN); /* it still drains */
	reload(play);
	run(play->stage, SECOND);
	close_play(play);
}

static void loss_not_told(void **state)
{
	struct play *play = open_play(42, 800 * MS);
	struct taker *holder = take(play, 0);

	(void)state;
	lc_forfeit(play->here->lc);
	reload(play);
	assert_false(lc_holds(holder->lc));
	assert_int_equal(holder->lost, 0);
	run(play->stage, 30 * SECOND);
	assert_int_equal(holder->lost, 1);
	assert_int_equal(entries(play), 1); /* it may be at work */
	leave(holder);
	assert_int_equal(entries(play), 0);
	close_play(play);
}

/* The entry of a lost lock stays until its taker leaves, or a session timeout is over. */
static void lost_and_guarded(void **state)
{
	for (int leaves = 0; leaves < 2; leaves++) {
		struct play *play = open_play(43, 800 * MS);
		struct taker *holder = take(play, 0);

		(void)state;
		assert_non_null(stage_path(holder));
		assert_int_equal(act(play, ensemble_set(holder->path, "evict: a test\n", 14, 0)),
		                 ENSEMBLE_OK);
		run(play->stage, SECOND);
		assert_int_equal(holder->phase, LOST);
		reload(play);
		run(play->stage, SECOND);
		assert_int_equal(holder->lost, 1);
		assert_int_equal(entries(play), 1);
		if (leaves) {
			leave(holder);
		} else {
			run(play->stage, TIMEOUT_US - 3 * SECOND);
			assert_int_equal(entries(play), 1);
			run(play->stage, 2 * SECOND);
		}
		assert_int_equal(entries(play), 0);
		close_play(play);
	}
}

/* ---- others, meanwhile ---- */

static void evicted_meanwhile(void **state)
{
	struct play *play = open_play(50, 0);
	struct taker *holder = take(play, 0), *waiter = take(play, 1), *last = take(play, 2);
	void *saved;
	size_t len;

	(void)state;
	assert_non_null(stage_path(waiter));
	assert_non_null(stage_path(last));
	save(play, &saved, &len);
	host_pause(play->here, 150 * MS);
	assert_int_equal(act(play, ensemble_delete(last->path, 0)), ENSEMBLE_OK);
	stage_ask_evict(play->there, "build", strrchr(waiter->path, '/') + 1,
	                &(struct lc_evictor){.name = "an operator"});
	run(play->stage, 100 * MS);
	adopt(play, saved, len, 0);
	run(play->stage, SECOND);
	assert_true(lc_holds(holder->lc));
	assert_int_equal(waiter->result, -ECANCELED);
	assert_int_equal(last->result, -ECANCELED);
	assert_non_null(stage_path(holder));
	assert_int_equal(act(play, ensemble_delete(holder->path, 0)), ENSEMBLE_OK);
	reload(play);
	run(play->stage, SECOND);
	assert_int_equal(holder->lost, 1);
	close_play(play);
}

/* That it was missing is known, what of is not yet. */
static void missing_goes_on(void **state)
{
	for (int ended = 0; ended < 2; ended++) {
		struct play *play = open_play(54, 0);
		struct taker *other = take_there(play, LC_EXCLUSIVE), *waiter = take(play, 0);
		int64_t session = status_of(play->here).session;

		(void)state;
		assert_non_null(stage_path(waiter));
		assert_int_equal(act(play, ensemble_delete(waiter->path, 0)), ENSEMBLE_OK);
		/* The listing has not shown it; the heartbeat is not answered. */
		for (int i = 0; i < 1000 && lc_znode(waiter->lc); i++)
			run(play->stage, 10);
		assert_null(lc_znode(waiter->lc));
		assert_int_equal(waiter->result, NONE);
		if (ended)
			world_close_session(&play->stage->world, session);
		reload(play);
		run(play->stage, 5 * SECOND);
		assert_int_equal(waiter->result, ended ? NONE : -ECANCELED);
		leave(other);
		assert_int_equal(waiter->result, ended ? 0 : -ECANCELED);
		close_play(play);
	}
}

static void session_over_meanwhile(void **state)
{
	struct play *play = open_play(51, 0);
	struct taker *holder = take(play, 0), *waiter = take(play, 1), *last = take(play, 2);
	int64_t session = status_of(play->here).session;

	(void)state;
	world_close_session(&play->stage->world, session);
	reload(play);
	run(play->stage, 5 * SECOND);
	assert_int_not_equal(status_of(play->here).session, session);
	assert_int_equal(holder->lost, 1);
	assert_int_equal(waiter->result, 0); /* in their old order */
	assert_int_equal(last->result, NONE);
	close_play(play);
}

static void lock_removed_meanwhile(void **state)
{
	struct play *play = open_play(52, 0);
	struct taker *holder = take(play, 0), *waiter = take(play, 1);
	void *saved;
	size_t len;

	(void)state;
	assert_non_null(stage_path(holder));
	assert_non_null(stage_path(waiter));
	save(play, &saved, &len);
	host_pause(play->here, 150 * MS);
	act(play, ensemble_delete(holder->path, 0));
	act(play, ensemble_delete(waiter->path, 0));
	assert_int_equal(act(play, ensemble_delete(BUILD, 0)), ENSEMBLE_OK);
	assert_int_equal(act(play, ensemble_create(BUILD, NULL, 0)), ENSEMBLE_OK);
	take_there(play, LC_EXCLUSIVE);
	assert_int_equal(play->other.result, 0);
	adopt(play, saved, len, 0);
	run(play->stage, SECOND);
	assert_int_equal(holder->phase, LOST);
	assert_int_equal(waiter->result, -ECANCELED);
	assert_true(lc_holds(play->other.lc));
	close_play(play);
}

static void run_until_told(struct taker *taker)
{
	for (int i = 0; i < 50 && taker->result == NONE; i++)
		run(taker->stage, 10);
	assert_int_equal(taker->result, 0);
}

/* Nobody has looked whether the entry of the third is there: that of the second guards the
 * lock. */
static void guarded_hand_off(void **state)
{
	struct play *play = open_play(53, 0);
	struct taker *first = take(play, 0), *second = take(play, 1), *third = take(play, 2);
	char guard[300];

	(void)state;
	assert_non_null(stage_path(third));
	strcpy(guard, stage_path(second));
	stage_leave(first);
	run_until_told(second);
	stage_leave(second);
	run_until_told(third);
	assert_int_equal(status_of(play->here).counters.hand_offs, 2);
	assert_int_equal(act(play, ensemble_delete(third->path, 0)), ENSEMBLE_OK);
	reload_and_lose(play);
	for (int i = 0; i < 10000; i++) {
		run(play->stage, 100);
		assert_true(!lc_holds(third->lc) ||
		            tree_find(&play->stage->world.committed, guard));
	}
	assert_int_equal(third->phase, LOST);
	assert_int_equal(entries(play), 0);
	close_play(play);
}

/* ---- taking a place, evicting ---- */

static void upgrade_goes_on(void **state)
{
	struct play *play = open_play(60, 0);
	struct taker *reader = take_for(play, 0, LC_FOREVER, LC_SHARED, NULL), *writer, *other;

	(void)state;
	run(play->stage, 100 * MS);
	other = take_there(play, LC_SHARED);
	writer = take_for(play, 1, LC_FOREVER, LC_EXCLUSIVE, reader);
	run(play->stage, 100 * MS);
	reload(play);
	run(play->stage, SECOND);
	assert_int_equal(writer->result, NONE);
	leave(other);
	assert_int_equal(writer->result, 0);
	assert_true(lc_holds(reader->lc));
	leave(reader);
	assert_true(lc_holds(writer->lc));
	close_play(play);
}

/* Its mount does nothing: the entry is deleted here in the end. */
static void eviction_goes_on(void **state)
{
	struct play *play = open_play(61, 0);
	struct taker *other = take_there(play, LC_EXCLUSIVE);
	const char *znode = strrchr(stage_path(other), '/') + 1;
	struct question *question = stage_ask_evict(play->here, "build", znode,
	                                            &(struct lc_evictor){.name = "an operator"});
	void *saved;
	size_t len;

	(void)state;
	/* So far it only reads; and then it is written. */
	assert_int_equal(lc_save(play->here->lc, &saved, &len), 0);
	free(saved);
	while (lc_may_cancel(question->call))
		run(play->stage, 1);
	assert_int_equal(lc_save(play->here->lc, &saved, &len), -EBUSY);
	host_pause(play->there, 3 * TIMEOUT_US);
	run(play->stage, 100 * MS);
	assert_int_equal(question->result, 0);
	reload(play);
	for (int i = 0; i < 9; i++) {
		/* Its session lives. */
		conn_ping(play->there->wire.conn);
		run(play->stage, SECOND);
		assert_int_equal(entries(play), 1);
	}
	conn_ping(play->there->wire.conn);
	run(play->stage, 2 * SECOND);
	assert_int_equal(entries(play), 0);
	assert_true(world_session_alive(&play->stage->world, play->there->wire.session));
	other->phase = HELD;
	run(play->stage, 3 * TIMEOUT_US);
	close_play(play);
}

/* ---- claims ---- */

static void claims(void **state)
{
	struct play *play = open_play(70, 0);
	struct taker *holder = take(play, 0), *waiter = take(play, 1), *other;
	void *saved;
	size_t len;

	(void)state;
	other = take_there(play, LC_EXCLUSIVE);
	save(play, &saved, &len);
	adopt(play, saved, len, 1);
	assert_null(lc_claim(play->here->lc, waiter->id, NULL, NULL, NULL)); /* is claimed */
	assert_null(lc_claim(play->here->lc, holder->id, NULL, NULL, NULL)); /* has left */
	assert_null(lc_claim(play->here->lc, 12345, NULL, NULL, NULL));
	run(play->stage, SECOND);
	assert_int_equal(waiter->result, 0);
	save(play, &saved, &len);
	adopt(play, saved, len, 2);
	run(play->stage, SECOND);
	assert_int_equal(other->result, 0);
	assert_int_equal(entries(play), 1);
	close_play(play);
}

static void not_adopted(void **state)
{
	struct play *play = open_play(71, 0);
	struct lc_config config = host_config(play->here, "/elsewhere");
	struct lc *lc = NULL;
	void *saved;
	size_t len;

	(void)state;
	take(play, 0);
	save(play, &saved, &len);
	config.session_timeout_us = TIMEOUT_US;
	config.tick_time_us = 2 * SECOND;
	assert_int_equal(lc_adopt(&config, &play->here->wire.ensemble, saved, len, &lc), -EINVAL);
	config.root = ROOT;
	host_move_clock(play->here, host_clock_us(play->here) - 1);
	assert_int_equal(lc_adopt(&config, &play->here->wire.ensemble, saved, len, &lc), -EINVAL);
	host_move_clock(play->here, host_clock_us(play->here) + 1);
	assert_int_equal(lc_adopt(&config, &play->here->wire.ensemble, saved, len - 1, &lc),
	                 -EPROTO);
	assert_null(lc);
	free(saved);
	close_play(play);
}

/* A turn that is not recorded has not happened: nothing of it has left. */
static void killed_before_it_was_recorded(void **state)
{
	struct play *play = open_play(90, 0);
	struct taker *holder = take(play, 0), *never;
	uint64_t id;
	void *saved;
	size_t len;

	(void)state;
	record(play);
	never = take_for(play, 2, LC_FOREVER, LC_SHARED, NULL);
	id = never->id;
	lc_leave(holder->lc);
	lc_process(play->here->lc, 0);
	join(play, &saved, &len);
	adopt(play, saved, len, 1 << 2);
	assert_null(lc_claim(play->here->lc, id, NULL, NULL, NULL));
	assert_true(lc_holds(holder->lc));
	for (int i = 0; i < 1000; i++) {
		run(play->stage, MS);
		assert_int_equal(entries(play), 1);
	}
	assert_true(lc_holds(holder->lc));
	close_play(play);
}

/* A question that changes something does not stand in the way. */
static void killed_while_it_changes(void **state)
{
	struct play *play = open_play(91, 0);
	struct taker *holder = take(play, 0);
	struct lc_change change = {.slots = 2};
	struct lc_call *call;
	void *saved;
	size_t len;

	(void)state;
	assert_true(lc_settled(play->here->lc));
	assert_int_equal(lc_change(play->here->lc, "build", &change, NULL, NULL, &call), 0);
	host_wake(play->here);
	for (int i = 0; i < 100 && lc_settled(play->here->lc); i++)
		run(play->stage, 100);
	assert_false(lc_settled(play->here->lc));
	assert_int_equal(lc_save(play->here->lc, &saved, &len), -EBUSY);
	record(play);
	join(play, &saved, &len);
	lc_cancel(call);
	adopt(play, saved, len, 0);
	run(play->stage, SECOND);
	assert_true(lc_holds(holder->lc));
	close_play(play);
}

/* Killed again and again, before it is recorded what the next one has done. */
static void killed_in_a_row(void **state)
{
	struct play *play = open_play(92, 0);
	struct taker *holder = take(play, 0), *next = take(play, 1);
	void *saved;
	size_t len;

	(void)state;
	record(play);
	for (int i = 0; i < 5; i++) {
		join(play, &saved, &len);
		adopt(play, saved, len, 0);
		run(play->stage, i * MS);
	}
	run(play->stage, SECOND);
	assert_int_equal(entries(play), 2);
	assert_true(lc_holds(holder->lc));
	stage_leave(holder);
	run(play->stage, 100 * MS);
	assert_true(lc_holds(next->lc));
	close_play(play);
}

/* Takers are restored in the order of their entries, not in that in which they came. */
static void records_in_the_order_of_entries(void **state)
{
	struct play *play = open_play(94, 0);
	struct taker *first = take_for(play, 0, 0, LC_SHARED, NULL); /* which lists it first */
	struct taker *second = take_for(play, 1, LC_FOREVER, LC_SHARED, NULL);
	uint64_t ids[] = {second->id, first->id};
	struct state_record taker;
	size_t len, offset = 0, count = 0;
	void *saved;

	(void)state;
	record(play);
	run(play->stage, SECOND);
	assert_true(lc_holds(first->lc) && lc_holds(second->lc));
	record(play);
	join(play, &saved, &len);
	while (state_read(saved, len, &offset, &taker))
		if (taker.kind == STATE_TAKER)
			assert_int_equal(taker.fixed.taker.id, ids[count++]);
	assert_int_equal(count, 2);
	free(saved);
	close_play(play);
}

/* Whatever stands in shared memory is believed in nothing. */
static void broken_records(void **state)
{
	struct play *play = open_play(93, 0);
	struct lc_record *records = play->records, kept;
	void *saved;
	size_t len;

	(void)state;
	take(play, 0);
	record(play);
	assert_int_equal(lc_join_state(NULL, 0, &saved, &len), -EPROTO);
	assert_int_equal(lc_join_state(records + 1, 1, &saved, &len), -EPROTO);
	kept = records[2];
	records[2].len -= 8;
	assert_int_equal(lc_join_state(records, 3, &saved, &len), -EPROTO);
	records[2] = kept;
	records[2].key++;
	assert_int_equal(lc_join_state(records, 3, &saved, &len), -EPROTO);
	records[2] = kept;
	records[1].key = 1;
	assert_int_equal(lc_join_state(records, 3, &saved, &len), -EPROTO);
	records[1].key = 2;
	assert_int_equal(lc_join_state(records, 3, &saved, &len), 0);
	free(saved);
	close_play(play);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_on),
		cmocka_unit_test(old_one_goes_on),
		cmocka_unit_test(deadline_stays),
		cmocka_unit_test(nobody_before_the_barrier),
		cmocka_unit_test(time_goes_on),
		cmocka_unit_test(end_stays),
		cmocka_unit_test(end_stays_at_use),
		cmocka_unit_test(asked_while_away),
		cmocka_unit_test(create_under_way),
		cmocka_unit_test(delete_under_way),
		cmocka_unit_test(reason_under_way),
		cmocka_unit_test(try_under_way),
		cmocka_unit_test(grant_not_told),
		cmocka_unit_test(refusal_not_told),
		cmocka_unit_test(loss_not_told),
		cmocka_unit_test(lost_and_guarded),
		cmocka_unit_test(evicted_meanwhile),
		cmocka_unit_test(missing_goes_on),
		cmocka_unit_test(session_over_meanwhile),
		cmocka_unit_test(lock_removed_meanwhile),
		cmocka_unit_test(guarded_hand_off),
		cmocka_unit_test(upgrade_goes_on),
		cmocka_unit_test(eviction_goes_on),
		cmocka_unit_test(killed_before_it_was_recorded),
		cmocka_unit_test(killed_while_it_changes),
		cmocka_unit_test(killed_in_a_row),
		cmocka_unit_test(records_in_the_order_of_entries),
		cmocka_unit_test(broken_records),
		cmocka_unit_test(claims),
		cmocka_unit_test(not_adopted),
	};
	int failed;

	failed = cmocka_run_group_tests(tests, NULL, NULL);
	by_records = true;
	return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
