/* SPDX-License-Identifier: MIT
 *
 * adopt.c - an engine goes on in another process, without a loss for the users of the mount.
 *
 * The saved state is that of an engine whose connection is lost: requests under way may have been
 * done, or not; nothing is watched; the contents of listings are forgotten. So the new engine does
 * what any engine does then: it connects, proves the connection by a write, lists every lock, and
 * goes on with its deletes. Until that write is answered it grants nothing; holders hold until the
 * saved deadline.
 *
 * A grant that the face was not told of is not saved: it did not happen. The new engine tells the
 * face all other results that are due.
 *
 * There is one engine in a session at a time: the one that was saved may go on if the other one
 * did not start, but then the other one must never have connected.
 */
#include "adopt.h"

#include "ask/call.h"
#include "ask/evict.h"
#include "ask/poke.h"
#include "take.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* ---- saving ---- */

static struct state_record save_session(struct lc *lc)
{
	struct state_record record = {.kind = STATE_SESSION, .texts = {lc->root}};
	struct state_session *session = &record.fixed.session, given;

	session->flags = lc->draining ? STATE_SESSION_DRAINING : 0;
	session->version = STATE_VERSION;
	session->least = STATE_LEAST;
	session_save(lc, session);
	pokes_save(lc, session);
	/* That time has passed is no change. */
	given = lc->changes->session.fixed.session;
	session->saved_us = given.saved_us;
	if (!lc->changes->session.kind || memcmp(session, &given, sizeof(given)) != 0)
		session->saved_us = lc_now(lc); /* nothing else in it is later */
	return record;
}

static struct state_record save_counters(const struct lc *lc)
{
	const struct lc_counters *counters = &lc->counters;
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
	return record;
}

static const char *name_below_root(const struct lock *lock)
{
	const char *below = lock->path + strlen(lock->lc->root);

	return below + (*below == '/');
}

/* A taker that has left, and has no entry, only waits for an answer. */
static bool is_only_kept(const struct lc_taker *taker)
{
	return taker->state == TAKER_LEFT && taker->entry.state == ENTRY_ABSENT;
}

static struct state_record save_taker(const struct lc_taker *taker)
{
	struct state_record record = {.kind = STATE_TAKER,
	                              .texts = {name_below_root(taker->entry.lock)}};

	taker_save(taker, &record);
	return record;
}

/* Of a taker or an eviction. False: there is nothing to be saved of it. */
static bool save_object(const struct saved *saved, struct state_record *ret_record)
{
	const struct lc_taker *taker;

	if (saved->gone)
		return false;
	if (saved->kind == STATE_EVICTION) {
		*ret_record = eviction_save(saved);
		return true;
	}
	taker = taker_of_saved(saved);
	if (is_only_kept(taker))
		return false;
	*ret_record = save_taker(taker);
	return true;
}

/* The receiver of the records. */
struct receiver {
	struct lc *lc;
	lc_saved_fn *saved;
	void *ctx;
};

static int hand_over(const struct receiver *to, uint64_t key, const struct state_record *record)
{
	size_t len;
	const void *bytes = state_write_alone(&to->lc->changes->writer, record, &len);

	if (!bytes)
		return -ENOMEM;
	to->saved(to->ctx, key, bytes, len);
	return 0;
}

static int hand_over_takers(const struct receiver *to)
{
	int r = 0;

	for (struct lock *lock = to->lc->locks->by_path; lock; lock = lock->hh.next) {
		const struct lc_taker *taker;

		DL_FOREACH(lock->takers, taker) {
			struct state_record record;

			if (r == 0 && save_object(&taker->entry.saved, &record))
				r = hand_over(to, taker->entry.saved.key, &record);
		}
	}
	return r;
}

static int hand_over_evictions(const struct receiver *to)
{
	const struct saved *saved = NULL;
	int r = 0;

	while (r == 0 && (saved = eviction_next(to->lc, saved))) {
		struct state_record record = eviction_save(saved);

		r = hand_over(to, saved->key, &record);
	}
	return r;
}

static int hand_over_all(const struct receiver *to, const struct state_record *session)
{
	struct state_record counters = save_counters(to->lc);
	int r = hand_over(to, STATE_KEY_SESSION, session);

	if (r == 0)
		r = hand_over(to, STATE_KEY_COUNTERS, &counters);
	if (r == 0)
		r = hand_over_takers(to);
	return r == 0 ? hand_over_evictions(to) : r;
}

int lc_save_all(struct lc *lc, lc_saved_fn *saved, void *ctx)
{
	struct receiver to = {lc, saved, ctx};
	struct state_record session = save_session(lc);

	return hand_over_all(&to, &session);
}

