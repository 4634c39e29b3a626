/* SPDX-License-Identifier: MIT
 *
 * lock.c - one lock as this mount sees it: its takers here, and the listings that
 * say who is first.
 *
 * All takers of a lock share its listings, and only the first that waits, the *front*,
 * watches anything: while it waits, all behind it do (queue.h). So a queue of any length on
 * one mount costs a listing when its front changes, and three watches: what the front
 * waits for, the front itself, and the lock, which tells the number of slots and that it was
 * not removed and made again. With several slots anybody may make room: then the names in
 * the lock are watched.
 *
 * On one mount an exclusive lock is handed over without asking: the next one is granted
 * in the turn of the release if nobody else's entry can stand in between. That is known
 * where a listing showed the two side by side, or their numbers follow each other:
 * ZooKeeper numbers upwards, so nothing comes in between later, unless the lock is made
 * anew, and that a watch would have told. The leaver's entry guards the lock until the
 * next one's entry was seen on this connection, and is deleted only then.
 *
 * A listing judges only entries that appear in it. ZooKeeper numbers entries in the
 * order of their creation, so once a listing shows no entry before ours, none
 * can appear there later, however old the listing is. An event proves nothing
 * but that it is time to look again.
 */
#include "engine.h"
#include "record.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Who waits or holds, and has not been told anything, looks again: the net below every
 * other rule. */
#define RECHECK_US (60 * 1000000LL)
/* One that found no memory to look. */
#define LATER_US 1000000
/* Locks without takers that stay watched, at most. */
#define IDLE_MAX 256

static void recheck(void *ctx)
{
	struct lock *lock = ctx;

	lock_want_list(lock);
}

static void weigh(struct lock *lock, size_t watch_bytes)
{
	lock->lc->watch_bytes += watch_bytes - lock->watch_bytes;
	lock->watch_bytes = watch_bytes;
}

/* What the front waits for, one of the lock's own entries, and the lock itself. */
static size_t full_weight(const struct lock *lock)
{
	return 3 * (strlen(lock->path) + 4) + 2 * (1 + NAME_PREFIX_MAX + 10);
}

static void not_idle(struct lock *lock)
{
	if (!lock->idle)
		return;
	lock->idle = false;
	weigh(lock, full_weight(lock));
	DL_DELETE2(lock->lc->idle, lock, idle_prev, idle_next);
	lock->lc->idle_count--;
}

int lock_get(struct lc *lc, const char *name, uid_t uid, struct lock **ret_lock)
{
	char *path = lc_path(lc, name);
	struct lock *lock;

	if (!path)
		return -ENOMEM;
	HASH_FIND_STR(lc->locks, path, lock);
	if (lock) {
		free(path);
		if (lock->idle) {
			not_idle(lock);
			share_take_lock(lock, uid);
		}
	} else {
		lock = calloc(1, sizeof(*lock));
		if (!lock) {
			free(path);
			return -ENOMEM;
		}
		lock->lc = lc;
		lock->path = path;
		lock->recheck = (struct timer){.fire = recheck, .ctx = lock};
		HASH_ADD_KEYPTR(hh, lc->locks, lock->path, strlen(lock->path), lock);
		if (!lock->hh.tbl) {
			free(lock->path);
			free(lock);
			return -ENOMEM;
		}
		weigh(lock, full_weight(lock));
		share_take_lock(lock, uid);
	}
	*ret_lock = lock;
	return 0;
}

static void free_lock(struct lock *lock)
{
	struct lc *lc = lock->lc;

	not_idle(lock);
	lock_unwant_list(lock);
	timer_clear(lc, &lock->recheck);
	share_return_lock(lock);
	weigh(lock, 0);
	HASH_DEL(lc->locks, lock);
	free(lock->watched);
	free(lock->path);
	free(lock);
}

static void forget(struct lock *lock)
{
	if (lock->data_armed)
		watch_given_up(lock->lc, lock->path);
	free_lock(lock);
}

