/* SPDX-License-Identifier: MIT
 *
 * conn.c - one client's connection to one server: two FIFOs, the queue of the
 * client's requests at the server, the client's watches.
 *
 * Answers leave in the order of the requests: a read waits until the writes
 * before it are applied at this server, then sees exactly that prefix.
 */
#include "inside.h"

#include "mutation.h"
#include "trace.h"

#include <inttypes.h>
#include <string.h>
#include <utlist.h>

#define HOPELESS_US (INT64_MAX / 4)

static struct letter *letter_new(struct world *world, enum letter_kind kind)
{
	struct letter *letter = arena_zalloc(&world->arena, sizeof(*letter));

	letter->kind = kind;
	return letter;
}

/* ---- the two ways ---- */

static void arrives_up(void *ctx, uint64_t arg);
static void arrives_down(void *ctx, uint64_t arg);

static void dispatch(struct conn *conn, enum direction direction, struct parcel *parcel)
{
	struct world *world = conn->world;
	struct conn_queue *way = &conn->way[direction];
	int64_t when =
		world->agenda->now_us + rng_spread(&world->rng, 30, world->config.delay_max_us);

	if (when < way->last_arrival_us)
		when = way->last_arrival_us;
	if (when < way->stalled_until_us)
		when = way->stalled_until_us;
	way->last_arrival_us = when;
	if (way->last)
		way->last->next = parcel;
	else
		way->first = parcel;
	way->last = parcel;
	agenda_at(world->agenda, when, direction == UP ? arrives_up : arrives_down, conn, 0);
}

static struct parcel *pop(struct conn_queue *way)
{
	struct parcel *parcel = way->first;

	if (!parcel)
		return NULL;
	way->first = parcel->next;
	if (!way->first)
		way->last = NULL;
	return parcel;
}

void conn_stall(struct conn *conn, enum direction direction, int64_t until_us)
{
	if (conn->way[direction].stalled_until_us < until_us)
		conn->way[direction].stalled_until_us = until_us;
}

int conn_under_way(const struct conn *conn, enum direction direction)
{
	int count = 0;

	for (struct parcel *parcel = conn->way[direction].first; parcel; parcel = parcel->next)
		count++;
	return count;
}

void conn_send(struct conn *conn, struct letter *letter)
{
	struct parcel *parcel;

	if (!conn->open_here || conn->broken)
		return;
	parcel = parcel_new(conn->world);
	parcel->kind = PARCEL_LETTER;
	parcel->letter = letter;
	dispatch(conn, DOWN, parcel);
}

static void arrives_down(void *ctx, uint64_t arg)
{
	struct conn *conn = ctx;
	struct conn_queue *way = &conn->way[DOWN];
	struct agenda *agenda = conn->world->agenda;
	struct parcel *parcel;

	(void)arg;
	if (!conn->open_here)
		return;
	if (way->stalled_until_us > agenda->now_us) {
		if (way->stalled_until_us < HOPELESS_US)
			agenda_at(agenda, way->stalled_until_us, arrives_down, conn, 0);
		return;
	}
	parcel = pop(way);
	if (!parcel)
		return;
	if (conn->inbox_last)
		conn->inbox_last->next = parcel->letter;
	else
		conn->inbox = parcel->letter;
	conn->inbox_last = parcel->letter;
	conn->arrived(conn->ctx);
}

struct letter *conn_receive(struct conn *conn)
{
	struct letter *letter = conn->inbox;

	if (letter) {
		conn->inbox = letter->next;
		if (!conn->inbox)
			conn->inbox_last = NULL;
	}
	return letter;
}

/* ---- the client's end ---- */

struct conn *conn_open(struct world *world, int server, int64_t session, int64_t timeout_us,
                       int64_t last_zxid, conn_arrived_fn *arrived, void *ctx)
{
	struct conn *conn = arena_zalloc(&world->arena, sizeof(*conn));
	struct parcel *hello = parcel_new(world);

	conn->world = world;
	conn->serial = ++world->conn_count;
	conn->server = server;
	conn->session = session;
	conn->timeout_us = timeout_us;
	conn->last_zxid = last_zxid;
	conn->open_here = conn->open_there = true;
	conn->deliver_left = -1;
	conn->arrived = arrived;
	conn->ctx = ctx;
	LL_PREPEND(world->conns, conn);
	hello->kind = PARCEL_HELLO;
	dispatch(conn, UP, hello);
	return conn;
}