/* One of the two that are always there. */
static int hand_over_if_changed(const struct receiver *to, uint64_t key,
                                const struct state_record *record, struct state_record *given,
                                size_t fixed_len)
{
	int r;

	if (given->kind && memcmp(&record->fixed, &given->fixed, fixed_len) == 0)
		return 0;
	r = hand_over(to, key, record);
	if (r == 0)
		*given = *record;
	return r;
}

static int hand_over_change(const struct receiver *to, struct saved *saved)
{
	struct state_record record;
	bool is_there = save_object(saved, &record);
	int r = is_there ? hand_over(to, saved->key, &record) : 0;

	if (r < 0)
		return r;
	if (saved->given && (!is_there || saved->given != saved->key))
		to->saved(to->ctx, saved->given, NULL, 0);
	saved->given = is_there ? saved->key : 0;
	saved_touched_not(to->lc, saved);
	if (saved->gone)
		saved_free_remains(saved);
	return 0;
}

int lc_save_changes(struct lc *lc, lc_saved_fn *saved, void *ctx)
{
	struct receiver to = {lc, saved, ctx};
	struct changes *changes = lc->changes;
	struct state_record session = save_session(lc), counters = save_counters(lc);
	int r = hand_over_if_changed(&to, STATE_KEY_SESSION, &session, &changes->session,
	                             sizeof(session.fixed.session));

	if (r == 0)
		r = hand_over_if_changed(&to, STATE_KEY_COUNTERS, &counters, &changes->counters,
		                         sizeof(counters.fixed.counters));
	while (r == 0 && changes->first)
		r = hand_over_change(&to, changes->first);
	return r;
}

bool lc_has_changed(const struct lc *lc)
{
	return lc->changes->first;
}

bool lc_settled(const struct lc *lc)
{
	const struct lc_call *call;

	DL_FOREACH(lc->calls->calls, call)
		if (!lc_may_cancel(call))
			return false;
	return true;
}

static void append(void *ctx, uint64_t key, const void *bytes, size_t len)
{
	(void)key;
	state_append(ctx, bytes, len);
}

int lc_save(struct lc *lc, void **ret_state, size_t *ret_len)
{
	struct state_writer writer;
	struct receiver to = {lc, append, &writer};
	struct state_record session = save_session(lc);

	if (!lc_settled(lc))
		return -EBUSY;
	if (lc->session->state == LC_UNUSABLE)
		return -EAGAIN;
	session.fixed.session.saved_us = lc_now(lc);
	state_begin(&writer);
	if (hand_over_all(&to, &session) < 0)
		writer.failed = true;
	return state_end(&writer, ret_state, ret_len);
}

int lc_join_state(const struct lc_record *records, size_t count, void **ret_state, size_t *ret_len)
{
	return state_join(records, count, ret_state, ret_len);
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
	struct entry *entry = entry_find(lc, id);

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
		lc->takers->unclaimed += taker->state != TAKER_LEFT;
		quota_charge_entry(lc, &taker->charge, record->fixed.taker.uid,
		                   record->fixed.taker.charged_bytes);
		return 0;
	}
	free(taker);
	lock_unuse(lock);
	return r;
}

static bool replaces_another(const struct state_record *record)
{
	return record->kind == STATE_TAKER && record->fixed.taker.replaces;
}

/* Those that are to take the place of others, when all are there. */
static void adopt_successors(struct lc *lc, const void *state, size_t len)
{
	struct state_record record;
	size_t offset = 0;

	while (state_read(state, len, &offset, &record))
		if (replaces_another(&record))
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
		if (state_is_good_eviction(record, lc->root))
			return eviction_restore(lc, record);
		lc_report(lc, LC_ERROR, "the record of an eviction cannot be read: %s",
		          record->texts[0]);
		return 0;
	}
	return 0;
}

int adopt_rest(struct lc *lc, const void *state, size_t len)
{
	struct state_record record;
	size_t offset = 0;
	bool successors = false;
	int r = 0;

	while (r == 0 && state_read(state, len, &offset, &record)) {
		r = adopt_record(lc, &record);
		successors |= replaces_another(&record);
	}
	if (r < 0)
		return r;
	if (successors)
		adopt_successors(lc, state, len);
	session_reopen(lc);
	return 0;
}

/* ---- the face takes its takers over ---- */

uint64_t lc_taker_id(const struct lc_taker *taker)
{
	return taker->entry.id.number;
}

struct lc_taker *lc_claim(struct lc *lc, uint64_t id, lc_taken_fn *taken, lc_lost_fn *lost,
                          void *ctx)
{
	struct lc_taker *taker = find_taker(lc, id);

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
