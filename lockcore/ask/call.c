/* SPDX-License-Identifier: MIT
 *
 * call.c - the life of a question to the ensemble: a lock's data, its queue, making or changing a
 * lock, checking the own entry.
 *
 * A call runs through stages: a request, and what its answer leads to. A change is read, decided,
 * and written by the version that was read. If somebody else has changed it meanwhile, the call
 * begins anew. When the answer of a read was lost, the call asks again on the next connection.
 * When the answer of a write was lost, it does not, and fails with EHOSTUNREACH, unless doing it
 * twice is the same as doing it once. Every call ends within LC_CALL_TIMEOUT_US after it was asked.
 * Only some calls that write are asked at a time, since takers wait behind them; the others wait
 * for their turn at a gate, for the same time at most.
 * What a call only reads is asked once for all who wait for the same: asking.c.
 */
#include "ask/call.h"

#include "grant/grant.h"
#include "pure/limits.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

/* A question waits so long at least while the ensemble is away. */
#define AWAY_US 20000

/* Starts the waiting calls whose turn at the gate has come. */
static void ask_changes(struct lc *lc);

static void call_free(struct lc_call *call)
{
	reader_cancel(&call->reader);
	if (call->finish)
		call->finish(call);
	free(call->path);
	free(call);
}

static void call_free_if_done(struct lc_call *call)
{
	if (call->stage)
		return;
	if (call->taker) {
		call->taker->entry.pending--;
		taker_step(call->taker);
	}
	call_free(call);
}

/* Nothing can end the call any more. */
static void call_close(struct lc_call *call)
{
	assert(!call->told);
	call->told = true;
	timer_clear(&call->lc->timers, &call->limit);
	DL_DELETE(call->lc->calls->calls, call);
	gate_leave(&call->lc->calls->changes, &call->turn);
	ask_changes(call->lc);
}

void call_end(struct lc_call *call, int error, void *what)
{
	call_close(call);
	call->tell(call, error, what);
	call_free_if_done(call);
}

void call_fail(struct lc_call *call, int error)
{
	call_end(call, error, NULL);
}

bool lc_may_cancel(const struct lc_call *call)
{
	return !call->written;
}

void lc_cancel(struct lc_call *call)
{
	call_close(call);
	call_free_if_done(call);
}

/* Whether the ensemble has had half of the time to answer the last request. Otherwise the call has
 * waited here for its turn, or it has many requests and sent the last one a moment ago. */
static bool sent_in_time(const struct lc_call *call)
{
	return call->waiting == 0 && lc_now(call->lc) - call->sent_us >= LC_CALL_TIMEOUT_US / 2;
}

enum end_of_call {
	END_LATER, /* the ensemble was away when this was asked, and answers again */
	END_TOLD,  /* it has its answer; its caller gets it in a moment */
	END_BUSY,  /* the ensemble answers, but too many of the same user ask or change something */
	END_AWAY,  /* the ensemble does not answer */
};

static enum end_of_call end_of_call(const struct lc_call *call)
{
	struct lc *lc = call->lc;
	bool answers = lc_ready(lc) && !lc->reads->silent;

	if (call->turn.state == GATE_WAITS)
		return lc_ready(lc) ? END_BUSY : END_AWAY;
	if (answers && lc_now(lc) < call->begun_us + LC_CALL_TIMEOUT_US)
		return END_LATER;
	if (reader_is_answered(&call->reader))
		return END_TOLD;
	return answers && call->reads > 0 && !sent_in_time(call) ? END_BUSY : END_AWAY;
}

