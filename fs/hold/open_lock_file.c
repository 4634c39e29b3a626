/* SPDX-License-Identifier: MIT
 *
 * open_lock_file.c - see open_lock_file.h. An open file that takes the lock has a claim from the
 * grant, which answers the OPEN, to the last close.
 *
 *   handle_open() ─► waits as a hold's `ctx` ──granted, or a family's hold──► open: claim.hold
 *                       │ an error: freed             handle_close(): freed ◄─┘
 */
#include "hold/open_lock_file.h"

#include "guard/guardian.h"
#include "hold/audit.h"
#include "hold/hold.h"
#include "host/process.h"
#include "request/parked.h"
#include "request/reply.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static struct open_lock_file *lock_file_of(struct open_file *file)
{
	return (struct open_lock_file *)file;
}

static const struct lock_file_ops *ops_of(const struct open_file *file)
{
	return (const struct lock_file_ops *)file->ops;
}

/* Touches the record of the file. If the file is a part of its hold's record, touches that. */
static void lock_file_changed(struct open_file *file, struct claim *claim)
{
	record_touch(&file->record);
	if (claim)
		record_touch(&claim->hold->record);
}

/* ---- the token ---- */

/* `offset`: within the token's line. */
static void reply_token(struct lc_taker *taker, struct request *req, size_t size, off_t offset)
{
	char token[24];
	int len = snprintf(token, sizeof(token), "%" PRId64 "\n", lc_give_token(taker));

	if (!lc_holds(taker))
		reply_err(req, EIO);
	else if (offset < 0 || offset >= len)
		reply_buf(req, NULL, 0);
	else
		reply_buf(req, token + offset,
		          size < (size_t)(len - offset) ? size : (size_t)(len - offset));
}

/* A READ that waits for the token. */
struct token_read {
	struct parked parked;
	struct lc_taker *taker; /* no RELEASE can end the taker before its read is answered */
	size_t size;
	off_t off;
};

static void token_fetched(void *ctx, int err)
{
	const struct token_read *read = ctx;

	if (!unpark_succeeded(ctx, err))
		return;
	reply_token(read->taker, read->parked.req, read->size, read->off);
	parked_free(ctx);
}

/* The token stands at offset 0, and wherever the first read after a write is:
 * `echo reason >&9; read -r token <&9` shares one file position. */
static void move_token(struct open_lock_file *lock_file, struct claim *claim, off_t off)
{
	if (!lock_file->rewind && (off != 0 || lock_file->token_at == 0))
		return;
	lock_file_changed(&lock_file->base, claim);
	lock_file->token_at = off;
	lock_file->rewind = false;
}

void lock_file_read(struct open_file *file, struct request *req, size_t size, off_t off)
{
	struct claim *claim = ops_of(file)->claim(file, req);
	struct open_lock_file *lock_file = lock_file_of(file);
	struct token_read *read;
	struct lc_taker *taker;

	if (!claim) {
		reply_buf(req, NULL, 0);
		return;
	}
	taker = claim->hold->taker;
	move_token(lock_file, claim, off);
	if (!lc_holds(taker) || lc_give_token(taker) != 0) {
		reply_token(taker, req, size, off - lock_file->token_at);
		return;
	}
	read = park(file->front, req, file->node, sizeof(*read));
	if (!read)
		return;
	read->taker = taker;
	read->size = size;
	read->off = off - lock_file->token_at;
	park_call(&read->parked, lc_fetch_token(taker, token_fetched, read, &read->parked.call));
}

/* ---- the reason, fsync ---- */

void lock_file_write(struct open_file *file, struct request *req, const char *data, size_t size,
                     off_t off)
{
	struct claim *claim = ops_of(file)->claim(file, req);
	int r = claim ? lc_set_reason(claim->hold->taker, data, size)
	              : ops_of(file)->keep_reason(file, data, size);

	(void)off;
	lock_file_changed(file, claim);
	if (r < 0) {
		reply_err(req, -r);
		return;
	}
	lock_file_of(file)->rewind = true;
	reply_write(req, size);
}

struct fsync {
	struct parked parked;
	struct open_file *file;
};

