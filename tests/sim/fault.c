/* SPDX-License-Identifier: MIT
 *
 * fault.c - faults, where they happen, and for how long. Every fault ends by
 * itself; faults_end_us is the time when the last one has ended.
 */
#include "sim.h"

#include "mutation.h"

#include <stdlib.h>

#define SILENCE_US 8000000

const char *const fault_names[FAULT_KINDS] = {
	"cut",     "cut-before", "cut-after",   "stall-up", "stall-down", "stall-both",
	"hang",    "crash",      "isolate",     "link",     "greeting",   "elect",
	"pause",   "refuse",     "crash-mount", "evict",    "remake",     "kill-session",
	"still",   "suspect",    "slew",        "stray",    "dark",       "late",
	"silence", "backlog",
};

/* A fault has begun that lasts for so long. */
static void lasts(struct sim *sim, int64_t duration_us)
{
	if (sim->faults_end_us < sim->agenda.now_us + duration_us)
		sim->faults_end_us = sim->agenda.now_us + duration_us;
}

static void break_connection(struct mount *mount, enum fault_kind kind)
{
	struct conn *conn = mount->host.wire.conn;

	if (!conn)
		return;
	if (kind == FAULT_CUT_BEFORE)
		conn_break(conn, 0);
	else if (kind == FAULT_CUT_AFTER)
		conn_break(conn, -1);
	else
		conn_break(conn, (int)rng_below(&mount->sim->rng,
		                                (uint64_t)conn_under_way(conn, UP) + 1));
}

static void stall_connection(struct mount *mount, enum fault_kind kind, int64_t duration_us)
{
	struct conn *conn = mount->host.wire.conn;
	int64_t until_us = mount->sim->agenda.now_us + duration_us;

	/* Some stalls never end: a firewall has forgotten the connection. */
	if (rng_chance(&mount->sim->rng, 150))
		until_us = INT64_MAX / 2;
	if (!conn)
		return;
	if (kind != FAULT_STALL_DOWN)
		conn_stall(conn, UP, until_us);
	if (kind != FAULT_STALL_UP)
		conn_stall(conn, DOWN, until_us);
}

/* The server is cut off, and mostly the mount is stopped, so it cannot go to another one. */
static void strand(void *ctx, uint64_t arg)
{
	struct mount *mount = ctx;
	struct sim *sim = mount->sim;
	int64_t duration_us = sim->plan.timeout_us * 3 / 2;

	(void)arg;
	if (!sim->faulty)
		return;
	lasts(sim, duration_us);
	trace("fault: %s is stranded on server %d", mount->host.name, mount->host.wire.cursor);
	world_cut(&sim->world, mount->host.wire.cursor, duration_us);
	if (rng_chance(&sim->rng, 800))
		host_pause(&mount->host, duration_us);
}

static void when_greeted(void *ctx, uint64_t tries)
{
	struct mount *mount = ctx;
	struct sim *sim = mount->sim;

	if (mount->host.wire.state == WIRE_CONNECTED && !mount->host.wire.late_greeting_us)
		agenda_in(&sim->agenda, rng_between(&sim->rng, 2000, sim->plan.tick_us / 2), strand,
		          mount, 0);
	else if (tries)
		agenda_in(&sim->agenda, 5000, when_greeted, mount, tries - 1);
}

/* The session is touched when the handshake comes to the leader. If the client
 * gets the answer much later, and the leader hears no more of the client, then the
 * moment from which the lease is counted makes a difference. */
static void greeting(struct mount *mount)
{
	break_connection(mount, FAULT_CUT);
	mount->host.wire.late_greeting_us =
		rng_between(&mount->sim->rng, 100000, mount->sim->plan.timeout_us / 5);
	agenda_in(&mount->sim->agenda, 10000, when_greeted, mount, 1000);
}

/* Best while an answer is on its way: the mount reads it after the pause. */
static void stand_still(void *ctx, uint64_t tries)
{
	struct mount *mount = ctx;
	struct sim *sim = mount->sim;
	int64_t most_us = sim->plan.timeout_us * 3 / 2;
	int64_t duration_us = rng_chance(&sim->rng, 500)
	                              ? rng_between(&sim->rng, sim->plan.timeout_us, most_us)
	                              : rng_spread(&sim->rng, 10000, most_us);

	if (!sim->faulty)
		return;
	if (tries && !mount->host.wire.pending) {
		agenda_in(&sim->agenda, 2000, stand_still, mount, tries - 1);
		return;
	}
	trace("fault: the machine of %s stands still for %d ms", mount->host.name,
	      (int)(duration_us / 1000));
	lasts(sim, duration_us);
	host_still(&mount->host, duration_us);
}

