/* SPDX-License-Identifier: MIT
 *
 * listing.c - when a lock is listed, and how the answer is matched with the takers here; and what
 * the session's news and the events of watches mean to the locks.
 *
 * All takers of a lock share its listings. A listing judges only the entries that it shows.
 * ZooKeeper numbers entries in the order of their creation. So once a listing shows no entry before
 * ours, none can appear there later, however old the listing is. What it shows is kept
 * (lock/known.h), and decide.c says what that means.
 */
#include "grant/grant.h"

#include "lock/known.h"
#include "lock/lock_watch.h"

#include <errno.h>
#include <string.h>

/* ---- whose entries a listing shows ---- */

static void match_shown(struct lock *lock, const struct queue *queue, uint64_t number)
{
	for (size_t i = 0; i < queue->count; i++) {
		const struct queue_entry *shown = &queue->entries[i];
		struct entry *entry = entry_of_node(lock, shown->znode, &shown->name);

		if (entry)
			entry->shown_in = number;
		else
			late_found(lock, shown->znode, &shown->name, number);
	}
}

/* A waiter was evicted, or its entry has gone with its session: the answer of a write tells. */
static void ask_for_missing(struct lc *lc)
{
	lc->takers->missing = true;
	heartbeat_send(lc);
}

/* The listing was sent on a connection that a write has proved. So an entry that the listing does
 * not show was never made, or is deleted. */
static void match_not_shown(struct lock *lock, uint64_t number)
{
	struct lc_taker *taker, *next;

	DL_FOREACH_SAFE(lock->takers.all, taker, next) {
		struct entry *entry = &taker->entry;

		if (entry->shown_in != number && entry->state == ENTRY_UNKNOWN) {
			entry_not_found(entry); /* a waiter's entry is created again */
		} else if (entry->shown_in != number && entry->state == ENTRY_PRESENT) {
			loss_by_listing(taker);
		} else if (taker->state == TAKER_HELD && !taker->recheck.armed) {
			entry_watch(entry);
		}
		if (taker->wait == WAIT_MISSING)
			ask_for_missing(lock->lc);
		if (!entry->wanted)
			taker_step(taker); /* a leaver without an entry is freed */
	}
}

static void match_takers(struct lock *lock, const struct queue *queue, uint64_t number)
{
	bool was_unknown = lock->batch.unknown > 0;

	match_shown(lock, queue, number);
	match_not_shown(lock, number);
	if (was_unknown && lock->batch.unknown == 0)
		lock_step(lock); /* creates have waited for the outcome */
}

/* Refuses waiters that mean a former lock of this name: they have nothing to wait for. */
static void refuse_misled(struct lock *lock)
{
	struct lc_taker *taker, *next;

	DL_FOREACH_SAFE(lock->takers.all, taker, next)
		if (taker->state == TAKER_WAITING && !taker_means(taker))
			taker_fail(taker, -ENOENT);
}

/* The newest taker's entry may become spare. Then the names are watched, to notice newcomers. */
static bool last_is_repeated(const struct lock *lock)
{
	return lock->takers.all && lock->takers.all->prev->entry.repeated;
}

static bool waits_in_queue(const struct lc_taker *taker)
{
	return taker->state == TAKER_WAITING && taker->entry.state == ENTRY_PRESENT;
}

/* The taker was probing before this listing was sent. */
static bool probes(const struct lc_taker *taker, const struct queue *queue)
{
	return taker->state == TAKER_WAITING && taker->wait == WAIT_PROBING &&
	       queue->listing > taker->since;
}

/* The client of an *incompatible* child would not wait for our entries. Beside such a child no
 * holder can be promised to be alone, so waiters are refused until the child is gone. */
static void refuse_beside_incompatible(struct lock *lock, const struct queue *queue)
{
	struct lc_taker *taker, *next;

	if (!queue->incompatible || lock->takers.waiting == 0)
		return;
	lc_report(lock->lc, LC_ERROR,
	          "%s: %s is of a client that ignores our locks (%s): requests are refused",
	          lock->path, queue->incompatible, queue->client);
	DL_FOREACH_SAFE(lock->takers.all, taker, next)
		if (waits_in_queue(taker) || probes(taker, queue))
			taker_fail(taker, -EPROTO);
}

