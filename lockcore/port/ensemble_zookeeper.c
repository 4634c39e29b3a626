/* SPDX-License-Identifier: MIT
 *
 * ensemble_zookeeper.c - the port over libzookeeper_st: the session, and a turn of the loop. Only
 * the files of zookeeper_port.h know the client. Its pitfalls, and how they are avoided here:
 *
 *  - a send error closes the socket without any event, and requests stay in its
 *    queue until a later reply does not match: the state is looked at after every
 *    call, and our own table answers UNKNOWN at once; later answers of the client to those requests
 *    are dropped;
 *  - callbacks also run from zookeeper_interest(), that is from prepare(): they
 *    are deferred and run from process();
 *  - the socket comes back under the same number: nothing is remembered of it
 *    beyond one turn;
 *  - the socket would stay open in a program that is executed in the place of this one: each
 *    new one is marked;
 *  - with an even number of addresses it may try only half of them for ever
 *    (ZOOKEEPER-2466): an odd number is given, one of them twice;
 *  - connect and disconnect merge all watchers in quadratic time: there is one
 *    watcher and one context for all;
 *  - a server of 3.8.0 can leave one write lying for 2/3 of the session timeout
 *    until another request of the client comes by (ZOOKEEPER-4537): after NUDGE_US without an
 *    answer a small read is sent;
 *  - -1, -2, -4 and -7 all mean that the outcome is unknown;
 *  - another list of servers, given to a client that is connected, may make it drop a good
 *    connection for a better balance, and without an event: it is given when there is no socket;
 *  - credentials that are added while connected may go out in the middle of another
 *    request: they are added once, right after each init;
 *  - when it has no memory for a request it returns an error, and may call back for it all the
 *    same: the connection is given up then, and such a request is kept until the client cannot call
 *    back any more;
 *  - it logs up to 400,000 lines a second when things go wrong: its log is off, and the engine logs
 *    the important events.
 */
#include "port/ensemble_zookeeper.h"

#include "port/zookeeper_port.h"
#include "pure/digest.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Replies read in one turn; the client takes one at a time. */
#define REPLIES_PER_TURN 256

/* How long to stay out of poll(2) at most: the client's timers are longer. */
#define WAIT_MAX_US 1000000

#define NUDGE_US 100000

/* ---- what the client tells by itself ---- */

static void call_changed(struct zookeeper *zk, const char *path, enum ensemble_change change)
{
	bool may = answer_may_call(zk);

	assert(may);
	zk->events->changed(zk->ctx, path, change);
}

static_assert(sizeof(((clientid_t *)0)->passwd) == ENSEMBLE_PASSWORD, "");

static void call_connected(struct zookeeper *zk)
{
	const clientid_t *client = zoo_client_id(zk->handle);
	struct ensemble_session session = {.id = client->client_id};
	bool may = answer_may_call(zk);

	assert(may);
	memcpy(session.password, client->passwd, ENSEMBLE_PASSWORD);
	zk->connected = true;
	zk->cut = zk->dropped = false;
	zk->given_up = NULL;
	zk->renewal.refused_us = 0;
	zk->events->connected(zk->ctx, &session, (int64_t)zoo_recv_timeout(zk->handle) * 1000,
	                      zk->renewal.connect_us);
}

static void watcher(zhandle_t *handle, int type, int state, const char *path, void *ctx)
{
	struct zookeeper *zk = ctx;

	(void)handle;
	if (!zk->handle) /* it is being closed */
		return;
	if (type == ZOO_DELETED_EVENT) {
		call_changed(zk, path, ENSEMBLE_DELETED);
	} else if (type == ZOO_CHANGED_EVENT) {
		call_changed(zk, path, ENSEMBLE_DATA);
	} else if (type == ZOO_CHILD_EVENT) {
		call_changed(zk, path, ENSEMBLE_NAMES);
	} else if (type != ZOO_SESSION_EVENT) {
		return;
	} else if (state == ZOO_CONNECTED_STATE) {
		answer_lose_connection(zk); /* of which nothing was said */
		call_connected(zk);
	} else if (state == ZOO_EXPIRED_SESSION_STATE || state == ZOO_AUTH_FAILED_STATE) {
		answer_note_end(zk, state == ZOO_AUTH_FAILED_STATE ? END_REFUSED : END_OVER);
		answer_lose_connection(zk);
	} else {
		answer_lose_connection(zk);
	}
}

/* ---- the session ---- */