/* Locks come back soon: what is known of the last ones is kept. */
static void become_idle(struct lock *lock)
{
	struct lc *lc = lock->lc;

	if (lock->idle)
		return;
	lock->wants_lease = lock->behind_leaver = lock->unresolved = lock->doubtful = false;
	lock_watch_none(lock);
	timer_clear(lc, &lock->recheck);
	lock->idle = true;
	lc->idle_count++;
	DL_APPEND2(lc->idle, lock, idle_prev, idle_next);
	share_return_lock(lock);
	weigh(lock, lock->data_armed ? strlen(lock->path) : 0);
	if (lc->idle_count > IDLE_MAX)
		forget(lc->idle);   /* the one that has been so for longest */
}

void locks_forget_idle(struct lc *lc)
{
	while (lc->idle)
		forget(lc->idle);
}

void lock_settle(struct lock *lock)
{
	if (lock->takers || lock->lists_pending > 0 || lock->watches_pending > 0 || lock->zone ||
	    lock->data_pending)
		return;
	if (lock->data_armed || lock->proven)
		become_idle(lock);
	else
		free_lock(lock);
}

void lock_want_list(struct lock *lock)
{
	if (lock->want_list)
		return;
	lock->want_list = true;
	DL_APPEND2(lock->lc->wanted, lock, wanted_prev, wanted_next);
}

void lock_unwant_list(struct lock *lock)
{
	if (!lock->want_list)
		return;
	lock->want_list = false;
	DL_DELETE2(lock->lc->wanted, lock, wanted_prev, wanted_next);
}

void lock_recheck(struct lock *lock)
{
	if (!lock->recheck.armed)
		timer_set(lock->lc, &lock->recheck, lc_now(lock->lc) + RECHECK_US);
}

void lock_look_later(struct lock *lock)
{
	timer_set(lock->lc, &lock->recheck, lc_now(lock->lc) + LATER_US);
}

/* A read went wrong. Where it was refused nothing tells when it will be good. */
static void look_again(struct lock *lock, enum ensemble_result result)
{
	if (result == ENSEMBLE_NONODE || result == ENSEMBLE_UNKNOWN)
		lock_want_list(lock);
	else
		lock_look_later(lock);
}

bool lock_guarded(const struct lock *lock)
{
	const struct lc_taker *taker;

	if (lock->front || lock->behind_leaver)
		return true;
	if (lock->holding == 0 || lock->slots != 1 || !lock_watched(lock))
		return false;
	if (lock->writing > 0)
		return true;
	/* Those that share: they keep out an exclusive one, and that all behind it, as long as it
	 * stands there, which its own watch tells. */
	DL_FOREACH(lock->takers, taker)
		if (taker_queues(taker))
			return taker->mode == LC_EXCLUSIVE && !taker->instead &&
			       (taker->watch_armed || taker->watch_pending);
	return false;
}

bool lock_bars(const struct lock *lock, enum lc_mode mode)
{
	if (lock->slots != 1 || !lock_watched(lock))
		return false;
	return mode == LC_EXCLUSIVE ? lock->holding > 0 || lock->front : lock->writing > 0;
}

/* Only from one exclusive holder, before whom nobody stands, to the next: those that
 * share are let in by a listing, all of them at once. */
struct lc_taker *lock_next(struct lock *lock, struct lc_taker *holder)
{
	struct lc_taker *taker;

	if (lock->unresolved || !holder->first || holder->mode != LC_EXCLUSIVE)
		return NULL;
	for (taker = holder->next; taker; taker = taker->next) {
		if (!taker_in_queue(taker))
			continue;
		if (!taker->adjacent || taker->gone || taker->number < 0 ||
		    taker->number >= NAME_NUMBER_ZONE)
			return NULL;
		if (taker_wants(taker))
			return taker->state == TAKER_WAITING && taker->mode == LC_EXCLUSIVE &&
			       taker_means(taker) ? taker : NULL;
		/* One of ours that leaves: look behind it. */
	}
	return NULL;
}

void lock_proved(struct lock *lock, struct lc_taker *taker)
{
	struct lc_taker *leaver, *next;

	if (lock->unproved != taker)
		return;
	lock->unproved = NULL;
	if (!lock->held_back)
		return;
	lock->held_back = false;
	DL_FOREACH_SAFE(lock->takers, leaver, next)
		if (!taker_wants(leaver) && leaver->znode == ZNODE_PRESENT)
			taker_step(leaver);
}

