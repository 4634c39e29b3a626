/* SPDX-License-Identifier: MIT
 *
 * Takers of two engines on an ensemble in memory: of locks that are removed and made again, takers
 * that do not wait, releases that hand over; and holders that ask for waiters behind them.
 */
#include "unit_calls.h"

#include "mutation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* ---- a lock that is removed and made again ---- */

/* An operator removes a lock with all entries, and does not make it again: the holder has lost it,
 * and all waiters, the first of their mount or not, are told that the lock is not there. */
static void removed_for_good(void **state)
{
	struct stage *stage = begin_build(8);
	struct taker holder, waiters[4];
	struct node *entry, *next;

	(void)state;
	take(&holder, &stage->hosts[0], "build", LC_EXCLUSIVE);
	assert_int_equal(holder.result, 0);
	for (int i = 0; i < 4; i++)
		take(&waiters[i], &stage->hosts[i % 2], "build", LC_EXCLUSIVE);
	DL_FOREACH_SAFE(tree_find(&stage->world.proposed, BUILD)->children, entry, next)
		take_away(stage, entry->path);
	take_away(stage, BUILD);
	run(stage, SECOND);
	assert_int_equal(holder.lost, 1);
	leave(&holder);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(waiters[i].result, -ENOENT);
		leave(&waiters[i]);
	}
	assert_true(lc_idle(stage->hosts[0].lc) && lc_idle(stage->hosts[1].lc));
	finish(stage);
}

/* A delete that was refused is tried again, after some time. */
static void refused_for_a_while(void **state)
{
	struct stage *stage = begin_build(28);
	struct host *host = &stage->hosts[0];
	struct taker taker;

	(void)state;
	take(&taker, host, "build", LC_EXCLUSIVE);
	stage->world.refuse_next = 2;
	leave(&taker);
	assert_int_equal(stage->world.refuse_next, 1);
	run(stage, 5 * SECOND);
	assert_int_equal(stage->world.refuse_next, 0);
	assert_null(node_of(stage, BUILD)->children);
	finish(stage);
}

/* The delete of an entry was refused, and the entry goes with its lock: neither the waiter behind
 * it nor a taker that comes before the lock is made again waits for ever. */
static void removed_behind_a_leaver(void **state)
{
	(void)state;
	for (int i = 0; i < 60; i++) {
		struct stage *stage = begin_build(12);
		struct host *host = &stage->hosts[0];
		struct lc_request request = {.lock = "build",
		                             .mode = LC_EXCLUSIVE,
		                             .wait_us = LC_FOREVER,
		                             .pid = 7,
		                             .command = "test"};
		struct taker leaver, first, waiter, late = {.host = host, .result = NONE};
		struct node *lock, *entry, *next;

		take(&leaver, host, "build", LC_EXCLUSIVE);
		take(&first, host, "build", LC_SHARED);
		take(&waiter, host, "build", LC_SHARED);
		stage->world.refuse_next = 1;
		stage_leave(&leaver);
		host_wake(host);
		run(stage, 100);
		assert_int_equal(first.result, 0);
		assert_int_equal(waiter.result, NONE);
		lock = tree_find(&stage->world.proposed, BUILD);
		DL_FOREACH_SAFE(lock->children, entry, next)
			take_away(stage, entry->path);
		take_away(stage, BUILD);
		run(stage, i * 50);
		stage_take(&late, host, &request);
		run(stage, i % 7 * 200);
		assert_int_equal(world_do(&stage->world, 0,
		                          OP(.kind = ENSEMBLE_CREATE, .path = BUILD), 1, NULL),
		                 ENSEMBLE_OK);
		run(stage, 5 * SECOND);
		assert_int_not_equal(waiter.result, NONE);
		assert_int_not_equal(late.result, NONE);
		leave(&first);
		leave(&waiter);
		leave(&late);
		finish(stage);
	}
}

/* ---- at once or not at all ---- */

