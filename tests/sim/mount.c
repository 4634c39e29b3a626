/* SPDX-License-Identifier: MIT
 *
 * mount.c - one mount: an engine on a host whose clock drifts, and the functions that the engine
 * calls; the lease, computed once more from the packets of the wire.
 */
#include "sim.h"

#include "mutation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* A loop with so many turns within 10 ms spins. */
#define SPIN_TURNS 5000

static struct mount *mount_of(void *ctx)
{
	return ((struct host *)ctx)->owner;
}

/* ---- functions that the engine calls ---- */

/* Not while requests wait to be sent: see host_wake(). */
void mount_stumble(struct mount *mount)
{
	if (host_keeps(&mount->host) || !mount->sim->plan.jump_us || !mount->sim->faulty ||
	    !rng_chance(&mount->jump_rng, 30))
		return;
	trace("%s: is stopped in the middle of a turn", mount->host.name);
	mount->host.clock_base_us += mount->sim->plan.jump_us;
	mount->trouble_us = mount->sim->agenda.now_us;
}

static int64_t wall_ms(void *ctx)
{
	struct mount *mount = mount_of(ctx);
	int64_t clock_us = host_clock_us(&mount->host);

	/* The engine reads the wall clock at a grant, before the taker is told. */
	if (!lease_fresh(&mount->lease, clock_us))
		sim_violation(mount->sim, "b: %s grants a lock, its lease lasts for %" PRId64 " ms",
		              mount->host.name, lease_left(&mount->lease, clock_us) / 1000);
	if (lease_left(&mount->lease, clock_us) <= mount->sim->plan.loss_lead_us)
		sim_violation(mount->sim, "b: %s grants a lock, its holder is to be stopped by now",
		              mount->host.name);
	mount_stumble(mount);
	if (mount->sim->plan.weight[FAULT_SUSPECT] && mount->sim->faulty &&
	    rng_chance(&mount->jump_rng, 20))
		mount->suspects = true;
	return world_wall_ms(&mount->sim->world) + mount->host.index * 7000;
}

/* The end of a lease costs nothing where the mount has no entry. */
static void note_rest(struct mount *mount)
{
	struct lc_status status = {0};

	if (mount->host.lc)
		lc_status(mount->host.lc, &status);
	if (status.session && status.entries)
		sim_violation(mount->sim, "a: %s gives its lease up, and has entries",
		              mount->host.name);
	if (status.session)
		lease_rest(&mount->lease);
}

static void deadline(void *ctx, int64_t deadline_us)
{
	struct mount *mount = mount_of(ctx);
	int64_t lease =
		mount_doubted(mount) ? lease_certain_end(&mount->lease) : lease_end(&mount->lease);

	if (mount->vanishing)
		return;
	if (deadline_us == INT64_MIN && mount->deadline_us != INT64_MIN)
		note_rest(mount);
	/* The answer of a renewal gives back what it had cost, and no more. */
	if (deadline_us > mount->deadline_us && !mount->host.wire.evidence &&
	    (!mount->host.wire.joining || deadline_us > mount->proved_us))
		sim_violation(mount->sim, "a: %s extends its lease, and no write was answered OK",
		              mount->host.name);
	if (mount->host.wire.evidence)
		mount->proved_us = deadline_us;
	if (deadline_us != INT64_MIN && deadline_us != lease && !mount->lease_blurred)
		sim_violation(mount->sim,
		              "a: %s has a lease until %" PRId64
		              " us, by what was answered it is %" PRId64,
		              mount->host.name, deadline_us, lease);
	mount->deadline_us = deadline_us;
}

static bool disrupted(void *ctx)
{
	struct mount *mount = mount_of(ctx);
	bool suspects = mount->suspects;

	mount->suspects = false;
	mount->suspected |= suspects;
	if (suspects)
		lease_doubt(&mount->lease, host_clock_us(&mount->host));
	return suspects;
}

int64_t mount_session(const struct mount *mount)
{
	struct lc_status status = {0};

	if (mount->host.lc)
		lc_status(mount->host.lc, &status);
	return status.session ? status.session : mount->host.wire.session;
}

bool mount_doubted(const struct mount *mount)
{
	return lease_doubted(&mount->lease, host_clock_us(&mount->host));
}

/* Notes that the lease is over at this moment, at which the wire tells of new evidence. */
static void note_lease_over(struct mount *mount)
{
	if (lease_left(&mount->lease, host_clock_us(&mount->host)) == 0)
		mount->lease_over_us = host_clock_us(&mount->host);
}

