/* SPDX-License-Identifier: MIT */
#include "session/counters.h"

#include <errno.h>

const int lc_failure_codes[LC_FAILURES] = {
	EAGAIN,    ETIMEDOUT, ENOENT, ECANCELED, EACCES, EHOSTUNREACH,
	ESHUTDOWN, ENOLCK,    EPROTO, EDEADLK,   ENOMEM, 0,
};

/* From one round trip to an hour. */
const int64_t lc_wait_bounds_us[LC_WAIT_BUCKETS] = {
	1000,   2500,    5000,     10000,    50000,     100000,
	500000, 1000000, 10000000, 60000000, 600000000, 3600000000,
};

void count_grant(struct lc *lc, int64_t asked_us)
{
	struct lc_counters *counters = &lc->counters;
	int64_t waited = lc_lately(lc) - asked_us;
	int i = 0;

	while (i < LC_WAIT_BUCKETS && waited > lc_wait_bounds_us[i])
		i++;
	counters->grants++;
	counters->waits[i]++;
	counters->waited_us += waited;
}

void count_failure(struct lc *lc, int error)
{
	int i = 0;

	while (lc_failure_codes[i] && lc_failure_codes[i] != -error)
		i++;
	lc->counters.failures[i]++;
}

void counters_carry(struct carry *carry, struct lc_counters *counters)
{
#define CARRY_COUNTER(field, help) CARRY_64(carry, counters->field);
	LC_COUNTERS(CARRY_COUNTER)
	CARRY_64(carry, counters->waited_us);
	for (int i = 0; i < LC_FAILURES; i++)
		CARRY_64(carry, counters->failures[i]);
	for (int i = 0; i <= LC_WAIT_BUCKETS; i++)
		CARRY_64(carry, counters->waits[i]);
}
