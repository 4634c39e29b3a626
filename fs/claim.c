/* SPDX-License-Identifier: MIT
 *
 * claim.c - see claim.h. What each lock's door knows of claims, and of those who ask
 * for one and wait, hangs on its node.
 */
#include "claim.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <utlist.h>

/* One who waits, or is away after an interrupt. */
struct ask {
	struct claim_request request;
	struct hold *hold;       /* his place */
	struct hold *instead;    /* what it is to replace; NULL */
	struct ask *prev, *next; /* in node->asks */
};

struct claim *claim_of(struct holder *holder)
{
	return (struct claim *)((char *)holder - offsetof(struct claim, holder));
}

struct claim *claim_find(const struct node *node, enum claim_kind kind, uint64_t owner)
{
	struct claim *claim;

	DL_FOREACH(node->claims, claim)
		if (claim->kind == kind && claim->owner == owner)
			return claim;
	return NULL;
}

static bool has_kind(const struct node *node, const struct hold *hold, enum claim_kind kind)
{
	const struct claim *claim;

	DL_FOREACH(node->claims, claim)
		if (claim->holder.hold == hold && claim->kind == kind)
			return true;
	return false;
}

static bool is_of(const struct claim *claim, const struct person *person)
{
	return claim->pid > 0 && claim->pid == person->pid && claim->start == person->start;
}

struct hold *claim_companion(const struct node *node, enum claim_kind kind,
                             const struct person *person)
{
	const struct claim *claim;

	DL_FOREACH(node->claims, claim)
		if (claim->kind != kind && is_of(claim, person) &&
		    lc_holds(claim->holder.hold->taker) &&
		    !has_kind(node, claim->holder.hold, kind))
			return claim->holder.hold;
	return NULL;
}

void claim_drop(struct claim *claim)
{
	struct node *node = claim->holder.hold->node;
	struct hold *hold = claim->holder.hold;
	struct ask *ask;

	/* Whoever was to replace it keeps his place, as one who replaces nobody. */
	if (hold->holders == &claim->holder && !claim->holder.next)
		DL_FOREACH(node->asks, ask)
			if (ask->instead == hold)
				ask->instead = NULL;
	DL_DELETE(node->claims, claim);
	hold_part(&claim->holder);
	free(claim);
}

/* ---- joining a hold ---- */

/* An open file goes from process to process: who opened it has it at heart, while who
 * called flock(2) may be a flock(1) that is gone already. A process's lock is its own. */
static const struct person *guarded_caller(const struct claim_request *request)
{
	if (request->kind == CLAIM_FLOCK && family_lives(request->opener_life))
		return &request->opener;
	return &request->asker;
}

static int join_hold(struct hold *hold, const struct claim_request *request)
{
	struct claim *claim = calloc(1, sizeof(*claim));
	int r = claim ? hold_join(hold, &claim->holder, request->wake, guarded_caller(request),
	                          request->uid, request->node)
	              : -ENOMEM;

	if (r < 0) {
		free(claim);
		return r;
	}
	claim->file = request->file;
	claim->kind = request->kind;
	claim->owner = request->owner;
	claim->mode = request->mode;
	claim->pid = request->asker.pid;
	claim->start = request->asker.start;
	DL_APPEND(request->node->claims, claim);
	return 0;
}

/* Answers the request, with the lock or an error. */
static void give_lock(struct hold *hold, fuse_req_t req, const struct claim_request *request)
{
	fuse_reply_err(req, -join_hold(hold, request));
}

/* All who have the lock by the shared hold have it by the exclusive one now, `by` among
 * them. */
static int move_up(struct hold *from, struct hold *to, const struct claim_request *by)
{
	struct claim *own = claim_find(by->node, by->kind, by->owner), *claim, *next;
	int r = own ? 0 : join_hold(to, by);

	if (r < 0)
		return r;
	DL_FOREACH_SAFE(by->node->claims, claim, next)
		if (claim->holder.hold == from)
			hold_move(&claim->holder, to);
	if (own)
		own->mode = by->mode;
	return 0;
}