/* A shared holder is not in the way of its own upgrade; another shared holder is. */
static void upgrading_at_once(void **state)
{
	struct stage *stage = begin_build(14);
	struct host *host = &stage->hosts[0];
	struct taker own, other, upgrade;

	(void)state;
	take(&own, host, "build", LC_SHARED);
	take(&other, &stage->hosts[1], "build", LC_SHARED);
	begin_try(&upgrade, host, LC_EXCLUSIVE, &own);
	run(stage, 200 * MS);
	assert_int_equal(upgrade.result, -EAGAIN);
	leave(&upgrade);
	leave(&other);
	begin_try(&upgrade, host, LC_EXCLUSIVE, &own);
	run(stage, 200 * MS);
	assert_int_equal(upgrade.result, 0);
	leave(&own);
	leave(&upgrade);
	finish(stage);
}

/* A waiter that will replace a shared holder does not wait for that holder, but for others. */
static void replacing_later(void **state)
{
	struct stage *stage = begin_build(14);
	struct host *host = &stage->hosts[0];
	struct taker holder, own, other, waiter;

	(void)state;
	take(&holder, host, "build", LC_EXCLUSIVE);
	take(&other, &stage->hosts[1], "build", LC_SHARED);
	take(&own, host, "build", LC_SHARED);
	take(&waiter, host, "build", LC_EXCLUSIVE);
	leave(&holder);
	assert_int_equal(own.result, 0);
	assert_int_equal(other.result, 0);
	assert_false(lc_replace(own.lc, waiter.lc));
	assert_true(lc_replace(waiter.lc, own.lc));
	assert_false(lc_replace(waiter.lc, own.lc));
	host_wake(host);
	run(stage, 200 * MS);
	assert_int_equal(waiter.result, NONE);
	leave(&other);
	assert_int_equal(waiter.result, 0);
	leave(&own);
	leave(&waiter);
	finish(stage);
}

/* One waiter can replace one holder, of the same lock. */
static void replacing_in_vain(void **state)
{
	struct stage *stage = begin_build(14);
	struct host *host = &stage->hosts[0];
	struct taker own, also, elsewhere, waiter, second;

	(void)state;
	put(stage, ROOT "/other", "");
	take(&own, host, "build", LC_SHARED);
	take(&also, host, "build", LC_SHARED);
	take(&elsewhere, host, "other", LC_SHARED);
	take(&waiter, host, "build", LC_EXCLUSIVE);
	take(&second, host, "build", LC_EXCLUSIVE);
	assert_true(lc_replace(waiter.lc, own.lc));
	assert_false(lc_replace(waiter.lc, also.lc));
	assert_false(lc_replace(second.lc, own.lc));
	assert_false(lc_replace(second.lc, elsewhere.lc));
	leave(&second);
	leave(&also);
	assert_int_equal(waiter.result, 0);
	leave(&elsewhere);
	leave(&own);
	leave(&waiter);
	finish(stage);
}

/* A listing that was read before a try began does not count for the try. */
static void trying_after_a_release(void **state)
{
	struct stage *stage = begin_build(15);
	struct host *host = &stage->hosts[0];
	struct taker holder, first, second;
	int64_t end_us;

	(void)state;
	take(&holder, &stage->hosts[1], "build", LC_EXCLUSIVE);
	take(&first, host, "build", LC_EXCLUSIVE); /* now the slots are known */
	leave(&first);
	end_us = stage->agenda.now_us + 500 * MS;
	conn_stall(host->wire.conn, DOWN, end_us);
	begin_try(&first, host, LC_EXCLUSIVE, NULL);
	run(stage, 10 * MS);
	leave(&holder);
	assert_null(node_of(stage, BUILD)->children);
	run(stage, end_us - stage->agenda.now_us - 1);
	begin_try(&second, host, LC_EXCLUSIVE, NULL);
	run(stage, SECOND);
	assert_int_equal(first.result, -EAGAIN);
	assert_int_equal(second.result, 0);
	leave(&first);
	leave(&second);
	finish(stage);
}