static void renews(void *ctx)
{
	struct mount *mount = mount_of(ctx);

	note_lease_over(mount);
	lease_renews(&mount->lease, host_clock_us(&mount->host));
	note_lease_over(mount);
}

static void joined(void *ctx, int64_t timeout_us, int64_t connect_us)
{
	struct mount *mount = mount_of(ctx);

	if (mount_session(mount) != mount->host.wire.session)
		return; /* an inquiry about the mount's session */
	note_lease_over(mount);
	if (mount->lease_session != mount->host.wire.session) {
		mount->lease_session = mount->host.wire.session;
		lease_again(&mount->lease);
	}
	/* No server lengthens a session: what was asked is kept to. */
	if (timeout_us > mount->sim->plan.timeout_us)
		timeout_us = mount->sim->plan.timeout_us;
	lease_connected(&mount->lease, timeout_us, connect_us);
	mount->granted_us = mount->lease.timeout_us;
	note_lease_over(mount);
}

/* Writes to mailboxes are no evidence, nor is the delete of an entry that its own mount has not
 * deleted in time. Nor is the directory for the heartbeats, which a write follows. */
static bool is_evidence(struct mount *mount, enum ensemble_kind kind, const char *path)
{
	static const char home[] = SIM_ROOT "/.zklockfs/";
	struct node *node, named = {.name = strrchr(path, '/') + 1, .stat.ephemeral_owner = 1};
	struct taker *taker;

	if (strstr(path, "-pokes"))
		return false;
	if (kind == ENSEMBLE_CREATE && strlen(path) == sizeof(home) - 2)
		return strncmp(path, home, sizeof(home) - 2) != 0;
	if (kind == ENSEMBLE_SET && !strncmp(path, home, sizeof(home) - 1)) {
		node = tree_find(&mount->sim->world.committed, path);
		return !node || node->stat.ephemeral_owner == mount_session(mount);
	}
	if (kind != ENSEMBLE_DELETE || !(order_shape(&named) & SHAPE_OF_MOUNT))
		return true;
	taker = judge_owner(mount->sim, &named);
	/* The delete of an evicted or unknown entry may or may not count: the judge cannot tell. */
	mount->lease_blurred |= !taker || taker->marked_us >= 0 || mount->sim->plan.copies ||
	                        mount->sim->plan.weight[FAULT_BACKLOG];
	return taker && taker->mount == mount;
}

static void wrote(void *ctx, int64_t sent_us, enum ensemble_kind kind, const char *path)
{
	struct mount *mount = mount_of(ctx);

	if (!is_evidence(mount, kind, path))
		return;
	note_lease_over(mount);
	lease_answered(&mount->lease, sent_us, host_clock_us(&mount->host));
}

bool mount_lease_was_over(const struct mount *mount, int64_t since_clock_us)
{
	return lease_left(&mount->lease, host_clock_us(&mount->host)) == 0 ||
	       mount->lease_over_us >= since_clock_us;
}

int64_t mount_trouble(struct mount *mount)
{
	bool troubled = mount->host.paused || mount->suspects || mount_doubted(mount) ||
	                mount->host.wire.refused ||
	                mount->sim->agenda.now_us < mount->strays_until_us;
	int64_t until = troubled ? mount->sim->agenda.now_us : wire_trouble(&mount->host.wire);

	if (mount->trouble_us < until)
		mount->trouble_us = until;
	return mount->trouble_us;
}

static void watch_spinning(struct mount *mount)
{
	int64_t window_us = mount->sim->agenda.now_us / 10000;

	if (mount->spin_window_us != window_us) {
		mount->spin_window_us = window_us;
		mount->spin_turns = 0;
	}
	if (++mount->spin_turns == SPIN_TURNS)
		sim_violation(mount->sim, "%s: the loop spins", mount->host.name);
}

/* Answers have arrived in the socket, and the lease ends before they are read. Then the
 * locks are lost, whatever the answers say. */
