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
	/* The client is of no use any more; the session may be. */
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

	for (int i = 0; i < request->count; i++)
		request->paths[i] = rc == ZOK && request->ops[i].kind == ENSEMBLE_CREATE
		                            ? request->results[i].value
		                            : NULL;
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

/* ---- keeping ---- */

/* Behind each path that is created the server puts a number and a final 0. */
#define NUMBER_ROOM 12

static size_t text_room(const struct ensemble_op *op)
{
	return strlen(op->path) + NUMBER_ROOM + (op->data ? (size_t)op->data_len : 0);
}

static char *copy_op(struct ensemble_op *copy, const struct ensemble_op *op, char *text)
{
	*copy = *op;
	copy->path = strcpy(text, op->path);
	text += strlen(op->path) + NUMBER_ROOM;
	if (!op->data)
		return text;
	copy->data = memcpy(text, op->data, (size_t)op->data_len);
	return text + op->data_len;
}

/* NULL: no memory. */
static struct zookeeper_request *copy_request(const struct ensemble_op *ops, int count)
{
	struct zookeeper_request *request;
	size_t parts = (size_t)count, room = sizeof(*request);
	char *text;

	room += parts * (sizeof(*ops) + sizeof(*request->parts) + sizeof(*request->results) +
	                 sizeof(*request->paths));
	for (int i = 0; i < count; i++)
		room += text_room(&ops[i]);
	request = malloc(room);
	if (!request)
		return NULL;
	*request = (struct zookeeper_request){.over = true, .count = count};
	request->parts = (zoo_op_t *)&request->ops[count];
	request->results = (zoo_op_result_t *)&request->parts[count];
	request->paths = (const char **)&request->results[count];
	text = (char *)&request->paths[count];
	for (int i = 0; i < count; i++)
		text = copy_op(&request->ops[i], &ops[i], text);
	return request;
}

void request_submit(struct ensemble *ensemble, const struct ensemble_op *ops, int count,
                    ensemble_answer_fn *answer, void *ctx)
{
	struct zookeeper *zk = (struct zookeeper *)ensemble;
	struct zookeeper_request *request;

	assert(count >= 1 && count <= ENSEMBLE_OPS_MAX);
	request = copy_request(ops, zk->connected ? count : 0);
	if (!request) { /* nothing may go out behind a request that is left out */
		answer_cut(zk);
		answer_later_bare(zk, answer, ctx);
		return;
	}
	request->zk = zk;
	request->answer = answer;
	request->ctx = ctx;
	if (!zk->connected) {
		answer_later(request, zk->fate);
		return;
	}
	DL_APPEND(zk->requests, request);
	if (!zk->kept)
		zk->kept = request;
}

/* ---- sending ---- */

/* The client sends each request in two parts, each of which would be a packet of its own: all
 * of a turn goes out together. */
static void cork(const struct zookeeper *zk, int on)
{
	if (zk->fd >= 0)
		(void)setsockopt(zk->fd, IPPROTO_TCP, TCP_CORK, &on, sizeof(on));
}

static int create_flags(const struct ensemble_op *op)
{
	return (op->ephemeral ? ZOO_EPHEMERAL : 0) | (op->sequence ? ZOO_SEQUENCE : 0);
}

static int send_single(struct zookeeper *zk, struct zookeeper_request *request)
{
	const struct ensemble_op *op = &request->ops[0];

	switch (op->kind) {
	case ENSEMBLE_CREATE:
		return zoo_acreate2(zk->handle, op->path, op->data, op->data ? op->data_len : -1,
		                    &zk->user.acl, create_flags(op), on_created, request);
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

/* The server's name of a new node takes the place of the path, which is sent by then. */
static void prepare_create(struct zookeeper *zk, zoo_op_t *part, const struct ensemble_op *op)
{
	zoo_create_op_init(part, op->path, op->data, op->data ? op->data_len : -1, &zk->user.acl,
	                   create_flags(op), (char *)op->path, (int)strlen(op->path) + NUMBER_ROOM);
}

static int send_transaction(struct zookeeper *zk, struct zookeeper_request *request)
{
	for (int i = 0; i < request->count; i++) {
		const struct ensemble_op *op = &request->ops[i];
		zoo_op_t *part = &request->parts[i];

		switch (op->kind) {
		case ENSEMBLE_CREATE:
			prepare_create(zk, part, op);
			break;
		case ENSEMBLE_DELETE:
			zoo_delete_op_init(part, op->path, op->version);
			break;
		case ENSEMBLE_SET:
			zoo_set_op_init(part, op->path, op->data, op->data_len, op->version, NULL);
			break;
		case ENSEMBLE_CHECK:
			zoo_check_op_init(part, op->path, op->version);
			break;
		case ENSEMBLE_GET:
		case ENSEMBLE_CHILDREN:
		case ENSEMBLE_UNWATCH:
		case ENSEMBLE_SYNC:
			return ZBADARGUMENTS;
		}
	}
	return zoo_amulti(zk->handle, request->count, request->parts, request->results, on_multi,
	                  request);
}

/* By the client, which may call back all the same: unless the outcome is known, the connection is
 * given up, and all that is outstanding is answered with it. */
static void reject(struct zookeeper_request *request, enum ensemble_result result)
{
	struct zookeeper *zk = request->zk;

	if (result != ENSEMBLE_UNKNOWN && result != ENSEMBLE_GONE) {
		request->over = true;
		request->refused = result;
		answer_refused(zk);
		return;
	}
	if (result == ENSEMBLE_GONE)
		answer_note_end(zk, END_OVER);
	answer_cut(zk);
	request->rejected = true;
	DL_APPEND(zk->rejected, request);
}

void request_flush(struct ensemble *ensemble)
{
	struct zookeeper *zk = (struct zookeeper *)ensemble;
	struct zookeeper_request *request;

	assert(!zk->in_process);
	if (!zk->kept)
		return;
	cork(zk, /* on = */ true);
	while ((request = zk->kept)) {
		int rc;

		zk->kept = request->next;
		request->over = false;
		request->sent_us = zk->clock_us(zk->clock_ctx);
		rc = request->count == 1 ? send_single(zk, request) : send_transaction(zk, request);
		if (rc != ZOK)
			reject(request, result_of(rc));
		answer_look(zk);
	}
	cork(zk, /* on = */ false);
}
