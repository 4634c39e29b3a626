/* SPDX-License-Identifier: MIT
 *
 * tally.c - what has happened so far: numbers that only rise, for those who measure
 * (lc_counters). Nothing in the engine depends on them.
 */
#include "engine.h"

#include <errno.h>

const int lc_failure_codes[LC_FAILURES] = {
	EAGAIN, ETIMEDOUT, ENOENT, ECANCELED, EACCES, EHOSTUNREACH, ESHUTDOWN, ENOLCK, EPROTO, EDEADLK,
	ENOMEM, 0,
};

/* From one round trip to an hour. */
const int64_t lc_wait_bounds_us[LC_WAIT_BUCKETS] = {
	1000, 2500, 5000, 10000, 50000, 100000, 500000, 1000000, 10000000, 60000000, 600000000, 3600000000,
};

void tally_granted(struct lc_taker *taker)
{
	struct lc_counters *counters = &taker->lc->counters;
	int64_t waited = lc_now(taker->lc) - taker->asked_us;
	int i = 0;

	while (i < LC_WAIT_BUCKETS && waited > lc_wait_bounds_us[i])
		i++;
	counters->grants++;
	counters->waits[i]++;
	counters->waited_us += waited;
}

void tally_failed(struct lc *lc, int error)
{
	int i = 0;

	while (lc_failure_codes[i] && lc_failure_codes[i] != -error)
		i++;
	lc->counters.failures[i]++;
}