static void call_timed_out(void *ctx)
{
	struct lc_call *call = ctx;
	struct lc *lc = call->lc;
	int error = -EHOSTUNREACH;

	if (call->error) {
		call_fail(call, call->error);
		return;
	}
	switch (end_of_call(call)) {
	case END_LATER:
		timer_set(&lc->timers, &call->limit, call->begun_us + LC_CALL_TIMEOUT_US);
		return;
	case END_TOLD:
		timer_set(&lc->timers, &call->limit, lc_now(lc) + 10 * TOLD_REST_US);
		return;
	case END_BUSY:
		error = -EBUSY;
		break;
	case END_AWAY:
		lc->reads->silent |=
			(call->stage && sent_in_time(call)) || (call->reads > 0 && lc_ready(lc));
		break;
	}
	call_fail(call, error);
}

void call_fail_soon(struct lc_call *call, int error)
{
	call->error = error;
	timer_set(&call->lc->timers, &call->limit, lc_now(call->lc));
}

void call_ask(struct lc_call *call)
{
	if (session_may_ask(call->lc))
		call->ask(call);
	else if (call->lc->session->state == LC_UNUSABLE)
		call_fail_soon(call, call->lc->session->why == -EACCES ? -EACCES : -ESHUTDOWN);
}

void calls_resume(struct lc *lc)
{
	struct lc_call *call, *next;

	lc->reads->silent = false;
	if (!session_may_ask(lc))
		return; /* the heartbeat that ends the doubt resumes them */
	DL_FOREACH_SAFE(lc->calls->calls, call, next)
		if (!call->stage && call->reads == 0 && call->turn.state != GATE_WAITS)
			call->ask(call);
}

void calls_finish(struct lc *lc)
{
	struct lc_call *call, *next;

	lc->calls->settles = true;
	DL_FOREACH_SAFE(lc->calls->calls, call, next)
		lc_cancel(call);
}

/* While the ensemble is away one question after the other may come, each of them only
 * when the one before has failed (the kernel looks a name up for one process at a
 * time, and another user's may be behind a hundred): they share one time limit, from
 * the moment contact was lost. None fails at once, or a program that tries again would
 * spin. */
static int64_t call_timeout(struct lc *lc)
{
	int64_t left = lc->session->away_us + LC_CALL_TIMEOUT_US - lc_now(lc);

	if (lc_ready(lc))
		return lc->reads->silent ? AWAY_US : LC_CALL_TIMEOUT_US;
	return left > AWAY_US ? left : AWAY_US;
}

static void start(struct lc_call *call)
{
	struct lc *lc = call->lc;

	call->begun_us = lc_now(lc);
	timer_set(&lc->timers, &call->limit, call->begun_us + call_timeout(lc));
	call_ask(call);
}

static void ask_changes(struct lc *lc)
{
	static const struct gate_limits limits = {
		.all = CHANGES_MAX,
		.of_root = CHANGES_MAX,
		.of_user = USER_CHANGES_MAX,
	};
	struct gate_item *turn;

	while (!lc->calls->settles && (turn = gate_next(&lc->calls->changes, &limits)))
		start((struct lc_call *)((char *)turn - offsetof(struct lc_call, turn)));
}

void lc_settle(struct lc *lc, bool settle)
{
	lc->calls->settles = settle;
	ask_changes(lc);
}

static void join_changes(struct lc_call *call)
{
	struct lc *lc = call->lc;

	timer_set(&lc->timers, &call->limit, lc_now(lc) + LC_CALL_TIMEOUT_US);
	ask_changes(lc);
}

void *call_alloc(size_t size, const struct lc_call *model)
{
	struct lc_call *call = calloc(1, size);

	if (call)
		*call = *model;
	else
		free(model->path);
	return call;
}

int call_begin(struct lc_call *call, struct lc *lc, struct lc_call **ret_call)
{
	if (!call)
		return -ENOMEM;
	call->lc = lc;
	if (!call->path ||
	    (call->changes && !gate_join(&lc->calls->changes, call->uid, &call->turn))) {
		call_free(call);
		return -ENOMEM;
	}
	session_use(lc);
	call->limit = (struct timer){.fire = call_timed_out, .ctx = call};
	if (call->taker)
		call->taker->entry.pending++;
	reuse_end_at(lc, call->path);
	DL_APPEND(lc->calls->calls, call);
	*ret_call = call;
	if (call->changes)
		join_changes(call);
	else
		start(call);
	return 0;
}

