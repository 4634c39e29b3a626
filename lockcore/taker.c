/* SPDX-License-Identifier: MIT
 *
 * taker.c - one taker, and what the face has been told of it (taker->state): that says
 * whether it wants an entry. place.c brings the entry to that.
 *
 * A taker is freed when the face is done with it, the entry is absent and no
 * answer is outstanding.
 */
#include "engine.h"
#include "record.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A hold longer than this watches its own entry, and says there since when it holds: shorter
 * ones, the many, are spared the requests. */
#define SETTLE_US 20000
/* How long one that will not wait gives the ensemble to say whether the lock is free. */
#define PROBE_US 2000000

bool taker_wants(const struct lc_taker *taker)
{
	return taker->state == TAKER_WAITING || taker->state == TAKER_HELD ||
	       (taker->state == TAKER_LOST && !taker->lost_done);
}

bool taker_in_queue(const struct lc_taker *taker)
{
	return taker->znode == ZNODE_PRESENT || taker->znode == ZNODE_DELETING;
}

/* Anybody may make entries with its UUID, or, when it is gone, with its whole name. */
bool taker_owns(const struct lc_taker *taker, const char *znode)
{
	return taker_in_queue(taker) && !taker->gone && strcmp(taker->name, znode) == 0;
}

bool taker_made_as(const struct lc_taker *taker, const char *znode)
{
	return strncmp(znode, taker->name, strlen(taker->name)) == 0;
}

bool taker_queues(const struct lc_taker *taker)
{
	return taker->state == TAKER_WAITING &&
	       (taker->znode == ZNODE_PRESENT || taker->znode == ZNODE_CREATING ||
	        taker->znode == ZNODE_UNKNOWN);
}

bool taker_means(const struct lc_taker *taker)
{
	return taker->meant == 0 || taker->meant == taker->lock->czxid;
}

/* ---- telling the face ---- */

static void make_due(struct lc_taker *taker)
{
	if (taker->due)
		return;
	taker->due = true;
	DL_APPEND2(taker->lc->due, taker, due_prev, due_next);
}

static void not_due(struct lc_taker *taker)
{
	if (!taker->due)
		return;
	taker->due = false;
	DL_DELETE2(taker->lc->due, taker, due_prev, due_next);
}

/* Out of its queue for good, or into holding. Whoever waited behind it may be first now. */
static void departed(struct lc_taker *taker)
{
	struct lock *lock = taker->lock;

	if (lock->front == taker)
		lock->front = NULL;
	lock_proved(lock, taker);   /* or nobody asks for that any more */
	if (lock->waiting == 0)
		lock->behind_leaver = lock->wants_lease = false;   /* nobody is any more */
	if (lock->waiting > 0 && !lock->judging && !lock_guarded(lock))
		lock_want_list(lock);
}

static void count(struct lc_taker *taker, int by)
{
	struct lc *lc = taker->lc;
	bool busy = lc->waiters + lc->holders > 0;

	if (taker->state == TAKER_WAITING) {
		taker->lc->waiters += (unsigned)by;
		taker->lock->waiting += (unsigned)by;
	} else if (taker->state == TAKER_HELD) {
		taker->lc->holders += (unsigned)by;
		taker->lock->holding += (unsigned)by;
		if (taker->mode == LC_EXCLUSIVE)
			taker->lock->writing += (unsigned)by;
	}
	if (busy != (lc->waiters + lc->holders > 0))
		session_pace(lc);
}

static void set_state(struct lc_taker *taker, enum taker_state state)
{
	struct lc *lc = taker->lc;
	enum taker_state old = taker->state;

	assert(old != TAKER_LEFT && old != state);
	count(taker, -1);
	taker->state = state;
	count(taker, +1);
	/* It is said of one that was held until it left, or taker_grant() says it anew. */
	taker->first &= state == TAKER_LEFT && old == TAKER_HELD;
	timer_clear(lc, &taker->limit);
	timer_clear(lc, &taker->settle);
	if (state == TAKER_WAITING && taker->limit_us != LC_FOREVER)
		timer_set(lc, &taker->limit, taker->limit_us);
	departed(taker);
}

/* The lock is watched while one of ours comes next, so that it can be handed over without
 * asking; and so is that one's entry, behind a holder who stays for a while. */
void taker_watch_next(struct lc_taker *holder)
{
	struct lc_taker *next = lock_next(holder->lock, holder);

	if (!next)
		return;
	lock_watch_data(holder->lock);
	if (!holder->settle.armed)
		taker_watch_self(next);
}

