/* SPDX-License-Identifier: MIT
 *
 * flock_claim.c - see flock_claim.h. The claims of a lock, and the requests that wait for one, are
 * in lists of its lock file's node.
 */
#include "hold/flock_claim.h"

#include "hold/hold.h"
#include "host/process.h"
#include "request/reply.h"
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* A request that waits, or whose hold lingers after an interrupt. */
struct ask {
	struct claim_request request;
	struct hold *hold;       /* the hold by which it waits */
	struct hold *replaces;   /* the hold that it shall replace; NULL */
	uint64_t serial;         /*   and its number, while a state is read */
	struct ask *prev, *next; /* in node->asks */
};

static struct flock_claim *flock_claim_of(struct claim *base)
{
	return (struct flock_claim *)((char *)base - offsetof(struct flock_claim, base));
}

/* The length of a claim_id without the padding at its end. */
#define CLAIM_ID_LEN (offsetof(struct claim_id, kind) + sizeof(enum claim_kind))

struct flock_claim *flock_claim_find(const struct node *node, enum claim_kind kind, uint64_t owner)
{
	const struct claim_id id = {.owner = owner, .kind = kind};
	struct flock_claim *claim;

	HASH_FIND(hh, node->claims_by_id, &id, CLAIM_ID_LEN, claim);
	return claim;
}

/* False: no memory. */
static bool list_claim(struct node *node, struct flock_claim *claim)
{
	HASH_ADD(hh, node->claims_by_id, id, CLAIM_ID_LEN, claim);
	if (!claim->hh.tbl)
		return false;
	DL_APPEND(node->claims, claim);
	return true;
}

static void unlist_claim(struct node *node, struct flock_claim *claim)
{
	HASH_DELETE(hh, node->claims_by_id, claim);
	DL_DELETE(node->claims, claim);
}

/* Whether a claim of that kind, by that process, can share the hold: the process has it by a claim
 * of the other kind. */
static bool is_companion(const struct hold *hold, enum claim_kind kind,
                         const struct process *process)
{
	bool others = false;
	struct claim *base;

	if (!lc_holds(hold->taker))
		return false;
	DL_FOREACH(hold->claims, base) {
		const struct flock_claim *claim;

		if (!base->file->ops->flock) /* a lock file that has joined it */
			continue;
		claim = flock_claim_of(base);
		if (claim_kinds_alike(claim->id.kind, kind))
			return false;
		others |= process_same(&claim->process, process);
	}
	return others;
}

struct hold *flock_claim_companion(const struct node *node, enum claim_kind kind,
                                   const struct process *process)
{
	const struct flock_claim *claim;

	DL_FOREACH(node->claims, claim)
		if (!claim_kinds_alike(claim->id.kind, kind) &&
		    process_same(&claim->process, process) &&
		    is_companion(claim->base.hold, kind, process))
			return claim->base.hold;
	return NULL;
}

static void replace_by(struct ask *ask, struct hold *hold)
{
	ask->replaces = hold;
	record_touch(&ask->hold->record);
}

void flock_claim_drop(struct flock_claim *claim)
{
	struct node *node = claim->base.hold->node;
	struct hold *hold = claim->base.hold;
	struct ask *ask;

	/* Requests that were to replace the hold go on waiting, and replace nothing. */
	if (hold->claims == &claim->base && !claim->base.next)
		DL_FOREACH(node->asks, ask)
			if (ask->replaces == hold)
				replace_by(ask, NULL);
	unlist_claim(node, claim);
	claim_part(&claim->base);
	free(claim);
}

/* ---- joining a hold ---- */

static void set_claim_mode(struct flock_claim *claim, enum lc_mode mode)
{
	assert(mode == LC_SHARED || claim->base.hold->audit.mode == LC_EXCLUSIVE);
	claim->mode = mode;
	record_touch(&claim->base.hold->record);
}

void flock_claim_disown(struct flock_claim *claim)
{
	claim->process.pid = 0;
	record_touch(&claim->base.hold->record);
}

/* The process that is stopped when the lock is lost. An open file goes from process to process: the
 * process that opened it uses the lock, while flock(2) may have been called by a flock(1) that has
 * ended already. A lock by fcntl(2) is of the process that asked. */