/* Only the ensemble can say that a lock is not free; an engine that drains takes none. */
static void trying_in_vain(void **state)
{
	struct stage *stage = begin_build(17);
	struct host *host = &stage->hosts[0];
	struct lc_request request = {.lock = "build", .pid = 7, .command = "test"};
	struct taker try;

	(void)state;
	conn_stall(host->wire.conn, DOWN, stage->agenda.now_us + 4 * SECOND);
	begin_try(&try, host, LC_EXCLUSIVE, NULL);
	run(stage, 3 * SECOND);
	assert_int_equal(try.result, -EHOSTUNREACH);
	leave(&try);
	begin_try(&try, host, LC_EXCLUSIVE, NULL);
	lc_drain(host->lc);
	host_wake(host);
	run(stage, SECOND);
	assert_int_equal(try.result, -ESHUTDOWN);
	leave(&try);
	stage_take(&try, host, &request);
	assert_int_equal(try.result, -ESHUTDOWN);
	finish(stage);
}

/* Where numbers repeat the entries are read after the listing. An entry may be gone by then, and
 * there may be fewer slots: the former number of slots must not be used with the entries now. */
static void fewer_slots_where_numbers_repeat(void **state)
{
	char znode[256], path[512];

	(void)state;
	for (int i = 0; i < 100; i++) {
		struct stage *stage = begin(31);
		int64_t session = world_foreign_session(&stage->world, 0);
		struct taker holder, waiter;

		put(stage, BUILD, MAGIC "uid: 1\ngid: 2\nmode: 755\ndoor_mode: 644\nslots: 2\n\n");
		world_set_counter(&stage->world, BUILD, INT32_MAX - 10);
		make_entry(stage, session, OF_MOUNT, "host: web9\n", znode);
		snprintf(path, sizeof(path), BUILD "/%s", znode);
		take(&holder, &stage->hosts[1], "build", LC_EXCLUSIVE);
		assert_int_equal(holder.result, 0);
		take(&waiter, &stage->hosts[0], "build", LC_EXCLUSIVE);
		/* A new entry comes, so all mounts list the lock. */
		assert_int_equal(world_do(&stage->world, session,
		                          OP(.kind = ENSEMBLE_CREATE, .path = BUILD "/" OF_MOUNT,
		                             .ephemeral = true, .sequence = true),
		                          1, NULL),
		                 ENSEMBLE_OK);
		run(stage, i * 20);
		put_now(stage, BUILD,
		        MAGIC "uid: 1\ngid: 2\nmode: 755\ndoor_mode: 644\nslots: 1\n\n");
		take_away(stage, path);
		run(stage, 2 * SECOND);
		assert_int_equal(waiter.result, NONE);
		leave(&holder);
		run(stage, SECOND);
		assert_int_equal(waiter.result, 0);
		leave(&waiter);
		finish(stage);
	}
}

/* ---- handing over ---- */

/* A taker got the lock from a taker of its own mount, and its entry is gone: the former holder's
 * entry guards the lock until the mount knows that, even if the request that asks is lost. */
static void guarded_without_contact(void **state)
{
	(void)state;
	for (int delivered = -1; delivered <= 0; delivered++) {
		struct stage *stage = begin_build(13);
		struct host *host = &stage->hosts[0];
		struct taker takers[3];
		char path[512];

		for (int i = 0; i < 3; i++)
			take(&takers[i], host, "build", LC_EXCLUSIVE);
		snprintf(path, sizeof(path), BUILD "/%s", lc_znode(takers[2].lc));
		take_away(stage, path);
		stage_leave(&takers[0]);
		run(stage, 100);
		assert_int_equal(takers[1].result, 0);
		stage_leave(&takers[1]);
		run(stage, 100);
		assert_int_equal(takers[2].result, 0);
		conn_break(host->wire.conn, delivered);
		for (int ms = 0; ms < 50000 && takers[2].lost == 0; ms++) {
			assert_true(node_of(stage, BUILD)->children || !lc_holds(takers[2].lc));
			run(stage, MS / 10);
		}
		assert_int_equal(takers[2].lost, 1);
		leave(&takers[2]);
		assert_null(node_of(stage, BUILD)->children);
		finish(stage);
	}
}

