/* SPDX-License-Identifier: MIT
 *
 * attend.c - whether somebody waits behind a holder, and when that may have changed: time
 * to yield. The lock's children are watched only while somebody attends; each change
 * uses the watch up, so whoever wants to know again asks again.
 */
#include "call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool leaves(const struct lc *lc, const struct entry_name *name)
{
	const struct lc_taker *taker = NULL;

	if (name->ours && name->session_half == lc->session.half)
		HASH_FIND(hh, lc->takers, &name->taker_half, sizeof(name->taker_half), taker);
	return taker && !taker_wants(taker);
}

/* Those that left do not count, nor do those that only wait for one that left. Where the
 * numbers give no order, everybody may stand behind it. */
static bool waits_behind(const struct lc_taker *holder, const struct queue *queue, size_t place)
{
	for (size_t i = queue->in_zone ? 0 : place + 1; i < queue->count; i++) {
		const struct entry_name *name = &queue->entries[i].name;

		if (i != place && (queue->in_zone || queue_blocker(queue, i) >= 0) &&
		    !leaves(holder->lc, name) &&
		    (holder->mode == LC_EXCLUSIVE || name->mode == LC_EXCLUSIVE))
			return true;
	}
	return false;
}

static void listed(void *ctx, const struct ensemble_answer *answer)
{
	struct lc_call *call = ctx;
	struct lc_taker *taker = call->taker;
	struct queue queue;
	size_t place = 0;
	bool waited_for;
	int r;

	if (!call_answered(call, answer))
		return;
	if (taker->state != TAKER_HELD || taker->znode != ZNODE_PRESENT) {
		call_fail(call, -EIO);
		return;
	}
	r = look_build_queue(ctx, answer, &queue);
	if (r < 0) {
		look_again_or_fail(call, r);
		return;
	}
	while (place < queue.count && strcmp(queue.entries[place].znode, taker->name) != 0)
		place++;
	waited_for = place < queue.count && waits_behind(taker, &queue, place);
	if (place == queue.count)
		lock_want_list(taker->lock);   /* it is lost, as that will say */
	queue_finish(&queue);
	call_succeed(call, waited_for);
}

static void list(struct lc_call *call)
{
	look_at_queue((struct queue_call *)call, call->taker->stirred != NULL, listed);
}

int lc_waited_for(struct lc_taker *taker, lc_done_fn *done, void *ctx, struct lc_call **ret_call)
{
	struct queue_call *queue;

	if (!lc_holds(taker))
		return -EIO;
	queue = call_new(sizeof(*queue), &(struct lc_call){
		.ask = list, .fail = call_done_failed, .taker = taker, .done = done, .ctx = ctx});
	return queue ? call_begin(&queue->call, taker->lc, strdup(taker->lock->path), ret_call) : -ENOMEM;
}

void lc_attend(struct lc_taker *taker, lc_stirred_fn *stirred)
{
	taker->stirred = stirred;
	if (stirred)
		lock_watch_data(taker->lock);   /* fewer slots: somebody waits who did not */
	if (stirred || !taker->stir_due)
		return;
	taker->stir_due = false;
	DL_DELETE2(taker->lc->stirred, taker, stir_prev, stir_next);
}

void attend_changed(struct lc *lc, const char *path)
{
	struct lc_taker *taker;
	struct lock *lock;

	HASH_FIND_STR(lc->locks, path, lock);
	if (!lock)
		return;
	DL_FOREACH(lock->takers, taker)
		if (taker->stirred && !taker->stir_due) {
			taker->stir_due = true;
			DL_APPEND2(lc->stirred, taker, stir_prev, stir_next);
		}
}

void attend_tell(struct lc *lc)
{
	while (lc->stirred) {
		struct lc_taker *taker = lc->stirred;
		lc_stirred_fn *stirred = taker->stirred;

		lc_attend(taker, NULL);
		stirred(taker->ctx);
	}
}