/* ---- waiting ---- */

static void free_ask(void *ctx)
{
	struct ask *ask = ctx;

	DL_DELETE(ask->request.node->asks, ask);
	free(ask);
}

/* It waits no more: the request is to be answered. NULL: it was interrupted before. */
static fuse_req_t withdraw_ask(struct ask *ask, struct claim_request *ret_request)
{
	*ret_request = ask->request;
	return hold_withdraw(ask->hold); /* frees it */
}

/* Cheap, for many may wait: somebody of those who have it is the one who asks, or of his
 * process. */
static bool is_of_holder(const struct ask *ask, const struct hold *hold)
{
	const struct claim_request *request = &ask->request;
	struct holder *holder;

	DL_FOREACH(hold->holders, holder) {
		const struct claim *claim = claim_of(holder);

		if (claim->kind == request->kind ? claim->owner == request->owner
		                                 : is_of(claim, &request->asker))
			return true;
	}
	return false;
}

/* Has the process, or the owner himself, asked elsewhere for what the hold gives him
 * already? Then he would wait for himself. */
static bool is_served(const struct ask *ask, const struct hold *hold)
{
	const struct claim_request *request = &ask->request;
	const struct claim *own;

	if ((hold->mode == LC_SHARED && request->mode == LC_EXCLUSIVE) || !is_of_holder(ask, hold))
		return false;
	own = claim_find(request->node, request->kind, request->owner);
	if (own)
		return own->holder.hold == hold &&
		       (request->kind == CLAIM_FCNTL || own->mode == request->mode);
	return claim_companion(request->node, request->kind, &request->asker) == hold;
}

static void serve_others(struct node *node, struct hold *hold)
{
	struct claim_request request;
	struct ask *ask, *next;

	DL_FOREACH_SAFE(node->asks, ask, next) {
		struct claim *own;
		fuse_req_t req;

		if (!is_served(ask, hold))
			continue;
		req = withdraw_ask(ask, &request);
		own = claim_find(node, request.kind, request.owner);
		if (!req)
			continue;
		if (own) {
			own->mode = request.mode;
			fuse_reply_err(req, 0);
		} else {
			give_lock(hold, req, &request);
		}
	}
}

/* Of one owner, or one process, a thread shares it now, and another waits to have it alone: not
 * for himself. */
static void let_replace(struct node *node, struct hold *hold)
{
	struct ask *ask;

	if (hold->mode != LC_SHARED)
		return;
	DL_FOREACH(node->asks, ask)
		if (!ask->instead && is_of_holder(ask, hold) &&
		    lc_replace(ask->hold->taker, hold->taker))
			ask->instead = hold;
}

static void ask_granted(struct hold *hold, fuse_req_t req)
{
	struct ask *ask = hold->ctx;
	struct claim_request request = ask->request;
	struct hold *instead = ask->instead;

	free_ask(ask);
	if (instead)
		fuse_reply_err(req, -move_up(instead, hold, &request));
	else
		give_lock(hold, req, &request);
	if (hold->holders)
		serve_others(request.node, hold);
	if (hold->holders)
		let_replace(request.node, hold);
}

/* Requests that wait to replace the lost lock have lost it, too. */
static void fail_upgrade(struct hold *lost)
{
	struct claim_request request;
	struct ask *ask, *next;

	DL_FOREACH_SAFE(lost->node->asks, ask, next)
		if (ask->instead == lost) {
			fuse_req_t req = withdraw_ask(ask, &request);

			if (req)
				fuse_reply_err(req, EIO);
		}
}

