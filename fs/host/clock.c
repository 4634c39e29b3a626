/* SPDX-License-Identifier: MIT
 *
 * clock.c - see clock.h.
 *
 * The time slept is the difference of two readings that are not made at the same moment:
 * whatever passes in between (this process may be stopped there) adds to it. Between two
 * readings of CLOCK_MONOTONIC it is certain to less than what lies between those.
 *
 * That takes several readings, and the clock is read often. So the time slept is found anew only
 * every millisecond, or when CLOCK_BOOTTIME has moved away from CLOCK_MONOTONIC_RAW. In a
 * millisecond slewing can hide less than 0.1 ms of sleep from that comparison.
 */
#include "host/clock.h"

#include <errno.h>
#include <poll.h>

/* How long the time slept is good, if the clocks stay together but for MOVED_NS. */
#define FOUND_NS 1000000
#define MOVED_NS (CLOCK_BRACKET_NS / 4)

/* How often a reading is made again that was held up: far more often than happens. */
#define TRIES 64

int64_t clock_read_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* Never less than before: time slept does not shrink. Rather too much than too little, a later
 * clock only shortens leases. */
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
	/* When the time slept was found last: CLOCK_MONOTONIC_RAW, and how far CLOCK_BOOTTIME was
	 * ahead of it. */
	static int64_t found_ns, ahead_ns, slept;
	int64_t raw = clock_read_ns(CLOCK_MONOTONIC_RAW);
	int64_t moved = clock_read_ns(CLOCK_BOOTTIME) - raw - ahead_ns;

	if (found_ns == 0 || raw - found_ns > FOUND_NS || moved > MOVED_NS || moved < -MOVED_NS) {
		slept = slept_ns();
		ahead_ns = clock_read_ns(CLOCK_BOOTTIME);
		raw = found_ns = clock_read_ns(CLOCK_MONOTONIC_RAW);
		ahead_ns -= raw;
	}
	return (raw + slept) / 1000;
}

int clock_poll(int fd, short events, int64_t until_us)
{
	struct pollfd pollfd = {.fd = fd, .events = events};
	int64_t left_us;
	int n;

	do {
		left_us = until_us - clock_now_us();
		n = poll(&pollfd, 1, left_us > 0 ? (int)(left_us / 1000) + 1 : 0);
	} while (n < 0 ? errno == EINTR : n == 0 && left_us > 0);
	return n;
}
