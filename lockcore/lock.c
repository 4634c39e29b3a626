/* SPDX-License-Identifier: MIT
 *
 * lock.c - one lock as this mount sees it: its takers here, and the listings that
 * say who is first.
 *
 * All takers of a lock share its listings, and only the *front* one of them, the
 * first that waits and has none of ours before it, watches anything: those behind
 * it cannot be first while it stands. So a queue of any length on one mount costs
 * a listing when its front changes, and two watches: the front's predecessor, and
 * the front itself.
 *
 * On one mount a lock is handed over without asking: the next one is granted in the turn
 * of the release if nobody else's entry can stand in between. That is known where a
 * listing showed the two side by side, or their numbers follow each other: ZooKeeper
 * numbers upwards, so nothing comes in between later. The leaver's entry guards
 * the lock until the next one's entry was seen on this connection, and is deleted
 * only then.
 *
 * A listing judges only entries that appear in it. ZooKeeper numbers entries in the
 * order of their creation, so once a listing shows no entry before ours, none
 * can appear there later, however old the listing is. An event proves nothing
 * but that it is time to look again.
 */
#include "engine.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A waiter that nothing has woken looks again: the net below every other rule. */
#define RECHECK_US (60 * 1000000LL)
/* One that found no memory to look. */
#define LATER_US 1000000

static void recheck(void *ctx)
{
	struct lock *lock = ctx;

	lock_want_list(lock);
}

int lock_get(struct lc *lc, const char *name, struct lock **ret_lock)
{
	char *path = lc_path(lc, name);
	struct lock *lock;

	if (!path)
		return -ENOMEM;
	HASH_FIND_STR(lc->locks, path, lock);
	if (lock) {
		free(path);
	} else {
		lock = calloc(1, sizeof(*lock));
		if (!lock) {
			free(path);
			return -ENOMEM;
		}
		lock->lc = lc;
		lock->path = path;
		lock->recheck = (struct timer){.fire = recheck, .ctx = lock};
		/* Its front's predecessor, and one of its own entries. */
		lock->watch_bytes = 2 * (strlen(path) + 1 + NAME_PREFIX_MAX + 10);
		lc->watch_bytes += lock->watch_bytes;
		HASH_ADD_KEYPTR(hh, lc->locks, lock->path, strlen(lock->path), lock);
		if (!lock->hh.tbl) {
			lc->watch_bytes -= lock->watch_bytes;
			free(lock->path);
			free(lock);
			return -ENOMEM;
		}
	}
	*ret_lock = lock;
	return 0;
}

void lock_settle(struct lock *lock)
{
	struct lc *lc = lock->lc;

	if (lock->takers || lock->lists_pending > 0 || lock->watches_pending > 0 || lock->zone)
		return;
	if (lock->want_list)
		DL_DELETE2(lc->wanted, lock, wanted_prev, wanted_next);
	timer_clear(lc, &lock->recheck);
	lc->watch_bytes -= lock->watch_bytes;
	HASH_DEL(lc->locks, lock);
	free(lock->watched);
	free(lock->path);
	free(lock);
}

void lock_want_list(struct lock *lock)
{
	if (lock->want_list)
		return;
	lock->want_list = true;
	DL_APPEND2(lock->lc->wanted, lock, wanted_prev, wanted_next);
}

void lock_look_later(struct lock *lock)
{
	timer_set(lock->lc, &lock->recheck, lc_now(lock->lc) + LATER_US);
}

bool lock_guarded(const struct lock *lock)
{
	return lock->holding > 0 || lock->front || lock->behind_leaver;
}

static bool in_queue(const struct lc_taker *taker)
{
	return taker->znode == ZNODE_PRESENT || taker->znode == ZNODE_DELETING;
}

struct lc_taker *lock_next(struct lock *lock, struct lc_taker *holder)
{
	struct lc_taker *taker;

