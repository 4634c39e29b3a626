/* SPDX-License-Identifier: MIT
 *
 * The port to ZooKeeper, with a client that is played: no request leaves before flush(), and
 * requests that are kept when the connection ends never leave. Each has one answer, in order.
 */
#include "port/ensemble_zookeeper.h"
#include "client.h"
#include "unit.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static struct ensemble *port;
static char heard[1024]; /* by the owner of the port */
static bool asks_again;  /* the next answer function asks again */
static bool is_eager;    /* asks when it is connected */
static int64_t now_us;

static void expect_text(char *where, const char *text)
{
	assert_string_equal(where, text);
	where[0] = '\0';
}

static void hear(const char *text, const char *more)
{
	size_t len = strlen(heard);

	snprintf(heard + len, sizeof(heard) - len, "%s%s%s", len ? ", " : "", text, more);
}

static void ask(const char *path);

static void answered(void *ctx, const struct ensemble_answer *answer)
{
	hear(ctx, answer->result == ENSEMBLE_OK        ? ":ok"
	          : answer->result == ENSEMBLE_UNKNOWN ? ":unknown"
	          : answer->result == ENSEMBLE_GONE    ? ":gone"
	                                               : ":?");
	if (asks_again) {
		asks_again = false;
		ask("again");
	}
}

/* The texts of the request are spoilt at once. */
static void ask(const char *path)
{
	char copy[40], data[] = "data";
	struct ensemble_op op;

	snprintf(copy, sizeof(copy), "%s", path);
	op = ensemble_set(copy, data, 4, 1);
	port->port->submit(port, &op, 1, answered, (void *)path);
	memset(copy, '#', sizeof(copy) - 1);
	memset(data, '#', sizeof(data) - 1);
}

static void connected(void *ctx, const struct ensemble_session *session, int64_t timeout_us,
                      int64_t connect_us)
{
	(void)ctx, (void)session, (void)timeout_us, (void)connect_us;
	hear("connected", "");
	if (is_eager)
		ask("barrier");
}

static void disconnected(void *ctx)
{
	(void)ctx;
	hear("disconnected", "");
}

static void turned_away(void *ctx, const char *server)
{
	(void)ctx, (void)server;
}

static void ended(void *ctx, bool refused)
{
	(void)ctx;
	hear(refused ? "refused" : "ended", "");
	if (is_eager)
		ask("at once");
}

static void changed(void *ctx, const char *path, enum ensemble_change change)
{
	(void)ctx, (void)path, (void)change;
}

static int64_t clock_us(void *ctx)
{
	(void)ctx;
	return now_us += 1000;
}

static void flush(void)
{
	port->port->flush(port);
}

static int64_t prepare(void)
{
	struct pollfd pollfd;

	return port->port->prepare(port, &pollfd);
}

static void process(void)
{
	port->port->process(port, POLLIN);
}

static void open_port(void)
{
	static const struct ensemble_events events = {
		.connected = connected,
		.disconnected = disconnected,
		.turned_away = turned_away,
		.ended = ended,
		.changed = changed,
	};

	assert_int_equal(port->port->open(port, 15000000, NULL, &events, NULL), 0);
}

static void connects(void)
{
	(void)prepare();
	process();
}

static int set_up(void **state)
{
	(void)state;
	asks_again = is_eager = false;
	client_saw[0] = heard[0] = '\0';
	assert_int_equal(ensemble_zookeeper_create("127.0.0.1:1", NULL, clock_us, NULL, &port), 0);
	open_port();
	connects();
	expect_text(heard, "connected");
	(void)prepare();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	port->port->close(port, false);
	ensemble_zookeeper_destroy(port);
	return 0;
}

static void in_order(void **state)
{
	(void)state;
	ask("a");
	ask("b");
	process();
	ask("c");
	expect_text(client_saw, "");
	assert_int_equal(prepare(), 0);
	flush();
	expect_text(client_saw, "a=data, b=data, c=data");
	assert_true(prepare() > 0);
	flush();
	expect_text(client_saw, "");
	expect_text(heard, "");
	process();
	expect_text(heard, "a:ok, b:ok, c:ok");
}

static void named(void *ctx, const struct ensemble_answer *answer)
{
	(void)ctx;
	assert_int_equal(answer->result, ENSEMBLE_OK);
	for (int i = 0; i < 4; i++)
		hear(answer->paths[i] ? answer->paths[i] : "-", "");
}

/* The client has room for the name of each new node. */
static void transaction(void **state)
{
	struct ensemble_op ops[] = {ensemble_delete("a", 1), ensemble_create("b", "x", 1),
	                            ensemble_create("c", NULL, 0), ensemble_create("d", "", 0)};

	(void)state;
	port->port->submit(port, ops, 4, named, NULL);
	flush();
	expect_text(client_saw, "a=+b=x+c=+d=");
	process();
	expect_text(heard, "-, b0123456789, c0123456789, d0123456789");
}

/* A kept request is answered after disconnected(), as if it had been sent, and never leaves. */
static void disconnected_before(void **state)
{
	(void)state;
	ask("sent");
	flush();
	expect_text(client_saw, "sent=data");
	ask("a");
	current->silent = asks_again = true;
	process();
	expect_text(heard, "disconnected, sent:unknown, a:unknown, again:unknown");
	ask("b");
	asks_again = true;
	flush();
	assert_int_equal(prepare(), 0);
	process();
	expect_text(heard, "b:unknown, again:unknown, connected");
	flush();
	expect_text(client_saw, "");
	ask("c");
	flush();
	expect_text(client_saw, "c=data");
}