/* When an event has told that the lock is gone, nothing is handed over any more. */
static void nothing_handed_over_in_a_new_lock(void **state)
{
	(void)state;
	for (uint64_t seed = 100; seed < 140; seed++) {
		struct stage *stage = begin_build(seed);
		struct host *host = &stage->hosts[0];
		struct taker holder, waiter;
		char paths[2][512];
		const struct ensemble_op ops[] = {
			{.kind = ENSEMBLE_DELETE,
		         .path = paths[0],
		         .version = ENSEMBLE_ANY_VERSION},
			{.kind = ENSEMBLE_DELETE,
		         .path = paths[1],
		         .version = ENSEMBLE_ANY_VERSION},
			{.kind = ENSEMBLE_DELETE, .path = BUILD, .version = ENSEMBLE_ANY_VERSION},
			{.kind = ENSEMBLE_CREATE, .path = BUILD},
		};

		take(&holder, host, "build", LC_EXCLUSIVE);
		take(&waiter, host, "build", LC_EXCLUSIVE);
		snprintf(paths[0], sizeof(paths[0]), BUILD "/%s", lc_znode(holder.lc));
		snprintf(paths[1], sizeof(paths[1]), BUILD "/%s", lc_znode(waiter.lc));
		assert_int_equal(world_do(&stage->world, 0, ops, 4, NULL), ENSEMBLE_OK);
		run(stage, 28 * MS / 10); /* the events have come, the listing perhaps not */
		leave(&holder);
		assert_int_not_equal(waiter.result, 0);
		leave(&waiter);
		finish(stage);
	}
}

/* A taker that means the former lock of that name gets ENOENT at once, however it would have got
 * the new one: by a listing, or by a holder that leaves at this moment. */
static void meaning_another_lock(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		struct stage *stage = begin_build((uint64_t)i);
		struct host *host = &stage->hosts[0];
		struct taker holder, misled, right;
		int64_t former, now;

		former = info_of(host, "build").czxid;
		take_away(stage, BUILD);
		put(stage, BUILD, "");
		now = node_of(stage, BUILD)->stat.czxid;
		if (i < 20) {
			begin_take_of(&misled, host, "build", i % 2 ? LC_EXCLUSIVE : LC_SHARED,
			              former);
			run(stage, 200 * MS);
			assert_int_equal(misled.result, -ENOENT);
			leave(&misled);
			assert_null(node_of(stage, BUILD)->children);
		}
		begin_take_of(&holder, host, "build", LC_EXCLUSIVE, now);
		run(stage, i < 40 ? 200 * MS : i % 23 * 300);
		begin_take_of(&misled, host, "build", LC_EXCLUSIVE, former);
		begin_take_of(&right, host, "build", LC_EXCLUSIVE, now);
		run(stage, i % 29 * 200);
		stage_leave(&holder);
		run(stage, 200 * MS);
		assert_int_equal(misled.result, -ENOENT);
		assert_int_equal(right.result, 0);
		leave(&misled);
		leave(&right);
		assert_null(node_of(stage, BUILD)->children);
		finish(stage);
	}
}

/* ---- waiters behind a holder ---- */

/* 1: somebody waits behind the taker; below 0: an error. */
static int has_waiters(struct taker *taker)
{
	struct question *q = stage_ask_waiters(taker);
	bool waited;
	int result;

	run(taker->stage, 100 * MS);
	waited = q->count > 0;
	result = answer_of(q);
	return result < 0 ? result : waited;
}