/* ---- watching ---- */

static void give_up(struct lock *lock, const char *znode)
{
	char *path = lc_join(lock->path, znode);

	if (path)
		watch_given_up(lock->lc, path);
	free(path);
}

void lock_watch_none(struct lock *lock)
{
	if (lock->watched && lock->watch_armed)
		give_up(lock, lock->watched);
	free(lock->watched);
	lock->watched = NULL;
	lock->watch_armed = false;
}

struct watching {
	struct lock *lock;
	char *znode;
};

static void watch_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct watching *watching = ctx;
	struct lock *lock = watching->lock;

	lock->watches_pending--;
	if (!lock->watched || strcmp(lock->watched, watching->znode) != 0) {
		/* It was given up meanwhile, or another one is waited for. */
		if (answer->result == ENSEMBLE_OK)
			give_up(lock, watching->znode);
	} else {
		/* Whatever it found but the entry itself, look again. */
		lock->watch_armed = answer->result == ENSEMBLE_OK;
		if (!lock->watch_armed && answer->result != ENSEMBLE_GONE)
			look_again(lock, answer->result);
	}
	free(watching->znode);
	free(watching);
	lock_settle(lock);
}

static struct watching *make_watching(struct lock *lock, const char *znode)
{
	struct watching *watching = malloc(sizeof(*watching));

	if (!watching)
		return NULL;
	*watching = (struct watching){.lock = lock, .znode = strdup(znode)};
	if (watching->znode)
		return watching;
	free(watching);
	return NULL;
}

/* Get, not exists: a watch on a name that is gone would stay for ever. */
void lock_watch_entry(struct lock *lock, const char *znode)
{
	struct watching *watching;
	char *path;

	if (lock->watched && strcmp(lock->watched, znode) == 0 &&
	    (lock->watch_armed || lock->watches_pending > 0))
		return;
	lock_watch_none(lock);
	lock->watched = strdup(znode);
	path = lc_join(lock->path, znode);
	watching = lock->watched && path ? make_watching(lock, znode) : NULL;
	if (watching) {
		lock->watches_pending++;
		lc_submit_beside(lock->lc, &(struct ensemble_op){.kind = ENSEMBLE_GET, .path = path, .watch = true},
		                 1, watch_answered, watching);
	} else {
		lock_watch_none(lock);
		lock_look_later(lock);
	}
	free(path);
}

struct lc_taker *lock_named(struct lock *lock, const struct entry_name *name)
{
	struct lc_taker *taker = NULL;

	if (name->ours && name->session_half == lock->lc->session.half)
		HASH_FIND(hh, lock->lc->takers, &name->taker_half, sizeof(name->taker_half), taker);
	return taker && taker->lock == lock ? taker : NULL;
}

struct lc_taker *lock_owner(struct lock *lock, const char *znode, const struct entry_name *name)
{
	struct lc_taker *taker = lock_named(lock, name);

	return taker && taker_owns(taker, znode) ? taker : NULL;
}

/* ---- the lock itself ---- */

/* Removed and made again since it was last seen: what is remembered is void. */
static void see_czxid(struct lock *lock, int64_t czxid)
{
	struct lc_taker *taker;

	if (lock->czxid != czxid) {
		DL_FOREACH(lock->takers, taker)
			taker->adjacent = taker->first = false;
		lock->slots = 0;
		lock->data_armed = false;
	}
	lock->czxid = czxid;
}

bool lock_watched(const struct lock *lock)
{
	return lock->data_armed && lock->data_connection == lock->lc->session.connections;
}

static void data_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct lock *lock = ctx;
	unsigned slots;

	lock->data_pending = false;
	if (answer->result == ENSEMBLE_OK) {
		slots = record_slots(answer->data, (size_t)answer->data_len);
		see_czxid(lock, answer->stat->czxid);
		lock->data_armed = true;
		lock->data_connection = lock->lc->session.connections;
		lock->version = answer->stat->version;
		/* The last listing was judged for one slot if it was not known better. */
		if (slots != 1 || lock->slots > 1 || lock->doubtful)
			lock_want_list(lock);
		lock->slots = slots;
		lock->doubtful = false;
	} else if (answer->result != ENSEMBLE_UNKNOWN && answer->result != ENSEMBLE_GONE) {
		look_again(lock, answer->result);
	}
	lock_settle(lock);
}

