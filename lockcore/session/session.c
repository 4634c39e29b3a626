/* SPDX-License-Identifier: MIT
 *
 * session.c - contact with the ensemble: connect, prove it by a write, keep the
 * lease, notice the end.
 *
 *              connected, first write answered OK
 *   [CONNECTING] --------------------------------> [READY]
 *        ^                                          |   ^
 *        | session ended, of READY too      contact |   | connected again,
 *        |                                     lost v   | first write OK
 *        `---------------------------------- [SUSPENDED]
 *
 *   any of them ---------> [UNUSABLE], for good: the root cannot be had, the ensemble grants too
 *                          short a session or refuses us; or the engine is destroyed
 *
 * The first write on every connection is the heartbeat: it makes or sets a small
 * ephemeral node of this session's own. It is a barrier: requests of the former connection that
 * have not happened by then will never happen. In a new session it is evidence for the lease; in
 * one that has had a lease, a second one is, which follows at once: see lease.h.
 */
#include "session/session.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void send_beat(struct lc *lc);

/* Between two tries where no server is of use, each twice as long as the one before. In a session
 * that may live, not for so long that it would end meanwhile. */
#define PAUSE_MAX_US 30000000

/* The only place that changes it. */
static void set_session_state(struct session *session, enum lc_state state)
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

static void become_unusable(struct lc *lc, int why)
{
	if (session_is_ready(lc))
		lc->session->away_us = lc_now(lc);
	set_session_state(lc->session, LC_UNUSABLE);
	lc->session->why = why;
	/* Its entries go with the session, which must not be kept alive for nothing. */
	timer_set(&lc->timers, &lc->session->retry, lc_now(lc));
	lc->session->events->unusable(lc);
}

bool session_is_ready(const struct lc *lc)
{
	return lc->session->state == LC_READY;
}

bool session_may_ask(struct lc *lc)
{
	return session_is_ready(lc) && !lease_doubted(&lc->session->lease, lc_now(lc));
}

bool session_lease_is_valid(struct lc *lc)
{
	return lease_left(&lc->session->lease, lc_now(lc)) > 0;
}

bool session_may_grant(struct lc *lc)
{
	if (!session_is_ready(lc) || lc->session->marks_unread)
		return false;
	if (lease_fresh(&lc->session->lease, lc_now(lc)))
		return true;
	send_beat(lc);
	return false;
}

void session_marks_read(struct lc *lc)
{
	if (!lc->session->marks_unread)
		return;
	lc->session->marks_unread = false;
	if (session_is_ready(lc))
		lc->session->events->extended(lc);
}

/* ---- the lease ---- */

/* A doubt is reported when it is certain. */
static void tell_deadline(struct lc *lc)
{
	const struct lease *lease = &lc->session->lease;

	if (lc->config.deadline)
		lc->config.deadline(lc->config.ctx, lease_doubted(lease, lc_now(lc))
		                                            ? lease->deadline_us
		                                            : lease_end(lease));
}

static void lease_limit(void *ctx)
{
	struct lc *lc = ctx;
	struct session *session = lc->session;

	if (session->lease.deadline_us == INT64_MIN)
		return;
	if (session_lease_is_valid(lc)) {
		timer_set(&lc->timers, &session->limit, lease_end(&session->lease));
		return;
	}
	if (session->lease.doubt_us != INT64_MAX)
		tell_deadline(lc);
	session->events->over(lc);
}

/* How long to wait for an answer that does not come. */
static int64_t patience(struct lc *lc, int64_t otherwise_us)
{
	return lease_doubted(&lc->session->lease, lc_now(lc)) ? LEASE_DOUBT_US / 4 : otherwise_us;
}

/* The lease is in doubt. Only a new connection proves within milliseconds what it is worth. False:
 * there was none. */
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
		timer_set(&lc->timers, &session->retry, lc_now(lc) + patience(lc, 0));
	return true;
}

static void doubt_lease(struct lc *lc)
{
	lc->counters.doubts++;
	lease_doubt(&lc->session->lease, lc_now(lc));
	if (prove_anew(lc))
		lc_report(lc, LC_NOTICE,
		          "the clock may have stood still: held locks are in doubt until the "
		          "ensemble answers again");
}