void conn_request(struct conn *conn, const struct ensemble_op *ops, int count, int64_t serial)
{
	struct arena *arena = &conn->world->arena;
	struct request *request = arena_zalloc(arena, sizeof(*request));
	struct parcel *parcel = parcel_new(conn->world);

	request->ops = arena_copy(arena, ops, (size_t)count * sizeof(*ops));
	request->count = count;
	request->serial = serial;
	request->conn = conn;
	request->wait_applied = -1;
	for (int i = 0; i < count; i++) {
		request->ops[i].path = arena_strdup(arena, ops[i].path);
		request->ops[i].data = arena_copy(arena, ops[i].data, (size_t)ops[i].data_len);
	}
	parcel->kind = PARCEL_REQUEST;
	parcel->request = request;
	dispatch(conn, UP, parcel);
}

void conn_ping(struct conn *conn)
{
	struct parcel *parcel = parcel_new(conn->world);

	parcel->kind = PARCEL_PING;
	dispatch(conn, UP, parcel);
}

static struct watches copy_watches(struct arena *arena, const struct watches *watches)
{
	struct watches copy = {.count = watches->count, .room = watches->count};

	copy.paths = arena_zalloc(arena, (size_t)copy.count * sizeof(*copy.paths));
	for (int i = 0; i < copy.count; i++)
		copy.paths[i] = arena_strdup(arena, watches->paths[i]);
	return copy;
}

void conn_set_watches(struct conn *conn, const struct watches *data, const struct watches *child,
                      int64_t zxid)
{
	struct parcel *parcel = parcel_new(conn->world);

	parcel->kind = PARCEL_WATCHES;
	parcel->data_watches = copy_watches(&conn->world->arena, data);
	parcel->child_watches = copy_watches(&conn->world->arena, child);
	parcel->zxid = zxid;
	dispatch(conn, UP, parcel);
}

static void closes(void *ctx, uint64_t arg)
{
	(void)arg;
	conn_close_there(ctx);
}

static void fin_arrives(void *ctx, uint64_t arg)
{
	struct conn *conn = ctx;
	int64_t hung_until_us = conn->world->servers[conn->server].hung_until_us;

	if (conn->world->config.takes_old_mail && hung_until_us > conn->world->agenda->now_us)
		agenda_at(conn->world->agenda, hung_until_us, fin_arrives, conn, arg);
	else
		conn_close_there(conn);
}

void conn_abandon(struct conn *conn, int deliver)
{
	struct conn_queue *up = &conn->way[UP];
	struct agenda *agenda = conn->world->agenda;
	int64_t when = up->last_arrival_us + 50;

	conn->open_here = false;
	/* A packet that is lost already does not come back when the client gives up. */
	if (conn->deliver_left < 0 || (deliver >= 0 && deliver < conn->deliver_left))
		conn->deliver_left = deliver;
	if (when < agenda->now_us)
		when = agenda->now_us + 50;
	if (when < up->stalled_until_us)
		when = up->stalled_until_us;
	/* If the way is stalled for ever the server never hears that the client is gone. */
	if (when < HOPELESS_US)
		agenda_at(agenda, when, fin_arrives, conn, 0);
}

void conn_break(struct conn *conn, int deliver_up)
{
	struct letter *letter = letter_new(conn->world, LETTER_CLOSED);

	if (!conn->open_here || conn->broken)
		return;

	/* Packets that have arrived already can still be read before the close. */
	conn->way[DOWN] = (struct conn_queue){0};
	conn_abandon(conn, deliver_up);
	conn->open_here = true;
	conn_send(conn, letter);
	conn->broken = true;
}

/* ---- the server's end ---- */

void conn_close_there(struct conn *conn)
{
	if (!conn->open_there)
		return;
	conn->open_there = false;
	conn->first = conn->last = NULL;
	conn->data_watches.count = conn->child_watches.count = 0;
	conn_send(conn, letter_new(conn->world, LETTER_CLOSED));
}

