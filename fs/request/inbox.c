/* SPDX-License-Identifier: MIT */
#include "request/inbox.h"

#include "request/frontend.h"

#include <linux/fuse.h>
#include <stdlib.h>
#include <utlist.h>

/* Of a request that waits for the turn of its user. */
struct deferred {
	struct gate_item turn;
	struct request *request;
	struct deferred *prev, *next; /* fresh, or settled */
	bool fresh;
};

bool inbox_takes(const struct fuse_buf *buffer)
{
	const struct fuse_in_header *request = buffer->mem;

	switch (request->opcode) {
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
	case FUSE_INIT:
	case FUSE_DESTROY:
		return false;
	default:
		return true;
	}
}

bool inbox_is_full(const struct inbox *inbox)
{
	return inbox->count >= INBOX_REQUESTS_MAX || inbox->bytes >= INBOX_BYTES_MAX;
}

static void take_out(struct inbox *inbox, struct deferred *deferred)
{
	gate_leave(&inbox->users, &deferred->turn);
	inbox->count--;
	inbox->bytes -= deferred->request->len;
	deferred->request->deferred = NULL;
	if (deferred->fresh)
		DL_DELETE(inbox->fresh, deferred);
}

/* False: no memory. */
static bool put_in(struct inbox *inbox, struct request *request, bool fresh)
{
	const struct fuse_in_header *header = (const void *)request->bytes;
	struct deferred *deferred = calloc(1, sizeof(*deferred));

	if (!deferred || !gate_join(&inbox->users, header->uid, &deferred->turn)) {
		free(deferred);
		return false;
	}
	inbox->count++;
	inbox->bytes += request->len;
	deferred->request = request;
	request->deferred = deferred;
	deferred->fresh = fresh;
	if (fresh)
		DL_APPEND(inbox->fresh, deferred);
	return true;
}

bool inbox_add(struct frontend *front, const struct fuse_buf *buffer)
{
	struct request *request = pending_copy(front, buffer);

	if (!request)
		return false;
	if (put_in(&front->inbox, request, true))
		return true;
	pending_drop(front, request);
	return false;
}

bool inbox_keep_in_doubt(struct frontend *front, const struct fuse_buf *buffer,
                         struct request *known)
{
	if (!inbox_takes(buffer) || !lc_doubted(front->lc))
		return false;
	return known ? put_in(&front->inbox, known, false) : inbox_add(front, buffer);
}

/* Most requests change nothing. So that they cost no commit, their records stay until the next one:
 * a request that is served again after a crash gets an answer that the kernel refuses. */
static bool serve_deferred(struct frontend *front, struct fuse_session *fuse,
                           struct deferred *deferred)
{
	bool answered;

	take_out(&front->inbox, deferred);
	answered = pending_serve_copy(front, fuse, deferred->request);
	if (answered && !deferred->fresh) {
		DL_APPEND(front->inbox.settled, deferred);
		return true;
	}
	if (answered)
		pending_drop(front, deferred->request);
	else if (deferred->fresh)
		pending_record(front, deferred->request);
	free(deferred);
	return answered;
}

void inbox_record(struct frontend *front)
{
	struct inbox *inbox = &front->inbox;
	struct deferred *deferred;

	while ((deferred = inbox->fresh)) {
		DL_DELETE(inbox->fresh, deferred);
		deferred->fresh = false;
		pending_record(front, deferred->request);
	}
	while ((deferred = inbox->settled)) {
		DL_DELETE(inbox->settled, deferred);
		pending_drop(front, deferred->request);
		free(deferred);
	}
}

static struct deferred *next_deferred(struct inbox *inbox)
{
	return (struct deferred *)gate_next(&inbox->users, &gate_one);
}

bool inbox_serve(struct frontend *front, struct fuse_session *fuse)
{
	struct deferred *next = next_deferred(&front->inbox);

	if (next)
		(void)serve_deferred(front, fuse, next);
	return next;
}

bool inbox_serve_now(struct frontend *front, struct fuse_session *fuse, uint64_t unique)
{
	const struct request *request = pending_find(front, unique);

	return request && request->deferred && serve_deferred(front, fuse, request->deferred);
}

void inbox_finish(struct inbox *inbox)
{
	struct deferred *next;

	while ((next = next_deferred(inbox))) {
		take_out(inbox, next);
		free(next);
	}
	while ((next = inbox->settled)) {
		DL_DELETE(inbox->settled, next);
		free(next);
	}
}