static int zookeeper_begin(struct ensemble *ensemble, int64_t timeout_us,
                           const struct ensemble_session *session,
                           const struct ensemble_events *events, void *ctx)
{
	struct zookeeper *zk = (struct zookeeper *)ensemble;
	clientid_t client = {0};

	assert(!zk->handle);
	assert(events->connected && events->disconnected && events->ended);
	zk->events = events;
	zk->ctx = ctx;
	zk->connected = zk->check = zk->nudging = zk->cut = false;
	zk->moved = zk->dropped = false;
	zk->end = END_NONE;
	zk->fate = ENSEMBLE_GONE;
	zk->fd = -1;
	scout_init(&zk->renewal.scout);
	zk->renewal.connect_us = zk->clock_us(zk->clock_ctx);
	zoo_set_debug_level((ZooLogLevel)0);
	if (session) {
		client.client_id = session->id;
		memcpy(client.passwd, session->password, sizeof(client.passwd));
	}
	zk->handle = zookeeper_init2(zk->servers, watcher, (int)(timeout_us / 1000),
	                             session ? &client : NULL, zk, ZOO_NO_LOG_CLIENTENV, NULL);
	if (!zk->handle)
		return errno ? -errno : -EINVAL;
	zoo_set_servers_resolution_delay(zk->handle, -1);
	if (zk->user.digest && zoo_add_auth(zk->handle, "digest", zk->user.digest,
	                                    (int)strlen(zk->user.digest), NULL, NULL) != ZOK) {
		zookeeper_close(zk->handle);
		zk->handle = NULL;
		return -ENOMEM;
	}
	zk->fate = ENSEMBLE_UNKNOWN;
	return 0;
}

/* Nothing is outstanding, but in `later`. */
static void end_client(struct zookeeper *zk, bool end_session)
{
	zhandle_t *handle = zk->handle;

	assert(!zk->requests);
	renewal_end(zk);
	/* The server must not see the end of the session then: cut the line first. */
	if (!end_session && zk->fd >= 0)
		shutdown(zk->fd, SHUT_RDWR);
	zk->handle = NULL;
	zookeeper_close(handle);
	zk->fd = -1;
	zk->connected = false;
	while (zk->rejected)
		answer_end(zk->rejected);
}

static void zookeeper_end(struct ensemble *ensemble, bool end_session)
{
	struct zookeeper *zk = (struct zookeeper *)ensemble;
	struct later *later;

	assert(!zk->in_process);
	zk->fate = ENSEMBLE_GONE;
	answer_all_later(zk, ENSEMBLE_GONE);
	DL_FOREACH(zk->later, later)
		later->result = ENSEMBLE_GONE;
	if (zk->handle)
		end_client(zk, end_session);
	zk->in_process = true;
	answer_run_later(zk);
	zk->in_process = false;
}

static void zookeeper_rest(struct ensemble *ensemble)
{
	struct zookeeper *zk = (struct zookeeper *)ensemble;

	assert(!zk->connected && !(zk->handle && zk->in_process));
	zk->fate = ENSEMBLE_UNKNOWN;
	if (zk->handle)
		end_client(zk, /* end_session = */ false);
}

static void drop(struct ensemble *ensemble)
{
	struct zookeeper *zk = (struct zookeeper *)ensemble;

	if (!zk->handle)
		return;
	zk->dropped = true;
	if (zk->fd >= 0)
		shutdown(zk->fd, SHUT_RDWR);
	/* Nothing is sent on it any more: the client, failing at that, forgets to free what it
	 * was reading into. */
	answer_cut(zk);
}

/* ---- the loop ---- */

static void nudged(int rc, const struct Stat *stat, const void *data)
{
	struct zookeeper *zk = (struct zookeeper *)data;

	(void)rc;
	(void)stat;
	zk->nudging = false;
}

/* Returns when to look again, INT64_MAX if nothing is outstanding. */
static int64_t nudge(struct zookeeper *zk)
{
	int64_t now, due;

	if (!zk->connected || zk->requests == zk->kept)
		return INT64_MAX;
	now = zk->clock_us(zk->clock_ctx);
	due = zk->requests->sent_us + NUDGE_US;
	if (due < zk->nudged_us + NUDGE_US)
		due = zk->nudged_us + NUDGE_US;
	if (now < due)
		return due - now;
	zk->nudged_us = now;
	if (!zk->nudging && zoo_awexists(zk->handle, "/", NULL, NULL, nudged, zk) == ZOK)
		zk->nudging = true;
	answer_look(zk);
	return NUDGE_US;
}

/* The client leaves the list alone when it takes it for the one that it has, and it compares
 * numbers of entries and addresses without their ports: {a, b, a} and {a, b, c} are the same, as
 * are two servers that have changed places, and a server at another port of its host. A list of
 * another number of entries in between is another one than either: one entry, or the same one
 * twice. Only without a socket: the client would close it without an event, and sometimes for a
 * better balance alone. */
