/* SPDX-License-Identifier: MIT
 *
 * inbox.c - see inbox.h.
 */
#include "request/inbox.h"

#include "request/face.h"

#include <linux/fuse.h>
#include <stdlib.h>
#include <utlist.h>

struct inbox_item {
	struct table_link unique;
	struct fair_item fair;
	struct inbox_item *prev, *next; /* fresh, or settled */
	size_t len;
	bool fresh;
};

static struct inbox_item *item_of(struct fair_item *fair)
{
	return (struct inbox_item *)((char *)fair - offsetof(struct inbox_item, fair));
}

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

static void take_out(struct inbox *inbox, struct inbox_item *item)
{
	fair_part(&inbox->users, &item->fair);
	table_remove(&inbox->requests, &item->unique);
	inbox->count--;
	inbox->bytes -= item->len;
	if (item->fresh)
		DL_DELETE(inbox->fresh, item);
}

/* Its copy is pending.h's. NULL: no memory, or it is in already. */
static struct inbox_item *put_in(struct inbox *inbox, const struct fuse_in_header *request)
{
	struct inbox_item *item = calloc(1, sizeof(*item));

	if (!item)
		return NULL;
	item->len = request->len;
	if (!table_add(&inbox->requests, &item->unique, request->unique)) {
		free(item);
		return NULL;
	}
	inbox->count++;
	inbox->bytes += item->len;
	if (fair_join(&inbox->users, request->uid, &item->fair))
		return item;
	take_out(inbox, item);
	free(item);
	return NULL;
}

bool inbox_add(struct face *face, const struct fuse_buf *buffer)
{
	struct inbox *inbox = &face->inbox;
	struct inbox_item *item = put_in(inbox, buffer->mem);

	if (!item)
		return false;
	item->fresh = true;
	DL_APPEND(inbox->fresh, item);
	if (pending_set_aside(face, buffer))
		return true;
	take_out(inbox, item);
	free(item);
	return false;
}

bool inbox_keep_in_doubt(struct face *face, const void *request, size_t len, bool known)
{
	const struct fuse_buf buffer = {.mem = (void *)(uintptr_t)request, .size = len};

	if (!inbox_takes(&buffer) || !lc_doubted(face->lc))
		return false;
	return known ? put_in(&face->inbox, request) != NULL : inbox_add(face, &buffer);
}

/* Most requests change nothing. So that they cost no commit, their records stay until the next one:
 * a request that is served again after a crash gets an answer that the kernel refuses. */
static bool serve_item(struct face *face, struct fuse_session *fuse, struct inbox_item *item)
{
	uint64_t unique = item->unique.number;
	bool answered;

	take_out(&face->inbox, item);
	answered = pending_serve_aside(face, fuse, unique);
	if (answered && !item->fresh) {
		DL_APPEND(face->inbox.settled, item);
		return true;
	}
	if (answered)
		pending_drop(face, unique);
	else if (item->fresh)
		pending_record(face, unique);
	free(item);
	return answered;
}

void inbox_record(struct face *face)
{
	struct inbox *inbox = &face->inbox;
	struct inbox_item *item;

	while ((item = inbox->fresh)) {
		DL_DELETE(inbox->fresh, item);
		item->fresh = false;
		pending_record(face, item->unique.number);
	}
	while ((item = inbox->settled)) {
		DL_DELETE(inbox->settled, item);
		pending_drop(face, item->unique.number);
		free(item);
	}
}

bool inbox_serve(struct face *face, struct fuse_session *fuse)
{
	struct fair_item *next = fair_next(&face->inbox.users);

	if (next)
		(void)serve_item(face, fuse, item_of(next));
	return next;
}

bool inbox_serve_now(struct face *face, struct fuse_session *fuse, uint64_t unique)
{
	struct table_link *link = table_find(&face->inbox.requests, unique);

	return link && serve_item(face, fuse, (struct inbox_item *)link);
}

void inbox_finish(struct inbox *inbox)
{
	struct fair_item *next;

	while ((next = fair_next(&inbox->users))) {
		take_out(inbox, item_of(next));
		free(item_of(next));
	}
	while (inbox->settled) {
		struct inbox_item *item = inbox->settled;

		DL_DELETE(inbox->settled, item);
		free(item);
	}
	table_finish(&inbox->requests);
}
