/* SPDX-License-Identifier: MIT
 *
 * An engine that goes on in another process, when the queue has changed meanwhile, or is just being
 * changed: entries and the lock are gone, the session is over, a taker replaces another one. Each
 * test runs two times, as in test_adopt.c.
 */
#include "unit_play.h"

#include <errno.h>

/* ---- others, meanwhile ---- */

static void evicted_meanwhile(void **state)
{
	struct play *play = *state;
	struct taker *holder = take(play, 0), *waiter = take(play, 1), *last = take(play, 2);

	assert_non_null(stage_path(waiter));
	assert_non_null(stage_path(last));
	record(play);
	host_pause(play->here, 150 * MS);
	assert_int_equal(act(play, ensemble_delete(last->path, 0)), ENSEMBLE_OK);
	stage_ask_evict(play->there, "build", strrchr(waiter->path, '/') + 1,
	                &(struct lc_evictor){.name = "an operator"});
	run(play->stage, 100 * MS);
	adopt(play, 0);
	run(play->stage, SECOND);
	assert_true(lc_holds(holder->lc));
	assert_int_equal(waiter->result, -ECANCELED);
	assert_int_equal(last->result, -ECANCELED);
	assert_non_null(stage_path(holder));
	assert_int_equal(act(play, ensemble_delete(holder->path, 0)), ENSEMBLE_OK);
	reload(play);
	run(play->stage, SECOND);
	assert_int_equal(holder->lost, 1);
}

/* The old engine knows that the entry is missing, and not yet why: it was deleted, or the session
 * has ended as well. */
static void missing_goes_on(void **state)
{
	for (int ended = 0; ended < 2; ended++) {
		struct play *play = open_play(54, 0);
		struct taker *other = take_there(play, LC_EXCLUSIVE), *waiter = take(play, 0);
		int64_t session = status_of(play->here).session;

		(void)state;
		assert_non_null(stage_path(waiter));
		assert_int_equal(act(play, ensemble_delete(waiter->path, 0)), ENSEMBLE_OK);
		/* The listing does not show the entry; the heartbeat is not answered yet. */
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
	struct play *play = *state;
	struct taker *holder = take(play, 0), *waiter = take(play, 1), *last = take(play, 2);
	int64_t session = status_of(play->here).session;

	world_close_session(&play->stage->world, session);
	reload(play);
	run(play->stage, 5 * SECOND);
	assert_int_not_equal(status_of(play->here).session, session);
	assert_int_equal(holder->lost, 1);
	assert_int_equal(waiter->result, 0); /* in their old order */
	assert_int_equal(last->result, NONE);
}

static void lock_removed_meanwhile(void **state)
{
	struct play *play = *state;
	struct taker *holder = take(play, 0), *waiter = take(play, 1);

	assert_non_null(stage_path(holder));
	assert_non_null(stage_path(waiter));
	record(play);
	host_pause(play->here, 150 * MS);
	act(play, ensemble_delete(holder->path, 0));
	act(play, ensemble_delete(waiter->path, 0));
	assert_int_equal(act(play, ensemble_delete(BUILD, 0)), ENSEMBLE_OK);
	assert_int_equal(act(play, ensemble_create(BUILD, NULL, 0)), ENSEMBLE_OK);
	take_there(play, LC_EXCLUSIVE);
	assert_int_equal(play->other.result, 0);
	adopt(play, 0);
	run(play->stage, SECOND);
	assert_int_equal(holder->phase, LOST);
	assert_int_equal(waiter->result, -ECANCELED);
	assert_true(lc_holds(play->other.lc));
}

static void run_until_told(struct taker *taker)
{
	for (int i = 0; i < 50 && taker->result == NONE; i++)
		run(taker->stage, 10);
	assert_int_equal(taker->result, 0);
}

/* No answer has shown whether the entry of the third taker is there: the entry of the second one
 * guards the lock. */
static void guarded_hand_off(void **state)
{
	struct play *play = *state;
	struct taker *first = take(play, 0), *second = take(play, 1), *third = take(play, 2);
	char guard[300];

	assert_non_null(stage_path(third));
	strcpy(guard, stage_path(second));
	stage_leave(first);
	run_until_told(second);
	stage_leave(second);
	run_until_told(third);
	assert_int_equal(status_of(play->here).counters.hand_offs, 2);
	assert_int_equal(act(play, ensemble_delete(third->path, 0)), ENSEMBLE_OK);
	reload_and_lose(play);
	while (!lc_ready(play->here->lc))
		run(play->stage, 10);
	/* The third entry is read at once, but the answer is late. */
	conn_stall(play->here->wire.conn, DOWN, play->stage->agenda.now_us + SECOND / 2);
	for (int i = 0; i < 10000; i++) {
		run(play->stage, 100);
		assert_true(!lc_holds(third->lc) ||
		            tree_find(&play->stage->world.committed, guard));
	}
	assert_int_equal(third->phase, LOST);
	assert_int_equal(entries(play), 0);
}

/* ---- taking a place, evicting ---- */

static void upgrade_goes_on(void **state)
{
	struct play *play = *state;
	struct taker *reader = take_for(play, 0, LC_FOREVER, LC_SHARED, NULL), *writer, *other;

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
}

/* The holder's mount does nothing: the evictor's mount deletes the entry in the end. */
static void eviction_goes_on(void **state)
{
	struct play *play = *state;
	struct taker *other = take_there(play, LC_EXCLUSIVE);
	const char *znode = strrchr(stage_path(other), '/') + 1;
	struct question *question = stage_ask_evict(play->here, "build", znode,
	                                            &(struct lc_evictor){.name = "an operator"});

	/* So far the eviction only reads; afterwards it writes. */
	assert_true(lc_settled(play->here->lc));
	while (lc_may_cancel(question->call))
		run(play->stage, 1);
	assert_false(lc_settled(play->here->lc));
	host_pause(play->there, 3 * TIMEOUT_US);
	run(play->stage, 100 * MS);
	assert_int_equal(question->result, 0);
	reload(play);
	for (int i = 0; i < 9; i++) {
		/* The session of the stopped mount lives. */
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
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLAY_TEST(evicted_meanwhile, 50, 0),      cmocka_unit_test(missing_goes_on),
		PLAY_TEST(session_over_meanwhile, 51, 0), PLAY_TEST(lock_removed_meanwhile, 52, 0),
		PLAY_TEST(guarded_hand_off, 53, 0),       PLAY_TEST(upgrade_goes_on, 60, 0),
		PLAY_TEST(eviction_goes_on, 61, 0),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