static const struct process *guarded_caller(const struct claim_request *request)
{
	if (request->kind == CLAIM_FLOCK && process_lives(request->file->opener.fd))
		return &request->file->opener;
	return &request->asker;
}

static int join_hold(struct hold *hold, const struct claim_request *request)
{
	struct flock_claim *claim = calloc(1, sizeof(*claim));
	int r = -ENOMEM;

	if (claim) {
		claim->id = (struct claim_id){.owner = request->owner, .kind = request->kind};
		claim->process = request->asker;
	}
	/* list_claim() comes first, since a claim that has joined may be the only one, and
	 * cannot part any more. */
	if (claim && list_claim(request->node, claim)) {
		r = claim_join(&claim->base, hold, &request->file->lock_file.base,
		               guarded_caller(request), request->uid);
		if (r < 0)
			unlist_claim(request->node, claim);
	}
	if (r < 0)
		free(claim);
	else
		set_claim_mode(claim, request->mode);
	return r;
}

/* Answers the request, with the lock or an error. */
static void give_lock(struct hold *hold, struct request *req, const struct claim_request *request)
{
	reply_err(req, -join_hold(hold, request));
}

/* All claims that had the lock by the shared hold have it by the exclusive one now, and so has the
 * claim of that request. */
static int move_up(struct hold *from, struct hold *to, const struct claim_request *by)
{
	struct flock_claim *own = flock_claim_find(by->node, by->kind, by->owner), *claim, *next;
	int r = own ? 0 : join_hold(to, by);

	if (r < 0)
		return r;
	DL_FOREACH_SAFE(by->node->claims, claim, next)
		if (claim->base.hold == from)
			claim_move(&claim->base, to);
	if (own)
		set_claim_mode(own, by->mode);
	return 0;
}

/* ---- waiting ---- */

static void free_ask(void *ctx)
{
	struct ask *ask = ctx;

	DL_DELETE(ask->request.node->asks, ask);
	free(ask);
}

/* Answers a request that waits with this errno. */
static void end_ask(struct ask *ask, int error)
{
	struct request *req = hold_withdraw(ask->hold); /* NULL: it was interrupted before */

	if (req)
		reply_err(req, error);
}

/* Whether a claim of the hold is of the owner that asks, or of the same process. This must be
 * cheap, since many requests may wait. */
static bool has_claim_on(const struct ask *ask, const struct hold *hold)
{
	const struct claim_request *request = &ask->request;
	struct claim *base;

	DL_FOREACH(hold->claims, base) {
		const struct flock_claim *claim;

		if (!base->file->ops->flock) /* a lock file that has joined it */
			continue;
		claim = flock_claim_of(base);
		if (claim_kinds_alike(claim->id.kind, request->kind)
		            ? claim->id.owner == request->owner
		            : process_same(&claim->process, &request->asker))
			return true;
	}
	return false;
}

/* Whether the process or the owner that asks has the lock by this hold already. It would wait
 * for itself. */
static bool is_served(const struct ask *ask, const struct hold *hold)
{
	const struct claim_request *request = &ask->request;
	const struct flock_claim *own;

	if ((hold->audit.mode == LC_SHARED && request->mode == LC_EXCLUSIVE) ||
	    !has_claim_on(ask, hold))
		return false;
	own = flock_claim_find(request->node, request->kind, request->owner);
	if (own)
		return own->base.hold == hold &&
		       (request->kind != CLAIM_FLOCK || own->mode == request->mode);
	return is_companion(hold, request->kind, &request->asker);
}

static void serve_others(struct node *node, struct hold *hold)
{
	struct ask *ask, *next;

	DL_FOREACH_SAFE(node->asks, ask, next) {
		struct claim_request request;
		struct flock_claim *own;
		struct request *req;

		if (!is_served(ask, hold))
			continue;
		request = ask->request;
		req = hold_withdraw(ask->hold);
		if (!req)
			continue;
		own = flock_claim_find(node, request.kind, request.owner);
		if (own) {
			set_claim_mode(own, request.mode);
			reply_err(req, 0);
		} else {
			give_lock(hold, req, &request);
		}
	}
}

/* One thread of an owner, or of a process, shares the lock now, and another one waits to have it
 * alone: it must not wait for the first one. */
