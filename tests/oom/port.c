/* SPDX-License-Identifier: MIT
 *
 * The port without memory: every allocation of the port fails in turn, once, for a while, or until
 * the end of the trouble. Meanwhile connections are lost, requests are refused half-way, and
 * callbacks make more requests. client.h plays the ZooKeeper client.
 *
 * In every run each request is answered once, in order, never from inside submit() or
 * prepare(), UNKNOWN only after disconnected(), and all memory is freed.
 */
#include "port/ensemble_zookeeper.h"
#include "client.h"
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
	port_of_test->port->flush(port_of_test);
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
