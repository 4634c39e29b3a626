/* SPDX-License-Identifier: MIT */
#include "lock/taker.h"

#include "lock/lock_watch.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

bool taker_holds_entry(const struct lc_taker *taker)
{
	return taker->state == TAKER_HELD && taker->entry.state == ENTRY_PRESENT;
}

bool taker_is_picky(const struct lc_taker *taker)
{
	return taker->state == TAKER_WAITING &&
	       (taker->immediate || taker->replaces || taker->wait == WAIT_PROBING);
}

bool taker_means(const struct lc_taker *taker)
{
	return taker->meant == 0 || taker->meant == taker->entry.lock->node.info.czxid;
}

/* ---- what a lock's takers are to each other ---- */

bool lock_bars(const struct lock *lock, enum lc_mode mode)
{
	if (lock->node.info.slots != 1 || !lock_is_watched(lock))
		return false;
	return mode == LC_EXCLUSIVE ? lock->takers.holding > 0 : lock->takers.writing > 0;
}

void lock_note_waiters(struct lock *lock)
{
	struct lc_taker *taker;

	DL_FOREACH(lock->takers.all, taker)
		if (taker->waiters_changed && !taker->changed_prev)
			DL_APPEND2(lock->lc->takers->waiters_changed, taker, changed_prev,
			           changed_next);
}

/* ---- its state ---- */

void taker_set_due(struct lc_taker *taker, bool due)
{
	struct takers *takers = taker->entry.lock->lc->takers;

	if (due == (taker->due_prev != NULL))
		return;
	entry_touch(&taker->entry);
	if (due) {
		DL_APPEND2(takers->due, taker, due_prev, due_next);
	} else {
		DL_DELETE2(takers->due, taker, due_prev, due_next);
		taker->due_prev = taker->due_next = NULL;
	}
}

static void count_state(struct lc_taker *taker, int by)
{
	struct takers *takers = taker->entry.lock->lc->takers;
	struct lock *lock = taker->entry.lock;

	if (taker->state == TAKER_WAITING) {
		takers->waiters += (unsigned)by;
		lock->takers.waiting += (unsigned)by;
	} else if (taker->state == TAKER_HELD) {
		takers->holders += (unsigned)by;
		lock->takers.holding += (unsigned)by;
		if (taker->entry.mode == LC_EXCLUSIVE)
			lock->takers.writing += (unsigned)by;
	} else if (taker->entry.wanted) {
		takers->losing += (unsigned)by;
	}
}

static void tell_pace(struct lc *lc)
{
	session_set_busy(lc, lc->takers->waiters + lc->takers->holders > 0);
}

static bool is_step(enum taker_state from, enum taker_state to)
{
	switch (from) {
	case TAKER_WAITING:
		return to == TAKER_HELD || to == TAKER_FAILED || to == TAKER_LEFT;
	case TAKER_HELD:
		return to == TAKER_WAITING || to == TAKER_LOST || to == TAKER_LEFT;
	case TAKER_LOST:
	case TAKER_FAILED:
		return to == TAKER_LEFT;
	case TAKER_LEFT:
		return to == TAKER_HELD; /* taker_reuse() */
	}
	return false;
}

/* The timer until a request is tried again. A waiter's time limit goes on beside it. */
static struct timer *retry_timer(struct lc_taker *taker)
{
	return taker->entry.wanted ? &taker->recheck : &taker->limit;
}

static bool wants_entry(const struct lc_taker *taker)
{
	return taker->state == TAKER_WAITING || taker->state == TAKER_HELD ||
	       (taker->state == TAKER_LOST && taker->loss != LOSS_GIVEN_UP);
}

/* The taker begins to wait, or its kind of wait has changed. */
static void note_picky(struct lc_taker *taker)
{
	taker->entry.lock->takers.picky |= taker_is_picky(taker);
	lock_touch(taker->entry.lock);
}

