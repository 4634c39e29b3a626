/* SPDX-License-Identifier: MIT
 *
 * ensemble_zookeeper.c - the port over libzookeeper_st, and the only file that
 * knows it. What the client does to the unwary, and what is done about it here:
 *
 *  - a send error closes the socket without any event, and requests stay in its
 *    queue until a later reply does not match: the state is looked at after every
 *    call, and our own table answers UNKNOWN at once; what the client says of
 *    those requests later is dropped;
 *  - callbacks also run from zookeeper_interest(), that is from prepare(): they
 *    are kept and run from process();
 *  - the socket comes back under the same number: nothing is remembered of it
 *    beyond one turn;
 *  - the socket would stay open in a program that is executed in the place of this one: each
 *    new one is marked;
 *  - with an even number of addresses it may try only half of them for ever
 *    (ZOOKEEPER-2466): an odd number is given, one of them twice;
 *  - connect and disconnect merge all watchers in quadratic time: there is one
 *    watcher and one context for all;
 *  - a server of 3.8.0 can leave one write lying for 2/3 of the session timeout
 *    until another request of the client comes by (ZOOKEEPER-4537): what has waited
 *    for NUDGE_US is nudged with a small read;
 *  - -1, -2, -4 and -7 all mean that the outcome is unknown;
 *  - credentials that are added while connected may go out in the middle of another
 *    request: they are added once, right after each init;
 *  - when it has no memory for a request it says so, and may call back for it all the
 *    same: the connection is given up then, and such a request is kept until the client
 *    has said its last word;
 *  - it logs up to 400,000 lines a second when things go wrong: its log is off,
 *    the engine reports what matters.
 */
#include "ensemble_zookeeper.h"

#include "digest.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>
#include <zookeeper/zookeeper.h>

/* Replies read in one turn; the client takes one at a time. */
#define REPLIES_PER_TURN 256

/* How long to stay out of poll(2) at most: the client's timers are longer. */
#define WAIT_MAX_US 1000000

#define NUDGE_US 100000

/* Answers that are owed for requests for which there was no memory. All that an engine can
 * ask for in one turn has room; pages that were never needed are no memory. */
#define RESERVE 32768

/* What came up where no callback may run. */
struct later {
	struct later *prev, *next;
	struct request *request;    /* it belongs to; NULL: disconnected, or of the reserve */
	ensemble_answer_fn *answer; /* NULL: disconnected() */
	void *ctx;
	enum ensemble_result result;
};

struct request {
	struct zookeeper *zk;
	enum ensemble_kind kind;
	ensemble_answer_fn *answer; /* NULL: answered already */
	void *ctx;
	struct request *prev, *next; /* not answered; or doubtful */
	bool doubtful;               /* refused by the client, which may still call back */
	bool kept;                   /* its answer waits in `later` */
	bool over;                   /* the client has said its last word on it */
	struct later later;
	int64_t sent_us;
	int count; /* of a transaction, else 0 */
	zoo_op_result_t *results;
	const char **paths; /* of its creates, when it is answered */
	zoo_op_t *ops;
};

struct zookeeper {
	struct ensemble base;
	char *servers;
	const char *digest; /* "user:password", or NULL */
	char *id;           /* of that user, as ACLs have it */
	struct ACL mine;
	struct ACL_vector acl; /* of all nodes that are made */
	int64_t (*clock_us)(void *ctx);
	void *clock_ctx;
	zhandle_t *handle;
	const struct ensemble_events *events;
	void *ctx;
	struct request *requests; /* in the order of submission */
	struct request *doubtful;
	struct later *later;
	struct later disconnected;    /* one at a time: connected() comes in between */
	bool in_process, in_callback; /* answers are given in the first, never in the second */
	bool connected;               /* as told by connected() and disconnected() */
	bool ended, refused;          /* the session: to be told when the client has returned */
	bool closing;
	bool cut;     /* the connection is given up: the client has to notice */
	int fd;       /* of this turn's poll(2), or -1 */
	bool nudging; /* a nudge is outstanding */
	int64_t nudged_us;
	bool corked; /* what is sent waits for the end of the turn */
	bool check;  /* interest failed: let process() find out why */
	int64_t connect_us;
	char server[NI_MAXHOST + NI_MAXSERV];
	unsigned reserve_used, reserve_owed;
	struct later reserve[RESERVE];
};

