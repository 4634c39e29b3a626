/* SPDX-License-Identifier: MIT
 *
 * zookeeper_answer.c - see zookeeper_port.h. An answer comes once, in the order of the requests,
 * and from process() alone. Answers that the client gives elsewhere, or that are known without it,
 * are deferred until then. A request is freed when it has its answer and the client has said its
 * last word.
 */
#include "port/zookeeper_port.h"

#include <assert.h>
#include <stdlib.h>

static void put_later(struct zookeeper *zk, struct later *later, struct later content)
{
	*later = content;
	DL_APPEND(zk->later, later);
}

void answer_later(struct zookeeper_request *request, enum ensemble_result result)
{
	put_later(request->zk, &request->later,
	          (struct later){.request = request,
	                         .answer = request->answer,
	                         .ctx = request->ctx,
	                         .result = result});
	request->answer = NULL;
	request->in_later = true;
}

void answer_later_bare(struct zookeeper *zk, ensemble_answer_fn *answer, void *ctx)
{
	if (zk->reserve.used == RESERVE)
		abort(); /* an answer that is never given would leak a lock */
	zk->reserve.owed++;
	put_later(zk, &zk->reserve.later[zk->reserve.used++],
	          (struct later){.answer = answer, .ctx = ctx, .result = zk->fate});
}

static void release_later(struct zookeeper *zk, struct zookeeper_request *request)
{
	if (request) {
		request->in_later = false;
		if (request->over)
			free(request);
	} else if (--zk->reserve.owed == 0) {
		zk->reserve.used = 0;
	}
}

void answer_run_later(struct zookeeper *zk)
{
	while (zk->later) {
		struct later *first = zk->later, later = *first;

		DL_DELETE(zk->later, first);
		if (!later.answer) {
			zk->events->disconnected(zk->ctx);
			continue;
		}
		release_later(zk, later.request);
		later.answer(later.ctx, &(struct ensemble_answer){.result = later.result});
	}
}

bool answer_may_call(struct zookeeper *zk)
{
	if (zk->in_process)
		answer_run_later(zk);
	return zk->in_process;
}

void answer_note_end(struct zookeeper *zk, enum ending end)
{
	if (zk->end < end)
		zk->end = end;
}

void answer_refused(struct zookeeper *zk)
{
	struct zookeeper_request *first;

	while ((first = zk->requests) && first->refused != ENSEMBLE_OK) {
		DL_DELETE(zk->requests, first);
		answer_later(first, first->refused);
	}
}

static void give(struct zookeeper_request *request, const struct ensemble_answer *answer)
{
	struct zookeeper *zk = request->zk;
	ensemble_answer_fn *fn = request->answer;

	if (!fn)
		return;
	DL_DELETE(zk->requests, request);
	if (answer_may_call(zk)) {
		request->answer = NULL;
		fn(request->ctx, answer);
	} else {
		/* The client has nothing to deliver but errors here. */
		assert(answer->result != ENSEMBLE_OK);
		answer_later(request, answer->result);
	}
	answer_refused(zk);
}

void answer_end(struct zookeeper_request *request)
{
	if (request->rejected)
		DL_DELETE(request->zk->rejected, request);
	request->over = true;
	if (!request->in_later)
		free(request);
}

void answer_finish(struct zookeeper_request *request, const struct ensemble_answer *answer)
{
	give(request, answer);
	answer_end(request);
}

void answer_all_later(struct zookeeper *zk, enum ensemble_result result)
{
	while (zk->requests) {
		struct zookeeper_request *request = zk->requests;

		DL_DELETE(zk->requests, request);
		answer_later(request, result);
	}
	zk->kept = NULL;
}

void answer_lose_connection(struct zookeeper *zk)
{
	if (!zk->connected)
		return;
	zk->connected = false;
	zk->fd = -1;
	put_later(zk, &zk->disconnected, (struct later){0});
	answer_all_later(zk, ENSEMBLE_UNKNOWN);
}

void answer_look(struct zookeeper *zk)
{
	if (zk->connected && zoo_state(zk->handle) != ZOO_CONNECTED_STATE)
		answer_lose_connection(zk);
}

void answer_cut(struct zookeeper *zk)
{
	zk->cut |= zk->connected;
	answer_lose_connection(zk);
}