static void take_servers(struct zookeeper *zk)
{
	size_t first = strcspn(zk->servers, ",");
	char *between;
	int rc;

	if (asprintf(&between, "%.*s%s%s", (int)first, zk->servers, zk->servers[first] ? "" : ",",
	             zk->servers[first] ? "" : zk->servers) < 0)
		return;
	rc = zoo_set_servers(zk->handle, between);
	free(between);
	if (rc == ZOK && zoo_set_servers(zk->handle, zk->servers) == ZOK)
		zk->moved = false;
}

static bool is_begun(int state)
{
	return state == ZOO_CONNECTING_STATE || state == ZOO_ASSOCIATING_STATE ||
	       state == ZOO_CONNECTED_STATE;
}

static int64_t prepare(struct ensemble *ensemble, struct pollfd *ret_pollfd)
{
	struct zookeeper *zk = (struct zookeeper *)ensemble;
	struct timeval tv = {.tv_sec = 1};
	int fd = -1, interest = 0, rc, state;
	int64_t wait, again;

	*ret_pollfd = (struct pollfd){.fd = -1};
	if (!zk->handle)
		return zk->later ? 0 : WAIT_MAX_US;
	again = nudge(zk);
	state = zoo_state(zk->handle);
	if (!is_begun(state)) {
		if (zk->moved)
			take_servers(zk);
		/* If the next call connects, it does so after now. */
		zk->renewal.connect_us = zk->clock_us(zk->clock_ctx);
	}
	rc = zookeeper_interest(zk->handle, &fd, &interest, &tv);
	answer_look(zk);
	zk->check = rc != ZOK;
	/* After an error it is the number of a socket that was just closed. */
	zk->fd = rc == ZOK ? fd : -1;
	if (zk->fd >= 0 && state != ZOO_CONNECTED_STATE)
		(void)fcntl(zk->fd, F_SETFD, FD_CLOEXEC);
	/* Once: the next socket may have the same number. */
	if (zk->cut && zk->fd >= 0) {
		if (zoo_state(zk->handle) == ZOO_CONNECTED_STATE)
			shutdown(zk->fd, SHUT_RDWR);
		zk->cut = false;
	}
	if (zk->fd < 0) {
		renewal_end(zk);
	} else if (!is_begun(state)) {
		zk->dropped = false;
		renewal_begin(zk);
	}
	ret_pollfd->fd = zk->fd;
	ret_pollfd->events = (short)((interest & ZOOKEEPER_READ ? POLLIN : 0) |
	                             (interest & ZOOKEEPER_WRITE ? POLLOUT : 0));
	wait = (int64_t)tv.tv_sec * 1000000 + tv.tv_usec;
	if (zk->later || zk->kept || zk->end)
		return 0;
	if (rc != ZOK)
		return 10000;
	if (zk->renewal.state == RENEWAL_HELD)
		again = renewal_poll(zk, ret_pollfd);
	if (again < wait)
		wait = again;
	return wait < WAIT_MAX_US ? wait : WAIT_MAX_US;
}

/* One reply is read at a time. False: there was none, or it failed. */
static bool process_one(struct zookeeper *zk, int events)
{
	bool associating = zoo_state(zk->handle) == ZOO_ASSOCIATING_STATE;
	int rc = zookeeper_process(zk->handle, events);

	if (associating && rc == ZCONNECTIONLOSS)
		renewal_turned_away(zk);
	if (rc != ZOK && rc != ZNOTHING)
		zk->fd = -1;
	answer_look(zk);
	return rc == ZOK;
}

static void process(struct ensemble *ensemble, short revents)
{
	struct zookeeper *zk = (struct zookeeper *)ensemble;
	int events = (revents & (POLLIN | POLLERR | POLLHUP) ? ZOOKEEPER_READ : 0) |
	             (revents & POLLOUT ? ZOOKEEPER_WRITE : 0);

	zk->in_process = true;
	answer_run_later(zk);
	/* What was polled was perhaps the scout. The client finds a broken socket by reading. */
	if (zk->renewal.state == RENEWAL_HELD || zk->renewal.state == RENEWAL_SCOUTED)
		events = ZOOKEEPER_READ;
	if (zk->handle && !zk->end && !renewal_waits(zk)) {
		bool more = process_one(zk, zk->check ? ZOOKEEPER_READ : events);

		for (int i = 1; i < REPLIES_PER_TURN && more && zk->connected && !zk->end &&
		                (events & ZOOKEEPER_READ);
		     i++)
			more = process_one(zk, ZOOKEEPER_READ);
		answer_run_later(zk);
	}
	if (zk->handle && zk->end) {
		answer_lose_connection(zk);
		answer_run_later(zk);
		end_client(zk, /* end_session = */ false);
		zk->fate = zk->end == END_REFUSED ? ENSEMBLE_UNKNOWN : ENSEMBLE_GONE;
		zk->events->ended(zk->ctx, zk->end == END_REFUSED);
		answer_run_later(zk);
	}
	zk->in_process = false;
}

