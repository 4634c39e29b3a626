/* SPDX-License-Identifier: MIT */
#include "request/inbox.h"

#include "request/frontend.h"

#include <stdlib.h>
#include <utlist.h>

/* A request that waits for the turn of its user. */
struct deferred {
	struct gate_item turn;
	struct request *request;
	struct deferred *prev, *next; /* fresh, or settled */
	bool fresh;
};

bool inbox_takes(const struct request *request)
{
	switch (request->in.opcode) {
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

bool inbox_add(struct request *request)
{
	struct inbox *inbox = &request->front->inbox;
	struct deferred *deferred = calloc(1, sizeof(*deferred));

	if (!deferred || !gate_join(&inbox->users, request->in.uid, &deferred->turn)) {
		free(deferred);
		return false;
	}
	deferred->fresh = !request->kept;
	if (!request->kept && !request_list(request)) {
		gate_leave(&inbox->users, &deferred->turn);
		free(deferred);
		return false;
	}
	inbox->count++;
	inbox->bytes += request->len;
	deferred->request = request;
	request->deferred = deferred;
	if (deferred->fresh)
		DL_APPEND(inbox->fresh, deferred);
	return true;
}

bool inbox_keep_in_doubt(struct request *request)
{
	return inbox_takes(request) && lc_doubted(request->front->lc) && inbox_add(request);
}

/* Most requests change nothing. So that they cost no commit, their records stay until the next one:
 * a request that is served again after a crash gets an answer that the kernel refuses. */
static bool serve_deferred(struct deferred *deferred)
{
	struct request *request = deferred->request;
	struct inbox *inbox = &request->front->inbox;
	bool answered;

	take_out(inbox, deferred);
	answered = request_serve(request);
	if (answered && !deferred->fresh) {
		DL_APPEND(inbox->settled, deferred);
		return true;
	}
	if (answered)
		request_drop(request);
	else if (deferred->fresh)
		request_record(request);
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
		request_record(deferred->request);
	}
	while ((deferred = inbox->settled)) {
		DL_DELETE(inbox->settled, deferred);
		request_drop(deferred->request);
		free(deferred);
	}
}

static struct deferred *next_deferred(struct inbox *inbox)
{
	return (struct deferred *)gate_next(&inbox->users, &gate_one);
}

bool inbox_serve(struct frontend *front)
{
	struct deferred *next = next_deferred(&front->inbox);

	if (next)
		(void)serve_deferred(next);
	return next;
}

bool inbox_serve_now(struct request *request)
{
	return request->deferred && serve_deferred(request->deferred);
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
