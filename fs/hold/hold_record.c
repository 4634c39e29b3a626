/* SPDX-License-Identifier: MIT */
#include "hold/hold_record.h"

#include "guard/guardian.h"
#include "hold/audit.h"
#include "hold/advisory.h"
#include "hold/flock_claim.h"
#include "hold/hold.h"
#include "hold/linger.h"
#include "hold/open_lock_file.h"
#include "host/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Records hold the index of a kind, so the order of the kinds must not change. */
static const struct hold_kind *const kinds[] = {&handle_kind, &flock_claim_hold_kind};
#define KIND_LAST 1

static void claim_save_load(struct codec *codec, struct hold *hold, struct claim *claim)
{
	unsigned kind = claim && claim->file->node->lock_file.advisory;

	CODEC_RANGE(codec, kind, 0, KIND_LAST);
	if (codec->loads && kind == 1 && hold->kind != kinds[1])
		codec->give_up("the state has a lock by flock without a taker");
	claim = kinds[kind]->save_load_claim(codec, hold, claim);
	CODEC_PID(codec, claim->pid);
	CODEC_U32(codec, claim->uid);
	claim->life = process_life_save_load(codec, claim->pid, claim->uid, claim->life);
	claim->slot = guardian_slot_save_load(codec, hold->front->guardian, claim->slot);
	if (!codec->loads)
		return;
	claim->hold = hold;
	DL_APPEND(hold->claims, claim);
}

static void claims_save_load(struct codec *codec, struct hold *hold)
{
	struct guardian *guardian = hold->front->guardian;
	bool admits = hold->admit_prev;
	struct claim *claim;
	size_t count = 0;

	DL_COUNT(hold->claims, claim, count);
	count = codec_count(codec, count);
	if (codec->loads && count == 0)
		codec->give_up("the state has a lock without an owner");
	claim = codec->loads ? NULL : hold->claims;
	for (size_t i = 0; i < count; i++) {
		claim_save_load(codec, hold, claim);
		claim = claim ? claim->next : NULL;
	}
	DL_FOREACH(hold->claims, claim)
		if (codec->loads && !codec->checks && hold->state == HOLD_HELD &&
		    guardian_has_lost(guardian, claim->slot))
			lc_limit(hold->taker, 0); /* the guardian stops its processes already */
	CODEC_BOOL(codec, admits);
	if (codec->loads && admits)
		DL_APPEND2(hold->front->holds->admitting, hold, admit_prev, admit_next);
}

/* The hold takes the steps that once led to its state, so that it gets into its lists. */
static void step_to(struct codec *codec, struct hold *hold, enum hold_state to, uint64_t unique)
{
	hold_step(hold, HOLD_WAITING);
	switch (to) {
	case HOLD_WAITING:
		hold->req = request_give(hold->front, unique, hold);
		if (!hold->req)
			codec->give_up("the state has a taker without a request");
		break;
	case HOLD_LINGERING:
		hold_step(hold, HOLD_LINGERING);
		break;
	case HOLD_HELD:
	case HOLD_LOST:
	case HOLD_KEPT:
		hold_step(hold, HOLD_GRANTING);
		hold_step(hold, HOLD_HELD);
		if (to != HOLD_HELD)
			hold_step(hold, to);
		break;
	case HOLD_NEW:
	case HOLD_GRANTING:
	case HOLD_GONE:
		codec->give_up("the state has an invalid taker");
	}
}

static void taker_save_load(struct codec *codec, struct hold *hold)
{
	uint64_t id = codec->loads ? 0 : lc_taker_id(hold->taker);

	CODEC_64(codec, id);
	if (!codec->loads || codec->checks)
		return;
	if (!hold_find_taker(hold, id))
		codec->give_up("the state has a taker that the engine does not know");
}

static struct hold *new_hold(struct codec *codec, struct frontend *front)
{
	struct hold *hold = calloc(1, sizeof(*hold));

	if (!hold)
		codec->give_up(strerror(ENOMEM));
	hold->front = front;
	front->holds->count++;
	record_begin(&front->records, &hold->record, RECORD_HOLD, 0);
	return hold;
}

bool hold_record_waits(struct record *record)
{
	return RECORD_IN(record, struct hold)->state == HOLD_WAITING;
}

