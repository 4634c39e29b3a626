/* SPDX-License-Identifier: MIT
 *
 * timer.c - a pairing heap of timers: thousands may be set at a time. Timers of the same time
 * fire in the order in which they were set.
 */
#include "pure/timer.h"

#include <stddef.h>

static bool is_before(const struct timer *a, const struct timer *b)
{
	return a->at_us < b->at_us || (a->at_us == b->at_us && a->serial < b->serial);
}

/* NULL: an empty one. */
static struct timer *merge_heaps(struct timer *a, struct timer *b)
{
	struct timer *first = a, *other = b;

	if (!a || !b)
		return a ? a : b;
	if (is_before(b, a)) {
		first = b;
		other = a;
	}
	other->next = first->child;
	if (other->next)
		other->next->before = other;
	other->before = first;
	first->child = other;
	return first;
}

/* Those below a timer become one heap: in pairs, and these from the last to the first. */
static struct timer *merge_below(struct timer *timer)
{
	struct timer *rest = timer->child, *pairs = NULL, *heap = NULL;

	timer->child = NULL;
	while (rest) {
		struct timer *a = rest, *b = rest->next, *pair;

		rest = b ? b->next : NULL;
		pair = merge_heaps(a, b);
		pair->next = pairs;
		pairs = pair;
	}
	while (pairs) {
		struct timer *pair = pairs;

		pairs = pair->next;
		heap = merge_heaps(heap, pair);
	}
	return heap;
}

/* From the one above it. */
static void cut_timer(struct timer *timer)
{
	if (timer->before->child == timer)
		timer->before->child = timer->next;
	else
		timer->before->next = timer->next;
	if (timer->next)
		timer->next->before = timer->before;
}

void timer_clear(struct timers *timers, struct timer *timer)
{
	if (!timer->armed)
		return;
	timer->armed = false;
	if (timers->first == timer) {
		timers->first = merge_below(timer);
	} else {
		cut_timer(timer);
		timers->first = merge_heaps(timers->first, merge_below(timer));
	}
}

void timer_set(struct timers *timers, struct timer *timer, int64_t at_us)
{
	timer_clear(timers, timer);
	timer->at_us = at_us;
	timer->serial = timers->set++;
	timer->armed = true;
	timers->first = merge_heaps(timers->first, timer);
}

void timers_run(struct timers *timers, int64_t now_us)
{
	while (timers->first && timers->first->at_us <= now_us) {
		struct timer *timer = timers->first;

		timer_clear(timers, timer);
		timer->fire(timer->ctx);
	}
}
