/* SPDX-License-Identifier: MIT
 *
 * test_world.c - the world keeps ZooKeeper's rules, and the wire keeps the
 * promises of the port; otherwise the simulation would prove nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "wire.h"
#include "world.h"

#define SECOND INT64_C(1000000)
#define TIMEOUT (10 * SECOND)
#define LOG_MAX 64

/* A client of the port that notes all answers and events. */
struct client {
	struct wire wire;
	struct bench *bench;
	bool paused;
	int64_t session, timeout_us, connect_us;
	int connects, disconnects, ends;
	int answers, sent;
	struct {
		enum ensemble_result result;
		char path[128], paths[4][128], data[64];
		int data_len, name_count;
		char names[16][64];
		struct ensemble_stat stat;
		int disconnects; /* before this answer */
		int ops;         /* of the transaction */
	} log[LOG_MAX];
	int changes;
	char changed[128];
	enum ensemble_change change;
	int answers_before_change;
};

struct bench {
	struct agenda agenda;
	struct world world;
	struct client client[2];
};

static int64_t clock_us(void *ctx)
{
	struct client *client = ctx;

	return client->bench->agenda.now_us;
}

static void wake(void *ctx)
{
	(void)ctx;
}

static void connected(void *ctx, const struct ensemble_session *session, int64_t timeout_us,
                      int64_t connect_us)
{
	struct client *client = ctx;

	client->connects++;
	client->session = session->id;
	client->timeout_us = timeout_us;
	client->connect_us = connect_us;
}

static void disconnected(void *ctx)
{
	((struct client *)ctx)->disconnects++;
}

static void ended(void *ctx, bool refused)
{
	struct client *client = ctx;

	assert_int_equal(refused, client->bench->world.config.refuse_session_ppm > 0);
	client->ends++;
}

static void changed(void *ctx, const char *path, enum ensemble_change change)
{
	struct client *client = ctx;

	client->changes++;
	snprintf(client->changed, sizeof(client->changed), "%s", path);
	client->change = change;
	client->answers_before_change = client->answers;
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

static void answered(void *ctx, const struct ensemble_answer *answer)
{
	struct client *client = ctx;
	int i = client->answers++;

	assert_true(i < LOG_MAX);
	assert_true(client->wire.inside || client->wire.state == WIRE_CLOSED);
	client->log[i].result = answer->result;
	client->log[i].disconnects = client->disconnects;
	if (answer->path)
		snprintf(client->log[i].path, sizeof(client->log[i].path), "%s", answer->path);
	for (int n = 0; answer->paths && n < client->log[i].ops; n++)
		if (answer->paths[n])
			snprintf(client->log[i].paths[n], sizeof(client->log[i].paths[n]), "%s",
			         answer->paths[n]);
	if (answer->data)
		memcpy(client->log[i].data, answer->data, (size_t)answer->data_len);
	client->log[i].data_len = answer->data_len;
	client->log[i].name_count = answer->name_count;
	for (int n = 0; n < answer->name_count && n < 16; n++)
		snprintf(client->log[i].names[n], sizeof(client->log[i].names[n]), "%s",
		         answer->names[n]);
	if (answer->stat)
		client->log[i].stat = *answer->stat;
}

/* The world goes on for so long; each client takes a turn every 10 ms. */
static void run(struct bench *bench, int64_t duration_us)
{
	int64_t until_us = bench->agenda.now_us + duration_us;
	struct pollfd pollfd;

	while (bench->agenda.now_us < until_us) {
		int64_t next_us = bench->agenda.now_us + 10000;

		while (bench->agenda.count && bench->agenda.heap[0].when_us <= next_us)
			agenda_step(&bench->agenda);
		bench->agenda.now_us = next_us;
		for (int i = 0; i < 2; i++) {
			struct client *client = &bench->client[i];

			if (client->paused || client->wire.state == WIRE_CLOSED)
				continue;
			client->wire.ensemble.port->prepare(&client->wire.ensemble, &pollfd);
			client->wire.ensemble.port->process(&client->wire.ensemble, POLLIN);
		}
	}
}

static void submit(struct client *client, const struct ensemble_op *ops, int count)
{
	int before = client->answers;

	client->log[client->sent++].ops = count;
	client->wire.ensemble.port->submit(&client->wire.ensemble, ops, count, answered, client);
	client->wire.ensemble.port->flush(&client->wire.ensemble);
	assert_int_equal(client->answers, before);
}

/* It is not sent. */
static void keep(struct client *client, const char *path)
{
	struct ensemble_op op = ensemble_create(path, NULL, 0);

	client->sent++;
	client->wire.ensemble.port->submit(&client->wire.ensemble, &op, 1, answered, client);
}

static void flush(struct client *client)
{
	client->wire.ensemble.port->flush(&client->wire.ensemble);
}

#define SUBMIT(client, ...) submit(client, OP(__VA_ARGS__, ANY), 1)
#define ANY .version = ENSEMBLE_ANY_VERSION
#define LAST(client) (client)->log[(client)->answers - 1]

static struct bench *begin(int servers, uint64_t seed)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	struct world_config config = {.servers = servers,
	                              .tick_us = 2 * SECOND,
	                              .delay_max_us = 2000,
	                              .commit_max_us = 2000};

	agenda_init(&bench->agenda, 100 * SECOND);
	world_init(&bench->world, &bench->agenda, (struct rng){seed}, &config);
	for (int i = 0; i < 2; i++) {
		struct client *client = &bench->client[i];

		client->bench = bench;
		wire_init(&client->wire, &bench->world, (struct rng){seed + 17 + (uint64_t)i},
		          clock_us, wake, client);
		assert_int_equal(client->wire.ensemble.port->open(&client->wire.ensemble, TIMEOUT,
		                                                  NULL, &events, client),
		                 0);
	}
	run(bench, SECOND);
	assert_int_equal(bench->client[0].connects, 1);
	assert_int_equal(bench->client[1].connects, 1);
	return bench;
}

