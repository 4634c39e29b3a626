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
 */
#include "session/session.h"

#include "session/heartbeat.h"
#include "session/inquiry.h"
#include "session/mailbox.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest pause between two tries when no server is of use. Each pause is twice as long as
 * the one before. While the session may live, rest() makes shorter ones. */
#define PAUSE_MAX_US 30000000
/* The pause while the session and its lease may live. */
#define SOON_US 100000

/* ---- what the port tells ---- */

static void name_nodes(struct session *session)
{
	snprintf(strrchr(session->node.path, '/'), 18, "/%016" PRIx64, session->half);
	strcpy(stpcpy(session->mailbox.path, session->node.path), MAILBOX_SUFFIX);
}

static void new_session(struct lc *lc, int64_t id)
{
	struct session *session = lc->session;

	session->id = id;
	session->half = lc_random(lc);
	session->sessions++;
	session->node.made = false;
	name_nodes(session);
}

/* A lease that ended before this answer was seen stays lost: the guardian may have acted. */
static void take_answer_of_renewal(struct lc *lc)
{
	assert(lc->session->lease.renews_us != INT64_MAX);
	if (lc->session->limit.armed && !session_lease_is_valid(lc))
		lc->session->events->over(lc);
}

static void session_connected(void *ctx, const struct ensemble_session *accepted,
                              int64_t timeout_us, int64_t connect_us)
{
	struct lc *lc = ctx;
	struct session *session = lc->session;
	int64_t id = accepted->id;

	timer_clear(&lc->timers, &session->retry);
	session->retreat = RETREAT_NONE; /* whether this connection leads home is found out anew */
	session->link = LINK_CONNECTED;
	memcpy(session->password, accepted->password, sizeof(session->password));
	session->connections++;
	home_connected(lc);
	mailbox_connected(lc);
	if (session->id != id)
		new_session(lc, id);
	else
		take_answer_of_renewal(lc);
	if (timeout_us > lc->config.session_timeout_us)
		timeout_us = lc->config.session_timeout_us;
	if (timeout_us > session->limit_us)
		timeout_us = session->limit_us;
	lease_connected(&session->lease, timeout_us, connect_us);
	session_granted(lc);
	/* This server may grant less; or a pending renewal had ended the lease. */
	if (session->limit.armed || session_lease_is_valid(lc))
		timer_set(&lc->timers, &session->limit, lease_end(&session->lease));
	session_tell_deadline(lc);
	if (!session_long_enough(lc))
		return;
	/* The connection was not begun after the doubt, so it does not end the doubt. Another
	 * one does. */
	if (session->lease.connect_us < 0 && lease_doubted(&session->lease, lc_now(lc))) {
		lc->ensemble->port->drop(lc->ensemble);
		return;
	}
	heartbeat_send(lc);
}

/* What is awaited of this server comes in time, or the next one is tried. */
static void await_server(struct lc *lc)
{
	timer_set(&lc->timers, &lc->session->retry,
	          lc_now(lc) + session_answer_timeout(lc, lc->config.session_timeout_us / 5));
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
	session->beat.under_way = false;
	timer_clear(&lc->timers, &session->beat.timer);
	if (session->state == LC_READY) {
		session_step(session, LC_SUSPENDED);
		session->away_us = lc_now(lc);
		session->resting = false;
		lc_report(lc, LC_WARNING, "connection lost, lease left: %" PRId64 " ms",
		          lease_left(&session->lease, lc_now(lc)) / 1000);
	}
	session->events->disconnected(lc);
	/* The client may have seen another ensemble. Then its watches and zxids are of no use. */
	if (lc->home->strange && home_may_be_elsewhere(lc))
		heartbeat_retreat(lc, RETREAT_REST);
	else
		await_server(lc);
}

static bool session_needs_scout(void *ctx)
{
	struct lc *lc = ctx;

	/* A session that nobody needs is replaced if its renewal is given up. */
	return lc->session->busy && !lc->session->resting && lease_needs_scout(&lc->session->lease);
}

/* How long the answer of a renewal is awaited. A server that was just at work, as the scout has
 * shown, gets half of the lease that is left, and F/5 at least, whatever the scout took: a renewal
 * that is given up costs more than the time does. The other half is for the next server. */
