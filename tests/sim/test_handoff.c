/* SPDX-License-Identifier: MIT
 *
 * Hand-offs from mount to mount without a listing: when the event of the entry before an own one is
 * the grant, and when it must not be. While the server refuses listings, a taker that would need
 * one is told ENOLCK.
 */
#include "unit_stage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAITERS 200

/* Returns when the path of the taker's entry is known. */
static void take_on(struct taker *taker, struct stage *stage, int host, enum lc_mode mode)
{
	begin_take(taker, &stage->hosts[host], "build", mode);
	run(stage, 100 * MS);
	assert_non_null(stage_path(taker));
}

static void allow_listings(struct stage *stage, bool allow)
{
	stage->world.list_error = allow ? ENSEMBLE_OK : ENSEMBLE_REFUSED;
}

/* Another client's operations, all in one transaction. */
static void act_together(struct stage *stage, const struct ensemble_op *ops, int count)
{
	assert_int_equal(world_do(&stage->world, 0, ops, count, NULL), ENSEMBLE_OK);
}

static struct ensemble_op delete (const struct taker *taker)
{
	return (struct ensemble_op){
		.kind = ENSEMBLE_DELETE, .path = taker->path, .version = ENSEMBLE_ANY_VERSION};
}

static struct ensemble_op write_to(const char *path, const char *data)
{
	return (struct ensemble_op){.kind = ENSEMBLE_SET,
	                            .path = path,
	                            .data = data,
	                            .data_len = (int)strlen(data),
	                            .version = ENSEMBLE_ANY_VERSION};
}

static unsigned long requests(struct stage *stage)
{
	unsigned long sum = 0;

	for (int i = 0; i < HOSTS_MAX; i++) {
		struct lc_status status;

		lc_status(stage->hosts[i].lc, &status);
		sum += status.counters.requests;
	}
	return sum;
}

/* ---- the event is the grant ---- */

static void by_the_event(void **state)
{
	struct stage *stage = begin_build(1);
	struct taker holder, waiter;

	(void)state;
	take_on(&holder, stage, 1, LC_EXCLUSIVE);
	take_on(&waiter, stage, 0, LC_EXCLUSIVE);
	allow_listings(stage, false);
	leave(&holder);
	assert_int_equal(waiter.result, 0);
	allow_listings(stage, true);
	leave(&waiter);
	finish(stage);
}

/* Two mounts in turn: each has listed the lock once, and knows the places of all of its takers. The
 * cost of a hand-off does not depend on the number of waiters; a heartbeat may come in addition. */
static void in_turn(void **state)
{
	static struct taker takers[WAITERS];
	static const int counts[] = {8, WAITERS};
	unsigned long costs[2];

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct stage *stage = begin_build(2);

		for (int i = 0; i < counts[k]; i++)
			take_on(&takers[i], stage, i % 2, LC_EXCLUSIVE);
		leave(&takers[0]);
		leave(&takers[1]);
		allow_listings(stage, false);
		costs[k] = requests(stage);
		for (int i = 2; i < counts[k]; i++) {
			if (i == 6)
				costs[k] = requests(stage) - costs[k];
			assert_int_equal(takers[i].result, 0);
			leave(&takers[i]);
		}
		finish(stage);
	}
	assert_in_range(costs[0], 12, 26);
	assert_in_range(costs[1], costs[0] - 4, costs[0] + 4);
}

/* The entry goes before it can be watched: the read that does not find it tells the same. The
 * listing that was sent with the create may be refused, too. */
static void not_there_any_more(void **state)
{
	int granted = 0;

	(void)state;
	for (uint64_t seed = 20; seed < 60; seed++) {
		struct stage *stage = begin_build(seed);
		struct taker holder, waiter;
		unsigned long before;
		struct ensemble_op op;

		take_on(&holder, stage, 1, LC_EXCLUSIVE);
		take_on(&waiter, stage, 0, LC_EXCLUSIVE); /* now the lock is watched */
		leave(&waiter);
		before = requests(stage);
		begin_take(&waiter, &stage->hosts[0], "build", LC_EXCLUSIVE);
		while (requests(stage) < before + 4)
			run(stage, 10);
		allow_listings(stage, false);
		op = delete (&holder);
		act_together(stage, &op, 1);
		run(stage, SECOND);
		assert_true(waiter.result == 0 || waiter.result == -ENOLCK);
		granted += waiter.result == 0;
		allow_listings(stage, true);
		leave(&waiter);
		leave(&holder);
		finish(stage);
	}
	assert_in_range(granted, 10, 40);
}