static const char *given_up(struct ensemble *ensemble)
{
	return ((struct zookeeper *)ensemble)->given_up;
}

static const char *server(struct ensemble *ensemble)
{
	struct zookeeper *zk = (struct zookeeper *)ensemble;
	struct sockaddr_storage address;
	socklen_t len = sizeof(address);
	char host[NI_MAXHOST], port[NI_MAXSERV];

	if (!zk->handle || !zk->connected ||
	    !zookeeper_get_connected_host(zk->handle, (struct sockaddr *)&address, &len) ||
	    getnameinfo((struct sockaddr *)&address, len, host, sizeof(host), port, sizeof(port),
	                NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return "-";
	snprintf(zk->server, sizeof(zk->server), strchr(host, ':') ? "[%s]:%s" : "%s:%s", host,
	         port);
	return zk->server;
}

/* The servers as the client wants them: an odd number, and [v6]:port without brackets, since it
 * takes what stands behind the last colon for the port. NULL: no memory. */
static char *for_the_client(const char *servers)
{
	bool even = false;
	char *odd, *end;

	for (const char *comma = strchr(servers, ','); comma; comma = strchr(comma + 1, ','))
		even = !even;
	if (asprintf(&odd, "%s%s%.*s", servers, even ? "," : "",
	             even ? (int)strcspn(servers, ",") : 0, servers) < 0)
		return NULL;
	end = odd;
	for (const char *c = odd; *c; c++)
		if (*c != '[' && *c != ']')
			*end++ = *c;
	*end = '\0';
	return odd;
}

int ensemble_zookeeper_move(struct ensemble *ensemble, const char *servers)
{
	struct zookeeper *zk = (struct zookeeper *)ensemble;
	char *odd = for_the_client(servers);

	assert(!zk->in_process);
	if (!odd)
		return -ENOMEM;
	free(zk->servers);
	zk->servers = odd;
	zk->moved = zk->handle;
	/* The client may be waiting for a server that is not there any more. */
	if (!zk->connected)
		drop(ensemble);
	return 0;
}

/* The `auth` scheme would let in every other identity of the connection too: that of a client
 * certificate is the same for all who use the tunnel of a host. */
static int set_acl(struct zookeeper *zk, const char *digest)
{
	static char scheme[] = "digest";

	zk->user.acl = ZOO_OPEN_ACL_UNSAFE;
	if (!digest)
		return 0;
	zk->user.id = digest_id(digest);
	if (!zk->user.id)
		return -ENOMEM;
	zk->user.mine = (struct ACL){ZOO_PERM_ALL, {scheme, zk->user.id}};
	zk->user.acl = (struct ACL_vector){1, &zk->user.mine};
	return 0;
}

int ensemble_zookeeper_create(const char *servers, const char *digest,
                              int64_t (*clock_us)(void *ctx), void *ctx,
                              struct ensemble **ret_ensemble)
{
	static const struct ensemble_port port = {
		.open = zookeeper_begin,
		.close = zookeeper_end,
		.rest = zookeeper_rest,
		.drop = drop,
		.submit = request_submit,
		.flush = request_flush,
		.prepare = prepare,
		.process = process,
		.server = server,
		.given_up = given_up,
	};
	struct zookeeper *zk = calloc(1, sizeof(*zk));

	if (!zk)
		return -ENOMEM;
	zk->servers = for_the_client(servers);
	if (!zk->servers || set_acl(zk, digest) < 0) {
		free(zk->servers);
		free(zk);
		return -ENOMEM;
	}
	zk->base.port = &port;
	zk->user.digest = digest;
	zk->fate = ENSEMBLE_GONE;
	zk->clock_us = clock_us;
	zk->clock_ctx = ctx;
	zk->fd = -1;
	zk->watcher = watcher;
	*ret_ensemble = &zk->base;
	return 0;
}

void ensemble_zookeeper_destroy(struct ensemble *ensemble)
{
	struct zookeeper *zk = (struct zookeeper *)ensemble;

	if (!zk)
		return;
	assert(!zk->handle && !zk->later);
	free(zk->servers);
	free(zk->user.id);
	free(zk);
}
