/* SPDX-License-Identifier: MIT
 *
 * handoff.c - grants without a listing. This is the whole rule, and its proof.
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
 *      - that both entries are there. The leaver's is known by its own watch or is `gone`. The next
 *        one's is not known: anybody may have deleted it, and a watch tells only what the server of
 *        this mount has heard, which may lag. So it is *unseen*, and the leaver's entry stays as a
 *        guard: no other entry can be first as long as it is there. It is deleted in one
 *        transaction with the check that the next one's entry is there. If that is refused, either
 *        entry may be the cause, and the next one's is looked at: a server answers in order, so
 *        what it shows behind the answer of a write is no older than that write, which was sent
 *        after the grant. Either way the next one was a holder whose entry was there. If somebody
 *        deletes that later, or has deleted the guard as well, it holds until the news comes: like
 *        any holder whose entry somebody deletes;
 *      - a lease that is good for a grant, as always.
 *
 * 2. A create in the transaction that deletes the first entry (batch.c). If the new entry's
 *    number is the next one after the deleted entry's, no entry came in between, and none was
 *    before the deleted one: the new one is first.
 *
 * 3. When the entry of another client is gone, by an event. The queue:
 *        [X, ours]   B, another client's   A, ours
 *    A is our entry, and B the one `ahead` of it: for an exclusive A the one directly before it,
 *    for a shared A the nearest exclusive one before it. B is `first` if no entry stands before
 *    it that A would have to wait for. So when B is gone, A has to wait for no entry: A may hold.
 *      - That B is ahead of A, and first, was shown by a listing, however old. Since numbers
 *        only rise, what comes later comes behind A; but not a late reader of B's client (rule 42):
 *        then B is not `ahead`.
 *      - Or the listing showed our entry X directly before B, X was first, and X is gone now:
 *        then B is first since (AHEAD_AFTER_OURS). X was the holder before, as a rule. So a
 *        mount need not list the lock for each of its waiters.
 *      - A is there. Its watch was answered on this connection (entry_is_seen), and nothing
 *        has come since. A server sends the events of one connection in the order in which they
 *        happened: had A been deleted before B, its event would be here. If A is deleted after B, A
 *        is a holder whose entry is deleted, and loses the lock by that. The same holds if one
 *        transaction deleted both, whichever event comes first.
 *      - B is gone for certain: the watch was set on this connection, so the event is no replay
 *        (lock_front_is_watched); or B was not there when it was to be watched. A server that lags
 *        sends it late, never too early. If another client has made a node of B's name meanwhile,
 *        it has chosen the number itself, and such a client could take the lock from any holder.
 *      - The lock is the one that was listed, since A's entry stands in it. It has one slot:
 *        its node is watched, and the watch is good.
 *      - A mark in A (evict.c) is an event of A's watch: A is not seen until it was read.
 *      - A lease that is good for a grant, as always.
 *    All own takers that wait for B alone are granted: one exclusive taker, or all shared ones. A
 *    client that does not wait for our entries may have come behind A. It would not have waited for
 *    a holder either.
 *
 * Not where the numbers repeat (NAME_NUMBER_ZONE), and the third not with several slots. By the
 * first two only one exclusive holder follows another one, which was the first of the queue,
 * whatever the number of slots: a listing lets shared takers in, all of them at once.
 */
#include "grant/handoff.h"

#include "lock/lock_watch.h"

#include <string.h>

/* The taker that follows a holder, by rule 1. NULL: only a listing can show it. */
static struct lc_taker *find_next(struct lc_taker *holder)
{
	struct lc_taker *taker;