bool session_is_doubted(struct lc *lc)
{
	if (lc->config.disrupted && lc->config.disrupted(lc->config.ctx))
		doubt_lease(lc);
	return lc->session->lease.doubt_us != INT64_MAX &&
	       lease_doubted(&lc->session->lease, lc_now(lc));
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
	tell_deadline(lc);
	if (session_is_ready(lc))
		session->events->extended(lc);
}

/* ---- heartbeats ---- */

/* The next one is due a period after the last step, whichever write that was. */
static int64_t beat_due(struct lc *lc)
{
	const struct lease *lease = &lc->session->lease;
	bool busy = lc->session->busy || !lease_fresh(lease, lc_lately(lc));

	return lease->answered_us + lease_heartbeat(lease, busy);
}

static void plan_beat(struct lc *lc)
{
	struct session *session = lc->session;

	if (session->link == LINK_CONNECTED && !session->beating && session->state != LC_UNUSABLE)
		timer_set(&lc->timers, &session->beat, beat_due(lc));
}

void session_set_busy(struct lc *lc, bool busy)
{
	if (lc->session->busy == busy)
		return;
	lc->session->busy = busy;
	if (session_is_ready(lc))
		plan_beat(lc);
}

void session_node_lost(struct lc *lc)
{
	lc->session->node_made = false;
	home_missed(lc);
	send_beat(lc);
}

void session_node_refused(struct lc *lc)
{
	send_beat(lc);
}

void session_node_written(struct lc *lc, bool certain)
{
	if (certain)
		lc->session->node_version++;
	else
		lc->session->node_unsure = true;
}

static void beat_timer(void *ctx)
{
	struct lc *lc = ctx;
	struct session *session = lc->session;

	if (session->link != LINK_CONNECTED)
		return;
	if (session->beating) {
		/* Patience is over: a server that owes the answer of a small write
		 * for so long hangs. The client alone would wait 2/3 T. */
		lc_report(lc, LC_WARNING, "server %s does not answer, trying the next",
		          lc->ensemble->port->server(lc->ensemble));
		lc->ensemble->port->drop(lc->ensemble);
		timer_set(&lc->timers, &session->beat,
		          lc_now(lc) + patience(lc, lease_patience(&session->lease)));
		return;
	}
	/* Other writes may have been steps meanwhile. */
	if (session->lease.steps > 0 && lc_now(lc) < beat_due(lc))
		plan_beat(lc);
	else
		send_beat(lc);
}

static void beat_later(struct lc *lc)
{
	lc->session->beating = false;
	timer_set(&lc->timers, &lc->session->beat, lc_now(lc) + RETRY_US);
}

static void become_ready(struct lc *lc)
{
	struct session *session = lc->session;
	bool again = session->state == LC_SUSPENDED;

	set_session_state(session, LC_READY);
	session->pause_us = 0;
	lc_report(lc, again ? LC_NOTICE : LC_INFO, "session 0x%" PRIx64 " %s at %s",
	          (uint64_t)session->id, again ? "resumed" : "begun",
	          lc->ensemble->port->server(lc->ensemble));
}

/* From a callback of the port, which cannot be closed in there. */
static void retreat(struct lc *lc, enum session_retreat how)
{
	lc->session->retreat = how;
	timer_set(&lc->timers, &lc->session->retry, lc_now(lc));
}

/* What the connection leads to. Before that is known, nothing is made in a session. */
static void home_found(struct lc *lc, enum home_answer answer, int err)
{
	struct session *session = lc->session;

	switch (answer) {
	case HOME_HERE: /* no evidence: the heartbeat follows */
		session->beating = false;
		send_beat(lc);
		return;
	case HOME_NOT_HERE:
		retreat(lc, RETREAT_LEAVE);
		return;
	case HOME_LATER:
		beat_later(lc);
		return;
	case HOME_UNUSABLE:
		session->beating = false;
		become_unusable(lc, err);
		return;
	case HOME_UNKNOWN:
		session->beating = false;
		return;
	}
}

