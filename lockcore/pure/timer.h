/* SPDX-License-Identifier: MIT
 *
 * timer.h - what is due when.
 */
#ifndef LOCKCORE_TIMER_H
#define LOCKCORE_TIMER_H

#include <stdbool.h>
#include <stdint.h>

struct timers {
	struct timer *first; /* the next one that is due */
	uint64_t set : 63;   /* how many were set so far */
};

struct timer {
	int64_t at_us;
	void (*fire)(void *ctx);
	void *ctx;
	uint64_t serial : 63;
	bool armed : 1;
	/* `before`: its sibling, or the one above it. The links of the first of a heap have no
	 * meaning. */
	struct timer *child, *next, *before;
};

void timer_set(struct timers *timers, struct timer *timer, int64_t at_us);
/* Does nothing if the timer is not armed. */
void timer_clear(struct timers *timers, struct timer *timer);
/* Fires all timers that are due at `now_us`. */
void timers_run(struct timers *timers, int64_t now_us);

#endif
