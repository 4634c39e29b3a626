/* SPDX-License-Identifier: MIT
 *
 * world.c - the log, the leader's work on a write, the servers' prefixes of the log.
 */
#include "inside.h"

#include "mutation.h"
#include "trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Wall clock of the leader at virtual time 0. */
#define WALL_BASE_MS 1700000000000

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

int64_t world_wall_ms(const struct world *world)
{
	return WALL_BASE_MS + world_now_us(world) / 1000;
}

/* ---- the log ---- */

void log_apply(struct world *world, struct server *server, int64_t upto)
{
	while (server->applied < upto) {
		const struct transaction *transaction = world->log[server->applied++];

		for (int i = 0; i < transaction->count; i++)
			tree_apply(&server->tree, &transaction->changes[i], transaction->zxid,
			           transaction->wall_ms);
		conn_applied(world, server->index, transaction);
	}
}

void log_commit(struct world *world, int64_t upto)
{
	while (world->committed_count < upto) {
		const struct transaction *transaction = world->log[world->committed_count++];

		if (world->committing && transaction->count)
			world->committing(world->committing_ctx, transaction);
		for (int i = 0; i < transaction->count; i++)
			tree_apply(&world->committed, &transaction->changes[i], transaction->zxid,
			           transaction->wall_ms);
		if (transaction->count)
			world->changes++;
	}
}

static void commit(void *ctx, uint64_t reign)
{
	struct world *world = ctx;
	struct server *leader;

	/* Each proposal adds one event, and each event commits the next proposal. */
	if (reign != world->reign || world->leader < 0 ||
	    world->committed_count == world->log_count)
		return;
	leader = &world->servers[world->leader];
	if (leader->hung_until_us > world_now_us(world)) {
		agenda_at(world->agenda, leader->hung_until_us, commit, world, reign);
		return;
	}
	log_commit(world, world->committed_count + 1);
	for (int i = 0; i < world->config.servers; i++) {
		struct parcel *parcel;

		if (i == world->leader || world->servers[i].down || world->servers[i].cut)
			continue;
		parcel = parcel_new(world);
		parcel->kind = PARCEL_COMMIT;
		parcel->applied = world->committed_count;
		link_send(world, i, DOWN, parcel);
	}
	log_apply(world, leader, world->committed_count);
}

struct transaction *log_transaction(struct world *world)
{
	struct transaction *transaction = arena_zalloc(&world->arena, sizeof(*transaction));

	transaction->zxid = world->epoch << 32 | ++world->counter;
	transaction->wall_ms = world_wall_ms(world);
	transaction->server = -1;
	return transaction;
}

void log_propose(struct world *world, struct transaction *transaction)
{
	int64_t when =
		world_now_us(world) + rng_spread(&world->rng, 50, world->config.commit_max_us);

	if (world->log_count == world->log_room) {
		world->log_room = world->log_room ? world->log_room * 2 : 1024;
		world->log = realloc(world->log, (size_t)world->log_room * sizeof(*world->log));
		if (!world->log)
			abort();
	}
	world->log[world->log_count++] = transaction;
	if (transaction->count)
		world->changes++;
	if (when < world->last_commit_us)
		when = world->last_commit_us;
	world->last_commit_us = when;
	agenda_at(world->agenda, when, commit, world, world->reign);
}

void log_rebuild(struct world *world)
{
	tree_finish(&world->proposed);
	tree_copy(&world->proposed, &world->committed);
	for (int64_t i = world->committed_count; i < world->log_count; i++)
		for (int j = 0; j < world->log[i]->count; j++)
			tree_apply(&world->proposed, &world->log[i]->changes[j],
			           world->log[i]->zxid, world->log[i]->wall_ms);
	world->changes++;
}

