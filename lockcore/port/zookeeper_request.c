/* SPDX-License-Identifier: MIT */
#include "port/zookeeper_port.h"

#include <assert.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

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
	case ZSSLCONNECTIONERROR:
	case ZTHROTTLEDOP:
	case ZNOTREADONLY:
	case ZAUTHFAILED:
	case ZSESSIONCLOSEDREQUIRESASLAUTH:
		return ENSEMBLE_UNKNOWN;
	case ZSESSIONEXPIRED:
	case ZSESSIONMOVED:
	case ZINVALIDSTATE:
	case ZCLOSING:
		return ENSEMBLE_GONE;
	default:
		return ENSEMBLE_REFUSED;
	}
}

#define QUOTA_EXCEEDED (-125) /* which older headers of the client do not have */

static const char *why_refused(int rc)
{
	switch (rc) {
	case QUOTA_EXCEEDED:
		return "a quota is full";
	case ZEPHEMERALONLOCALSESSION:
		return "its sessions are local (localSessionsEnabled)";
	case ZUNIMPLEMENTED:
		return "its servers are too old";
	default:
		return NULL;
	}
}

/* ---- answers of the client ---- */

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
		/* The cversion counts creates and deletes. */
		.made = ((int64_t)stat->cversion + stat->numChildren) / 2,
	};
}

static void finish_with(const void *data, int rc, struct ensemble_answer answer,
                        const struct Stat *stat)
{
	struct zookeeper *zk = ((const struct zookeeper_request *)data)->zk;
	struct ensemble_stat converted;

	/* To be tried again, elsewhere if possible. What was sent behind it may have been done:
	 * it is as if the connection had been lost, or the order of requests would change. */
	if (rc == ZTHROTTLEDOP || rc == ZNOTREADONLY) {
		zk->given_up = rc == ZTHROTTLEDOP ? "throttles requests" : "is read-only";
		answer_cut(zk);
	}
	/* Of no use any more: the client, not the session. */
	if (rc == ZAUTHFAILED || rc == ZSESSIONCLOSEDREQUIRESASLAUTH) {
		answer_note_end(zk, END_REFUSED);
		answer_lose_connection(zk);
	}
	answer.result = result_of(rc);
	/* So this server says: the owner finds out what is true. */
	if (answer.result == ENSEMBLE_GONE) {
		if (((const struct zookeeper_request *)data)->answer) {
			answer_note_end(zk, END_OVER);
			answer_lose_connection(zk);
		}
		answer.result = ENSEMBLE_UNKNOWN;
	}
	answer.why = answer.result == ENSEMBLE_REFUSED ? why_refused(rc) : NULL;
	if (rc == ZOK && stat) {
		converted = convert(stat);
		answer.stat = &converted;
	}
	answer_finish((struct zookeeper_request *)data, &answer);
}

static void on_void(int rc, const void *data)
{
	finish_with(data, rc, (struct ensemble_answer){0}, NULL);
}

static void on_multi(int rc, const void *data)
{
	const struct zookeeper_request *request = data;

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

/* ---- submitting ---- */

/* The client sends each request in two parts, each of which would be a packet of its own: all
 * of a turn goes out together, when it is over. */
void request_cork(struct zookeeper *zk, bool on)
{
	int value = on;

	if (zk->corked == on || zk->fd < 0)
		return;
	zk->corked = on;
	(void)setsockopt(zk->fd, IPPROTO_TCP, TCP_CORK, &value, sizeof(value));
}

static int submit_one(struct zookeeper *zk, const struct ensemble_op *op,
                      struct zookeeper_request *request)
{
	int flags = (op->ephemeral ? ZOO_EPHEMERAL : 0) | (op->sequence ? ZOO_SEQUENCE : 0);

	switch (op->kind) {
	case ENSEMBLE_CREATE:
		return zoo_acreate2(zk->handle, op->path, op->data, op->data ? op->data_len : -1,
		                    &zk->user.acl, flags, on_created, request);
	case ENSEMBLE_DELETE:
		return zoo_adelete(zk->handle, op->path, op->version, on_void, request);
	case ENSEMBLE_SET:
		return zoo_aset(zk->handle, op->path, op->data, op->data_len, op->version, on_stat,
		                request);
	case ENSEMBLE_GET:
		return zoo_awget(zk->handle, op->path, op->watch ? zk->watcher : NULL, zk, on_data,
		                 request);
	case ENSEMBLE_CHILDREN:
		return zoo_awget_children2(zk->handle, op->path, op->watch ? zk->watcher : NULL, zk,
		                           on_children, request);
	case ENSEMBLE_UNWATCH:
		/* The one that names a watcher asks the server whether there is one, and takes
		 * nothing back. Declared to take a pointer to the function pointer, it takes the
		 * latter. */
		return zoo_aremove_all_watches(zk->handle, op->path, ZWATCHTYPE_DATA, 0,
		                               (void_completion_t *)on_void, request);
	case ENSEMBLE_SYNC:
		return zoo_async(zk->handle, op->path, on_string, request);
	case ENSEMBLE_CHECK:
		break;
	}
	return ZBADARGUMENTS;
}

static int submit_all(struct zookeeper *zk, const struct ensemble_op *ops, int count,
                      struct zookeeper_request *request)
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
			                   &zk->user.acl,
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

/* By the client. For a request that failed half-way, the client may call back or not. */
static void reject(struct zookeeper_request *request, enum ensemble_result result)
{
	struct zookeeper *zk = request->zk;
	bool half_way = result == ENSEMBLE_UNKNOWN;

	if (half_way)
		answer_cut(zk);
	if (result == ENSEMBLE_GONE) {
		answer_note_end(zk, END_OVER);
		result = ENSEMBLE_UNKNOWN;
	}
	answer_later(request, request->answer, result);
	if (half_way) {
		request->rejected = true;
		DL_APPEND(zk->rejected, request);
	} else {
		answer_end(request);
	}
}

void request_submit(struct ensemble *ensemble, const struct ensemble_op *ops, int count,
                    ensemble_answer_fn *answer, void *ctx)
{
	struct zookeeper *zk = (struct zookeeper *)ensemble;
	struct zookeeper_request *request = calloc(1, sizeof(*request));
	enum ensemble_result nothing = zk->handle ? ENSEMBLE_UNKNOWN : ENSEMBLE_GONE;
	int rc;

	assert(count >= 1 && count <= ENSEMBLE_OPS_MAX);
	if (!request) {
		answer_cut(zk);
		answer_later_bare(zk, answer, ctx, nothing);
		return;
	}
	*request = (struct zookeeper_request){
		.zk = zk, .answer = answer, .ctx = ctx, .sent_us = zk->clock_us(zk->clock_ctx)};
	/* Without a connection it would only be queued in the client, to fail later. */
	if (!zk->handle || !zk->connected) {
		answer_later(request, answer, nothing);
		answer_end(request);
		return;
	}
	request_cork(zk, true);
	rc = count == 1 ? submit_one(zk, ops, request) : submit_all(zk, ops, count, request);
	if (rc == ZOK)
		DL_APPEND(zk->requests, request);
	else
		reject(request, result_of(rc));
	answer_look(zk);
}