static void finish(struct bench *bench)
{
	for (int i = 0; i < 2; i++)
		wire_finish(&bench->client[i].wire);
	world_finish(&bench->world);
	agenda_finish(&bench->agenda);
	free(bench);
}

/* ---- nodes ---- */

static void test_errors(void **state)
{
	struct bench *bench = begin(1, 1);
	struct client *client = &bench->client[0];

	(void)state;
	SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = "/a/b");
	SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = "/a");
	SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = "/a");
	SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = "/a/e", .ephemeral = true, .data = "xy",
	       .data_len = 2);
	SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = "/a/e/f");
	SUBMIT(client, .kind = ENSEMBLE_DELETE, .path = "/a");
	submit(client, OP(.kind = ENSEMBLE_SET, .path = "/a/e", .version = 3), 1);
	SUBMIT(client, .kind = ENSEMBLE_GET, .path = "/a/e");
	SUBMIT(client, .kind = ENSEMBLE_GET, .path = "/nowhere");
	SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = "a//b");
	run(bench, SECOND);
	assert_int_equal(client->answers, 10);
	assert_int_equal(client->log[0].result, ENSEMBLE_NONODE);
	assert_int_equal(client->log[1].result, ENSEMBLE_OK);
	assert_int_equal(client->log[2].result, ENSEMBLE_EXISTS);
	assert_int_equal(client->log[3].result, ENSEMBLE_OK);
	assert_int_equal(client->log[4].result, ENSEMBLE_NOCHILDREN);
	assert_int_equal(client->log[5].result, ENSEMBLE_NOTEMPTY);
	assert_int_equal(client->log[6].result, ENSEMBLE_BADVERSION);
	assert_int_equal(client->log[7].result, ENSEMBLE_OK);
	assert_memory_equal(client->log[7].data, "xy", 2);
	assert_int_equal(client->log[7].stat.ephemeral_owner, client->session);
	assert_int_equal(client->log[7].stat.czxid, client->log[3].stat.czxid);
	assert_int_equal(client->log[8].result, ENSEMBLE_NONODE);
	assert_int_equal(client->log[9].result, ENSEMBLE_INVALID);
	finish(bench);
}

static void test_sequence(void **state)
{
	struct bench *bench = begin(3, 2);
	struct client *client = &bench->client[0];

	(void)state;
	SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = "/a");
	run(bench, SECOND);
	for (int i = 0; i < 3; i++)
		SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = "/a/n-", .sequence = true,
		       .ephemeral = true);
	SUBMIT(client, .kind = ENSEMBLE_DELETE, .path = "/a/n-0000000002");
	SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = "/a/n-", .sequence = true);
	SUBMIT(client, .kind = ENSEMBLE_CHILDREN, .path = "/a");
	run(bench, SECOND);
	assert_string_equal(client->log[1].path, "/a/n-0000000000");
	assert_string_equal(client->log[3].path, "/a/n-0000000002");
	assert_string_equal(client->log[5].path, "/a/n-0000000003");
	assert_true(client->log[3].stat.czxid < client->log[5].stat.czxid);
	/* A listing sent after a create shows the new node. */
	assert_int_equal(client->log[6].name_count, 3);
	/* After 2^31 - 1 the number repeats. */
	world_set_counter(&bench->world, "/a", INT32_MAX - 1);
	for (int i = 0; i < 3; i++)
		SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = i ? "/a/y-" : "/a/x-",
		       .sequence = true);
	run(bench, SECOND);
	assert_string_equal(client->log[7].path, "/a/x-2147483646");
	assert_string_equal(client->log[8].path, "/a/y-2147483647");
	assert_int_equal(client->log[9].result, ENSEMBLE_EXISTS);
	finish(bench);
}