/* ---- answers ---- */

/* Keeps what the listing shows. `queue` is in its true order. */
static void know(struct lock *lock, struct queue *queue)
{
	if (!lock->lists.later) /* else something was refused meanwhile, and is tried in a second */
		timer_clear(&lock->lc->timers, &lock->lists.recheck);
	if (known_listed(lock, queue)) {
		refuse_beside_incompatible(lock, queue);
		lock->lists.shown = queue->listing;
		if (lock->takers.waiting > 0 || lock->takers.holding > 0 || lock->batch.unknown > 0)
			lock_recheck(lock);
	} else {
		lock_list_later(lock);
	}
}

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
	if (lock->node.version != answer->stat->version)
		watch_fired(&lock->node.watch); /* it is spent: the data has changed */
	queue.made = answer->stat->made;
	match_takers(lock, &queue, number);
	refuse_misled(lock);
	/* Beside an incompatible entry no taker is let in, whatever the order. */
	if (queue.in_zone && !queue.incompatible)
		order_find(lock, &queue, know);
	else
		know(lock, &queue);
	queue_finish(&queue);
}

/* A server says that the lock is gone: its entries went with it. But the lock may have been made
 * again, and a server that lags may not know that yet. So a taker without an entry tries to make
 * one, and the leader answers that. */
static void judge_removed(struct lock *lock)
{
	struct lc_taker *taker, *next;

	known_forget(lock);
	DL_FOREACH_SAFE(lock->takers.all, taker, next) {
		struct entry *entry = &taker->entry;

		if (taker->wait == WAIT_PROBING)
			taker_set_wait(taker, WAIT_QUEUED);
		if (taker->wait == WAIT_MISSING) {
			taker_fail(taker, -ENOENT);
		} else if (entry->state == ENTRY_PRESENT) {
			loss_of_lock(taker);
		} else if (entry->state == ENTRY_UNKNOWN) {
			entry_not_found(entry);
		}
	}
	lock_step(lock);
}

/* This mount may not list the lock: its waiters are refused, and its holders hold on. A later
 * listing may be allowed, and then tells what is not known yet. */
static void refuse_all(struct lock *lock, int error)
{
	struct lc_taker *taker, *next;

	DL_FOREACH_SAFE(lock->takers.all, taker, next)
		if (taker->state == TAKER_WAITING && taker->entry.state != ENTRY_CREATING)
			taker_fail(taker, error);
	if (lock->batch.unknown > 0)
		lock_list_later(lock);
	else if (lock->takers.all)
		lock_recheck(lock);
}

/* Lists the lock again while a create that was given up may yet be done. Reads are under way for
 * the late entries that this listing shows. */
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
	if (answer->result != ENSEMBLE_OK && lock->lists.watching == number)
		lock->lists.watching = 0;
	lock->lists.pending--;
	lock_touch(lock);
	if (answer->result != ENSEMBLE_GONE)
		look_for_late(lock, answer->result);
	lock_unuse(lock);
}

/* ---- sending ---- */

static bool is_of_interest(const struct lock *lock)
{
	return lock->takers.all || lock->late.until_us > 0;
}

static void send_list(struct lock *lock)
{
	/* Among several slots any holder that leaves makes room. Another taker that comes ends the
	 * repeated use of an entry. */
	bool watched = lock->lists.names_wanted || last_is_repeated(lock);

	lock->lists.sent++;
	lock->lists.pending++;
	lock->lists.names_wanted = lock->lists.later = false;
	if (watched)
		lock->lists.watching = lock->lists.sent;
	lock_use(lock);
	lc_submit(lock->lc, ensemble_children(lock->path, watched), lock_listed, lock);
}

void locks_flush(struct lc *lc)
{
	struct lock *lock, *next;

	if (!lc_ready(lc))
		return;
	decide_touched(lc);
	batch_flush(lc);
	DL_FOREACH_SAFE2(lc->locks->wanted, lock, next, lists.next) {
		if (lock->batch.unsent > 0)
			continue; /* a listing would not show the unsent entries */
		lock_unwant_list(lock);
		if (is_of_interest(lock))
			send_list(lock);
	}
}

/* ---- events ---- */