static void compare_clocks(struct lc *lc, const struct ensemble_stat *stat)
{
	lc->session->clock_ms = stat->mtime_ms;
	lc->session->clock_from_us = lc->session->beat_sent_us;
	lc->session->clock_to_us = lc_now(lc);
}

int64_t session_ensemble_ms(struct lc *lc, int64_t wall_ms)
{
	const struct session *session = lc->session;
	int64_t least = session->clock_ms + (lc_now(lc) - session->clock_to_us) / 1000;
	int64_t most = least + (session->clock_to_us - session->clock_from_us) / 1000 + 1;

	if (session->clock_ms == 0)
		return wall_ms;
	return wall_ms < least ? least : wall_ms > most ? most : wall_ms;
}

static void say_refused(struct lc *lc, const struct ensemble_answer *answer)
{
	if (lc_may_say_again(lc, &lc->session->refused_said_us))
		lc_report(lc, LC_WARNING, "the ensemble refuses heartbeats below %s: %s",
		          lc->home->dir, lc_why_refused(answer));
}

/* How long is the data that is there? */
static void length_read(void *ctx, const struct ensemble_answer *answer)
{
	struct lc *lc = ctx;
	struct session *session = lc->session;

	switch (answer->result) {
	case ENSEMBLE_OK:
		session->node_len = answer->data_len < SESSION_DATA_MAX ? answer->data_len
		                                                        : SESSION_DATA_MAX - 1;
		session->beating = false;
		send_beat(lc);
		return;
	case ENSEMBLE_NONODE:
		session->node_made = session->beating = false;
		session->node_len = 0;
		home_missed(lc);
		send_beat(lc);
		return;
	case ENSEMBLE_UNKNOWN:
	case ENSEMBLE_GONE:
		session->beating = false;
		return;
	case ENSEMBLE_EXISTS:
	case ENSEMBLE_NOTEMPTY:
	case ENSEMBLE_BADVERSION:
	case ENSEMBLE_NOCHILDREN:
	case ENSEMBLE_NOAUTH:
	case ENSEMBLE_INVALID:
	case ENSEMBLE_REFUSED:
		beat_later(lc);
		return;
	}
}

/* Others may have filled a quota of bytes. It takes data that is as long as what is there: nothing
 * in a new node. */
static void beat_refused(struct lc *lc, const struct ensemble_answer *answer)
{
	struct session *session = lc->session;
	bool again = !session->node_fitted;

	say_refused(lc, answer);
	session->node_fitted = again;
	if (!again) {
		beat_later(lc);
	} else if (session->node_made) {
		lc_submit(lc, ensemble_get(session->node), length_read, lc);
	} else {
		session->node_len = 0;
		session->beating = false;
		send_beat(lc);
	}
}

/* False: the session is too short for a lease, and is not used. Another ensemble is left all the
 * same: so where a mark is known, that waits for the heartbeat that proves where this one leads. */
static bool check_length(struct lc *lc)
{
	const struct lease *lease = &lc->session->lease;

	if (lease_possible(lease->timeout_us, lease->tick_us, lease->lead_us) ||
	    (lc->home->known.czxid && !lc->home->certain))
		return true;
	lc_report(lc, LC_ERROR,
	          "the ensemble grants a session of %" PRId64 " ms; with a tick of "
	          "%" PRId64 " ms the lease needs %" PRId64 " ms at least",
	          lease->timeout_us / 1000, lease->tick_us / 1000,
	          lease_smallest_timeout(lease->tick_us, lease->lead_us) / 1000);
	become_unusable(lc, -ERANGE);
	return false;
}