/* The claim for which fsync(2) was called; NULL: the lock may have been given back meanwhile. */
static struct claim *claim_of(const struct fsync *fsync)
{
	return ops_of(fsync->file)->claim(fsync->file, fsync->parked.req);
}

/* Whether on_lost has begun to stop the process: it does not get the lock back, though the
 * contact may come back. */
static bool is_stopped(const struct fsync *fsync, const struct claim *claim)
{
	return guardian_stopped(fsync->parked.front->guardian, claim->slot);
}

static void confirmed(void *ctx, int err)
{
	const struct fsync *fsync = ctx;
	const struct claim *claim = claim_of(fsync);

	parked_done(ctx, err == 0 && claim && is_stopped(fsync, claim) ? -EIO : err);
}

static int confirm(struct fsync *fsync)
{
	const struct claim *claim = claim_of(fsync);

	if (!claim)
		return -EACCES;
	if (is_stopped(fsync, claim))
		return -EIO;
	return lc_confirm(claim->hold->taker, confirmed, fsync, &fsync->parked.call);
}

void lock_file_fsync(struct open_file *file, struct request *req)
{
	struct fsync *fsync = park(file->front, req, file->node, sizeof(*fsync));

	if (!fsync)
		return;
	fsync->file = file;
	park_change(&fsync->parked, confirm(fsync));
}

/* ---- poll ---- */

static void waiters_told(void *ctx, int err, bool waiters)
{
	struct parked *parked = ctx;

	if (!unpark_succeeded(parked, err))
		return;
	reply_poll(parked->req, waiters ? POLL_ALWAYS | POLLPRI : POLL_ALWAYS);
	parked_free(parked);
}

/* Only the ensemble knows whether a taker waits behind it, so it is asked only for polls for
 * POLLPRI. */
void lock_file_poll(struct open_file *file, struct request *req, unsigned asked, uint64_t poller)
{
	struct claim *claim = ops_of(file)->claim(file, req);
	struct lc_taker *taker = claim ? claim->hold->taker : NULL;
	struct parked *parked;

	if (poller && poller != file->poller) {
		lock_file_changed(file, claim);
		file->poller = poller;
	}
	if (taker && !lc_holds(taker)) {
		reply_poll(req, POLL_LOST);
		return;
	}
	if (!taker || !(asked & POLLPRI)) {
		reply_poll(req, POLL_ALWAYS);
		return;
	}
	if (poller)
		lc_watch_waiters(taker, hold_wake_pollers);
	parked = park(file->front, req, file->node, sizeof(*parked));
	if (parked)
		park_call(parked, lc_has_waiters(taker, waiters_told, parked, &parked->call));
}

void open_lock_file_save_load(struct codec *codec, struct open_file *file)
{
	CODEC_64(codec, file->poller);
	CODEC_64(codec, lock_file_of(file)->token_at);
	CODEC_BOOL(codec, lock_file_of(file)->rewind);
}

/* ---- an open file that takes the lock ---- */

struct handle {
	struct open_lock_file lock_file;
	struct claim claim; /* claim.hold is NULL before the grant */
};
/* Each request that waits has a handle, too, so the struct stays small. */
_Static_assert(sizeof(void *) != 8 || sizeof(struct handle) <= 152, "a handle has grown");

static const struct lock_file_ops handle_ops;

static struct handle *handle_of(struct open_file *file)
{
	return (struct handle *)file;
}

static void handle_close(struct open_file *file)
{
	if (handle_of(file)->claim.hold)
		claim_part(&handle_of(file)->claim);
}

/* ---- opening ---- */

static void free_handle(void *ctx)
{
	open_file_close(ctx);
}

/* The open file gets a claim on that hold. Answers the OPEN. */
static void open_by(struct hold *hold, struct handle *handle, struct request *req,
                    const struct process *caller)
{
	/* may_join() lets only processes join that the holder's user might signal. A hold of
	 * root may be joined by any user: each process is then guarded as its own user's. */
	uid_t uid = hold->audit.uid ? hold->audit.uid : req->in.uid;
	int r = claim_join(&handle->claim, hold, &handle->lock_file.base, caller, uid);

	if (r == 0)
		hold_keep(hold, &handle->lock_file.base.node->lock_file);
	reply_open(req, &handle->lock_file.base, r);
}