/* The only place that changes a taker's state, but for taker_record.c. */
static void set_taker_state(struct lc_taker *taker, enum taker_state state)
{
	struct lc *lc = taker->entry.lock->lc;

	assert(is_step(taker->state, state));
	entry_touch(&taker->entry);
	count_state(taker, -1);
	taker->state = state;
	taker->entry.wanted = wants_entry(taker);
	count_state(taker, +1);
	tell_pace(lc);
	taker->wait = WAIT_QUEUED;
	taker->entry.data.held_since_ms = -1;
	timer_clear(&lc->timers, &taker->limit);
	timer_clear(&lc->timers, &taker->recheck);
	if (state == TAKER_WAITING && taker->wait_until_us != LC_FOREVER)
		timer_set(&lc->timers, &taker->limit, taker->wait_until_us);
	if (taker->entry.lock->grant.unproved == &taker->entry)
		taker->entry.lock->grant.unproved = NULL;
	note_picky(taker);
}

/* In its state. */
static void enter_lock(struct lc_taker *taker)
{
	DL_APPEND(taker->entry.lock->takers.all, taker);
	count_state(taker, +1);
	tell_pace(taker->entry.lock->lc);
	note_picky(taker);
}

void taker_enter(struct lc_taker *taker)
{
	enter_lock(taker);
	taker->since = taker->entry.lock->lists.sent;
	if (taker->wait_until_us != LC_FOREVER)
		timer_set(&taker->entry.lock->lc->timers, &taker->limit, taker->wait_until_us);
}

void taker_resume(struct lc_taker *taker, bool due)
{
	taker->entry.wanted = wants_entry(taker);
	taker->entry.in_doubt = !taker->entry.wanted;
	enter_lock(taker);
	taker_set_due(taker, due);
}

/* ---- from state to state ---- */

void taker_grant(struct lc_taker *taker)
{
	struct lc *lc = taker->entry.lock->lc;

	assert(taker->entry.state == ENTRY_PRESENT && taker_means(taker));
	assert(lc_ready(lc)); /* the lease is looked at once more when the grant is told */
	if (taker->state == TAKER_WAITING) /* else its entry was granted before */
		taker->entry.lock->repeat.granted_us = lc_lately(lc);
	set_taker_state(taker, TAKER_HELD);
	taker->entry.data.told_since = false;
	taker->entry.data.held_since_ms = lc->config.wall_ms(lc->config.ctx);
	timer_set(&lc->timers, &taker->recheck,
	          taker->entry.lock->repeat.granted_us + LONG_HOLD_US);
	taker_set_due(taker, /* due = */ true);
}

void taker_leave_spare(struct lc_taker *taker, int64_t until_us)
{
	assert(taker_holds_entry(taker) && !taker->due_prev);
	set_taker_state(taker, TAKER_LEFT);
	taker->spare = true;
	timer_set(&taker->entry.lock->lc->timers, &taker->limit, until_us);
}

/* Nothing of the last hold, whatever it was, is left for the next one. */
void taker_reuse(struct lc_taker *taker)
{
	assert(taker->spare && taker->state == TAKER_LEFT && taker->entry.pending == 0);
	assert(!taker->replaces && !taker->replaced_by && !taker->changed_prev && !taker->due_prev);
	assert(!taker->entry.data.reason && taker->error == 0 && !taker->told_token);
	taker->spare = false;
	taker_grant(taker);
}

void taker_drop_spare(struct lc_taker *taker)
{
	if (!taker->spare)
		return;
	timer_clear(&taker->entry.lock->lc->timers, &taker->limit);
	entry_touch(&taker->entry);
	taker_step(taker);
}

/* Moves the taker to the end of the list: the order of creates is the order of entries. A taker
 * that is being read is there already: a new key for its record could be that of the next one to be
 * read. */
static void list_last(struct lc_taker *taker)
{
	if (!taker->next)
		return;
	DL_DELETE(taker->entry.lock->takers.all, taker);
	DL_APPEND(taker->entry.lock->takers.all, taker);
	record_move(&taker->entry.record);
}