static void beat_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct lc *lc = ctx;
	struct session *session = lc->session;
	bool resumed, poked;

	switch (answer->result) {
	case ENSEMBLE_OK:
		/* Another mount may have written to the node: a poke (poke.c). If the node had to
		 * be made again, a poke may have gone with the former one. */
		poked = answer->stat->version != session->node_version + 1;
		session->node_version = answer->stat->version;
		session->beating = false;
		session->node_made = true;
		session->node_fitted = false;
		home_proved(lc);
		if (!check_length(lc))
			return;
		compare_clocks(lc, answer->stat);
		session_wrote(lc, session->beat_sent_us);
		resumed = !session_is_ready(lc);
		if (resumed)
			become_ready(lc);
		session->events->beaten(lc, resumed, poked);
		plan_beat(lc);
		return;
	case ENSEMBLE_EXISTS: /* made by a create whose answer was lost */
		session->beating = false;
		session->node_made = true;
		send_beat(lc);
		return;
	case ENSEMBLE_NONODE: /* no evidence: make it again */
		session->node_made = false;
		session->beating = false;
		home_missed(lc);
		send_beat(lc);
		return;
	case ENSEMBLE_NOAUTH:
		session->beating = false;
		become_unusable(lc, -EACCES);
		return;
	case ENSEMBLE_NOTEMPTY:
	case ENSEMBLE_BADVERSION:
	case ENSEMBLE_NOCHILDREN:
	case ENSEMBLE_INVALID:
		say_refused(lc, answer);
		beat_later(lc);
		return;
	case ENSEMBLE_REFUSED:
		beat_refused(lc, answer);
		return;
	case ENSEMBLE_UNKNOWN:
	case ENSEMBLE_GONE:
		session->beating = false;
		session->node_unsure = true;
		return;
	}
}

static size_t node_data(const struct lc *lc, int32_t version, char ret_data[SESSION_DATA_MAX])
{
	int len = snprintf(ret_data, SESSION_DATA_MAX, "%s %011" PRId32, lc->host, version);
	int wanted = lc->session->node_len;

	if (wanted < 0)
		return (size_t)len;
	if (wanted > len)
		memset(ret_data + len, ' ', (size_t)(wanted - len));
	return (size_t)wanted;
}

/* Before the first heartbeat of a connection, if the last one was not answered: if this mount has
 * written the data in the node, as its version, then no other client has written. */
static void node_read(void *ctx, const struct ensemble_answer *answer)
{
	struct lc *lc = ctx;
	char data[SESSION_DATA_MAX];
	size_t len;

	if (answer->result != ENSEMBLE_OK || lc->session->node_len >= 0)
		return;
	len = node_data(lc, answer->stat->version, data);
	if (len == (size_t)answer->data_len && memcmp(answer->data, data, len) == 0)
		lc->session->node_version = answer->stat->version;
}

size_t session_node_data(const struct lc *lc, char ret_data[SESSION_DATA_MAX])
{
	return node_data(lc, lc->session->node_version + 1, ret_data);
}

static void send_beat(struct lc *lc)
{
	struct session *session = lc->session;
	char data[SESSION_DATA_MAX];
	size_t len = session_node_data(lc, data);

	if (session->link != LINK_CONNECTED || session->beating || session->state == LC_UNUSABLE)
		return;
	session->beating = true;
	session->beat_sent_us = lc_now(lc);
	timer_set(&lc->timers, &session->beat,
	          session->beat_sent_us + patience(lc, lease_patience(&session->lease)));
	if (session->node_made)
		lc_submit(lc, ensemble_set(session->node, data, len, ENSEMBLE_ANY_VERSION),
		          beat_answered, lc);
	else if (!lc->home->looked)
		home_find(lc);
	else
		lc_submit(lc, ensemble_create_ephemeral(session->node, data, len), beat_answered,
		          lc);
}

void session_check(struct lc *lc)
{
	send_beat(lc);
}

void session_prove(struct lc *lc)
{
	if (lc->session->lease.connect_us >= 0)
		send_beat(lc);
}

/* ---- what the port tells ---- */

static void name_node(struct session *session)
{
	snprintf(strrchr(session->node, '/'), 18, "/%016" PRIx64, session->half);
}

static void new_session(struct lc *lc, int64_t id)
{
	struct session *session = lc->session;

	session->id = id;
	session->half = lc_random(lc);
	session->sessions++;
	session->node_made = session->node_fitted = false;
	session->node_len = -1;
	session->node_version = -1;
	name_node(session);
	session->events->begun(lc);
}

/* Once for each length: who asked for more may rely on it. */
static void take_granted(struct lc *lc)
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

