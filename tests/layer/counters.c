/* SPDX-License-Identifier: MIT
 *
 * The counters: grants by the length of the wait, failures by their error.
 */
#include "session/counters.h"

#include "rig.h"

#include <errno.h>

static void grants_by_their_waits(void **state)
{
	struct rig *rig = rig_begin();
	const struct lc_counters *counters = &rig->lc.counters;
	int64_t sum = 0;

	(void)state;
	for (int i = 0; i <= LC_WAIT_BUCKETS; i++) {
		int64_t longest = i < LC_WAIT_BUCKETS ? lc_wait_bounds_us[i] : INT64_C(1) << 40;
		int64_t shortest = i > 0 ? lc_wait_bounds_us[i - 1] + 1 : 0;

		count_grant(&rig->lc, rig->now_us - longest);
		count_grant(&rig->lc, rig->now_us - shortest);
		sum += longest + shortest;
		for (int k = 0; k <= LC_WAIT_BUCKETS; k++)
			assert_int_equal(counters->waits[k], k <= i ? 2 : 0);
	}
	assert_int_equal(counters->grants, 2 * (LC_WAIT_BUCKETS + 1));
	assert_int_equal(counters->waited_us, sum);
	rig_finish(rig);
}

static void failures_by_their_errors(void **state)
{
	struct rig *rig = rig_begin();

	(void)state;
	for (int i = 0; i < LC_FAILURES - 1; i++) {
		count_failure(&rig->lc, -lc_failure_codes[i]);
		for (int k = 0; k < LC_FAILURES; k++)
			assert_int_equal(rig->lc.counters.failures[k], k <= i);
	}
	count_failure(&rig->lc, -EXDEV); /* an error without a count of its own */
	assert_int_equal(rig->lc.counters.failures[LC_FAILURES - 1], 1);
	rig_finish(rig);
}

/* The next process goes on with each of them. */
static void saved(void **state)
{
	struct rig *rig = rig_begin();
	struct lc_counters *counters = &rig->lc.counters;
	struct lc_counters next = {0};
	struct carry carry = {0}, reads = {.loads = true};

	(void)state;
	for (int i = 0; i < LC_FAILURES; i++)
		counters->failures[i] = 100 + (unsigned)i;
	for (int i = 0; i <= LC_WAIT_BUCKETS; i++)
		counters->waits[i] = 200 + (unsigned)i;
	counters->takes = 1;
	counters->grants = 2;
	counters->hand_offs = 3;
	counters->losses = 4;
	counters->evictions = 5;
	counters->overdue = 6;
	counters->abandoned = 7;
	counters->clock_doubts = 8;
	counters->crowded = 11;
	counters->requests = 9;
	counters->waited_us = 10;
	counters_carry(&carry, counters);
	carry_read(&reads, carry.data, carry.len);
	counters_carry(&reads, &next);
	carry_read_all(&reads);
	assert_null(reads.bad);
	assert_memory_equal(&next, counters, sizeof(next));
	carry_end(&carry);
	rig_finish(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grants_by_their_waits),
		cmocka_unit_test(failures_by_their_errors),
		cmocka_unit_test(saved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
