/* SPDX-License-Identifier: MIT
 *
 * adopt.c - an engine goes on in another process, and nobody on the mount loses anything by it.
 *
 * What is saved is what an engine knows when its connection is lost: what was under way may
 * have been done, or not; nothing is watched; what listings said is forgotten. So the engine
 * that goes on does what any engine does then: it connects, proves that by a write, lists
 * every lock, deletes what is to be deleted. Until that write is answered it grants nothing;
 * whoever holds does so until the deadline that was saved.
 *
 * A grant that was not told is not saved: it did not happen. All else that was not told yet is
 * told by the engine that goes on.
 *
 * There is one engine in a session at a time: the one that was saved may go on if the other one
 * did not start, but then the other one must never have connected.
 */
#include "adopt.h"

#include "call.h"
#include "evict.h"
#include "poke.h"
#include "take.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* ---- saving ---- */

static void save_session(struct lc *lc, struct state_writer *writer)
{
	struct state_record record = {.kind = STATE_SESSION, .texts = {lc->root}};
	struct state_session *session = &record.fixed.session;

	session->flags = lc->draining ? STATE_SESSION_DRAINING : 0;
	session_save(lc, session);
	pokes_save(lc, session);
	session->saved_us = lc_now(lc); /* nothing else in it is later */
	state_write(writer, &record);
}

static void save_counters(const struct lc_counters *counters, struct state_writer *writer)
{
	struct state_record record = {.kind = STATE_COUNTERS};

	record.fixed.counters = (struct state_counters){
		.takes = counters->takes,
		.grants = counters->grants,
		.hand_offs = counters->hand_offs,
		.losses = counters->losses,
		.evictions = counters->evictions,
		.overdue = counters->overdue,
		.abandoned = counters->abandoned,
		.doubts = counters->doubts,
		.requests = counters->requests,
		.waited_us = counters->waited_us,
	};
	for (int i = 0; i < LC_FAILURES; i++)
		record.fixed.counters.failures[i] = counters->failures[i];
	for (int i = 0; i <= LC_WAIT_BUCKETS; i++)
		record.fixed.counters.waits[i] = counters->waits[i];
	state_write(writer, &record);
}

/* One that has left, and has no entry, is only kept for an answer. */
static void save_taker(const struct lc_taker *taker, const char *lock, struct state_writer *writer)
{
	struct state_record record = {.kind = STATE_TAKER, .texts = {lock}};

	if (taker->state == TAKER_LEFT && taker->entry.state == ENTRY_ABSENT)
		return;
	taker_save(taker, &record);
	state_write(writer, &record);
}

static void save_takers(struct lc *lc, struct state_writer *writer)
{
	const struct lc_taker *taker;

	for (struct lock *lock = lc->locks->by_path; lock; lock = lock->hh.next) {
		const char *below = lock->path + strlen(lc->root);

		DL_FOREACH(lock->takers, taker)
			save_taker(taker, below + (*below == '/'), writer);
	}
}

int lc_save(struct lc *lc, void **ret_state, size_t *ret_len)
{
	struct state_writer writer;
	const struct lc_call *call;

	DL_FOREACH(lc->calls->calls, call)
		if (!lc_may_cancel(call))
			return -EBUSY;
	if (lc->session->state == LC_UNUSABLE)
		return -EAGAIN;
	state_begin(&writer);
	save_session(lc, &writer);
	save_counters(&lc->counters, &writer);
	save_takers(lc, &writer);
	evictions_save(lc, &writer);
	return state_end(&writer, ret_state, ret_len);
}

int lc_check_state(const void *state, size_t len)
{
	return state_check(state, len);
}

/* ---- going on ---- */

int adopt_session(struct lc *lc, const struct session_events *events, const void *state, size_t len)
{
	struct state_record record;
	const struct state_session *session = &record.fixed.session;
	size_t offset = 0;
	int r;

	if (!state_read(state, len, &offset, &record) || strcmp(record.texts[0], lc->root) != 0 ||
	    session->saved_us > lc_now(lc))
		return -EINVAL;
	lc->draining = session->flags & STATE_SESSION_DRAINING;
	r = session_restore(lc, events, session);
	if (r == 0)
		pokes_restore(lc, session);
	return r;
}