/* ---- renewals ---- */

static void go_dark(void *ctx, uint64_t arg)
{
	struct mount *mount = ctx;
	int64_t duration_us = mount->sim->plan.timeout_us * 13 / 10;

	(void)arg;
	if (!mount->sim->faulty)
		return;
	lasts(mount->sim, duration_us);
	wire_darken(&mount->host.wire, mount->sim->agenda.now_us + duration_us);
}

/* The server's answer is lost with the network; or it has come, and a heartbeat or two. */
static void renewed(void *ctx, const struct conn *conn)
{
	struct sim *sim = ctx;

	for (int i = 0; i < sim->plan.mounts; i++) {
		struct mount *mount = &sim->mounts[i];

		if (mount->met != conn)
			continue;
		mount->met = NULL;
		if (rng_chance(&sim->rng, 700))
			go_dark(mount, 0);
		else
			agenda_in(&sim->agenda, rng_spread(&sim->rng, 1000, 2000000), go_dark,
			          mount, 0);
	}
}

void fault_greeted(struct mount *mount)
{
	struct sim *sim = mount->sim;
	int64_t duration_us =
		rng_between(&sim->rng, sim->plan.timeout_us / 6, sim->plan.timeout_us);

	if (mount->meets == FAULT_KINDS || !sim->faulty)
		return;
	mount->met = mount->host.wire.conn;
	if (mount->meets == FAULT_LATE) {
		trace("fault: server %d stands still for %d ms, with a greeting of %s",
		      mount->host.wire.cursor, (int)(duration_us / 1000), mount->host.name);
		lasts(sim, duration_us);
		world_hang(&sim->world, mount->host.wire.cursor, duration_us);
	}
	mount->meets = FAULT_KINDS;
}

/* The server has the create in its queue, stands still, and has another greeting of the session to
 * read when it goes on. */
static void strand_create(void *ctx, uint64_t tries)
{
	struct mount *mount = ctx;
	struct sim *sim = mount->sim;
	struct wire *wire = &mount->host.wire;
	int64_t duration_us =
		rng_between(&sim->rng, sim->plan.timeout_us / 4, sim->plan.timeout_us);

	if (!sim->faulty || wire->state != WIRE_CONNECTED || mount->host.paused)
		return;
	world_backlog(&sim->world, wire->cursor, 10000);
	if (!wire_creates(wire)) {
		if (tries)
			agenda_in(&sim->agenda, 5000, strand_create, mount, tries - 1);
		return;
	}
	trace("fault: server %d stands still for %d ms, with a create of %s", wire->cursor,
	      (int)(duration_us / 1000), mount->host.name);
	lasts(sim, duration_us);
	world_hang(&sim->world, wire->cursor, duration_us);
	world_backlog(&sim->world, wire->cursor,
	              duration_us + 2 * sim->plan.world.delay_max_us + 1000);
	wire->again = true;
	conn_break(wire->conn, -1);
}

static void crash_mount(struct mount *mount)
{
	if (mount->host.paused)
		return;
	users_abandon(mount);
	mount_stop(mount, rng_chance(&mount->sim->rng, 300));
	mount_start(mount);
}