static void waiting_behind(void **state)
{
	struct stage *stage = begin_build(9);
	struct host *one = &stage->hosts[0], *two = &stage->hosts[1];
	struct taker first, second, third;

	(void)state;
	take(&first, one, "build", LC_EXCLUSIVE);
	assert_int_equal(first.result, 0);
	assert_int_equal(has_waiters(&first), 0);
	take(&second, two, "build", LC_SHARED);
	assert_int_equal(has_waiters(&first), 1);
	leave(&second);
	assert_int_equal(has_waiters(&first), 0);
	take(&second, one, "build", LC_EXCLUSIVE);
	assert_int_equal(has_waiters(&first), 1);
	leave(&first);
	assert_int_equal(second.result, 0);
	assert_int_equal(has_waiters(&second), 0);
	leave(&second);
	/* Behind a shared taker another shared one does not wait; an exclusive one does. */
	take(&first, one, "build", LC_SHARED);
	take(&second, two, "build", LC_SHARED);
	assert_int_equal(second.result, 0);
	assert_int_equal(has_waiters(&first), 0);
	take(&third, two, "build", LC_EXCLUSIVE);
	assert_int_equal(has_waiters(&first), 1);
	assert_int_equal(has_waiters(&second), 1);
	leave(&third);
	assert_int_equal(has_waiters(&first), 0);
	leave(&second);
	leave(&first);
	/* Nor does a taker wait that gets one of several slots. */
	assert_int_equal(
		answer_of(ask_change(one, "build", CHANGE(.slots = 2, .attributes = DEFAULTS))), 0);
	take(&first, one, "build", LC_EXCLUSIVE);
	take(&second, two, "build", LC_EXCLUSIVE);
	assert_int_equal(first.result, 0);
	assert_int_equal(second.result, 0);
	assert_int_equal(has_waiters(&first), 0);
	{
		struct question *q = stage_ask_list(one, "build", 0);

		run(stage, 100 * MS);
		assert_int_equal(q->entries, 2);
		assert_int_equal(q->held, 2);
		stage_forget(q);
	}
	take(&third, one, "build", LC_EXCLUSIVE);
	assert_int_equal(third.result, NONE);
	assert_int_equal(has_waiters(&first), 1);
	leave(&third);
	leave(&second);
	leave(&first);
	finish(stage);
}

/* A holder does not count as a waiter when there are fewer slots than holders. */
static void waiting_where_slots_were(void **state)
{
	struct stage *stage = begin(26);
	struct taker first, second, third;

	(void)state;
	put(stage, BUILD, MAGIC "uid: 1\ngid: 2\nmode: 755\ndoor_mode: 644\nslots: 2\n\n");
	take(&first, &stage->hosts[0], "build", LC_EXCLUSIVE);
	take(&second, &stage->hosts[0], "build", LC_EXCLUSIVE);
	assert_int_equal(second.result, 0);
	put(stage, BUILD, MAGIC "uid: 1\ngid: 2\nmode: 755\ndoor_mode: 644\n\n");
	run(stage, SECOND);
	assert_int_equal(has_waiters(&second), 0);
	take(&third, &stage->hosts[1], "build", LC_EXCLUSIVE);
	assert_int_equal(has_waiters(&second), 1);
	leave(&third);
	leave(&second);
	leave(&first);
	finish(stage);
}

/* A holder that loses the lock before the answer comes is told that. A holder whose entry is gone
 * without an event hears of that by its question. */
static void asked_by_losers(void **state)
{
	struct stage *stage = begin_build(27);
	struct host *host = &stage->hosts[0];
	struct taker holder;
	struct question *q;

	(void)state;
	take(&holder, host, "build", LC_EXCLUSIVE);
	mutation = MUTATE_drop_changed;
	take_away(stage, node_of(stage, BUILD)->children->path);
	run(stage, SECOND);
	assert_int_equal(holder.lost, 0);
	assert_int_equal(has_waiters(&holder), 0);
	assert_int_equal(holder.lost, 1);
	mutation = MUTATE_none;
	leave(&holder);
	take(&holder, host, "build", LC_EXCLUSIVE);
	conn_stall(host->wire.conn, DOWN, stage->agenda.now_us + 100 * MS);
	q = stage_ask_waiters(&holder);
	run(stage, 10 * MS);
	lc_forfeit(host->lc);
	host_wake(host);
	assert_int_equal(answer_of(q), -EIO);
	assert_int_equal(holder.lost, 1);
	leave(&holder);
	finish(stage);
}

