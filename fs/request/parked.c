/* SPDX-License-Identifier: MIT
 *
 * parked.c - a request that waits for an answer of the ensemble. Interrupted, it is
 * answered EINTR at once; the engine bounds how long it can wait otherwise.
 */
#include "request/parked.h"

#include <assert.h>
#include <errno.h>

void *park(struct frontend *front, struct request *req, struct node *node, size_t size)
{
	struct parked *parked = budget_alloc(&front->requests, req->in.uid, size);

	assert(size >= sizeof(*parked));
	if (!parked) {
		reply_err(req, errno);
		return NULL;
	}
	parked->front = front;
	front->parked++;
	parked->req = req;
	parked->by = req->in.uid;
	parked->node = node;
	if (node)
		node_ref(node);
	return parked;
}

void *park_by(struct frontend *front, struct request *req, struct node *node, size_t size,
              uid_t opener)
{
	struct parked *parked = park(front, req, node, size);

	if (!parked)
		return NULL;
	if (parked->by == 0)
		parked->by = opener;
	if (opener == parked->by || opener == 0)
		return parked;
	parked_error(parked, -EPERM);
	return NULL;
}

uid_t parked_uid(const struct parked *parked)
{
	return parked->req->in.uid;
}

void parked_free(struct parked *parked)
{
	assert(!parked->call);
	if (parked->node)
		node_unref(parked->front->nodes, parked->node);
	parked->front->parked--;
	budget_free(parked);
}

void parked_error(struct parked *parked, int error)
{
	reply_err(parked->req, -error);
	parked_free(parked);
}

static void call_interrupted(void *ctx)
{
	struct parked *parked = ctx;

	/* Programs repeat a call that ended by EINTR. A change that may have been made must not
	 * be repeated: so the request waits for its answer, which has a time limit. */
	if (!lc_may_cancel(parked->call))
		return;
	lc_cancel(parked->call);
	unpark(parked);
	parked_error(parked, -EINTR);
}

void park_call(struct parked *parked, int r)
{
	if (r < 0)
		parked_error(parked, r);
	else
		request_wait(parked->req, call_interrupted, parked);
}

void park_change(struct parked *parked, int r)
{
	if (r >= 0)
		request_begun(parked->req);
	park_call(parked, r);
}

void unpark(struct parked *parked)
{
	parked->call = NULL;
}

bool unpark_succeeded(struct parked *parked, int err)
{
	unpark(parked);
	if (err < 0)
		parked_error(parked, err);
	return err >= 0;
}

void parked_done(void *ctx, int err)
{
	unpark(ctx);
	parked_error(ctx, err);
}
