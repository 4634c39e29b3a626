/* SPDX-License-Identifier: MIT
 *
 * handle.c - the open file of a lock file: it has a claim from the grant, which
 * answers the OPEN, to the last close.
 *
 *   handle_open() ─► waits as a hold's `ctx` ──granted, or a family's hold──► open: claim.hold
 *                       │ an error: freed             handle_close(): freed ◄─┘
 */
#include "hold/handle.h"

#include "hold/audit.h"
#include "hold/claim.h"
#include "hold/hold.h"
#include "hold/open_lock_file.h"
#include "host/process.h"
#include "request/reply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

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