void hold_record_save_load(struct codec *codec, struct frontend *front, struct record *record)
{
	struct hold *hold = RECORD_IN(record, struct hold);
	enum hold_state is = hold ? hold->state : HOLD_NEW;
	unsigned kind = hold && hold->kind == kinds[1];
	uint64_t unique = hold && hold->req ? hold->req->in.unique : 0;

	if (codec->loads)
		hold = new_hold(codec, front);
	CODEC_RANGE(codec, kind, 0, KIND_LAST);
	hold->kind = kinds[kind];
	CODEC_ENUM(codec, is, HOLD_KEPT);
	hold->node = node_save_load(codec, front->nodes, hold->node);
	if (codec->loads &&
	    (hold->node->kind != NODE_LOCK_FILE || hold->node->lock_file.advisory != (kind == 1)))
		codec->give_up("the state has a taker without a lock file");
	if (codec->loads)
		node_ref(hold->node);
	CODEC_PID(codec, hold->asker);
	CODEC_64(codec, hold->owner);
	hold->lineage = lineage_save_load(codec, hold->lineage);
	audit_save_load(codec, &hold->audit, &front->holds->audit_log, hold->node->lock);
	CODEC_64(codec, unique);
	CODEC_64(codec, hold->since_us);
	CODEC_64(codec, hold->most_until_us);
	CODEC_64(codec, hold->least_until_us);
	CODEC_INT(codec, hold->answer);
	CODEC_64(codec, hold->serial);
	CODEC_64(codec, hold->compared);
	taker_save_load(codec, hold);
	if (codec->loads)
		step_to(codec, hold, is, unique);
	if (hold_is_granted(hold))
		claims_save_load(codec, hold);
	else if (is != HOLD_KEPT)
		hold->kind->save_load_ctx(codec, hold);
	if (is == HOLD_LINGERING)
		linger_save_load(codec, &front->holds->linger, &hold->lingering);
}

static int compare_serials(const struct hold *a, const struct hold *b)
{
	return a->serial < b->serial ? -1 : a->serial > b->serial;
}

static int compare_requests(const struct hold *a, const struct hold *b)
{
	return a->since_us < b->since_us ? -1 : a->since_us > b->since_us;
}

static void finish_hold(struct codec *codec, struct hold *hold)
{
	if (hold->kind->carried)
		hold->kind->carried(codec, hold);
}

/* The records were read in the order in which the holds were made. The lists have other orders. */
void holds_loaded(struct codec *codec, struct frontend *front)
{
	struct lingering *lingering, *next;
	struct hold *hold;

	DL_SORT(front->holds->held, compare_serials);
	DL_SORT2(front->holds->admitting, compare_serials, admit_prev, admit_next);
	DL_SORT(front->holds->waiting, compare_requests);
	DL_FOREACH(front->holds->waiting, hold)
		finish_hold(codec, hold);
	LINGERING_FOREACH_SAFE(front, lingering, next)
		finish_hold(codec, hold_of_lingering(lingering));
}

/* ---- another guardian ---- */

static uint64_t number_of_life(pid_t pid, int life)
{
	return process_number(&(struct process){.pid = pid, .fd = life});
}

/* The start is known of the process that asked for the lock, and not of one that has joined a hold
 * of its family. The guardian knows the latter by the kernel's number of its pidfd. A kernel before
 * 6.9 gives no such number: there the guardian takes the process for ended, and stops whoever has
 * the file open as after the end of an opener (guardian.h). */
static void guard_claim(struct guardian *guardian, struct claim *claim)
{
	const struct process *asker = &claim->hold->audit.caller;
	const struct guarded guarded = {
		.uid = claim->uid,
		.process = {.pid = claim->pid,
	                    .start = asker->pid == claim->pid ? asker->start : 0},
		.number = number_of_life(claim->pid, claim->life),
		.lock = claim->file->node->lock,
		.ino = claim->file->node->ino,
		.until_us = claim->hold->most_until_us,
	};

	claim->slot = guardian ? guardian_hold(guardian, &guarded) : -1;
	if (claim->hold->state == HOLD_LOST)
		guardian_lose(guardian, claim->slot);
}

void holds_guard(struct frontend *front)
{
	struct open_file *file;
	struct claim *claim;
	struct hold *hold;
	uint32_t at = 0;

	DL_FOREACH(front->holds->held, hold) {
		DL_FOREACH(hold->claims, claim)
			guard_claim(front->guardian, claim);
		record_touch(&hold->record);
	}
	while ((file = open_file_next(front, &at)))
		if (file->node && file->node->kind == NODE_LOCK_FILE &&
		    file->node->lock_file.advisory)
			advisory_guard(file);
}
