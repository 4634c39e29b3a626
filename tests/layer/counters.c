/* SPDX-License-Identifier: MIT
 *
 * The counters: grants by the length of the wait, failures by their error.
 */
#include "session/counters.h"

#include "forged.h"
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

/* ---- the next process goes on with each of them ---- */

/* Each value is another one. */
static struct lc_counters some_counters(void)
{
	struct lc_counters counters = {.waited_us = 10};
	unsigned long next = 100;

#define SOME(field, help) counters.field = next++;
	LC_COUNTERS(SOME)
	for (int i = 0; i < LC_FAILURES; i++)
		counters.failures[i] = next++;
	for (int i = 0; i <= LC_WAIT_BUCKETS; i++)
		counters.waits[i] = next++;
	return counters;
}

/* Reads what *codec has, which ends. */
static struct lc_counters read_counters(struct codec *codec, unsigned version)
{
	struct codec reads = {.loads = true, .version = version};
	struct lc_counters counters = {0};

	codec_read(&reads, codec->data, codec->len);
	counters_save_load(&reads, &counters);
	codec_read_all(&reads);
	assert_null(reads.bad);
	codec_end(codec);
	return counters;
}

static void saved(void **state)
{
	struct lc_counters counters = some_counters(), next;
	struct codec codec = {0};

	(void)state;
	counters_save_load(&codec, &counters);
	next = read_counters(&codec, 0);
	assert_memory_equal(&next, &counters, sizeof(next));
}

/* Another version has one counter more, lacks all others, and has two in another order. */
static void of_another_version(void **state)
{
	struct codec codec = {0};
	struct lc_counters next;

	(void)state;
	forge_counters(&codec, 77, 7);
	forge_counter(&codec, "grants", 0, 2);
	forge_counter(&codec, "unheard_of", 0, 3);
	forge_counter(&codec, "takes", 0, 4);
	forge_counter(&codec, "waits", 1000, 5);
	forge_counter(&codec, "waits", 1001, 6);
	forge_counter(&codec, "failures", EAGAIN, 7);
	forge_counter(&codec, NULL, 0, 8);
	next = read_counters(&codec, 7);
	assert_memory_equal(
		&next,
		(&(struct lc_counters){
			.grants = 2, .takes = 4, .waits = {5}, .failures = {7}, .waited_us = 77}),
		sizeof(next));
}

/* Version 5 has numbers alone. */
static void of_version_5(void **state)
{
	struct lc_counters next, wanted = {.requests = 1,
	                                   .clock_doubts = 2,
	                                   .takes = 3,
	                                   .grants = 4,
	                                   .hand_offs = 5,
	                                   .reuses = 6,
	                                   .losses = 7,
	                                   .evictions = 8,
	                                   .overdue = 9,
	                                   .crowded = 10,
	                                   .abandoned = 11,
	                                   .waited_us = 12,
	                                   .failures = {13, 14},
	                                   .waits = {25, 26}};
	struct codec codec = {0};

	(void)state;
	for (int64_t i = 1; i <= 12 + LC_FAILURES + LC_WAIT_BUCKETS + 1; i++)
		(void)codec_number(&codec, i, 0, 100);
	next = read_counters(&codec, 5);
	for (int i = 2; i < LC_FAILURES; i++)
		wanted.failures[i] = 13 + (unsigned long)i;
	for (int i = 2; i <= LC_WAIT_BUCKETS; i++)
		wanted.waits[i] = 25 + (unsigned long)i;
	assert_memory_equal(&next, &wanted, sizeof(next));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grants_by_their_waits),
		cmocka_unit_test(failures_by_their_errors),
		cmocka_unit_test(saved),
		cmocka_unit_test(of_another_version),
		cmocka_unit_test(of_version_5),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