void claim_refuse(const struct advisory *file, struct node *node, uint64_t owner, int error)
{
	struct claim_request request;
	struct ask *ask, *next;

	DL_FOREACH_SAFE(node->asks, ask, next)
		if (ask->request.file == file && ask->request.kind == CLAIM_FCNTL &&
		    ask->request.owner == owner) {
			fuse_req_t req = withdraw_ask(ask, &request);

			if (req)
				fuse_reply_err(req, -error);
		}
}

static const struct hold_kind setlk_kind = {
	.too_long = ETIMEDOUT,
	.granted = ask_granted,
	.lost = fail_upgrade,
	.dropped = free_ask,
};

/* The place it has left here by an interrupt. */
static struct hold *adopt_ask(struct face *face, const struct hold_request *place,
                              const struct claim_request *request)
{
	struct hold *hold = hold_adopt(face, place);
	struct ask *ask = hold ? hold->ctx : NULL;

	if (!ask)
		return NULL;
	if (ask->instead != place->instead) {
		hold_withdraw(hold);
		return NULL;
	}
	ask->request = *request;
	return hold;
}

static bool is_replaced(const struct node *node, const struct hold *hold)
{
	const struct ask *ask;

	DL_FOREACH(node->asks, ask)
		if (ask->instead == hold)
			return true;
	return false;
}

/* A new place in the queue. */
static int queue_up(struct face *face, const struct hold_request *place,
                    const struct claim_request *request, struct hold **ret_hold)
{
	struct ask *ask;
	int r;

	/* Another thread is about to: both wait for the other to unlock. */
	if (place->instead && is_replaced(request->node, place->instead))
		return request->wait_us == 0 ? -EAGAIN : -EDEADLK;
	ask = calloc(1, sizeof(*ask));
	if (!ask)
		return -ENOMEM;
	r = hold_take(face, place, ask, ret_hold);
	if (r < 0) {
		free(ask);
		return r;
	}
	*ask = (struct ask){.request = *request, .hold = *ret_hold, .instead = place->instead};
	DL_APPEND(request->node->asks, ask);
	return 0;
}

static void wait_for_lock(struct face *face, fuse_req_t req, const struct claim_request *request,
                          struct hold *instead)
{
	struct hold_request place = {
		.kind = &setlk_kind,
		.node = request->node,
		.mode = request->mode,
		/* Of the lock that the file was opened for. */
		.czxid = request->node->parent->czxid,
		.wait_us = request->wait_us,
		.instead = instead,
		.person = *guarded_caller(request),
		.asker = request->asker.pid,
		.uid = request->uid,
		.where = request->file,
		.owner = request->owner,
		.reason = request->reason,
	};
	struct hold *hold = adopt_ask(face, &place, request);
	int r = hold ? 0 : queue_up(face, &place, request, &hold);

	if (r < 0)
		fuse_reply_err(req, -r);
	else
		hold_wait(hold, req);
}

/* ---- asking ---- */

/* What he has is enough. */
static bool change_mode_in_place(struct claim *claim, enum lc_mode mode)
{
	if (claim->kind == CLAIM_FCNTL && claim->holder.hold->mode == LC_EXCLUSIVE)
		claim->mode = mode;
	return claim->mode == mode;
}

void claim_take(struct face *face, fuse_req_t req, const struct claim_request *request)
{
	struct claim *own = claim_find(request->node, request->kind, request->owner);
	struct hold *hold;

	if (own && !lc_holds(own->holder.hold->taker)) {
		fuse_reply_err(req, EIO);
		return;
	}
	if (own && change_mode_in_place(own, request->mode)) {
		fuse_reply_err(req, 0);
		return;
	}
	if (own && own->kind == CLAIM_FLOCK) {
		claim_drop(own);
		own = NULL;
	}
	hold = own ? own->holder.hold
	           : claim_companion(request->node, request->kind, &request->asker);
	if (hold && (hold->mode == LC_EXCLUSIVE || request->mode == LC_SHARED))
		give_lock(hold, req, request);
	else
		wait_for_lock(face, req, request, hold);
}
