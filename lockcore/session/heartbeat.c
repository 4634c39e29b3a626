/* SPDX-License-Identifier: MIT
 *
 * heartbeat.c - the writes that keep the session, and its lease.
 *
 * The first write on every connection is a heartbeat: it makes or sets a small ephemeral node of
 * this session's own. It is a barrier: requests of the former connection that have not happened by
 * then will never happen. The one exception is told in lock/late.c. In a new session, and after a
 * rest, the first heartbeat is evidence for the lease. In a session that has a lease, a second
 * heartbeat follows at once, and is the evidence: see lease.h.
 */
#include "session/heartbeat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The next heartbeat is due one period after the last step, whichever write was that step. */
static int64_t beat_due(struct lc *lc)
{
	const struct lease *lease = &lc->session->lease;
	bool busy = lc->session->busy || !lease_fresh(lease, lc_lately(lc));

	return lease->answered_us + lease_heartbeat(lease, busy);
}

static void plan_beat(struct lc *lc)
{
	struct session *session = lc->session;

	if (session->link == LINK_CONNECTED && !session->beat.under_way &&
	    !(session->resting && lc_ready(lc)) && session->state != LC_UNUSABLE)
		timer_set(&lc->timers, &session->beat.timer, beat_due(lc));
}

void session_set_busy(struct lc *lc, bool busy)
{
	if (lc->session->busy == busy)
		return;
	lc->session->busy = busy;
	lc->session->used_us = lc_lately(lc);
	if (lc_ready(lc))
		plan_beat(lc);
}

/* The lease ends by itself. What needs it again asks by session_use() first. */
static bool may_rest(struct lc *lc)
{
	struct session *session = lc->session;

	return lc_ready(lc) &&
	       (session->resting ||
	        (lc->config.rest_us > 0 && lc_now(lc) - session->used_us >= lc->config.rest_us &&
	         session->events->unused(lc)));
}

void session_use(struct lc *lc)
{
	struct session *session = lc->session;

	if (lc->config.rest_us == 0)
		return;
	session->used_us = lc_now(lc);
	if (!session->resting || !lc_ready(lc))
		return;
	/* Only a new connection proves soon what the session is worth, as in doubt. Nothing of a
	 * taker or of a question is under way. */
	session_end_lease(lc);
	session_step(session, LC_SUSPENDED);
	session->away_us = session->used_us;
	lc->ensemble->port->drop(lc->ensemble);
}

void heartbeat_timer(void *ctx)
{
	struct lc *lc = ctx;
	struct session *session = lc->session;

	if (session->link != LINK_CONNECTED)
		return;
	if (session->beat.under_way) {
		/* The time for an answer is over: a server that owes the answer of a small write
		 * for so long hangs. The client alone would wait 2/3 T. */
		lc_report(lc, LC_WARNING, "server %s does not answer, trying the next",
		          lc->ensemble->port->server(lc->ensemble));
		lc->ensemble->port->drop(lc->ensemble);
		timer_set(&lc->timers, &session->beat.timer,
		          lc_now(lc) + session_answer_timeout(
					       lc, lease_answer_timeout(&session->lease)));
		return;
	}
	/* Other writes may have been steps meanwhile. */
	if (session->lease.steps > 0 && lc_now(lc) < beat_due(lc))
		plan_beat(lc);
	else if (may_rest(lc))
		session->resting = true;
	else
		heartbeat_send(lc);
}

static void beat_later(struct lc *lc)
{
	lc->session->beat.under_way = false;
	timer_set(&lc->timers, &lc->session->beat.timer, lc_now(lc) + RETRY_US);
}

static void say_late_renewal(struct lc *lc)
{
	int64_t most_us = lease_left(&lc->session->lease, lc_now(lc));

	lc_report(lc, LC_WARNING,
	          "a server never answered when it was to renew the session, and may shorten it at "
	          "any time: the lease is %" PRId64 " ms at most until nobody holds or waits",
	          most_us / 1000);
}

static void become_ready(struct lc *lc)
{
	struct session *session = lc->session;
	bool again = session->state == LC_SUSPENDED;

	session_step(session, LC_READY);
	session->pause_us = 0;
	lc_report(lc, again && !session->resting ? LC_NOTICE : LC_INFO,
	          "session 0x%" PRIx64 " %s at %s", (uint64_t)session->id,
	          again ? "resumed" : "begun", lc->ensemble->port->server(lc->ensemble));
	session->resting = false;
	if (lease_expects_late_renewal(&session->lease))
		say_late_renewal(lc);
}

void heartbeat_retreat(struct lc *lc, enum session_retreat how)
{
	lc->session->retreat = how;
	timer_set(&lc->timers, &lc->session->retry, lc_now(lc));
}

void heartbeat_home(struct lc *lc, enum home_answer answer, int err)
{
	struct session *session = lc->session;

	switch (answer) {
	case HOME_HERE: /* no evidence yet: the heartbeat follows */
		session->beat.under_way = false;
		heartbeat_send(lc);
		return;
	case HOME_NOT_HERE: /* both ensembles know the session's id: at home it may live */
		if (session->state == LC_SUSPENDED)
			lc->ensemble->port->drop(lc->ensemble);
		else
			heartbeat_retreat(lc, RETREAT_LEAVE);
		return;
	case HOME_LATER:
		beat_later(lc);
		return;
	case HOME_UNUSABLE:
		session->beat.under_way = false;
		session_cannot_be_used(lc, err);
		return;
	case HOME_UNKNOWN:
		session->beat.under_way = false;
		return;
	}
}

