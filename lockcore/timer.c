/* SPDX-License-Identifier: MIT
 *
 * timer.c - what is due when: a pairing heap, since thousands are set at a time, each user's
 * for as long as he likes. Those of the same time fire in the order in which they were set.
 */
#include "engine.h"

static bool is_before(const struct timer *a, const struct timer *b)
{
	return a->at_us < b->at_us || (a->at_us == b->at_us && a->serial < b->serial);
}

/* Both stand alone, or are NULL. */
static struct timer *merge(struct timer *a, struct timer *b)
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
		a->next = a->before = NULL;
		if (b)
			b->next = b->before = NULL;
		pair = merge(a, b);
		pair->next = pairs;
		pairs = pair;
	}
	while (pairs) {
		struct timer *pair = pairs;

		pairs = pair->next;
		pair->next = NULL;
		heap = merge(heap, pair);
	}
	return heap;
}

/* From the one above it. */
static void cut(struct timer *timer)
{
	if (timer->before->child == timer)
		timer->before->child = timer->next;
	else
		timer->before->next = timer->next;
	if (timer->next)
		timer->next->before = timer->before;
	timer->next = timer->before = NULL;
}

void timer_clear(struct lc *lc, struct timer *timer)
{
	if (!timer->armed)
		return;
	timer->armed = false;
	if (lc->timers == timer) {
		lc->timers = merge_below(timer);
	} else {
		cut(timer);
		lc->timers = merge(lc->timers, merge_below(timer));
	}
}

void timer_set(struct lc *lc, struct timer *timer, int64_t at_us)
{
	timer_clear(lc, timer);
	timer->at_us = at_us;
	timer->serial = lc->timers_set++;
	timer->armed = true;
	lc->timers = merge(lc->timers, timer);
}

void timers_run(struct lc *lc)
{
	int64_t now = lc_now(lc);

	while (lc->timers && lc->timers->at_us <= now) {
		struct timer *timer = lc->timers;

		timer_clear(lc, timer);
		timer->fire(timer->ctx);
	}
}