/* The connection ends and a new one begins within one process(): only requests that were
 * submitted on the new connection leave. */
static void reconnected_before(void **state)
{
	(void)state;
	is_eager = true;
	ask("a");
	current->state = ZOO_CONNECTING_STATE;
	process();
	expect_text(heard, "disconnected, a:unknown, connected");
	flush();
	expect_text(client_saw, "barrier=data");
	ask("b");
	current->silent = true;
	(void)prepare(); /* finds out by itself */
	ask("c");
	expect_text(heard, "");
	process();
	expect_text(heard, "disconnected, barrier:unknown, b:unknown, c:unknown");
}

static void ended_before(void **state)
{
	(void)state;
	ask("a");
	next_state = ZOO_EXPIRED_SESSION_STATE;
	is_eager = true;
	process(); /* so a server says: what was kept may be asked again */
	expect_text(heard, "disconnected, a:unknown, ended, at once:gone");
	ask("b");
	flush();
	process();
	expect_text(heard, "b:gone");
	expect_text(client_saw, "");
}

/* Refused elsewhere: it may live on at home, with all that it has made. */
static void refused_before(void **state)
{
	(void)state;
	ask("a");
	next_state = ZOO_AUTH_FAILED_STATE;
	is_eager = true;
	process();
	expect_text(heard, "disconnected, a:unknown, refused, at once:unknown");
	ask("b");
	flush();
	assert_int_equal(prepare(), 0);
	process();
	expect_text(heard, "b:unknown");
}

/* The session goes on in another client: a kept request has not been done, and the session's nodes
 * are not gone. */
static void rested_before(void **state)
{
	(void)state;
	current->silent = true;
	process();
	ask("a");
	port->port->rest(port);
	ask("b");
	expect_text(heard, "disconnected");
	assert_int_equal(prepare(), 0);
	process();
	expect_text(heard, "a:unknown, b:unknown");
	ask("c");
	open_port();
	connects();
	expect_text(heard, "c:unknown, connected");
	flush();
	expect_text(client_saw, "");
}

static void closed_before(void **state)
{
	(void)state;
	ask("a");
	flush();
	ask("b");
	asks_again = true;
	port->port->close(port, true);
	expect_text(heard, "a:gone, b:gone, again:gone");
	open_port();
	ask("c"); /* before there is a connection */
	port->port->close(port, true);
	expect_text(heard, "c:gone");
	ask("d");
	process();
	expect_text(heard, "d:gone");
	expect_text(client_saw, "a=data");
}

/* Nothing leaves behind a request that the client has refused. */
static void refused_by_the_client(void **state)
{
	(void)state;
	ask("sent");
	flush();
	expect_text(client_saw, "sent=data");
	for (int i = 0; i < 2; i++) {
		ask("a");
		ask("b");
		ask("c");
		next_request = i == 0 ? REFUSE : REFUSE_HALF_WAY;
		flush();
		expect_text(client_saw, "");
		expect_text(heard, "");
		process();
		expect_text(heard, i == 0 ? "disconnected, sent:unknown, a:unknown, b:unknown, "
		                            "c:unknown"
		                          : "disconnected, a:unknown, b:unknown, c:unknown");
		while (!heard[0])
			connects();
		expect_text(heard, "connected");
	}
}

static void ask_in_vain(const char *name)
{
	ask(name);
	next_request = REFUSE_FOR_GOOD;
	flush();
}

/* The client knows at once that a request is invalid. Its answer waits for those before it. */
static void invalid(void **state)
{
	(void)state;
	ask("a");
	flush();
	ask_in_vain("bad");
	ask("c");
	flush();
	expect_text(client_saw, "a=data, c=data");
	expect_text(heard, "");
	process();
	expect_text(heard, "a:ok, bad:?, c:ok");
	ask_in_vain("alone");
	assert_int_equal(prepare(), 0);
	process();
	expect_text(heard, "alone:?");
}

/* With the connection the order of answers is kept, too. */
static void invalid_and_cut(void **state)
{
	(void)state;
	ask("a");
	flush();
	ask_in_vain("bad");
	current->silent = true;
	process();
	expect_text(heard, "disconnected, a:unknown, bad:unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(in_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(transaction, set_up, tear_down),
		cmocka_unit_test_setup_teardown(disconnected_before, set_up, tear_down),
		cmocka_unit_test_setup_teardown(reconnected_before, set_up, tear_down),
		cmocka_unit_test_setup_teardown(ended_before, set_up, tear_down),
		cmocka_unit_test_setup_teardown(refused_before, set_up, tear_down),
		cmocka_unit_test_setup_teardown(rested_before, set_up, tear_down),
		cmocka_unit_test_setup_teardown(closed_before, set_up, tear_down),
		cmocka_unit_test_setup_teardown(refused_by_the_client, set_up, tear_down),
		cmocka_unit_test_setup_teardown(invalid, set_up, tear_down),
		cmocka_unit_test_setup_teardown(invalid_and_cut, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