static void test_multi(void **state)
{
	struct bench *bench = begin(3, 3);
	struct client *client = &bench->client[0];
	struct ensemble_op ops[] = {
		{.kind = ENSEMBLE_CREATE, .path = "/a"},
		{.kind = ENSEMBLE_CREATE, .path = "/a/b"},
		{.kind = ENSEMBLE_CHECK, .path = "/missing", .version = ENSEMBLE_ANY_VERSION},
	};
	struct ensemble_op more[] = {
		{.kind = ENSEMBLE_DELETE, .path = "/a/b", .version = ENSEMBLE_ANY_VERSION},
		{.kind = ENSEMBLE_CREATE, .path = "/a/x-", .sequence = true},
		{.kind = ENSEMBLE_CHECK, .path = "/a", .version = ENSEMBLE_ANY_VERSION},
		{.kind = ENSEMBLE_CREATE, .path = "/y-", .sequence = true, .ephemeral = true},
	};

	(void)state;
	submit(client, ops, 3);
	SUBMIT(client, .kind = ENSEMBLE_GET, .path = "/a");
	submit(client, ops, 2);
	SUBMIT(client, .kind = ENSEMBLE_GET, .path = "/a/b");
	submit(client, more, 4);
	SUBMIT(client, .kind = ENSEMBLE_CHILDREN, .path = "/a");
	SUBMIT(client, .kind = ENSEMBLE_GET, .path = "/a/x-0000000001");
	SUBMIT(client, .kind = ENSEMBLE_GET, .path = "/y-0000000001");
	run(bench, SECOND);
	assert_int_equal(client->log[0].result, ENSEMBLE_NONODE);
	assert_int_equal(client->log[1].result, ENSEMBLE_NONODE);
	assert_int_equal(client->log[2].result, ENSEMBLE_OK);
	assert_string_equal(client->log[2].paths[0], "/a");
	assert_string_equal(client->log[2].paths[1], "/a/b");
	assert_int_equal(client->log[3].result, ENSEMBLE_OK);
	/* The answer has each new node's path at its place; nodes made together have one czxid. */
	assert_int_equal(client->log[4].result, ENSEMBLE_OK);
	assert_string_equal(client->log[4].paths[0], "");
	assert_string_equal(client->log[4].paths[1], "/a/x-0000000001");
	assert_string_equal(client->log[4].paths[3], "/y-0000000001");
	assert_int_equal(client->log[5].name_count, 1);
	assert_int_equal(client->log[6].stat.czxid, client->log[7].stat.czxid);
	assert_int_equal(client->log[7].stat.ephemeral_owner, client->session);
	finish(bench);
}

/* ---- watches ---- */

static void test_watch(void **state)
{
	struct bench *bench = begin(3, 4);
	struct client *one = &bench->client[0], *two = &bench->client[1];

	(void)state;
	SUBMIT(two, .kind = ENSEMBLE_CREATE, .path = "/a");
	run(bench, SECOND);
	SUBMIT(one, .kind = ENSEMBLE_GET, .path = "/a", .watch = true);
	SUBMIT(one, .kind = ENSEMBLE_GET, .path = "/b", .watch = true);
	run(bench, SECOND);
	SUBMIT(two, .kind = ENSEMBLE_SET, .path = "/a", .data = "1", .data_len = 1);
	SUBMIT(two, .kind = ENSEMBLE_SET, .path = "/a", .data = "2", .data_len = 1);
	SUBMIT(two, .kind = ENSEMBLE_CREATE, .path = "/b");
	run(bench, SECOND);
	/* One event, and none for the node that was not there. */
	assert_int_equal(one->changes, 1);
	assert_string_equal(one->changed, "/a");
	assert_int_equal(one->change, ENSEMBLE_DATA);
	/* The event comes before an answer that shows the change. */
	SUBMIT(one, .kind = ENSEMBLE_GET, .path = "/a", .watch = true);
	SUBMIT(one, .kind = ENSEMBLE_DELETE, .path = "/a");
	SUBMIT(one, .kind = ENSEMBLE_GET, .path = "/a");
	run(bench, SECOND);
	assert_int_equal(one->changes, 2);
	assert_int_equal(one->change, ENSEMBLE_DELETED);
	assert_int_equal(one->answers_before_change, 3);
	finish(bench);
}

static void test_watch_over_reconnect(void **state)
{
	struct bench *bench = begin(3, 5);
	struct client *one = &bench->client[0], *two = &bench->client[1];

	(void)state;
	SUBMIT(two, .kind = ENSEMBLE_CREATE, .path = "/gone");
	SUBMIT(two, .kind = ENSEMBLE_CREATE, .path = "/kept");
	run(bench, SECOND);
	SUBMIT(one, .kind = ENSEMBLE_GET, .path = "/gone", .watch = true);
	SUBMIT(one, .kind = ENSEMBLE_GET, .path = "/kept", .watch = true);
	run(bench, SECOND);
	conn_break(one->wire.conn, -1);
	one->paused = true;
	SUBMIT(two, .kind = ENSEMBLE_DELETE, .path = "/gone");
	run(bench, SECOND);
	one->paused = false;
	run(bench, SECOND);
	assert_int_equal(one->disconnects, 1);
	assert_int_equal(one->connects, 2);
	assert_int_equal(one->changes, 1);
	assert_string_equal(one->changed, "/gone");
	assert_int_equal(one->change, ENSEMBLE_DELETED);
	SUBMIT(two, .kind = ENSEMBLE_SET, .path = "/kept");
	run(bench, SECOND);
	assert_int_equal(one->changes, 2);
	assert_string_equal(one->changed, "/kept");
	finish(bench);
}

