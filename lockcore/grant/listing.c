/* SPDX-License-Identifier: MIT
 *
 * listing.c - see listing.h.
 *
 * All takers of a lock share its listings. Only the first one that waits, the *front*, needs
 * anything watched: while it waits, all behind it do (queue.h). So a queue of any length on one
 * mount costs a listing when its front changes, and three watches: of the entry that the front
 * waits for, of the front's own entry, and of the lock's node. With several slots anybody's
 * going may make room: then the names in the lock are watched.
 *
 * A listing judges only the entries that it shows. ZooKeeper numbers entries in the order of
 * their creation. So once a listing shows no entry before ours, none can appear there later,
 * however old the listing is. An event is the time to look again, unless handoff.c knows better.
 */
#include "grant/listing.h"

#include "grant/admission.h"
#include "grant/handoff.h"
#include "grant/order.h"
#include "grant/reuse.h"
#include "lock/late.h"
#include "lock/lock_watch.h"
#include "lock/loss.h"

#include <errno.h>
#include <string.h>

/* ---- whose entries a listing shows ---- */

/* An entry of no taker here. With the UUID of a create that was not answered, it may be that
 * one's. */
static void match_stranger(struct lock *lock, const struct queue_entry *shown, uint64_t number)
{
	struct entry *entry = entry_named(lock, &shown->name);

	if (entry && entry_may_be(entry, shown->znode))
		entry_found(entry, shown->znode, number);
	else
		late_found(lock, shown->znode, &shown->name, number);
}

static void match_shown(struct lock *lock, const struct queue *queue, uint64_t number)
{
	struct entry *entry, *before = NULL;

	for (size_t i = 0; i < queue->count; i++, before = entry) {
		const struct queue_entry *shown = &queue->entries[i];

		entry = entry_of_node(lock, shown->znode, &shown->name);
		if (!entry) {
			match_stranger(lock, shown, number);
			continue;
		}
		entry->lists.last = number;
		if (before && entry_is_queued(before) && !queue->in_zone)
			entry->place.adjacent = true;
	}
}

/* The listing was sent on a connection that was proved by a write. So an entry that is not in
 * it was never made, or is deleted. */
static void match_not_shown(struct lock *lock, uint64_t number)
{
	struct lc_taker *taker, *next;

	DL_FOREACH_SAFE(lock->takers.all, taker, next) {
		struct entry *entry = &taker->entry;

		if (entry->lists.last != number && entry->state == ENTRY_UNKNOWN &&
		    !entry->pending) {
			entry_not_found(entry);
			taker_free_if_done(taker); /* a waiter's is created again, in order */
		} else if (entry->lists.last != number && entry->state == ENTRY_PRESENT) {
			loss_by_listing(taker);
		} else if (taker->state == TAKER_HELD && !taker->recheck.armed) {
			entry_watch(entry);
		}
	}
}

static bool has_unknown(const struct lock *lock)
{
	const struct lc_taker *taker;

	DL_FOREACH(lock->takers.all, taker)
		if (taker->entry.state == ENTRY_UNKNOWN)
			return true;
	return false;
}

static void step_all(struct lock *lock)
{
	struct lc_taker *taker, *next;

	DL_FOREACH_SAFE(lock->takers.all, taker, next)
		taker_step(taker);
}

static void match_takers(struct lock *lock, const struct queue *queue, uint64_t number)
{
	bool was_unresolved = lock->batch.unresolved;

	match_shown(lock, queue, number);
	match_not_shown(lock, number);
	lock->batch.unresolved = has_unknown(lock);
	if (!was_unresolved || lock->batch.unresolved)
		return;
	step_all(lock);
}

/* A taker that means the lock that had this name before has nothing to wait for. */
static void refuse_misled(struct lock *lock)
{
	struct lc_taker *taker, *next;

	DL_FOREACH_SAFE(lock->takers.all, taker, next)
		if (taker->state == TAKER_WAITING && !taker_means(taker))
			taker_fail(taker, -ENOENT);
}

/* Its entry may become spare, as long as nobody comes. */
static bool last_is_repeated(const struct lock *lock)
{
	return lock->takers.all && lock->takers.all->prev->entry.repeated;
}

/* ---- answers ---- */

static void judge_listing(struct lock *lock, const struct ensemble_answer *answer, uint64_t number)
{
	struct queue queue;

	if (queue_build(lock->lc->clients, answer->names, (size_t)answer->name_count, &queue) < 0) {
		lock_list_later(lock);
		return;
	}
	queue.listing = number;
	if (queue.count > 1)
		reuse_end(lock);
	lock_see_czxid(lock, answer->stat->czxid);
	queue.slots_known = lock->node.slots > 0 && lock->node.version == answer->stat->version;
	if (!queue.slots_known)
		watch_fired(&lock->node.watch); /* or its event is on its way */
	queue_judge(&queue, queue.slots_known ? lock->node.slots : 1);
	match_takers(lock, &queue, number);
	refuse_misled(lock);
	/* Beside an incompatible entry nobody is let in, whatever the order. */
	if (queue.in_zone && !queue.incompatible)
		order_find(lock, &queue, admit);
	else
		admit(lock, &queue);
	queue_finish(&queue);
}