	if (holder->entry.lock->batch.unresolved || !holder->entry.place.first ||
	    holder->entry.mode != LC_EXCLUSIVE)
		return NULL;
	for (taker = holder->next; taker; taker = taker->next) {
		const struct entry *entry = &taker->entry;

		if (!entry_is_queued(entry))
			continue;
		if (!entry->place.adjacent || entry->gone || entry->number < 0 ||
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
	if (!holder->recheck.armed)
		entry_watch(&next->entry);
}

/* Only a listing can tell who stands before the next taker of ours. */
static bool next_is_unplaced(const struct lc_taker *holder)
{
	const struct lc_taker *next = holder->next;

	while (next && (next->state != TAKER_WAITING || next->entry.state == ENTRY_ABSENT))
		next = next->next;
	return next && next->entry.state == ENTRY_PRESENT && next->entry.mode == LC_EXCLUSIVE &&
	       next->entry.number >= 0 && next->entry.number < NAME_NUMBER_ZONE &&
	       holder->entry.lock->node.slots == 1 && !next->entry.place.adjacent &&
	       !next->entry.place.ahead;
}

void handoff_grant(struct lc_taker *taker, bool first)
{
	taker_grant(taker, first);
	entry_set_ahead(&taker->entry, NULL, AHEAD_UNKNOWN);
	handoff_watch_next(taker);
	/* In time: when the holder leaves, that is known. */
	if (next_is_unplaced(taker))
		lock_want_list(taker->entry.lock);
}

static void delete_held_back(struct lock *lock)
{
	struct lc_taker *leaver, *next;

	if (!lock->handoff.held_back)
		return;
	lock->handoff.held_back = false;
	DL_FOREACH_SAFE(lock->takers.all, leaver, next)
		if (!leaver->entry.wanted && leaver->entry.state == ENTRY_PRESENT)
			taker_step(leaver);
}

void handoff_leave(struct lc_taker *leaver)
{
	struct lock *lock = leaver->entry.lock;
	struct lc_taker *next;

	if (!taker_holds_entry(leaver) || leaver->entry.gone || lock->takers.holding > 1 ||
	    !lock_is_watched(lock) || !session_may_grant(lock->lc))
		return;
	next = find_next(leaver);
	if (!next)
		return;
	handoff_grant(next, true);
	lock->lc->counters.hand_offs++;
	lock->handoff.unseen = &next->entry;
	entry_touch(&next->entry);
	delete_held_back(lock); /* they guard it, too, and are tried with its check */
}

void handoff_release(struct lock *lock)
{
	if (!lock->handoff.unseen)
		delete_held_back(lock);
}

void handoff_seen(struct entry *entry)
{
	struct lock *lock = entry->lock;

	if (lock->handoff.unseen != entry)
		return;
	lock->handoff.unseen = NULL;
	entry_touch(entry);
	handoff_release(lock);
}

/* ---- from another client ---- */

/* It may hold when that node is gone, by rule 3. */
static bool is_next(const struct lc_taker *taker, const char *znode)
{
	const struct entry *entry = &taker->entry;

	return taker->state == TAKER_WAITING && entry->wanted &&
	       entry->place.ahead_is == AHEAD_FIRST && strcmp(entry->place.ahead, znode) == 0;
}

void handoff_wait(struct lock *lock, struct lc_taker *front, const char *znode)
{
	struct lc_taker *taker;

	lock->front.taker = front;
	lock_watch(lock);
	entry_watch(&front->entry);
	DL_FOREACH(lock->takers.all, taker)
		if (is_next(taker, znode))
			entry_watch(&taker->entry);
	lock_watch_front(lock, znode);
}

bool handoff_line_up(struct lock *lock)
{
	struct lc_taker *taker = lock->takers.all;

	while (taker && (taker->state != TAKER_WAITING || taker->entry.state == ENTRY_ABSENT))
		taker = taker->next;
	if (!taker || !taker->entry.place.ahead)
		return false;
	handoff_wait(lock, taker, taker->entry.place.ahead);
	return true;
}

bool handoff_by_event(struct lock *lock, const char *znode)
{
	struct lc_taker *taker, *next;
	bool granted = false;

	if (lock->node.slots != 1 || !lock_is_watched(lock))
		return false;
	DL_FOREACH_SAFE(lock->takers.all, taker, next) {
		if (!is_next(taker, znode) || !entry_is_seen(&taker->entry) ||
		    !session_may_grant(lock->lc))
			continue;
		handoff_grant(taker, taker->entry.mode == LC_EXCLUSIVE);
		granted = true;
	}
	return granted;
}

/* ---- entries come and go ---- */

/* The taker before it in the lock's list whose entry is there. */
static struct lc_taker *find_before(struct lc_taker *taker)
{
	struct lc_taker *first = taker->entry.lock->takers.all, *before = taker;

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

	return entry->place.follows >= 0 && entry->number == entry->place.follows + 1 &&
	       entry->number < NAME_NUMBER_ZONE && taker->state == TAKER_WAITING &&
	       taker_means(taker) && lock->takers.holding == 0 && !lock->batch.unresolved &&
	       session_may_grant(lock->lc);
}

void handoff_present(struct entry *entry, bool made)
{
	struct lc_taker *taker = taker_of(entry), *before = find_before(taker);

	entry->place.adjacent =
		before && before->entry.number + 1 == entry->number && entry->number > 0;
	if (entry->place.adjacent && before->state == TAKER_HELD)
		handoff_watch_next(before);
	if (!made)
		return;
	if (entry->place.follows >= 0)
		entry->lock->batch.overtaken = entry->number != entry->place.follows + 1;
	if (comes_first(taker))
		handoff_grant(taker, true);
	/* The taker that guarded it when its create was sent may have gone meanwhile. */
	else if (taker->state == TAKER_WAITING && taker_needs_list(taker) &&
	         entry->lock->lists.sent == entry->lists.created_at)
		lock_want_list(entry->lock);
}

void handoff_absent(struct entry *entry)
{
	struct lc_taker *next = taker_of(entry)->next;

	while (next && !entry_is_queued(&next->entry))
		next = next->next;
	if (!next)
		return;
	next->entry.place.adjacent &= entry->place.adjacent;
	if (next->entry.place.ahead_is != AHEAD_AFTER_OURS)
		return;
	next->entry.place.ahead_is = AHEAD_UNKNOWN;
	if (entry->place.first)
		next->entry.place.ahead_is = AHEAD_FIRST;
}