	if (lock->unresolved)
		return NULL;
	for (taker = holder->next; taker; taker = taker->next) {
		if (!in_queue(taker))
			continue;
		if (!taker->adjacent || taker->number < 0 || taker->number >= NAME_NUMBER_ZONE)
			return NULL;
		if (taker->state == TAKER_WAITING && taker->znode == ZNODE_PRESENT)
			return taker;
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
	DL_FOREACH_SAFE(lock->takers, leaver, next)
		if (!taker_wants(leaver) && leaver->znode == ZNODE_PRESENT)
			taker_step(leaver);
}

/* ---- watching ---- */

static void forget_watch(struct lock *lock)
{
	free(lock->watched);
	lock->watched = NULL;
	lock->watch_armed = false;
}

static void watch_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct lock *lock = ctx;

	lock->watches_pending--;
	/* Of several under way only the last is about lock->watched. Whatever it
	 * found but the entry itself, look again. */
	if (lock->watches_pending == 0 && lock->watched) {
		lock->watch_armed = answer->result == ENSEMBLE_OK;
		if (!lock->watch_armed && answer->result != ENSEMBLE_GONE)
			lock_want_list(lock);
	}
	lock_settle(lock);
}

/* Get, not exists: a watch on a name that is gone would stay for ever. */
static void watch(struct lock *lock, const char *znode)
{
	char *path;

	if (lock->watched && strcmp(lock->watched, znode) == 0 &&
	    (lock->watch_armed || lock->watches_pending > 0))
		return;
	forget_watch(lock);
	lock->watched = strdup(znode);
	path = lc_join(lock->path, znode);
	if (lock->watched && path) {
		lock->watches_pending++;
		lc_submit(lock->lc, &(struct ensemble_op){.kind = ENSEMBLE_GET, .path = path, .watch = true},
		          1, watch_answered, lock);
	} else {
		forget_watch(lock);
		lock_look_later(lock);
	}
	free(path);
}

/* The taker of ours that an entry belongs to. */
static struct lc_taker *owner(struct lock *lock, const struct entry_name *name)
{
	struct lc_taker *taker = NULL;

	if (name->ours && name->session_half == lock->lc->session.half)
		HASH_FIND(hh, lock->lc->takers, &name->taker_half, sizeof(name->taker_half), taker);
	return taker && taker->lock == lock ? taker : NULL;
}

void locks_changed(struct lc *lc, const char *path, enum ensemble_change change)
{
	const char *znode = strrchr(path, '/');
	struct entry_name name;
	struct lc_taker *taker;
	struct lock *lock;

	if (!znode)
		return;
	HASH_FIND(hh, lc->locks, path, (size_t)(znode - path), lock);
	if (!lock)
		return;
	znode++;
	if (lock->watched && strcmp(lock->watched, znode) == 0) {
		lock->watch_armed = false;
		lock_want_list(lock);
	}
	taker = name_parse(znode, &name) ? owner(lock, &name) : NULL;
	if (taker && taker_wants(taker)) {
		taker->watch_armed = false;
		if (change == ENSEMBLE_DELETED)
			lock_want_list(lock);
		else
			taker_watch_self(taker);
	}
}

/* ---- judging a listing ---- */