static void watching_waiters(void **state)
{
	struct stage *stage = begin_build(10);
	struct host *one = &stage->hosts[0], *two = &stage->hosts[1];
	struct taker holder, waiter;

	(void)state;
	take(&holder, one, "build", LC_EXCLUSIVE);
	/* Nobody watches: nobody is told. */
	assert_int_equal(has_waiters(&holder), 0);
	take(&waiter, two, "build", LC_EXCLUSIVE);
	assert_int_equal(holder.waiters_changed, 0);
	leave(&waiter);
	stage_watch_waiters(&holder, true);
	assert_int_equal(has_waiters(&holder), 0);
	assert_int_equal(holder.waiters_changed, 0);
	take(&waiter, two, "build", LC_EXCLUSIVE);
	assert_int_equal(holder.waiters_changed, 1);
	assert_int_equal(has_waiters(&holder), 1);
	/* A holder is told once: to hear of more it has to watch again. */
	leave(&waiter);
	assert_int_equal(holder.waiters_changed, 1);
	stage_watch_waiters(&holder, true);
	assert_int_equal(has_waiters(&holder), 0);
	/* With a new connection the answer may have changed. */
	conn_break(one->wire.conn, -1);
	run(stage, 2 * SECOND);
	assert_int_equal(holder.waiters_changed, 2);
	stage_watch_waiters(&holder, true);
	assert_int_equal(has_waiters(&holder), 0);
	stage_watch_waiters(&holder, false);
	take(&waiter, two, "build", LC_EXCLUSIVE);
	assert_int_equal(holder.waiters_changed, 2);
	/* A taker that has left is not told either. */
	stage_watch_waiters(&holder, true);
	assert_int_equal(has_waiters(&holder), 1);
	stage_leave(&holder);
	leave(&waiter);
	assert_int_equal(holder.waiters_changed, 2);
	finish(stage);
}

/* Waiters find out by themselves that a lock is free, whatever event was lost. */
static void waiting_without_events(void **state)
{
	struct stage *stage = begin_build(11);
	struct taker holder, waiter;

	(void)state;
	take(&holder, &stage->hosts[0], "build", LC_EXCLUSIVE);
	take(&waiter, &stage->hosts[1], "build", LC_EXCLUSIVE);
	mutation = MUTATE_drop_changed;
	leave(&holder);
	assert_int_equal(waiter.result, NONE);
	run(stage, 61 * SECOND);
	assert_int_equal(waiter.result, 0);
	mutation = MUTATE_none;
	leave(&waiter);
	finish(stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(removed_for_good),
		cmocka_unit_test(refused_for_a_while),
		cmocka_unit_test(removed_behind_a_leaver),
		cmocka_unit_test(upgrading_at_once),
		cmocka_unit_test(replacing_later),
		cmocka_unit_test(replacing_in_vain),
		cmocka_unit_test(fewer_slots_where_numbers_repeat),
		cmocka_unit_test(trying_after_a_release),
		cmocka_unit_test(trying_in_vain),
		cmocka_unit_test(guarded_without_contact),
		cmocka_unit_test(nothing_handed_over_in_a_new_lock),
		cmocka_unit_test(meaning_another_lock),
		cmocka_unit_test(waiting_behind),
		cmocka_unit_test(waiting_where_slots_were),
		cmocka_unit_test(asked_by_losers),
		cmocka_unit_test(watching_waiters),
		cmocka_unit_test(waiting_without_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