void taker_replace(struct lc_taker *taker, struct lc_taker *old)
{
	assert(taker->entry.mode == LC_EXCLUSIVE && old->entry.lock == taker->entry.lock &&
	       old->entry.mode == LC_SHARED && !old->replaced_by);
	taker->replaces = old;
	old->replaced_by = taker;
	taker->since = taker->entry.lock->lists.sent;
	note_picky(taker);
	entry_touch(&taker->entry);
	if (taker->entry.state == ENTRY_ABSENT)
		list_last(taker); /* records are read in this order: see taker_record.c */
}

void taker_part(struct lc_taker *taker)
{
	if (taker->replaces) {
		taker->replaces->replaced_by = NULL;
		entry_touch(&taker->entry);
	}
	if (taker->replaced_by) {
		taker->replaced_by->replaces = NULL;
		entry_touch(&taker->replaced_by->entry);
	}
	taker->replaces = taker->replaced_by = NULL;
}

void taker_fail(struct lc_taker *taker, int error)
{
	assert(error < 0);
	taker_part(taker);
	taker->error = error;
	set_taker_state(taker, TAKER_FAILED);
	taker_set_due(taker, /* due = */ true);
	taker_step(taker);
}

void takers_fail(struct lc *lc, int error)
{
	struct lc_taker *taker, *next;

	TAKERS_FOREACH_SAFE(lc, taker, next)
		if (taker->state == TAKER_WAITING)
			taker_fail(taker, error);
}

void taker_lose(struct lc_taker *taker)
{
	struct lc *lc = taker->entry.lock->lc;

	assert(taker->state == TAKER_HELD);
	if (taker_is_untold(taker)) {
		/* The frontend does not know of the grant yet: it did not happen. */
		taker_set_due(taker, /* due = */ false);
		set_taker_state(taker, TAKER_WAITING);
		return;
	}
	taker_part(taker); /* its guarded entry bars the way of the one that replaces it, too */
	if (taker->loss != LOSS_FORFEITED)
		taker->loss = lc->config.loss_lead_us == 0 ? LOSS_GIVEN_UP : LOSS_GUARDED;
	set_taker_state(taker, TAKER_LOST);
	taker_guard(taker);
	taker_set_due(taker, /* due = */ true);
	taker_step(taker);
}

void taker_guard(struct lc_taker *taker)
{
	struct lc *lc = taker->entry.lock->lc;

	assert(taker->state == TAKER_LOST);
	if (taker->loss == LOSS_GIVEN_UP)
		return;
	timer_set(&lc->timers, &taker->limit, lc_now(lc) + lc->session->granted_us);
	entry_touch(&taker->entry);
}

void taker_give_up(struct lc_taker *taker)
{
	if (taker->state != TAKER_LOST || taker->loss != LOSS_GUARDED)
		return;
	count_state(taker, -1);
	taker->loss = LOSS_GIVEN_UP;
	taker->entry.wanted = false;
	count_state(taker, +1);
	entry_touch(&taker->entry);
	timer_clear(&taker->entry.lock->lc->timers, &taker->limit);
	lock_touch(taker->entry.lock);
	taker_step(taker);
}

void taker_leave(struct lc_taker *taker)
{
	taker_set_due(taker, /* due = */ false);
	set_taker_state(taker, TAKER_LEFT);
	taker_step(taker);
}

void taker_set_wait(struct lc_taker *taker, enum taker_wait wait)
{
	taker->wait = wait;
	note_picky(taker);
	entry_touch(&taker->entry);
}

/* ---- its entry ---- */

/* The answer of the create alone will not show which entries stand before it, and no other taker
 * causes a listing. Create and listing go out together, so a free lock costs one round trip. */
static bool needs_list(const struct lc_taker *taker)
{
	const struct lock *lock = taker->entry.lock;
	const struct lock_known *known = &lock->known;

	if (!taker_means(taker) || taker->entry.repeated)
		return true;
	return lock->takers.waiting == 1 &&
	       (known->last < 0 || known->in_zone || known->overtaken || known->others > 0);
}

static int create_error(enum ensemble_result why)
{
	if (why == ENSEMBLE_NONODE || why == ENSEMBLE_NOCHILDREN)
		return -ENOENT;
	return why == ENSEMBLE_NOAUTH ? -EACCES : -ENOLCK;
}

