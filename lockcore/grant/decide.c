/* SPDX-License-Identifier: MIT
 *
 * decide.c - the only caller of queue_next(). It lays what is known of one lock on the *slate*,
 * calls queue_next(), and does as that says.
 *
 * A lock may have ten thousand waiters, and each turn may change something of it. So the slate has
 * only the entries up to the first waiters that must wait whatever stands behind them, unless there
 * is a *picky* taker, which may be refused for all that it stands behind.
 */
#include "grant/grant.h"

#include "lock/known.h"
#include "lock/lock_watch.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- laying it out ---- */

/* Room for one more in an array of the slate. False: no memory, and the array is unchanged. */
static bool grow(void *array, int count, int *room, size_t size)
{
	int wanted = *room ? 2 * *room : 64;
	void *old, *more;

	if (count < *room)
		return true;
	memcpy(&old, array, sizeof(old));
	more = realloc(old, (size_t)wanted * size);
	if (!more)
		return false;
	memcpy(array, &more, sizeof(more));
	*room = wanted;
	return true;
}

void decide_finish(struct lc *lc)
{
	free(lc->locks->slate.queue.entries);
	free(lc->locks->slate.queue.takers);
}

static enum next_state state_of(const struct lc_taker *taker)
{
	const struct entry *entry = &taker->entry;

	switch (entry->state) {
	case ENTRY_ABSENT:
		return taker->state == TAKER_WAITING && taker->wait == WAIT_PROBING ? NEXT_PROBING
		                                                                    : NEXT_OTHER;
	case ENTRY_CREATING:
		return NEXT_CREATING;
	case ENTRY_UNKNOWN:
		/* Reads under way tell which node is the entry, or that none is. */
		return entry->lock->late.asked > 0 ? NEXT_CREATING : NEXT_UNKNOWN;
	case ENTRY_DELETING:
		return NEXT_LEAVING;
	case ENTRY_PRESENT:
		break;
	}
	if (!entry->wanted)
		return taker->spare ? NEXT_KEPT : NEXT_LEAVING;
	if (taker->state == TAKER_LOST)
		return NEXT_LOST;
	return taker->state == TAKER_HELD ? NEXT_HOLDING : NEXT_WAITING;
}

/* A listing that was sent after the taker came was answered. While the outcome of a create is
 * unknown, no listing tells which entries are ours. */
static bool is_shown_since(const struct lc_taker *taker)
{
	const struct lock *lock = taker->entry.lock;

	return lock->lists.shown > taker->since && lock->batch.unknown == 0;
}

static bool is_asked_since(const struct lc_taker *taker)
{
	const struct lock *lock = taker->entry.lock;

	if (lock->batch.unknown > 0)
		return true;
	return (lock->lists.pending > 0 || lock->lists.order) && lock->lists.sent > taker->since;
}

static struct next_taker as_taker(struct lc_taker *taker)
{
	const struct entry *entry = &taker->entry;
	const struct lock *lock = entry->lock;

	return (struct next_taker){
		.caller = taker,
		.state = state_of(taker),
		.number = lock->known.in_zone ? INT64_MAX - 1 : entry->number,
		.replaces = NEXT_NONE,
		.crowd = taker->replaces ? 0 : taker->crowd,
		.shared = entry->mode == LC_SHARED,
		.immediate = taker->immediate,
		.seen = known_is_seen(entry),
		.shown_since = is_shown_since(taker),
		.asked_since = is_asked_since(taker),
		.sent = entry->sent,
		/* In the zone only a listing grants a lock: no leaver guards a hand-over. */
		.in_doubt = entry->in_doubt || lock->known.in_zone,
	};
}

static bool add_taker(struct slate *slate, struct lc_taker *taker)
{
	struct next_queue *queue = &slate->queue;

	if (taker->place < queue->taker_count && queue->takers[taker->place].caller == taker)
		return true;
	if (!grow(&queue->takers, queue->taker_count, &slate->taker_room, sizeof(*queue->takers)))
		return false;
	taker->place = queue->taker_count++;
	queue->takers[taker->place] = as_taker(taker);
	return true;
}