static void add_watch(struct conn *conn, struct watches *watches, const char *path)
{
	for (int i = 0; i < watches->count; i++)
		if (!strcmp(watches->paths[i], path))
			return;
	if (watches->count == watches->room) {
		const char **more;

		watches->room = watches->room ? watches->room * 2 : 8;
		more = arena_zalloc(&conn->world->arena, (size_t)watches->room * sizeof(*more));
		for (int i = 0; i < watches->count; i++)
			more[i] = watches->paths[i];
		watches->paths = more;
	}
	watches->paths[watches->count++] = path;
}

static void send_changed(struct conn *conn, const char *path, enum ensemble_change change)
{
	static const char *const words[] = {"is changed", "has other children", "is deleted"};
	struct letter *letter = letter_new(conn->world, LETTER_CHANGED);

	trace("server %d: tells %" PRIx64 " that %s %s", conn->server, (uint64_t)conn->session,
	      path, words[change]);
	letter->path = path;
	letter->change = change;
	letter->zxid = -1;
	conn_send(conn, letter);
}

/* Takes the watch on this path away, and returns its path; NULL: the path was not watched. */
static const char *take_watch(struct watches *watches, const char *path, size_t len)
{
	for (int i = 0; i < watches->count; i++)
		if (!strncmp(watches->paths[i], path, len) && watches->paths[i][len] == '\0') {
			const char *watched = watches->paths[i];

			watches->paths[i] = watches->paths[--watches->count];
			return watched;
		}
	return NULL;
}

/* In the order of the real server: first the node, then its parent. */
static void fire_watches(struct conn *conn, const struct change *change)
{
	size_t len = strlen(change->path),
	       parent = (size_t)(strrchr(change->path, '/') - change->path);
	const char *data = NULL, *names = NULL, *above = NULL;

	if (change->kind != CHANGE_CREATE)
		data = take_watch(&conn->data_watches, change->path, len);
	if (change->kind == CHANGE_DELETE)
		names = take_watch(&conn->child_watches, change->path, len);
	if (change->kind != CHANGE_SET)
		above = take_watch(&conn->child_watches, change->path, parent ? parent : 1);
	if (data || names)
		send_changed(conn, data ? data : names,
		             change->kind == CHANGE_DELETE ? ENSEMBLE_DELETED : ENSEMBLE_DATA);
	if (above)
		send_changed(conn, above, ENSEMBLE_NAMES);
}

static int64_t applied_zxid(const struct world *world, int server)
{
	int64_t applied = world->servers[server].applied;

	return applied ? world->log[applied - 1]->zxid : 0;
}

/* SetWatches: missed events are told at once, the other watches are set again. */
static void watches_again(struct conn *conn, const struct parcel *parcel)
{
	struct tree *tree = &conn->world->servers[conn->server].tree;

	for (int i = 0; i < parcel->data_watches.count; i++) {
		const char *path = parcel->data_watches.paths[i];
		struct node *node = tree_find(tree, path);

		if (!node)
			send_changed(conn, path, ENSEMBLE_DELETED);
		else if (node->stat.mzxid > parcel->zxid)
			send_changed(conn, path, ENSEMBLE_DATA);
		else
			add_watch(conn, &conn->data_watches, path);
	}
	for (int i = 0; i < parcel->child_watches.count; i++) {
		const char *path = parcel->child_watches.paths[i];
		struct node *node = tree_find(tree, path);

		if (!node)
			send_changed(conn, path, ENSEMBLE_DELETED);
		else if (node->pzxid > parcel->zxid)
			send_changed(conn, path, ENSEMBLE_NAMES);
		else
			add_watch(conn, &conn->child_watches, path);
	}
}

static void answer_get(struct conn *conn, const struct ensemble_op *op, struct letter *letter)
{
	struct node *node = tree_find(&conn->world->servers[conn->server].tree, op->path);

	if (mutation == MUTATE_deaf_stat && rng_chance(&conn->world->rng, 100))
		node = NULL;
	if (!node) {
		letter->result = ENSEMBLE_NONODE;
		return;
	}
	letter->data = node->data;
	letter->data_len = node->data_len;
	letter->stat = node->stat;
	letter->has_stat = true;
	if (op->watch)
		add_watch(conn, &conn->data_watches, op->path);
}