static void oversleep(struct mount *mount)
{
	struct sim *sim = mount->sim;
	struct taker *taker;
	struct lc_status status;

	if (!sim->plan.jump_us || !sim->faulty || !rng_chance(&mount->jump_rng, 1))
		return;
	lc_status(mount->host.lc, &status);
	if (status.lease_left_us == 0)
		return;
	trace("%s: is stopped until its lease is over", mount->host.name);
	mount->host.clock_base_us +=
		status.lease_left_us + (int64_t)rng_below(&mount->jump_rng, 1000000);
	mount->trouble_us = sim->agenda.now_us;
	DL_FOREACH2(sim->held, taker, held_next)
		if (taker->mount == mount && taker->unheld_running_us < 0)
			taker->unheld_running_us = host_running_us(&mount->host);
}

/* Where this turn ends. */
static enum death choose_death(struct mount *mount)
{
	struct sim *sim = mount->sim;

	if (!sim->faulty || mount->turns == 0 || mount->host.paused ||
	    !rng_chance(&mount->death_rng, sim->plan.deaths))
		return LIVES;
	return (enum death)rng_between(&mount->death_rng, DIES_BEFORE, DIES_SENT);
}

/* What another process goes on from when this one dies. And a judge: the changes that were
 * recorded, put together, are all that there is. */
static void record(struct mount *mount)
{
	const char *why;
	unsigned kind;

	if (!notes_record(&mount->host.notes, mount->host.lc, &kind, &why))
		sim_violation(mount->sim, "%s: %s: kind %u", mount->host.name, why, kind);
	mount->turns++;
	mount->last_lease = mount->lease;
	mount->suspected = false;
}

static void keep_records(struct mount *mount)
{
	if (mount->sim->plan.records)
		record(mount);
}

static void die(struct mount *mount);

static void turns(struct host *host)
{
	struct mount *mount = host->owner;

	watch_spinning(mount);
	if (mount->sim->faulty && rng_chance(&mount->reload_rng, mount->sim->plan.reloads))
		mount_reload(mount);
	oversleep(mount);
	(void)lc_doubted(host->lc);
	mount->suspects = false;
	mount->death = choose_death(mount);
	mount->vanishing = mount->death == DIES_BEFORE;
}

/* Who rests is used by nobody: it would lose the lease. */
static void watch_rest(struct mount *mount)
{
	struct lc_status status;

	if (!mount->sim->plan.rest_us)
		return;
	lc_status(mount->host.lc, &status);
	if (status.resting && (status.holders || status.waiters || status.losing || status.leaving))
		sim_violation(mount->sim, "%s: rests while it has takers", mount->host.name);
	mount->sim->totals->rests += status.resting && !mount->rests;
	mount->rests = status.resting;
}

static void ends(struct host *host)
{
	struct mount *mount = host->owner;
	enum death death = mount->death ? mount->death : choose_death(mount);

	mount->death = UNDECIDED;
	watch_rest(mount);
	if (death != DIES_BEFORE) {
		keep_records(mount);
		if (death != DIES_UNSENT)
			lc_send(host->lc);
	}
	if (death != LIVES)
		die(mount);
}

static void stood_still(struct host *host)
{
	mount_of(host)->suspects = mutation != MUTATE_unnoticed;
}

static void wire_freezes(void *ctx, int64_t duration_us)
{
	host_pause(ctx, duration_us);
}

static void greets(void *ctx)
{
	fault_greeted(mount_of(ctx));
}

static const struct host_hooks hooks = {
	.turns = turns,
	.ends = ends,
	.stood_still = stood_still,
	.freeze = wire_freezes,
	.renews = renews,
	.joined = joined,
	.wrote = wrote,
	.greets = greets,
};

/* ---- beginning and end ---- */

void mount_begin(struct mount *mount, struct sim *sim, int index)
{
	struct rng rng = rng_fork(&sim->rng);
	int64_t clock_base_us = rng_between(&rng, 1000000, 1000000000000), drift_ppm = 0;

	if (rng_chance(&rng, 500))
		drift_ppm = rng_between(&rng, -1000, 1000);
	if (mutation == MUTATE_slow_clock)
		drift_ppm = -200000;
	*mount = (struct mount){.sim = sim,
	                        .meets = FAULT_KINDS,
	                        .jump_rng = {sim->seed * 31 + (uint64_t)index},
	                        .reload_rng = {sim->seed * 37 + (uint64_t)index},
	                        .death_rng = {sim->seed * 41 + (uint64_t)index}};
	host_init(&mount->host, &sim->world, index, rng, &hooks, mount);
	mount->host.jitter = true;
	mount->host.clock_base_us = clock_base_us;
	mount->host.drift_ppm = drift_ppm;
}