static enum ensemble_result result_of(int rc)
{
	switch (rc) {
	case ZOK:
		return ENSEMBLE_OK;
	case ZNONODE:
		return ENSEMBLE_NONODE;
	case ZNODEEXISTS:
		return ENSEMBLE_EXISTS;
	case ZNOTEMPTY:
		return ENSEMBLE_NOTEMPTY;
	case ZBADVERSION:
		return ENSEMBLE_BADVERSION;
	case ZNOCHILDRENFOREPHEMERALS:
		return ENSEMBLE_NOCHILDREN;
	case ZNOAUTH:
		return ENSEMBLE_NOAUTH;
	case ZBADARGUMENTS:
	case ZINVALIDACL:
		return ENSEMBLE_INVALID;
	case ZSYSTEMERROR:
	case ZMARSHALLINGERROR:
	case ZRUNTIMEINCONSISTENCY:
	case ZCONNECTIONLOSS:
	case ZOPERATIONTIMEOUT:
		return ENSEMBLE_UNKNOWN;
	case ZSESSIONEXPIRED:
	case ZSESSIONMOVED:
	case ZINVALIDSTATE:
	case ZAUTHFAILED:
	case ZSESSIONCLOSEDREQUIRESASLAUTH:
	case ZCLOSING:
		return ENSEMBLE_GONE;
	default:
		return ENSEMBLE_REFUSED;
	}
}

/* ---- answering ---- */

static void free_request(struct request *request)
{
	for (int i = 0; i < request->count; i++)
		if (request->ops[i].type == ZOO_CREATE_OP)
			free(request->ops[i].create_op.buf);
	free(request->ops);
	free(request->results);
	free(request->paths);
	free(request);
}

static void keep(struct zookeeper *zk, struct later *later, struct later content)
{
	*later = content;
	DL_APPEND(zk->later, later);
}

static void keep_answer(struct request *request, ensemble_answer_fn *answer,
                        enum ensemble_result result)
{
	request->answer = NULL;
	request->kept = true;
	keep(request->zk, &request->later,
	     (struct later){
		     .request = request, .answer = answer, .ctx = request->ctx, .result = result});
}

/* There was no memory for the request. */
static void keep_bare_answer(struct zookeeper *zk, ensemble_answer_fn *answer, void *ctx,
                             enum ensemble_result result)
{
	if (zk->reserve_used == RESERVE)
		abort(); /* an answer that is never given would leak a lock */
	zk->reserve_owed++;
	keep(zk, &zk->reserve[zk->reserve_used++],
	     (struct later){.answer = answer, .ctx = ctx, .result = result});
}

static void release_later(struct zookeeper *zk, struct request *request)
{
	if (request) {
		request->kept = false;
		if (request->over)
			free_request(request);
	} else if (--zk->reserve_owed == 0) {
		zk->reserve_used = 0;
	}
}

static void run_later(struct zookeeper *zk)
{
	zk->in_callback = true;
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
	zk->in_callback = false;
}

/* Whether a callback may run right here; what was kept goes first. */
static bool may_call(struct zookeeper *zk)
{
	if (!zk->in_process || zk->in_callback)
		return false;
	run_later(zk);
	return true;
}

static void give(struct request *request, const struct ensemble_answer *answer)
{
	struct zookeeper *zk = request->zk;
	ensemble_answer_fn *fn = request->answer;

	if (!fn)
		return;
	request->answer = NULL;
	DL_DELETE(zk->requests, request);
	if (answer->result == ENSEMBLE_GONE)
		zk->ended = true;
	if (may_call(zk)) {
		zk->in_callback = true;
		fn(request->ctx, answer);
		zk->in_callback = false;
	} else {
		/* The client has nothing to deliver but errors here. */
		assert(answer->result != ENSEMBLE_OK);
		keep_answer(request, fn, answer->result);
	}
}

/* The client has said its last word on it. */
static void end_request(struct request *request)
{
	if (request->doubtful)
		DL_DELETE(request->zk->doubtful, request);
	request->over = true;
	if (!request->kept)
		free_request(request);
}

static void finish(struct request *request, const struct ensemble_answer *answer)
{
	give(request, answer);
	end_request(request);
}

/* All that is outstanding, in order; the client may still call back for it. */
static void give_all(struct zookeeper *zk, enum ensemble_result result)
{
	while (zk->requests)
		give(zk->requests, &(struct ensemble_answer){.result = result});
}