void lock_watch_data(struct lock *lock)
{
	if (lock->data_pending || lock_watched(lock) || !session_ready(lock->lc))
		return;
	lock->data_pending = true;
	lc_submit_beside(lock->lc, &(struct ensemble_op){.kind = ENSEMBLE_GET, .path = lock->path, .watch = true},
	                 1, data_answered, lock);
}

/* A watch on the lock's own node. */
static void lock_changed(struct lock *lock, enum ensemble_change change)
{
	switch (change) {
	case ENSEMBLE_DATA:
		lock->data_armed = false;
		if (lock->waiting > 0)
			lock_watch_data(lock);
		break;
	case ENSEMBLE_DELETED:
		lock->data_armed = lock->proven = false;
		lock_want_list(lock);
		break;
	case ENSEMBLE_NAMES:
		if (lock->waiting > 0)
			lock_want_list(lock);
		break;
	}
	lock_settle(lock);
}

static void entry_changed(struct lock *lock, const char *znode, enum ensemble_change change)
{
	struct lc_taker *taker;
	struct entry_name name;
	bool armed;

	if (lock->watched && strcmp(lock->watched, znode) == 0) {
		lock->watch_armed = false;
		if (change == ENSEMBLE_DELETED || !session_ready(lock->lc))
			lock_want_list(lock);
		else
			lock_watch_entry(lock, znode);   /* the queue is as it was */
	}
	taker = name_parse(znode, &name) ? lock_owner(lock, znode, &name) : NULL;
	if (!taker || !taker_wants(taker))
		return;
	armed = taker->watch_armed;
	taker->watch_armed = false;
	if (change == ENSEMBLE_DELETED) {
		if (armed)
			taker_gone(taker);
		lock_want_list(lock);
	} else {
		taker_watch_self(taker);
	}
}

void locks_changed(struct lc *lc, const char *path, enum ensemble_change change)
{
	const char *slash = strrchr(path, '/');
	struct lock *lock;

	HASH_FIND(hh, lc->locks, path, (size_t)(slash - path), lock);
	if (lock)
		entry_changed(lock, slash + 1, change);
	HASH_FIND_STR(lc->locks, path, lock);
	if (lock)
		lock_changed(lock, change);
}

/* ---- listings ---- */

/* Who means the lock that had this name before has nothing to wait for. */
static void refuse_misled(struct lock *lock)
{
	struct lc_taker *taker, *next;

	DL_FOREACH_SAFE(lock->takers, taker, next)
		if (taker->state == TAKER_WAITING && !taker_means(taker))
			taker_fail(taker, -ENOENT);
}

static void judge(struct lock *lock, const struct ensemble_answer *answer, uint64_t number)
{
	struct queue queue;

	if (queue_build(answer->names, (size_t)answer->name_count, &queue) < 0) {
		lock_look_later(lock);
		return;
	}
	queue.listing = number;
	see_czxid(lock, answer->stat->czxid);
	queue.slots_known = lock->slots > 0 && lock->version == answer->stat->version;
	if (!queue.slots_known)
		lock->data_armed = false;   /* or its event is on its way */
	queue_judge(&queue, queue.slots_known ? lock->slots : 1);
	lock_match(lock, &queue, number);
	refuse_misled(lock);
	if (queue.in_zone)
		zone_order(lock, &queue);
	else
		lock_judge(lock, &queue);
	queue_finish(&queue);
}

/* A server says that the lock is not there. Entries went with it; but it may have
 * been made again, and a server that lags may not know yet: who has no entry there
 * tries to make one, which the leader answers. */
