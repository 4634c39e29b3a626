/* SPDX-License-Identifier: MIT
 *
 * clock.c - see clock.h.
 *
 * The time slept is the difference of two readings that are not made at the same moment:
 * whatever passes in between (this process may be stopped there) adds to it. Between two
 * readings of CLOCK_MONOTONIC it is certain to less than what lies between those.
 */
#include "clock.h"

/* How often a reading is made again that was held up: far more often than happens. */
#define TRIES 64

int64_t clock_read_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* Never less than it was: what was slept once stays so. Rather too much than too little,
 * a later clock only shortens leases. */
static int64_t slept_ns(void)
{
	static int64_t slept;
	int64_t tightest = INT64_MAX, found = slept;

	for (int i = 0; i < TRIES && tightest > CLOCK_BRACKET_NS; i++) {
		int64_t before = clock_read_ns(CLOCK_MONOTONIC);
		int64_t at_most = clock_read_ns(CLOCK_BOOTTIME) - before, bracket;

		if (at_most <= slept + CLOCK_BRACKET_NS)
			return slept;
		bracket = clock_read_ns(CLOCK_MONOTONIC) - before;
		if (bracket < tightest) {
			tightest = bracket;
			found = at_most;
		}
	}
	slept = found;
	return slept;
}

int64_t clock_now_us(void)
{
	int64_t slept = slept_ns();

	return (clock_read_ns(CLOCK_MONOTONIC_RAW) + slept) / 1000;
}