static void answer_children(struct conn *conn, const struct ensemble_op *op, struct letter *letter)
{
	struct world *world = conn->world;
	struct node *node = tree_find(&world->servers[conn->server].tree, op->path);
	struct node *child;
	bool hide = mutation == MUTATE_hide_entry && rng_chance(&world->rng, 200);

	if (world->list_error != ENSEMBLE_OK)
		letter->result = world->list_error;
	else if (!node)
		letter->result = ENSEMBLE_NONODE;
	if (letter->result != ENSEMBLE_OK)
		return;
	letter->names = arena_zalloc(&world->arena,
	                             (size_t)(node->stat.children + 1) * sizeof(*letter->names));
	DL_FOREACH(node->children, child) {
		/* in random order: each new name changes places with any before it, or none */
		int place = (int)rng_below(&world->rng, (uint64_t)letter->name_count + 1);

		if (hide && child == node->children)
			continue;
		letter->names[letter->name_count++] = letter->names[place];
		letter->names[place] = child->name;
	}
	letter->stat = node->stat;
	letter->has_stat = true;
	if (op->watch)
		add_watch(conn, &conn->child_watches, op->path);
}

static void read_now(struct conn *conn, struct request *request)
{
	const struct ensemble_op *op = &request->ops[0];
	struct letter *letter = request->letter;

	switch (op->kind) {
	case ENSEMBLE_GET:
		answer_get(conn, op, letter);
		return;
	case ENSEMBLE_CHILDREN:
		answer_children(conn, op, letter);
		return;
	case ENSEMBLE_SYNC:
		letter->path = op->path;
		return;
	case ENSEMBLE_UNWATCH:
		take_watch(&conn->data_watches, op->path, strlen(op->path));
		return;
	case ENSEMBLE_CREATE:
	case ENSEMBLE_DELETE:
	case ENSEMBLE_SET:
	case ENSEMBLE_CHECK:
		return;
	}
}

static bool is_write(const struct request *request)
{
	switch (request->ops[0].kind) {
	case ENSEMBLE_GET:
	case ENSEMBLE_CHILDREN:
	case ENSEMBLE_SYNC:
	case ENSEMBLE_UNWATCH:
		return false;
	case ENSEMBLE_CREATE:
	case ENSEMBLE_DELETE:
	case ENSEMBLE_SET:
	case ENSEMBLE_CHECK:
		break;
	}
	return true;
}

void conn_pump(struct conn *conn)
{
	struct world *world = conn->world;

	while (conn->open_there && conn->first) {
		struct request *request = conn->first;

		if (request->wait_applied >= 0 &&
		    request->wait_applied <= world->servers[conn->server].applied)
			request->ready = true;
		if (!request->ready)
			return;
		if (!request->letter) {
			request->letter = letter_new(world, LETTER_ANSWER);
			request->letter->serial = request->serial;
			request->letter->zxid = applied_zxid(world, conn->server);
		}
		read_now(conn, request);
		if (!is_write(request))
			trace("server %d: %" PRIx64 " reads (%d%s) %s: %d, %d names", conn->server,
			      (uint64_t)conn->session, request->ops[0].kind,
			      request->ops[0].watch ? ", watch" : "", request->ops[0].path,
			      request->letter->result, request->letter->name_count);
		conn->first = request->next;
		if (!conn->first)
			conn->last = NULL;
		conn_send(conn, request->letter);
	}
}

static void enqueue(struct conn *conn, struct request *request)
{
	if (conn->last)
		conn->last->next = request;
	else
		conn->first = request;
	conn->last = request;
	if (is_write(request) || request->ops[0].kind == ENSEMBLE_SYNC)
		world_forward(conn->world, request);
	else
		request->ready = true;
	conn_pump(conn);
}

static void hello(struct conn *conn)
{
	struct world *world = conn->world;
	struct server *server = &world->servers[conn->server];
	int64_t floor = world->config.timeout_min_us[conn->server];
	int64_t ceiling = world->config.timeout_max_us[conn->server];
	struct conn *other;

	if (server->down || (!server->cut && world->leader < 0) ||
	    applied_zxid(world, conn->server) < conn->last_zxid) {
		conn_close_there(conn);
		return;
	}
	LL_FOREACH(world->conns, other)
		if (other != conn && other->server == conn->server && other->open_there &&
		    conn->session && other->session == conn->session)
			conn_close_there(other);
	if (!ceiling)
		ceiling = 20 * world->config.tick_us;
	if (!floor)
		floor = 2 * world->config.tick_us;
	if (conn->timeout_us > ceiling)
		conn->timeout_us = ceiling;
	if (conn->timeout_us < floor)
		conn->timeout_us = floor;
	world_validate(world, conn);
}

