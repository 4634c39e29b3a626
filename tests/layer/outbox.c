/* SPDX-License-Identifier: MIT
 *
 * The outbox: no request leaves before outbox_send(), and requests that are kept when the
 * connection ends never leave.
 */
#include "port/outbox.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Below: a port that writes down the requests, and answers none by itself. */
static struct ensemble below;
static const struct ensemble_events *events;
static void *events_ctx;
static char seen[4096];  /* by the port below */
static char heard[4096]; /* by the user above */
static struct outbox *box;
static bool asks_again;       /* the next answer function asks again */
static void (*happens)(void); /* called inside the next process() */

static void note(char *where, const char *text)
{
	size_t len = strlen(where);

	snprintf(where + len, sizeof(seen) - len, "%s%s", len ? ", " : "", text);
}

static void expect_text(char *where, const char *text)
{
	assert_string_equal(where, text);
	where[0] = '\0';
}

static int below_open(struct ensemble *ensemble, int64_t timeout_us,
                      const struct ensemble_session *session, const struct ensemble_events *told,
                      void *ctx)
{
	(void)ensemble;
	(void)timeout_us;
	(void)session;
	events = told;
	events_ctx = ctx;
	return 0;
}

static void below_close(struct ensemble *ensemble, bool end_session)
{
	(void)ensemble;
	note(seen, end_session ? "farewell" : "close");
}

static void below_rest(struct ensemble *ensemble)
{
	(void)ensemble;
	note(seen, "rest");
}

static void below_drop(struct ensemble *ensemble)
{
	(void)ensemble;
	note(seen, "drop");
}

static void below_submit(struct ensemble *ensemble, const struct ensemble_op *ops, int count,
                         ensemble_answer_fn *answer, void *ctx)
{
	(void)ensemble;
	(void)answer;
	(void)ctx;
	for (int i = 0; i < count; i++) {
		char text[200];

		snprintf(text, sizeof(text), "%s%s=%.*s", i ? "+" : "", ops[i].path,
		         ops[i].data_len > 40 ? 0 : ops[i].data_len,
		         ops[i].data ? (const char *)ops[i].data : "");
		note(seen, text);
	}
}

static int64_t below_prepare(struct ensemble *ensemble, struct pollfd *ret_pollfd)
{
	(void)ensemble;
	*ret_pollfd = (struct pollfd){.fd = -1};
	return 77;
}

static void below_process(struct ensemble *ensemble, short revents)
{
	void (*now)(void) = happens;

	(void)ensemble;
	(void)revents;
	happens = NULL;
	if (now)
		now();
}

static const struct ensemble_port port = {
	.open = below_open,
	.close = below_close,
	.rest = below_rest,
	.drop = below_drop,
	.submit = below_submit,
	.prepare = below_prepare,
	.process = below_process,
};

/* Above: the user of the outbox. */

static void connected(void *ctx, const struct ensemble_session *session, int64_t timeout_us,
                      int64_t connect_us)
{
	(void)ctx;
	(void)session;
	(void)timeout_us;
	(void)connect_us;
	note(heard, "connected");
}

static void disconnected(void *ctx)
{
	(void)ctx;
	note(heard, "disconnected");
}

static void ended(void *ctx, bool refused)
{
	(void)ctx;
	(void)refused;
	note(heard, "ended");
}

static const struct ensemble_events above = {
	.connected = connected, .disconnected = disconnected, .ended = ended};

static void process(void (*what)(void))
{
	happens = what;
	box->ensemble.port->process(&box->ensemble, 0);
}

static void connects(void)
{
	events->connected(events_ctx, &(struct ensemble_session){.id = 1}, 1000, 0);
}

static void disconnects(void)
{
	events->disconnected(events_ctx);
}

static void ends(void)
{
	events->ended(events_ctx, false);
}

static void is_refused(void)
{
	events->ended(events_ctx, true);
}

static void reconnects(void)
{
	disconnects();
	connects();
}

static void ask(const char *path);

static void answered(void *ctx, const struct ensemble_answer *answer)
{
	char text[80];

	snprintf(text, sizeof(text), "%s:%s", (const char *)ctx,
	         answer->result == ENSEMBLE_UNKNOWN ? "unknown"
	         : answer->result == ENSEMBLE_GONE  ? "gone"
	                                            : "?");
	note(heard, text);
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
	box->ensemble.port->submit(&box->ensemble, &op, 1, answered, (void *)path);
	memset(copy, '#', sizeof(copy) - 1);
	memset(data, '#', sizeof(data) - 1);
}

static int set_up(void **state)
{
	(void)state;
	below.port = &port;
	box = calloc(1, sizeof(*box));
	assert_non_null(box);
	assert_int_equal(outbox_begin(box, &below), 0);
	box->ensemble.port->open(&box->ensemble, 1000, NULL, &above, NULL);
	process(connects);
	expect_text(heard, "connected");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	box->ensemble.port->close(&box->ensemble, false);
	outbox_finish(box);
	free(box);
	seen[0] = heard[0] = '\0';
	return 0;
}

static int64_t wait_us(void)
{
	struct pollfd pollfd;

	return box->ensemble.port->prepare(&box->ensemble, &pollfd);
}

