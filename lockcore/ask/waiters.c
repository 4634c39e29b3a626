/* SPDX-License-Identifier: MIT
 *
 * waiters.c - see waiters.h. The lock's children are watched only while a holder wants to be
 * told; each change uses the watch up, and the holder asks again if it wants to know again.
 */
#include "ask/waiters.h"

#include "lock/lock_watch.h"

#include <string.h>

static bool is_leaving(struct lock *lock, const struct queue_entry *entry)
{
	const struct entry *own = entry_of_node(lock, entry->znode, &entry->name);

	return own ? !own->wanted : entry->own;
}

/* Takers that left do not count, nor do takers that only wait for one of these. Where the numbers
 * give no order, everybody else may stand behind it. */
static bool waits_behind(const struct lc_taker *holder, const struct queue *queue, size_t place)
{
	for (size_t i = queue->in_zone ? 0 : place + 1; i < queue->count; i++) {
		const struct queue_entry *other = &queue->entries[i];

		if (i == place ||
		    (holder->entry.mode == LC_SHARED && other->name.mode == LC_SHARED))
			continue;
		if ((queue->in_zone || other->blocker >= 0) &&
		    !is_leaving(holder->entry.lock, other))
			return true;
	}
	return false;
}

bool waiters_behind(const struct lc_taker *holder, const struct queue *queue)
{
	ssize_t place = queue_find(queue, holder->entry.name);

	if (place < 0)
		lock_want_list(holder->entry.lock); /* it is lost, as that will say */
	return place >= 0 && waits_behind(holder, queue, (size_t)place);
}

void lc_watch_waiters(struct lc_taker *taker, lc_waiters_changed_fn *changed)
{
	taker->waiters_changed = changed;
	if (changed)
		lock_watch(taker->entry.lock); /* fewer slots: somebody waits who did not */
	if (changed || !taker->changed_prev)
		return;
	DL_DELETE2(taker->entry.lock->lc->takers->waiters_changed, taker, changed_prev,
	           changed_next);
	taker->changed_prev = taker->changed_next = NULL;
}

void waiters_tell(struct lc *lc)
{
	while (lc->takers->waiters_changed) {
		struct lc_taker *taker = lc->takers->waiters_changed;
		lc_waiters_changed_fn *changed = taker->waiters_changed;

		lc_watch_waiters(taker, NULL);
		changed(taker->ctx);
	}
}