/* Who of ours is in it; who should be and is not. */
static void match(struct lock *lock, const struct queue *queue, uint64_t number)
{
	struct lc_taker *taker, *next, *before = NULL;
	bool unresolved = false;

	for (size_t i = 0; i < queue->count; i++, before = taker) {
		const struct queue_entry *entry = &queue->entries[i];

		taker = owner(lock, &entry->name);
		if (!taker) {
			if (entry->name.ours && entry->name.session_half == lock->lc->session.half)
				sweep(lock, entry);
			continue;
		}
		taker->listed = number;
		if (before && in_queue(before) && !queue->in_zone)
			taker->adjacent = true;
		if (taker->znode == ZNODE_UNKNOWN)
			taker_found(taker, entry);
	}
	DL_FOREACH_SAFE(lock->takers, taker, next) {
		/* The listing was sent on a connection that was proved by a write:
		 * what is not in it was never made, or is deleted. */
		if (taker->listed != number && taker->znode == ZNODE_UNKNOWN && !taker->pending)
			taker_not_found(taker);
		else if (taker->listed != number && taker->znode == ZNODE_PRESENT &&
		         number > taker->created_at)
			taker_vanished(taker, -ECANCELED);
		else if (taker->state == TAKER_HELD && !taker->settle.armed)
			taker_watch_self(taker);
	}
	DL_FOREACH(lock->takers, taker)
		unresolved |= taker->znode == ZNODE_UNKNOWN;
	if (lock->unresolved && !unresolved) {
		lock->unresolved = false;
		DL_FOREACH_SAFE(lock->takers, taker, next)
			taker_step(taker);
	}
	lock->unresolved = unresolved;
}

static bool waits_in_queue(const struct lc_taker *taker)
{
	return taker && taker->state == TAKER_WAITING && taker->znode == ZNODE_PRESENT;
}

static bool leaves(const struct lc_taker *taker)
{
	return taker && !taker_wants(taker);
}

/* Began to ask before this listing was sent. */
static bool asks(const struct lc_taker *taker, const struct queue *queue)
{
	return taker->state == TAKER_WAITING && taker->probing && queue->listing > taker->created_at;
}

/* Those that will not wait: refused when anybody but a leaver of ours is before
 * them. Where only leavers are, their deletes are on their way. */
static void judge_immediate(struct lock *lock, const struct queue *queue, struct lc_taker **owners)
{
	struct lc_taker *taker, *next;
	bool taken = false;

	for (size_t i = 0; i < queue->count; i++) {
		if (taken && waits_in_queue(owners[i]) && owners[i]->immediate)
			taker_fail(owners[i], -EAGAIN);
		taken |= !leaves(owners[i]);
	}
	DL_FOREACH_SAFE(lock->takers, taker, next) {
		if (!asks(taker, queue))
			continue;
		if (taken) {
			taker_fail(taker, -EAGAIN);
		} else {
			taker->probing = false;
			taker_step(taker);
		}
	}
}

static void judge_front(struct lock *lock, const struct queue *queue, struct lc_taker **owners)
{
	struct lc *lc = lock->lc;
	ssize_t blocker;
	size_t i = 0;

	lock->front = NULL;
	lock->wants_lease = lock->behind_leaver = false;
	timer_clear(lc, &lock->recheck);
	while (i < queue->count && !waits_in_queue(owners[i]))
		i++;
	if (lock->waiting > 0 || lock->unresolved)
		timer_set(lc, &lock->recheck, lc_now(lc) + RECHECK_US);
	if (i == queue->count) {
		forget_watch(lock);
		return;
	}
	blocker = queue_blocker(queue, i);
	if (blocker >= 0 && owners[blocker]) {
		/* Behind one of our own, whose going will cause a listing. */
		forget_watch(lock);
		lock->behind_leaver = leaves(owners[blocker]);
		return;
	}
	lock->front = owners[i];
	if (blocker >= 0) {
		watch(lock, queue->entries[blocker].znode);
		taker_watch_self(lock->front);
		return;
	}
	forget_watch(lock);
	if (session_may_grant(lc))
		taker_grant(lock->front);
	else
		lock->wants_lease = true;
}

/* Where entries stand whose clients would not wait for ours, excluding each other
 * cannot be promised: nobody is let in until they are gone. */