/* ---- requests and answers ---- */

/* A confirmation writes to the node of the heartbeats, which changes nothing that anybody reads. */
static bool changes_something(const struct lc *lc, const struct ensemble_op *op)
{
	return (op->kind == ENSEMBLE_CREATE || op->kind == ENSEMBLE_DELETE ||
	        op->kind == ENSEMBLE_SET) &&
	       op->path != lc->session->node.path;
}

static void stage_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct lc_call *call = ctx;
	call_stage_fn *stage = call->stage;
	enum ensemble_result result = answer->result;
	bool ok = result == ENSEMBLE_OK;

	call->stage = NULL;
	call->lc->reads->silent = false;
	if (ok && call->writes)
		session_wrote(call->lc, call->sent_us);
	call->maybe_done |= call->writes && result == ENSEMBLE_UNKNOWN;
	if (call->told) {
		call->done_late = call->writes && ok;
		call_free_if_done(call);
	} else if (ok || call->meant & MEANT(result)) {
		stage(call, answer);
	} else if (ensemble_unanswered(answer)) {
		if (call->writes && !call->repeatable)
			call_fail(call, -EHOSTUNREACH);
		/* else calls_resume() asks again */
	} else if (result == ENSEMBLE_BADVERSION) {
		call_ask(call);
	} else if (result == ENSEMBLE_NONODE && !call->writes && !call->synced) {
		/* A follower may lag behind the host that has just made it. */
		call->synced = true;
		batch_submit(call->lc, ensemble_sync(call->path), lc_ignore, NULL);
		call->ask(call);
	} else {
		call_fail(call, errno_of(result));
	}
}

void call_send(struct lc_call *call, const struct ensemble_op *ops, int count, call_stage_fn *stage,
               unsigned meant)
{
	for (int i = 0; i < count; i++)
		call->written |= changes_something(call->lc, &ops[i]);
	assert(!call->stage);
	call->stage = stage;
	call->meant = meant;
	call->writes = ops[0].kind != ENSEMBLE_GET;
	call->sent_us = lc_now(call->lc);
	batch_send(call->lc);
	lc_submit_all(call->lc, ops, count, stage_answered, call);
}

void call_get(struct lc_call *call, const char *path, call_stage_fn *stage, unsigned meant)
{
	struct ensemble_op op = ensemble_get(path);

	call_send(call, &op, 1, stage, meant);
}

void call_send_held(struct lc_call *call, struct ensemble_op op, call_stage_fn *stage,
                    unsigned meant)
{
	char *entry = entry_path(&call->taker->entry);
	struct ensemble_op ops[] = {ensemble_check(entry, ENSEMBLE_ANY_VERSION), op};

	if (entry)
		call_send(call, ops, 2, stage, meant);
	else
		call_fail_soon(call, -ENOMEM);
	free(entry);
}

/* ---- reads ---- */

struct lc_call *call_of(struct reader *reader)
{
	return (struct lc_call *)((char *)reader - offsetof(struct lc_call, reader));
}

void call_read(struct lc_call *call, enum reading_kind kind, const char *path, reader_fn *answer)
{
	call->reader.answer = answer;
	if (reader_ask(&call->reader, call, kind, path) < 0)
		call_fail_soon(call, -ENOMEM);
}

/* ---- the end of several kinds ---- */

void call_tell_done(struct lc_call *call, int error, void *what)
{
	(void)what;
	call->listener.done(call->ctx, error);
}

void call_tell_stat(struct lc_call *call, int error, void *info)
{
	call->listener.stat(call->ctx, error, info);
}

void call_done(struct lc_call *call, const struct ensemble_answer *answer)
{
	(void)answer;
	call_end(call, 0, NULL);
}
