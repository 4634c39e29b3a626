/* SPDX-License-Identifier: MIT
 *
 * Watches of an engine: holders see that they hold nothing any more, whatever event was lost, and
 * no watch is left behind.
 */
#include "unit_calls.h"

#include "mutation.h"

#include <errno.h>

/* ---- holders look again ---- */

/* Holders find out by themselves that their entry is gone, whatever event was lost. */
static void holding_without_events(void **state)
{
	struct stage *stage = begin_build(9);
	struct taker holder;

	(void)state;
	take(&holder, &stage->hosts[0], "build", LC_EXCLUSIVE);
	run(stage, 130 * SECOND); /* the holder has looked more than once */
	mutation = MUTATE_drop_changed;
	take_away(stage, stage_path(&holder));
	run(stage, 61 * SECOND);
	assert_int_equal(holder.lost, 1);
	mutation = MUTATE_none;
	leave(&holder);
	finish(stage);
}

/* Holders find out, too, if the entry was deleted without contact, and no event tells of it. */
static void deleted_while_away(void **state)
{
	struct stage *stage = begin_build(15);
	struct taker holder;

	(void)state;
	take(&holder, &stage->hosts[0], "build", LC_EXCLUSIVE);
	mutation = MUTATE_drop_changed;
	conn_break(stage->hosts[0].wire.conn, -1);
	take_away(stage, stage_path(&holder));
	run(stage, 3 * SECOND);
	assert_int_equal(holder.lost, 1);
	mutation = MUTATE_none;
	leave(&holder);
	finish(stage);
}

/* A lock cannot be listed for a while: waiters are refused. Whether a holder still has its entry is
 * looked at when the lock can be listed again, or at once if an event tells that it is gone. */
static void holding_what_is_closed(void **state)
{
	(void)state;
	for (int told = 0; told <= 1; told++) {
		struct stage *stage = begin_build(10);
		struct taker holder, waiter;

		take(&holder, &stage->hosts[0], "build", LC_EXCLUSIVE);
		take(&waiter, &stage->hosts[0], "build", LC_EXCLUSIVE);
		stage->world.list_error = told ? ENSEMBLE_REFUSED : ENSEMBLE_NOAUTH;
		mutation = told ? MUTATE_none : MUTATE_drop_changed;
		run(stage, 61 * SECOND);
		assert_int_equal(waiter.result, told ? -ENOLCK : -EACCES);
		assert_true(lc_holds(holder.lc));
		leave(&waiter);
		take_away(stage, stage_path(&holder));
		if (told) {
			run(stage, 100 * MS);
		} else {
			run(stage, 61 * SECOND);
			assert_int_equal(holder.lost, 0);
			stage->world.list_error = ENSEMBLE_OK;
			run(stage, 61 * SECOND);
		}
		assert_int_equal(holder.lost, 1);
		mutation = MUTATE_none;
		stage->world.list_error = ENSEMBLE_OK;
		leave(&holder);
		finish(stage);
	}
}

/* ---- watches that are left behind ---- */

static unsigned watched(const struct host *host, const char *part)
{
	unsigned count = 0;

	for (int i = 0; i < host->wire.data_watches.count; i++)
		count += strstr(host->wire.data_watches.paths[i], part) != NULL;
	return count;
}

/* A taker that does not wait any more watches nothing any more, with or without contact. */
static void given_up(void **state)
{
	(void)state;
	for (int cut = 0; cut <= 2; cut++) {
		struct stage *stage = begin_build(12);
		struct host *host = &stage->hosts[0];
		struct taker holder, waiter;

		take(&holder, &stage->hosts[1], "build", LC_EXCLUSIVE);
		take(&waiter, host, "build", LC_EXCLUSIVE);
		assert_int_equal(watched(host, strrchr(stage_path(&holder), '/')), 1);
		stage_leave(&waiter);
		host_wake(host);
		run(stage, cut == 2 ? 3 * MS : 0);
		if (cut)
			conn_break(host->wire.conn, 0);
		run(stage, 3 * SECOND);
		assert_int_equal(watched(host, strrchr(stage_path(&holder), '/')), 0);
		/* A taker that waits again watches again. */
		take(&waiter, host, "build", LC_EXCLUSIVE);
		assert_int_equal(watched(host, strrchr(stage_path(&holder), '/')), 1);
		leave(&holder);
		assert_int_equal(waiter.result, 0);
		leave(&waiter);
		finish(stage);
	}
}

/* Of many locks that were once taken only few stay watched, even if contact was lost meanwhile. */
static void forgotten(void **state)
{
	struct stage *stage = begin_build(13);
	struct host *host = &stage->hosts[0];
	struct taker holders[400];
	char path[64];

	(void)state;
	for (int i = 0; i < 400; i++) {
		snprintf(path, sizeof(path), ROOT "/many%d", i);
		put_now(stage, path, "");
	}
	run(stage, 100 * MS);
	for (int i = 0; i < 400; i++) {
		struct taker waiter;

		snprintf(path, sizeof(path), "many%d", i);
		begin_take(&holders[i], host, path, LC_EXCLUSIVE);
		begin_take(&waiter, host, path, LC_EXCLUSIVE); /* so the lock is watched */
		run(stage, 50 * MS);
		assert_int_equal(holders[i].result, 0);
		stage_leave(&waiter);
		host_wake(host);
		run(stage, 50 * MS);
	}
	assert_true(watched(host, "/many") >= 400);
	for (int i = 0; i < 400; i++)
		stage_leave(&holders[i]);
	host_wake(host);
	run(stage, 4 * MS);
	conn_break(host->wire.conn, 0); /* the last requests are not done */
	run(stage, 3 * SECOND);
	assert_in_range(watched(host, "/many"), 1, 256);
	finish(stage);
}

/* A holder's entry is deleted, the holder leaves, and the listing that would show it is refused. */
static void left_and_not_listed(void **state)
{
	struct stage *stage = begin_build(90);
	struct taker holder;

	(void)state;
	take(&holder, &stage->hosts[0], "build", LC_EXCLUSIVE);
	stage->world.list_error = ENSEMBLE_REFUSED;
	take_away(stage, stage_path(&holder));
	for (int i = 0; i < 10000 && holder.phase == HELD; i++)
		run(stage, 10);
	assert_int_equal(holder.phase, LOST);
	leave(&holder);
	assert_true(lc_idle(stage->hosts[0].lc));
	finish(stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holding_without_events),
		cmocka_unit_test(deleted_while_away),
		cmocka_unit_test(holding_what_is_closed),
		cmocka_unit_test(given_up),
		cmocka_unit_test(forgotten),
		cmocka_unit_test(left_and_not_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
