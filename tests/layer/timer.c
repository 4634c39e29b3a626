/* SPDX-License-Identifier: MIT
 *
 * Timers fire when they are due, in the order of their times. Timers of the same time fire in the
 * order in which they were set.
 */
#include "pure/timer.h"

#include "unit.h"

#include <stdlib.h>
#include <string.h>

#define COUNT 200

static struct timers timers;
static struct timer all[COUNT];
static int fired[COUNT], fired_count;

static void fire(void *ctx)
{
	assert_false(((struct timer *)ctx)->armed);
	fired[fired_count++] = (int)((struct timer *)ctx - all);
}

static int set_up(void **state)
{
	(void)state;
	memset(&timers, 0, sizeof(timers));
	memset(all, 0, sizeof(all));
	fired_count = 0;
	for (int i = 0; i < COUNT; i++)
		all[i] = (struct timer){.fire = fire, .ctx = &all[i]};
	return 0;
}

static void expect_fired(const int *which, int count)
{
	assert_int_equal(fired_count, count);
	for (int i = 0; i < count; i++)
		assert_int_equal(fired[i], which[i]);
	fired_count = 0;
}

#define FIRED(...) \
	expect_fired((const int[]){__VA_ARGS__}, (int)LENGTH(((const int[]){__VA_ARGS__})))

static void when_due(void **state)
{
	(void)state;
	timer_set(&timers, &all[0], 100);
	timers_run(&timers, 99);
	assert_int_equal(fired_count, 0);
	assert_true(all[0].armed);
	timers_run(&timers, 100);
	FIRED(0);
	timers_run(&timers, 1000);
	assert_int_equal(fired_count, 0);
	assert_null(timers.first);
}

static void by_time_then_by_setting(void **state)
{
	(void)state;
	timer_set(&timers, &all[0], 20);
	timer_set(&timers, &all[1], 10);
	timer_set(&timers, &all[2], 20);
	timer_set(&timers, &all[3], 10);
	timer_set(&timers, &all[4], 15);
	assert_ptr_equal(timers.first, &all[1]);
	timers_run(&timers, 20);
	FIRED(1, 3, 4, 0, 2);
}

static void set_again(void **state)
{
	(void)state;
	timer_set(&timers, &all[0], 10);
	timer_set(&timers, &all[1], 10);
	timer_set(&timers, &all[0], 10); /* behind timer 1 now */
	timer_set(&timers, &all[2], 5);
	timer_set(&timers, &all[2], 50);
	timers_run(&timers, 10);
	FIRED(1, 0);
	timers_run(&timers, 50);
	FIRED(2);
}

static void cleared(void **state)
{
	(void)state;
	timer_clear(&timers, &all[0]);
	for (int i = 0; i < 5; i++)
		timer_set(&timers, &all[i], 10 + i);
	timer_clear(&timers, &all[0]); /* the first */
	timer_clear(&timers, &all[3]);
	timer_clear(&timers, &all[3]);
	timers_run(&timers, 100);
	FIRED(1, 2, 4);
}

static void set_another(void *ctx)
{
	timer_set(&timers, &all[1], 10);
	timer_set(&timers, &all[2], 11);
	timer_clear(&timers, &all[3]);
	fire(ctx);
}

/* A timer that fires may set other timers, also timers that are due, and clear others. */
static void from_inside(void **state)
{
	(void)state;
	all[0].fire = set_another;
	timer_set(&timers, &all[0], 10);
	timer_set(&timers, &all[3], 10);
	timers_run(&timers, 10);
	FIRED(0, 1);
	timers_run(&timers, 11);
	FIRED(2);
}

static int by_time(const void *a, const void *b)
{
	const struct timer *one = &all[*(const int *)a], *two = &all[*(const int *)b];

	if (one->at_us != two->at_us)
		return one->at_us < two->at_us ? -1 : 1;
	return one->serial < two->serial ? -1 : 1;
}

/* Timers are set, set again and cleared at random: the heap is compared with a sorted list. */
static void many(void **state)
{
	uint32_t bits = 1;

	(void)state;
	for (int round = 0; round < 50; round++) {
		int expected[COUNT], count = 0;

		for (int i = 0; i < 600; i++) {
			struct timer *timer;

			bits = bits * 1664525 + 1013904223;
			timer = &all[(bits >> 8) % COUNT];
			if (bits >> 30 == 0)
				timer_clear(&timers, timer);
			else
				timer_set(&timers, timer, (bits >> 16) % 50);
		}
		for (int i = 0; i < COUNT; i++)
			if (all[i].armed && all[i].at_us <= 30)
				expected[count++] = i;
		qsort(expected, (size_t)count, sizeof(int), by_time);
		assert_true(count > COUNT / 4);
		timers_run(&timers, 30);
		expect_fired(expected, count);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(when_due, set_up),
		cmocka_unit_test_setup(by_time_then_by_setting, set_up),
		cmocka_unit_test_setup(set_again, set_up),
		cmocka_unit_test_setup(cleared, set_up),
		cmocka_unit_test_setup(from_inside, set_up),
		cmocka_unit_test_setup(many, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