static void let_replace(struct node *node, struct hold *hold)
{
	struct ask *ask;

	if (hold->audit.mode != LC_SHARED)
		return;
	DL_FOREACH(node->asks, ask)
		if (!ask->replaces && has_claim_on(ask, hold) &&
		    lc_replace(ask->hold->taker, hold->taker))
			replace_by(ask, hold);
}

static void ask_granted(struct hold *hold, struct request *req)
{
	struct ask *ask = hold->ctx;
	struct claim_request request = ask->request;
	struct hold *old = ask->replaces;

	free_ask(ask);
	if (old)
		reply_err(req, -move_up(old, hold, &request));
	else
		give_lock(hold, req, &request);
	if (hold->claims)
		serve_others(request.node, hold);
	if (hold->claims)
		let_replace(request.node, hold);
}

/* Requests that wait to replace the lost lock have lost it, too. */
static void fail_upgrade(struct hold *lost)
{
	struct ask *ask, *next;

	DL_FOREACH_SAFE(lost->node->asks, ask, next)
		if (ask->replaces == lost)
			end_ask(ask, EIO);
}

void flock_claim_refuse(const struct advisory *file, struct node *node, uint64_t owner, int error)
{
	struct ask *ask, *next;

	DL_FOREACH_SAFE(node->asks, ask, next)
		if (ask->request.file == file && ask->request.kind != CLAIM_FLOCK &&
		    ask->request.owner == owner)
			end_ask(ask, error);
}

/* ---- over a reload ---- */

static struct open_file *file_save_load(struct codec *codec, struct frontend *front,
                                        struct open_file *file)
{
	uint64_t fh = file ? file->fh : 0;

	CODEC_64(codec, fh);
	if (codec->loads)
		file = open_file_find(front, fh);
	if (!file || !file->ops->flock)
		codec->give_up("the state has a lock without a file");
	return file;
}

static struct hold *hold_of_serial(struct codec *codec, struct frontend *front, uint64_t serial)
{
	struct hold *hold;

	DL_FOREACH(front->holds->held, hold)
		if (hold->serial == serial)
			return hold;
	if (serial != 0)
		codec->give_up("the state has a new lock without an old one");
	return NULL;
}

static void ask_save_load(struct codec *codec, struct hold *hold)
{
	struct ask *ask = codec->loads ? calloc(1, sizeof(*ask)) : hold->ctx;
	struct claim_request *request = &ask->request;

	if (!ask)
		codec->give_up(strerror(ENOMEM));
	if (!codec->loads)
		ask->serial = ask->replaces ? ask->replaces->serial : 0;
	request->file = (struct advisory *)file_save_load(codec, hold->front,
	                                                  (struct open_file *)request->file);
	CODEC_ENUM(codec, request->kind, CLAIM_BYTE);
	CODEC_64(codec, request->owner);
	CODEC_ENUM(codec, request->mode, LC_SHARED);
	CODEC_64(codec, request->wait_us);
	process_save_load(codec, &request->asker);
	CODEC_U32(codec, request->uid);
	CODEC_64(codec, ask->serial);
	if (!codec->loads)
		return;
	request->node = hold->node;
	ask->hold = hold;
	DL_APPEND(hold->node->asks, ask);
	hold->ctx = ask;
	hold->where = request->file;
}

/* Finds the hold that it replaces: all holds are loaded by now. */
static void ask_loaded(struct codec *codec, struct hold *hold)
{
	struct ask *ask = hold->ctx;

	ask->replaces = hold_of_serial(codec, hold->front, ask->serial);
}

static struct claim *own_save_load(struct codec *codec, struct hold *hold, struct claim *base)
{
	struct flock_claim *claim = codec->loads ? calloc(1, sizeof(*claim)) : flock_claim_of(base);

	if (!claim)
		codec->give_up(strerror(ENOMEM));
	claim->base.file = file_save_load(codec, hold->front, claim->base.file);
	CODEC_ENUM(codec, claim->id.kind, CLAIM_BYTE);
	CODEC_64(codec, claim->id.owner);
	CODEC_ENUM(codec, claim->mode, LC_SHARED);
	CODEC_PID(codec, claim->process.pid);
	CODEC_64(codec, claim->process.start);
	if (codec->loads && !list_claim(hold->node, claim))
		codec->give_up(strerror(ENOMEM));
	return &claim->base;
}