static bool add_all_takers(struct slate *slate, struct lock *lock)
{
	struct lc_taker *taker;

	DL_FOREACH(lock->takers.all, taker)
		if (!add_taker(slate, taker))
			return false;
	lock->takers.picky = false;
	DL_FOREACH(lock->takers.all, taker) {
		if (taker->replaces)
			slate->queue.takers[taker->place].replaces = taker->replaces->place;
		lock->takers.picky |= taker_is_picky(taker);
	}
	return true;
}

/* Adds the last waiter whose place is not known: it says the same as the others, whose entries all
 * stand behind those that are known. Takers stand in the order of their entries, so such waiters
 * are the last takers. */
static bool add_unplaced(struct slate *slate, struct lock *lock)
{
	struct lc_taker *taker = lock->takers.all->prev;

	for (; !known_is_placed(&taker->entry); taker = taker->prev) {
		if (taker->state == TAKER_WAITING && taker->entry.state == ENTRY_PRESENT)
			return add_taker(slate, taker);
		if (taker == lock->takers.all)
			break;
	}
	return true;
}

static bool lay_entry(struct slate *slate, const struct lock *lock, struct known_entry *known)
{
	struct lc_taker *taker = known->own ? taker_of(known->own) : NULL;
	struct next_queue *queue = &slate->queue;

	if (!grow(&queue->entries, queue->entry_count, &slate->entry_room,
	          sizeof(*queue->entries)) ||
	    (taker && !add_taker(slate, taker)))
		return false;
	queue->entries[queue->entry_count] = (struct next_entry){
		.caller = known,
		.number = lock->known.in_zone ? queue->entry_count : known->number,
		.taker = taker ? taker->place : NEXT_NONE,
		.shared = known->shared,
		.apart = known->apart,
		.shown = known->shown,
		.doubtful = known->doubtful,
	};
	queue->entry_count++;
	return true;
}

/* `all`: also the entries behind the first exclusive waiters, which must wait in any case. */
static bool lay_entries(struct slate *slate, const struct lock *lock, bool all)
{
	unsigned room =
		lock_is_watched(lock) && lock->node.info.slots > 1 ? lock->node.info.slots : 1;
	struct known_entry *known;

	DL_FOREACH(lock->known.entries, known) {
		if (!lay_entry(slate, lock, known))
			return false;
		if (!all && known->own && !known->shared &&
		    taker_of(known->own)->state == TAKER_WAITING && room-- == 0)
			return true;
	}
	return true;
}

static bool lay_out(struct slate *slate, struct lock *lock)
{
	struct next_queue *queue = &slate->queue;
	struct entry *unproved = lock->grant.unproved;
	bool all = lock->takers.picky;

	queue->entry_count = queue->taker_count = 0;
	queue->list = NEXT_LIST_NONE;
	queue->watch_children = queue->watch_lock = false;
	if ((all && !add_all_takers(slate, lock)) || !lay_entries(slate, lock, all) ||
	    (unproved && !add_taker(slate, taker_of(unproved))) ||
	    (!all && !add_unplaced(slate, lock)))
		return false;
	queue->lock_watched = lock_is_watched(lock);
	queue->children_watched =
		lock->lists.watching > 0 && lock->lists.watching <= lock->lists.shown;
	queue->slots = lock->node.info.slots;
	queue->slots_max = LC_SLOTS_MAX;
	queue->unproved = unproved ? taker_of(unproved)->place : NEXT_NONE;
	return true;
}

/* ---- doing it ---- */

/* The taker was granted the lock behind own leavers: their entries guard the lock until its entry
 * is seen. Deletes that were held back are tried again, with the check of its entry. */
static void is_unproved(struct lock *lock, struct lc_taker *taker)
{
	lock->lc->counters.hand_offs++;
	if (lock->grant.unproved)
		entry_touch(lock->grant.unproved);
	lock->grant.unproved = &taker->entry;
	entry_touch(&taker->entry);
	lock_delete_held_back(lock);
}