/* A watch of the names below a node tells once that a name came or went. */
static void test_watch_names(void **state)
{
	struct bench *bench = begin(3, 11);
	struct client *one = &bench->client[0], *two = &bench->client[1];

	(void)state;
	SUBMIT(two, .kind = ENSEMBLE_CREATE, .path = "/a");
	SUBMIT(two, .kind = ENSEMBLE_CREATE, .path = "/a/b");
	run(bench, SECOND);
	SUBMIT(one, .kind = ENSEMBLE_CHILDREN, .path = "/a", .watch = true);
	SUBMIT(one, .kind = ENSEMBLE_CHILDREN, .path = "/missing", .watch = true);
	run(bench, SECOND);
	/* No event for data, of the node or of its children, or for nodes further below. */
	SUBMIT(two, .kind = ENSEMBLE_SET, .path = "/a", .data = "1", .data_len = 1);
	SUBMIT(two, .kind = ENSEMBLE_SET, .path = "/a/b", .data = "1", .data_len = 1);
	SUBMIT(two, .kind = ENSEMBLE_CREATE, .path = "/a/b/c");
	SUBMIT(two, .kind = ENSEMBLE_CREATE, .path = "/missing");
	run(bench, SECOND);
	assert_int_equal(one->changes, 0);
	SUBMIT(two, .kind = ENSEMBLE_CREATE, .path = "/a/n-", .sequence = true);
	SUBMIT(two, .kind = ENSEMBLE_CREATE, .path = "/a/n-", .sequence = true);
	run(bench, SECOND);
	assert_int_equal(one->changes, 1);
	assert_string_equal(one->changed, "/a");
	assert_int_equal(one->change, ENSEMBLE_NAMES);
	/* The event comes before an answer that shows the change. */
	SUBMIT(one, .kind = ENSEMBLE_CHILDREN, .path = "/a", .watch = true);
	SUBMIT(one, .kind = ENSEMBLE_DELETE, .path = "/a/b/c");
	SUBMIT(one, .kind = ENSEMBLE_DELETE, .path = "/a/b");
	SUBMIT(one, .kind = ENSEMBLE_CHILDREN, .path = "/a");
	run(bench, SECOND);
	assert_int_equal(one->changes, 2);
	assert_int_equal(one->change, ENSEMBLE_NAMES);
	assert_int_equal(one->answers_before_change, one->answers - 2);
	assert_int_equal(LAST(one).name_count, 2);
	finish(bench);
}

/* Both kinds of watch on one node: its end is told once, other changes are told separately. */
static void test_watch_both(void **state)
{
	struct bench *bench = begin(3, 12);
	struct client *one = &bench->client[0], *two = &bench->client[1];

	(void)state;
	SUBMIT(two, .kind = ENSEMBLE_CREATE, .path = "/a");
	run(bench, SECOND);
	SUBMIT(one, .kind = ENSEMBLE_CHILDREN, .path = "/a", .watch = true);
	SUBMIT(one, .kind = ENSEMBLE_GET, .path = "/a", .watch = true);
	run(bench, SECOND);
	SUBMIT(two, .kind = ENSEMBLE_SET, .path = "/a");
	run(bench, SECOND);
	assert_int_equal(one->changes, 1);
	assert_int_equal(one->change, ENSEMBLE_DATA);
	SUBMIT(one, .kind = ENSEMBLE_GET, .path = "/a", .watch = true);
	SUBMIT(two, .kind = ENSEMBLE_DELETE, .path = "/a");
	run(bench, SECOND);
	assert_int_equal(one->changes, 2);
	assert_string_equal(one->changed, "/a");
	assert_int_equal(one->change, ENSEMBLE_DELETED);
	finish(bench);
}

static void test_watch_names_over_reconnect(void **state)
{
	static const char *const nodes[] = {"/gone", "/more", "/less", "/less/b", "/kept"};
	struct bench *bench = begin(3, 13);
	struct client *one = &bench->client[0], *two = &bench->client[1];

	(void)state;
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
		SUBMIT(two, .kind = ENSEMBLE_CREATE, .path = nodes[i]);
	run(bench, SECOND);
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
		if (i != 3)
			SUBMIT(one, .kind = ENSEMBLE_CHILDREN, .path = nodes[i], .watch = true);
	run(bench, SECOND);
	conn_break(one->wire.conn, -1);
	one->paused = true;
	SUBMIT(two, .kind = ENSEMBLE_DELETE, .path = "/gone");
	SUBMIT(two, .kind = ENSEMBLE_CREATE, .path = "/more/x");
	SUBMIT(two, .kind = ENSEMBLE_DELETE, .path = "/less/b");
	SUBMIT(two, .kind = ENSEMBLE_SET, .path = "/kept");
	run(bench, SECOND);
	one->paused = false;
	run(bench, SECOND);
	assert_int_equal(one->connects, 2);
	assert_int_equal(one->changes, 3);
	assert_string_equal(one->changed, "/less");
	assert_int_equal(one->change, ENSEMBLE_NAMES);
	SUBMIT(two, .kind = ENSEMBLE_CREATE, .path = "/kept/x");
	run(bench, SECOND);
	assert_int_equal(one->changes, 4);
	assert_string_equal(one->changed, "/kept");
	finish(bench);
}