const struct hold_kind flock_claim_hold_kind = {
	.granted = ask_granted,
	.lost = fail_upgrade,
	.dropped = free_ask,
	.save_load_ctx = ask_save_load,
	.carried = ask_loaded,
	.save_load_claim = own_save_load,
};

/* The hold that lingers since the same request was interrupted. */
static struct hold *adopt_ask(struct frontend *front, const struct hold_request *want,
                              const struct claim_request *request)
{
	struct hold *hold = hold_adopt(front, want);
	struct ask *ask = hold ? hold->ctx : NULL;

	if (!ask)
		return NULL;
	if (ask->replaces != want->replaces) {
		hold_withdraw(hold);
		return NULL;
	}
	ask->request = *request;
	record_touch(&hold->record);
	return hold;
}

static bool is_replaced(const struct node *node, const struct hold *hold)
{
	const struct ask *ask;

	DL_FOREACH(node->asks, ask)
		if (ask->replaces == hold)
			return true;
	return false;
}

/* A new hold, at the end of the queue. */
static int queue_up(struct frontend *front, const struct hold_request *want,
                    const struct claim_request *request, struct hold **ret_hold)
{
	struct ask *ask;
	int r;

	/* Another thread waits to replace it: each would wait for the other to unlock. */
	if (want->replaces && is_replaced(request->node, want->replaces))
		return request->wait_us == 0 ? -EAGAIN : -EDEADLK;
	ask = calloc(1, sizeof(*ask));
	if (!ask)
		return -ENOMEM;
	r = hold_take(front, want, ask, ret_hold);
	if (r < 0) {
		free(ask);
		return r;
	}
	*ask = (struct ask){.request = *request, .hold = *ret_hold, .replaces = want->replaces};
	DL_APPEND(request->node->asks, ask);
	return 0;
}

static void wait_for_lock(struct frontend *front, struct request *req,
                          const struct claim_request *request, struct hold *old)
{
	struct hold_request want = {
		.kind = &flock_claim_hold_kind,
		.node = request->node,
		.ask = lock_file_request(&request->node->lock_file, request->node->lock),
		.replaces = old,
		.caller = *guarded_caller(request),
		.asker = request->asker.pid,
		.where = request->file,
		.owner = request->owner,
	};
	struct hold *hold;
	int r = 0;

	want.ask.mode = request->mode;
	/* The lock for which the file was opened: another one may have its name by now. */
	want.ask.czxid = request->node->parent->czxid;
	want.ask.wait_us = request->wait_us;
	want.ask.uid = request->uid;
	want.ask.reason = request->file->reason;
	hold = adopt_ask(front, &want, request);
	if (!hold)
		r = queue_up(front, &want, request, &hold);
	if (r < 0)
		reply_err(req, -r);
	else
		hold_wait(hold, req);
}

/* ---- asking ---- */

/* Changes the mode of the claim without waiting. False: that cannot be done. */
static bool change_mode_in_place(struct flock_claim *claim, enum lc_mode mode)
{
	if (claim->id.kind != CLAIM_FLOCK && claim->base.hold->audit.mode == LC_EXCLUSIVE)
		set_claim_mode(claim, mode);
	return claim->mode == mode;
}

void flock_claim_take(struct frontend *front, struct request *req,
                      const struct claim_request *request)
{
	struct flock_claim *own = flock_claim_find(request->node, request->kind, request->owner);
	struct hold *hold;

	if (own && !lc_holds(own->base.hold->taker)) {
		reply_err(req, EIO);
		return;
	}
	if (own && change_mode_in_place(own, request->mode)) {
		reply_err(req, 0);
		return;
	}
	if (own && own->id.kind == CLAIM_FLOCK) {
		flock_claim_drop(own);
		own = NULL;
	}
	hold = own ? own->base.hold
	           : flock_claim_companion(request->node, request->kind, &request->asker);
	if (hold && (hold->audit.mode == LC_EXCLUSIVE || request->mode == LC_SHARED))
		give_lock(hold, req, request);
	else
		wait_for_lock(front, req, request, hold);
}
