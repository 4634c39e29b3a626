/* SPDX-License-Identifier: MIT
 *
 * client.c - see client.h.
 */
#include "client.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <utlist.h>

#include <cmocka.h>

const int ZOOKEEPER_WRITE = 1, ZOOKEEPER_READ = 2;
const int ZOO_EPHEMERAL = 1, ZOO_SEQUENCE = 2, ZOO_PERM_ALL = 31;
const int ZOO_EXPIRED_SESSION_STATE = -112, ZOO_AUTH_FAILED_STATE = -113;
const int ZOO_CONNECTING_STATE = 1, ZOO_ASSOCIATING_STATE = 2, ZOO_CONNECTED_STATE = 3;
const int ZOO_DELETED_EVENT = 2, ZOO_CHANGED_EVENT = 3, ZOO_CHILD_EVENT = 4, ZOO_SESSION_EVENT = -1;
struct ACL_vector ZOO_OPEN_ACL_UNSAFE;

enum form { FORM_VOID, FORM_STAT, FORM_STRING, FORM_CREATED, FORM_DATA, FORM_CHILDREN };

struct pending {
	enum form form;
	void (*fn)(void);
	const void *data;
	struct pending *prev, *next;
};

enum how next_request;
zhandle_t *current;
int next_code = ZOK, next_state;
bool no_socket, noticed;
char client_saw[1024];
static bool quiet; /* logs nothing */

/* A state of its own: between two connections. */
#define NO_SOCKET 0

static void new_socket(zhandle_t *zh)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, zh->fds), 0);
}

zhandle_t *zookeeper_init2(const char *host, watcher_fn fn, int recv_timeout,
                           const clientid_t *clientid, void *context, int flags,
                           log_callback_fn log_callback)
{
	zhandle_t *zh = calloc(1, sizeof(*zh));

	unsigned addresses = 1;

	(void)recv_timeout, (void)clientid, (void)log_callback;
	assert_non_null(zh);
	/* Of an even number of addresses the real client may try one half for ever
	 * (ZOOKEEPER-2466). */
	for (const char *comma = strchr(host, ','); comma; comma = strchr(comma + 1, ','))
		addresses++;
	assert_int_equal(addresses % 2, 1);
	assert_int_equal(flags & ZOO_READONLY, 0);
	assert_true(quiet);
	*zh = (zhandle_t){.watcher = fn,
	                  .ctx = context,
	                  .state = ZOO_CONNECTING_STATE,
	                  .id = {.client_id = 7}};
	snprintf(zh->servers, sizeof(zh->servers), "%s", host);
	new_socket(zh);
	current = zh;
	return zh;
}

static void call(struct pending *pending, int rc)
{
	static const struct Stat stat = {.czxid = 1};
	static struct String_vector names;
	void (*fn)(void) = pending->fn;
	const void *data = pending->data;

	switch (pending->form) {
	case FORM_VOID:
		((void_completion_t)fn)(rc, data);
		break;
	case FORM_STAT:
		((stat_completion_t)fn)(rc, &stat, data);
		break;
	case FORM_STRING:
		((string_completion_t)fn)(rc, "/a", data);
		break;
	case FORM_CREATED:
		((string_stat_completion_t)fn)(rc, "/a0000000001", &stat, data);
		break;
	case FORM_DATA:
		((data_completion_t)fn)(rc, "", 0, &stat, data);
		break;
	case FORM_CHILDREN:
		((strings_stat_completion_t)fn)(rc, &names, &stat, data);
		break;
	}
	free(pending);
}

static void flush(zhandle_t *zh, int rc)
{
	while (zh->pending) {
		struct pending *pending = zh->pending;

		DL_DELETE(zh->pending, pending);
		call(pending, rc);
	}
}

int zookeeper_close(zhandle_t *zh)
{
	flush(zh, ZCLOSING);
	close(zh->fds[0]);
	close(zh->fds[1]);
	free(zh);
	current = NULL;
	return ZOK;
}

static int lose(zhandle_t *zh)
{
	close(zh->fds[0]);
	close(zh->fds[1]);
	new_socket(zh);
	zh->silent = false;
	zh->state = NO_SOCKET;
	zh->watcher(zh, ZOO_SESSION_EVENT, ZOO_CONNECTING_STATE, "", zh->ctx);
	flush(zh, ZCONNECTIONLOSS);
	return ZCONNECTIONLOSS;
}

int zookeeper_interest(zhandle_t *zh, int *fd, int *interest, struct timeval *tv)
{
	assert_true(zh->numeric);
	*fd = zh->fds[0];
	*interest = ZOOKEEPER_READ;
	*tv = (struct timeval){.tv_sec = 1};
	if (noticed && zh->silent)
		return lose(zh);
	if (zh->state == NO_SOCKET)
		zh->state = ZOO_CONNECTING_STATE;
	return no_socket ? ZCONNECTIONLOSS : ZOK;
}