/* ---- compare and set ---- */

static void test_versions(void **state)
{
	struct bench *bench = begin(3, 14);
	struct client *one = &bench->client[0];
	struct ensemble_op ops[] = {
		{.kind = ENSEMBLE_CHECK, .path = "/e", .version = ENSEMBLE_ANY_VERSION},
		{.kind = ENSEMBLE_SET, .path = "/a", .data = "x", .data_len = 1, .version = 1},
	};

	(void)state;
	SUBMIT(one, .kind = ENSEMBLE_CREATE, .path = "/a");
	SUBMIT(one, .kind = ENSEMBLE_CREATE, .path = "/e", .ephemeral = true);
	submit(one, OP(.kind = ENSEMBLE_SET, .path = "/a", .version = 1), 1);
	submit(one, OP(.kind = ENSEMBLE_SET, .path = "/a", .data = "0", .data_len = 1), 1);
	/* A listing shows the version of the node's data. */
	SUBMIT(one, .kind = ENSEMBLE_CHILDREN, .path = "/a");
	submit(one, ops, 2);
	submit(one, ops, 2);
	SUBMIT(one, .kind = ENSEMBLE_DELETE, .path = "/e");
	ops[1].version = 2;
	submit(one, ops, 2);
	SUBMIT(one, .kind = ENSEMBLE_GET, .path = "/a");
	run(bench, SECOND);
	assert_int_equal(one->answers, 10);
	assert_int_equal(one->log[2].result, ENSEMBLE_BADVERSION);
	assert_int_equal(one->log[3].result, ENSEMBLE_OK);
	assert_int_equal(one->log[3].stat.version, 1);
	assert_int_equal(one->log[4].stat.version, 1);
	assert_int_equal(one->log[5].result, ENSEMBLE_OK);
	assert_int_equal(one->log[6].result, ENSEMBLE_BADVERSION);
	assert_int_equal(one->log[8].result, ENSEMBLE_NONODE);
	assert_memory_equal(one->log[9].data, "x", 1);
	assert_int_equal(one->log[9].stat.version, 2);
	finish(bench);
}

/* ---- connections ---- */

static void test_unknown(void **state)
{
	(void)state;
	for (uint64_t seed = 10; seed < 40; seed++) {
		struct bench *bench = begin(3, seed);
		struct client *client = &bench->client[0];
		bool before = seed % 2;
		int present;

		SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = "/a");
		conn_break(client->wire.conn, before ? 0 : -1);
		SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = "/lost");
		run(bench, 3 * SECOND);
		assert_int_equal(client->answers, 2);
		assert_int_equal(client->log[0].result, ENSEMBLE_UNKNOWN);
		assert_int_equal(client->log[0].disconnects, 1);
		assert_int_equal(client->connects, 2);
		/* A lost write that has not happened when a later one is answered never happens. */
		SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = "/barrier");
		SUBMIT(client, .kind = ENSEMBLE_CHILDREN, .path = "/");
		run(bench, SECOND);
		assert_int_equal(client->log[2].result, ENSEMBLE_OK);
		present = client->log[3].name_count;
		if (before)
			assert_int_equal(present, 1);
		run(bench, 5 * SECOND);
		SUBMIT(client, .kind = ENSEMBLE_CHILDREN, .path = "/");
		run(bench, SECOND);
		assert_int_equal(client->log[4].name_count, present);
		finish(bench);
	}
}

/* What is kept when the connection ends never leaves, nor what comes while there is none. */
static void test_kept(void **state)
{
	struct bench *bench = begin(3, 9);
	struct client *client = &bench->client[0];

	(void)state;
	keep(client, "/a");
	run(bench, SECOND);
	assert_int_equal(client->answers, 0);
	assert_null(tree_find(&bench->world.proposed, "/a"));
	flush(client);
	run(bench, SECOND);
	assert_int_equal(LAST(client).result, ENSEMBLE_OK);
	SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = "/sent");
	keep(client, "/b");
	conn_break(client->wire.conn, -1);
	for (int i = 0; !client->disconnects; i++) {
		assert_true(i < 100);
		run(bench, 1);
	}
	flush(client);
	keep(client, "/c");
	flush(client);
	run(bench, 3 * SECOND);
	flush(client);
	run(bench, SECOND);
	assert_int_equal(client->connects, 2);
	assert_int_equal(client->answers, 4);
	for (int i = 1; i < 4; i++) {
		assert_int_equal(client->log[i].result, ENSEMBLE_UNKNOWN);
		assert_int_equal(client->log[i].disconnects, 1);
	}
	assert_null(tree_find(&bench->world.proposed, "/b"));
	assert_null(tree_find(&bench->world.proposed, "/c"));
	finish(bench);
}

static enum ensemble_result answer_to(struct client *client)
{
	int before = client->answers;

	keep(client, "/a");
	assert_int_equal(client->answers, before);
	flush(client);
	client->wire.ensemble.port->process(&client->wire.ensemble, 0);
	assert_int_equal(client->answers, before + 1);
	return LAST(client).result;
}