static void lose_connection(struct zookeeper *zk)
{
	if (!zk->connected)
		return;
	zk->connected = zk->corked = false;
	zk->fd = -1;
	keep(zk, &zk->disconnected, (struct later){0});
	(void)may_call(zk);
	give_all(zk, ENSEMBLE_UNKNOWN);
}

/* The state after every call of the client: it may have closed its socket. */
static void look(struct zookeeper *zk)
{
	if (zk->connected && zoo_state(zk->handle) != ZOO_CONNECTED_STATE)
		lose_connection(zk);
}

/* Give the connection up: an answer is owed that will never come in its turn. */
static void cut(struct zookeeper *zk)
{
	zk->cut |= zk->connected;
	lose_connection(zk);
}

static struct ensemble_stat convert(const struct Stat *stat)
{
	return (struct ensemble_stat){
		.czxid = stat->czxid,
		.mzxid = stat->mzxid,
		.ctime_ms = stat->ctime,
		.mtime_ms = stat->mtime,
		.ephemeral_owner = stat->ephemeralOwner,
		.version = stat->version,
		.children = stat->numChildren,
	};
}

static void finish_with(const void *data, int rc, struct ensemble_answer answer,
                        const struct Stat *stat)
{
	struct zookeeper *zk = ((const struct request *)data)->zk;
	struct ensemble_stat converted;

	/* No server will ever say anything else. */
	if (rc == ZAUTHFAILED || rc == ZSESSIONCLOSEDREQUIRESASLAUTH)
		zk->ended = zk->refused = true;
	answer.result = result_of(rc);
	if (rc == ZOK && stat) {
		converted = convert(stat);
		answer.stat = &converted;
	}
	finish((struct request *)data, &answer);
}

static void on_void(int rc, const void *data)
{
	finish_with(data, rc, (struct ensemble_answer){0}, NULL);
}

static void on_multi(int rc, const void *data)
{
	const struct request *request = data;

	for (int i = 0; i < request->count && rc == ZOK; i++)
		if (request->ops[i].type == ZOO_CREATE_OP)
			request->paths[i] = request->results[i].value;
	finish_with(data, rc, (struct ensemble_answer){.paths = request->paths}, NULL);
}

static void on_stat(int rc, const struct Stat *stat, const void *data)
{
	finish_with(data, rc, (struct ensemble_answer){0}, stat);
}

static void on_string(int rc, const char *value, const void *data)
{
	(void)value;
	finish_with(data, rc, (struct ensemble_answer){0}, NULL);
}

static void on_created(int rc, const char *value, const struct Stat *stat, const void *data)
{
	finish_with(data, rc, (struct ensemble_answer){.path = value}, stat);
}

static void on_data(int rc, const char *value, int len, const struct Stat *stat, const void *data)
{
	finish_with(data, rc,
	            (struct ensemble_answer){.data = value, .data_len = len > 0 ? len : 0}, stat);
}

static void on_children(int rc, const struct String_vector *names, const struct Stat *stat,
                        const void *data)
{
	finish_with(data, rc,
	            (struct ensemble_answer){.names = rc == ZOK ? (const char *const *)names->data
	                                                        : NULL,
	                                     .name_count = rc == ZOK ? names->count : 0},
	            stat);
}

static void call_changed(struct zookeeper *zk, const char *path, enum ensemble_change change)
{
	bool may = may_call(zk);

	assert(may);
	zk->in_callback = true;
	zk->events->changed(zk->ctx, path, change);
	zk->in_callback = false;
}

static void call_connected(struct zookeeper *zk)
{
	bool may = may_call(zk);

	assert(may);
	zk->connected = true;
	zk->cut = false;
	zk->in_callback = true;
	zk->events->connected(zk->ctx, zoo_client_id(zk->handle)->client_id,
	                      (int64_t)zoo_recv_timeout(zk->handle) * 1000, zk->connect_us);
	zk->in_callback = false;
}

static void watcher(zhandle_t *handle, int type, int state, const char *path, void *ctx)
{
	struct zookeeper *zk = ctx;

	(void)handle;
	if (zk->closing)
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
		lose_connection(zk); /* of which nothing was said */
		call_connected(zk);
	} else if (state == ZOO_EXPIRED_SESSION_STATE || state == ZOO_AUTH_FAILED_STATE) {
		zk->ended = true;
		zk->refused |= state == ZOO_AUTH_FAILED_STATE;
		lose_connection(zk);
	} else {
		lose_connection(zk);
	}
}

