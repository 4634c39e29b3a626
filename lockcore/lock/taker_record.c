/* SPDX-License-Identifier: MIT
 *
 * taker_record.c - what is recorded of a taker and its entry, and how another process makes them
 * from that: as when a connection was lost. A grant that the frontend was not told of did not
 * happen. Takers of one lock are read in the order of their entries: so the one that another is to
 * replace comes first.
 *
 * A record is this process's own memory, of this version or of one before, and the journal has a
 * checksum. So the codec's ranges are all that is checked; a taker that cannot be ends the process
 * at an assert.
 */
#include "lock/taker.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FLAG_SHARED 1
#define FLAG_IMMEDIATE 2
#define FLAG_DUE 4     /* the frontend is to be told of its state */
#define FLAG_GONE 8    /* of a former version: its entry is gone, as a listing will tell */
#define FLAG_UNSEEN 16 /* got the lock by hand-off, and was not seen since */
#define FLAG_TOLD_SINCE 32
#define FLAG_DIRTY 64      /* its data is to be written */
#define FLAG_WITHDRAWN 128 /* of a former version: it is to be refused, and its entry to go */
#define FLAGS_ALL 255

/* Fields of a taker that have another form in the record, or are in other objects. */
struct parts {
	const char *lock; /* its path below the root */
	const char *reason;
	enum taker_state state;
	enum taker_wait wait;
	enum taker_loss loss;
	enum entry_state entry;
	unsigned flags;
	uint64_t replaces;            /* 0: nobody */
	int64_t limit_us, recheck_us; /* LC_FOREVER: not set */
	int64_t held_since_ms;
	uint64_t charged;
	unsigned crowd;
	uid_t watches_uid; /* who is charged for the watches of its lock */
};

/* ---- the fields ---- */

static void save_load_fields(struct codec *codec, struct lc_taker *taker, struct parts *parts)
{
	struct entry *entry = &taker->entry;

	parts->lock = codec_text(codec, parts->lock);
	parts->reason = codec_text(codec, parts->reason);
	codec_copy(codec, entry->name, sizeof(entry->name));
	CODEC_64(codec, entry->id.number);
	CODEC_ENUM(codec, parts->state, TAKER_LEFT);
	CODEC_ENUM(codec, parts->wait, WAIT_MISSING);
	CODEC_ENUM(codec, parts->loss, LOSS_GIVEN_UP);
	CODEC_ENUM(codec, parts->entry, ENTRY_DELETING);
	CODEC_RANGE(codec, parts->flags, 0, FLAGS_ALL);
	CODEC_64(codec, parts->replaces);
	CODEC_RANGE(codec, taker->error, -4095, 0);
	CODEC_64(codec, taker->meant);
	CODEC_RANGE(codec, parts->crowd, 0, LC_CROWD_MAX);
	CODEC_TIME(codec, taker->asked_us);
	CODEC_TIME(codec, taker->wait_until_us);
	CODEC_TIME(codec, taker->hold_until_us);
	CODEC_TIME(codec, parts->limit_us);
	CODEC_TIME(codec, parts->recheck_us);
	CODEC_RANGE(codec, parts->held_since_ms, -1, LC_FOREVER / 4);
	CODEC_RANGE(codec, parts->charged, 0, LC_PATH_MAX + LC_NAME_MAX);
	CODEC_U32(codec, parts->watches_uid);
	CODEC_64(codec, entry->czxid);
	CODEC_INT(codec, entry->version);
	CODEC_PID(codec, entry->data.pid);
	CODEC_U32(codec, entry->data.uid);
	codec_copy(codec, entry->data.command, sizeof(entry->data.command));
}

/* ---- writing ---- */

static const char *name_below_root(const struct lock *lock)
{
	const char *below = lock->path + strlen(lock->lc->root);

	return below + (*below == '/');
}

/* Requests under way may have been done, or not. */
static enum entry_state without_answers(enum entry_state state)
{
	switch (state) {
	case ENTRY_ABSENT:
		return ENTRY_ABSENT;
	case ENTRY_CREATING:
	case ENTRY_UNKNOWN:
		return ENTRY_UNKNOWN;
	case ENTRY_PRESENT:
	case ENTRY_DELETING:
		break;
	}
	return ENTRY_PRESENT;
}

static unsigned flags_of(const struct lc_taker *taker)
{
	const struct entry *entry = &taker->entry;
	bool dirty = entry->data.dirty || entry->data.turn;

	return (entry->mode == LC_SHARED ? FLAG_SHARED : 0) |
	       (taker->immediate ? FLAG_IMMEDIATE : 0) | (taker->due_prev ? FLAG_DUE : 0) |
	       (entry->lock->grant.unproved == entry ? FLAG_UNSEEN : 0) |
	       (entry->data.told_since ? FLAG_TOLD_SINCE : 0) | (dirty ? FLAG_DIRTY : 0);
}

