/* SPDX-License-Identifier: MIT
 *
 * The lease's clock on a machine that sleeps, whose clocks are slewed, and that stops this
 * process between any two readings.
 */
#include "host/clock.h"

#include "unit.h"

#include <stdbool.h>

#define SECOND 1000000000LL
#define READING 30 /* ns for one reading */

static struct {
	int64_t raw, slewed, slept;
	int slew;        /* per mille */
	int readings;    /* until this process is stopped */
	int64_t stopped; /* for how long */
	int64_t asleep;  /* how long the machine sleeps meanwhile */
	bool always;     /* stopped at each reading */
} machine = {.raw = 5000 * SECOND, .slewed = 7000 * SECOND};

static void pass(int64_t ns)
{
	machine.raw += ns;
	machine.slewed += ns + ns / 1000 * machine.slew;
}

/* In place of libc's function. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	int64_t at;

	pass(READING);
	if (machine.always || machine.readings-- == 0) {
		pass(machine.stopped);
		machine.slept += machine.asleep;
		machine.asleep = 0;
	}
	at = id == CLOCK_MONOTONIC_RAW ? machine.raw
	     : id == CLOCK_BOOTTIME    ? machine.slewed + machine.slept
	                               : machine.slewed;
	ts->tv_sec = at / SECOND;
	ts->tv_nsec = at % SECOND;
	return 0;
}

static void expect_true(const char *when)
{
	int64_t before = (machine.raw + machine.slept) / 1000, now = clock_now_us();
	int64_t after = (machine.raw + machine.slept) / 1000, slack = CLOCK_BRACKET_NS / 1000;

	expect(now >= before && now <= after + slack, "%s: %lld us, not within %lld and %lld", when,
	       (long long)now, (long long)before, (long long)after);
}

static void slewed(void **state)
{
	(void)state;
	for (int slew = -83; slew <= 83; slew += 83) {
		machine.slew = slew;
		for (int i = 0; i < 100; i++) {
			pass(SECOND);
			expect_true("slewed");
		}
	}
	machine.slew = 0;
}

static void suspended(void **state)
{
	(void)state;
	for (int readings = 0; readings < 8; readings++) {
		machine.readings = readings;
		machine.asleep = readings * 10 * SECOND + SECOND / 10;
		machine.stopped = 0;
		expect_true("suspended between two readings");
		expect_true("after that");
	}
}

/* Slewing takes away what sleep adds: one of these clocks alone does not show it. */
static void suspended_while_slewed(void **state)
{
	(void)state;
	machine.slew = -83;
	for (int i = 0; i < 10; i++) {
		machine.slept += SECOND / 1000 * 83;
		pass(SECOND);
		expect_true("suspended for as long as slewing takes away");
	}
	machine.slew = 0;
}

/* The lease's clock is read very often: each time only few readings of the machine are made. */
static void read_often(void **state)
{
	const int64_t times = 1000;
	int64_t began = machine.raw;

	(void)state;
	for (int64_t i = 0; i < times; i++)
		expect_true("read often");
	expect(machine.raw - began < times * 3 * READING, "%lld readings",
	       (long long)(machine.raw - began) / READING);
}

static void stopped(void **state)
{
	(void)state;
	for (int readings = 0; readings < 8; readings++) {
		machine.readings = readings;
		machine.stopped = 10 * SECOND;
		expect_true("stopped between two readings");
		machine.readings = readings;
		machine.asleep = 3 * SECOND;
		expect_true("stopped and suspended");
		expect_true("after that");
	}
}

/* No two readings are near each other: the clock may be ahead by the time between
 * two readings, once, but does not go back or hang. */
static void never_tight(void **state)
{
	int64_t last = clock_now_us(), ahead;

	(void)state;
	machine.always = true;
	machine.stopped = 40 * 1000;
	for (int i = 0; i < 1000; i++) {
		int64_t now = clock_now_us();

		expect(now >= last, "%lld us after %lld", (long long)now, (long long)last);
		last = now;
	}
	machine.always = false;
	machine.stopped = 0;
	ahead = clock_now_us() - (machine.raw + machine.slept) / 1000;
	expect(ahead >= 0 && ahead < 100, "ahead by %lld us", (long long)ahead);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slewed),
		cmocka_unit_test(suspended),
		cmocka_unit_test(suspended_while_slewed),
		cmocka_unit_test(read_often),
		cmocka_unit_test(stopped),
		cmocka_unit_test(never_tight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