/* ---- submitting ---- */

/* The client sends each request in two parts, each of which would be a packet of its own: all
 * of a turn goes out together, when it is over. */
static void cork(struct zookeeper *zk, bool on)
{
	int value = on;

	if (zk->corked == on || zk->fd < 0)
		return;
	zk->corked = on;
	(void)setsockopt(zk->fd, IPPROTO_TCP, TCP_CORK, &value, sizeof(value));
}

static int submit_one(struct zookeeper *zk, const struct ensemble_op *op, struct request *request)
{
	int flags = (op->ephemeral ? ZOO_EPHEMERAL : 0) | (op->sequence ? ZOO_SEQUENCE : 0);

	switch (op->kind) {
	case ENSEMBLE_CREATE:
		return zoo_acreate2(zk->handle, op->path, op->data, op->data ? op->data_len : -1,
		                    &zk->acl, flags, on_created, request);
	case ENSEMBLE_DELETE:
		return zoo_adelete(zk->handle, op->path, op->version, on_void, request);
	case ENSEMBLE_SET:
		return zoo_aset(zk->handle, op->path, op->data, op->data_len, op->version, on_stat,
		                request);
	case ENSEMBLE_GET:
		return zoo_awget(zk->handle, op->path, op->watch ? watcher : NULL, zk, on_data,
		                 request);
	case ENSEMBLE_CHILDREN:
		return zoo_awget_children2(zk->handle, op->path, op->watch ? watcher : NULL, zk,
		                           on_children, request);
	case ENSEMBLE_UNWATCH:
		/* Declared to take a pointer to the function pointer, it takes the latter. */
		return zoo_aremove_watches(zk->handle, op->path, ZWATCHTYPE_DATA, watcher, zk, 0,
		                           (void_completion_t *)on_void, request);
	case ENSEMBLE_SYNC:
		return zoo_async(zk->handle, op->path, on_string, request);
	case ENSEMBLE_CHECK:
		break;
	}
	return ZBADARGUMENTS;
}

static int submit_all(struct zookeeper *zk, const struct ensemble_op *ops, int count,
                      struct request *request)
{
	request->ops = calloc((size_t)count, sizeof(*request->ops));
	request->results = calloc((size_t)count, sizeof(*request->results));
	request->paths = calloc((size_t)count, sizeof(*request->paths));
	if (!request->ops || !request->results || !request->paths)
		return ZSYSTEMERROR;
	request->count = count;
	for (int i = 0; i < count; i++) {
		const struct ensemble_op *op = &ops[i];
		zoo_op_t *out = &request->ops[i];

		switch (op->kind) {
		case ENSEMBLE_CREATE: {
			int len = (int)strlen(op->path) + 12;
			char *buf = malloc((size_t)len);

			if (!buf)
				return ZSYSTEMERROR;
			zoo_create_op_init(out, op->path, op->data, op->data ? op->data_len : -1,
			                   &zk->acl,
			                   (op->ephemeral ? ZOO_EPHEMERAL : 0) |
			                           (op->sequence ? ZOO_SEQUENCE : 0),
			                   buf, len);
			break;
		}
		case ENSEMBLE_DELETE:
			zoo_delete_op_init(out, op->path, op->version);
			break;
		case ENSEMBLE_SET:
			zoo_set_op_init(out, op->path, op->data, op->data_len, op->version, NULL);
			break;
		case ENSEMBLE_CHECK:
			zoo_check_op_init(out, op->path, op->version);
			break;
		case ENSEMBLE_GET:
		case ENSEMBLE_CHILDREN:
		case ENSEMBLE_UNWATCH:
		case ENSEMBLE_SYNC:
			return ZBADARGUMENTS;
		}
	}
	return zoo_amulti(zk->handle, count, request->ops, request->results, on_multi, request);
}

/* By the client. One that failed half-way may be called back for, or may not. */
static void refuse(struct request *request, enum ensemble_result result)
{
	struct zookeeper *zk = request->zk;
	bool half_way = result == ENSEMBLE_UNKNOWN;

	if (half_way)
		cut(zk);
	zk->ended |= result == ENSEMBLE_GONE;
	keep_answer(request, request->answer, result);
	if (half_way) {
		request->doubtful = true;
		DL_APPEND(zk->doubtful, request);
	} else {
		end_request(request);
	}
}

