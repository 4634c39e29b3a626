/* SPDX-License-Identifier: MIT */
#include "hold/hold_carry.h"

#include "guard/guardian.h"
#include "hold/claim.h"
#include "hold/flock_claim.h"
#include "hold/handle.h"
#include "hold/hold.h"
#include "hold/linger.h"
#include "hold/audit.h"
#include "host/family.h"
#include "host/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* In an order that stays. */
static const struct hold_kind *const kinds[] = {&handle_kind, &flock_claim_hold_kind};
#define KIND_LAST 1

static void claim_carry(struct carry *carry, struct hold *hold, struct claim *claim)
{
	unsigned kind = claim && claim->file->node->door.advisory;

	CARRY_RANGE(carry, kind, 0, KIND_LAST);
	if (carry->loads && kind == 1 && hold->kind != kinds[1])
		carry->refuse("the state has a lock by flock without a taker");
	claim = kinds[kind]->carry_claim(carry, hold, claim);
	CARRY_PID(carry, claim->pid);
	CARRY_U32(carry, claim->uid);
	claim->life = process_life_carry(carry, claim->pid, claim->uid, claim->life);
	claim->slot = guardian_slot_carry(carry, hold->front->guardian, claim->slot);
	if (!carry->loads)
		return;
	claim->hold = hold;
	DL_APPEND(hold->claims, claim);
}

static void claims_carry(struct carry *carry, struct hold *hold)
{
	struct guardian *guardian = hold->front->guardian;
	bool admits = hold->admit_prev;
	struct claim *claim;
	size_t count = 0;

	DL_COUNT(hold->claims, claim, count);
	count = carry_count(carry, count);
	if (carry->loads && count == 0)
		carry->refuse("the state has a lock without an owner");
	claim = carry->loads ? NULL : hold->claims;
	for (size_t i = 0; i < count; i++) {
		claim_carry(carry, hold, claim);
		claim = claim ? claim->next : NULL;
	}
	DL_FOREACH(hold->claims, claim)
		if (carry->loads && !carry->checks && hold->state == HOLD_HELD &&
		    guardian_has_lost(guardian, claim->slot))
			lc_limit(hold->taker, 0); /* the guardian stops it already */
	CARRY_BOOL(carry, admits);
	if (carry->loads && admits)
		DL_APPEND2(hold->front->holds->admitting, hold, admit_prev, admit_next);
}

/* The hold takes the steps that once led to its state, so that it gets into its lists. */
static void step_to(struct carry *carry, struct hold *hold, enum hold_state to, uint64_t unique)
{
	hold_step(hold, HOLD_WAITING);
	switch (to) {
	case HOLD_WAITING:
		hold->req = request_give(hold->front, unique, hold);
		if (!hold->req)
			carry->refuse("the state has a taker without a request");
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
		carry->refuse("the state has an invalid taker");
	}
}

static void taker_carry(struct carry *carry, struct hold *hold)
{
	uint64_t id = carry->loads ? 0 : lc_taker_id(hold->taker);

	CARRY_64(carry, id);
	if (!carry->loads || carry->checks)
		return;
	if (!hold_find_taker(hold, id))
		carry->refuse("the state has a taker that the engine does not know");
}

static struct hold *new_hold(struct carry *carry, struct frontend *front)
{
	struct hold *hold = calloc(1, sizeof(*hold));

	if (!hold)
		carry->refuse(strerror(ENOMEM));
	hold->front = front;
	front->holds->count++;
	stored_begin(&front->stored, &hold->stored, STORED_HOLD, 0);
	return hold;
}

bool hold_stored_waits(struct stored *stored)
{
	return STORED_IN(stored, struct hold)->state == HOLD_WAITING;
}

void hold_stored_carry(struct carry *carry, struct frontend *front, struct stored *stored)
{
	struct hold *hold = STORED_IN(stored, struct hold);
	enum hold_state is = hold ? hold->state : HOLD_NEW;
	unsigned kind = hold && hold->kind == kinds[1];
	uint64_t unique = hold && hold->req ? hold->req->in.unique : 0;

	if (carry->loads)
		hold = new_hold(carry, front);
	CARRY_RANGE(carry, kind, 0, KIND_LAST);
	hold->kind = kinds[kind];
	CARRY_ENUM(carry, is, HOLD_KEPT);
	hold->node = node_carry(carry, front->nodes, hold->node);
	if (carry->loads &&
	    (hold->node->kind != NODE_DOOR || hold->node->door.advisory != (kind == 1)))
		carry->refuse("the state has a taker without a door");
	if (carry->loads)
		node_ref(hold->node);
	CARRY_PID(carry, hold->asker);
	CARRY_64(carry, hold->owner);
	hold->lineage = lineage_carry(carry, hold->lineage);
	audit_carry(carry, &hold->audit, &front->holds->audit_log, hold->node->lock);
	CARRY_64(carry, unique);
	CARRY_64(carry, hold->since_us);
	CARRY_64(carry, hold->most_until_us);
	CARRY_64(carry, hold->least_until_us);
	CARRY_INT(carry, hold->answer);
	CARRY_64(carry, hold->serial);
	CARRY_64(carry, hold->compared);
	taker_carry(carry, hold);
	if (carry->loads)
		step_to(carry, hold, is, unique);
	if (hold_is_granted(hold))
		claims_carry(carry, hold);
	else if (is != HOLD_KEPT)
		hold->kind->carry_ctx(carry, hold);
	if (is == HOLD_LINGERING)
		linger_carry(carry, &front->holds->linger, &hold->lingering);
}

static int compare_serials(const struct hold *a, const struct hold *b)
{
	return a->serial < b->serial ? -1 : a->serial > b->serial;
}

static int compare_requests(const struct hold *a, const struct hold *b)
{
	return a->since_us < b->since_us ? -1 : a->since_us > b->since_us;
}

static void finish_hold(struct carry *carry, struct hold *hold)
{
	if (hold->kind->carried)
		hold->kind->carried(carry, hold);
}

/* The records were read in the order of the first requests. */
void holds_carried(struct carry *carry, struct frontend *front)
{
	struct lingering *lingering, *next;
	struct hold *hold;

	DL_SORT(front->holds->held, compare_serials);
	DL_SORT2(front->holds->admitting, compare_serials, admit_prev, admit_next);
	DL_SORT(front->holds->waiting, compare_requests);
	DL_FOREACH(front->holds->waiting, hold)
		finish_hold(carry, hold);
	LINGERING_FOREACH_SAFE(front, lingering, next)
		finish_hold(carry, hold_of_lingering(lingering));
}
