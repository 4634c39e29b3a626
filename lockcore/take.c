/* SPDX-License-Identifier: MIT
 *
 * take.c - what the frontend asks of takers: take, leave, use.
 */
#include "engine.h"

#include "grant/grant.h"
#include "lock/lock_watch.h"
#include "pure/node_data.h"
#include "session/counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How long the ensemble has to say whether a lock is free, for a taker that will not wait. */
#define PROBE_US 2000000

/* ---- timers ---- */

static void recheck_taker(void *ctx)
{
	struct lc_taker *taker = ctx;

	entry_touch(&taker->entry);
	entry_write_since(&taker->entry); /* before the watch, which would report this write */
	entry_watch(&taker->entry);
	lock_recheck(taker->entry.lock);
	taker_step(taker); /* its delete is tried again */
}

static int64_t probe_limit(const struct lc *lc)
{
	int64_t third = lc->config.session_timeout_us / 3;

	return third < PROBE_US ? third : PROBE_US;
}

/* Nothing has said that the lock is not free: the ensemble has not answered, and this mount does
 * not hold the lock. */
static bool is_unanswered(const struct lc_taker *taker)
{
	const struct lock *lock = taker->entry.lock;
	bool ready = lc_ready(lock->lc), queued = taker->entry.state == ENTRY_PRESENT;
	int64_t since_us = ready ? taker->asked_us : lock->lc->session->away_us;

	if (taker->immediate)
		return true;
	if (ready ? queued : lock->takers.holding > 0)
		return false;
	return (!ready && !queued) || lc_now(lock->lc) - since_us >= probe_limit(lock->lc);
}

static void limit_fired(void *ctx)
{
	struct lc_taker *taker = ctx;

	entry_touch(&taker->entry);
	if (taker->state == TAKER_WAITING)
		taker_fail(taker, is_unanswered(taker) ? -EHOSTUNREACH : -ETIMEDOUT);
	else if (taker->state == TAKER_HELD)
		loss_by_limit(taker);
	else if (taker->state == TAKER_LOST)
		taker_give_up(taker); /* the time to stop its processes has passed */
	if (taker->state != TAKER_WAITING)
		taker_step(taker);
}

/* ---- take ---- */

/* False: no memory. */
static bool copy_reason(struct entry *entry, const char *reason)
{
	size_t len = reason ? strnlen(reason, LC_REASON_MAX) : 0;

	if (len == 0)
		return true;
	entry->data.reason = malloc(len + 1);
	if (!entry->data.reason)
		return false;
	node_data_copy_line(entry->data.reason, len + 1, reason, len);
	return true;
}

struct lc_taker *taker_blank(void)
{
	struct lc_taker *taker = calloc(1, sizeof(*taker));

	if (taker) {
		taker->limit = (struct timer){.fire = limit_fired, .ctx = taker};
		taker->recheck = (struct timer){.fire = recheck_taker, .ctx = taker};
	}
	return taker;
}

/* Sets what the request asks for, in a new taker or in one whose entry is used again. */
static void set_request(struct lc_taker *taker, struct lc *lc, const struct lc_request *request)
{
	int64_t limit = request->wait_us ? request->wait_us : probe_limit(lc), now = lc_now(lc);

	taker->meant = request->czxid;
	taker->immediate = request->wait_us == 0;
	taker->crowd = taker->immediate || request->replaces ? 0 : request->crowd & LC_CROWD_MAX;
	taker->asked_us = now;
	taker->wait_until_us = limit < LC_FOREVER - now ? now + limit : LC_FOREVER;
	taker->hold_until_us = LC_FOREVER;
}

/* NULL: no memory. */
static struct lc_taker *make_taker(struct lc *lc, const struct lc_request *request,
                                   struct lock *lock)
{
	struct lc_taker *taker = taker_blank();
	struct entry *entry;

	if (!taker)
		return NULL;
	entry = &taker->entry;
	entry->data.pid = request->pid;
	entry->data.uid = request->uid;
	entry->mode = request->mode;
	entry->repeated = reuse_is_repeated(lock, request);
	node_data_copy_line(entry->data.command, sizeof(entry->data.command), request->command,
	                    strlen(request->command));
	set_request(taker, lc, request);
	if (copy_reason(entry, request->reason) && entry_init(lc, entry, lock) == 0)
		return taker;
	free(entry->data.reason);
	free(taker);
	return NULL;
}

/* A listing that is sent from now on says whether the taker may make an entry. */
static void probe(struct lc_taker *taker)
{
	struct lock *lock = taker->entry.lock;

	taker_set_wait(taker, WAIT_PROBING);
	lock_watch(lock);
	/* A server that lags may show holders that have left: the sync keeps waiters that hold by
	 * now from being counted. */
	if (taker->crowd > 0 && lc_ready(lock->lc))
		lc_submit(lock->lc, ensemble_sync(lock->path), lc_ignore, NULL);
}