/* All or nothing: on an error the changes made so far are taken back. */
static enum ensemble_result prepare(struct world *world, const struct ensemble_op *ops, int count,
                                    int64_t session, struct transaction *transaction)
{
	transaction->changes =
		arena_zalloc(&world->arena, (size_t)count * sizeof(*transaction->changes));
	for (int i = 0; i < count; i++) {
		struct change *change = &transaction->changes[transaction->count];
		enum ensemble_result result =
			tree_judge(&world->proposed, &ops[i], session, change);

		if (result == ENSEMBLE_OK && mutation == MUTATE_lose_delete &&
		    ops[i].kind == ENSEMBLE_DELETE && ops[i].path[strlen(ops[i].path) - 1] <= '9' &&
		    rng_chance(&world->rng, 200))
			continue;
		if (result != ENSEMBLE_OK) {
			bool begun = transaction->count > 0;

			transaction->count = 0;
			if (begun)
				log_rebuild(world);
			return result;
		}
		if (ops[i].kind == ENSEMBLE_CHECK)
			continue;
		change->op = i;
		change->behind = transaction->behind;
		tree_apply(&world->proposed, change, transaction->zxid, transaction->wall_ms);
		transaction->count++;
	}
	return ENSEMBLE_OK;
}

static struct letter *answer_letter(struct world *world, const struct request *request,
                                    const struct transaction *transaction,
                                    enum ensemble_result result)
{
	struct letter *letter = arena_zalloc(&world->arena, sizeof(*letter));
	struct node *node;

	letter->kind = LETTER_ANSWER;
	letter->serial = request->serial;
	letter->result = result;
	letter->zxid = transaction ? transaction->zxid : -1;
	if (result != ENSEMBLE_OK || !transaction)
		return letter;
	if (request->count > 1) {
		letter->paths = arena_zalloc(&world->arena,
		                             (size_t)request->count * sizeof(*letter->paths));
		letter->path_count = request->count;
		for (int i = 0, j = 0; i < request->count; i++) {
			if (request->ops[i].kind == ENSEMBLE_CREATE)
				letter->paths[i] = transaction->changes[j].path;
			/* A CHECK makes no change, and a lie may have left one out. */
			j += j < transaction->count && transaction->changes[j].op == i;
		}
		return letter;
	}
	if (transaction->count && transaction->changes[0].kind == CHANGE_CREATE)
		letter->path = transaction->changes[0].path;
	if (!transaction->count || transaction->changes[0].kind == CHANGE_DELETE)
		return letter;
	node = tree_find(&world->proposed, transaction->changes[0].path);
	letter->stat = node->stat;
	letter->has_stat = true;
	return letter;
}

/* A client's write has come to the leader: directly, or from a follower. */
static void leader_write(struct world *world, struct request *request)
{
	struct session *session = world_session(world, request->conn->session);
	struct transaction *transaction;
	enum ensemble_result result;

	if (!session || session->closed) {
		request->letter = answer_letter(world, request, NULL, ENSEMBLE_GONE);
		request->ready = true;
		conn_pump(request->conn);
		conn_close_there(request->conn);
		return;
	}
	if (session->owner < 0)
		session->owner = request->conn->server;
	if (session->owner != request->conn->server) {
		trace("leader: session %" PRIx64 " moved, request refused", (uint64_t)session->id);
		conn_close_there(request->conn);
		return;
	}
	if (request->count > 2) {
		world->transactions++;
		world->transaction_ops += (unsigned long)request->count;
	}
	transaction = log_transaction(world);
	transaction->server = request->conn->server;
	transaction->request = request;
	transaction->behind = request->conn->serial < session->conn_serial;
	if (!transaction->behind)
		session->conn_serial = request->conn->serial;
	if (world->refuse_next) {
		result = ENSEMBLE_REFUSED;
		world->refuse_next--;
	} else {
		result = prepare(world, request->ops, request->count, session->id, transaction);
	}
	trace("leader: %" PRIx64 " op %d %s%s -> %d zxid %" PRIx64, (uint64_t)session->id,
	      request->ops[0].kind, request->ops[0].path, request->count > 1 ? " ..." : "", result,
	      (uint64_t)transaction->zxid);
	request->letter = answer_letter(world, request, transaction, result);
	log_propose(world, transaction);
}

/* For the leader's own clients a sync is like a read: it waits for nothing. */
static void leader_sync(struct world *world, struct request *request)
{
	struct parcel *parcel;

	if (request->conn->server == world->leader) {
		request->ready = true;
		conn_pump(request->conn);
		return;
	}
	parcel = parcel_new(world);
	parcel->kind = PARCEL_SYNCED;
	parcel->request = request;
	parcel->applied = world->log_count;
	link_send(world, request->conn->server, DOWN, parcel);
}

