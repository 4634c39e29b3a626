/* SPDX-License-Identifier: MIT
 *
 * inbox.c - see inbox.h.
 */
#include "request/inbox.h"

#include "request/frontend.h"

#include <linux/fuse.h>
#include <stdlib.h>
#include <utlist.h>

/* Of a request that waits for the turn of its user. */
struct put_off {
	struct gate_item turn;
	struct request *request;
	struct put_off *prev, *next; /* fresh, or settled */
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

static void take_out(struct inbox *inbox, struct put_off *put_off)
{
	gate_leave(&inbox->users, &put_off->turn);
	inbox->count--;
	inbox->bytes -= put_off->request->len;
	put_off->request->put_off = NULL;
	if (put_off->fresh)
		DL_DELETE(inbox->fresh, put_off);
}

/* False: no memory. */
static bool put_in(struct inbox *inbox, struct request *request, bool fresh)
{
	const struct fuse_in_header *header = (const void *)request->bytes;
	struct put_off *put_off = calloc(1, sizeof(*put_off));

	if (!put_off || !gate_join(&inbox->users, header->uid, &put_off->turn)) {
		free(put_off);
		return false;
	}
	gate_wait(&inbox->users, &put_off->turn);
	inbox->count++;
	inbox->bytes += request->len;
	put_off->request = request;
	request->put_off = put_off;
	put_off->fresh = fresh;
	if (fresh)
		DL_APPEND(inbox->fresh, put_off);
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
static bool serve_put_off(struct frontend *front, struct fuse_session *fuse,
                          struct put_off *put_off)
{
	bool answered;

	take_out(&front->inbox, put_off);
	answered = pending_serve_copy(front, fuse, put_off->request);
	if (answered && !put_off->fresh) {
		DL_APPEND(front->inbox.settled, put_off);
		return true;
	}
	if (answered)
		pending_drop(front, put_off->request);
	else if (put_off->fresh)
		pending_record(front, put_off->request);
	free(put_off);
	return answered;
}

void inbox_record(struct frontend *front)
{
	struct inbox *inbox = &front->inbox;
	struct put_off *put_off;

	while ((put_off = inbox->fresh)) {
		DL_DELETE(inbox->fresh, put_off);
		put_off->fresh = false;
		pending_record(front, put_off->request);
	}
	while ((put_off = inbox->settled)) {
		DL_DELETE(inbox->settled, put_off);
		pending_drop(front, put_off->request);
		free(put_off);
	}
}

static struct put_off *next_put_off(struct inbox *inbox)
{
	return (struct put_off *)gate_next(&inbox->users, &gate_one);
}

bool inbox_serve(struct frontend *front, struct fuse_session *fuse)
{
	struct put_off *next = next_put_off(&front->inbox);

	if (next)
		(void)serve_put_off(front, fuse, next);
	return next;
}

bool inbox_serve_now(struct frontend *front, struct fuse_session *fuse, uint64_t unique)
{
	const struct request *request = pending_find(front, unique);

	return request && request->put_off && serve_put_off(front, fuse, request->put_off);
}

void inbox_finish(struct inbox *inbox)
{
	struct put_off *next;

	while ((next = next_put_off(inbox))) {
		take_out(inbox, next);
		free(next);
	}
	while ((next = inbox->settled)) {
		DL_DELETE(inbox->settled, next);
		free(next);
	}
}
