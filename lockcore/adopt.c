/* SPDX-License-Identifier: MIT
 *
 * adopt.c - an engine goes on in another process, without a loss for the users of the mount.
 *
 * Its records are those of an engine whose connection is lost: requests under way may have been
 * done, or not; nothing is watched; the contents of listings are forgotten. So the new engine does
 * what any engine does then: it connects, proves the connection by a write, lists every lock, and
 * goes on with its deletes. Until that write is answered it grants nothing; holders hold until the
 * recorded deadline.
 *
 * A grant that the frontend was not told of is not recorded: it did not happen. The new engine
 * tells the frontend all other results that are due.
 *
 * There is one engine in a session at a time: the one that was recorded may go on if the other one
 * did not start, but then the other one must never have connected.
 */
#include "adopt.h"

#include "ask/call.h"
#include "ask/evict.h"
#include "ask/poke.h"
#include "lock/taker_record.h"
#include "session/counters.h"
#include "take.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* There is one record of the session, and one of the counters. */
#define THE_ONE 1

/* ---- the records ---- */

static void carry_root(struct carry *carry, struct lc *lc)
{
	const char *root = carry_text(carry, lc->root);

	CARRY_BOOL(carry, lc->draining);
	if (!root || strcmp(root, lc->root) != 0)
		carry_refuse(carry, "the state is that of another root");
}

static void taker_carry(struct carry *carry, void *ctx, struct stored *stored)
{
	struct lc *lc = ctx;
	struct lc_taker *taker;

	if (!carry->loads) {
		taker_write(carry, taker_of_stored(stored));
		return;
	}
	taker = taker_blank();
	if (!taker)
		carry_fail(carry, strerror(ENOMEM));
	else if (!taker_read(carry, lc, taker))
		free(taker);
	else
		lc->takers->unclaimed += taker->state != TAKER_LEFT;
}

void adopt_kinds(struct lc *lc)
{
	struct book *book = lc->config.book;

	if (!book)
		return;
	book_kind(book, LC_KIND_TAKER, taker_carry, lc);
	book_kind(book, LC_KIND_EVICTION, eviction_carry, lc);
}

void lc_record(struct lc *lc)
{
	struct book *book = lc->config.book;
	struct carry *carry = &book->carry;

	carry_begin(carry);
	carry_root(carry, lc);
	session_carry(carry, lc);
	pokes_carry(carry, lc);
	book_put(book, LC_KIND_SESSION, THE_ONE);
	carry_begin(carry);
	counters_carry(carry, &lc->counters);
	book_put(book, LC_KIND_COUNTERS, THE_ONE);
}

bool lc_settled(const struct lc *lc)
{
	const struct lc_call *call;

	DL_FOREACH(lc->calls->calls, call)
		if (!lc_may_cancel(call))
			return false;
	return true;
}

/* ---- going on ---- */

/* 0, -EPROTO or -ENOMEM. */
static int verdict(const struct carry *carry)
{
	return carry->bad ? -EPROTO : carry->failed ? -ENOMEM : 0;
}

int adopt_session(struct lc *lc, const struct session_events *events, struct book *book,
                  struct carry *carry)
{
	int r;

	if (!book_find(book, carry, LC_KIND_SESSION, THE_ONE))
		carry_refuse(carry, "the state lacks the session");
	else
		carry_root(carry, lc);
	r = session_restore(lc, events, carry);
	if (r < 0)
		return r;
	pokes_carry(carry, lc);
	carry_read_all(carry);
	return verdict(carry);
}

int adopt_rest(struct lc *lc, struct book *book, struct carry *carry)
{
	if (!book_find(book, carry, LC_KIND_COUNTERS, THE_ONE))
		carry_refuse(carry, "the state lacks the counters");
	counters_carry(carry, &lc->counters);
	carry_read_all(carry);
	if (!carry->bad)
		book_read(book, carry, LC_KIND_TAKER);
	if (verdict(carry) == 0)
		book_read(book, carry, LC_KIND_EVICTION);
	if (verdict(carry) == 0 && !carry->checks)
		session_reopen(lc);
	return verdict(carry);
}

/* ---- the frontend takes its takers over ---- */

uint64_t lc_taker_id(const struct lc_taker *taker)
{
	return taker->entry.id.number;
}

struct lc_taker *lc_claim(struct lc *lc, uint64_t id, lc_taken_fn *taken, lc_lost_fn *lost,
                          void *ctx)
{
	struct entry *entry = entry_find(lc, id);
	struct lc_taker *taker = entry ? taker_of(entry) : NULL;

	if (!taker || taker->state == TAKER_LEFT || taker->taken)
		return NULL;
	lc->takers->unclaimed--;
	taker->taken = taken;
	taker->lost = lost;
	taker->ctx = ctx;
	return taker;
}

void lc_claimed(struct lc *lc)
{
	struct entry *entry, *next;

	if (lc->takers->unclaimed == 0)
		return; /* users wait, and there may be thousands */
	ENTRIES_FOREACH_SAFE(lc, entry, next)
		if (!taker_of(entry)->taken && taker_of(entry)->state != TAKER_LEFT)
			lc_leave(taker_of(entry));
	lc->takers->unclaimed = 0;
}