static void open_granted(struct hold *hold, struct request *req)
{
	open_by(hold, hold->ctx, req, &hold->audit.caller);
}

static void open_joined(struct hold *waiting, struct hold *family, struct request *req)
{
	open_by(family, waiting->ctx, req, &waiting->audit.caller);
}

/* ---- over a reload ---- */

/* Saves or loads the file of a request that waits. It has the node of its hold. */
static void waiting_handle_save_load(struct codec *codec, struct hold *hold)
{
	struct open_file *file =
		open_file_save_load(codec, hold->front, &handle_ops.file, hold->ctx);

	if (codec->loads)
		open_file_set_node(file, hold->node);
	hold->ctx = file;
	hold->where = hold->node;
}

static struct claim *handle_save_load(struct codec *codec, struct hold *hold, struct claim *claim)
{
	struct open_file *file = open_file_save_load(codec, hold->front, &handle_ops.file,
	                                             claim ? claim->file : NULL);

	open_file_node_save_load(codec, file);
	open_lock_file_save_load(codec, file);
	handle_of(file)->claim.file = file;
	return &handle_of(file)->claim;
}

const struct hold_kind handle_kind = {
	.granted = open_granted,
	.found = open_joined,
	.dropped = free_handle,
	.save_load_ctx = waiting_handle_save_load,
	.save_load_claim = handle_save_load,
};

static void join_family(struct hold *family, struct request *req,
                        const struct hold_request *request)
{
	struct open_file *file =
		open_file_new(family->front, &handle_ops.file, request->node, request->ask.uid);
	int error = errno;

	/* A place that the process has left here by an interrupt is not needed any more. */
	holds_drop(family->front, request->caller.pid, request->node->lock);
	if (file)
		open_by(family, handle_of(file), req, &request->caller);
	else
		reply_err(req, error);
}

static void queue_open(struct frontend *front, struct request *req,
                       const struct hold_request *request)
{
	struct open_file *file =
		open_file_new(front, &handle_ops.file, request->node, request->ask.uid);
	struct hold *hold;
	int r = file ? hold_take(front, request, file, &hold) : -errno;

	if (r == 0) {
		hold_wait(hold, req);
		return;
	}
	reply_open(req, file, r);
	free(request->lineage);
}

void handle_open(struct frontend *front, struct request *req, struct node *node, int flags)
{
	struct hold_request request = {
		.kind = &handle_kind,
		.node = node,
		.ask = lock_file_request(&node->lock_file, node->lock),
		.where = node,
	};
	struct hold *hold;

	request.ask.uid = req->in.uid;
	if (flags & O_NONBLOCK)
		request.ask.wait_us = 0;
	/* A lock by a file that is open for reading alone would look like a lock, and be none. */
	if ((flags & O_ACCMODE) == O_RDONLY) {
		if (front->holds->audit_log.log_takes) {
			process_see((pid_t)req->in.pid, &request.caller);
			audit_refuse(&front->holds->audit_log, node->lock, &request.caller,
			             req->in.uid, -EACCES,
			             "a lock file opened for reading only would not take the lock");
		}
		reply_err(req, EACCES);
		return;
	}
	if (request_is_interrupted(req)) {
		reply_err(req, EINTR);
		return;
	}
	process_identify((pid_t)req->in.pid, &request.caller);
	if (node->lock_file.joins)
		request.lineage = lineage_read(request.caller.pid);
	hold = request.lineage ? hold_of_family(front, node->lock, request.lineage) : NULL;
	if (hold) {
		join_family(hold, req, &request);
		free(request.lineage);
		return;
	}
	hold = hold_adopt(front, &request);
	if (hold) {
		hold_wait(hold, req);
		return;
	}
	queue_open(front, req, &request);
}

static struct claim *handle_claim(struct open_file *file, struct request *req)
{
	(void)req;
	return &handle_of(file)->claim;
}

static const struct lock_file_ops handle_ops = {
	.file =
		{
			.size = sizeof(struct handle),
			.kind_of_record = RECORD_NONE, /* its hold's record has it */
			.described = true,
			.read = lock_file_read,
			.write = lock_file_write,
			.fsync = lock_file_fsync,
			.poll = lock_file_poll,
			.close = handle_close,
		},
	.claim = handle_claim,
};
