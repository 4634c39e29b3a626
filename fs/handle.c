/* SPDX-License-Identifier: MIT
 *
 * handle.c - one open of a door: from the parked request to the last close.
 *
 *   OPEN ─► parked ──taken(0)──► the kernel's open file ──RELEASE──► gone
 *              │ \                      │
 *              │  taken(-errno)         lost: EIO for ever, pollers wake
 *              │   answered, gone
 *              INTERRUPT: EINTR at once, gone; the engine deletes the entry
 *
 * Which of grant and interrupt came first is decided here, in one thread: whoever
 * answers the request. A grant whose answer finds nobody (-ENOENT) is released,
 * since no RELEASE will come for it.
 */
#include "face.h"

#include "family.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct handle {
	struct face *face;
	struct node *node;
	struct lc_taker *taker;
	fuse_req_t req;               /* while it waits */
	struct fuse_file_info fi;
	struct fuse_pollhandle *poll; /* somebody polls */
	off_t base;                   /* where in the file the token starts, for the reader */
	bool rewind;                  /* a write came: the next read starts anew */
};

static void handle_free(struct handle *handle)
{
	struct face *face = handle->face;

	lc_leave(handle->taker);
	if (handle->poll)
		fuse_pollhandle_destroy(handle->poll);
	node_unref(face->nodes, handle->node);
	face->open_doors--;
	free(handle);
}

static void interrupted(fuse_req_t req, void *ctx)
{
	fuse_reply_err(req, EINTR);
	handle_free(ctx);
}

static void taken(void *ctx, int err)
{
	struct handle *handle = ctx;
	fuse_req_t req = handle->req;

	fuse_req_interrupt_func(req, NULL, NULL);
	handle->req = NULL;
	if (err < 0) {
		fuse_reply_err(req, -err);
		handle_free(handle);
		return;
	}
	handle->fi.fh = (uint64_t)(uintptr_t)handle;
	/* Every read and write reaches us; a close of one of many copies need not. */
	handle->fi.direct_io = 1;
	handle->fi.noflush = 1;
	if (fuse_reply_open(req, &handle->fi) < 0)
		handle_free(handle);
}

static void lost(void *ctx)
{
	struct handle *handle = ctx;

	log_line(LC_WARNING, "%s: the lock is lost, token %" PRId64, handle->node->lock,
	         lc_token(handle->taker));
	if (handle->poll)
		fuse_lowlevel_notify_poll(handle->poll);
}

void handle_open(struct face *face, fuse_req_t req, struct node *node, const struct fuse_file_info *fi)
{
	struct lc_request request = {
		.lock = node->lock, .mode = LC_EXCLUSIVE, .uid = fuse_req_ctx(req)->uid,
		.wait_us = fi->flags & O_NONBLOCK ? 0 : node->door.wait_us,
	};
	struct handle *handle;
	struct person person;
	int r;

	/* It would look like a lock and be none. */
	if ((fi->flags & O_ACCMODE) == O_RDONLY) {
		fuse_reply_err(req, EACCES);
		return;
	}
	if (fuse_req_interrupted(req)) {
		fuse_reply_err(req, EINTR);
		return;
	}
	handle = calloc(1, sizeof(*handle));
	if (!handle) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	family_identify(fuse_req_ctx(req)->pid, &person);
	request.pid = person.pid;
	request.command = person.command;
	*handle = (struct handle){.face = face, .node = node, .req = req, .fi = *fi};
	r = lc_take(face->lc, &request, taken, lost, handle, &handle->taker);
	if (r < 0) {
		fuse_reply_err(req, -r);
		free(handle);
		return;
	}
	node_ref(node);
	face->open_doors++;
	fuse_req_interrupt_func(req, interrupted, handle);
}

/* The token stands at offset 0, and wherever the first read after a write is:
 * `echo reason >&9; read -r token <&9` shares one file position. */
void handle_read(struct handle *handle, fuse_req_t req, size_t size, off_t off)
{
	char token[24];
	off_t position;
	int len;

	if (!lc_holds(handle->taker)) {
		fuse_reply_err(req, EIO);
		return;
	}
	if (off == 0 || handle->rewind)
		handle->base = off;
	handle->rewind = false;
	len = snprintf(token, sizeof(token), "%" PRId64 "\n", lc_token(handle->taker));
	position = off - handle->base;
	if (position < 0 || position >= len)
		fuse_reply_buf(req, NULL, 0);
	else
		fuse_reply_buf(req, token + position,
		               size < (size_t)(len - position) ? size : (size_t)(len - position));
}

void handle_write(struct handle *handle, fuse_req_t req, const char *data, size_t size)
{
	int r = lc_set_reason(handle->taker, data, size);

	if (r < 0) {
		fuse_reply_err(req, -r);
		return;
	}
	handle->rewind = true;
	fuse_reply_write(req, size);
}

void handle_fsync(struct handle *handle, fuse_req_t req)
{
	struct parked *parked = park(handle->face, req, handle->node, NULL);

	if (parked)
		park_call(parked, lc_confirm(handle->taker, parked_done, parked, &parked->call));
}

void handle_poll(struct handle *handle, fuse_req_t req, struct fuse_pollhandle *ph)
{
	unsigned events = POLLIN | POLLOUT;

	if (ph) {
		if (handle->poll)
			fuse_pollhandle_destroy(handle->poll);
		handle->poll = ph;
	}
	/* select(2) sees nothing of loss but POLLPRI. */
	if (!lc_holds(handle->taker))
		events |= POLLERR | POLLHUP | POLLPRI;
	fuse_reply_poll(req, events);
}

void handle_release(struct handle *handle)
{
	handle_free(handle);
}