/* A server says that the lock is not there. Its entries went with it. But it may have been made
 * again, and a server that lags may not know that yet: a taker that has no entry there tries to
 * make one, which the leader answers. */
static void judge_removed(struct lock *lock)
{
	struct lc_taker *taker, *next;

	lock->batch.unresolved = false;
	if (lock->front.obstacle == OBSTACLE_LEAVER)
		lock->front.obstacle = OBSTACLE_OTHER;
	DL_FOREACH_SAFE(lock->takers.all, taker, next) {
		struct entry *entry = &taker->entry;

		if (taker->wait == WAIT_PROBING)
			taker_set_wait(taker, WAIT_QUEUED);
		if (entry->state == ENTRY_PRESENT) {
			loss_of_lock(taker);
		} else if (entry->state == ENTRY_UNKNOWN && !entry->pending) {
			entry_not_found(entry);
			taker_free_if_done(taker);
		}
	}
	step_all(lock);
}

/* The lock is closed to us. A taker that holds it does so all the same, as far as is known. The
 * next listing may tell what is not known yet, and whether that has changed. */
static void refuse_all(struct lock *lock, int error)
{
	struct lc_taker *taker, *next;

	DL_FOREACH_SAFE(lock->takers.all, taker, next) {
		bool has_left = taker->state == TAKER_LEFT;

		if (taker->entry.gone && taker->entry.state == ENTRY_PRESENT)
			loss_by_listing(taker); /* which frees it, if it has left */
		if (!has_left && taker->state == TAKER_WAITING &&
		    taker->entry.state != ENTRY_CREATING)
			taker_fail(taker, error);
	}
	if (lock->batch.unresolved)
		lock_list_later(lock);
	else if (lock->takers.all)
		lock_recheck(lock);
}

/* The late entries of this listing are being asked. */
static void look_for_late(struct lock *lock, enum ensemble_result result)
{
	bool told = result == ENSEMBLE_OK || result == ENSEMBLE_NONODE;

	if (told && lc_now(lock->lc) >= lock->late.until_us)
		lock_expect_none(lock);
	else if (lock->late.until_us > 0)
		lock_recheck(lock);
}

static void lock_listed(void *ctx, const struct ensemble_answer *answer)
{
	struct lock *lock = ctx;
	/* Answers come in the order of sending, so the count tells which one this is. */
	uint64_t number = lock->lists.sent - lock->lists.pending + 1;

	switch (answer->result) {
	case ENSEMBLE_OK:
		judge_listing(lock, answer, number);
		break;
	case ENSEMBLE_NONODE:
		judge_removed(lock);
		break;
	case ENSEMBLE_NOAUTH:
		refuse_all(lock, -EACCES);
		break;
	case ENSEMBLE_EXISTS:
	case ENSEMBLE_NOTEMPTY:
	case ENSEMBLE_BADVERSION:
	case ENSEMBLE_NOCHILDREN:
	case ENSEMBLE_INVALID:
	case ENSEMBLE_REFUSED:
		refuse_all(lock, -ENOLCK);
		break;
	case ENSEMBLE_UNKNOWN:
		lock_want_list(lock);
		break;
	case ENSEMBLE_GONE:
		break;
	}
	lock->lists.pending--;
	if (answer->result != ENSEMBLE_GONE)
		look_for_late(lock, answer->result);
	lock_unuse(lock);
}

/* ---- sending ---- */

/* Takers have changed their states since the last turn. */
static void look_at_touched(struct lc *lc)
{
	while (lc->locks->touched) {
		struct lock *lock = lc->locks->touched;

		lock_untouch(lock);
		lock_use(lock);
		handoff_release(lock);
		if (lock_front_gone(lock)) {
			if (!handoff_by_event(lock, lock_front_gone(lock)))
				lock_want_list(lock);
			lock_watch_none(lock);
		}
		if (lock->takers.waiting > 0 && !lock->lists.wanted && !lock_needs_no_list(lock) &&
		    !handoff_line_up(lock))
			lock_want_list(lock);
		if (!lock->takers.all)
			lock_watch_none(lock);
		lock_unuse(lock);
	}
}

static bool is_of_interest(const struct lock *lock)
{
	return lock->takers.all || lock->late.until_us > 0;
}

static void send_list(struct lock *lock)
{
	/* Any holder's going makes room; or somebody who comes is to end the use of an entry. */
	bool watched = (lock->node.slots > 1 && lock->takers.waiting > 0) || last_is_repeated(lock);

	lock->lists.sent++;
	lock->lists.pending++;
	lock_use(lock);
	lc_submit(lock->lc, ensemble_children(lock->path, watched), lock_listed, lock);
}