void conn_validated(struct conn *conn, bool valid)
{
	struct world *world = conn->world;
	struct letter *letter;

	if (!conn->open_there)
		return;
	letter = letter_new(world, valid ? LETTER_ACCEPTED : LETTER_EXPIRED);
	if (valid && rng_below(&world->rng, 1000000) < world->config.refuse_session_ppm)
		letter->kind = LETTER_REFUSED;
	letter->session = conn->session;
	letter->timeout_us = conn->timeout_us;
	conn->accepted = valid;
	if (valid)
		world_touch(world, conn);
	conn_send(conn, letter);
	if (letter->kind != LETTER_ACCEPTED)
		conn_close_there(conn);
}

static void server_reads(struct conn *conn, struct parcel *parcel)
{
	struct letter *letter;

	if (parcel->kind == PARCEL_HELLO) {
		hello(conn);
		return;
	}
	if (!conn->accepted)
		return;
	world_touch(conn->world, conn);
	if (parcel->kind == PARCEL_REQUEST) {
		enqueue(conn, parcel->request);
	} else if (parcel->kind == PARCEL_WATCHES) {
		watches_again(conn, parcel);
	} else {
		letter = letter_new(conn->world, LETTER_PONG);
		letter->zxid = applied_zxid(conn->world, conn->server);
		conn_send(conn, letter);
	}
}

static void arrives_up(void *ctx, uint64_t arg)
{
	struct conn *conn = ctx;
	struct conn_queue *way = &conn->way[UP];
	struct server *server = &conn->world->servers[conn->server];
	struct agenda *agenda = conn->world->agenda;
	int64_t wait_until = way->stalled_until_us;
	struct parcel *parcel;

	(void)arg;
	if (wait_until < server->hung_until_us)
		wait_until = server->hung_until_us;
	if (wait_until > agenda->now_us) {
		if (wait_until < HOPELESS_US)
			agenda_at(agenda, wait_until, arrives_up, conn, 0);
		return;
	}
	parcel = pop(way);
	if (!parcel || !conn->open_there)
		return;
	/* The client has given up, and this packet is lost. */
	if (!conn->deliver_left)
		return;
	if (conn->deliver_left > 0)
		conn->deliver_left--;
	server_reads(conn, parcel);
}

/* Only open connections stay in the list. */
static void forget_closed(struct world *world)
{
	struct conn *conn, *next;

	LL_FOREACH_SAFE(world->conns, conn, next)
		if (!conn->open_there)
			LL_DELETE(world->conns, conn);
}

/* A session has ended. Requests of its connection may still be answered. */
static void session_closed(struct conn *conn, const struct transaction *transaction)
{
	struct world *world = conn->world;
	int64_t longest_us = 4 * world->config.delay_max_us;

	if (transaction->zxid % 2 == 0)
		conn_close_there(conn);
	else
		agenda_in(world->agenda, transaction->zxid * 7919 % longest_us, closes, conn, 0);
}

/* This server has applied one more transaction. */
void conn_applied(struct world *world, int server, const struct transaction *transaction)
{
	struct conn *conn;

	forget_closed(world);
	LL_FOREACH(world->conns, conn) {
		if (conn->server != server || !conn->open_there)
			continue;
		for (int i = 0; i < transaction->count; i++)
			fire_watches(conn, &transaction->changes[i]);
	}
	if (transaction->server == server && transaction->request) {
		transaction->request->ready = true;
		conn_pump(transaction->request->conn);
	}
	if (transaction->server == server && transaction->newborn)
		conn_validated(transaction->newborn, true);
	LL_FOREACH(world->conns, conn) {
		if (conn->server != server || !conn->open_there)
			continue;
		if (transaction->closes && conn->session == transaction->closes)
			session_closed(conn, transaction);
		else if (conn->first && conn->first->wait_applied >= 0)
			conn_pump(conn);
	}
}
