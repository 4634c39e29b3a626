/* SPDX-License-Identifier: MIT
 *
 * handle.c - the open file of a door: the holder of a hold from the grant, which
 * answers the OPEN, to the last close.
 *
 *   handle_open() ─► waits as a hold's `ctx` ──granted, or a family's hold──► open: holder.hold
 *                       │ an error: freed           handle_release(): freed ◄─┘
 */
#include "request/face.h"

#include "hold/handle.h"
#include "hold/held.h"
#include "hold/hold.h"
#include "hold/story.h"
#include "host/family.h"
#include "hold/hold_family.h"
#include "hold/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct handle {
	struct holder holder; /* of no hold before the grant */
	struct face *face;
	struct node *node; /* a reference from the grant on */
	uint64_t fh;
	uint64_t poller; /* 0: nobody polls */
	struct cursor cursor;
};
/* There is one for each that waits, too. */
_Static_assert(sizeof(void *) != 8 || sizeof(struct handle) <= 104, "a handle has grown");

static struct handle *handle_of_holder(struct holder *holder)
{
	return (struct handle *)((char *)holder - offsetof(struct handle, holder));
}

static struct lc_taker *taker_of_handle(const struct handle *handle)
{
	return handle->holder.hold->taker;
}

static void free_handle(void *ctx)
{
	struct handle *handle = ctx;

	fh_drop(&handle->face->fhs, handle->fh);
	budget_free(handle);
}

void handle_release(struct handle *handle)
{
	struct face *face = handle->face;

	holder_part(&handle->holder);
	node_unref(face->nodes, handle->node);
	free_handle(handle);
}

void handles_end(struct face *face)
{
	struct handle *handle;
	uint32_t slot = 0;

	while ((handle = fh_next(&face->fhs, FH_HANDLE, &slot)))
		if (handle->holder.hold)
			handle_release(handle);
}

/* ---- opening ---- */

static void wake_opener(struct holder *holder)
{
	struct handle *handle = handle_of_holder(holder);

	pending_wake_poller(handle->face, handle->poller);
}

void handles_wake(struct face *face)
{
	const struct handle *handle;
	uint32_t slot = 0;

	while ((handle = fh_next(&face->fhs, FH_HANDLE, &slot)))
		pending_wake_poller(face, handle->poller);
}

/* The open file becomes a holder of that hold. Answers the OPEN. */
static void open_by(struct hold *hold, struct handle *handle, fuse_req_t req,
                    const struct caller *caller)
{
	/* Every read and write must come to the daemon; FLUSH is not needed. */
	const struct fuse_file_info fi = {.fh = handle->fh, .direct_io = 1, .noflush = 1};
	/* Processes that the taker's user might not signal do not join, see may_join(). Where
	 * root is the taker, each one is guarded as its own user's. */
	uid_t uid = hold->story.uid ? hold->story.uid : fuse_req_ctx(req)->uid;
	int r = holder_join(&handle->holder, hold, &handle_kind, caller, uid, handle->node);

	if (r < 0) {
		fuse_reply_err(req, -r);
		free_handle(handle);
		return;
	}
	node_ref(handle->node);
	fuse_reply_open(req, &fi);
}

static void open_granted(struct hold *hold, fuse_req_t req)
{
	open_by(hold, hold->ctx, req, &hold->story.caller);
}

static void open_joined(struct hold *waiting, struct hold *family, fuse_req_t req)
{
	open_by(family, waiting->ctx, req, &waiting->story.caller);
}

/* ---- over a reload ---- */

static struct handle *opened_carry(struct carry *carry, struct face *face, struct handle *handle)
{
	uid_t uid = handle ? budget_uid(handle) : 0;

	CARRY_U32(carry, uid);
	if (carry->loads) {
		handle = budget_alloc_described(&face->files, uid, sizeof(*handle));
		if (!handle)
			carry->refuse(strerror(errno));
		handle->face = face;
	}
	fh_carry(carry, &face->fhs, FH_HANDLE, handle, &handle->fh);
	return handle;
}

static void waiting_handle_carry(struct carry *carry, struct hold *hold)
{
	struct handle *handle = opened_carry(carry, hold->face, hold->ctx);

	handle->node = hold->node;
	hold->ctx = handle;
	hold->where = hold->node;
}

static struct holder *handle_carry(struct carry *carry, struct hold *hold, struct holder *holder)
{
	struct face *face = hold->face;
	struct handle *handle = opened_carry(carry, face, holder ? handle_of_holder(holder) : NULL);