static void report_ticks(struct lc *lc)
{
	lc_report(lc, LC_NOTICE,
	          "the tickTime of the servers has grown: held locks are in doubt until the "
	          "ensemble answers again");
}

void session_raise_tick(struct lc *lc, int64_t tick_us)
{
	struct session *session = lc->session;
	bool doubted;

	if (tick_us <= session->lease.tick_us || session->state == LC_UNUSABLE)
		return;
	doubted = lease_raise_tick(&session->lease, tick_us, lc_now(lc));
	if (session->lease.timeout_us > 0 && !check_length(lc))
		return;
	if (doubted && prove_anew(lc))
		report_ticks(lc);
}

static void session_connected(void *ctx, int64_t id, int64_t timeout_us, int64_t connect_us)
{
	struct lc *lc = ctx;
	struct session *session = lc->session;

	timer_clear(&lc->timers, &session->retry);
	session->retreat = RETREAT_NONE; /* where this one leads is found out anew */
	session->link = LINK_CONNECTED;
	session->connections++;
	home_connected(lc);
	session->marks_unread = session->id == id;
	if (session->id != id)
		new_session(lc, id);
	lease_connected(&session->lease, timeout_us, connect_us);
	take_granted(lc);
	if (session->limit.armed) /* this server may grant less */
		timer_set(&lc->timers, &session->limit, lease_end(&session->lease));
	tell_deadline(lc);
	if (!check_length(lc))
		return;
	/* It was begun no later than the doubt, by the clock: only another one ends that. */
	if (session->lease.connect_us < 0 && lease_doubted(&session->lease, lc_now(lc))) {
		lc->ensemble->port->drop(lc->ensemble);
		return;
	}
	if (session->node_made && session->node_unsure)
		lc_submit(lc, ensemble_get(session->node), node_read, lc);
	session->node_unsure = false;
	send_beat(lc);
}

static void session_disconnected(void *ctx)
{
	struct lc *lc = ctx;
	struct session *session = lc->session;
	const struct ensemble_port *port = lc->ensemble->port;
	const char *fault = port->given_up ? port->given_up(lc->ensemble) : NULL;

	if (fault && lc_may_say_again(lc, &session->fault_said_us))
		lc_report(lc, LC_WARNING, "the server %s, trying the next", fault);
	session->link = LINK_OPEN;
	session->beating = false;
	timer_clear(&lc->timers, &session->beat);
	if (session->state == LC_READY) {
		set_session_state(session, LC_SUSPENDED);
		session->away_us = lc_now(lc);
		lc_report(lc, LC_WARNING, "connection lost, lease left: %" PRId64 " ms",
		          lease_left(&session->lease, lc_now(lc)) / 1000);
	}
	session->events->disconnected(lc);
	timer_set(&lc->timers, &session->retry,
	          lc_now(lc) + patience(lc, lc->config.session_timeout_us / 5));
}

static int64_t length_of_session(const struct lc *lc)
{
	return lc->session->granted_us ? lc->session->granted_us : lc->config.session_timeout_us;
}

/* For so long that the session must be over, if the ensemble was there all the time. */
static bool is_away_for_long(struct lc *lc)
{
	return !session_is_ready(lc) && lc_now(lc) - lc->session->away_us >= length_of_session(lc);
}

/* A server does so without a quorum, and for ever when the client has seen what the server has not:
 * its data is gone, or older. The next client has seen nothing: it is told that the session
 * is over, or goes on in it as another process would. */
static void session_turned_away(void *ctx, const char *server)
{
	struct lc *lc = ctx;

	if (!is_away_for_long(lc) || lc_now(lc) - lc->session->opened_us < RETRY_US / 2)
		return;
	if (lc->session->pause_us == 0)
		home_met(lc, LC_WARNING,
		         "%s closes each connection: it has no quorum, or less data than this "
		         "mount has seen",
		         server);
	retreat(lc, RETREAT_REST);
}

static void open_session(struct lc *lc);

