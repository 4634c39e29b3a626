/* SPDX-License-Identifier: MIT
 *
 * wire.c - the client's side of a session.
 */
#include "wire.h"

#include "mutation.h"
#include "trace.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* A server that has turned a scout away may do so again. */
#define SCOUT_PAUSE_US 250000
/* How often it is asked what a renewal costs. */
#define LOOK_US 50000

/* One submit() that is not answered yet. */
struct pending {
	ensemble_answer_fn *answer;
	void *ctx;
	int64_t serial, sent_us;
	enum ensemble_kind kind;
	bool watch, sequence, sent, muted;
	char *path;              /* of the first operation */
	struct ensemble_op *ops; /* while it is not sent */
	int count;
	enum ensemble_result doom;
	struct pending *prev, *next;
};

static struct wire *wire_of(struct ensemble *ensemble)
{
	return (struct wire *)ensemble;
}

static void *check(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static void drop_ops(struct pending *pending)
{
	for (int i = 0; pending->ops && i < pending->count; i++) {
		free((void *)pending->ops[i].path);
		free((void *)pending->ops[i].data);
	}
	free(pending->ops);
	pending->ops = NULL;
}

/* The lie swallow_answer: the answer is kept back until the session is closed. */
static bool swallow(struct wire *wire, struct pending *pending)
{
	if (!pending->muted)
		return false;
	pending->muted = false;
	pending->doom = ENSEMBLE_GONE;
	DL_APPEND(wire->swallowed, pending);
	return true;
}

static void pending_free(struct pending *pending)
{
	drop_ops(pending);
	free(pending->path);
	free(pending);
}

/* ---- answering ---- */

/* The port promises nothing of an answer for longer than the callback, so the
 * callback gets copies, which are overwritten or freed afterwards. */
static void tell(struct wire *wire, struct pending *pending, const struct letter *letter,
                 enum ensemble_result result)
{
	char path[1280] = "";
	char *data = NULL;
	char **names = NULL, **paths = NULL;
	struct ensemble_stat stat = {0};
	struct ensemble_answer answer = {.result = result};

	if (letter && letter->path && pending->kind != ENSEMBLE_SYNC) {
		snprintf(path, sizeof(path), "%s", letter->path);
		answer.path = path;
	}
	if (letter && pending->kind == ENSEMBLE_GET && result == ENSEMBLE_OK) {
		data = check(malloc((size_t)letter->data_len + 1));
		if (letter->data_len)
			memcpy(data, letter->data, (size_t)letter->data_len);
		answer.data = data;
		answer.data_len = letter->data_len;
	}
	if (letter && letter->has_stat) {
		stat = letter->stat;
		answer.stat = &stat;
	}
	if (letter && letter->names) {
		names = check(malloc((size_t)(letter->name_count + 1) * sizeof(*names)));
		for (int i = 0; i < letter->name_count; i++)
			names[i] = check(strdup(letter->names[i]));
		answer.names = (const char *const *)names;
		answer.name_count = letter->name_count;
	}
	if (letter && letter->paths) {
		paths = check(calloc((size_t)letter->path_count, sizeof(*paths)));
		for (int i = 0; i < letter->path_count; i++)
			paths[i] = letter->paths[i] ? check(strdup(letter->paths[i])) : NULL;
		answer.paths = (const char *const *)paths;
	}
	pending->answer(pending->ctx, &answer);
	memset(path, '#', sizeof(path) - 1);
	memset(&stat, '#', sizeof(stat));
	free(data);
	for (int i = 0; names && i < letter->name_count; i++)
		free(names[i]);
	free(names);
	for (int i = 0; paths && i < letter->path_count; i++)
		free(paths[i]);
	free(paths);
	(void)wire;
}

static void lie_ok(struct wire *wire, struct pending *pending)
{
	struct letter letter = {.kind = LETTER_ANSWER, .has_stat = true, .zxid = wire->last_zxid};
	char path[1280], texts[ENSEMBLE_OPS_MAX][256];
	const char *paths[ENSEMBLE_OPS_MAX];

	snprintf(path, sizeof(path), "%s%010d", pending->path, (int)rng_below(&wire->rng, 100000));
	letter.path = path;
	for (int i = 0; i < pending->count && pending->count > 1; i++) {
		snprintf(texts[i], sizeof(texts[i]), "%s%010d", pending->ops[i].path,
		         (int)rng_below(&wire->rng, 100000));
		paths[i] = pending->ops[i].kind == ENSEMBLE_CREATE ? texts[i] : NULL;
		letter.paths = paths;
		letter.path_count = pending->count;
	}
	letter.stat.czxid = letter.stat.mzxid = wire->last_zxid;
	letter.stat.ephemeral_owner = wire->session;
	tell(wire, pending, &letter, ENSEMBLE_OK);
}

static bool is_write(enum ensemble_kind kind)
{
	return kind == ENSEMBLE_CREATE || kind == ENSEMBLE_DELETE || kind == ENSEMBLE_SET ||
	       kind == ENSEMBLE_CHECK;
}

static void answer_doomed(struct wire *wire)
{
	struct pending *pending;

	while ((pending = wire->doomed)) {
		DL_DELETE(wire->doomed, pending);
		if (swallow(wire, pending))
			continue;
		if (mutation == MUTATE_unknown_as_ok && pending->doom == ENSEMBLE_UNKNOWN &&
		    is_write(pending->kind))
			lie_ok(wire, pending);
		else
			tell(wire, pending, NULL, pending->doom);
		pending_free(pending);
	}
}

static void doom_all(struct wire *wire, enum ensemble_result result)
{
	struct pending *pending, *next;

	DL_FOREACH_SAFE(wire->pending, pending, next) {
		DL_DELETE(wire->pending, pending);
		pending->doom = result;
		DL_APPEND(wire->doomed, pending);
	}
	wire->kept = NULL;
}

/* ---- watches, as the client remembers them ---- */

static void add_watch(struct watches *watches, const char *path)
{
	for (int i = 0; i < watches->count; i++)
		if (!strcmp(watches->paths[i], path))
			return;
	if (watches->count == watches->room) {
		watches->room = watches->room ? watches->room * 2 : 16;
		watches->paths = check(
			realloc(watches->paths, (size_t)watches->room * sizeof(*watches->paths)));
	}
	watches->paths[watches->count++] = check(strdup(path));
}

static bool remove_watch(struct watches *watches, const char *path)
{
	for (int i = 0; i < watches->count; i++)
		if (!strcmp(watches->paths[i], path)) {
			free((void *)watches->paths[i]);
			watches->paths[i] = watches->paths[--watches->count];
			return true;
		}
	return false;
}

static void forget_watches(struct wire *wire)
{
	while (wire->data_watches.count)
		free((void *)wire->data_watches.paths[--wire->data_watches.count]);
	while (wire->child_watches.count)
		free((void *)wire->child_watches.paths[--wire->child_watches.count]);
}

/* ---- connecting, and losing a connection ---- */

static void arrived(void *ctx)
{
	struct wire *wire = ctx;

	wire->wake(wire->ctx);
}

static void stall_both(struct conn *conn, int64_t until_us)
{
	conn_stall(conn, UP, until_us);
	conn_stall(conn, DOWN, until_us);
}

void wire_darken(struct wire *wire, int64_t until_us)
{
	trace("wire: session %" PRIx64 ": its host has no network", (uint64_t)wire->session);
	wire->dark_until_us = until_us;
	if (wire->conn)
		stall_both(wire->conn, until_us);
	if (wire->scout)
		stall_both(wire->scout, until_us);
}

static void choose_server(struct wire *wire)
{
	const struct world_config *config = &wire->world->config;

	if (config->balanced)
		wire->cursor = (int)rng_below(&wire->rng, (uint64_t)config->servers);
	else if (!wire->again)
		wire->cursor = (wire->cursor + 1) % config->servers;
	wire->again = false;
}

static void end_scout(struct wire *wire)
{
	if (wire->scout)
		conn_abandon(wire->scout, -1);
	wire->scout = NULL;
}

static void greet(struct wire *wire);

static void connect_next(struct wire *wire)
{
	wire->connect_us = wire->heard_us = wire->sent_us = wire->clock_us(wire->ctx);
	choose_server(wire);
	if (wire->session && wire->events->renews)
		wire->state = WIRE_HELD;
	else
		greet(wire);
}

/* Behind an address with several servers it may meet another one than the greeting. */
static void send_scout(struct wire *wire)
{
	const struct world_config *config = &wire->world->config;
	int server = config->balanced ? (int)rng_below(&wire->rng, (uint64_t)config->servers)
	                              : wire->cursor;

	wire->scout = conn_open(wire->world, server, 0, 1, 0, arrived, wire);
	wire->scout_count++;
	if (wire->dark_until_us > wire->world->agenda->now_us)
		stall_both(wire->scout, wire->dark_until_us);
}

/* True: it was granted a session, which is closed. False, and there is no scout: it is lost. */
static bool scout_is_back(struct wire *wire)
{
	struct letter *letter = wire->scout ? conn_receive(wire->scout) : NULL;

	if (!letter)
		return false;
	if (letter->kind == LETTER_ACCEPTED)
		world_close_session(wire->world, letter->session);
	end_scout(wire);
	return letter->kind == LETTER_ACCEPTED;
}

static void lose_connection(struct wire *wire);
static const char *name_server(struct wire *wire);

static void hold_back(struct wire *wire)
{
	bool scouts = wire->scout;

	if (scout_is_back(wire) || !wire->events->needs_scout(wire->events_ctx)) {
		end_scout(wire);
		wire->state = WIRE_TOLD;
		wire->connect_us = wire->clock_us(wire->ctx);
		if (wire->renews)
			wire->renews(wire->ctx);
		wire->events->renews(wire->events_ctx);
	} else if (scouts && !wire->scout) {
		wire->scout_us = wire->clock_us(wire->ctx) + SCOUT_PAUSE_US;
		wire->events->turned_away(wire->events_ctx, name_server(wire));
		lose_connection(wire);
	} else if (!scouts && wire->clock_us(wire->ctx) >= wire->scout_us) {
		send_scout(wire);
	}
}

static void greet(struct wire *wire)
{
	wire->conn = conn_open(wire->world, wire->cursor, wire->session, wire->timeout_us,
	                       wire->last_zxid, arrived, wire);
	wire->state = WIRE_GREETING;
	wire->conn_count++;
	if (wire->late_greeting_us)
		conn_stall(wire->conn, DOWN, wire->world->agenda->now_us + wire->late_greeting_us);
	wire->late_greeting_us = 0;
	if (wire->dark_until_us > wire->world->agenda->now_us)
		stall_both(wire->conn, wire->dark_until_us);
	else if (wire->session && wire->greets)
		wire->greets(wire->ctx);
}

/* A random number of the packets under way still reach the server. */
static int some_of_it(struct wire *wire)
{
	int under_way = conn_under_way(wire->conn, UP);

	switch (rng_below(&wire->rng, 3)) {
	case 0:
		return 0;
	case 1:
		return -1;
	default:
		return (int)rng_below(&wire->rng, (uint64_t)under_way + 1);
	}
}

bool wire_creates(const struct wire *wire)
{
	struct pending *pending;

	DL_FOREACH(wire->pending, pending)
		if (pending->sent && pending->kind == ENSEMBLE_CREATE && pending->sequence)
			return true;
	return false;
}

/* The lie late_write: a write that was cut off is done at last, after a later write. */
static void remember_late(struct wire *wire)
{
	struct pending *pending;

	DL_FOREACH(wire->pending, pending)
		if (pending->sent && pending->kind == ENSEMBLE_CREATE && pending->sequence &&
		    !wire->late)
			wire->late = check(strdup(pending->path));
}

static void do_late(struct wire *wire)
{
	struct ensemble_op op = {
		.kind = ENSEMBLE_CREATE, .path = wire->late, .ephemeral = true, .sequence = true};

	if (!wire->late || rng_chance(&wire->rng, 800))
		return;
	world_do(wire->world, wire->session, &op, 1, NULL);
	free(wire->late);
	wire->late = NULL;
}

static void lose_connection(struct wire *wire)
{
	bool told = wire->told_connected;

	if (mutation == MUTATE_late_write)
		remember_late(wire);
	end_scout(wire);
	if (wire->conn)
		conn_abandon(wire->conn, some_of_it(wire));
	wire->conn = NULL;
	wire->state = WIRE_RESTING;
	wire->told_connected = wire->drop_asked = false;
	wire->retry_us =
		wire->clock_us(wire->ctx) + rng_spread(&wire->rng, 100, wire->timeout_us / 60);
	doom_all(wire, ENSEMBLE_UNKNOWN);
	if (told)
		wire->events->disconnected(wire->events_ctx);
	answer_doomed(wire);
}

/* As in the real client, all outstanding requests are answered first, and open() may
 * follow at once. */
static void end_session(struct wire *wire, bool refused)
{
	bool told = wire->told_connected;

	trace("wire: session %" PRIx64 " ended%s", (uint64_t)wire->session,
	      refused ? ", refused" : "");
	end_scout(wire);
	if (wire->conn)
		conn_abandon(wire->conn, -1);
	wire->conn = NULL;
	wire->state = WIRE_ENDED;
	wire->refused = refused;
	wire->told_connected = wire->drop_asked = false;
	forget_watches(wire);
	doom_all(wire, ENSEMBLE_UNKNOWN);
	if (told)
		wire->events->disconnected(wire->events_ctx);
	answer_doomed(wire);
	wire->fate = refused ? ENSEMBLE_UNKNOWN : ENSEMBLE_GONE;
	wire->events->ended(wire->events_ctx, refused);
	answer_doomed(wire);
}

/* ---- packets ---- */

static void send_pending(struct wire *wire, struct pending *pending)
{
	trace("wire: session %" PRIx64 " sends op %d %s%s", (uint64_t)wire->session, pending->kind,
	      pending->path, pending->count > 1 ? " ..." : "");
	pending->sent = true;
	wire->sent_us = pending->sent_us = wire->clock_us(wire->ctx);
	conn_request(wire->conn, pending->ops, pending->count, pending->serial);
	drop_ops(pending);
}

/* Each session has a password of its own. */
static struct ensemble_session session_of(int64_t id)
{
	struct ensemble_session session = {.id = id};

	for (int i = 0; i < ENSEMBLE_PASSWORD && id; i++)
		session.password[i] = (char)((uint64_t)id * 0x9e3779b97f4a7c15u >> (i % 8 * 8));
	return session;
}

static void accepted(struct wire *wire, const struct letter *letter)
{
	struct ensemble_session session = session_of(letter->session);

	trace("wire: session %" PRIx64 " accepted by server %d", (uint64_t)letter->session,
	      wire->conn->server);
	wire->state = WIRE_CONNECTED;
	wire->session = letter->session;
	wire->timeout_us = letter->timeout_us;
	wire->told_connected = true;
	wire->proved = false;
	wire->connected_at_us = wire->world->agenda->now_us;
	if (mutation == MUTATE_late_stamp)
		wire->connect_us = wire->clock_us(wire->ctx);
	if (wire->data_watches.count || wire->child_watches.count)
		conn_set_watches(wire->conn, &wire->data_watches, &wire->child_watches,
		                 wire->last_zxid);
	if (wire->joined)
		wire->joined(wire->ctx, wire->timeout_us, wire->connect_us);
	wire->joining = true;
	wire->events->connected(wire->events_ctx, &session, wire->timeout_us, wire->connect_us);
	wire->joining = false;
}

static void changed(struct wire *wire, const struct letter *letter)
{
	char path[1280];
	bool watched = false;

	/* One event, though both kinds were watched. */
	if (letter->change != ENSEMBLE_NAMES)
		watched |= remove_watch(&wire->data_watches, letter->path);
	if (letter->change != ENSEMBLE_DATA)
		watched |= remove_watch(&wire->child_watches, letter->path);
	if (!watched)
		return;
	if (mutation == MUTATE_drop_changed)
		return;
	snprintf(path, sizeof(path), "%s", letter->path);
	wire->events->changed(wire->events_ctx, path, letter->change);
}

static void answered(struct wire *wire, struct letter *letter)
{
	struct pending *pending = wire->pending;

	assert(pending && pending->serial == letter->serial);
	DL_DELETE(wire->pending, pending);
	if (letter->zxid > wire->last_zxid)
		wire->last_zxid = letter->zxid;
	if (pending->watch && letter->result == ENSEMBLE_OK)
		add_watch(pending->kind == ENSEMBLE_GET ? &wire->data_watches
		                                        : &wire->child_watches,
		          pending->path);
	if (pending->kind == ENSEMBLE_UNWATCH && letter->result == ENSEMBLE_OK)
		remove_watch(&wire->data_watches, pending->path);
	if (is_write(pending->kind) && letter->result == ENSEMBLE_OK) {
		wire->write_answers++;
		wire->write_answered_us = wire->world->agenda->now_us;
		do_late(wire);
	}
	if (mutation == MUTATE_crosstalk && pending->kind == ENSEMBLE_CHILDREN &&
	    rng_chance(&wire->rng, 200))
		letter->name_count = 0;
	if (mutation == MUTATE_lose_create && pending->kind == ENSEMBLE_CREATE && letter->path &&
	    rng_chance(&wire->rng, 100))
		world_do(wire->world, 0,
		         OP(.kind = ENSEMBLE_DELETE, .path = letter->path,
		            .version = ENSEMBLE_ANY_VERSION),
		         1, NULL);
	if (swallow(wire, pending))
		return;
	wire->evidence = is_write(pending->kind) && letter->result == ENSEMBLE_OK;
	if (wire->evidence && wire->wrote)
		wire->wrote(wire->ctx, pending->sent_us, pending->kind, pending->path);
	wire->proved |= wire->evidence;
	tell(wire, pending, letter,
	     letter->result == ENSEMBLE_GONE ? ENSEMBLE_UNKNOWN : letter->result);
	wire->evidence = false;
	pending_free(pending);
}

static const char *name_server(struct wire *wire)
{
	snprintf(wire->server_name, sizeof(wire->server_name), "10.0.0.%d:2181",
	         wire->world->config.balanced ? 1 : wire->cursor + 1);
	return wire->server_name;
}

/* False when there is no connection any more. */
static bool handle(struct wire *wire, struct letter *letter)
{
	wire->heard_us = wire->clock_us(wire->ctx);
	switch (letter->kind) {
	case LETTER_ACCEPTED:
		accepted(wire, letter);
		return wire->conn;
	case LETTER_EXPIRED:
		end_session(wire, false);
		return false;
	case LETTER_REFUSED:
		end_session(wire, true);
		return false;
	case LETTER_CLOSED:
		if (wire->state == WIRE_GREETING && wire->events->turned_away)
			wire->events->turned_away(wire->events_ctx, name_server(wire));
		lose_connection(wire);
		return false;
	case LETTER_ANSWER:
		answered(wire, letter);
		return wire->conn;
	case LETTER_CHANGED:
		changed(wire, letter);
		return wire->conn;
	case LETTER_PONG:
		if (letter->zxid > wire->last_zxid)
			wire->last_zxid = letter->zxid;
		return true;
	}
	return true;
}

static void read_letters(struct wire *wire)
{
	/* The real client reads one packet each time; here it is one to three at times, or all. */
	int most = rng_chance(&wire->rng, 700) ? INT32_MAX : (int)rng_between(&wire->rng, 1, 3);
	struct letter *letter;

	while (most-- > 0 && wire->conn && (letter = conn_receive(wire->conn)))
		if (!handle(wire, letter))
			return;
}

/* To a server, or there. */
static bool is_on_its_way(const struct wire *wire)
{
	return wire->conn || wire->state == WIRE_HELD || wire->state == WIRE_TOLD;
}

/* Gives up a server that is silent for too long, and pings in time. */
static void keep_time(struct wire *wire)
{
	int64_t now_us = wire->clock_us(wire->ctx);

	if (!is_on_its_way(wire))
		return;
	if (wire->drop_asked || now_us - wire->heard_us >= wire->timeout_us * 2 / 3) {
		trace("wire: session %" PRIx64 " gives server %d up%s", (uint64_t)wire->session,
		      wire->cursor, wire->drop_asked ? ", asked to" : "");
		lose_connection(wire);
		return;
	}
	if (wire->state == WIRE_CONNECTED && !wire->pending &&
	    now_us - wire->sent_us >= wire->timeout_us / 3) {
		wire->sent_us = now_us;
		conn_ping(wire->conn);
	}
	if (mutation == MUTATE_false_end && wire->state == WIRE_CONNECTED &&
	    rng_chance(&wire->rng, 2))
		end_session(wire, false);
}

/* ---- the port ---- */

/* Faults at random times seldom meet a request on its way: this fault follows a request. */
static void snap(void *ctx, uint64_t serial)
{
	struct wire *wire = ctx;
	int64_t until_us =
		wire->world->agenda->now_us + rng_spread(&wire->rng, 1000, wire->timeout_us / 2);

	if (!wire->conn || wire->state != WIRE_CONNECTED || (uint64_t)wire->conn_count != serial)
		return;
	trace("wire: session %" PRIx64 " snaps", (uint64_t)wire->session);
	if (wire->freeze && rng_chance(&wire->rng, 100))
		wire->freeze(wire->ctx, rng_spread(&wire->rng, 1000, wire->timeout_us));
	else if (rng_chance(&wire->rng, 200))
		conn_stall(wire->conn, rng_chance(&wire->rng, 500) ? UP : DOWN, until_us);
	else
		conn_break(wire->conn, some_of_it(wire));
}

static void maybe_snap(struct wire *wire)
{
	const struct world_config *config = &wire->world->config;

	if (rng_chance(&wire->rng, config->snap_per_mille))
		agenda_in(wire->world->agenda,
		          (int64_t)rng_below(&wire->rng, (uint64_t)(3 * config->delay_max_us +
		                                                    config->commit_max_us)),
		          snap, wire, wire->conn_count);
}

static int wire_open(struct ensemble *ensemble, int64_t timeout_us,
                     const struct ensemble_session *session, const struct ensemble_events *events,
                     void *ctx)
{
	struct wire *wire = wire_of(ensemble);
	struct ensemble_session meant = session_of(session ? session->id : 0);

	if (wire->state != WIRE_CLOSED && wire->state != WIRE_ENDED)
		return -EALREADY;
	wire->events = events;
	wire->events_ctx = ctx;
	wire->timeout_us = timeout_us;
	wire->session = meant.id;
	/* To the servers a session with a wrong password is over. */
	if (session && memcmp(meant.password, session->password, ENSEMBLE_PASSWORD) != 0)
		wire->session = INT64_MAX;
	wire->last_zxid = 0;
	wire->state = WIRE_RESTING;
	wire->fate = ENSEMBLE_UNKNOWN;
	wire->retry_us = wire->clock_us(wire->ctx);
	return 0;
}

static void leave_session(struct wire *wire, bool farewell)
{
	trace("wire: session %" PRIx64 " closed by its owner", (uint64_t)wire->session);
	if (wire->conn && wire->state == WIRE_CONNECTED && farewell &&
	    wire_trouble(wire) < wire->world->agenda->now_us)
		world_close_session(wire->world, wire->session);
	end_scout(wire);
	if (wire->conn)
		conn_abandon(wire->conn, -1);
	wire->conn = NULL;
	wire->state = WIRE_CLOSED;
	wire->told_connected = wire->drop_asked = false;
	forget_watches(wire);
}

static void wire_close(struct ensemble *ensemble, bool farewell)
{
	struct wire *wire = wire_of(ensemble);
	struct pending *pending;

	assert(!wire->inside);
	leave_session(wire, farewell);
	wire->fate = ENSEMBLE_GONE;
	doom_all(wire, ENSEMBLE_GONE);
	DL_CONCAT(wire->doomed, wire->swallowed);
	wire->swallowed = NULL;
	DL_FOREACH(wire->doomed, pending) {
		pending->muted = false;
		pending->doom = ENSEMBLE_GONE;
	}
	answer_doomed(wire);
}

static void wire_rest(struct ensemble *ensemble)
{
	struct wire *wire = wire_of(ensemble);

	assert(!wire->told_connected);
	leave_session(wire, false);
	wire->fate = ENSEMBLE_UNKNOWN;
}

static void wire_drop(struct ensemble *ensemble)
{
	struct wire *wire = wire_of(ensemble);

	if (is_on_its_way(wire))
		wire->drop_asked = true;
}

static void wire_submit(struct ensemble *ensemble, const struct ensemble_op *ops, int count,
                        ensemble_answer_fn *answer, void *ctx)
{
	struct wire *wire = wire_of(ensemble);
	struct pending *pending = check(calloc(1, sizeof(*pending)));

	assert(count > 0 && count <= ENSEMBLE_OPS_MAX);
	assert(count == 1 || is_write(ops[0].kind));
	pending->answer = answer;
	pending->ctx = ctx;
	pending->serial = ++wire->serial;
	pending->kind = ops[0].kind;
	pending->watch = ops[0].watch;
	pending->sequence = ops[0].sequence;
	pending->path = check(strdup(ops[0].path));
	pending->count = count;
	pending->ops = check(malloc((size_t)count * sizeof(*ops)));
	pending->muted = mutation == MUTATE_swallow_answer && rng_chance(&wire->rng, 100);
	for (int i = 0; i < count; i++) {
		pending->ops[i] = ops[i];
		pending->ops[i].path = check(strdup(ops[i].path));
		pending->ops[i].data = check(malloc((size_t)ops[i].data_len + 1));
		if (ops[i].data_len)
			memcpy((void *)pending->ops[i].data, ops[i].data, (size_t)ops[i].data_len);
	}
	if (wire->state != WIRE_CONNECTED) {
		pending->doom = wire->fate;
		DL_APPEND(wire->doomed, pending);
		return;
	}
	DL_APPEND(wire->pending, pending);
	if (!wire->kept)
		wire->kept = pending;
}

static void wire_flush(struct ensemble *ensemble)
{
	struct wire *wire = wire_of(ensemble);

	assert(!wire->inside);
	for (; wire->kept && !wire->drop_asked; wire->kept = wire->kept->next) {
		send_pending(wire, wire->kept);
		maybe_snap(wire);
	}
}

static int64_t earliest(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t wire_prepare(struct ensemble *ensemble, struct pollfd *ret_pollfd)
{
	struct wire *wire = wire_of(ensemble);
	int64_t now_us = wire->clock_us(wire->ctx);
	int64_t next_us = INT64_MAX;

	*ret_pollfd = (struct pollfd){.fd = -1};
	if (wire->doomed || wire->kept || wire->drop_asked || wire->state == WIRE_TOLD ||
	    (wire->conn && wire->conn->inbox) || (wire->scout && wire->scout->inbox))
		return 0;
	if (wire->state == WIRE_RESTING)
		next_us = wire->retry_us;
	if (is_on_its_way(wire))
		next_us = wire->heard_us + wire->timeout_us * 2 / 3;
	if (wire->state == WIRE_HELD)
		next_us = earliest(next_us, now_us + LOOK_US);
	if (wire->state == WIRE_CONNECTED && !wire->pending)
		next_us = earliest(next_us, wire->sent_us + wire->timeout_us / 3);
	if (next_us == INT64_MAX)
		return INT64_MAX;
	return next_us > now_us ? next_us - now_us : 0;
}

static void wire_process(struct ensemble *ensemble, short revents)
{
	struct wire *wire = wire_of(ensemble);

	(void)revents;
	assert(!wire->inside);
	wire->inside = true;
	answer_doomed(wire);
	/* After a long sleep the time limit may come before the packets, or after them. */
	if (rng_chance(&wire->rng, 500))
		keep_time(wire);
	read_letters(wire);
	keep_time(wire);
	if (wire->state == WIRE_RESTING && wire->clock_us(wire->ctx) >= wire->retry_us)
		connect_next(wire);
	else if (wire->state == WIRE_TOLD)
		greet(wire);
	if (wire->state == WIRE_HELD)
		hold_back(wire);
	answer_doomed(wire);
	wire->inside = false;
}

static const char *wire_server(struct ensemble *ensemble)
{
	struct wire *wire = wire_of(ensemble);

	return wire->state == WIRE_CONNECTED ? name_server(wire) : "-";
}

static const struct ensemble_port wire_port = {
	.open = wire_open,
	.close = wire_close,
	.rest = wire_rest,
	.drop = wire_drop,
	.submit = wire_submit,
	.flush = wire_flush,
	.prepare = wire_prepare,
	.process = wire_process,
	.server = wire_server,
};

int64_t wire_trouble(const struct wire *wire)
{
	int64_t now_us = wire->world->agenda->now_us;
	int64_t until = wire->connected_at_us;
	int64_t other;

	if (wire->state != WIRE_CONNECTED || wire->drop_asked || wire->conn->broken ||
	    !wire->conn->open_there)
		return now_us;
	for (int i = 0; i < 2; i++)
		if (until < wire->conn->way[i].stalled_until_us)
			until = wire->conn->way[i].stalled_until_us;
	other = world_trouble(wire->world, wire->conn->server);
	return until > other ? until : other;
}

void wire_init(struct wire *wire, struct world *world, struct rng rng,
               int64_t (*clock_us)(void *ctx), void (*wake)(void *ctx), void *ctx)
{
	*wire = (struct wire){.ensemble = {.port = &wire_port},
	                      .world = world,
	                      .rng = rng,
	                      .clock_us = clock_us,
	                      .wake = wake,
	                      .ctx = ctx,
	                      .fate = ENSEMBLE_GONE};
	wire->cursor = (int)rng_below(&wire->rng, (uint64_t)world->config.servers);
}

void wire_finish(struct wire *wire)
{
	struct pending *pending;

	if (wire->state != WIRE_CLOSED)
		wire_close(&wire->ensemble, false);
	DL_CONCAT(wire->doomed, wire->swallowed);
	while ((pending = wire->doomed)) {
		DL_DELETE(wire->doomed, pending);
		pending_free(pending);
	}
	free(wire->data_watches.paths);
	free(wire->child_watches.paths);
	wire->data_watches = wire->child_watches = (struct watches){0};
	free(wire->late);
	wire->late = NULL;
}
