/* SPDX-License-Identifier: MIT
 *
 * attend.c - whether somebody waits behind a holder, and when that may have changed: time
 * to yield. The lock's children are watched only while somebody attends; each change
 * uses the watch up, so whoever wants to know again asks again.
 */
#include "attend.h"

#include "hold.h"
#include "lock_watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_leaving(struct lock *lock, const struct queue_entry *entry)
{
	const struct entry *own = entry_of_node(lock, entry->znode, &entry->name);

	return own && !own->wanted;
}

/* Those that left do not count, nor do those that only wait for one that left. */
static void find_last_waiters(struct lock *lock, struct reading *reading)
{
	const struct queue *queue = &reading->queue;

	if (reading->weighed)
		return;
	reading->weighed = true;
	reading->last = reading->last_exclusive = -1;
	for (size_t i = 0; i < queue->count; i++) {
		if (!(queue->in_zone || queue_blocker(queue, i) >= 0) ||
		    is_leaving(lock, &queue->entries[i]))
			continue;
		reading->last = (ssize_t)i;
		if (queue->entries[i].name.mode == LC_EXCLUSIVE)
			reading->last_exclusive = (ssize_t)i;
	}
}

/* Where the numbers give no order, everybody else may stand behind it. */
static bool anybody_else(const struct lc_taker *holder, const struct queue *queue, size_t place)
{
	for (size_t i = 0; i < queue->count; i++)
		if (i != place && !is_leaving(holder->entry.lock, &queue->entries[i]) &&
		    (holder->entry.mode == LC_EXCLUSIVE ||
		     queue->entries[i].name.mode == LC_EXCLUSIVE))
			return true;
	return false;
}

static bool waits_behind(const struct lc_taker *holder, struct reading *reading, size_t place)
{
	if (reading->queue.in_zone)
		return anybody_else(holder, &reading->queue, place);
	find_last_waiters(holder->entry.lock, reading);
	return (holder->entry.mode == LC_EXCLUSIVE ? reading->last : reading->last_exclusive) >
	       (ssize_t)place;
}

static void queue_listed(struct reader *reader, struct reading *reading)
{
	struct lc_call *call = call_of(reader);
	struct lc_taker *taker = call->taker;
	ssize_t place;

	if (reading->error < 0) {
		call_fail(call, reading->error);
		return;
	}
	if (!taker_holds_entry(taker)) {
		call_fail(call, -EIO);
		return;
	}
	place = queue_find(&reading->queue, taker->entry.name);
	if (place < 0)
		lock_want_list(taker->entry.lock); /* it is lost, as that will say */
	call_succeed(call, place >= 0 && waits_behind(taker, reading, (size_t)place));
}

static void list_queue(struct lc_call *call)
{
	call->reader.watch = call->taker->stirred != NULL;
	call_read(call, READING_QUEUE, call->path, queue_listed);
}

int lc_waited_for(struct lc_taker *taker, lc_done_fn *done, void *ctx, struct lc_call **ret_call)
{
	struct lc_call *call;

	if (!lc_holds(taker))
		return -EIO;
	call = call_new(struct lc_call, .ask = list_queue, .fail = call_done_failed, .taker = taker,
	                .uid = taker->entry.uid, .done = done, .ctx = ctx);
	return call ? call_begin(call, taker->entry.lc, strdup(taker->entry.lock->path), ret_call)
	            : -ENOMEM;
}

void lc_attend(struct lc_taker *taker, lc_stirred_fn *stirred)
{
	taker->stirred = stirred;
	if (stirred)
		lock_watch(taker->entry.lock); /* fewer slots: somebody waits who did not */
	if (stirred || !taker->stir_prev)
		return;
	DL_DELETE2(taker->entry.lc->takers->stirred, taker, stir_prev, stir_next);
	taker->stir_prev = taker->stir_next = NULL;
}

void attend_changed(struct lc *lc, const char *path)
{
	struct lc_taker *taker;
	struct lock *lock = lock_find(lc, path, strlen(path));

	if (!lock)
		return;
	DL_FOREACH(lock->takers, taker)
		if (taker->stirred && !taker->stir_prev)
			DL_APPEND2(lc->takers->stirred, taker, stir_prev, stir_next);
}

void attend_tell(struct lc *lc)
{
	while (lc->takers->stirred) {
		struct lc_taker *taker = lc->takers->stirred;
		lc_stirred_fn *stirred = taker->stirred;

		lc_attend(taker, NULL);
		stirred(taker->ctx);
	}
}