void locks_flush(struct lc *lc)
{
	struct lock *lock, *next;

	if (!session_is_ready(lc))
		return;
	look_at_touched(lc);
	batch_flush(lc);
	DL_FOREACH_SAFE2(lc->locks->wanted, lock, next, lists.next) {
		if (lock->batch.unsent > 0)
			continue; /* a listing would not show those entries */
		lock_unwant_list(lock);
		if (is_of_interest(lock))
			send_list(lock);
	}
}

/* ---- events ---- */

static void lock_changed(struct lock *lock, enum ensemble_change change)
{
	switch (change) {
	case ENSEMBLE_DATA:
		watch_fired(&lock->node.watch);
		if (lock->takers.waiting > 0)
			lock_watch(lock);
		break;
	case ENSEMBLE_DELETED:
		watch_fired(&lock->node.watch);
		reuse_end(lock);
		lock->batch.last_write_ok = false;
		lock_want_list(lock);
		break;
	case ENSEMBLE_NAMES:
		if (lock->takers.waiting == 0)
			reuse_end(lock);
		else if (lock->node.slots > 1 || !last_is_repeated(lock))
			lock_want_list(lock); /* else it tells of our own create, too */
		break;
	}
	lock_free_if_unused(lock);
}

/* The entry that the front waits for. */
static void front_changed(struct lock *lock, const char *znode, enum ensemble_change change)
{
	bool watched = lock_front_is_watched(lock);

	lock_front_fired(lock);
	if (change == ENSEMBLE_DELETED && watched && handoff_by_event(lock, znode))
		lock_watch_none(lock);
	else if (change == ENSEMBLE_DELETED)
		lock_want_list(lock);
	else
		lock_watch_front(lock, znode); /* the queue is as it was */
	/* A holder says that it holds: then it is the first, as a listing is to show in time. */
	if (change == ENSEMBLE_DATA && lock->front.taker &&
	    lock->front.taker->entry.place.ahead_is != AHEAD_FIRST)
		lock_want_list(lock);
}

static void entry_changed(struct lock *lock, const char *znode, enum ensemble_change change)
{
	struct entry *entry;
	struct entry_name name;
	bool armed;

	if (lock_front_is(lock, znode))
		front_changed(lock, znode, change);
	entry = name_parse(znode, &name) ? entry_of_node(lock, znode, &name) : NULL;
	if (!entry)
		return;
	taker_drop_spare(taker_of(entry));
	if (!entry->wanted)
		return;
	armed = watch_is_armed(&entry->watch);
	watch_fired(&entry->watch);
	if (change == ENSEMBLE_DELETED) {
		if (armed)
			loss_of_node(taker_of(entry));
		lock_want_list(lock);
	} else {
		entry_watch(entry);
	}
}

void locks_changed(struct lc *lc, const char *path, enum ensemble_change change)
{
	const char *slash = strrchr(path, '/');
	struct lock *lock = lock_find(lc, path, (size_t)(slash - path));

	if (lock)
		entry_changed(lock, slash + 1, change);
	lock = lock_find(lc, path, strlen(path));
	if (lock)
		lock_changed(lock, change);
}

/* ---- the session's news ---- */

void locks_resume(struct lc *lc)
{
	struct lock *lock, *next;
	struct lc_taker *taker, *after;

	session_prove(lc);
	HASH_ITER(hh, lc->locks->by_path, lock, next) {
		lock->batch.unresolved = has_unknown(lock);
		if (!is_of_interest(lock))
			continue;
		lock_want_list(lock);
		DL_FOREACH_SAFE(lock->takers.all, taker, after) {
			entry_write(&taker->entry);
			taker_step(taker);
		}
	}
}

void locks_fresh(struct lc *lc)
{
	struct lock *lock, *next;

	HASH_ITER(hh, lc->locks->by_path, lock, next)
		if (lock->front.obstacle == OBSTACLE_LEASE)
			lock_want_list(lock);
}

void locks_session_ended(struct lc *lc)
{
	struct lock *lock, *next;
	struct lc_taker *taker, *after;

	lc->takers->missing = false;
	HASH_ITER(hh, lc->locks->by_path, lock, next) {
		lock_use(lock);
		lock->front.taker = NULL;
		lock->handoff.unseen = NULL;
		lock->front.obstacle = OBSTACLE_OTHER;
		lock->batch.unresolved = lock->lists.slots_asked = false;
		lock->batch.last_write_ok = lock->batch.together = false;
		lock_watches_gone(lock);
		lock_expect_none(lock);
		timer_clear(&lc->timers, &lock->lists.recheck);
		DL_FOREACH_SAFE(lock->takers.all, taker, after)
			loss_of_session(taker);
		lock_unuse(lock);
	}
}