void taker_grant(struct lc_taker *taker, bool first)
{
	struct lc *lc = taker->lc;

	assert(taker->state == TAKER_WAITING && taker->znode == ZNODE_PRESENT && taker_means(taker));
	assert(session_ready(lc));   /* the lease is looked at once more when it is told */
	set_state(taker, TAKER_HELD);
	taker->first = first;
	taker->told_since = false;
	taker->held_since_ms = lc->config.wall_ms(lc->config.ctx);
	timer_set(lc, &taker->settle, lc_now(lc) + SETTLE_US);
	make_due(taker);
	taker_watch_next(taker);
}

/* The lock goes to the next of ours, if nobody else can be before it. That both are
 * still there is known while the lock is watched: it was not removed and made again, and
 * one of two entries may be deleted by somebody, but the other then guards it. */
static void hand_off(struct lc_taker *leaver)
{
	struct lock *lock = leaver->lock;
	struct lc_taker *next;

	if (leaver->state != TAKER_HELD || leaver->znode != ZNODE_PRESENT || leaver->gone ||
	    lock->holding > 1 || !lock_watched(lock) || !session_may_grant(leaver->lc))
		return;
	next = lock_next(lock, leaver);
	if (!next)
		return;
	taker_grant(next, true);
	leaver->lc->counters.hand_offs++;
	if (!taker_proved(next))
		lock->unproved = next;
}

/* Neither it nor what it was to replace goes on knowing of the other. */
static void part(struct lc_taker *taker)
{
	if (taker->instead)
		taker->instead->heir = NULL;
	if (taker->heir)
		taker->heir->instead = NULL;
	taker->instead = taker->heir = NULL;
}

void taker_fail(struct lc_taker *taker, int error)
{
	assert(taker->state == TAKER_WAITING && error < 0);
	part(taker);
	taker->error = error;
	set_state(taker, TAKER_FAILED);
	make_due(taker);
	taker_step(taker);
}

void taker_lose(struct lc_taker *taker)
{
	struct lc *lc = taker->lc;

	assert(taker->state == TAKER_HELD);
	if (!taker->told_taken) {
		/* Nobody knows of the grant yet: it did not happen. */
		not_due(taker);
		set_state(taker, TAKER_WAITING);
		lock_want_list(taker->lock);
		return;
	}
	part(taker);   /* what is guarded now bars the way of who was to replace it, too */
	set_state(taker, TAKER_LOST);
	taker->lost_done = lc->config.loss_lead_us == 0 && !taker->forfeited;
	if (!taker->lost_done)
		timer_set(lc, &taker->limit, lc_now(lc) + lc->session.granted_us);
	make_due(taker);
	taker_step(taker);
}

void lc_lost_done(struct lc_taker *taker)
{
	if (taker->state != TAKER_LOST || taker->lost_done || taker->forfeited)
		return;
	taker->lost_done = true;
	timer_clear(taker->lc, &taker->limit);
	taker_step(taker);
	if (taker->lock->waiting > 0)
		lock_want_list(taker->lock);
}

void takers_tell(struct lc *lc)
{
	while (lc->due) {
		struct lc_taker *taker = lc->due;

		if (taker->state == TAKER_HELD && session_doubted(lc)) {
			taker_lose(taker);   /* it waits again */
			continue;
		}
		if (taker->state == TAKER_HELD && !session_lease_valid(lc)) {
			locks_lease_over(lc);   /* this one waits again */
			continue;
		}
		not_due(taker);
		switch (taker->state) {
		case TAKER_HELD:
			taker->told_taken = true;
			tally_granted(taker);
			taker->taken(taker->ctx, 0);
			break;
		case TAKER_FAILED:
			tally_failed(lc, taker->error);
			taker->taken(taker->ctx, taker->error);
			break;
		case TAKER_LOST:
			lc->counters.losses++;
			taker->lost(taker->ctx);
			break;
		case TAKER_WAITING:
		case TAKER_LEFT:
			assert(false);
		}
	}
}

/* ---- the entry goes by another hand ---- */

/* What its taker waits for or has is taken away from it. */
static void take_away(struct lc_taker *taker, int error)
{
	taker->lc->counters.evictions += error == -ECANCELED && (taker->state == TAKER_WAITING ||
	                                                         taker->state == TAKER_HELD);
	switch (taker->state) {
	case TAKER_WAITING:
		taker_fail(taker, error);
		return;
	case TAKER_HELD:
		if (taker->told_taken) {
			taker_lose(taker);
			return;
		}
		not_due(taker);
		set_state(taker, TAKER_WAITING);
		taker_fail(taker, error);
		return;
	case TAKER_LOST:
	case TAKER_FAILED:
	case TAKER_LEFT:
		taker_settle(taker);
		return;
	}
}

void taker_removed(struct lc_taker *taker)
{
	taker_absent(taker);
	take_away(taker, -ENOENT);
}