void leader_request(struct world *world, struct request *request)
{
	if (request->ops[0].kind == ENSEMBLE_SYNC)
		leader_sync(world, request);
	else
		leader_write(world, request);
}

static void pass_on(struct world *world, struct request *request)
{
	struct parcel *parcel;

	if (request->conn->server == world->leader) {
		leader_request(world, request);
		return;
	}
	parcel = parcel_new(world);
	parcel->kind = PARCEL_FORWARD;
	parcel->request = request;
	link_send(world, request->conn->server, UP, parcel);
}

/* The queue of a server that has started again meanwhile, or has another leader, is lost. */
static void backlog_ends(void *ctx, uint64_t index)
{
	struct world *world = ctx;
	struct server *server = &world->servers[index];
	struct request *request = server->backlog;
	int64_t wait_until = later(server->backlog_until_us, server->hung_until_us);

	if (wait_until > world_now_us(world)) {
		agenda_at(world->agenda, wait_until, backlog_ends, world, index);
		return;
	}
	server->backlog = NULL;
	for (; request; request = request->waits_behind)
		if (request->link_generation == server->link_generation)
			pass_on(world, request);
}

void world_forward(struct world *world, struct request *request)
{
	struct server *server = &world->servers[request->conn->server];
	struct request **end = &server->backlog;

	if (!server->backlog && server->backlog_until_us <= world_now_us(world)) {
		pass_on(world, request);
		return;
	}
	if (!server->backlog)
		agenda_at(world->agenda, server->backlog_until_us, backlog_ends, world,
		          (uint64_t)server->index);
	while (*end)
		end = &(*end)->waits_behind;
	*end = request;
	request->link_generation = server->link_generation;
}

/* ---- from outside ---- */

enum ensemble_result world_do(struct world *world, int64_t session, const struct ensemble_op *ops,
                              int count, const char **ret_path)
{
	struct ensemble_op *copies = arena_copy(&world->arena, ops, (size_t)count * sizeof(*ops));
	struct transaction *transaction;
	enum ensemble_result result;

	if (world->leader < 0 || (session && !world_session_alive(world, session)))
		return ENSEMBLE_UNKNOWN;
	for (int i = 0; i < count; i++) {
		copies[i].path = arena_strdup(&world->arena, ops[i].path);
		copies[i].data = arena_copy(&world->arena, ops[i].data, (size_t)ops[i].data_len);
	}
	transaction = log_transaction(world);
	transaction->outside = true;
	result = prepare(world, copies, count, session, transaction);
	trace("outside: op %d %s -> %d", ops[0].kind, ops[0].path, result);
	if (ret_path && result == ENSEMBLE_OK && transaction->count)
		*ret_path = transaction->changes[0].path;
	log_propose(world, transaction);
	return result;
}

int64_t world_foreign_session(struct world *world, int64_t bits)
{
	struct session *session = world_session_begin(world, INT64_MAX / 8);

	session->id |= WORLD_FOREIGN | bits;
	return session->id;
}

int64_t world_twin_session(struct world *world)
{
	return world_session_begin(world, INT64_MAX / 8)->id;
}

void world_close_session(struct world *world, int64_t id)
{
	struct session *session = world_session(world, id);

	if (session && !session->closed && world->leader >= 0)
		log_propose_close(world, session);
}

void world_set_counter(struct world *world, const char *path, int32_t counter)
{
	tree_find(&world->proposed, path)->stat.made = counter;
	tree_find(&world->committed, path)->stat.made = counter;
	for (int i = 0; i < world->config.servers; i++)
		tree_find(&world->servers[i].tree, path)->stat.made = counter;
}

void world_init(struct world *world, struct agenda *agenda, struct rng rng,
                const struct world_config *config)
{
	*world = (struct world){.agenda = agenda, .rng = rng, .config = *config, .leader = -1};
	tree_init(&world->proposed, &world->arena);
	tree_init(&world->committed, &world->arena);
	for (int i = 0; i < config->servers; i++) {
		world->servers[i].index = i;
		tree_init(&world->servers[i].tree, &world->arena);
	}
	lead(world, 0);
}

void world_finish(struct world *world)
{
	tree_finish(&world->proposed);
	tree_finish(&world->committed);
	for (int i = 0; i < world->config.servers; i++)
		tree_finish(&world->servers[i].tree);
	free(world->log);
	arena_finish(&world->arena);
}