static int64_t answer_timeout_of_renewal(struct lc *lc)
{
	const struct lease *lease = &lc->session->lease;
	int64_t half_us = (lease_left(lease, lc_now(lc)) - lease->lead_us) / 2;

	if (!session_needs_scout(lc) || half_us <= 0)
		return session_answer_timeout(lc, lc->config.session_timeout_us / 5);
	return half_us > LEASE_FLOOR_US / 5 ? half_us : LEASE_FLOOR_US / 5;
}

static void session_renews(void *ctx)
{
	struct lc *lc = ctx;
	struct session *session = lc->session;

	lease_renews(&session->lease, lc_now(lc));
	timer_set(&lc->timers, &session->retry, lc_now(lc) + answer_timeout_of_renewal(lc));
	if (session->limit.armed)
		timer_set(&lc->timers, &session->limit, lease_end(&session->lease));
	session_tell_deadline(lc);
}

static int64_t length_of_session(const struct lc *lc)
{
	return lc->session->granted_us ? lc->session->granted_us : lc->config.session_timeout_us;
}

/* Contact has been missing for so long that the session is over, unless the ensemble was away,
 * too. */
static bool is_away_for_long(struct lc *lc)
{
	return !lc_ready(lc) && lc_now(lc) - lc->session->away_us >= length_of_session(lc);
}

/* A server closes each connection while it has no quorum. It does so for ever if the client has
 * seen newer data than the server has. A new client has seen nothing: the server tells it that
 * the session is over, or lets it go on in the session, as it lets another process. */
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
	heartbeat_retreat(lc, RETREAT_REST);
}

static void open_session(struct lc *lc);

static void forget_session(struct lc *lc)
{
	struct session *session = lc->session;

	if (session->state == LC_READY)
		session->away_us = lc_now(lc);
	session->link = LINK_CLOSED;
	session->resting = false;
	session->retreat = RETREAT_NONE;
	session->inquiry = INQUIRY_NONE;
	session->beat.under_way = false;
	session->id = 0;
	timer_clear(&lc->timers, &session->beat.timer);
	timer_clear(&lc->timers, &session->limit);
	lease_again(&session->lease);
	session_tell_deadline(lc);
	if (session->state != LC_UNUSABLE)
		session_step(session, LC_CONNECTING);
	session->events->ended(lc);
}

static void rest(struct lc *lc);

static void session_is_over(struct lc *lc)
{
	forget_session(lc);
	lc_report(lc, LC_WARNING, "session ended, beginning a new one");
	open_session(lc);
}

/* The port has begun a session or an inquiry, or could not: then the timer tries again. */
static void port_opened(struct lc *lc, int r)
{
	lc->session->link = r == 0 ? LINK_OPEN : LINK_CLOSED;
	if (r == 0) {
		await_server(lc);
		return;
	}
	lc_report(lc, LC_ERROR, "cannot begin a session: %s", strerror(-r));
	timer_set(&lc->timers, &lc->session->retry, lc_now(lc) + RETRY_US);
}

static void session_ended_by_port(void *ctx, bool refused)
{
	struct lc *lc = ctx;

	if (refused && lc_knows_mark(lc)) { /* the session may live on at home */
		home_met(lc, LC_ERROR,
		         "a server refuses the credentials, or wants some, as none did before: it "
		         "may be of another ensemble");
		rest(lc);
		return;
	}
	if (!refused && inquiry_is_due(lc)) {
		if (lc_may_say_again(lc, &lc->session->fault_said_us))
			lc_report(lc, LC_WARNING,
			          "a server says that the session is over, %" PRId64
			          " ms before it can be: that is looked at",
			          lease_left(&lc->session->lease, lc_now(lc)) / 1000);
		port_opened(lc, inquiry_begin(lc));
		return;
	}
	if (!refused && !lc->dying) {
		session_is_over(lc);
		return;
	}
	forget_session(lc);
	if (refused)
		session_cannot_be_used(lc, -EKEYREJECTED);
}

/* The client sets its watches again on each connection, wherever that leads. An event counts
 * only while the session is ready: the heartbeat that makes it ready is followed by listings. */
static void node_changed_at_port(void *ctx, const char *path, enum ensemble_change change)
{
	struct lc *lc = ctx;

	if (!lc_ready(lc)) {
		home_missed(lc);
		return;
	}
	if (mailbox_changed(lc, path, change))
		heartbeat_send(lc);
	lc->session->events->changed(lc, path, change);
}