	handle->node = node_carry(carry, face->nodes, handle->node);
	CARRY_64(carry, handle->poller);
	cursor_carry(carry, &handle->cursor);
	if (carry->loads)
		node_ref(handle->node);
	return &handle->holder;
}

const struct hold_kind handle_kind = {
	.too_long = EINTR,
	.granted = open_granted,
	.found = open_joined,
	.wake = wake_opener,
	.dropped = free_handle,
	.carry_ctx = waiting_handle_carry,
	.carry_holder = handle_carry,
};

/* NULL: errno. */
static struct handle *new_handle(struct face *face, struct node *node, uid_t uid)
{
	struct handle *handle = budget_alloc_described(&face->files, uid, sizeof(*handle));

	if (!handle)
		return NULL;
	*handle = (struct handle){.face = face, .node = node};
	handle->fh = fh_add(&face->fhs, FH_HANDLE, handle);
	if (handle->fh)
		return handle;
	budget_free(handle);
	return NULL;
}

static void join_family(struct hold *family, fuse_req_t req, const struct hold_request *request)
{
	struct handle *handle = new_handle(family->face, request->node, request->uid);
	int error = errno;

	/* A place that the process has left here by an interrupt is not needed any more. */
	holds_drop(family->face, request->caller.process.pid, request->node->lock);
	if (handle)
		open_by(family, handle, req, &request->caller);
	else
		fuse_reply_err(req, error);
}

static void queue_open(struct face *face, fuse_req_t req, const struct hold_request *request)
{
	struct handle *handle = new_handle(face, request->node, request->uid);
	struct hold *hold;
	int r = handle ? hold_take(face, request, handle, &hold) : -errno;

	if (r == 0) {
		hold_wait(hold, req);
		return;
	}
	fuse_reply_err(req, -r);
	if (handle)
		free_handle(handle);
	free(request->lineage);
}

void handle_open(struct face *face, fuse_req_t req, struct node *node,
                 const struct fuse_file_info *fi)
{
	struct hold_request request = {
		.kind = &handle_kind,
		.node = node,
		.mode = node->door.mode,
		.uid = fuse_req_ctx(req)->uid,
		.wait_us = fi->flags & O_NONBLOCK ? 0 : node->door.wait_us,
		.where = node,
	};
	struct hold *hold;

	hold = hold_resume(face, req);
	if (hold)
		return;
	/* It would look like a lock, and be none. */
	if ((fi->flags & O_ACCMODE) == O_RDONLY) {
		if (face->holds->stories.log_takes) {
			family_see(fuse_req_ctx(req)->pid, &request.caller);
			story_refuse(&face->holds->stories, node->lock, &request.caller,
			             request.uid, -EACCES,
			             "a door opened for reading only would not take the lock");
		}
		fuse_reply_err(req, EACCES);
		return;
	}
	if (fuse_req_interrupted(req)) {
		fuse_reply_err(req, EINTR);
		return;
	}
	family_identify(fuse_req_ctx(req)->pid, &request.caller);
	if (node->door.joins)
		request.lineage = family_lineage(request.caller.process.pid);
	hold = request.lineage ? hold_of_family(face, node->lock, request.lineage) : NULL;
	if (hold) {
		join_family(hold, req, &request);
		free(request.lineage);
		return;
	}
	hold = hold_adopt(face, &request);
	if (hold) {
		hold_wait(hold, req);
		return;
	}
	queue_open(face, req, &request);
}

/* ---- the held descriptor ---- */

void handle_read(struct handle *handle, fuse_req_t req, size_t size, off_t off)
{
	if (cursor_move(&handle->cursor, off))
		hold_changed(handle->holder.hold);
	held_read(taker_of_handle(handle), &handle->cursor, handle->face, req, handle->node, size,
	          off);
}

void handle_write(struct handle *handle, fuse_req_t req, const char *data, size_t size)
{
	hold_changed(handle->holder.hold);
	held_write(taker_of_handle(handle), &handle->cursor, req, data, size);
}

static const struct holder *holder_for_fsync(const void *handle, fuse_req_t req)
{
	(void)req;
	return &((const struct handle *)handle)->holder;
}

void handle_fsync(struct handle *handle, fuse_req_t req)
{
	held_fsync(handle, holder_for_fsync, handle->face, req, handle->node);
}

void handle_poll(struct handle *handle, fuse_req_t req, unsigned asked, uint64_t poller)
{
	if (poller && poller != handle->poller) {
		handle->poller = poller;
		hold_changed(handle->holder.hold);
	}
	held_poll(&handle->holder, req, handle->node, asked, poller != 0);
}
