/* SPDX-License-Identifier: MIT
 *
 * handle.c - one open of a door: from the parked request to the last close.
 *
 *   OPEN ─► parked ──taken(0)──► the kernel's open file ──RELEASE──► gone
 *              │ \                      │
 *              │  taken(-errno)         lost: EIO for ever, pollers wake
 *              │   answered, gone
 *              INTERRUPT: EINTR at once, then lingers ──► adopted by the next open of
 *              the same process and door, or gone; the engine deletes the entry
 *
 * Which of grant and interrupt came first is decided here, in one thread: whoever
 * answers the request. A grant whose answer finds nobody (-ENOENT) is released,
 * since no RELEASE will come for it.
 */
#include "face.h"

#include "family.h"
#include "kernel_limit.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct handle {
	struct face *face;
	struct node *node;
	struct lc_taker *taker;
	struct handle *prev, *next;   /* in face->waiting or face->held, or lingering */
	int slot;                     /* the guardian's */
	bool held;                    /* the kernel's open file: RELEASE will come */
	fuse_req_t req;               /* while it waits */
	int64_t since_us;             /* of this wait */
	struct lingering place;       /* after an interrupt */
	pid_t pid;
	bool answered;                /* what came while it lingered: */
	int error;                    /*   the lock, or an error */
	struct fuse_file_info fi;
	struct fuse_pollhandle *poll; /* somebody polls */
	off_t base;                   /* where in the file the token starts, for the reader */
	bool rewind;                  /* a write came: the next read starts anew */
};

/* The caller answers the request right after, which also ends its interrupts (and
 * libfuse holds the request's lock while it calls one). */
static void stop_waiting(struct handle *handle)
{
	handle->req = NULL;
	DL_DELETE(handle->face->waiting, handle);
}

static void handle_free(struct handle *handle)
{
	struct face *face = handle->face;

	linger_end(&face->linger, &handle->place);
	if (handle->held)
		DL_DELETE(face->held, handle);
	guardian_release(face->guardian, handle->slot);
	if (handle->taker)
		lc_leave(handle->taker);
	if (handle->poll)
		fuse_pollhandle_destroy(handle->poll);
	node_unref(face->nodes, handle->node);
	face->open_doors--;
	free(handle);
}

static struct handle *handle_of_place(struct lingering *place)
{
	return (struct handle *)((char *)place - offsetof(struct handle, place));
}

static void stop_lingering(struct lingering *place)
{
	handle_free(handle_of_place(place));
}

/* EINTR, and the place is kept for a while. */
static void interrupt(struct handle *handle)
{
	fuse_req_t req = handle->req;

	stop_waiting(handle);
	fuse_reply_err(req, EINTR);
	if (handle->face->draining || !linger_begin(&handle->face->linger, &handle->place, handle->pid))
		handle_free(handle);
}

static void interrupted(fuse_req_t req, void *ctx)
{
	(void)req;
	interrupt(ctx);
}

static void wait_on(struct handle *handle, fuse_req_t req, const struct fuse_file_info *fi)
{
	handle->req = req;
	handle->fi = *fi;
	handle->since_us = handle->face->clock_us();
	DL_APPEND(handle->face->waiting, handle);
}

static int guard(struct handle *handle)
{
	struct face *face = handle->face;

	if (!face->guardian)
		return 0;
	if (handle->pid == 0)
		log_line(LC_WARNING, "%s: its taker is not visible here, and could not be stopped "
		         "if it lost the lock", handle->node->lock);
	handle->slot = guardian_hold(face->guardian, handle->pid, handle->node->ino,
	                             handle->node->name, handle);
	return handle->slot < 0 ? -ENOLCK : 0;
}

/* Answers the request: with the held descriptor, or an error. */
static void answer(struct handle *handle, int err)
{
	fuse_req_t req = handle->req;

	stop_waiting(handle);
	if (err == 0)
		err = guard(handle);
	if (err < 0) {
		fuse_reply_err(req, -err);
		handle_free(handle);
		return;
	}
	handle->fi.fh = (uint64_t)(uintptr_t)handle;
	/* Every read and write reaches us; a close of one of many copies need not. */
	handle->fi.direct_io = 1;
	handle->fi.noflush = 1;
	handle->held = true;
	DL_APPEND(handle->face->held, handle);
	if (fuse_reply_open(req, &handle->fi) < 0)
		handle_free(handle);
}

static void taken(void *ctx, int err)
{
	struct handle *handle = ctx;

	if (!handle->place.active) {
		answer(handle, err);
		return;
	}
	handle->answered = true;
	handle->error = err;
	if (err == 0)
		linger_at_head(&handle->face->linger, &handle->place);
}