/* A request is answered GONE where there is no session, and UNKNOWN while it may live on. */
static void test_kept_without_a_session(void **state)
{
	struct bench *bench = begin(3, 9);
	struct client *client = &bench->client[0];
	struct ensemble *ensemble = &client->wire.ensemble;

	(void)state;
	keep(client, "/a");
	ensemble->port->close(ensemble, false);
	assert_int_equal(client->answers, 1);
	assert_int_equal(LAST(client).result, ENSEMBLE_GONE);
	assert_int_equal(answer_to(client), ENSEMBLE_GONE);
	for (int i = 0; i < 2; i++) {
		ensemble->port->open(ensemble, TIMEOUT, NULL, &events, client);
		assert_int_equal(answer_to(client), ENSEMBLE_UNKNOWN);
		run(bench, SECOND);
		assert_int_equal(client->wire.state, WIRE_CONNECTED);
		bench->world.config.refuse_session_ppm = i ? 1000000 : 0;
		if (i == 0)
			world_close_session(&bench->world, client->session);
		conn_break(client->wire.conn, 0);
		run(bench, 3 * SECOND);
		assert_int_equal(client->ends, i + 1);
		assert_int_equal(answer_to(client), i == 0 ? ENSEMBLE_GONE : ENSEMBLE_UNKNOWN);
	}
	ensemble->port->rest(ensemble);
	assert_int_equal(answer_to(client), ENSEMBLE_UNKNOWN);
	keep(client, "/a");
	ensemble->port->close(ensemble, false);
	assert_int_equal(LAST(client).result, ENSEMBLE_GONE);
	assert_null(tree_find(&bench->world.proposed, "/a"));
	finish(bench);
}

/* When a connection breaks, the first packets under way may arrive, and never a later one without
 * those before it, whatever the client does when it hears of the break. */
static void test_break_keeps_order(void **state)
{
	static const char *const nodes[] = {"/a", "/b", "/c", "/d", "/e", "/f"};

	(void)state;
	for (uint64_t seed = 100; seed < 140; seed++) {
		struct bench *bench = begin(3, seed);
		struct client *client = &bench->client[0];

		conn_stall(client->wire.conn, UP, bench->agenda.now_us + 20000);
		for (int i = 0; i < 3; i++)
			SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = nodes[i]);
		/* The others come when the client already knows of the break. */
		conn_stall(client->wire.conn, UP, bench->agenda.now_us + 200000);
		for (int i = 3; i < 6; i++)
			SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = nodes[i]);
		client->wire.conn->way[UP].stalled_until_us = 0;
		conn_break(client->wire.conn, (int)(seed % 4));
		run(bench, 3 * SECOND);
		assert_int_equal(client->connects, 2);
		for (size_t i = 0; i < 6; i++) {
			bool there = tree_find(&bench->world.proposed, nodes[i]);

			assert_true(!there || i < seed % 4);
			assert_true(!there || i == 0 ||
			            tree_find(&bench->world.proposed, nodes[i - 1]));
		}
		finish(bench);
	}
}

/* Packets that pile up behind a stalled direction come all at once. */
static void test_stall(void **state)
{
	struct bench *bench = begin(3, 6);
	struct client *client = &bench->client[0];

	(void)state;
	conn_stall(client->wire.conn, UP, bench->agenda.now_us + 4 * SECOND);
	SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = "/a");
	run(bench, 2 * SECOND);
	SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = "/b");
	assert_int_equal(client->answers, 0);
	run(bench, 3 * SECOND);
	assert_int_equal(client->answers, 2);
	assert_int_equal(client->disconnects, 0);
	/* No answer ever comes: the client gives the server up after 2/3 T. */
	conn_stall(client->wire.conn, DOWN, INT64_MAX / 2);
	SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = "/c");
	run(bench, TIMEOUT * 2 / 3 - SECOND);
	assert_int_equal(client->disconnects, 0);
	run(bench, 3 * SECOND);
	assert_int_equal(client->disconnects, 1);
	assert_int_equal(client->log[2].result, ENSEMBLE_UNKNOWN);
	finish(bench);
}

/* ---- sessions ---- */

/* No session ends before touch + T; all end with the next tick, once the touch was passed on. */
static void test_expiry(void **state)
{
	(void)state;
	for (uint64_t seed = 50; seed < 70; seed++) {
		struct bench *bench = begin(seed % 2 ? 3 : 1, seed);
		struct client *client = &bench->client[0];
		int64_t sent_us;

		SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = "/e", .ephemeral = true);
		run(bench, SECOND + (int64_t)seed * 70000);
		sent_us = bench->agenda.now_us;
		SUBMIT(client, .kind = ENSEMBLE_SET, .path = "/e");
		run(bench, 20000);
		client->paused = true;
		run(bench, TIMEOUT - 40000);
		assert_true(world_session_alive(&bench->world, client->session));
		run(bench, sent_us + TIMEOUT + 4 * SECOND - bench->agenda.now_us);
		assert_false(world_session_alive(&bench->world, client->session));
		assert_null(tree_find(&bench->world.proposed, "/e"));
		client->paused = false;
		run(bench, 2 * SECOND);
		assert_int_equal(client->ends, 1);
		assert_int_equal(client->disconnects, 1);
		finish(bench);
	}
}

