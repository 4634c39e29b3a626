/* SPDX-License-Identifier: MIT
 *
 * The port without memory: every allocation of the port fails in turn, once, for a while, or until
 * the end of the trouble. Meanwhile connections are lost, requests are refused half-way, and
 * callbacks make more requests. This file plays the ZooKeeper client, and asserts the rules for its
 * use, which the real client does not check.
 *
 * In every run each request is answered once, in order, never from inside submit() or
 * prepare(), UNKNOWN only after disconnected(), and all memory is freed.
 */
#include "port/ensemble_zookeeper.h"
#include "memory.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <utlist.h>

#include <cmocka.h>

#include <zookeeper/zookeeper.h>

/* ---- the client ---- */

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

struct _zhandle {
	watcher_fn watcher;
	void *ctx;
	int state;
	int fds[2];     /* the port's end, and the server's */
	bool silent;    /* the connection is lost, and the port was not told yet */
	bool numeric;   /* it looks up no names */
	bool authentic; /* credentials were added */
	struct pending *pending;
	clientid_t id;
	char servers[128];
};

/* Of the client: between two connections. */
#define NO_SOCKET 0

/* What happens to the next request; HALF_WAY: refused after it was noted. */
enum how { TAKE, REFUSE, REFUSE_HALF_WAY };
static enum how next_request;
static zhandle_t *current;
static int next_code = ZOK; /* of the next answer */
static bool no_socket;      /* interest fails, and gives the number of a closed socket */
static bool noticed;        /* interest notices a lost connection, and reports it at once */
static bool quiet;          /* logs nothing */

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
	pending = calloc(1, sizeof(*pending));
	assert_non_null(pending);
	*pending = (struct pending){.form = form, .fn = fn, .data = data};
	DL_APPEND(zh->pending, pending);
	if (how == REFUSE_HALF_WAY)
		return ZMARSHALLINGERROR;
	assert_int_equal(send(zh->fds[1], "", 1, MSG_DONTWAIT), 1);
	return ZOK;
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
	(void)path, (void)buffer, (void)buflen, (void)version;
	return TAKE_REQUEST(FORM_STAT);
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
	(void)ops;
	for (int i = 0; i < count; i++)
		results[i].value = NULL;
	return TAKE_REQUEST(FORM_VOID);
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
	(void)path, (void)value, (void)valuelen, (void)acl_entries, (void)mode;
	op->type = ZOO_CREATE_OP;
	op->create_op.buf = buffer;
	op->create_op.buflen = buflen;
}

void zoo_delete_op_init(zoo_op_t *op, const char *path, int version)
{
	(void)path, (void)version;
	op->type = ZOO_DELETE_OP;
}

void zoo_set_op_init(zoo_op_t *op, const char *path, const char *buffer, int buflen, int version,
                     struct Stat *stat)
{
	(void)path, (void)buffer, (void)buflen, (void)version, (void)stat;
	op->type = ZOO_SETDATA_OP;
}

