/* SPDX-License-Identifier: MIT
 *
 * quorum.c - elections of a leader, and failures of servers.
 */
#include "inside.h"

#include "trace.h"

#include <utlist.h>

static void close_clients(struct world *world, int server)
{
	struct conn *conn;

	LL_FOREACH(world->conns, conn)
		if (conn->server == server)
			conn_close_there(conn);
}

static int members(const struct world *world)
{
	int count = 0;

	for (int i = 0; i < world->config.servers; i++)
		count += !world->servers[i].down && !world->servers[i].cut;
	return count;
}

/* A proposal is lost: a session that was to end lives on, and a session that was
 * to begin does not exist. */
static void take_back(struct world *world, const struct transaction *transaction)
{
	struct session *session;

	if (transaction->closes)
		world_session(world, transaction->closes)->closed = false;
	if (!transaction->newborn)
		return;
	session = world_session(world, transaction->newborn->session);
	if (session)
		session->closed = true;
}

static void depose(struct world *world)
{
	world->calm_since_us = world_now_us(world);
	if (world->leader >= 0) {
		int64_t kept = rng_between(&world->rng, world->committed_count, world->log_count);

		/* The writes of outsiders are kept: world_do() has told their results. */
		for (int64_t i = kept; i < world->log_count; i++)
			if (world->log[i]->outside)
				kept = i + 1;
		trace("world: no leader, %d proposals lost", (int)(world->log_count - kept));
		for (int64_t i = kept; i < world->log_count; i++)
			take_back(world, world->log[i]);
		world->log_count = kept;
		log_rebuild(world);
	}
	world->leader = -1;
	world->reign++;
	for (int i = 0; i < world->config.servers; i++)
		link_reset(&world->servers[i]);
}

/* A server came or went: is there still a leader with a quorum? */
static void reconsider(struct world *world, int64_t patience_us)
{
	int quorum = world->config.servers / 2 + 1;
	struct server *leader = world->leader < 0 ? NULL : &world->servers[world->leader];

	if (leader && !leader->down && !leader->cut && members(world) >= quorum)
		return;
	depose(world);
	if (members(world) >= quorum)
		agenda_in(world->agenda, patience_us, lead, world, world->reign);
}

static void join(struct world *world, struct server *server)
{
	if (world->leader < 0 || server->down || server->cut)
		return;
	log_apply(world, server, world->committed_count);
}

static void pick_leader(struct world *world)
{
	int pick, tries = 20;

	/* a server that hangs does not get the votes, if there is another */
	do
		pick = (int)rng_below(&world->rng, (uint64_t)world->config.servers);
	while (world->servers[pick].down || world->servers[pick].cut ||
	       (world->servers[pick].hung_until_us > world_now_us(world) && tries-- > 0));
	world->leader = pick;
}

void lead(void *ctx, uint64_t reign)
{
	struct world *world = ctx;
	struct session *session;

	if (reign != world->reign || world->leader >= 0)
		return;
	for (int i = 0; i < world->config.servers; i++)
		if (!world->servers[i].cut)
			close_clients(world, i);
	world->epoch++;
	world->counter = 0;
	log_commit(world, world->log_count);
	pick_leader(world);
	trace("world: server %d leads", world->leader);
	for (int i = 0; i < world->config.servers; i++)
		join(world, &world->servers[i]);
	LL_FOREACH(world->sessions, session) {
		if (session->closed)
			continue;
		session->owner = -1;
		world_session_touch(world, session, session->timeout_us);
		session_set_alarm(world, session, session->expiry_us);
	}
	world->last_commit_us = 0;
	world->calm_since_us = world_now_us(world);
	agenda_in(world->agenda, world->config.tick_us / 2, leader_ticks, world, world->reign);
}

/* ---- faults ---- */

void world_hang(struct world *world, int server, int64_t duration_us)
{
	int64_t until_us = world_now_us(world) + duration_us;

	/* never earlier than it was: events have been put off until then already */
	if (world->servers[server].hung_until_us < until_us)
		world->servers[server].hung_until_us = until_us;
}

