/* SPDX-License-Identifier: MIT
 *
 * top.h - what zklocktop knows and what it draws of it.
 *
 *   all locks --Enter--> the queue of one --e--> "Evict ...? y/n" --y--> evicted
 *       ^                 |    ^                          |
 *       +---Esc, Left-----+    +------any other key-------+
 */
#ifndef ZKLOCK_TOP_H
#define ZKLOCK_TOP_H

#include "report.h"
#include "scroll.h"

enum order { ORDER_WAIT, ORDER_HOLD, ORDER_NAME };

struct top {
	struct mount mount;
	enum order order;
	struct report locks; /* the last one that was read */
	struct scroll list;
	char lock[LOCK_NAME_MAX + 1]; /* whose queue is shown; empty: all locks are */
	struct report queue;
	struct scroll places;
	bool helping;             /* the keys are shown */
	bool asking;              /* whether to evict: */
	struct eviction eviction; /* as of the moment when it was asked */
	char message[700];        /* for the last line; empty: the keys stand there */
	int64_t unanswered_ms;    /* how long the mount has not answered */
};

static inline bool top_shows_queue(const struct top *top)
{
	return *top->lock != '\0';
}

/* The order that `order` says, the longest first. */
void top_sort(struct top *top);
/* How many lines of a list there is room for. */
size_t screen_lines(void);
void screen_draw(struct top *top);

#endif
