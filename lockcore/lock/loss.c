/* SPDX-License-Identifier: MIT */
#include "lock/known.h"
#include "pure/letters.h"

#include <errno.h>

/* The taker loses its place or its lock. */
static void take_away(struct lc_taker *taker, int error)
{
	taker->entry.lock->lc->counters.evictions +=
		error == -ECANCELED &&
		(taker->state == TAKER_WAITING || taker->state == TAKER_HELD);
	if (taker->state == TAKER_HELD)
		taker_lose(taker); /* it waits again, if the grant was not told */
	if (taker->state == TAKER_WAITING)
		taker_fail(taker, error);
}

static void report_gone(const struct lc_taker *taker)
{
	lc_report(taker->entry.lock->lc, LC_NOTICE, "%s/%s is gone", taker->entry.lock->path,
	          taker->entry.name);
}

void loss_of_lock(struct lc_taker *taker)
{
	entry_set_absent(&taker->entry);
	take_away(taker, -ENOENT);
}

/* A holder has lost the lock, whether it was evicted or the session has ended. A waiter is told of
 * an eviction only when a listing has not shown its entry, which tells that the lock is there, and
 * a write was answered behind that, which tells that the session lives. */
void loss_by_listing(struct lc_taker *taker)
{
	if (taker->entry.wanted)
		report_gone(taker);
	entry_set_absent(&taker->entry);
	if (taker_is_untold(taker))
		taker_lose(taker); /* it waits again */
	if (taker->state == TAKER_WAITING)
		taker_set_wait(taker, WAIT_MISSING);
	else
		take_away(taker, -ECANCELED);
}

void loss_of_node(struct lc_taker *taker)
{
	if (taker->entry.state == ENTRY_DELETING) {
		known_gone(&taker->entry); /* the answer of the delete says the same */
		return;
	}
	loss_by_listing(taker);
	lock_want_list(taker->entry.lock);
}

void loss_by_mark(struct lc_taker *taker, const char *by)
{
	taker_drop_spare(taker);
	if (taker->state != TAKER_WAITING && taker->state != TAKER_HELD)
		return;
	lc_report(taker->entry.lock->lc, LC_NOTICE, "%s/%s: evicted by %s", taker->entry.lock->path,
	          taker->entry.name, by);
	if (taker->entry.lock->lc->config.evicted)
		taker->entry.lock->lc->config.evicted(taker->entry.lock->lc->config.ctx, taker->ctx,
		                                      by);
	take_away(taker, -ECANCELED);
}

void loss_by_letters(struct lc *lc, const void *letters, size_t len, bool all)
{
	struct lc_taker *taker, *next;
	bool good = true;
	size_t at = 0;
	uint64_t id;

	while (!all && letters_next(letters, len, &at, &id)) {
		taker = taker_find(lc, id);
		good &= !taker || entry_look(&taker->entry);
	}
	if (all)
		TAKERS_FOREACH_SAFE(lc, taker, next)
			good &= entry_look(&taker->entry);
	if (!good)
		lc->ensemble->port->drop(lc->ensemble);
	else if (lc->entries->looks == 0)
		session_letters_done(lc);
}

void loss_by_limit(struct lc_taker *taker)
{
	taker->entry.lock->lc->counters.overdue++;
	taker_lose(taker);
}

void loss_of_session(struct lc_taker *taker)
{
	if (taker->wait == WAIT_MISSING)
		taker_set_wait(taker, WAIT_QUEUED);
	if (taker->entry.state != ENTRY_ABSENT)
		entry_set_absent(&taker->entry);
	if (taker->state == TAKER_HELD)
		taker_lose(taker);
	taker_free_if_done(taker);
}

void loss_of_lease(struct lc *lc)
{
	struct lc_taker *taker, *next;

	TAKERS_FOREACH_SAFE(lc, taker, next)
		if (taker->state == TAKER_HELD)
			taker_lose(taker);
}

void loss_of_missing(struct lc *lc)
{
	struct lc_taker *taker, *next;

	if (!lc->takers->missing)
		return;
	lc->takers->missing = false;
	TAKERS_FOREACH_SAFE(lc, taker, next)
		if (taker->state == TAKER_WAITING && taker->wait == WAIT_MISSING)
			take_away(taker, -ECANCELED);
}