static void open_session(struct lc *lc)
{
	static const struct ensemble_events events = {
		.connected = session_connected,
		.disconnected = session_disconnected,
		.needs_scout = session_needs_scout,
		.renews = session_renews,
		.turned_away = session_turned_away,
		.ended = session_ended_by_port,
		.changed = node_changed_at_port,
	};
	struct ensemble_session left = {.id = lc->session->id};

	memcpy(left.password, lc->session->password, sizeof(left.password));
	lc->session->opened_us = lc_now(lc);
	port_opened(lc, lc->ensemble->port->open(lc->ensemble, lc->config.session_timeout_us,
	                                         left.id ? &left : NULL, &events, lc));
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
	int64_t most_us = length_of_session(lc) / 3;
	int64_t pause_us = is_away_for_long(lc) ? next_pause(session, most_us) : SOON_US;

	lc->ensemble->port->rest(lc->ensemble);
	session->link = LINK_CLOSED;
	session->retreat = RETREAT_NONE;
	timer_set(&lc->timers, &session->retry, lc_now(lc) + pause_us);
}

/* The server is not told, since that could block. The session ends by itself. */
static void leave_ensemble(struct lc *lc)
{
	lc->ensemble->port->close(lc->ensemble, /* end_session = */ false);
	forget_session(lc);
	timer_set(&lc->timers, &lc->session->retry,
	          lc_now(lc) + next_pause(lc->session, PAUSE_MAX_US));
}

/* The inquiry has an answer, has had none for a while, or the lease has ended. When the lease
 * has ended, the server that said "session over" is believed: others may hold. */
static void continue_inquiry(struct lc *lc)
{
	struct session *session = lc->session;
	const struct ensemble_port *port = lc->ensemble->port;

	if (session->link == LINK_CLOSED && session_lease_is_valid(lc)) {
		port_opened(lc, inquiry_begin(lc));
		return;
	}
	if (session->inquiry == INQUIRY_ASKS && session_lease_is_valid(lc)) {
		port->drop(lc->ensemble);
		await_server(lc);
		return;
	}
	port->close(lc->ensemble, /* end_session = */ false);
	session->link = LINK_CLOSED;
	if (session->inquiry == INQUIRY_OVER || !session_lease_is_valid(lc)) {
		session_is_over(lc);
		return;
	}
	if (session->inquiry == INQUIRY_LIVES)
		session->inquiry = INQUIRY_NONE;
	timer_set(&lc->timers, &session->retry, lc_now(lc) + SOON_US);
}

/* The timer `retry`. It leaves a server that takes the connection and says nothing, which the
 * client alone would wait for far too long. */