/* The grant was not told: the taker is recorded as waiting, as after taker_lose(). */
static void take_grant_back(const struct lc_taker *taker, struct parts *parts)
{
	parts->state = TAKER_WAITING;
	parts->flags &= ~(unsigned)(FLAG_DUE | FLAG_UNSEEN);
	parts->held_since_ms = -1;
	parts->limit_us = taker->wait_until_us;
	parts->recheck_us = LC_FOREVER;
}

void taker_write(struct codec *codec, struct lc_taker *taker)
{
	struct entry *entry = &taker->entry;
	struct parts parts = {
		.lock = name_below_root(entry->lock),
		.reason = entry->data.reason,
		.state = taker->state,
		.wait = taker->wait,
		.loss = taker->loss,
		.entry = without_answers(entry->state),
		.flags = flags_of(taker),
		.limit_us = taker->limit.armed ? taker->limit.at_us : LC_FOREVER,
		.recheck_us = taker->recheck.armed ? taker->recheck.at_us : LC_FOREVER,
		.held_since_ms = entry->data.held_since_ms,
		.charged = taker->charge.bytes,
		.crowd = taker->crowd,
		.watches_uid = quota_charged_user(&entry->lock->node.charge),
	};

	if (taker_is_untold(taker))
		take_grant_back(taker, &parts);
	if (taker->replaces)
		parts.replaces = taker->replaces->entry.id.number;
	save_load_fields(codec, taker, &parts);
}

/* ---- reading ---- */

/* The name says the entry's number, if the node is known. */
static void read_name(struct entry *entry, enum entry_state state)
{
	struct entry_name name;
	bool parsed = state == ENTRY_PRESENT && name_parse(entry->name, &name);

	assert(parsed == (state == ENTRY_PRESENT));
	if (!parsed)
		return;
	assert(name.taker_half == entry->id.number);
	entry->number = name.number;
}

static void refuse_withdrawn(struct lc_taker *taker, struct parts *parts)
{
	parts->state = TAKER_FAILED;
	parts->flags |= FLAG_DUE;
	parts->limit_us = parts->recheck_us = LC_FOREVER;
	taker->error = -EAGAIN;
}

static bool resume(struct lc *lc, struct lc_taker *taker, struct lock *lock,
                   const struct parts *parts)
{
	struct entry *entry = &taker->entry;

	taker->state = parts->state;
	taker->wait = parts->wait;
	taker->loss = parts->loss;
	taker->immediate = parts->flags & FLAG_IMMEDIATE;
	taker->crowd = parts->crowd & LC_CROWD_MAX;
	entry->state = parts->entry;
	entry->mode = parts->flags & FLAG_SHARED ? LC_SHARED : LC_EXCLUSIVE;
	entry->data.told_since = parts->flags & FLAG_TOLD_SINCE;
	entry->data.dirty = parts->flags & FLAG_DIRTY;
	entry->data.held_since_ms = parts->held_since_ms;
	entry->data.reason = parts->reason ? strdup(parts->reason) : NULL;
	if ((parts->reason && !entry->data.reason) || entry_resume(lc, entry, lock) < 0) {
		free(entry->data.reason);
		return false;
	}
	if (parts->flags & FLAG_UNSEEN)
		lock->grant.unproved = entry;
	quota_charge_entry(lc, &taker->charge, entry->data.uid, parts->charged);
	taker_resume(taker, parts->flags & FLAG_DUE);
	if (parts->limit_us != LC_FOREVER)
		timer_set(&lc->timers, &taker->limit, parts->limit_us);
	if (parts->recheck_us != LC_FOREVER)
		timer_set(&lc->timers, &taker->recheck, parts->recheck_us);
	return true;
}

bool taker_read(struct codec *codec, struct lc *lc, struct lc_taker *taker)
{
	struct parts parts = {0};
	struct lc_taker *replaced;
	struct lock *lock = NULL;

	save_load_fields(codec, taker, &parts);
	if (codec->bad)
		return false;
	if (parts.flags & FLAG_WITHDRAWN)
		refuse_withdrawn(taker, &parts);
	assert(parts.lock && taker->entry.id.number != 0);
	assert(parts.state != TAKER_HELD || parts.entry == ENTRY_PRESENT);
	read_name(&taker->entry, parts.entry);
	replaced = taker_find(lc, parts.replaces);
	if (lock_get(lc, parts.lock, parts.watches_uid, &lock) < 0 ||
	    !resume(lc, taker, lock, &parts)) {
		codec_fail(codec, strerror(ENOMEM));
		if (lock)
			lock_unuse(lock);
		return false;
	}
	if (replaced)
		taker_replace(taker, replaced);
	return true;
}