static void restore_counters(struct lc_counters *counters, const struct state_counters *saved)
{
	*counters = (struct lc_counters){
		.takes = saved->takes,
		.grants = saved->grants,
		.hand_offs = saved->hand_offs,
		.losses = saved->losses,
		.evictions = saved->evictions,
		.overdue = saved->overdue,
		.abandoned = saved->abandoned,
		.doubts = saved->doubts,
		.requests = saved->requests,
		.waited_us = saved->waited_us,
	};
	for (int i = 0; i < LC_FAILURES; i++)
		counters->failures[i] = saved->failures[i];
	for (int i = 0; i <= LC_WAIT_BUCKETS; i++)
		counters->waits[i] = saved->waits[i];
}

static struct lc_taker *find_taker(struct lc *lc, uint64_t id)
{
	struct entry *entry;

	HASH_FIND(hh, lc->entries->by_id, &id, sizeof(id), entry);
	return entry ? taker_of(entry) : NULL;
}

static int adopt_taker(struct lc *lc, const struct state_record *record)
{
	struct lc_taker *taker;
	struct lock *lock;
	int r = lock_get(lc, record->texts[0], record->fixed.taker.watches_uid, &lock);

	if (r < 0)
		return r;
	taker = taker_blank();
	r = taker ? taker_restore(lc, taker, lock, record) : -ENOMEM;
	if (r == 0) {
		quota_charge_entry(lc, &taker->charge, record->fixed.taker.uid,
		                   record->fixed.taker.charged_bytes);
		return 0;
	}
	free(taker);
	lock_unuse(lock);
	return r;
}

/* Those that are to take the place of others, when all are there. */
static void adopt_successors(struct lc *lc, const void *state, size_t len)
{
	struct state_record record;
	size_t offset = 0;

	while (state_read(state, len, &offset, &record))
		if (record.kind == STATE_TAKER && record.fixed.taker.replaces)
			taker_replace(find_taker(lc, record.fixed.taker.id),
			              find_taker(lc, record.fixed.taker.replaces));
}

static int adopt_record(struct lc *lc, const struct state_record *record)
{
	switch (record->kind) {
	case STATE_SESSION:
		return 0;
	case STATE_COUNTERS:
		restore_counters(&lc->counters, &record->fixed.counters);
		return 0;
	case STATE_TAKER:
		return adopt_taker(lc, record);
	case STATE_EVICTION:
		return eviction_restore(lc, record);
	}
	return 0;
}

int adopt_rest(struct lc *lc, const void *state, size_t len)
{
	struct state_record record;
	size_t offset = 0;
	int r = 0;

	while (r == 0 && state_read(state, len, &offset, &record))
		r = adopt_record(lc, &record);
	if (r < 0)
		return r;
	adopt_successors(lc, state, len);
	session_reopen(lc);
	return 0;
}

/* ---- the face takes its takers over ---- */

uint64_t lc_taker_id(const struct lc_taker *taker)
{
	return taker->entry.id;
}

struct lc_taker *lc_claim(struct lc *lc, uint64_t id, lc_taken_fn *taken, lc_lost_fn *lost,
                          void *ctx)
{
	struct lc_taker *taker = find_taker(lc, id);

	if (!taker || taker->state == TAKER_LEFT || taker->taken)
		return NULL;
	taker->taken = taken;
	taker->lost = lost;
	taker->ctx = ctx;
	return taker;
}

void lc_claimed(struct lc *lc)
{
	struct entry *entry, *next;

	HASH_ITER(hh, lc->entries->by_id, entry, next)
		if (!taker_of(entry)->taken && taker_of(entry)->state != TAKER_LEFT)
			lc_leave(taker_of(entry));
}
