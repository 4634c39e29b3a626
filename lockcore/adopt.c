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
#include "engine.h"

#include "ask/call.h"
#include "ask/evict.h"
#include "session/counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* There is one record of the session, and one of the counters. */
#define THE_ONE 1

/* ---- the records ---- */

static void save_load_root(struct codec *codec, struct lc *lc)
{
	const char *root = codec_text(codec, lc->root);

	CODEC_BOOL(codec, lc->draining);
	if (!root || strcmp(root, lc->root) != 0)
		codec_refuse(codec, "the state is that of another root");
}

static void taker_save_load(struct codec *codec, void *ctx, struct record *record)
{
	struct lc *lc = ctx;
	struct lc_taker *taker;

	if (!codec->loads) {
		taker_write(codec, taker_of(RECORD_IN(record, struct entry)));
		return;
	}
	taker = taker_blank();
	if (!taker)
		codec_fail(codec, strerror(ENOMEM));
	else if (!taker_read(codec, lc, taker))
		free(taker);
}

void adopt_kinds(struct lc *lc)
{
	struct records *records = lc->config.records;

	if (!records)
		return;
	records_kind(records, LC_KIND_TAKER, taker_save_load, lc);
	records_kind(records, LC_KIND_EVICTION, eviction_save_load, lc);
}

void lc_record(struct lc *lc)
{
	struct records *records = lc->config.records;
	struct codec *codec = &records->codec;

	codec_begin(codec);
	save_load_root(codec, lc);
	session_save_load(codec, lc);
	records_put(records, LC_KIND_SESSION, THE_ONE);
	codec_begin(codec);
	counters_save_load(codec, &lc->counters);
	records_put(records, LC_KIND_COUNTERS, THE_ONE);
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
static int verdict(const struct codec *codec)
{
	return codec->bad ? -EPROTO : codec->failed ? -ENOMEM : 0;
}

int adopt_records(struct lc *lc, const struct session_events *events, struct records *records,
                  struct codec *codec)
{
	int r;

	if (!records_find(records, codec, LC_KIND_SESSION, THE_ONE))
		codec_refuse(codec, "the state lacks the session");
	else
		save_load_root(codec, lc);
	r = session_restore(lc, events, codec);
	if (r == 0)
		r = verdict(codec);
	if (r < 0)
		return r;
	if (!records_find(records, codec, LC_KIND_COUNTERS, THE_ONE))
		codec_refuse(codec, "the state lacks the counters");
	counters_save_load(codec, &lc->counters);
	codec_read_all(codec);
	if (!codec->bad)
		records_read(records, codec, LC_KIND_TAKER);
	if (verdict(codec) == 0)
		records_read(records, codec, LC_KIND_EVICTION);
	if (verdict(codec) == 0 && !codec->checks)
		session_reopen(lc);
	return verdict(codec);
}

/* ---- the frontend takes its takers over ---- */

uint64_t lc_taker_id(const struct lc_taker *taker)
{
	return taker->entry.id.number;
}

struct lc_taker *lc_claim(struct lc *lc, uint64_t id, lc_taken_fn *taken, lc_lost_fn *lost,
                          void *ctx)
{
	struct lc_taker *taker = taker_find(lc, id);

	if (!taker || taker->state == TAKER_LEFT || taker->taken)
		return NULL;
	taker->taken = taken;
	taker->lost = lost;
	taker->ctx = ctx;
	return taker;
}

void lc_claimed(struct lc *lc)
{
	struct lc_taker *taker, *next;

	TAKERS_FOREACH_SAFE(lc, taker, next)
		if (!taker->taken && taker->state != TAKER_LEFT)
			lc_leave(taker);
}