static void lost(void *ctx)
{
	struct handle *handle = ctx;

	log_line(LC_WARNING, "%s: the lock is lost, token %" PRId64, handle->node->lock,
	         lc_token(handle->taker));
	if (handle->poll)
		fuse_lowlevel_notify_poll(handle->poll);
	if (guardian_lose(handle->face->guardian, handle->slot))
		lc_lost_done(handle->taker);
}

/* A place this process left here by an interrupt. At another door of the lock it is
 * given up; so is a lock that was lost meanwhile. */
static struct handle *adoptable(struct face *face, const struct node *node, pid_t pid, bool wait)
{
	struct lingering *lists[] = {face->linger.waiting, face->linger.heads};

	for (size_t i = 0; i < 2 && pid > 0; i++)
		for (struct lingering *place = lists[i], *next; place; place = next) {
			struct handle *handle = handle_of_place(place);

			next = place->next;
			if (place->pid != pid || strcmp(handle->node->lock, node->lock) != 0)
				continue;
			if (wait && handle->node == node &&
			    !(handle->answered && handle->error == 0 && !lc_holds(handle->taker)))
				return handle;
			handle_free(handle);
		}
	return NULL;
}

static void adopt(struct handle *handle, fuse_req_t req, const struct fuse_file_info *fi)
{
	linger_end(&handle->face->linger, &handle->place);
	wait_on(handle, req, fi);
	if (handle->answered)
		answer(handle, handle->error);
	else
		fuse_req_interrupt_func(req, interrupted, handle);
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
	family_identify(fuse_req_ctx(req)->pid, &person);
	handle = adoptable(face, node, person.pid, request.wait_us > 0);
	if (handle) {
		adopt(handle, req, fi);
		return;
	}
	handle = calloc(1, sizeof(*handle));
	if (!handle) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	request.pid = person.pid;
	request.command = person.command;
	*handle = (struct handle){.face = face, .node = node, .pid = person.pid, .slot = -1};
	r = lc_take(face->lc, &request, taken, lost, handle, &handle->taker);
	if (r < 0) {
		fuse_reply_err(req, -r);
		free(handle);
		return;
	}
	node_ref(node);
	face->open_doors++;
	wait_on(handle, req, fi);
	fuse_req_interrupt_func(req, interrupted, handle);
}

/* ---- time ---- */

int handles_init(struct face *face)
{
	return linger_init(&face->linger, face->clock_us, stop_lingering);
}

void handles_drop(struct face *face, pid_t pid, const char *lock)
{
	struct lingering *lists[] = {face->linger.waiting, face->linger.heads};

	for (size_t i = 0; i < 2; i++)
		for (struct lingering *place = lists[i], *next; place; place = next) {
			struct handle *handle = handle_of_place(place);

			next = place->next;
			if ((pid == 0 || place->pid == pid) &&
			    (!lock || strcmp(handle->node->lock, lock) == 0))
				handle_free(handle);
		}
}

void handles_stop_lingering(struct face *face)
{
	handles_drop(face, 0, NULL);
}

void handles_end(struct face *face, bool leave)
{
	struct handle *lists[] = {face->waiting, face->held}, *handle, *next;

	if (leave)
		handles_stop_lingering(face);
	for (size_t i = 0; i < 2; i++)
		DL_FOREACH_SAFE(lists[i], handle, next) {
			if (handle->req)
				stop_waiting(handle);
			if (!leave) {
				handle->taker = NULL;
				handle->slot = -1;   /* the guardian still looks after it */
			}
			handle_free(handle);
		}
}

/* When the first that waits has to be answered for the kernel's sake. */
static int64_t waits_until(const struct face *face)
{
	int64_t wait = kernel_limit_wait_us(face->kernel_limit_s);

	return face->waiting && wait != INT64_MAX ? face->waiting->since_us + wait : INT64_MAX;
}

int64_t handles_wait(const struct face *face)
{
	int64_t until = waits_until(face), wait = linger_wait(&face->linger);

	if (until != INT64_MAX && until - face->clock_us() < wait)
		wait = until - face->clock_us();
	return wait;
}

void handles_process(struct face *face, bool process_gone, bool guardian_spoke)
{
	struct handle *handle;

	if (guardian_spoke && !guardian_listen(face->guardian))
		log_line(LC_ERROR, "the guardian was killed: no lock is granted any more, start anew");
	while (guardian_spoke && (handle = guardian_finished(face->guardian)) != NULL)
		lc_lost_done(handle->taker);
	linger_process(&face->linger, process_gone);
	if (!face->waiting || face->kernel_limit_s == 0)
		return;
	for (int64_t now = face->clock_us(); waits_until(face) <= now;)
		interrupt(face->waiting);
}

/* ---- the held descriptor ---- */

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
