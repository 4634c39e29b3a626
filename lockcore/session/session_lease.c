/* SPDX-License-Identifier: MIT
 *
 * session_lease.c - the session's state, and what its lease is worth now: grown by answered writes,
 * in doubt, over. The arithmetic is in lease.h.
 */
#include "session/session_lease.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

void session_step(struct session *session, enum lc_state state)
{
	switch (session->state) {
	case LC_CONNECTING:
	case LC_SUSPENDED:
		assert(state != LC_SUSPENDED);
		break;
	case LC_READY:
		assert(state != LC_READY);
		break;
	case LC_UNUSABLE:
		assert(state == LC_UNUSABLE);
		break;
	}
	session->state = state;
}

void session_cannot_be_used(struct lc *lc, int why)
{
	if (lc_ready(lc))
		lc->session->away_us = lc_now(lc);
	session_step(lc->session, LC_UNUSABLE);
	lc->session->why = why;
	/* The timer closes the session. Its entries go with it. */
	timer_set(&lc->timers, &lc->session->retry, lc_now(lc));
	lc->session->events->unusable(lc);
}

bool lc_ready(const struct lc *lc)
{
	return lc->session->state == LC_READY;
}

bool session_lease_is_valid(struct lc *lc)
{
	return lease_left(&lc->session->lease, lc_now(lc)) > 0;
}

void session_tell_deadline(struct lc *lc)
{
	const struct lease *lease = &lc->session->lease;

	if (lc->config.deadline)
		lc->config.deadline(lc->config.ctx, lease_doubted(lease, lc_now(lc))
		                                            ? lease_certain_end(lease)
		                                            : lease_end(lease));
}

void session_end_lease(struct lc *lc)
{
	if (lc->session->lease.deadline_us == INT64_MIN)
		return;
	lease_rest(&lc->session->lease);
	session_tell_deadline(lc);
}

void session_limit(void *ctx)
{
	struct lc *lc = ctx;
	struct session *session = lc->session;

	if (session->lease.deadline_us == INT64_MIN)
		return;
	if (session_lease_is_valid(lc)) {
		timer_set(&lc->timers, &session->limit, lease_end(&session->lease));
		return;
	}
	if (session->resting)
		session_end_lease(lc);
	else if (session->lease.doubt_us != INT64_MAX)
		session_tell_deadline(lc);
	session->events->over(lc);
}

int64_t session_answer_timeout(struct lc *lc, int64_t otherwise_us)
{
	const struct session *session = lc->session;
	const struct lease *lease = &session->lease;
	int64_t late_us = lease_answer_timeout(lease);
	bool hurries = session->busy && lease_expects_late_renewal(lease);

	if (lease_doubted(lease, lc_now(lc)))
		return LEASE_DOUBT_US / 4;
	return hurries && late_us < otherwise_us ? late_us : otherwise_us;
}

void session_report_short(const struct lc_config *config, int64_t timeout_us, int64_t tick_us)
{
	config_report(config, LC_ERROR,
	              "the ensemble grants a session of %" PRId64 " ms; with a tick of "
	              "%" PRId64 " ms the lease needs %" PRId64 " ms at least",
	              timeout_us / 1000, tick_us / 1000,
	              lease_smallest_timeout(tick_us, config->loss_lead_us) / 1000);
}

bool session_long_enough(struct lc *lc)
{
	const struct lease *lease = &lc->session->lease;

	if (lease_possible(lease->timeout_us, lease->tick_us, lease->lead_us) ||
	    home_may_be_elsewhere(lc))
		return true;
	session_report_short(&lc->config, lease->timeout_us, lease->tick_us);
	session_cannot_be_used(lc, -ERANGE);
	return false;
}

void session_granted(struct lc *lc)
{
	int64_t granted_us = lc->session->lease.timeout_us;

	if (granted_us != lc->session->granted_us &&
	    granted_us / 1000 != lc->config.session_timeout_us / 1000)
		lc_report(lc, LC_WARNING,
		          "the ensemble grants a session of %" PRId64 " ms, and %" PRId64
		          " ms were asked for",
		          granted_us / 1000, lc->config.session_timeout_us / 1000);
	lc->session->granted_us = granted_us;
}

/* The lease is in doubt. Only a new connection proves within milliseconds what it is worth.
 * False: the lease has ended. */
static bool prove_anew(struct lc *lc)
{
	struct session *session = lc->session;

	if (session->limit.armed)
		timer_set(&lc->timers, &session->limit, lease_end(&session->lease));
	if (session->link != LINK_CLOSED)
		lc->ensemble->port->drop(lc->ensemble);
	if (!session_lease_is_valid(lc))
		return false;
	if (session->link != LINK_CONNECTED)
		timer_set(&lc->timers, &session->retry, lc_now(lc) + session_answer_timeout(lc, 0));
	return true;
}

static void doubt_lease(struct lc *lc)
{
	lc->counters.clock_doubts++;
	lease_doubt(&lc->session->lease, lc_now(lc));
	if (prove_anew(lc))
		lc_report(lc, LC_NOTICE,
		          "the clock may have stood still: held locks are in doubt until the "
		          "ensemble answers again");
}

bool lc_doubted(struct lc *lc)
{
	if (lc->config.disrupted && lc->config.disrupted(lc->config.ctx))
		doubt_lease(lc);
	return lc->session->lease.doubt_us != INT64_MAX &&
	       lease_doubted(&lc->session->lease, lc_now(lc));
}

bool session_may_ask(struct lc *lc)
{
	return lc_ready(lc) && !lease_doubted(&lc->session->lease, lc_now(lc));
}

void session_wrote(struct lc *lc, int64_t sent_us)
{
	struct session *session = lc->session;
	int64_t now = lc_now(lc);

	session->events->alive(lc);
	/* A lease that ran out before this answer was seen stays lost. */
	if (lease_left(&session->lease, now) == 0)
		session->events->over(lc);
	if (!lease_answered(&session->lease, sent_us, now))
		return;
	if (!session->limit.armed)
		timer_set(&lc->timers, &session->limit, lease_end(&session->lease));
	session_tell_deadline(lc);
	if (lc_ready(lc))
		session->events->extended(lc);
}

void session_report_ticks(struct lc *lc)
{
	lc_report(lc, LC_NOTICE,
	          "the tickTime of the servers has grown: held locks are in doubt until the "
	          "ensemble answers again");
}

void lc_raise_tick(struct lc *lc, int64_t tick_us)
{
	struct session *session = lc->session;
	bool doubted;

	if (tick_us <= session->lease.tick_us || session->state == LC_UNUSABLE)
		return;
	doubted = lease_raise_tick(&session->lease, tick_us, lc_now(lc));
	if (session->lease.timeout_us > 0 && !session_long_enough(lc))
		return;
	if (doubted && prove_anew(lc))
		session_report_ticks(lc);
}

void lc_limit_session(struct lc *lc, int64_t timeout_us)
{
	struct session *session = lc->session;

	if (timeout_us >= session->limit_us || session->state == LC_UNUSABLE)
		return;
	session->limit_us = timeout_us;
	if (timeout_us >= session->lease.timeout_us)
		return;
	lease_shorten(&session->lease, timeout_us);
	if (session->limit.armed)
		timer_set(&lc->timers, &session->limit, lease_end(&session->lease));
	session_tell_deadline(lc);
	(void)session_long_enough(lc);
}
