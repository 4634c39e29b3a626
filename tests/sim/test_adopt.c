/* SPDX-License-Identifier: MIT
 *
 * An engine that goes on in another process, in each state that it may be in: a holder goes on
 * holding, a waiter keeps its place, the outcome of requests that were under way is found out, and
 * no news is lost or told twice.
 */
#include "unit_play.h"

#include <errno.h>

/* ---- holding and waiting ---- */

static void goes_on(void **state)
{
	struct play *play = *state;
	struct taker *holder = take(play, 0), *other = take_there(play, LC_EXCLUSIVE);
	struct taker *waiter = take(play, 1);
	int64_t token = lc_token(holder->lc);
	struct lc_status before = status_of(play->here), after;

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
}

static void old_one_goes_on(void **state)
{
	struct play *play = *state;
	struct taker *holder = take(play, 0), *waiter = take(play, 1);

	record(play);
	run(play->stage, SECOND);
	assert_true(lc_holds(holder->lc));
	leave(holder);
	assert_int_equal(waiter->result, 0);
}

/* The lease ends when it would have ended in the old process, not a moment later. */
static void deadline_stays(void **state)
{
	struct play *play = *state;
	struct taker *holder = take(play, 0);
	int64_t left_us;

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
}

static void nobody_before_the_barrier(void **state)
{
	struct play *play = *state;
	struct taker *other = take_there(play, LC_EXCLUSIVE), *waiter = take(play, 0);

	record(play);
	stage_leave(other);
	run(play->stage, 100 * MS);
	assert_int_equal(waiter->result, 0); /* in the old engine, and the new one does not know */
	waiter->phase = WAITING;
	waiter->result = NONE;
	world_hang(&play->stage->world, 0, SECOND);
	adopt(play, 0);
	run(play->stage, 900 * MS);
	assert_int_equal(waiter->result, NONE);
	run(play->stage, 2 * SECOND);
	assert_int_equal(waiter->result, 0);
}

static void time_goes_on(void **state)
{
	struct play *play = *state;
	struct taker *other = take_there(play, LC_EXCLUSIVE);
	struct taker *waiter = take_for(play, 0, 5 * SECOND, LC_EXCLUSIVE, NULL);

	run(play->stage, 3 * SECOND);
	reload(play);
	run(play->stage, 1900 * MS);
	assert_int_equal(waiter->result, NONE);
	run(play->stage, 200 * MS);
	assert_int_equal(waiter->result, -ETIMEDOUT);
	assert_true(lc_holds(other->lc));
}

/* The holder loses the lock at the end of its time, though nothing else happens. */
static void end_stays(void **state)
{
	struct play *play = *state;
	struct taker *holder = take(play, 0);

	lc_limit(holder->lc, host_clock_us(play->here) + 5 * SECOND);
	run(play->stage, 3 * SECOND);
	reload(play);
	run(play->stage, 1900 * MS);
	assert_true(lc_holds(holder->lc));
	reload(play);
	run(play->stage, 200 * MS);
	assert_int_equal(holder->lost, 1);
	assert_int_equal(status_of(play->here).counters.overdue, 1);
}

/* The holder cannot use the lock after the end of its time, even before a timer has run. */
static void end_stays_at_use(void **state)
{
	struct play *play = *state;
	struct taker *holder = take_for(play, 0, LC_FOREVER, LC_SHARED, NULL);
	struct taker *other = take_for(play, 1, LC_FOREVER, LC_SHARED, NULL);

	run(play->stage, 100 * MS);
	record(play);
	lc_limit(holder->lc, host_clock_us(play->here) + SECOND);
	reload(play);
	host_pause(play->here, 3 * SECOND);
	run(play->stage, 2 * SECOND);
	assert_true(lc_holds(other->lc));
	assert_false(lc_holds(holder->lc));
}

/* A question may take as long as after a lost connection. */
static void asked_while_away(void **state)
{
	struct play *play = *state;
	struct question *question;

	world_hang(&play->stage->world, 0, SECOND);
	reload(play);
	question = stage_ask_stat(play->here, "build", 0);
	run(play->stage, 1900 * MS);
	assert_int_equal(question->result, 0);
}

/* ---- requests under way ---- */

/* The create is not in a batch yet, or on its way, or done and not answered. */
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
	struct play *play = *state;
	struct taker *holder = take(play, 0);
	const struct node *node;

	lc_set_reason(holder->lc, "sale of the year", 16);
	reload_and_lose(play);
	run(play->stage, SECOND);
	node = tree_find(&play->stage->world.committed, stage_path(holder));
	assert_non_null(memmem(node->data, (size_t)node->data_len, "sale of the year", 16));
}

static void try_under_way(void **state)
{
	struct play *play = *state;
	struct taker *other = take_there(play, LC_EXCLUSIVE);
	struct taker *taker = take_for(play, 0, 0, LC_EXCLUSIVE, NULL);

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
}