void zoo_check_op_init(zoo_op_t *op, const char *path, int version)
{
	(void)path, (void)version;
	op->type = ZOO_CHECK_OP;
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

/* ---- an engine ---- */

#define REQUESTS 400
#define OP(...) (&(struct ensemble_op){__VA_ARGS__})

struct asked {
	unsigned number;
	bool answered;
};

static struct asked asked[REQUESTS];
static unsigned asked_count, answered_count, last_answered;
static unsigned inside, connections, disconnections, sessions;
static bool told_connected;
static struct ensemble *port_of_test;
static int64_t now_us;
static long in_trouble; /* allocations until everything heals */

static void ask(unsigned kind);

static void answered(void *ctx, const struct ensemble_answer *answer)
{
	struct asked *this = ctx;

	assert_int_equal(inside, 0);
	assert_false(this->answered);
	this->answered = true;
	assert_true(this->number == 0 || this->number > last_answered);
	last_answered = this->number;
	answered_count++;
	if (answer->result == ENSEMBLE_UNKNOWN)
		assert_false(told_connected);
	else
		assert_true(answer->result == ENSEMBLE_OK || answer->result == ENSEMBLE_GONE);
	/* The answer causes another request, as long as there is room. */
	if (this->number % 5 == 0 && asked_count < REQUESTS / 2)
		ask(this->number / 5);
}

static void ask(unsigned kind)
{
	struct ensemble_op ops[] = {
		{.kind = ENSEMBLE_CREATE,
	         .path = "/a",
	         .data = "x",
	         .data_len = 1,
	         .ephemeral = true},
		{.kind = ENSEMBLE_DELETE, .path = "/a", .version = ENSEMBLE_ANY_VERSION},
		{.kind = ENSEMBLE_SET, .path = "/a", .data = "x", .data_len = 1},
		{.kind = ENSEMBLE_GET, .path = "/a", .watch = true},
		{.kind = ENSEMBLE_CHILDREN, .path = "/a"},
		{.kind = ENSEMBLE_SYNC, .path = "/a"},
	};
	struct asked *this = &asked[asked_count];

	assert_true(asked_count < REQUESTS);
	*this = (struct asked){.number = asked_count++};
	inside++;
	if (kind % 7 == 6)
		port_of_test->port->submit(port_of_test, ops, 3, answered, this);
	else
		port_of_test->port->submit(port_of_test, &ops[kind % 7], 1, answered, this);
	inside--;
}

static void connected(void *ctx, const struct ensemble_session *session, int64_t timeout_us,
                      int64_t connect_us)
{
	(void)ctx, (void)timeout_us, (void)connect_us;
	assert_int_equal(session->id, 7);
	assert_false(told_connected);
	assert_int_equal(inside, 0);
	told_connected = true;
	connections++;
	for (unsigned i = 0; i < 4 && asked_count < REQUESTS / 2; i++)
		ask(i + connections);
}

static void disconnected(void *ctx)
{
	(void)ctx;
	assert_true(told_connected);
	assert_int_equal(inside, 0);
	told_connected = false;
	disconnections++;
}

static void ended(void *ctx, bool refused)
{
	(void)ctx;
	assert_false(refused);
	told_connected = false;
	sessions++;
}

static void changed(void *ctx, const char *path, enum ensemble_change change)
{
	(void)ctx, (void)path, (void)change;
	fail_msg("nothing is changed here");
}

static void turned_away(void *ctx, const char *server)
{
	(void)ctx;
	(void)server;
}

static const struct ensemble_events events = {
	.connected = connected,
	.disconnected = disconnected,
	.turned_away = turned_away,
	.ended = ended,
	.changed = changed,
};

static int64_t clock_us(void *ctx)
{
	(void)ctx;
	return now_us += 1000;
}

static void turn(void)
{
	static const short said[] = {POLLIN, POLLHUP, POLLERR};
	static unsigned turns;
	struct pollfd pollfd;

	bool none = no_socket || (noticed && current->silent);

	inside++;
	port_of_test->port->prepare(port_of_test, &pollfd);
	inside--;
	assert_int_equal(pollfd.fd, none ? -1 : current->fds[0]);
	port_of_test->port->process(port_of_test, (short)(none ? 0 : said[turns++ % 3]));
}

/* Connects; makes requests, loses connections with and without an event, is refused requests; then
 * the trouble ends. */
static void play(long fail_at, int64_t spell_us, bool patchy)
{
	memory_start(fail_at, spell_us, patchy, &now_us, 0);
	asked_count = answered_count = last_answered = 0;
	connections = disconnections = sessions = 0;
	told_connected = false;
	next_request = TAKE;
	if (ensemble_zookeeper_create("127.0.0.1:1,127.0.0.1:2", "user:password", clock_us, NULL,
	                              &port_of_test) < 0) {
		assert_int_equal(memory_alive(), 0);
		return;
	}
	assert_int_equal(port_of_test->port->open(port_of_test, 15000000, NULL, &events, NULL), 0);
	ask(0); /* before there is a connection */
	for (unsigned step = 0; step < 60; step++) {
		turn();
		for (unsigned i = 0; i < step % 5; i++)
			ask(step + i);
		if (step % 13 == 7)
			current->silent = true;
		else if (step % 13 == 12)
			shutdown(current->fds[1], SHUT_RDWR);
		next_request = step % 6 == 4 ? REFUSE_HALF_WAY : step % 6 == 1 ? REFUSE : TAKE;
		no_socket = step % 17 == 5;
		noticed = step > 30;
	}
	in_trouble = memory_count();
	now_us += 1000000000; /* the spell is over */
	for (unsigned step = 0; step < 20; step++) {
		/* The last trouble is a refused request, which only the port notices. */
		next_request = step == 10 ? REFUSE : TAKE;
		if (step == 10)
			ask(0);
		turn();
	}
	assert_int_equal(answered_count, asked_count);
	assert_true(told_connected);
	assert_true(connections > 3);
	assert_int_equal(connections, disconnections + 1);
	assert_int_equal(sessions, 0);
	for (unsigned i = 0; i < 8; i++)
		ask(i);
	assert_int_equal(ensemble_zookeeper_move(port_of_test, "127.0.0.1:3"), 0);
	port_of_test->port->close(port_of_test, true);
	assert_int_equal(answered_count, asked_count);
	ensemble_zookeeper_destroy(port_of_test);
	assert_int_equal(memory_alive(), 0);
}

static void with_memory(void **state)
{
	(void)state;
	play(0, 0, false);
	assert_true(memory_count() > 150);
}

static void without_memory(void **state)
{
	long all;

	(void)state;
	play(0, 0, false);
	all = in_trouble;
	for (long k = 1; k <= all; k++) {
		play(k, 0, false);
		play(k, 20000, false);
		play(k, 500000000, false);
		play(k, 500000000, true);
	}
}

/* ---- result codes ---- */

static bool told_over, told_refused;

static void over(void *ctx, bool refused)
{
	(void)ctx;
	told_connected = false;
	told_over = !refused;
	told_refused = refused;
}

static const struct ensemble_events coded_events = {
	.connected = connected,
	.disconnected = disconnected,
	.turned_away = turned_away,
	.ended = over,
	.changed = changed,
};

static void coded(void *ctx, const struct ensemble_answer *answer)
{
	*(enum ensemble_result *)ctx = answer->result;
}

/* The server says "again": the connection is given up, so that the order of requests stays. */
static bool gives_up(int code)
{
	return code == ZTHROTTLEDOP || code == ZNOTREADONLY;
}

/* It takes no credentials, or not these: the session may live, and what was asked may be done. */
static bool refuses(int code)
{
	return code == ZAUTHFAILED || code == ZSESSIONCLOSEDREQUIRESASLAUTH;
}

/* The server says that the session is over: that may be wrong, and what was asked may be done. */
static bool ends(int code)
{
	return code == ZSESSIONEXPIRED || code == ZSESSIONMOVED || code == ZINVALIDSTATE ||
	       code == ZCLOSING;
}

/* Each code means: done, not done, or perhaps done. */
static void what_codes_mean(void **state)
{
	static const struct {
		int code;
		enum ensemble_result result;
	} rows[] = {
		{ZOK, ENSEMBLE_OK},
		{ZNONODE, ENSEMBLE_NONODE},
		{ZNODEEXISTS, ENSEMBLE_EXISTS},
		{ZNOTEMPTY, ENSEMBLE_NOTEMPTY},
		{ZBADVERSION, ENSEMBLE_BADVERSION},
		{ZNOCHILDRENFOREPHEMERALS, ENSEMBLE_NOCHILDREN},
		{ZNOAUTH, ENSEMBLE_NOAUTH},
		{ZBADARGUMENTS, ENSEMBLE_INVALID},
		{ZINVALIDACL, ENSEMBLE_INVALID},
		{-1, ENSEMBLE_UNKNOWN},
		{-2, ENSEMBLE_UNKNOWN},
		{-4, ENSEMBLE_UNKNOWN},
		{-5, ENSEMBLE_UNKNOWN},
		{-7, ENSEMBLE_UNKNOWN},
		{-112, ENSEMBLE_UNKNOWN},
		{-118, ENSEMBLE_UNKNOWN},
		{-9, ENSEMBLE_UNKNOWN},
		{-115, ENSEMBLE_UNKNOWN},
		{-116, ENSEMBLE_UNKNOWN},
		{-124, ENSEMBLE_UNKNOWN},
		{ZUNIMPLEMENTED, ENSEMBLE_REFUSED},
		{-125, ENSEMBLE_REFUSED},
		{-120, ENSEMBLE_REFUSED},
		{-15, ENSEMBLE_UNKNOWN},
		{-119, ENSEMBLE_UNKNOWN},
		{-127, ENSEMBLE_UNKNOWN},
		{-999, ENSEMBLE_REFUSED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const int none = -1;
		enum ensemble_result result = (enum ensemble_result)none;

		memory_start(0, 0, false, &now_us, 0);
		asked_count = REQUESTS; /* no other requests */
		told_connected = told_over = told_refused = false;
		assert_int_equal(ensemble_zookeeper_create("127.0.0.1:1", "user:password", clock_us,
		                                           NULL, &port_of_test),
		                 0);
		assert_int_equal(
			port_of_test->port->open(port_of_test, 15000000, NULL, &coded_events, NULL),
			0);
		assert_true(current->authentic);
		turn();
		assert_true(told_connected);
		port_of_test->port->submit(
			port_of_test,
			OP(.kind = ENSEMBLE_DELETE, .path = "/a", .version = ENSEMBLE_ANY_VERSION),
			1, coded, &result);
		next_code = rows[i].code;
		turn();
		next_code = ZOK;
		if (result != rows[i].result)
			fail_msg("%d is taken for %d and not %d", rows[i].code, (int)result,
			         (int)rows[i].result);
		assert_int_equal(told_connected, !ends(rows[i].code) && !gives_up(rows[i].code) &&
		                                         !refuses(rows[i].code));
		assert_int_equal(told_over, ends(rows[i].code));
		assert_int_equal(told_refused, refuses(rows[i].code));
		assert_int_equal(port_of_test->port->given_up(port_of_test) != NULL,
		                 gives_up(rows[i].code));
		port_of_test->port->close(port_of_test, true);
		ensemble_zookeeper_destroy(port_of_test);
		assert_int_equal(memory_alive(), 0);
	}
}

/* ---- other servers ---- */

static void move(const char *servers)
{
	assert_int_equal(ensemble_zookeeper_move(port_of_test, servers), 0);
}

static void lose_and_find(void)
{
	unsigned before = connections;

	shutdown(current->fds[1], SHUT_RDWR);
	for (int i = 0; i < 10 && connections == before; i++)
		turn();
	assert_int_equal(connections, before + 1);
}

/* The client gets them as soon as it has no connection, also lists that it would take for the one
 * that it has. The session, and a connection that is good, are kept. */
static void other_servers(void **state)
{
	zhandle_t *handle;

	(void)state;
	memory_start(0, 0, false, &now_us, 0);
	asked_count = REQUESTS; /* no other requests */
	told_connected = false;
	connections = disconnections = 0;
	assert_int_equal(ensemble_zookeeper_create("10.0.0.1:1,10.0.0.2:1", NULL, clock_us, NULL,
	                                           &port_of_test),
	                 0);
	move("10.0.0.1:1,10.0.0.2:2");
	assert_int_equal(
		port_of_test->port->open(port_of_test, 15000000, NULL, &coded_events, NULL), 0);
	handle = current;
	assert_string_equal(current->servers, "10.0.0.1:1,10.0.0.2:2,10.0.0.1:1");
	turn();
	assert_true(told_connected);

	move("10.0.0.1:1,10.0.0.2:2,10.0.0.3:3");
	for (int i = 0; i < 5; i++)
		turn();
	assert_int_equal(disconnections, 0);
	assert_string_equal(current->servers, "10.0.0.1:1,10.0.0.2:2,10.0.0.1:1");
	lose_and_find();
	assert_string_equal(current->servers, "10.0.0.1:1,10.0.0.2:2,10.0.0.3:3");

	move("10.0.0.1:3,10.0.0.2:2,10.0.0.3:1");
	move("10.0.0.1:2,10.0.0.2:3,10.0.0.3:1");
	lose_and_find();
	assert_string_equal(current->servers, "10.0.0.1:2,10.0.0.2:3,10.0.0.3:1");

	move("[::1]:7");
	lose_and_find();
	assert_string_equal(current->servers, "::1:7");

	/* While it looks for a server: that attempt is given up. */
	shutdown(current->fds[1], SHUT_RDWR);
	turn();
	assert_int_equal(disconnections, 4);
	move("10.0.0.4:4");
	for (int i = 0; i < 10 && connections < 5; i++)
		turn();
	assert_string_equal(current->servers, "10.0.0.4:4");
	assert_ptr_equal(current, handle);
	port_of_test->port->close(port_of_test, true);
	ensemble_zookeeper_destroy(port_of_test);
	assert_int_equal(memory_alive(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_codes_mean),
		cmocka_unit_test(other_servers),
		cmocka_unit_test(with_memory),
		cmocka_unit_test(without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