static void removed(struct lock *lock)
{
	struct lc_taker *taker, *next;

	lock->unresolved = lock->behind_leaver = false;
	DL_FOREACH_SAFE(lock->takers, taker, next) {
		taker->probing = false;
		if (taker->znode == ZNODE_PRESENT)
			taker_removed(taker);
		else if (taker->znode == ZNODE_UNKNOWN && !taker->pending)
			taker_not_found(taker);
	}
	DL_FOREACH_SAFE(lock->takers, taker, next)
		taker_step(taker);
}

/* The lock is closed to us. Who holds it does so all the same, as far as is known; what is
 * not known yet, and whether it has changed, the next listing may tell. */
static void refuse_all(struct lock *lock, int error)
{
	struct lc_taker *taker, *next;

	DL_FOREACH_SAFE(lock->takers, taker, next) {
		if (taker->gone && taker->znode == ZNODE_PRESENT)
			taker_vanished(taker);
		if (taker->state == TAKER_WAITING && taker->znode != ZNODE_CREATING)
			taker_fail(taker, error);
	}
	if (lock->unresolved)
		lock_look_later(lock);
	else if (lock->takers)
		lock_recheck(lock);
}

static void listed(void *ctx, const struct ensemble_answer *answer)
{
	struct lock *lock = ctx;
	/* Answers come in the order of sending, so the count tells which it is. */
	uint64_t number = lock->list_sent - lock->lists_pending + 1;

	/* Keeps the lock while its takers come and go. */
	switch (answer->result) {
	case ENSEMBLE_OK:
		judge(lock, answer, number);
		break;
	case ENSEMBLE_NONODE:
		removed(lock);
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
	lock->lists_pending--;
	lock_settle(lock);
}

void locks_flush(struct lc *lc)
{
	struct lock *lock, *next;

	if (!session_ready(lc))
		return;
	batch_flush(lc);
	DL_FOREACH_SAFE2(lc->wanted, lock, next, wanted_next) {
		if (lock->kept > 0)
			continue;   /* it would not show those */
		DL_DELETE2(lc->wanted, lock, wanted_prev, wanted_next);
		lock->want_list = false;
		if (!lock->takers)
			continue;
		lock->list_sent++;
		lock->lists_pending++;
		lc_submit_beside(lc, &(struct ensemble_op){.kind = ENSEMBLE_CHILDREN, .path = lock->path,
		                                    .watch = lock->slots > 1 && lock->waiting > 0}, 1,
		          listed, lock);
	}
}

/* ---- the session's news ---- */

void locks_resume(struct lc *lc)
{
	struct lock *lock, *next;
	struct lc_taker *taker, *after;

	unwatches_resume(lc);
	HASH_ITER(hh, lc->locks, lock, next) {
		lock->unresolved = false;
		DL_FOREACH(lock->takers, taker)
			lock->unresolved |= taker->znode == ZNODE_UNKNOWN;
		if (!lock->takers)
			continue;
		lock_want_list(lock);
		DL_FOREACH_SAFE(lock->takers, taker, after) {
			entry_write(taker);
			taker_step(taker);
		}
	}
}

void locks_fresh(struct lc *lc)
{
	struct lock *lock, *next;

	HASH_ITER(hh, lc->locks, lock, next)
		if (lock->wants_lease)
			lock_want_list(lock);
}

void locks_lease_over(struct lc *lc)
{
	struct lc_taker *taker, *next;

	HASH_ITER(hh, lc->takers, taker, next)
		if (taker->state == TAKER_HELD)
			taker_lose(taker);
}

void locks_session_ended(struct lc *lc)
{
	struct lock *lock, *next;
	struct lc_taker *taker, *after;

	lc->missing = false;
	unwatches_clear(lc);
	HASH_ITER(hh, lc->locks, lock, next) {
		lock->front = lock->unproved = NULL;
		lock->unresolved = lock->wants_lease = lock->behind_leaver = false;
		lock->data_armed = lock->doubtful = lock->proven = lock->together = false;
		lock->watch_armed = false;
		lock_watch_none(lock);
		timer_clear(lc, &lock->recheck);
		lock->lists_pending++;   /* keeps the lock while its takers go */
		DL_FOREACH_SAFE(lock->takers, taker, after)
			taker_session_ended(taker);
		lock->lists_pending--;
		lock_settle(lock);
	}
}