static void readers_together(void **state)
{
	struct stage *stage = begin_build(3);
	struct taker writer, readers[3];

	(void)state;
	take_on(&writer, stage, 1, LC_EXCLUSIVE);
	for (int i = 0; i < 3; i++)
		begin_take(&readers[i], &stage->hosts[0], "build", LC_SHARED);
	run(stage, 100 * MS);
	allow_listings(stage, false);
	stage_leave(&writer);
	host_wake(&stage->hosts[1]);
	while (readers[0].result == NONE)
		run(stage, 10);
	for (int i = 0; i < 3; i++)
		assert_int_equal(readers[i].result, 0);
	allow_listings(stage, true);
	for (int i = 0; i < 3; i++)
		leave(&readers[i]);
	finish(stage);
}

/* A reader does not wait for readers: only the one writer before it counts. */
static void reader_among_readers(void **state)
{
	struct stage *stage = begin_build(12);
	struct taker reader, writer, waiter;

	(void)state;
	take_on(&reader, stage, 1, LC_SHARED);
	take_on(&writer, stage, 1, LC_EXCLUSIVE);
	take_on(&waiter, stage, 0, LC_SHARED);
	assert_int_equal(waiter.result, NONE);
	allow_listings(stage, false);
	leave(&writer);
	assert_int_equal(waiter.result, 0);
	allow_listings(stage, true);
	leave(&waiter);
	leave(&reader);
	finish(stage);
}

/* Two entries stand before the waiter's. The nearer one is written to when its taker holds, and
 * this event makes the waiter's mount list the lock in time. */
static void seen_in_time(void **state)
{
	struct stage *stage = begin_build(4);
	struct taker holder, next, waiter;

	(void)state;
	take_on(&holder, stage, 1, LC_EXCLUSIVE);
	take_on(&next, stage, 1, LC_EXCLUSIVE);
	take_on(&waiter, stage, 0, LC_EXCLUSIVE);
	leave(&holder);
	assert_int_equal(next.result, 0);
	run(stage, 100 * MS);
	allow_listings(stage, false);
	leave(&next);
	assert_int_equal(waiter.result, 0);
	allow_listings(stage, true);
	leave(&waiter);
	finish(stage);
}

/* ---- the event is not the grant ---- */

/* The entry before the waiter's goes, and another taker holds. */
static void one_of_two(void **state)
{
	(void)state;
	for (enum lc_mode mode = LC_EXCLUSIVE; mode <= LC_SHARED; mode++) {
		struct stage *stage = begin_build(5);
		struct taker holder, next, waiter;

		take_on(&holder, stage, 1, mode);
		take_on(&next, stage, 1, mode);
		take_on(&waiter, stage, 0, LC_EXCLUSIVE);
		leave(&next);
		run(stage, SECOND);
		assert_int_equal(waiter.result, NONE);
		allow_listings(stage, false);
		leave(&holder);
		assert_int_equal(waiter.result, 0);
		allow_listings(stage, true);
		leave(&waiter);
		finish(stage);
	}
}

/* An own entry stood directly before the entry that goes, and its taker has never held; the own
 * entry whose taker has held stood further ahead. */
static void behind_one_of_ours(void **state)
{
	struct stage *stage = begin_build(6);
	struct taker holder, other, ours, near, waiter;

	(void)state;
	take_on(&holder, stage, 0, LC_EXCLUSIVE);
	take_on(&other, stage, 1, LC_EXCLUSIVE);
	take_on(&ours, stage, 0, LC_EXCLUSIVE);
	take_on(&near, stage, 1, LC_EXCLUSIVE);
	take_on(&waiter, stage, 0, LC_EXCLUSIVE);
	run(stage, 61 * SECOND); /* now all of them are listed */
	leave(&ours);
	leave(&holder);
	assert_int_equal(other.result, 0);
	leave(&near);
	run(stage, SECOND);
	assert_int_equal(waiter.result, NONE);
	leave(&other);
	assert_int_equal(waiter.result, 0);
	leave(&waiter);
	finish(stage);
}