static void forget_session(struct lc *lc)
{
	struct session *session = lc->session;

	if (session->state == LC_READY)
		session->away_us = lc_now(lc);
	session->link = LINK_CLOSED;
	session->retreat = RETREAT_NONE;
	session->beating = false;
	session->id = 0;
	timer_clear(&lc->timers, &session->beat);
	timer_clear(&lc->timers, &session->limit);
	lease_again(&session->lease);
	tell_deadline(lc);
	if (session->state != LC_UNUSABLE)
		set_session_state(session, LC_CONNECTING);
	session->events->ended(lc);
}

static void session_ended_by_port(void *ctx, bool refused)
{
	struct lc *lc = ctx;

	forget_session(lc);
	if (refused) {
		become_unusable(lc, -EKEYREJECTED);
	} else if (!lc->dying) {
		lc_report(lc, LC_WARNING, "session ended, beginning a new one");
		open_session(lc);
	}
}

static void node_changed_at_port(void *ctx, const char *path, enum ensemble_change change)
{
	struct lc *lc = ctx;

	lc->session->events->changed(lc, path, change);
}

static void open_session(struct lc *lc)
{
	static const struct ensemble_events events = {
		.connected = session_connected,
		.disconnected = session_disconnected,
		.turned_away = session_turned_away,
		.ended = session_ended_by_port,
		.changed = node_changed_at_port,
	};
	struct ensemble_session left = {.id = lc->session->id};
	int r;

	memcpy(left.password, lc->session->password, sizeof(left.password));
	r = lc->ensemble->port->open(lc->ensemble, lc->config.session_timeout_us,
	                             left.id ? &left : NULL, &events, lc);
	lc->session->link = r == 0 ? LINK_OPEN : LINK_CLOSED;
	lc->session->opened_us = lc_now(lc);
	if (r < 0)
		lc_report(lc, LC_ERROR, "cannot begin a session: %s", strerror(-r));
	timer_set(&lc->timers, &lc->session->retry,
	          lc_now(lc) + (r < 0 ? RETRY_US : lc->config.session_timeout_us / 5));
}

static int64_t next_pause(struct session *session, int64_t most_us)
{
	int64_t pause_us = session->pause_us ? 2 * session->pause_us : RETRY_US;

	session->pause_us = pause_us < most_us ? pause_us : most_us;
	return session->pause_us;
}

static void rest(struct lc *lc)
{
	struct session *session = lc->session;
	struct ensemble_session now = lc->ensemble->port->session(lc->ensemble);
	int64_t most_us = length_of_session(lc) / 3;

	if (now.id == session->id)
		memcpy(session->password, now.password, sizeof(session->password));
	lc->ensemble->port->rest(lc->ensemble);
	session->link = LINK_CLOSED;
	session->retreat = RETREAT_NONE;
	timer_set(&lc->timers, &session->retry, lc_now(lc) + next_pause(session, most_us));
}

/* Without a farewell: that may block, and the session ends by itself. */
static void leave_ensemble(struct lc *lc)
{
	lc->ensemble->port->close(lc->ensemble, false);
	forget_session(lc);
	timer_set(&lc->timers, &lc->session->retry,
	          lc_now(lc) + next_pause(lc->session, PAUSE_MAX_US));
}

/* Not connected for a while: a server that takes the connection and says
 * nothing would be waited for far too long. */
static void retry_session(void *ctx)
{
	struct lc *lc = ctx;
	struct session *session = lc->session;

	if (session->state == LC_UNUSABLE) {
		if (session->link != LINK_CLOSED) {
			lc->ensemble->port->close(lc->ensemble, false);
			forget_session(lc);
		}
		return;
	}
	if (session->retreat == RETREAT_LEAVE) {
		leave_ensemble(lc);
		return;
	}
	if (session->link == LINK_CONNECTED)
		return;
	if (session->link == LINK_CLOSED) {
		open_session(lc);
		return;
	}
	if (session->retreat == RETREAT_REST) {
		rest(lc);
		return;
	}
	lc->ensemble->port->drop(lc->ensemble);
	timer_set(&lc->timers, &session->retry,
	          lc_now(lc) + patience(lc, lc->config.session_timeout_us / 5));
}