/* A follower that is cut off answers pings and reads, not writes, while the
 * leader ends the session. */
static void test_isolated_follower(void **state)
{
	struct bench *bench = begin(3, 7);
	struct client *client = &bench->client[0];
	int server;

	(void)state;
	while (client->wire.conn->server == bench->world.leader) {
		conn_break(client->wire.conn, -1);
		run(bench, SECOND);
	}
	server = client->wire.conn->server;
	SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = "/e", .ephemeral = true);
	run(bench, 3 * SECOND);
	bench->world.servers[server].cut = true;
	SUBMIT(client, .kind = ENSEMBLE_GET, .path = "/e");
	run(bench, SECOND);
	assert_int_equal(LAST(client).result, ENSEMBLE_OK);
	/* Here reads go on for ever; the leader hears of none of them. */
	for (int i = 0; i < 16; i++) {
		SUBMIT(client, .kind = ENSEMBLE_GET, .path = "/e");
		run(bench, SECOND);
	}
	assert_int_equal(client->disconnects, 0);
	assert_int_equal(LAST(client).result, ENSEMBLE_OK);
	assert_false(world_session_alive(&bench->world, client->session));
	assert_null(tree_find(&bench->world.committed, "/e"));
	finish(bench);
}

static void test_election_gives_a_full_timeout(void **state)
{
	struct bench *bench = begin(3, 8);
	struct client *client = &bench->client[0];

	(void)state;
	client->paused = true;
	run(bench, 8 * SECOND);
	world_elect(&bench->world);
	run(bench, 8 * SECOND);
	assert_true(world_session_alive(&bench->world, client->session));
	assert_true(bench->world.leader >= 0);
	run(bench, 8 * SECOND);
	assert_false(world_session_alive(&bench->world, client->session));
	finish(bench);
}

static void test_timeout_is_negotiated(void **state)
{
	struct bench *bench = begin(1, 9);
	struct client *client = &bench->client[0];
	const struct ensemble_port *port = client->wire.ensemble.port;

	(void)state;
	assert_int_equal(client->timeout_us, TIMEOUT);
	port->close(&client->wire.ensemble, true);
	assert_false(world_session_alive(&bench->world, client->session));
	port->open(&client->wire.ensemble, SECOND, NULL, &events, client);
	run(bench, SECOND);
	assert_int_equal(client->timeout_us, 4 * SECOND);
	assert_true(client->connect_us < bench->agenda.now_us);
	port->close(&client->wire.ensemble, false);
	assert_true(world_session_alive(&bench->world, client->session));
	finish(bench);
}

/* ---- renewals ---- */

#define SHORT (4 * SECOND)

/* The client is at the leader, and another server grants SHORT. Returns that one. */
static int away_from_the_leader(struct bench *bench, struct client *client)
{
	int server = (bench->world.leader + 1) % 3;

	bench->world.config.takes_old_mail = true;
	bench->world.config.timeout_max_us[server] = SHORT;
	while (client->wire.conn->server != bench->world.leader) {
		client->wire.cursor = (bench->world.leader + 2) % 3;
		conn_break(client->wire.conn, -1);
		run(bench, SECOND);
	}
	client->wire.timeout_us = TIMEOUT;
	client->wire.cursor = bench->world.leader;
	return server;
}

static const struct session *session_of(struct bench *bench, const struct client *client)
{
	const struct session *session;

	LL_FOREACH(bench->world.sessions, session)
		if (session->id == client->session)
			return session;
	fail();
	return NULL;
}

/* A server that stood still takes a greeting of which the client has given up the connection, and
 * another server has answered meanwhile. The session gets its timeout, which is shorter, and ends
 * by that; the connection of the client is refused. */
static void test_old_greeting(void **state)
{
	int taken = 0;

	(void)state;
	for (uint64_t seed = 70; seed < 90; seed++) {
		struct bench *bench = begin(3, seed);
		struct client *client = &bench->client[0];
		int server = away_from_the_leader(bench, client);
		int64_t renewed_us;

		SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = "/e", .ephemeral = true);
		run(bench, SECOND);
		world_hang(&bench->world, server, 5 * SECOND / 2);
		conn_break(client->wire.conn, -1);
		run(bench, SECOND);
		assert_int_equal(client->wire.cursor, server);
		client->wire.ensemble.port->drop(&client->wire.ensemble);
		run(bench, SECOND);
		assert_int_equal(client->wire.state, WIRE_CONNECTED);
		assert_int_not_equal(client->wire.cursor, server);
		assert_int_equal(client->timeout_us, TIMEOUT);
		run(bench, SECOND);
		renewed_us = bench->agenda.now_us;
		if (session_of(bench, client)->owner == server) {
			taken++;
			SUBMIT(client, .kind = ENSEMBLE_SET, .path = "/e");
			wire_darken(&client->wire, INT64_MAX / 2);
			run(bench, SHORT - SECOND);
			assert_true(world_session_alive(&bench->world, client->session));
			run(bench, renewed_us + SHORT + 3 * SECOND - bench->agenda.now_us);
			assert_false(world_session_alive(&bench->world, client->session));
		} else {
			SUBMIT(client, .kind = ENSEMBLE_SET, .path = "/e");
			run(bench, SECOND);
			assert_int_equal(LAST(client).result, ENSEMBLE_OK);
		}
		finish(bench);
	}
	assert_in_range(taken, 5, 19);
}