static void refuse_beside_deaf(struct lock *lock, const struct queue *queue, struct lc_taker **owners)
{
	const struct queue_entry *deaf = NULL;
	struct lc_taker *taker, *next;

	for (size_t i = 0; i < queue->count && !deaf; i++)
		if (queue->entries[i].name.deaf)
			deaf = &queue->entries[i];
	if (!deaf || lock->waiting == 0)
		return;
	lc_report(lock->lc, LC_ERROR, "%s: %s is of a client that does not wait for our entries; "
	          "it is not taken beside that", lock->path, deaf->znode);
	for (size_t i = 0; i < queue->count; i++)
		if (waits_in_queue(owners[i]))
			taker_fail(owners[i], -ENOLCK);
	DL_FOREACH_SAFE(lock->takers, taker, next)
		if (asks(taker, queue))
			taker_fail(taker, -ENOLCK);
}

void lock_judge(struct lock *lock, const struct queue *queue)
{
	struct lc_taker **owners = calloc(queue->count + 1, sizeof(*owners));

	if (!owners) {
		lock_look_later(lock);
		return;
	}
	for (size_t i = 0; i < queue->count; i++)
		owners[i] = owner(lock, &queue->entries[i].name);
	refuse_beside_deaf(lock, queue, owners);
	judge_immediate(lock, queue, owners);
	judge_front(lock, queue, owners);
	free(owners);
}

static void judge(struct lock *lock, const struct ensemble_answer *answer, uint64_t number)
{
	struct queue queue;

	if (queue_build(answer->names, (size_t)answer->name_count, &queue) < 0) {
		lock_look_later(lock);
		return;
	}
	queue.listing = number;
	match(lock, &queue, number);
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

	lock->unresolved = false;
	DL_FOREACH_SAFE(lock->takers, taker, next) {
		taker->probing = false;
		if (taker->znode == ZNODE_PRESENT)
			taker_vanished(taker, -ENOENT);
		else if (taker->znode == ZNODE_UNKNOWN && !taker->pending)
			taker_not_found(taker);
	}
	DL_FOREACH_SAFE(lock->takers, taker, next)
		taker_step(taker);
}

/* The lock is closed to us. */
static void refuse_all(struct lock *lock, int error)
{
	struct lc_taker *taker, *next;

	DL_FOREACH_SAFE(lock->takers, taker, next)
		if (taker->state == TAKER_WAITING && taker->znode != ZNODE_CREATING)
			taker_fail(taker, error);
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
	case ENSEMBLE_GONE:
		break;   /* locks_resume() lists again */
	}
	lock->lists_pending--;
	lock_settle(lock);
}

void locks_flush(struct lc *lc)
{
	struct lock *lock, *next;

	if (!session_ready(lc))
		return;
	DL_FOREACH_SAFE2(lc->wanted, lock, next, wanted_next) {
		DL_DELETE2(lc->wanted, lock, wanted_prev, wanted_next);
		lock->want_list = false;
		if (!lock->takers)
			continue;
		lock->list_sent++;
		lock->lists_pending++;
		lc_submit(lc, &(struct ensemble_op){.kind = ENSEMBLE_CHILDREN, .path = lock->path}, 1,
		          listed, lock);
	}
}

/* ---- the session's news ---- */

void locks_resume(struct lc *lc)
{
	struct lock *lock, *next;
	struct lc_taker *taker, *after;

	HASH_ITER(hh, lc->locks, lock, next) {
		lock->unresolved = false;
		DL_FOREACH(lock->takers, taker)
			lock->unresolved |= taker->znode == ZNODE_UNKNOWN;
		if (!lock->takers)
			continue;
		lock_want_list(lock);
		DL_FOREACH_SAFE(lock->takers, taker, after) {
			taker_write_reason(taker);
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

	HASH_ITER(hh, lc->locks, lock, next) {
		lock->front = lock->unproved = NULL;
		lock->unresolved = lock->wants_lease = lock->behind_leaver = false;
		forget_watch(lock);
		timer_clear(lc, &lock->recheck);
		lock->lists_pending++;   /* keeps the lock while its takers go */
		DL_FOREACH_SAFE(lock->takers, taker, after)
			taker_session_ended(taker);
		lock->lists_pending--;
		lock_settle(lock);
	}
}
