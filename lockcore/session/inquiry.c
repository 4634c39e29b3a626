/* SPDX-License-Identifier: MIT
 *
 * inquiry.c - see inquiry.h. A session of its own reads the mark of the ensemble that it meets, and
 * the heartbeats' node of the session that is said to be over:
 *
 *   the mark is another one, or not there   that server's word does not count: ask the next one
 *   ours, and the node is there             the session lives
 *   ours, and there is no node              it is over
 *
 * The reads come behind a sync, on one connection: a request that is made there never leaves on
 * another. Nothing is written.
 */
#include "session/inquiry.h"

#include <string.h>

bool inquiry_is_due(struct lc *lc)
{
	return lc->session->state == LC_SUSPENDED && lc->session->node.made && lc_knows_mark(lc) &&
	       !lc->dying && session_lease_is_valid(lc);
}

static void answer_inquiry(struct lc *lc, enum inquiry answer)
{
	lc->session->inquiry = answer;
	timer_set(&lc->timers, &lc->session->retry, lc_now(lc));
}

static void met_another(struct lc *lc)
{
	home_met(lc, LC_ERROR,
	         "%s is of another ensemble: whether our session is over is asked elsewhere",
	         lc->ensemble->port->server(lc->ensemble));
	answer_inquiry(lc, INQUIRY_AGAIN);
}

static void there_is_node(void *ctx, const struct ensemble_answer *answer)
{
	struct lc *lc = ctx;
	bool there = answer->result == ENSEMBLE_OK;

	if (ensemble_unanswered(answer))
		return; /* the port tries the next server */
	if (there && answer->stat->ephemeral_owner == lc->session->id)
		answer_inquiry(lc, INQUIRY_LIVES);
	else if (there || answer->result == ENSEMBLE_NONODE)
		answer_inquiry(lc, INQUIRY_OVER);
	else
		answer_inquiry(lc, INQUIRY_AGAIN);
}

static void there_is_mark(void *ctx, const struct ensemble_answer *answer)
{
	struct lc *lc = ctx;
	struct lc_mark mark = {0};

	if (ensemble_unanswered(answer))
		return;
	if (answer->result == ENSEMBLE_OK)
		mark = lc_mark_of(answer->stat->czxid, answer->stat->ctime_ms, answer->data,
		                  (size_t)answer->data_len);
	if (lc_is_mark(lc, &mark))
		lc_submit(lc, ensemble_get(lc->session->node.path), there_is_node, lc);
	else
		met_another(lc);
}

static void inquiry_connected(void *ctx, const struct ensemble_session *session, int64_t timeout_us,
                              int64_t connect_us)
{
	struct lc *lc = ctx;

	(void)session;
	(void)timeout_us;
	(void)connect_us;
	lc_submit(lc, ensemble_sync(lc->home->dir), lc_ignore, lc);
	lc_submit(lc, ensemble_get(lc->home->dir), there_is_mark, lc);
}

/* The port tries the next server. */
static void inquiry_disconnected(void *ctx)
{
	(void)ctx;
}

/* The inquiry's own session was of another ensemble than this server. */
static void inquiry_ended(void *ctx, bool refused)
{
	(void)refused;
	answer_inquiry(ctx, INQUIRY_AGAIN);
}

int inquiry_begin(struct lc *lc)
{
	static const struct ensemble_events events = {
		.connected = inquiry_connected,
		.disconnected = inquiry_disconnected,
		.ended = inquiry_ended,
	};

	lc->session->inquiry = INQUIRY_ASKS;
	return lc->ensemble->port->open(lc->ensemble, lc->config.session_timeout_us, NULL, &events,
	                                lc);
}