static int prepare_session(struct lc *lc, const struct session_events *events)
{
	struct session *session = lc->session;

	session->events = events;
	if (home_begin(lc, home_found) < 0)
		return -ENOMEM;
	session->node = malloc(strlen(lc->home->dir) + 18);
	if (!session->node)
		return -ENOMEM;
	strcpy(stpcpy(session->node, lc->home->dir), "/");
	session->away_us = lc_now(lc);
	lease_begin(&session->lease, lc->config.tick_time_us, lc->config.loss_lead_us);
	session->beat = (struct timer){.fire = beat_timer, .ctx = lc};
	session->limit = (struct timer){.fire = lease_limit, .ctx = lc};
	session->retry = (struct timer){.fire = retry_session, .ctx = lc};
	return 0;
}

int session_begin(struct lc *lc, const struct session_events *events)
{
	int r = prepare_session(lc, events);

	if (r == 0)
		open_session(lc);
	return r;
}

/* ---- from one process to the next ---- */

void session_save(struct lc *lc, struct state_session *saved)
{
	const struct session *session = lc->session;
	struct ensemble_session now = lc->ensemble->port->session(lc->ensemble);
	bool was_ready = session->state == LC_READY || session->state == LC_SUSPENDED;

	saved->id = session->id;
	saved->half = session->half;
	memcpy(saved->password, session->password, sizeof(saved->password));
	if (now.id == session->id)
		memcpy(saved->password, now.password, sizeof(saved->password));
	saved->granted_us = session->granted_us;
	saved->away_us = session->state == LC_READY ? 0 : session->away_us;
	saved->connections = session->connections;
	saved->sessions = session->sessions;
	saved->node_version = session->node_version;
	saved->flags |= (session->node_made ? STATE_SESSION_NODE : 0) |
	                (was_ready ? STATE_SESSION_READY : 0);
	home_save(lc, saved);
	lease_save(&session->lease, &saved->lease);
	saved->tick_us = session->lease.tick_us;
}

int session_restore(struct lc *lc, const struct session_events *events,
                    const struct state_session *saved)
{
	struct session *session = lc->session;
	int r = prepare_session(lc, events);

	if (r < 0)
		return r;
	if (saved->flags & STATE_SESSION_READY)
		session->state = LC_SUSPENDED;
	session->id = saved->id;
	session->half = saved->half;
	memcpy(session->password, saved->password, sizeof(session->password));
	name_node(session);
	lease_restore(&session->lease, &saved->lease);
	if (saved->tick_us > 0)
		session->lease.tick_us = saved->tick_us;
	session->granted_us = saved->granted_us;
	session->away_us = saved->away_us ? saved->away_us : lc_now(lc);
	session->connections = saved->connections;
	session->sessions = saved->sessions;
	session->node_version = saved->node_version;
	session->node_made = saved->flags & STATE_SESSION_NODE;
	session->node_len = -1;
	session->node_unsure = true; /* something may have been under way */
	home_restore(lc, saved);
	return 0;
}

void session_reopen(struct lc *lc)
{
	struct session *session = lc->session;
	struct lease *lease = &session->lease;

	/* The steps were made by what the last process knew of the ticks. */
	if (lc->config.tick_time_us > lease->tick_us &&
	    lease_raise_tick(lease, lc->config.tick_time_us, lc_now(lc)) &&
	    lease_left(lease, lc_now(lc)) > 0)
		report_ticks(lc);
	if (lease->deadline_us != INT64_MIN)
		timer_set(&lc->timers, &session->limit, lease_end(lease));
	tell_deadline(lc);
	open_session(lc);
}

void session_finish(struct lc *lc, bool farewell)
{
	struct session *session = lc->session;

	set_session_state(session, LC_UNUSABLE);
	if (session->link != LINK_CLOSED)
		lc->ensemble->port->close(lc->ensemble, farewell);
	session->link = LINK_CLOSED;
	timer_clear(&lc->timers, &session->beat);
	timer_clear(&lc->timers, &session->limit);
	timer_clear(&lc->timers, &session->retry);
	session->events->ended(lc);
}

void session_free(struct lc *lc)
{
	home_free(lc);
	free(lc->session->node);
}