static void retry_session(void *ctx)
{
	struct lc *lc = ctx;
	struct session *session = lc->session;

	if (session->state == LC_UNUSABLE) {
		if (session->link != LINK_CLOSED) {
			lc->ensemble->port->close(lc->ensemble, /* end_session = */ false);
			forget_session(lc);
		}
		return;
	}
	if (session->inquiry != INQUIRY_NONE) {
		continue_inquiry(lc);
		return;
	}
	if (session->retreat == RETREAT_LEAVE) {
		leave_ensemble(lc);
		return;
	}
	if (session->retreat == RETREAT_ANEW) {
		lc->ensemble->port->close(lc->ensemble, /* end_session = */ false);
		forget_session(lc);
		open_session(lc);
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
	await_server(lc);
}

static int prepare_session(struct lc *lc, const struct session_events *events)
{
	struct session *session = lc->session;

	session->events = events;
	if (home_begin(lc, heartbeat_home) < 0)
		return -ENOMEM;
	session->node.path = malloc(strlen(lc->home->dir) + 18);
	session->mailbox.path = malloc(strlen(lc->home->dir) + 18 + strlen(MAILBOX_SUFFIX));
	if (!session->node.path || !session->mailbox.path)
		return -ENOMEM;
	strcpy(stpcpy(session->node.path, lc->home->dir), "/");
	session->away_us = session->used_us = lc_now(lc);
	session->limit_us = INT64_MAX;
	session->mailbox.opened = heartbeat_go_on;
	lease_begin(&session->lease, lc->config.tick_time_us, lc->config.loss_lead_us);
	session->beat.timer = (struct timer){.fire = heartbeat_timer, .ctx = lc};
	session->limit = (struct timer){.fire = session_limit, .ctx = lc};
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

void session_save_load(struct codec *codec, struct lc *lc)
{
	struct session *session = lc->session;
	bool was_ready = session->state == LC_READY || session->state == LC_SUSPENDED;
	int64_t away_us = session->state == LC_READY ? 0 : session->away_us;
	int64_t now_us = codec->loads ? lc_now(lc) : INT64_MAX;
	size_t len = sizeof(session->password);
	int32_t node_version = 0; /* the former version remembers that of the heartbeats' node */
	const void *password;

	CODEC_64(codec, session->id);
	CODEC_64(codec, session->half);
	password = codec_bytes(codec, session->password, &len);
	CODEC_RANGE(codec, session->granted_us, 0, TIMEOUT_MAX_US);
	CODEC_RANGE(codec, away_us, 0, now_us);
	CODEC_64(codec, session->connections);
	CODEC_64(codec, session->sessions);
	CODEC_INT(codec, node_version);
	CODEC_BOOL(codec, session->node.made);
	CODEC_BOOL(codec, was_ready);
	home_save_load(codec, lc);
	lease_save_load(codec, &session->lease, now_us);
	mailbox_save_load(codec);
	if (!codec->loads)
		return;
	if (session->node.made && !lc_knows_mark(lc))
		codec_refuse(codec, "the state has a session, and not whose it is");
	if (len != sizeof(session->password))
		codec_refuse(codec, "the state has no password");
	else
		memcpy(session->password, password, len);
	session->state = was_ready ? LC_SUSPENDED : LC_CONNECTING;
	session->away_us = away_us ? away_us : now_us;
}

/* This process may have other options than the one that recorded the lease. */
static void check_lease(struct codec *codec, struct lc *lc)
{
	const struct lease *lease = &lc->session->lease;
	int64_t tick_us =
		lc->config.tick_time_us > lease->tick_us ? lc->config.tick_time_us : lease->tick_us;
	static char why[128];

	if (!codec->crashed && lc->session->id != 0 &&
	    lc->config.session_timeout_us < lease->timeout_us) {
		snprintf(why, sizeof(why),
		         "a session_timeout of %" PRId64
		         " ms needs a restart: the locks rest on a session of %" PRId64 " ms",
		         lc->config.session_timeout_us / 1000, lease->timeout_us / 1000);
		codec_refuse(codec, why);
		return;
	}
	if (!codec->checks || !session_lease_is_valid(lc) ||
	    lease_possible(lease->timeout_us, tick_us, lease->lead_us))
		return;
	snprintf(why, sizeof(why),
	         "the session of %" PRId64 " ms is too short: these options need %" PRId64 " ms",
	         lease->timeout_us / 1000, lease_smallest_timeout(tick_us, lease->lead_us) / 1000);
	codec_refuse(codec, why);
}

int session_restore(struct lc *lc, const struct session_events *events, struct codec *codec)
{
	struct session *session = lc->session;
	int r = prepare_session(lc, events);

	if (r < 0)
		return r;
	session_save_load(codec, lc);
	codec_read_all(codec);
	check_lease(codec, lc);
	name_nodes(session);
	return 0;
}

void session_reopen(struct lc *lc)
{
	struct session *session = lc->session;
	struct lease *lease = &session->lease;

	/* The last process counted the steps by a shorter tick. */
	if (lc->config.tick_time_us > lease->tick_us &&
	    lease_raise_tick(lease, lc->config.tick_time_us, lc_now(lc)) &&
	    lease_left(lease, lc_now(lc)) > 0)
		session_report_ticks(lc);
	if (lease->deadline_us != INT64_MIN)
		timer_set(&lc->timers, &session->limit, lease_end(lease));
	session_tell_deadline(lc);
	open_session(lc);
}

void session_finish(struct lc *lc, bool end_session)
{
	struct session *session = lc->session;

	session_step(session, LC_UNUSABLE);
	/* Without a session, too: what was asked since is not answered yet. Whoever only checks
	 * records has no ensemble. */
	if (lc->ensemble)
		lc->ensemble->port->close(lc->ensemble, end_session);
	session->link = LINK_CLOSED;
	timer_clear(&lc->timers, &session->beat.timer);
	timer_clear(&lc->timers, &session->limit);
	timer_clear(&lc->timers, &session->retry);
	session->events->ended(lc);
}

void session_free(struct lc *lc)
{
	home_free(lc);
	free(lc->session->node.path);
	free(lc->session->mailbox.path);
}