/* What is known of the lock decides how the taker begins: refused, as an upgrade, with a listing,
 * or with a create. */
static void begin(struct lc_taker *taker, struct lc_taker *old)
{
	struct lock *lock = taker->entry.lock;

	if (lock_is_watched(lock) && !taker_means(taker)) {
		taker_fail(taker, -ENOENT);
	} else if (old && lc_holds(old)) {
		taker_replace(taker, old);
		taker_step(taker);
	} else if (taker->immediate && lock_bars(lock, taker->entry.mode) &&
	           session_lease_is_valid(lock->lc)) {
		taker_fail(taker, -EAGAIN);
	} else {
		if (taker->immediate || taker->crowd > 0)
			probe(taker);
		taker_step(taker);
	}
}

/* The taker whose spare entry serves this process, or a new taker. NULL: no memory. */
static struct lc_taker *find_taker(struct lc *lc, const struct lc_request *request,
                                   struct lock *lock, size_t longest)
{
	struct lc_taker *taker = reuse_take(lock, request);

	if (taker) {
		set_request(taker, lc, request);
		taker_reuse(taker);
		lock_unuse(lock); /* the taker has kept its own use of the lock */
		return taker;
	}
	taker = make_taker(lc, request, lock);
	if (!taker) {
		lock_unuse(lock);
		return NULL;
	}
	quota_charge_entry(lc, &taker->charge, request->uid, longest);
	taker_enter(taker);
	return taker;
}

static int take_lock(struct lc *lc, const struct lc_request *request, struct lc_taker **ret_taker)
{
	/* The entry's path with its digits, and the length field of that path in a transaction. */
	size_t longest =
		strlen(lc->root) + 1 + strlen(request->lock) + 1 + NAME_PREFIX_MAX + 10 + 4;
	struct lock *lock;
	int r;

	if (strlen(lc->root) + 1 + strlen(request->lock) > LC_PATH_MAX)
		return -ENAMETOOLONG;
	if (lc->draining || lc->session->state == LC_UNUSABLE)
		return -ESHUTDOWN;
	if (quota_is_full(lc, request->uid, longest))
		locks_forget_idle(lc);
	if (!quota_has_room(lc, request->uid, longest))
		return -ENOLCK;
	session_use(lc);
	r = lock_get(lc, request->lock, request->uid, &lock);
	if (r < 0)
		return r;
	*ret_taker = find_taker(lc, request, lock, longest);
	return *ret_taker ? 0 : -ENOMEM;
}

int lc_take(struct lc *lc, const struct lc_request *request, lc_taken_fn *taken, lc_lost_fn *lost,
            void *ctx, struct lc_taker **ret_taker)
{
	int r = take_lock(lc, request, ret_taker);

	lc->counters.takes++;
	if (r < 0) {
		count_failure(lc, r);
		return r;
	}
	(*ret_taker)->taken = taken;
	(*ret_taker)->lost = lost;
	(*ret_taker)->ctx = ctx;
	if ((*ret_taker)->state == TAKER_WAITING)
		begin(*ret_taker, request->replaces);
	return 0;
}

bool lc_replace(struct lc_taker *taker, struct lc_taker *old)
{
	if (taker->state != TAKER_WAITING || taker->entry.mode != LC_EXCLUSIVE || taker->replaces ||
	    taker->entry.lock != old->entry.lock || old->entry.mode != LC_SHARED ||
	    old->replaced_by || !lc_holds(old))
		return false;
	taker_replace(taker, old);
	return true;
}

/* ---- leave ---- */

void lc_leave(struct lc_taker *taker)
{
	taker_part(taker);
	/* The frontend was told of no grant and no refusal. */
	if (taker->state == TAKER_WAITING || (taker->due_prev && taker->state != TAKER_LOST))
		taker->entry.lock->lc->counters.abandoned++;
	lc_watch_waiters(taker, NULL);
	if (reuse_leave(taker))
		return;
	taker_leave(taker);
}

void lc_drain(struct lc *lc)
{
	lc->draining = true;
	takers_fail(lc, -ESHUTDOWN);
}

void lc_forfeit(struct lc *lc)
{
	struct lc_taker *taker, *next;

	TAKERS_FOREACH_SAFE(lc, taker, next) {
		if (taker->state != TAKER_HELD)
			continue;
		taker->loss = LOSS_FORFEITED;
		taker_lose(taker);
	}
	lc_drain(lc); /* refuses also the takers whose grant was not told: they wait again */
}

bool lc_idle(const struct lc *lc)
{
	return lc->entries->by_id.count == 0;
}