static void in_order(void **state)
{
	(void)state;
	ask("a");
	ask("b");
	process(NULL);
	ask("c");
	expect_text(seen, "");
	assert_false(outbox_is_empty(box));
	assert_int_equal(wait_us(), 0);
	outbox_send(box);
	assert_true(outbox_is_empty(box));
	assert_int_equal(wait_us(), 77);
	expect_text(seen, "a=data, b=data, c=data");
	outbox_send(box);
	expect_text(seen, "");
	expect_text(heard, "");
}

static void transaction(void **state)
{
	struct ensemble_op ops[] = {ensemble_delete("a", 1), ensemble_create("b", "x", 1),
	                            ensemble_create("c", NULL, 0), ensemble_create("d", "", 0)};

	(void)state;
	box->ensemble.port->submit(&box->ensemble, ops, 4, answered, NULL);
	outbox_send(box);
	expect_text(seen, "a=, +b=x, +c=, +d=");
}

/* More requests than one piece of memory holds, and then a small one. */
static void many(void **state)
{
	static char large[60000];
	struct ensemble_op op = ensemble_set("large", large, sizeof(large), 1);

	(void)state;
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 5; i++)
			box->ensemble.port->submit(&box->ensemble, &op, 1, answered, NULL);
		ask("z");
		outbox_send(box);
		expect_text(seen, "large=, large=, large=, large=, large=, z=data");
	}
}

/* A kept request is answered after disconnected(), as if it had been sent, and never leaves. */
static void disconnected_before(void **state)
{
	(void)state;
	ask("a");
	process(disconnects);
	expect_text(heard, "disconnected, a:unknown");
	outbox_send(box);
	ask("b");
	asks_again = true;
	outbox_send(box);
	assert_int_equal(wait_us(), 0);
	process(NULL);
	expect_text(heard, "b:unknown, again:unknown");
	process(connects);
	outbox_send(box);
	expect_text(seen, "");
	expect_text(heard, "connected");
	ask("c");
	outbox_send(box);
	expect_text(seen, "c=data");
}

static void asks_when_connected(void *ctx, const struct ensemble_session *session,
                                int64_t timeout_us, int64_t connect_us)
{
	connected(ctx, session, timeout_us, connect_us);
	ask("barrier");
}

/* The connection ends and a new one begins within one process(): only requests that were
 * submitted on the new connection leave. */
static void reconnected_before(void **state)
{
	static const struct ensemble_events eager = {
		.connected = asks_when_connected, .disconnected = disconnected, .ended = ended};

	(void)state;
	box->events = &eager;
	ask("a");
	process(reconnects);
	expect_text(heard, "disconnected, a:unknown, connected");
	outbox_send(box);
	expect_text(seen, "barrier=data");
}

static void ended_before(void **state)
{
	(void)state;
	ask("a");
	process(ends); /* so a server says: what was kept may be asked again */
	expect_text(heard, "a:unknown, ended");
	ask("b");
	outbox_send(box);
	process(NULL);
	expect_text(heard, "b:gone");
	expect_text(seen, "");
}

/* Refused elsewhere: it may live on at home, with all that it has made. */
static void refused_before(void **state)
{
	(void)state;
	ask("a");
	process(is_refused);
	expect_text(heard, "a:unknown, ended");
	ask("b");
	outbox_send(box);
	process(NULL);
	expect_text(heard, "b:unknown");
}

/* The session goes on in another client: a kept request has not been done, and the session's nodes
 * are not gone. */
static void rested_before(void **state)
{
	(void)state;
	process(disconnects);
	ask("a");
	box->ensemble.port->rest(&box->ensemble);
	expect_text(seen, "rest");
	expect_text(heard, "disconnected");
	process(NULL);
	expect_text(heard, "a:unknown");
	outbox_send(box);
	expect_text(seen, "");
}

static void closed_before(void **state)
{
	(void)state;
	ask("a");
	asks_again = true;
	box->ensemble.port->close(&box->ensemble, true);
	expect_text(heard, "a:gone, again:gone");
	expect_text(seen, "farewell");
	assert_true(outbox_is_empty(box));
}

/* As if there had been no memory for this request. */
static void leave_out(const char *path)
{
	box->reserve[0].answer = answered;
	box->reserve[0].ctx = (void *)path;
	box->reserve_used = 1;
}

/* The connection is given up once, and nothing leaves until it has ended. */
static void no_memory(void **state)
{
	(void)state;
	ask("a");
	leave_out("b");
	ask("c");
	ask("d");
	expect_text(seen, "drop");
	outbox_send(box);
	expect_text(seen, "");
	process(disconnects);
	expect_text(heard, "disconnected, a:unknown, b:unknown, c:unknown, d:unknown");
	leave_out("e");
	asks_again = true;
	process(NULL);
	expect_text(heard, "e:unknown, again:unknown");
	assert_true(outbox_is_empty(box));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(in_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(transaction, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(disconnected_before, set_up, tear_down),
		cmocka_unit_test_setup_teardown(reconnected_before, set_up, tear_down),
		cmocka_unit_test_setup_teardown(ended_before, set_up, tear_down),
		cmocka_unit_test_setup_teardown(refused_before, set_up, tear_down),
		cmocka_unit_test_setup_teardown(rested_before, set_up, tear_down),
		cmocka_unit_test_setup_teardown(closed_before, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_memory, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