int zookeeper_process(zhandle_t *zh, int events)
{
	struct pending *pending = zh->pending;
	char byte;

	assert_true(events & ZOOKEEPER_READ);
	if (next_state) {
		zh->state = next_state;
		next_state = 0;
		zh->watcher(zh, ZOO_SESSION_EVENT, zh->state, "", zh->ctx);
		return ZINVALIDSTATE;
	}
	if (zh->silent || recv(zh->fds[1], &byte, 1, MSG_DONTWAIT) == 0)
		return lose(zh);
	if (zh->state != ZOO_CONNECTED_STATE) {
		zh->state = ZOO_CONNECTED_STATE;
		zh->watcher(zh, ZOO_SESSION_EVENT, zh->state, "", zh->ctx);
		return ZOK;
	}
	if (!pending || recv(zh->fds[0], &byte, 1, MSG_DONTWAIT) != 1)
		return ZNOTHING;
	DL_DELETE(zh->pending, pending);
	call(pending, next_code);
	return ZOK;
}

static int take(zhandle_t *zh, enum form form, void (*fn)(void), const void *data)
{
	struct pending *pending;
	enum how how = next_request;

	next_request = TAKE;
	if (how == REFUSE)
		return ZSYSTEMERROR;
	if (how == REFUSE_FOR_GOOD)
		return ZBADARGUMENTS;
	pending = calloc(1, sizeof(*pending));
	assert_non_null(pending);
	*pending = (struct pending){.form = form, .fn = fn, .data = data};
	DL_APPEND(zh->pending, pending);
	if (how == REFUSE_HALF_WAY)
		return ZMARSHALLINGERROR;
	/* The server may have closed the connection, which the client finds out by reading. */
	if (send(zh->fds[1], "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		assert_int_equal(errno, EPIPE);
	return ZOK;
}

static int note(int rc, const char *before, const char *path, const char *data, int len)
{
	size_t used = strlen(client_saw);

	if (rc == ZOK)
		snprintf(client_saw + used, sizeof(client_saw) - used, "%s%s=%.*s",
		         used ? before : "", path, data ? len : 0, data ? data : "");
	return rc;
}

#define TAKE_REQUEST(form) take(zh, form, (void (*)(void))completion, data)

int zoo_acreate2(zhandle_t *zh, const char *path, const char *value, int valuelen,
                 const struct ACL_vector *acl_entries, int mode,
                 string_stat_completion_t completion, const void *data)
{
	(void)path, (void)value, (void)valuelen, (void)acl_entries, (void)mode;
	return TAKE_REQUEST(FORM_CREATED);
}

int zoo_adelete(zhandle_t *zh, const char *path, int version, void_completion_t completion,
                const void *data)
{
	(void)path, (void)version;
	return TAKE_REQUEST(FORM_VOID);
}

int zoo_aset(zhandle_t *zh, const char *path, const char *buffer, int buflen, int version,
             stat_completion_t completion, const void *data)
{
	(void)version;
	return note(TAKE_REQUEST(FORM_STAT), ", ", path, buffer, buflen);
}

/* The real client merges all different watchers with each other when it connects or disconnects,
 * which costs the square of their number. */
static void assert_one_watcher(const zhandle_t *zh, watcher_fn fn, const void *ctx)
{
	assert_true(!fn || (fn == zh->watcher && ctx == zh->ctx));
}

int zoo_awget(zhandle_t *zh, const char *path, watcher_fn fn, void *ctx,
              data_completion_t completion, const void *data)
{
	(void)path;
	assert_one_watcher(zh, fn, ctx);
	return TAKE_REQUEST(FORM_DATA);
}

int zoo_awget_children2(zhandle_t *zh, const char *path, watcher_fn fn, void *ctx,
                        strings_stat_completion_t completion, const void *data)
{
	(void)path;
	assert_one_watcher(zh, fn, ctx);
	return TAKE_REQUEST(FORM_CHILDREN);
}

int zoo_aremove_all_watches(zhandle_t *zh, const char *path, ZooWatcherType type, int local,
                            void_completion_t *completion, const void *data)
{
	(void)path, (void)type, (void)local;
	return TAKE_REQUEST(FORM_VOID);
}

int zoo_async(zhandle_t *zh, const char *path, string_completion_t completion, const void *data)
{
	(void)path;
	return TAKE_REQUEST(FORM_STRING);
}

int zoo_amulti(zhandle_t *zh, int count, const zoo_op_t *ops, zoo_op_result_t *results,
               void_completion_t completion, const void *data)
{
	int rc = TAKE_REQUEST(FORM_VOID);

	for (int i = 0; i < count; i++) {
		const zoo_op_t *op = &ops[i];
		char name[200];

		results[i].value = NULL;
		if (op->type != ZOO_CREATE_OP) {
			(void)note(rc, i ? "+" : ", ", op->delete_op.path, NULL, 0);
			continue;
		}
		(void)note(rc, i ? "+" : ", ", op->create_op.path, op->create_op.data,
		           op->create_op.datalen);
		snprintf(name, sizeof(name), "%s0123456789", op->create_op.path);
		assert_true((int)strlen(name) < op->create_op.buflen);
		results[i].value = strcpy(op->create_op.buf, name);
	}
	return rc;
}

int zoo_awexists(zhandle_t *zh, const char *path, watcher_fn fn, void *ctx,
                 stat_completion_t completion, const void *data)
{
	(void)path, (void)fn, (void)ctx;
	return TAKE_REQUEST(FORM_STAT);
}

void zoo_create_op_init(zoo_op_t *op, const char *path, const char *value, int valuelen,
                        const struct ACL_vector *acl_entries, int mode, char *buffer, int buflen)
{
	(void)acl_entries, (void)mode;
	op->type = ZOO_CREATE_OP;
	op->create_op.path = path;
	op->create_op.data = value;
	op->create_op.datalen = valuelen;
	op->create_op.buf = buffer;
	op->create_op.buflen = buflen;
}

void zoo_delete_op_init(zoo_op_t *op, const char *path, int version)
{
	(void)version;
	op->type = ZOO_DELETE_OP;
	op->delete_op.path = path;
}

void zoo_set_op_init(zoo_op_t *op, const char *path, const char *buffer, int buflen, int version,
                     struct Stat *stat)
{
	(void)buffer, (void)buflen, (void)version, (void)stat;
	op->type = ZOO_SETDATA_OP;
	op->set_op.path = path;
}

void zoo_check_op_init(zoo_op_t *op, const char *path, int version)
{
	(void)version;
	op->type = ZOO_CHECK_OP;
	op->check_op.path = path;
}

int zoo_add_auth(zhandle_t *zh, const char *scheme, const char *cert, int len,
                 void_completion_t completion, const void *data)
{
	(void)scheme, (void)cert, (void)len, (void)completion, (void)data;
	/* Later, the credentials would go out inside another request. The client keeps them. */
	assert_int_equal(zh->state, ZOO_CONNECTING_STATE);
	assert_false(zh->authentic);
	zh->authentic = true;
	return ZOK;
}

int zoo_state(zhandle_t *zh)
{
	/* After a failed send only the state tells it; no event comes. */
	return zh->silent ? ZOO_CONNECTING_STATE : zh->state;
}

static unsigned count_servers(const char *servers)
{
	unsigned count = 1;

	for (; *servers; servers++)
		count += *servers == ',';
	return count;
}

/* As the client compares them: without their ports. */
static bool has_host(const char *servers, const char *host, size_t len)
{
	for (;;) {
		if (strncmp(servers, host, len) == 0 && servers[len] == ':')
			return true;
		servers += strcspn(servers, ",");
		if (!*servers++)
			return false;
	}
}

static bool is_the_same(const char *now, const char *before)
{
	if (count_servers(now) != count_servers(before))
		return false;
	for (;;) {
		if (!has_host(now, before, strcspn(before, ":")))
			return false;
		before += strcspn(before, ",");
		if (!*before++)
			return true;
	}
}

int zoo_set_servers(zhandle_t *zh, const char *servers)
{
	/* With a socket it might close that, and say nothing. */
	assert_int_equal(zh->state, NO_SOCKET);
	if (!is_the_same(servers, zh->servers))
		snprintf(zh->servers, sizeof(zh->servers), "%s", servers);
	return ZOK;
}

const clientid_t *zoo_client_id(zhandle_t *zh)
{
	return &zh->id;
}

int zoo_recv_timeout(zhandle_t *zh)
{
	(void)zh;
	return 15000;
}

void zoo_set_debug_level(ZooLogLevel level)
{
	quiet = level == 0;
}

const char *zoo_get_current_server(zhandle_t *zh)
{
	(void)zh;
	return "127.0.0.1:2181";
}

int zoo_set_servers_resolution_delay(zhandle_t *zh, int delay)
{
	zh->numeric = delay == -1;
	return ZOK;
}

struct sockaddr *zookeeper_get_connected_host(zhandle_t *zh, struct sockaddr *address,
                                              socklen_t *len)
{
	(void)zh, (void)address, (void)len;
	return NULL;
}