/* The waiter's own entry goes in the same transaction as the holder's, and first. If it was written
 * to as well, the watch is used up, and no event tells that it is gone. */
static void gone_itself(void **state)
{
	(void)state;
	for (int marked = 0; marked <= 1; marked++) {
		struct stage *stage = begin_build(7);
		struct taker holder, waiter;
		struct ensemble_op ops[3];
		int count = 0;

		take_on(&holder, stage, 1, LC_EXCLUSIVE);
		take_on(&waiter, stage, 0, LC_EXCLUSIVE);
		run(stage, SECOND);
		if (marked)
			ops[count++] = write_to(waiter.path, "");
		ops[count++] = delete (&waiter);
		ops[count++] = delete (&holder);
		act_together(stage, ops, count);
		run(stage, SECOND);
		assert_int_equal(waiter.result, -ECANCELED);
		assert_int_equal(waiter.lost, 0);
		leave(&waiter);
		leave(&holder);
		finish(stage);
	}
}

/* If the waiter's entry goes last, the waiter may hold for a moment; then it loses the lock. */
static void gone_right_after(void **state)
{
	struct stage *stage = begin_build(8);
	struct taker holder, waiter;
	struct ensemble_op ops[2];

	(void)state;
	take_on(&holder, stage, 1, LC_EXCLUSIVE);
	take_on(&waiter, stage, 0, LC_EXCLUSIVE);
	ops[0] = delete (&holder);
	ops[1] = delete (&waiter);
	act_together(stage, ops, 2);
	run(stage, SECOND);
	assert_true(waiter.result == -ECANCELED || waiter.lost == 1);
	leave(&waiter);
	leave(&holder);
	finish(stage);
}

/* The lock's data has changed just before: however many slots the lock has, nobody stands before
 * the waiter. */
static void with_other_slots(void **state)
{
	struct stage *stage = begin_build(9);
	struct taker holder, waiter;
	struct ensemble_op ops[2];

	(void)state;
	take_on(&holder, stage, 1, LC_EXCLUSIVE);
	take_on(&waiter, stage, 0, LC_EXCLUSIVE);
	allow_listings(stage, false);
	ops[0] = write_to(BUILD, "");
	ops[1] = delete (&holder);
	act_together(stage, ops, 2);
	run(stage, 100 * MS);
	assert_int_equal(waiter.result, 0);
	allow_listings(stage, true);
	leave(&waiter);
	leave(&holder);
	finish(stage);
}

/* The new number of slots is known, and the lock is not listed again yet. */
static void with_slots(void **state)
{
	static const char slots[] =
		"zklockfs: 1\nuid: 1\ngid: 1\nmode: 755\ndoor_mode: 644\nslots: 2\n\n";

	(void)state;
	for (int i = 0; i < 100; i++) {
		struct stage *stage = begin_build(10);
		int64_t session = world_foreign_session(&stage->world, 0);
		struct ensemble_op ops[] = {
			write_to(BUILD, slots),
			{.kind = ENSEMBLE_CREATE,
		         .path = BUILD "/x-lock-",
		         .ephemeral = true,
		         .sequence = true},
		};
		struct taker waiter;

		assert_int_equal(world_do(&stage->world, session, ops, 2, NULL), ENSEMBLE_OK);
		run(stage, 10 * MS);
		begin_take(&waiter, &stage->hosts[0], "build", LC_EXCLUSIVE);
		run(stage, i * 50);
		allow_listings(stage, false);
		act_together(stage,
		             OP(.kind = ENSEMBLE_DELETE, .path = BUILD "/x-lock-0000000000",
		                .version = ENSEMBLE_ANY_VERSION),
		             1);
		run(stage, SECOND);
		assert_int_not_equal(waiter.result, 0);
		allow_listings(stage, true);
		leave(&waiter);
		finish(stage);
	}
}