static void compare_clocks(struct lc *lc, const struct ensemble_stat *stat)
{
	lc->session->beat.epoch = stat->mzxid >> 32;
	lc->session->beat.clock_ms = stat->mtime_ms;
	lc->session->beat.clock_from_us = lc->session->beat.sent_us;
	lc->session->beat.clock_to_us = lc_now(lc);
}

int64_t lc_ensemble_ms(struct lc *lc, int64_t wall_ms)
{
	const struct session *session = lc->session;
	int64_t least = session->beat.clock_ms + (lc_now(lc) - session->beat.clock_to_us) / 1000;
	int64_t most = least + (session->beat.clock_to_us - session->beat.clock_from_us) / 1000 + 1;

	if (session->beat.clock_ms == 0)
		return wall_ms;
	return wall_ms < least ? least : wall_ms > most ? most : wall_ms;
}

static void say_refused(struct lc *lc, const struct ensemble_answer *answer)
{
	if (lc_may_say_again(lc, &lc->session->node.refused_said_us))
		home_met(lc, LC_WARNING, "the ensemble refuses heartbeats below %s: %s",
		         lc->home->dir, lc_why_refused(answer));
}

/* A renewal that was given up shortens the lease for as long as the session lives. */
static void leave_if_unused(struct lc *lc)
{
	if (lease_expects_late_renewal(&lc->session->lease) && lc->session->events->unused(lc)) {
		lc_report(lc, LC_NOTICE,
		          "nobody holds or waits: a new session begins, which no late renewal "
		          "shortens");
		heartbeat_retreat(lc, RETREAT_ANEW);
	}
}

void heartbeat_go_on(struct lc *lc)
{
	struct session *session = lc->session;
	bool resumed = !lc_ready(lc);

	session->beat.under_way = false;
	/* Since the rest nobody has had an entry: another session costs nothing. */
	if (resumed && session->resting && lease_expects_late_renewal(&session->lease)) {
		heartbeat_retreat(lc, RETREAT_ANEW);
		return;
	}
	if (resumed)
		become_ready(lc);
	session->events->beaten(lc, resumed);
	plan_beat(lc);
	leave_if_unused(lc);
}

static void beat_succeeded(struct lc *lc, const struct ensemble_stat *stat)
{
	struct session *session = lc->session;

	session->node.made = true;
	home_proved(lc);
	if (!session_long_enough(lc))
		return;
	compare_clocks(lc, stat);
	session_wrote(lc, session->beat.sent_us);
	/* Takers may have been evicted while contact was lost; in a rest there are none. */
	if (session->state == LC_SUSPENDED && !session->resting)
		session_read_mailbox(lc);
	else
		heartbeat_go_on(lc);
}

static void beat_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct lc *lc = ctx;
	struct session *session = lc->session;

	if (answer->result == ENSEMBLE_OK) {
		beat_succeeded(lc, answer->stat);
		return;
	}
	session->beat.under_way = false;
	if (answer->result == ENSEMBLE_EXISTS) { /* made by a create whose answer was lost */
		session->node.made = true;
		heartbeat_send(lc);
	} else if (answer->result == ENSEMBLE_NONODE) { /* no evidence: the node is made again */
		session_node_lost(lc);
	} else if (answer->result == ENSEMBLE_NOAUTH) {
		session_cannot_be_used(lc, -EACCES);
	} else if (!ensemble_unanswered(answer)) {
		say_refused(lc, answer);
		beat_later(lc);
	}
}

void heartbeat_send(struct lc *lc)
{
	struct session *session = lc->session;

	if (session->link != LINK_CONNECTED || session->beat.under_way ||
	    session->state == LC_UNUSABLE)
		return;
	session->beat.under_way = true;
	session->beat.sent_us = lc_now(lc);
	timer_set(&lc->timers, &session->beat.timer,
	          session->beat.sent_us +
	                  session_answer_timeout(lc, lease_answer_timeout(&session->lease)));
	if (session->node.made)
		lc_submit(lc, ensemble_set(session->node.path, "", 0, ENSEMBLE_ANY_VERSION),
		          beat_answered, lc);
	else if (!lc->home->looked)
		home_find(lc);
	else
		lc_submit(lc, ensemble_create_ephemeral(session->node.path, NULL, 0), beat_answered,
		          lc);
}

void session_node_lost(struct lc *lc)
{
	lc->session->node.made = false;
	home_missed(lc);
	heartbeat_send(lc);
}

void session_prove(struct lc *lc)
{
	if (lc->session->lease.connect_us >= 0)
		heartbeat_send(lc);
}

bool session_may_grant(struct lc *lc)
{
	if (!lc_ready(lc))
		return false;
	if (lease_fresh(&lc->session->lease, lc_now(lc)))
		return true;
	heartbeat_send(lc);
	return false;
}