/* Nobody waits here. An own delete fires the watch, too. */
static void names_changed(struct lock *lock)
{
	if (lock->takers.all && lock->takers.all->prev->entry.state == ENTRY_PRESENT)
		known_meet(lock);
	reuse_end(lock);
}

static void lock_changed(struct lock *lock, enum ensemble_change change)
{
	switch (change) {
	case ENSEMBLE_DATA:
		watch_fired(&lock->node.watch);
		known_other_slots(lock);
		if (lock->takers.waiting > 0)
			lock_watch(lock);
		break;
	case ENSEMBLE_DELETED:
		watch_fired(&lock->node.watch);
		reuse_end(lock);
		known_forget(lock);
		lock->batch.last_write_ok = false;
		lock_want_list(lock);
		break;
	case ENSEMBLE_NAMES:
		lock->lists.watching = 0;
		if (lock->takers.waiting == 0)
			names_changed(lock);
		else if (lock->node.info.slots > 1 || !last_is_repeated(lock))
			lock_want_list(lock); /* else our own create fires it, too */
		lock->lists.names_wanted = lock->node.info.slots > 1 && lock->takers.waiting > 0;
		break;
	}
	lock_free_if_unused(lock);
}

static void entry_changed(struct lock *lock, const char *znode, enum ensemble_change change)
{
	struct entry *entry;
	struct entry_name name;
	bool armed;

	lock_other_changed(lock, znode, change);
	entry = name_parse(znode, &name) ? entry_of_node(lock, znode, &name) : NULL;
	if (!entry)
		return;
	taker_drop_spare(taker_of(entry));
	armed = watch_is_armed(&entry->watch);
	watch_fired(&entry->watch);
	if (change != ENSEMBLE_DELETED && entry->wanted)
		entry_watch(entry);
	else if (change == ENSEMBLE_DELETED && armed)
		loss_of_node(taker_of(entry));
	else if (change == ENSEMBLE_DELETED && entry->wanted)
		lock_want_list(lock); /* the watch was spent: a new connection repeats the event */
	taker_step(taker_of(entry));
}

void locks_changed(struct lc *lc, const char *path, enum ensemble_change change)
{
	const char *slash = strrchr(path, '/');
	struct lock *lock = lock_find(lc, path, (size_t)(slash - path));

	if (lock)
		entry_changed(lock, slash + 1, change);
	lock = lock_find(lc, path, strlen(path));
	if (!lock)
		return;
	lock_note_waiters(lock);
	lock_changed(lock, change);
}

/* ---- the session's news ---- */

void locks_resume(struct lc *lc)
{
	struct lock *lock, *next;
	struct lc_taker *taker, *after;

	session_prove(lc);
	HASH_ITER(hh, lc->locks->by_path, lock, next) {
		known_forget(lock);
		lock->lists.shown = lock->lists.watching = 0;
		lock_note_waiters(lock); /* what was watched may have changed */
		if (!is_of_interest(lock))
			continue;
		lock_watch(lock);
		lock_want_list(lock);
		DL_FOREACH_SAFE(lock->takers.all, taker, after) {
			taker_drop_spare(taker); /* it may have been evicted meanwhile */
			entry_write(&taker->entry);
			taker_step(taker);
		}
	}
}

void locks_fresh(struct lc *lc)
{
	struct lock *lock, *next;

	HASH_ITER(hh, lc->locks->by_path, lock, next)
		if (lock->grant.lease_awaited)
			lock_touch(lock);
}

void locks_session_ended(struct lc *lc)
{
	struct lock *lock, *next;
	struct lc_taker *taker, *after;

	lc->takers->missing = false;
	HASH_ITER(hh, lc->locks->by_path, lock, next) {
		lock_use(lock);
		known_forget(lock);
		lock->grant = (struct lock_grant){0};
		lock->lists.shown = lock->lists.watching = 0;
		lock->lists.later = false;
		lock->batch.last_write_ok = lock->batch.together = false;
		lock_watches_gone(lock);
		lock_expect_none(lock);
		timer_clear(&lc->timers, &lock->lists.recheck);
		DL_FOREACH_SAFE(lock->takers.all, taker, after)
			loss_of_session(taker);
		lock_unuse(lock);
	}
}