/* Near 2^31 a listing needs a read of every entry, and only these reads show the order. */
static void where_numbers_repeat(void **state)
{
	struct stage *stage = begin_build(13);
	struct taker holder, waiter;

	(void)state;
	world_set_counter(&stage->world, BUILD, INT32_MAX - 10);
	take_on(&holder, stage, 1, LC_EXCLUSIVE);
	take_on(&waiter, stage, 0, LC_EXCLUSIVE);
	allow_listings(stage, false);
	leave(&holder);
	assert_int_equal(waiter.result, -ENOLCK);
	allow_listings(stage, true);
	leave(&waiter);
	finish(stage);
}

/* Events at the beginning of a connection come in any order. Later they count: the watches are
 * armed anew, and the first hand-off costs no listing. */
static void on_another_connection(void **state)
{
	(void)state;
	for (int later = 0; later <= 1; later++) {
		struct stage *stage = begin_build(11);
		struct taker holder, waiter;

		take_on(&holder, stage, 1, LC_EXCLUSIVE);
		take_on(&waiter, stage, 0, LC_EXCLUSIVE);
		conn_break(stage->hosts[0].wire.conn, -1);
		while (lc_ready(stage->hosts[0].lc))
			run(stage, 10);
		if (later)
			run(stage, SECOND);
		assert_int_equal(lc_ready(stage->hosts[0].lc), later);
		allow_listings(stage, false);
		leave(&holder);
		run(stage, SECOND);
		assert_int_equal(waiter.result, later ? 0 : -ENOLCK);
		allow_listings(stage, true);
		leave(&waiter);
		finish(stage);
	}
}

/* A server lags. */
static bool is_alone_on_a_follower(struct stage *stage)
{
	int server = stage->hosts[0].wire.conn->server;

	return server != stage->world.leader && server != stage->hosts[1].wire.conn->server;
}

/* The waiter's entry is deleted by an operator, and its mount does not hear of it, since its server
 * lags: its watch is good. The holder, of the same mount, hands the lock on. */
static void hand_to_nobodys_entry(struct stage *stage)
{
	struct taker holder, next, other;
	struct ensemble_op op;

	take_on(&holder, stage, 0, LC_EXCLUSIVE);
	take_on(&next, stage, 0, LC_EXCLUSIVE);
	world_stall_link(&stage->world, stage->hosts[0].wire.conn->server, DOWN, SECOND);
	op = (struct ensemble_op){.kind = ENSEMBLE_DELETE,
	                          .path = stage_path(&next),
	                          .version = ENSEMBLE_ANY_VERSION};
	act_together(stage, &op, 1);
	run(stage, 20 * MS);
	stage_leave(&holder);
	begin_take(&other, &stage->hosts[1], "build", LC_EXCLUSIVE);
	for (int i = 0; i < 900; i++) {
		run(stage, MS);
		assert_false(next.result == 0 && lc_holds(next.lc) && other.result == 0);
	}
	assert_int_equal(next.result, 0); /* told in the turn of the release */
	run(stage, 2 * SECOND);
	assert_false(lc_holds(next.lc));
	assert_int_equal(other.result, 0);
	leave(&next);
	leave(&other);
}

static void to_nobodys_entry(void **state)
{
	int cases = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct stage *stage = with_build(begin_servers(3, seed));

		if (is_alone_on_a_follower(stage)) {
			hand_to_nobodys_entry(stage);
			cases++;
		}
		finish(stage);
	}
	assert_true(cases > 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_the_event),         cmocka_unit_test(in_turn),
		cmocka_unit_test(not_there_any_more),   cmocka_unit_test(readers_together),
		cmocka_unit_test(reader_among_readers), cmocka_unit_test(seen_in_time),
		cmocka_unit_test(one_of_two),           cmocka_unit_test(behind_one_of_ours),
		cmocka_unit_test(gone_itself),          cmocka_unit_test(gone_right_after),
		cmocka_unit_test(with_other_slots),     cmocka_unit_test(with_slots),
		cmocka_unit_test(where_numbers_repeat), cmocka_unit_test(on_another_connection),
		cmocka_unit_test(to_nobodys_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
