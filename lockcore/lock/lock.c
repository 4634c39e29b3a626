/* SPDX-License-Identifier: MIT
 *
 * lock.c - see lock.h. A lock lives as long as it has takers or a request under way. Then it
 * stays for a while, *idle*, if its node is watched or was written to: locks come back soon,
 * and what is known of them spares requests.
 */
#include "lock/known.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pure/name.h"

/* A lock that is waited for or held is listed again after this time, if nothing has happened:
 * the net below every other rule. */
#define RECHECK_US (60 * 1000000LL)
/* Idle locks that stay watched, at most. */
#define IDLE_MAX 256
/* Entries of other clients that an idle lock keeps, at most. */
#define OTHERS_KEPT 16

static void recheck_fired(void *ctx)
{
	struct lock *lock = ctx;

	lock->lists.later = false;
	lock_want_list(lock);
}

/* What is watched of a lock in use: the paths of two entries that a waiter waits for, of one of
 * ours, and of the lock itself. */
static size_t full_weight(const struct lock *lock)
{
	return 4 * (strlen(lock->path) + 4) + 3 * (1 + NAME_PREFIX_MAX + 10);
}

static void leave_idle(struct lock *lock)
{
	struct lc *lc = lock->lc;

	if (!lock->idle)
		return;
	lock->idle = false;
	quota_set_watched(lc, &lock->node.charge, full_weight(lock));
	DL_DELETE2(lc->locks->idle, lock, idle_prev, idle_next);
	lc->locks->idle_count--;
}

/* NULL: no memory; the path is freed. */
static struct lock *make_lock(struct lc *lc, char *path)
{
	struct lock *lock = calloc(1, sizeof(*lock));

	if (lock) {
		lock->lc = lc;
		lock->path = path;
		lock->known = (struct lock_known){.last = -1, .era = 1};
		lock->lists.recheck = (struct timer){.fire = recheck_fired, .ctx = lock};
		HASH_ADD_KEYPTR(hh, lc->locks->by_path, lock->path, strlen(lock->path), lock);
		if (lock->hh.tbl) {
			quota_set_watched(lc, &lock->node.charge, full_weight(lock));
			return lock;
		}
	}
	free(path);
	free(lock);
	return NULL;
}

struct lock *lock_find(struct lc *lc, const char *path, size_t len)
{
	struct lock *lock;

	HASH_FIND(hh, lc->locks->by_path, path, len, lock);
	return lock;
}

struct lock *lock_get_known(struct lc *lc, const char *path, uid_t uid)
{
	struct lock *lock = lock_find(lc, path, strlen(path));

	if (lock && lock->idle) {
		leave_idle(lock);
		quota_charge_watches(lc, &lock->node.charge, uid);
	}
	if (lock)
		lock_use(lock);
	return lock;
}

int lock_get(struct lc *lc, const char *name, uid_t uid, struct lock **ret_lock)
{
	char *path = lc_path(lc, name);
	struct lock *lock = path ? lock_get_known(lc, path, uid) : NULL;

	if (lock) {
		free(path);
	} else {
		lock = path ? make_lock(lc, path) : NULL;
		if (!lock)
			return -ENOMEM;
		quota_charge_watches(lc, &lock->node.charge, uid);
		lock_use(lock);
	}
	*ret_lock = lock;
	return 0;
}

static void free_lock(struct lock *lock)
{
	struct lc *lc = lock->lc;

	leave_idle(lock);
	lock_unwant_list(lock);
	known_forget(lock);
	lock_untouch(lock);
	timer_clear(&lc->timers, &lock->lists.recheck);
	quota_return_watches(lc, &lock->node.charge);
	quota_set_watched(lc, &lock->node.charge, 0);
	HASH_DEL(lc->locks->by_path, lock);
	free(lock->others.ahead);
	free(lock->path);
	free(lock);
}

static void forget_lock(struct lock *lock)
{
	watch_drop(lock->lc, &lock->node.watch, lock->path);
	free_lock(lock);
}

static void become_idle(struct lock *lock)
{
	struct lc *lc = lock->lc;

	if (lock->idle)
		return;
	lock->grant.lease_awaited = lock->lists.later = false;
	if (lock->known.others > OTHERS_KEPT)
		known_forget(lock);
	timer_clear(&lc->timers, &lock->lists.recheck);
	lock->idle = true;
	lc->locks->idle_count++;
	DL_APPEND2(lc->locks->idle, lock, idle_prev, idle_next);
	quota_return_watches(lc, &lock->node.charge);
	quota_set_watched(lc, &lock->node.charge,
	                  watch_is_armed(&lock->node.watch) ? strlen(lock->path) : 0);
	if (lc->locks->idle_count > IDLE_MAX)
		forget_lock(lc->locks->idle); /* the one that has been idle for longest */
}

void locks_forget_idle(struct lc *lc)
{
	while (lc->locks->idle)
		forget_lock(lc->locks->idle);
}

void lock_use(struct lock *lock)
{
	lock->uses++;
}

void lock_free_if_unused(struct lock *lock)
{
	if (lock->uses > 0)
		return;
	if (watch_is_armed(&lock->node.watch) || lock->batch.last_write_ok)
		become_idle(lock);
	else
		free_lock(lock);
}

void lock_unuse(struct lock *lock)
{
	lock->uses--;
	lock_free_if_unused(lock);
}

/* ---- what wants to be looked at ---- */

void lock_want_list(struct lock *lock)
{
	if (lock->lists.wanted)
		return;
	lock->lists.wanted = true;
	DL_APPEND2(lock->lc->locks->wanted, lock, lists.prev, lists.next);
}

void lock_unwant_list(struct lock *lock)
{
	if (!lock->lists.wanted)
		return;
	lock->lists.wanted = false;
	DL_DELETE2(lock->lc->locks->wanted, lock, lists.prev, lists.next);
}

void lock_recheck(struct lock *lock)
{
	if (!lock->lists.recheck.armed)
		timer_set(&lock->lc->timers, &lock->lists.recheck,
		          lc_lately(lock->lc) + RECHECK_US);
}

void lock_expect_late(struct lock *lock)
{
	if (lock->late.until_us == 0)
		lock_use(lock);
	lock->late.until_us = lc_lately(lock->lc) + RECHECK_US;
	lock_recheck(lock);
}

void lock_expect_none(struct lock *lock)
{
	if (lock->late.until_us == 0)
		return;
	lock->late.until_us = 0;
	lock_unuse(lock);
}

void lock_list_later(struct lock *lock)
{
	if (lock->lists.later)
		return;
	lock->lists.later = true;
	timer_set(&lock->lc->timers, &lock->lists.recheck, lc_now(lock->lc) + RETRY_US);
}
