/* SPDX-License-Identifier: MIT
 *
 * handoff.c - who may hold the lock without a listing. This is the whole rule, and its proof.
 *
 * Terms. An entry is *first* if no entry stood before it when it was granted: numbers only
 * rise, so none can come before it later. Two entries of this mount are *adjacent* if no other
 * client's entry stands, or will ever stand, between them. That is known
 *   - where a listing showed one right behind the other, or
 *   - where their numbers follow each other.
 * ZooKeeper numbers upwards within one life of the lock's node, so nothing comes in between
 * later. If an entry between two of ours goes, the two are adjacent if both steps were.
 *
 * 1. In the turn of a release. The leaver holds the lock exclusively, and is first. The next
 *    entry of ours behind it, passing over entries of ours that leave, is adjacent at each
 *    step. Then all that stood before the next one are the leaver and entries that we delete.
 *    So it is granted now, before anything is deleted. This needs
 *      - that the lock was not removed and made again since: then numbers begin anew. Its node
 *        is watched, and the watch is good (lock_is_watched); an event would have come before
 *        anything that shows the change;
 *      - that both entries are there. The leaver's is known by its own watch or is `gone`. Of
 *        the next one's it may not be known: anybody may have deleted it. Then it is
 *        *unproved*, and the leaver's entry stays as a guard: nobody else can be first as long
 *        as it stands there. It is deleted only when the next one's entry was seen on this
 *        connection, or in one transaction with the check that the next one's is there;
 *      - a lease that is good for a grant, as always.
 *
 * 2. A create in the transaction that deletes the first entry (batch.c). If the new entry's
 *    number is the next one after the deleted entry's, nobody came in between, and before the
 *    deleted one there was nobody: the new one is first.
 *
 * Not where the numbers repeat (NAME_NUMBER_ZONE), not with several slots, and only from one
 * exclusive holder to the next: a listing lets shared takers in, all of them at once.
 */
#include "handoff.h"

#include "lock_watch.h"

/* Who follows a holder, by rule 1. NULL: only a listing can tell. */
static struct lc_taker *find_next(struct lc_taker *holder)
{
	struct lc_taker *taker;

	if (holder->entry.lock->unresolved || !holder->entry.first ||
	    holder->entry.mode != LC_EXCLUSIVE)
		return NULL;
	for (taker = holder->next; taker; taker = taker->next) {
		const struct entry *entry = &taker->entry;

		if (!entry_is_queued(entry))
			continue;
		if (!entry->adjacent || entry->gone || entry->number < 0 ||
		    entry->number >= NAME_NUMBER_ZONE)
			return NULL;
		if (entry->wanted)
			return taker->state == TAKER_WAITING && entry->mode == LC_EXCLUSIVE &&
			                       taker_means(taker)
			               ? taker
			               : NULL;
		/* It leaves: look behind it. */
	}
	return NULL;
}

void handoff_watch_next(struct lc_taker *holder)
{
	struct lc_taker *next = find_next(holder);

	if (!next)
		return;
	lock_watch(holder->entry.lock);
	if (!holder->settle.armed)
		entry_watch(&next->entry);
}

void handoff_grant(struct lc_taker *taker, bool first)
{
	taker_grant(taker, first);
	handoff_watch_next(taker);
}

void handoff_leave(struct lc_taker *leaver)
{
	struct lock *lock = leaver->entry.lock;
	struct lc_taker *next;

	if (!taker_holds_entry(leaver) || leaver->entry.gone || lock->holding > 1 ||
	    !lock_is_watched(lock) || !session_may_grant(lock->lc))
		return;
	next = find_next(leaver);
	if (!next)
		return;
	handoff_grant(next, true);
	lock->lc->counters.hand_offs++;
	if (!entry_is_proved(&next->entry))
		lock->unproved = &next->entry;
}

void handoff_release(struct lock *lock)
{
	struct lc_taker *leaver, *next;

	if (lock->unproved || !lock->held_back)
		return;
	lock->held_back = false;
	DL_FOREACH_SAFE(lock->takers, leaver, next)
		if (!leaver->entry.wanted && leaver->entry.state == ENTRY_PRESENT)
			taker_step(leaver);
}

void handoff_proved(struct entry *entry)
{
	struct lock *lock = entry->lock;

	if (lock->unproved != entry)
		return;
	lock->unproved = NULL;
	handoff_release(lock);
}

/* ---- entries come and go ---- */

/* The taker before it in the lock's list whose entry is there. */
static struct lc_taker *find_before(struct lc_taker *taker)
{
	struct lc_taker *first = taker->entry.lock->takers, *before = taker;

	while (before != first) {
		before = before->prev;
		if (before->entry.state == ENTRY_PRESENT)
			return before;
	}
	return NULL;
}

/* By rule 2. */
static bool comes_first(const struct lc_taker *taker)
{
	const struct entry *entry = &taker->entry;
	const struct lock *lock = entry->lock;

	return entry->follows >= 0 && entry->number == entry->follows + 1 &&
	       entry->number < NAME_NUMBER_ZONE && taker->state == TAKER_WAITING &&
	       taker_means(taker) && lock->holding == 0 && !lock->unresolved &&
	       session_may_grant(lock->lc);
}

void handoff_present(struct entry *entry, bool made)
{
	struct lc_taker *taker = taker_of(entry), *before = find_before(taker);

	entry->adjacent = before && before->entry.number + 1 == entry->number && entry->number > 0;
	if (entry->adjacent && before->state == TAKER_HELD)
		handoff_watch_next(before);
	if (!made)
		return;
	if (comes_first(taker))
		handoff_grant(taker, true);
	/* The taker that guarded it when its create was sent may have gone meanwhile. */
	else if (taker->state == TAKER_WAITING && taker_needs_list(taker) &&
	         entry->lock->list_sent == entry->created_at)
		lock_want_list(entry->lock);
}

void handoff_absent(struct entry *entry)
{
	struct lc_taker *next = taker_of(entry)->next;

	while (next && !entry_is_queued(&next->entry))
		next = next->next;
	if (next)
		next->entry.adjacent &= entry->adjacent;
}
