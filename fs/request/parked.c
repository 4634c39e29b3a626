/* SPDX-License-Identifier: MIT
 *
 * parked.c - a request that waits for an answer of the ensemble. Interrupted, it is
 * answered EINTR at once; the engine bounds how long it can wait otherwise. Writes may have to wait
 * for their turn before that: turn.h.
 */
#include "request/face.h"

#include "request/parked.h"
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static void parked_step(struct parked *parked, enum parked_state to)
{
	static const unsigned steps[] = {
		[PARKED_NEW] = 1 << PARKED_ASKING,
		[PARKED_ASKING] = 1 << PARKED_HEARD,
		[PARKED_HEARD] = 1 << PARKED_ASKING | 1 << PARKED_COMMITTED,
		[PARKED_COMMITTED] = 0,
	};

	(void)steps; /* without asserts */
	assert(steps[parked->state] & 1U << to);
	parked->state = to;
}

static void refuse_with_errno(fuse_req_t req, int error)
{
	fuse_reply_err(req, -error);
}

struct parked *park(struct face *face, fuse_req_t req, struct node *node, const char *name)
{
	return park_or(face, req, node, name, refuse_with_errno);
}

struct parked *park_by(struct face *face, fuse_req_t req, struct node *node, uid_t opener)
{
	struct parked *parked = park(face, req, node, NULL);

	if (!parked)
		return NULL;
	if (parked->by == 0)
		parked->by = opener;
	if (opener == parked->by || opener == 0)
		return parked;
	parked_error(parked, -EPERM);
	return NULL;
}

struct parked *park_or(struct face *face, fuse_req_t req, struct node *node, const char *name,
                       void (*refuse)(fuse_req_t req, int error))
{
	struct parked *parked =
		budget_alloc(&face->requests, fuse_req_ctx(req)->uid, sizeof(*parked));

	if (!parked) {
		refuse(req, -errno);
		return NULL;
	}
	parked->refuse = refuse;
	parked->face = face;
	face->parked++;
	parked->req = req;
	parked->by = fuse_req_ctx(req)->uid;
	parked->unique = pending_unique(face);
	parked->node = node;
	if (node)
		node_ref(node);
	if (name)
		snprintf(parked->name, sizeof(parked->name), "%s", name);
	return parked;
}

uid_t parked_uid(const struct parked *parked)
{
	return fuse_req_ctx(parked->req)->uid;
}

void parked_free(struct parked *parked)
{
	assert(parked->state != PARKED_ASKING);
	turn_end(&parked->face->turns, &parked->turn);
	free(parked->text);
	if (parked->node)
		node_unref(parked->face->nodes, parked->node);
	parked->face->parked--;
	budget_free(parked);
}

void parked_error(struct parked *parked, int error)
{
	parked->refuse(parked->req, error);
	parked_free(parked);
}

static void call_interrupted(fuse_req_t req, void *ctx)
{
	struct parked *parked = ctx;

	(void)req;
	if (parked->turn.state != TURN_WAITS) {
		/* Programs by themselves repeat a call that an interrupt has ended. So the end of a
		 * change that may have been made is waited for, which has a time limit. */
		if (!lc_may_cancel(parked->call))
			return;
		lc_cancel(parked->call);
	}
	parked_step(parked, PARKED_HEARD);
	parked_error(parked, -EINTR);
}

void park_call(struct parked *parked, int r)
{
	if (r < 0) {
		parked_error(parked, r);
	} else if (parked->state != PARKED_COMMITTED) {
		parked_step(parked, PARKED_ASKING);
		fuse_req_interrupt_func(parked->req, call_interrupted, parked);
	}
}

static int begin_write(struct parked *parked)
{
	int r = parked->go(parked);

	if (r >= 0)
		pending_begun(parked->face, parked->unique);
	return r;
}

int park_write(struct parked *parked, int (*go)(struct parked *parked))
{
	struct face *face = parked->face;
	int r = turn_ask(&face->turns, &parked->turn, parked_uid(parked), face->clock_us());

	parked->go = go;
	return r < 0 || parked->turn.state == TURN_WAITS ? r : begin_write(parked);
}

static struct parked *parked_of(struct turn *turn)
{
	return turn ? (struct parked *)((char *)turn - offsetof(struct parked, turn)) : NULL;
}

static void refuse_late(struct face *face, int64_t now_us, int error)
{
	struct parked *parked;

	while ((parked = parked_of(turns_late(&face->turns, now_us)))) {
		unpark(parked);
		parked_error(parked, error);
	}
}

void parked_process(struct face *face)
{
	struct parked *parked;

	if (!turns_waiting(&face->turns))
		return;
	/* The ensemble answers, but too many of the same user write. */
	refuse_late(face, face->clock_us(), lc_ready(face->lc) ? -EBUSY : -EHOSTUNREACH);
	while ((parked = parked_of(turns_next(&face->turns)))) {
		int r = begin_write(parked);

		if (r < 0) {
			unpark(parked);
			parked_error(parked, r);
		}
	}
}

int64_t parked_wait(const struct face *face)
{
	return turns_waiting(&face->turns) ? turns_wait(&face->turns, face->clock_us()) : INT64_MAX;
}

void parked_finish(struct face *face)
{
	refuse_late(face, INT64_MAX, -ESHUTDOWN);
}

void unpark(struct parked *parked)
{
	fuse_req_interrupt_func(parked->req, NULL, NULL);
	if (parked->state != PARKED_COMMITTED)
		parked_step(parked, PARKED_HEARD);
}

bool unpark_succeeded(struct parked *parked, int err)
{
	unpark(parked);
	if (err < 0)
		parked_error(parked, err);
	return err >= 0;
}

void parked_commit(struct parked *parked)
{
	parked_step(parked, PARKED_COMMITTED);
}

void parked_done(void *ctx, int err)
{
	unpark(ctx);
	parked_error(ctx, err);
}