static void refuse(struct lc_taker *taker, int error)
{
	if (!taker->immediate && !taker->replaces)
		taker->entry.lock->lc->counters.crowded++;
	taker_fail(taker, error);
}

/* Grants the lock, if the lease is long enough: it is compared with the clock for each grant. While
 * a grant waits for more lease, its entry is watched. False: the taker meant a former lock of this
 * name and was refused, so the takers behind it are to be judged anew. */
static bool let_hold(struct lc_taker *taker)
{
	struct lock *lock = taker->entry.lock;

	if (!taker_means(taker)) {
		taker_fail(taker, -ENOENT);
		return false;
	}
	lock->grant.lease_awaited |= !session_may_grant(lock->lc);
	if (lock->grant.lease_awaited)
		entry_watch(&taker->entry);
	else
		taker_grant(taker);
	return true;
}

/* False: the lock is to be decided once more. */
static bool take_step(struct lc_taker *taker, const struct next_taker *next)
{
	switch (next->step) {
	case NEXT_STAY:
		return true;
	case NEXT_CREATE:
		taker_set_wait(taker, WAIT_QUEUED);
		taker_step(taker);
		return true;
	case NEXT_GRANT:
		return let_hold(taker);
	case NEXT_REFUSE:
		refuse(taker, next->error);
		return true;
	case NEXT_LEAVE:
		taker_drop_spare(taker);
		return true;
	}
	return true;
}

/* False: the lock is to be decided once more. */
static bool take_steps(struct lock *lock, const struct next_queue *queue)
{
	const struct next_taker *unproved =
		queue->unproved == NEXT_NONE ? NULL : &queue->takers[queue->unproved];
	bool settled = true;

	lock->grant.lease_awaited = false;
	for (int i = 0; i < queue->taker_count; i++)
		settled &= take_step(queue->takers[i].caller, &queue->takers[i]);
	if (unproved && unproved->step == NEXT_GRANT &&
	    ((struct lc_taker *)unproved->caller)->state == TAKER_HELD)
		is_unproved(lock, unproved->caller);
	return settled;
}

/* ---- asking ---- */

static void ask_list(struct lock *lock, const struct next_queue *queue)
{
	bool under_way = lock->lists.pending > 0 || lock->lists.order;

	if (queue->list == NEXT_LIST_NONE || lock->lists.later)
		return;
	if (queue->watch_children && lock->lists.watching == 0)
		lock->lists.names_wanted = true;
	if (queue->list == NEXT_LIST_NEW || !under_way || lock->lists.names_wanted)
		lock_want_list(lock);
}

static void ask_watches(struct lock *lock, const struct next_queue *queue)
{
	const char *others[OTHERS_WATCHED] = {NULL};
	int count = 0;

	if (queue->watch_lock)
		lock_watch(lock);
	for (int i = 0; i < queue->taker_count; i++)
		if (queue->takers[i].watch)
			entry_watch(&((struct lc_taker *)queue->takers[i].caller)->entry);
	for (int i = 0; i < queue->entry_count && count < OTHERS_WATCHED; i++)
		if (queue->entries[i].watch)
			others[count++] = ((struct known_entry *)queue->entries[i].caller)->znode;
	lock_watch_others(lock, others);
}

static void decide(struct lock *lock)
{
	struct slate *slate = &lock->lc->locks->slate;
	struct next_queue *queue = &slate->queue;
	bool settled;

	if (lock->grant.held_back && !lock->grant.unproved)
		lock_delete_held_back(lock);
	if (lock->takers.waiting == 0) {
		lock_watch_none(lock);
		return;
	}
	if (!lay_out(slate, lock)) {
		lock_list_later(lock);
		return;
	}
	queue_next(queue);
	settled = take_steps(lock, queue);
	known_decided(lock);
	if (!settled) {
		lock_touch(lock);
		return;
	}
	ask_watches(lock, queue);
	ask_list(lock, queue);
}

void decide_touched(struct lc *lc)
{
	while (lc->locks->touched) {
		struct lock *lock = lc->locks->touched;

		lock_untouch(lock);
		lock_use(lock);
		decide(lock);
		lock_unuse(lock);
	}
}