static void submit(struct ensemble *ensemble, const struct ensemble_op *ops, int count,
                   ensemble_answer_fn *answer, void *ctx)
{
	struct zookeeper *zk = (struct zookeeper *)ensemble;
	struct request *request = calloc(1, sizeof(*request));
	enum ensemble_result nothing = zk->handle && !zk->ended ? ENSEMBLE_UNKNOWN : ENSEMBLE_GONE;
	int rc;

	assert(count >= 1 && count <= ENSEMBLE_OPS_MAX);
	if (!request) {
		cut(zk);
		keep_bare_answer(zk, answer, ctx, nothing);
		return;
	}
	*request = (struct request){.zk = zk,
	                            .kind = ops[0].kind,
	                            .answer = answer,
	                            .ctx = ctx,
	                            .sent_us = zk->clock_us(zk->clock_ctx)};
	/* Without a connection it would only be queued in the client, to fail later. */
	if (!zk->handle || !zk->connected) {
		keep_answer(request, answer, nothing);
		end_request(request);
		return;
	}
	cork(zk, true);
	rc = count == 1 ? submit_one(zk, ops, request) : submit_all(zk, ops, count, request);
	if (rc == ZOK)
		DL_APPEND(zk->requests, request);
	else
		refuse(request, result_of(rc));
	look(zk);
}

/* ---- the session ---- */

static int zookeeper_begin(struct ensemble *ensemble, int64_t timeout_us,
                           const struct ensemble_session *session,
                           const struct ensemble_events *events, void *ctx)
{
	struct zookeeper *zk = (struct zookeeper *)ensemble;
	clientid_t client = {0};

	assert(!zk->handle);
	zk->events = events;
	zk->ctx = ctx;
	zk->connected = zk->ended = zk->refused = zk->closing = zk->check = zk->nudging = zk->cut =
		false;
	zk->fd = -1;
	zk->connect_us = zk->clock_us(zk->clock_ctx);
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
	if (zk->digest && zoo_add_auth(zk->handle, "digest", zk->digest, (int)strlen(zk->digest),
	                               NULL, NULL) != ZOK) {
		zookeeper_close(zk->handle);
		zk->handle = NULL;
		return -ENOMEM;
	}
	return 0;
}

static_assert(sizeof(((clientid_t *)0)->passwd) == ENSEMBLE_PASSWORD, "");

static struct ensemble_session session_now(struct ensemble *ensemble)
{
	struct zookeeper *zk = (struct zookeeper *)ensemble;
	struct ensemble_session session = {0};

	if (zk->handle) {
		session.id = zoo_client_id(zk->handle)->client_id;
		memcpy(session.password, zoo_client_id(zk->handle)->passwd, ENSEMBLE_PASSWORD);
	}
	return session;
}

static void zookeeper_end(struct ensemble *ensemble, bool farewell)
{
	struct zookeeper *zk = (struct zookeeper *)ensemble;
	bool was_in_process = zk->in_process;

	if (!zk->handle)
		return;
	assert(!zk->in_callback);
	zk->in_process = true;
	run_later(zk);
	zk->closing = true;
	/* Without a farewell the server must not see one either: cut the line first. */
	if (!farewell && zk->fd >= 0)
		shutdown(zk->fd, SHUT_RDWR);
	give_all(zk, ENSEMBLE_GONE);
	zookeeper_close(zk->handle);
	zk->handle = NULL;
	zk->fd = -1;
	zk->connected = false;
	while (zk->doubtful)
		end_request(zk->doubtful);
	run_later(zk);
	zk->in_process = was_in_process;
}

static void drop(struct ensemble *ensemble)
{
	struct zookeeper *zk = (struct zookeeper *)ensemble;

	if (!zk->handle)
		return;
	if (zk->fd >= 0)
		shutdown(zk->fd, SHUT_RDWR);
	/* Nothing is sent on it any more: the client, failing at that, forgets to free what it
	 * was reading into. */
	cut(zk);
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

	if (!zk->connected || !zk->requests)
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
	look(zk);
	return NUDGE_US;
}