void world_backlog(struct world *world, int server, int64_t duration_us)
{
	int64_t until_us = world_now_us(world) + duration_us;

	if (world->servers[server].backlog_until_us < until_us)
		world->servers[server].backlog_until_us = until_us;
}

void world_stall_link(struct world *world, int server, enum direction direction,
                      int64_t duration_us)
{
	struct link *link = &world->servers[server].link[direction];
	int64_t until_us = world_now_us(world) + duration_us;

	if (link->stalled_until_us < until_us)
		link->stalled_until_us = until_us;
}

/* The least and the most are as likely as all between them. */
static int64_t some_limit(struct rng *rng, int64_t least_us, int64_t most_us)
{
	switch (rng_below(rng, 3)) {
	case 0:
		return least_us;
	case 1:
		return most_us;
	default:
		return rng_between(rng, least_us, most_us);
	}
}

static void back(void *ctx, uint64_t index)
{
	struct world *world = ctx;
	struct server *server = &world->servers[index];

	trace("world: server %d is back", server->index);
	close_clients(world, server->index);
	server->down = server->cut = false;
	if (world->config.limit_least_us)
		world->config.timeout_max_us[index] = some_limit(
			&world->rng, world->config.limit_least_us, world->config.limit_most_us);
	link_reset(server);
	join(world, server);
	if (world->leader < 0)
		reconsider(world, rng_between(&world->rng, 200000, 2000000));
}

void world_crash(struct world *world, int index, int64_t duration_us)
{
	struct server *server = &world->servers[index];

	if (server->down || server->cut)
		return;
	server->down = true;
	server->touch_count = 0;
	close_clients(world, index);
	link_reset(server);
	reconsider(world, rng_between(&world->rng, 200000, 2000000));
	agenda_in(world->agenda, duration_us, back, world, (uint64_t)index);
}

/* A server that is cut off has noticed, at last, that its peers are gone. */
static void gives_up(void *ctx, uint64_t index)
{
	struct world *world = ctx;
	struct server *server = &world->servers[index];

	if (!server->cut)
		return;
	server->down = true;
	server->touch_count = 0;
	close_clients(world, server->index);
}

void world_cut(struct world *world, int index, int64_t duration_us)
{
	struct server *server = &world->servers[index];
	int64_t patience =
		rng_between(&world->rng, 200000, WORLD_SYNC_TICKS * world->config.tick_us);

	if (server->down || server->cut || world->config.servers < 2)
		return;
	server->cut = true;
	link_reset(server);
	reconsider(world, patience);
	patience = rng_between(&world->rng, 200000, (WORLD_SYNC_TICKS + 1) * world->config.tick_us);
	if (patience < duration_us)
		agenda_in(world->agenda, patience, gives_up, world, (uint64_t)index);
	agenda_in(world->agenda, duration_us, back, world, (uint64_t)index);
}

void world_elect(struct world *world)
{
	if (world->leader < 0)
		return;
	depose(world);
	agenda_in(world->agenda, rng_between(&world->rng, 200000, 2000000), lead, world,
	          world->reign);
}

int64_t world_trouble(const struct world *world, int index)
{
	const struct server *server = &world->servers[index];
	const struct server *leader = &world->servers[world->leader < 0 ? 0 : world->leader];
	int64_t until = world->calm_since_us;

	if (world->leader < 0 || server->down || server->cut)
		return world_now_us(world);
	if (until < server->hung_until_us)
		until = server->hung_until_us;
	if (until < leader->hung_until_us)
		until = leader->hung_until_us;
	if (until < server->backlog_until_us)
		until = server->backlog_until_us;
	if (until < server->link[UP].stalled_until_us)
		until = server->link[UP].stalled_until_us;
	if (until < server->link[DOWN].stalled_until_us)
		until = server->link[DOWN].stalled_until_us;
	return until;
}