static void report_gone(const struct lc_taker *taker)
{
	lc_report(taker->lc, LC_NOTICE, "%s/%s is gone", taker->lock->path, taker->name);
}

void taker_gone(struct lc_taker *taker)
{
	if (taker->gone)
		return;
	taker->gone = true;
	lock_want_list(taker->lock);
	if (taker->state != TAKER_HELD)
		return;
	if (taker->told_taken) {
		report_gone(taker);
		taker->lc->counters.evictions++;
	}
	taker_lose(taker);
}

/* Who holds has lost it either way. Who waits is told when a write was answered: the
 * ensemble answers none after the end of the session that a listing has shown. */
void taker_vanished(struct lc_taker *taker)
{
	struct lc *lc = taker->lc;

	if (taker_wants(taker) && (taker->state != TAKER_LOST || !taker->gone))
		report_gone(taker);
	taker_absent(taker);
	if (taker->state == TAKER_HELD && !taker->told_taken)
		taker_lose(taker);   /* it waits again */
	if (taker->state != TAKER_WAITING) {
		take_away(taker, -ECANCELED);
		return;
	}
	departed(taker);
	taker->missing = lc->missing = true;
	session_check(lc);
}

void takers_missed(struct lc *lc)
{
	struct lc_taker *taker, *next;

	if (!lc->missing)
		return;
	lc->missing = false;
	HASH_ITER(hh, lc->takers, taker, next)
		if (taker->missing) {
			taker->missing = false;
			take_away(taker, -ECANCELED);
		}
}

void taker_evicted(struct lc_taker *taker, const char *by)
{
	if (taker->state != TAKER_WAITING && taker->state != TAKER_HELD)
		return;
	lc_report(taker->lc, LC_NOTICE, "%s/%s: evicted by %s", taker->lock->path, taker->name, by);
	take_away(taker, -ECANCELED);
}

void taker_session_ended(struct lc_taker *taker)
{
	taker->missing = false;
	if (taker->znode != ZNODE_ABSENT)
		taker_absent(taker);
	if (taker->state == TAKER_HELD)
		taker_lose(taker);
	taker_settle(taker);
}

/* ---- from the face ---- */

/* It watches now; or what found no memory is tried again. */
static void settled(void *ctx)
{
	struct lc_taker *taker = ctx;

	entry_write_since(taker);   /* first: the watch is not to tell of it */
	taker_watch_self(taker);
	lock_recheck(taker->lock);
	if (taker->state == TAKER_HELD)
		taker_watch_next(taker);
}

static void time_is_up(void *ctx)
{
	struct lc_taker *taker = ctx;

	if (taker->state == TAKER_WAITING)
		/* Only the ensemble can say that a lock is not free. */
		taker_fail(taker, taker->immediate ? -EHOSTUNREACH : -ETIMEDOUT);
	else if (taker->state == TAKER_LOST)
		lc_lost_done(taker);   /* they cannot be stopped */
	if (taker->state != TAKER_WAITING)
		taker_step(taker);
}

static int64_t time_limit(struct lc *lc, const struct lc_request *request)
{
	int64_t third = lc->config.session_timeout_us / 3;

	if (request->wait_us != 0)
		return request->wait_us;
	return third < PROBE_US ? third : PROBE_US;
}

/* NULL: no memory. */
static struct lc_taker *taker_new(const struct lc_request *request)
{
	struct lc_taker *taker = calloc(1, sizeof(*taker));
	size_t len = request->reason ? strnlen(request->reason, LC_REASON_MAX) : 0;

	if (!taker || len == 0)
		return taker;
	taker->reason = malloc(len + 1);
	if (!taker->reason) {
		free(taker);
		return NULL;
	}
	record_copy_line(taker->reason, len + 1, request->reason, len);
	return taker;
}

static void taker_free(struct lc_taker *taker)
{
	free(taker->reason);
	free(taker);
}