static int64_t prepare(struct ensemble *ensemble, struct pollfd *ret_pollfd)
{
	struct zookeeper *zk = (struct zookeeper *)ensemble;
	struct timeval tv = {.tv_sec = 1};
	int fd = -1, interest = 0, rc, state;
	int64_t wait, again;

	*ret_pollfd = (struct pollfd){.fd = -1};
	cork(zk, false);
	if (!zk->handle)
		return zk->later ? 0 : WAIT_MAX_US;
	again = nudge(zk);
	state = zoo_state(zk->handle);
	/* If this call connects, it does so after now. */
	if (state != ZOO_CONNECTING_STATE && state != ZOO_ASSOCIATING_STATE &&
	    state != ZOO_CONNECTED_STATE)
		zk->connect_us = zk->clock_us(zk->clock_ctx);
	rc = zookeeper_interest(zk->handle, &fd, &interest, &tv);
	look(zk);
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
	ret_pollfd->fd = zk->fd;
	ret_pollfd->events = (short)((interest & ZOOKEEPER_READ ? POLLIN : 0) |
	                             (interest & ZOOKEEPER_WRITE ? POLLOUT : 0));
	wait = (int64_t)tv.tv_sec * 1000000 + tv.tv_usec;
	if (zk->later || zk->ended)
		return 0;
	if (rc != ZOK)
		return 10000;
	if (again < wait)
		wait = again;
	return wait < WAIT_MAX_US ? wait : WAIT_MAX_US;
}

/* One reply is read at a time. False: there was none, or it failed. */
static bool process_one(struct zookeeper *zk, int events)
{
	int rc = zookeeper_process(zk->handle, events);

	if (rc != ZOK && rc != ZNOTHING)
		zk->fd = -1;
	look(zk);
	return rc == ZOK;
}

static void process(struct ensemble *ensemble, short revents)
{
	struct zookeeper *zk = (struct zookeeper *)ensemble;
	int events = (revents & (POLLIN | POLLERR | POLLHUP) ? ZOOKEEPER_READ : 0) |
	             (revents & POLLOUT ? ZOOKEEPER_WRITE : 0);

	zk->in_process = true;
	run_later(zk);
	if (zk->handle && !zk->ended) {
		bool more = process_one(zk, zk->check ? ZOOKEEPER_READ : events);

		for (int i = 1; i < REPLIES_PER_TURN && more && zk->connected && !zk->ended &&
		                (events & ZOOKEEPER_READ);
		     i++)
			more = process_one(zk, ZOOKEEPER_READ);
		run_later(zk);
	}
	if (zk->handle && zk->ended) {
		lose_connection(zk);
		zookeeper_end(ensemble, false);
		zk->in_process = true;
		zk->in_callback = true;
		zk->events->ended(zk->ctx, zk->refused);
		zk->in_callback = false;
		run_later(zk);
	}
	zk->in_process = false;
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

/* As the client wants them: an odd number, and [v6]:port without brackets, since it
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
	zk->ended |= zk->handle && !zk->connected; /* told by process() */
	return 0;
}

/* The `auth` scheme would let in every other identity of the connection too: that of a client
 * certificate is the same for all who use the tunnel of a host. */
static int set_acl(struct zookeeper *zk, const char *digest)
{
	static char scheme[] = "digest";

	zk->acl = ZOO_OPEN_ACL_UNSAFE;
	if (!digest)
		return 0;
	zk->id = digest_id(digest);
	if (!zk->id)
		return -ENOMEM;
	zk->mine = (struct ACL){ZOO_PERM_ALL, {scheme, zk->id}};
	zk->acl = (struct ACL_vector){1, &zk->mine};
	return 0;
}

int ensemble_zookeeper_create(const char *servers, const char *digest,
                              int64_t (*clock_us)(void *ctx), void *ctx,
                              struct ensemble **ret_ensemble)
{
	static const struct ensemble_port port = {
		.open = zookeeper_begin,
		.session = session_now,
		.close = zookeeper_end,
		.drop = drop,
		.submit = submit,
		.prepare = prepare,
		.process = process,
		.server = server,
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
	zk->digest = digest;
	zk->clock_us = clock_us;
	zk->clock_ctx = ctx;
	zk->fd = -1;
	*ret_ensemble = &zk->base;
	return 0;
}

void ensemble_zookeeper_destroy(struct ensemble *ensemble)
{
	struct zookeeper *zk = (struct zookeeper *)ensemble;

	if (!zk)
		return;
	assert(!zk->handle);
	free(zk->servers);
	free(zk->id);
	free(zk);
}