/* ---- results that were not told ---- */

/* A release would have let the next taker in: the new engine asks first. */
static void release_under_way(void **state)
{
	struct play *play = *state;
	struct taker *holder = take(play, 0), *next = take(play, 1);

	stage_leave(holder);
	world_hang(&play->stage->world, 0, SECOND);
	reload(play);
	assert_int_equal(status_of(play->here).holders, 0);
	run(play->stage, 900 * MS);
	assert_int_equal(next->result, NONE);
	run(play->stage, 2 * SECOND);
	assert_int_equal(next->result, 0);
}

static void refusal_not_told(void **state)
{
	struct play *play = *state;
	struct taker *holder = take(play, 0), *waiter = take(play, 1), scrap;

	lc_drain(play->here->lc);
	reload(play);
	assert_int_equal(waiter->result, NONE);
	run(play->stage, SECOND);
	assert_int_equal(waiter->result, -ESHUTDOWN);
	assert_true(lc_holds(holder->lc));
	stage_take(&scrap, play->here, &(struct lc_request){.lock = "build", .command = "test"});
	assert_int_equal(scrap.result, -ESHUTDOWN); /* the engine still drains */
	reload(play);
	run(play->stage, SECOND);
}

static void loss_not_told(void **state)
{
	struct play *play = *state;
	struct taker *holder = take(play, 0);

	lc_forfeit(play->here->lc);
	reload(play);
	assert_false(lc_holds(holder->lc));
	assert_int_equal(holder->lost, 0);
	run(play->stage, 30 * SECOND);
	assert_int_equal(holder->lost, 1);
	assert_int_equal(entries(play), 1); /* the loser may still be at work */
	leave(holder);
	assert_int_equal(entries(play), 0);
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
		assert_int_equal(status_of(play->here).losing, 1);
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

/* ---- claims ---- */

static void claims(void **state)
{
	struct play *play = *state;
	struct taker *holder = take(play, 0), *waiter = take(play, 1), *other;

	other = take_there(play, LC_EXCLUSIVE);
	record(play);
	adopt(play, 1);
	assert_null(lc_claim(play->here->lc, waiter->id, NULL, NULL, NULL)); /* is claimed */
	assert_null(lc_claim(play->here->lc, holder->id, NULL, NULL, NULL)); /* has left */
	assert_null(lc_claim(play->here->lc, 12345, NULL, NULL, NULL));
	run(play->stage, SECOND);
	assert_int_equal(waiter->result, 0);
	record(play);
	adopt(play, 2);
	run(play->stage, SECOND);
	assert_int_equal(other->result, 0);
	assert_int_equal(entries(play), 1);
}

/* Servers have said so: the options of the other one do not. */
static void ticks_stay(void **state)
{
	struct play *play = *state;
	struct lc_status status;

	take(play, 0);
	record(play);
	lc_raise_tick(play->here->lc, 3 * SECOND);
	record(play);
	adopt(play, 1);
	lc_status(play->here->lc, &status);
	assert_int_equal(status.tick_time_us, 3 * SECOND);
}

static void not_adopted(void **state)
{
	struct play *play = *state;

	for (int takers = 0; takers < 2; takers++) {
		if (takers > 0)
			take(play, 0);
		record(play);
		assert_int_equal(check(play, ROOT), 0);
		assert_int_equal(check(play, "/elsewhere"), -EPROTO);
		/* Another boot. */
		host_move_clock(play->here, host_clock_us(play->here) - 30 * SECOND);
		assert_int_equal(check(play, ROOT), -EPROTO);
		host_move_clock(play->here, host_clock_us(play->here) + 30 * SECOND);
		assert_int_equal(check(play, ROOT), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLAY_TEST(goes_on, 1, 0),
		PLAY_TEST(old_one_goes_on, 2, 0),
		PLAY_TEST(deadline_stays, 3, 0),
		PLAY_TEST(nobody_before_the_barrier, 4, 0),
		PLAY_TEST(time_goes_on, 5, 0),
		PLAY_TEST(end_stays, 6, 0),
		PLAY_TEST(end_stays_at_use, 6, 0),
		PLAY_TEST(asked_while_away, 7, 0),
		cmocka_unit_test(create_under_way),
		cmocka_unit_test(delete_under_way),
		PLAY_TEST(reason_under_way, 30, 0),
		PLAY_TEST(try_under_way, 31, 0),
		PLAY_TEST(release_under_way, 40, 0),
		PLAY_TEST(refusal_not_told, 41, 0),
		PLAY_TEST(loss_not_told, 42, 800 * MS),
		cmocka_unit_test(lost_and_guarded),
		PLAY_TEST(claims, 70, 0),
		PLAY_TEST(ticks_stay, 72, 0),
		PLAY_TEST(not_adopted, 71, 0),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