static int take(struct lc *lc, const struct lc_request *request, lc_taken_fn *taken,
                lc_lost_fn *lost, void *ctx, struct lc_taker **ret_taker)
{
	/* Of the entry's path, its digits, and its length field in the transaction. */
	size_t longest = strlen(lc->root) + 1 + strlen(request->lock) + 1 + NAME_PREFIX_MAX + 10 + 4;
	int64_t limit = time_limit(lc, request), now = lc_now(lc);
	struct lc_taker *taker;
	struct lock *lock;
	int r;

	if (strlen(lc->root) + 1 + strlen(request->lock) > LC_PATH_MAX)
		return -ENAMETOOLONG;
	if (lc->draining || lc->session.state == LC_UNUSABLE)
		return -ESHUTDOWN;
	if (share_is_full(lc, longest))
		locks_forget_idle(lc);
	if (!share_has_room(lc, request->uid, longest))
		return -ENOLCK;
	taker = taker_new(request);
	if (!taker)
		return -ENOMEM;
	r = lock_get(lc, request->lock, request->uid, &lock);
	if (r < 0) {
		taker_free(taker);
		return r;
	}
	*taker = (struct lc_taker){
		.lc = lc, .lock = lock, .reason = taker->reason, .state = TAKER_WAITING, .znode = ZNODE_ABSENT,
		.id = lc_random(lc), .meant = request->czxid, .immediate = request->wait_us == 0, .held_since_ms = -1,
		.pid = request->pid, .uid = request->uid, .mode = request->mode,
		.limit = {.fire = time_is_up, .ctx = taker}, .settle = {.fire = settled, .ctx = taker},
		.asked_us = now, .limit_us = limit < LC_FOREVER - now ? now + limit : LC_FOREVER,
		.bytes = longest,
		.taken = taken, .lost = lost, .ctx = ctx,
	};
	record_copy_line(taker->command, sizeof(taker->command), request->command,
	                 strlen(request->command));
	HASH_ADD(hh, lc->takers, id, sizeof(taker->id), taker);
	if (!taker->hh.tbl) {
		taker_free(taker);
		lock_settle(lock);
		return -ENOMEM;
	}
	DL_APPEND(lock->takers, taker);
	share_take(taker);
	count(taker, +1);
	if (taker->limit_us != LC_FOREVER)
		timer_set(lc, &taker->limit, taker->limit_us);
	*ret_taker = taker;
	if (lock_watched(lock) && !taker_means(taker)) {
		taker_fail(taker, -ENOENT);
		return 0;
	}
	if (request->instead && lc_holds(request->instead)) {
		assert(request->mode == LC_EXCLUSIVE && request->instead->lock == lock &&
		       request->instead->mode == LC_SHARED && !request->instead->heir);
		taker->instead = request->instead;
		taker->instead->heir = taker;
		taker_step(taker);
		return 0;
	}
	if (taker->immediate && lock_bars(lock, taker->mode) && session_lease_valid(lc)) {
		taker_fail(taker, -EAGAIN);
		return 0;
	}
	taker->probing = taker->immediate;
	taker->created_at = lock->list_sent;   /* an older listing says nothing to it */
	taker_step(taker);
	return 0;
}

int lc_take(struct lc *lc, const struct lc_request *request, lc_taken_fn *taken, lc_lost_fn *lost,
            void *ctx, struct lc_taker **ret_taker)
{
	int r = take(lc, request, taken, lost, ctx, ret_taker);

	lc->counters.takes++;
	if (r < 0)
		tally_failed(lc, r);
	return r;
}

bool lc_replace(struct lc_taker *taker, struct lc_taker *instead)
{
	if (taker->state != TAKER_WAITING || taker->mode != LC_EXCLUSIVE || taker->instead ||
	    taker->lock != instead->lock || instead->mode != LC_SHARED || instead->heir ||
	    !lc_holds(instead))
		return false;
	taker->instead = instead;
	instead->heir = taker;
	lock_want_list(taker->lock);
	return true;
}

void lc_leave(struct lc_taker *taker)
{
	part(taker);
	/* Neither granted nor refused, as far as the face knows. */
	if (taker->state == TAKER_WAITING || (taker->due && taker->state != TAKER_LOST))
		taker->lc->counters.abandoned++;
	lc_attend(taker, NULL);
	not_due(taker);
	hand_off(taker);
	set_state(taker, TAKER_LEFT);
	taker_step(taker);
}

void taker_settle(struct lc_taker *taker)
{
	struct lock *lock = taker->lock;
	struct lc *lc = taker->lc;

	if (taker->state != TAKER_LEFT || taker->znode != ZNODE_ABSENT || taker->pending > 0)
		return;
	assert(!taker->due && !taker->name && lock->front != taker);
	timer_clear(lc, &taker->limit);
	timer_clear(lc, &taker->settle);
	share_return(taker);
	HASH_DEL(lc->takers, taker);
	DL_DELETE(lock->takers, taker);
	taker_free(taker);
	lock_settle(lock);
}

bool lc_holds(struct lc_taker *taker)
{
	if (taker->state != TAKER_HELD)
		return false;
	if (session_lease_valid(taker->lc))
		return !lease_doubted(&taker->lc->session.lease, lc_now(taker->lc));
	locks_lease_over(taker->lc);   /* for ever, whatever comes after this moment */
	return false;
}

int64_t lc_token(const struct lc_taker *taker)
{
	return taker->czxid;
}

const char *lc_znode(const struct lc_taker *taker)
{
	return taker->znode == ZNODE_PRESENT || taker->znode == ZNODE_DELETING ? taker->name : NULL;
}