void taker_not_made(struct lc_taker *taker, enum ensemble_result why)
{
	if (taker->state == TAKER_WAITING)
		taker_fail(taker, create_error(why));
}

static void create_entry(struct lc_taker *taker)
{
	struct lock *lock = taker->entry.lock;

	entry_begin(&taker->entry);
	if (!batch_add(&taker->entry)) {
		entry_set_absent(&taker->entry);
		taker_fail(taker, -ENOMEM);
		return;
	}
	list_last(taker);
	lock_watch(lock); /* sent before the create */
	if (needs_list(taker))
		lock_want_list(lock);
	else
		lock_recheck(lock);
}

static void delete_entry(struct lc_taker *taker)
{
	struct lock *lock = taker->entry.lock;

	taker->spare = false;
	/* The entry guards the lock for the unproved holder: grant/decide.c deletes it later. */
	if (lock->grant.held_back && lock->grant.unproved) {
		entry_watch(lock->grant.unproved);
		return;
	}
	entry_set_state(&taker->entry, ENTRY_DELETING);
	if (batch_add(&taker->entry))
		return;
	entry_set_state(&taker->entry, ENTRY_PRESENT);
	taker_try_later(taker);
}

void lock_delete_held_back(struct lock *lock)
{
	struct lc_taker *leaver, *next;

	if (!lock->grant.held_back)
		return;
	lock->grant.held_back = false;
	DL_FOREACH_SAFE(lock->takers.all, leaver, next)
		if (!leaver->entry.wanted && leaver->entry.state == ENTRY_PRESENT)
			taker_step(leaver);
}

void taker_proved(struct lc_taker *taker)
{
	struct lock *lock = taker->entry.lock;

	if (lock->grant.unproved != &taker->entry)
		return;
	lock->grant.unproved = NULL;
	entry_touch(&taker->entry);
	lock_delete_held_back(lock);
	lock_touch(lock);
}

void taker_step(struct lc_taker *taker)
{
	struct entry *entry = &taker->entry;
	bool ready = lc_ready(entry->lock->lc);

	switch (entry->state) {
	case ENTRY_ABSENT:
		if (!entry->wanted)
			taker_free_if_done(taker);
		else if (!ready || taker->state != TAKER_WAITING || taker->wait == WAIT_MISSING)
			return;
		else if (taker->wait == WAIT_PROBING)
			lock_want_list(entry->lock);
		else if (entry->lock->batch.unknown == 0)
			create_entry(taker);
		return;
	case ENTRY_PRESENT:
		/* A delete that was refused waits for its timer. */
		if (ready && !entry->wanted && !retry_timer(taker)->armed)
			delete_entry(taker);
		return;
	case ENTRY_CREATING:
	case ENTRY_UNKNOWN:
	case ENTRY_DELETING:
		return; /* an answer or a listing causes the next step */
	}
}

void lock_step(struct lock *lock)
{
	struct lc_taker *taker, *next;

	DL_FOREACH_SAFE(lock->takers.all, taker, next)
		taker_step(taker);
}

void taker_try_later(struct lc_taker *taker)
{
	struct lc *lc = taker->entry.lock->lc;

	timer_set(&lc->timers, retry_timer(taker), lc_now(lc) + RETRY_US);
	entry_touch(&taker->entry);
}

void taker_free_if_done(struct lc_taker *taker)
{
	struct lock *lock = taker->entry.lock;
	struct lc *lc = taker->entry.lock->lc;

	if (taker->state != TAKER_LEFT || taker->entry.state != ENTRY_ABSENT)
		return;
	record_end(&taker->entry.record); /* the taker only waits for an answer, if at all */
	if (taker->entry.pending > 0)
		return;
	assert(!taker->due_prev && !taker->changed_prev);
	timer_clear(&lc->timers, &taker->limit);
	timer_clear(&lc->timers, &taker->recheck);
	quota_return_entry(lc, &taker->charge);
	count_state(taker, -1);
	DL_DELETE(lock->takers.all, taker);
	entry_finish(&taker->entry);
	free(taker);
	lock_touch(lock);
	lock_unuse(lock);
}