static void inject(struct sim *sim, enum fault_kind kind)
{
	struct mount *mount = &sim->mounts[rng_below(&sim->rng, (uint64_t)sim->plan.mounts)];
	int server = (int)rng_below(&sim->rng, (uint64_t)sim->plan.world.servers);
	/* A fault of the leader does more harm. */
	int target =
		sim->world.leader >= 0 && rng_chance(&sim->rng, 300) ? sim->world.leader : server;
	int64_t most_us = sim->plan.timeout_us * 3 / 2;
	int64_t duration_us = rng_chance(&sim->rng, 300) ? rng_between(&sim->rng, 10000, most_us)
	                                                 : rng_spread(&sim->rng, 10000, most_us);

	/* The server of a holder is a better target than others. */
	if (sim->held && rng_chance(&sim->rng, 500)) {
		mount = sim->held->mount;
		target = server = mount->host.wire.cursor;
	}
	if (sim->plan.lossless && kind == FAULT_HANG && target == sim->world.leader)
		return;
	trace("fault: %s, %s, server %d, %d ms", fault_names[kind], mount->host.name, target,
	      (int)(duration_us / 1000));
	sim->totals->faults[kind]++;
	lasts(sim, duration_us);
	switch (kind) {
	case FAULT_CUT:
	case FAULT_CUT_BEFORE:
	case FAULT_CUT_AFTER:
		break_connection(mount, kind);
		return;
	case FAULT_STALL_UP:
	case FAULT_STALL_DOWN:
	case FAULT_STALL_BOTH:
		stall_connection(mount, kind, duration_us);
		return;
	case FAULT_HANG:
		world_hang(&sim->world, target, duration_us);
		return;
	case FAULT_CRASH:
		world_crash(&sim->world, target, duration_us);
		return;
	case FAULT_ISOLATE:
		world_cut(&sim->world, target, duration_us);
		return;
	case FAULT_LINK:
		world_stall_link(&sim->world, server, rng_chance(&sim->rng, 500) ? UP : DOWN,
		                 duration_us);
		return;
	case FAULT_GREETING:
		greeting(mount);
		return;
	case FAULT_ELECT:
		world_elect(&sim->world);
		return;
	case FAULT_PAUSE:
		host_pause(&mount->host, duration_us);
		return;
	case FAULT_REFUSE:
		sim->world.refuse_next += (unsigned)rng_between(&sim->rng, 1, 3);
		return;
	case FAULT_CRASH_MOUNT:
		crash_mount(mount);
		return;
	case FAULT_EVICT:
		outsider_evict(sim);
		return;
	case FAULT_REMAKE:
		outsider_remake(sim);
		return;
	case FAULT_KILL_SESSION:
		outsider_kill_session(sim);
		return;
	case FAULT_STILL:
		stand_still(mount, rng_chance(&sim->rng, 500) ? 1000 : 0);
		return;
	case FAULT_SUSPECT:
		mount->suspects |= !mount->host.paused;
		host_wake(&mount->host);
		return;
	case FAULT_SLEW:
		host_slew(&mount->host, rng_between(&sim->rng, -1900, 1900));
		return;
	case FAULT_STRAY:
		stray_begin(mount, rng_spread(&sim->rng, 100000, 3 * sim->plan.timeout_us));
		return;
	case FAULT_DARK:
	case FAULT_LATE:
		mount->meets = kind;
		break_connection(mount, FAULT_CUT);
		return;
	case FAULT_SILENCE:
		lasts(sim, SILENCE_US);
		for (int i = 0; i < sim->plan.world.servers; i++)
			world_hang(&sim->world, i, SILENCE_US);
		return;
	case FAULT_BACKLOG:
		strand_create(mount, 400);
		return;
	case FAULT_KINDS:
		break;
	}
	abort();
}

static void strike(void *ctx, uint64_t arg)
{
	struct sim *sim = ctx;
	unsigned sum = 0, dice;
	int kind;

	(void)arg;
	if (!sim->faulty)
		return;
	for (kind = 0; kind < FAULT_KINDS; kind++)
		sum += sim->plan.weight[kind];
	dice = (unsigned)rng_below(&sim->rng, sum);
	for (kind = 0; dice >= sim->plan.weight[kind]; kind++)
		dice -= sim->plan.weight[kind];
	inject(sim, (enum fault_kind)kind);
	agenda_in(&sim->agenda,
	          sim->plan.lossless ? sim->plan.fault_gap_us
	                             : rng_between(&sim->rng, 0, 2 * sim->plan.fault_gap_us),
	          strike, sim, 0);
}

/* The lie slow_answers: everything is slow, but it does not count as a fault. */
static void slow_down(void *ctx, uint64_t arg)
{
	struct sim *sim = ctx;

	(void)arg;
	sim->world.config.delay_max_us = sim->world.config.commit_max_us =
		sim->plan.timeout_us * 9 / 10;
}

void faults_begin(struct sim *sim)
{
	sim->faulty = true;
	sim->faults_end_us = sim->agenda.now_us;
	sim->world.renewed = renewed;
	sim->world.renewed_ctx = sim;
	if (sim->plan.fault_gap_us)
		agenda_in(&sim->agenda, sim->plan.fault_gap_us, strike, sim, 0);
	if (mutation == MUTATE_slow_answers)
		agenda_in(&sim->agenda, 5000000, slow_down, sim, 0);
}
