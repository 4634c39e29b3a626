/* SPDX-License-Identifier: MIT
 *
 * A hold that has an end: lc_limit().
 */
#include "unit_calls.h"

static void held_too_long(void **state)
{
	struct stage *stage = begin_build(18);
	struct host *host = &stage->hosts[0];
	struct taker holder, waiter;
	struct lc_status status;

	(void)state;
	take(&holder, host, "build", LC_EXCLUSIVE);
	lc_limit(holder.lc, host_clock_us(host) + 5 * SECOND);
	take(&waiter, &stage->hosts[1], "build", LC_EXCLUSIVE);
	lc_limit(waiter.lc, host_clock_us(&stage->hosts[1])); /* it holds nothing yet */
	run(stage, 5 * SECOND - 300 * MS);
	assert_true(lc_holds(holder.lc));
	assert_int_equal(waiter.result, NONE);
	run(stage, 400 * MS);
	assert_int_equal(holder.lost, 1);
	assert_false(lc_holds(holder.lc));
	assert_int_equal(waiter.result, 0);
	run(stage, 130 * SECOND);
	assert_true(lc_holds(waiter.lc));
	lc_status(host->lc, &status);
	assert_int_equal(status.counters.overdue, 1);
	leave(&holder);
	leave(&waiter);
	finish(stage);
}

/* In a mount that was stopped meanwhile the hold is over even before its timers have run. */
static void held_too_long_by_a_stopped_mount(void **state)
{
	struct stage *stage = begin_build(19);
	struct host *host = &stage->hosts[0];
	struct taker holder, other;

	(void)state;
	take(&holder, host, "build", LC_EXCLUSIVE);
	begin_take(&other, host, "", LC_EXCLUSIVE);
	run(stage, 200 * MS);
	lc_limit(holder.lc, host_clock_us(host) + SECOND);
	host_pause(host, 3 * SECOND);
	run(stage, 2 * SECOND);
	assert_int_equal(holder.lost, 0);
	assert_true(lc_holds(other.lc)); /* the lease is not over */
	assert_false(lc_holds(holder.lc));
	run(stage, 2 * SECOND);
	assert_int_equal(holder.lost, 1);
	leave(&holder);
	leave(&other);
	finish(stage);
}

/* Where processes that lose a lock are stopped, nobody else gets the lock before that is done. */
static void held_too_long_and_stopped(void **state)
{
	struct stage *stage = begin_build(20);
	struct host *host = &stage->hosts[0];
	struct taker holder, waiter;

	(void)state;
	stage_stop(host, true);
	assert_int_equal(stage_start(host, ROOT, 800 * MS), 0);
	run(stage, SECOND);
	take(&holder, host, "build", LC_EXCLUSIVE);
	take(&waiter, &stage->hosts[1], "build", LC_EXCLUSIVE);
	lc_limit(holder.lc, host_clock_us(host) + SECOND);
	run(stage, 2 * SECOND);
	assert_int_equal(holder.lost, 1);
	assert_int_equal(waiter.result, NONE);
	leave(&holder);
	assert_int_equal(waiter.result, 0);
	leave(&waiter);
	finish(stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(held_too_long),
		cmocka_unit_test(held_too_long_by_a_stopped_mount),
		cmocka_unit_test(held_too_long_and_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
