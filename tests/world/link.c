/* SPDX-License-Identifier: MIT
 *
 * link.c - packets between a server and the leader: one FIFO for each direction.
 */
#include "inside.h"

struct parcel *parcel_new(struct world *world)
{
	return arena_zalloc(&world->arena, sizeof(struct parcel));
}

static void leader_reads(struct world *world, struct parcel *parcel)
{
	if (parcel->kind == PARCEL_FORWARD) {
		leader_request(world, parcel->request);
	} else if (parcel->kind == PARCEL_VALIDATE) {
		leader_validate(world, parcel->conn);
	} else {
		for (int i = 0; i < parcel->touch_count; i++) {
			struct session *session = world_session(world, parcel->touches[i].session);

			if (session && !session->closed)
				world_session_touch(world, session, parcel->touches[i].timeout_us);
		}
	}
}

static void server_hears(struct world *world, struct server *server, struct parcel *parcel)
{
	if (parcel->kind == PARCEL_COMMIT) {
		log_apply(world, server, parcel->applied);
	} else if (parcel->kind == PARCEL_TICK) {
		send_touches(world, server);
	} else if (parcel->kind == PARCEL_VALIDATED) {
		conn_validated(parcel->conn, parcel->valid);
	} else {
		parcel->request->wait_applied = parcel->applied;
		conn_pump(parcel->request->conn);
	}
}

static void link_arrives(struct world *world, struct server *server, enum direction direction,
                         uint64_t generation, agenda_fn *again)
{
	struct link *link = &server->link[direction];
	struct server *reader = server;
	int64_t wait_until = link->stalled_until_us;
	struct parcel *parcel;

	if (generation != server->link_generation || !link->first || world->leader < 0)
		return;
	if (direction == UP)
		reader = &world->servers[world->leader];
	if (wait_until < reader->hung_until_us)
		wait_until = reader->hung_until_us;
	if (wait_until > world_now_us(world)) {
		agenda_at(world->agenda, wait_until, again, world,
		          generation << 2 | (uint64_t)server->index);
		return;
	}
	parcel = link->first;
	link->first = parcel->next;
	if (!link->first)
		link->last = NULL;
	if (direction == UP)
		leader_reads(world, parcel);
	else
		server_hears(world, server, parcel);
}

static void link_up(void *ctx, uint64_t arg)
{
	struct world *world = ctx;

	link_arrives(world, &world->servers[arg & 3], UP, arg >> 2, link_up);
}

static void link_down(void *ctx, uint64_t arg)
{
	struct world *world = ctx;

	link_arrives(world, &world->servers[arg & 3], DOWN, arg >> 2, link_down);
}

void link_send(struct world *world, int index, enum direction direction, struct parcel *parcel)
{
	struct server *server = &world->servers[index];
	struct link *link = &server->link[direction];
	int64_t when =
		world_now_us(world) + rng_spread(&world->rng, 30, world->config.delay_max_us);

	/* Without a leader, or if the server is cut off from it, the packet is lost. */
	if (server->cut || server->down || world->leader < 0)
		return;
	if (when < link->last_arrival_us)
		when = link->last_arrival_us;
	if (when < link->stalled_until_us)
		when = link->stalled_until_us;
	link->last_arrival_us = when;
	parcel->next = NULL;
	if (link->last)
		link->last->next = parcel;
	else
		link->first = parcel;
	link->last = parcel;
	agenda_at(world->agenda, when, direction == UP ? link_up : link_down, world,
	          server->link_generation << 2 | (uint64_t)index);
}

void link_reset(struct server *server)
{
	server->link_generation++;
	server->link[UP] = (struct link){0};
	server->link[DOWN] = (struct link){0};
}