static struct lc_config configure(struct mount *mount)
{
	struct plan *plan = &mount->sim->plan;
	struct lc_config config = host_config(&mount->host, SIM_ROOT);

	if (plan->namesakes)
		config.host = "app";
	config.clients = plan->clients;
	config.session_timeout_us = plan->timeout_us;
	config.tick_time_us = plan->tick_us;
	config.loss_lead_us = plan->loss_lead_us;
	config.reuse = plan->reuse;
	config.rest_us = plan->rest_us;
	config.without =
		(struct lc_attributes){.uid = 1, .gid = 1, .mode = 0755, .lock_file_mode = 0644};
	config.wall_ms = wall_ms;
	config.disrupted = disrupted;
	config.deadline = deadline;
	return config;
}

void mount_start(struct mount *mount)
{
	struct lc_config config = configure(mount);

	stray_end(mount);
	mount->deadline_us = INT64_MIN;
	mount->lease_session = 0;
	mount->lease_blurred = false;
	mount->lease_over_us = -1;
	mount->suspects = mount->suspected = false;
	mount->turns = 0;
	lease_begin(&mount->lease, mount->sim->plan.tick_us, mount->sim->plan.loss_lead_us);
	if (host_start(&mount->host, &config) < 0)
		abort();
}

/* False: no other process may go on now. A question that writes prevents that. */
static bool may_reload(struct mount *mount)
{
	struct lc *lc = mount->host.lc;
	struct lc_status status;

	if (!lc_settled(lc) && rng_chance(&mount->reload_rng, 700)) {
		questions_cancel(mount->sim, mount, NULL);
		if (!lc_settled(lc))
			sim_violation(mount->sim, "%s: nobody asks, and it is busy",
			              mount->host.name);
	}
	lc_status(lc, &status);
	return lc_settled(lc) && status.state != LC_UNUSABLE;
}

/* All requests that were sent arrive, or some of them. */
static void replace_engine(struct mount *mount, struct rng *rng)
{
	struct lc_config config = configure(mount);
	struct conn *conn = mount->host.wire.conn;
	int r;

	questions_cancel(mount->sim, mount, NULL); /* they are not saved */
	if (conn && rng_chance(rng, 500))
		conn_break(conn, (int)rng_below(rng, (uint64_t)conn_under_way(conn, UP) + 1));
	mount->vanishing = true;
	host_stop(&mount->host, false);
	mount->vanishing = false;
	r = host_adopt(&mount->host, &config);
	if (r < 0) {
		sim_violation(mount->sim, "%s: refuses its own records: %d", mount->host.name, r);
		abort();
	}
}

void mount_reload(struct mount *mount)
{
	if (mount->host.paused || !may_reload(mount))
		return;
	if (rng_chance(&mount->reload_rng, 200)) {
		trace("%s: the other process does not start", mount->host.name);
		mount->sim->totals->not_reloaded++;
		return;
	}
	trace("%s: goes on in another process", mount->host.name);
	record(mount); /* as it is now */
	mount->sim->totals->reloads++;
	replace_engine(mount, &mount->reload_rng);
	users_claim(mount, false);
}

/* The process is killed, and another one takes its place. To all others, its work since the last
 * recorded turn has not happened. */
static void die(struct mount *mount)
{
	struct sim *sim = mount->sim;

	trace("%s: is killed, and goes on in another process", mount->host.name);
	sim->totals->deaths++;
	mount->trouble_us = sim->agenda.now_us;
	memmove(mount->died_us + 1, mount->died_us, sizeof(mount->died_us) - sizeof(int64_t));
	mount->died_us[0] = sim->agenda.now_us;
	mount->lease = mount->last_lease;
	if (mount->deadline_us == INT64_MIN) /* a lease that ended in a rest goes on */
		mount->deadline_us = lease_certain_end(&mount->lease);
	mount->suspects |= mount->suspected;
	replace_engine(mount, &mount->death_rng);
	users_claim(mount, true);
	if (rng_chance(&mount->death_rng, 200))
		host_pause(&mount->host,
		           rng_spread(&mount->death_rng, 1000, sim->plan.timeout_us / 8));
	host_wake(&mount->host);
}

void mount_stop(struct mount *mount, bool farewell)
{
	host_stop(&mount->host, farewell);
	mount->drained = mount->forfeited = false;
	memset(&mount->told, 0, sizeof(mount->told));
	mount->life++;
}