/* The former owner's writes are refused. */
static void test_moved(void **state)
{
	(void)state;
	for (uint64_t seed = 70; seed < 90; seed++) {
		struct bench *bench = begin(3, seed);
		struct client *client = &bench->client[0];
		int server = away_from_the_leader(bench, client);
		struct conn *stray =
			conn_open(&bench->world, server, client->session, TIMEOUT, 0, wake, client);

		run(bench, SECOND);
		assert_int_equal(session_of(bench, client)->owner, server);
		assert_int_equal(client->disconnects, client->connects - 1);
		SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = "/a");
		run(bench, SECOND);
		assert_int_equal(client->disconnects, client->connects - 1);
		assert_int_equal(LAST(client).result, ENSEMBLE_UNKNOWN);
		assert_null(tree_find(&bench->world.proposed, "/a"));
		conn_abandon(stray, -1);
		finish(bench);
	}
}

/* The leader asks which server a session is at: a greeting that this server takes late lets an
 * older create through, behind a write that was answered elsewhere. */
static void test_backlog(void **state)
{
	struct bench *bench = begin(3, 4);
	struct client *client = &bench->client[0];
	int server = away_from_the_leader(bench, client);
	struct conn *stray;

	(void)state;
	client->wire.again = true;
	client->wire.cursor = server;
	conn_break(client->wire.conn, -1);
	run(bench, SECOND);
	assert_int_equal(client->wire.conn->server, server);
	world_backlog(&bench->world, server, 3 * SECOND);
	SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = "/late", .ephemeral = true);
	run(bench, SECOND);
	conn_break(client->wire.conn, -1);
	run(bench, SECOND);
	SUBMIT(client, .kind = ENSEMBLE_CREATE, .path = "/barrier");
	run(bench, SECOND / 2);
	assert_int_equal(LAST(client).result, ENSEMBLE_OK);
	assert_null(tree_find(&bench->world.proposed, "/late"));
	stray = conn_open(&bench->world, server, client->session, TIMEOUT, 0, wake, client);
	run(bench, SECOND);
	assert_non_null(tree_find(&bench->world.proposed, "/late"));
	conn_abandon(stray, -1);
	finish(bench);
}

/* A server may grant more than was asked, and other limits when it starts again. */
static void test_limits(void **state)
{
	struct bench *bench = begin(3, 5);
	struct client *client = &bench->client[0];
	int changes = 0;

	(void)state;
	for (int i = 0; i < 3; i++)
		bench->world.config.timeout_min_us[i] = 2 * TIMEOUT;
	conn_break(client->wire.conn, -1);
	run(bench, SECOND);
	assert_int_equal(client->timeout_us, 2 * TIMEOUT);
	bench->world.config.limit_least_us = SHORT;
	bench->world.config.limit_most_us = TIMEOUT;
	for (int i = 0; i < 10; i++) {
		int64_t before_us = bench->world.config.timeout_max_us[0];

		world_crash(&bench->world, 0, SECOND);
		run(bench, 3 * SECOND);
		changes += bench->world.config.timeout_max_us[0] != before_us;
		assert_in_range(bench->world.config.timeout_max_us[0], SHORT, TIMEOUT);
	}
	assert_true(changes > 3);
	finish(bench);
}

/* Behind one address any server answers. */
static void test_balanced(void **state)
{
	struct bench *bench = begin(3, 6);
	struct client *client = &bench->client[0];
	bool met[3] = {false, false, false};

	(void)state;
	bench->world.config.balanced = true;
	for (int i = 0; i < 20; i++) {
		conn_break(client->wire.conn, -1);
		run(bench, SECOND);
		met[client->wire.conn->server] = true;
		assert_string_equal(client->wire.ensemble.port->server(&client->wire.ensemble),
		                    "10.0.0.1:2181");
	}
	assert_true(met[0] && met[1] && met[2]);
	finish(bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_sequence),
		cmocka_unit_test(test_multi),
		cmocka_unit_test(test_watch),
		cmocka_unit_test(test_watch_over_reconnect),
		cmocka_unit_test(test_watch_names),
		cmocka_unit_test(test_watch_both),
		cmocka_unit_test(test_watch_names_over_reconnect),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_kept_without_a_session),
		cmocka_unit_test(test_break_keeps_order),
		cmocka_unit_test(test_stall),
		cmocka_unit_test(test_expiry),
		cmocka_unit_test(test_isolated_follower),
		cmocka_unit_test(test_election_gives_a_full_timeout),
		cmocka_unit_test(test_timeout_is_negotiated),
		cmocka_unit_test(test_old_greeting),
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_backlog),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_balanced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
