/* SPDX-License-Identifier: MIT
 *
 * sessions.c - sessions: their touches, and their ends.
 */
#include "inside.h"

#include "mutation.h"
#include "trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <utlist.h>

struct session *world_session(const struct world *world, int64_t id)
{
	struct session *session;

	LL_FOREACH(world->sessions, session)
		if (session->id == id)
			return session;
	return NULL;
}

bool world_session_alive(const struct world *world, int64_t id)
{
	struct session *session = world_session(world, id);

	return session && !session->closed;
}

void log_propose_close(struct world *world, struct session *session)
{
	struct transaction *transaction = log_transaction(world);
	struct node *node, *next;
	int room = 0;

	session->closed = true;
	HASH_ITER(hh, world->proposed.nodes, node, next)
		if (node->stat.ephemeral_owner == session->id)
			room++;
	transaction->changes =
		arena_zalloc(&world->arena, (size_t)room * sizeof(*transaction->changes));
	HASH_ITER(hh, world->proposed.nodes, node, next) {
		struct change *change;

		if (node->stat.ephemeral_owner != session->id)
			continue;
		change = &transaction->changes[transaction->count++];
		*change = (struct change){.kind = CHANGE_DELETE, .path = node->path};
		tree_apply(&world->proposed, change, transaction->zxid, transaction->wall_ms);
	}
	transaction->closes = session->id;
	trace("leader: session %" PRIx64 " closed, %d nodes", (uint64_t)session->id, room);
	log_propose(world, transaction);
}

void session_set_alarm(struct world *world, struct session *session, int64_t when_us)
{
	session->alarm_us = when_us;
	agenda_at(world->agenda, when_us, session_expires, world, (uint64_t)session->id);
}

void session_expires(void *ctx, uint64_t id)
{
	struct world *world = ctx;
	struct session *session = world_session(world, (int64_t)id);
	struct server *leader;

	if (!session || session->closed || world->leader < 0)
		return; /* a new leader gives it a new end */
	if (session->alarm_us != world_now_us(world))
		return; /* another alarm was set */
	leader = &world->servers[world->leader];
	if (leader->hung_until_us > world_now_us(world))
		session_set_alarm(world, session, leader->hung_until_us);
	else if (session->expiry_us > world_now_us(world))
		session_set_alarm(world, session, session->expiry_us);
	else
		log_propose_close(world, session);
}

/* Sets the session's end, which may come earlier by that. */
void world_session_touch(struct world *world, struct session *session, int64_t timeout_us)
{
	int64_t tick = world->config.tick_us;

	if (mutation == MUTATE_expire_early)
		timeout_us /= 2;
	session->expiry_us = ((world_now_us(world) + timeout_us) / tick + 1) * tick;
	if (session->expiry_us < session->alarm_us)
		session_set_alarm(world, session, session->expiry_us);
}

struct session *world_session_begin(struct world *world, int64_t timeout_us)
{
	struct session *session = arena_zalloc(&world->arena, sizeof(*session));

	session->id = 0x100000000000000 + ++world->session_count * 0x10001;
	session->timeout_us = timeout_us;
	session->owner = -1;
	session->alarm_us = INT64_MAX;
	LL_PREPEND(world->sessions, session);
	world_session_touch(world, session, timeout_us);
	return session;
}

/* A handshake has come to the leader. For an old session the leader answers at once
 * whether it lives; a new one is accepted when the server has applied its creation. */
void leader_validate(struct world *world, struct conn *conn)
{
	struct session *session;
	struct transaction *transaction;
	struct parcel *parcel;

	if (!conn->session) {
		session = world_session_begin(world, conn->timeout_us);
		session->owner = conn->server;
		conn->session = session->id;
		transaction = log_transaction(world);
		transaction->server = conn->server;
		transaction->newborn = conn;
		log_propose(world, transaction);
		return;
	}
	session = world_session(world, conn->session);
	if (session && session->closed)
		session = NULL;
	if (session) {
		world_session_touch(world, session, conn->timeout_us);
		session->owner = conn->server;
		trace("leader: session %" PRIx64 " renewed by server %d for %d ms",
		      (uint64_t)session->id, conn->server, (int)(conn->timeout_us / 1000));
		if (world->renewed)
			world->renewed(world->renewed_ctx, conn);
	}
	if (conn->server == world->leader) {
		conn_validated(conn, session);
		return;
	}
	parcel = parcel_new(world);
	parcel->kind = PARCEL_VALIDATED;
	parcel->conn = conn;
	parcel->valid = session;
	link_send(world, conn->server, DOWN, parcel);
}

void world_validate(struct world *world, struct conn *conn)
{
	struct parcel *parcel;

	if (conn->server == world->leader) {
		leader_validate(world, conn);
		return;
	}
	parcel = parcel_new(world);
	parcel->kind = PARCEL_VALIDATE;
	parcel->conn = conn;
	link_send(world, conn->server, UP, parcel);
}

void world_touch(struct world *world, struct conn *conn)
{
	struct server *server = &world->servers[conn->server];
	struct session *session;
	int i;

	if (conn->server == world->leader) {
		session = world_session(world, conn->session);
		if (session && !session->closed)
			world_session_touch(world, session, conn->timeout_us);
		return;
	}
	for (i = 0; i < server->touch_count; i++)
		if (server->touches[i].session == conn->session)
			break;
	if (i == (int)(sizeof(server->touches) / sizeof(server->touches[0])))
		abort();
	server->touches[i].session = conn->session;
	server->touches[i].timeout_us = conn->timeout_us;
	if (i == server->touch_count)
		server->touch_count++;
}

void send_touches(struct world *world, struct server *server)
{
	struct parcel *parcel = parcel_new(world);
	size_t size = (size_t)server->touch_count * sizeof(server->touches[0]);

	parcel->kind = PARCEL_TOUCHES;
	parcel->touches = arena_copy(&world->arena, server->touches, size);
	if (rng_below(&world->rng, 1000000) >= world->config.lose_touch_ppm)
		parcel->touch_count = server->touch_count;
	server->touch_count = 0;
	link_send(world, server->index, UP, parcel);
}

void leader_ticks(void *ctx, uint64_t reign)
{
	struct world *world = ctx;
	struct server *leader;

	if (reign != world->reign || world->leader < 0)
		return;
	leader = &world->servers[world->leader];
	if (leader->hung_until_us > world_now_us(world)) {
		agenda_at(world->agenda, leader->hung_until_us, leader_ticks, world, reign);
		return;
	}
	for (int i = 0; i < world->config.servers; i++) {
		struct parcel *parcel;

		if (i == world->leader || world->servers[i].down || world->servers[i].cut)
			continue;
		parcel = parcel_new(world);
		parcel->kind = PARCEL_TICK;
		link_send(world, i, DOWN, parcel);
	}
	agenda_in(world->agenda, world->config.tick_us / 2, leader_ticks, world, reign);
}
