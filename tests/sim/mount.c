/* SPDX-License-Identifier: MIT
 *
 * mount.c - one mount: an engine, the loop around it, a clock with a drift.
 *
 * The loop is prepare, poll, requests, process; a paused mount does nothing at
 * all while its sockets fill.
 */
#include "sim.h"

#include "mutation.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* So many turns within 10 ms are a loop that spins. */
#define SPIN_TURNS 5000

static void turn(void *ctx, uint64_t serial);

int64_t mount_clock_us(const struct mount *mount)
{
	int64_t now_us = mount->sim->agenda.now_us;

	if (mount->still)
		return mount->still_clock_us;
	return mount->clock_base_us + now_us + now_us / 1000000 * mount->drift_ppm +
	       now_us % 1000000 * mount->drift_ppm / 1000000;
}

static int64_t clock_us(void *ctx)
{
	return mount_clock_us(ctx);
}

void mount_stumble(struct mount *mount)
{
	if (!mount->sim->plan.jump_us || !mount->sim->faulty || !rng_chance(&mount->jump_rng, 30))
		return;
	trace("%s: is stopped in the middle of a turn", mount->host);
	mount->clock_base_us += mount->sim->plan.jump_us;
	mount->trouble_us = mount->sim->agenda.now_us;
}

static int64_t wall_ms(void *ctx)
{
	struct mount *mount = ctx;

	/* Asked at a grant, before anybody is told of it. */
	if (!lease_fresh(&mount->lease, mount_clock_us(mount)))
		sim_violation(mount->sim, "b: %s grants a lock, its lease lasts for %" PRId64 " ms",
		              mount->host, lease_left(&mount->lease, mount_clock_us(mount)) / 1000);
	mount_stumble(mount);
	if (mount->sim->plan.weight[FAULT_SUSPECT] && mount->sim->faulty &&
	    rng_chance(&mount->jump_rng, 20))
		mount->suspects = true;
	return world_wall_ms(&mount->sim->world) + mount->index * 7000;
}

static void deadline(void *ctx, int64_t deadline_us)
{
	struct mount *mount = ctx;
	int64_t lease = mount_doubted(mount) ? mount->lease.deadline_us : lease_end(&mount->lease);

	if (deadline_us > mount->deadline_us && !mount->wire.evidence)
		sim_violation(mount->sim, "a: %s extends its lease, and no write was answered OK",
		              mount->host);
	if (deadline_us != INT64_MIN && deadline_us != lease && !mount->lease_blurred)
		sim_violation(mount->sim,
		              "a: %s has a lease until %" PRId64
		              " us, by what was answered it is %" PRId64,
		              mount->host, deadline_us, lease);
	mount->deadline_us = deadline_us;
}

static bool disrupted(void *ctx)
{
	struct mount *mount = ctx;
	bool suspects = mount->suspects;

	mount->suspects = false;
	if (suspects)
		lease_doubt(&mount->lease, mount_clock_us(mount));
	return suspects;
}

bool mount_doubted(const struct mount *mount)
{
	return lease_doubted(&mount->lease, mount_clock_us(mount));
}

/* The same evidence once more, from the wire. */
static void note_lease_over(struct mount *mount)
{
	if (lease_left(&mount->lease, mount_clock_us(mount)) == 0)
		mount->lease_over_us = mount_clock_us(mount);
}

static void joined(void *ctx, int64_t timeout_us, int64_t connect_us)
{
	struct mount *mount = ctx;

	note_lease_over(mount);
	if (mount->lease_session != mount->wire.session) {
		mount->lease_session = mount->wire.session;
		lease_again(&mount->lease);
	}
	lease_connected(&mount->lease, timeout_us, connect_us);
	note_lease_over(mount);
}

/* What is done for others is not counted: a poke, and the delete of an entry that its mount
 * has not deleted in time. */
static bool is_evidence(struct mount *mount, enum ensemble_kind kind, const char *path)
{
	static const char home[] = SIM_ROOT "/.zklockfs/";
	struct node *node, named = {.name = strrchr(path, '/') + 1, .stat.ephemeral_owner = 1};
	struct taker *taker;

	if (kind == ENSEMBLE_SET && strstr(path, "-pokes"))
		return false;
	if (kind == ENSEMBLE_SET && !strncmp(path, home, sizeof(home) - 1)) {
		node = tree_find(&mount->sim->world.committed, path);
		return !node || node->stat.ephemeral_owner == mount->wire.session;
	}
	if (kind != ENSEMBLE_DELETE || !(order_shape(&named) & SHAPE_OURS))
		return true;
	taker = judge_owner(mount->sim, &named);
	/* By whom, if it was evicted here? Or what if it had stayed without a session? */
	mount->lease_blurred |= !taker || taker->marked_us >= 0 || mount->sim->plan.copies;
	return taker && taker->mount == mount;
}

static void wrote(void *ctx, int64_t sent_us, enum ensemble_kind kind, const char *path)
{
	struct mount *mount = ctx;

	if (!is_evidence(mount, kind, path))
		return;
	note_lease_over(mount);
	lease_answered(&mount->lease, sent_us, mount_clock_us(mount));
}

bool mount_lease_was_over(const struct mount *mount, int64_t since_clock_us)
{
	return lease_left(&mount->lease, mount_clock_us(mount)) == 0 ||
	       mount->lease_over_us >= since_clock_us;
}

static void random_bytes(void *ctx, void *ret_bytes, size_t len)
{
	struct mount *mount = ctx;
	unsigned char *bytes = ret_bytes;

	for (size_t i = 0; i < len; i++)
		bytes[i] = (unsigned char)rng_next(&mount->rng);
}

static void report(void *ctx, enum lc_level level, const char *text)
{
	struct mount *mount = ctx;

	trace("%s: says (%d) %s", mount->host, level, text);
}

int64_t mount_running_us(const struct mount *mount)
{
	int64_t running = mount->sim->agenda.now_us - mount->paused_total_us;

	return mount->paused ? running - (mount->sim->agenda.now_us - mount->paused_since_us)
	                     : running;
}

int64_t mount_trouble(struct mount *mount)
{
	bool troubled =
		mount->paused || mount->suspects || mount_doubted(mount) || mount->wire.refused;
	int64_t until = troubled ? mount->sim->agenda.now_us : wire_trouble(&mount->wire);

	if (mount->trouble_us < until)
		mount->trouble_us = until;
	return mount->trouble_us;
}

static void schedule(struct mount *mount, int64_t when_us)
{
	if (mount->turn_at_us <= when_us)
		return;
	mount->turn_at_us = when_us;
	agenda_at(&mount->sim->agenda, when_us, turn, mount, ++mount->turn_serial);
}

void mount_wake(struct mount *mount)
{
	schedule(mount, mount->sim->agenda.now_us + (int64_t)rng_below(&mount->rng, 150));
}

static void wire_wake(void *ctx)
{
	mount_wake(ctx);
}

static void watch_spinning(struct mount *mount)
{
	int64_t window_us = mount->sim->agenda.now_us / 10000;

	if (mount->spin_window_us != window_us) {
		mount->spin_window_us = window_us;
		mount->spin_turns = 0;
	}
	if (++mount->spin_turns == SPIN_TURNS)
		sim_violation(mount->sim, "%s: the loop spins", mount->host);
}

static void plan_turn(struct mount *mount)
{
	struct pollfd pollfd;
	int64_t wait_us = lc_prepare(mount->lc, &pollfd);
	int64_t now_us = mount->sim->agenda.now_us;

	mount->turn_at_us = INT64_MAX;
	if (wait_us < INT64_MAX / 4)
		schedule(mount, now_us + wait_us + wait_us / 1000000 * -mount->drift_ppm + 1 +
		                        (int64_t)rng_below(&mount->rng, 100));
}

/* Answers lie in the socket, and the lease is over before they are read. What ran out
 * is lost, whatever they say. */
static void oversleep(struct mount *mount)
{
	struct sim *sim = mount->sim;
	struct taker *taker;
	struct lc_status status;

	if (!sim->plan.jump_us || !sim->faulty || !rng_chance(&mount->jump_rng, 1))
		return;
	lc_status(mount->lc, &status);
	if (status.lease_left_us == 0)
		return;
	trace("%s: is stopped until its lease is over", mount->host);
	mount->clock_base_us +=
		status.lease_left_us + (int64_t)rng_below(&mount->jump_rng, 1000000);
	mount->trouble_us = sim->agenda.now_us;
	DL_FOREACH2(sim->held, taker, held_next)
		if (taker->mount == mount && taker->unheld_running_us < 0)
			taker->unheld_running_us = mount_running_us(mount);
}

static void turn(void *ctx, uint64_t serial)
{
	struct mount *mount = ctx;

	if (serial != mount->turn_serial)
		return;
	mount->turn_at_us = INT64_MAX;
	if (mount->paused)
		return;
	watch_spinning(mount);
	oversleep(mount);
	(void)lc_doubted(mount->lc);
	mount->suspects = false;
	lc_process(mount->lc, POLLIN);
	plan_turn(mount);
}

static void move_clock(struct mount *mount, int64_t clock_us)
{
	mount->clock_base_us += clock_us - mount_clock_us(mount);
}

static void resume(void *ctx, uint64_t arg)
{
	struct mount *mount = ctx;

	(void)arg;
	if (mount->still) {
		mount->still = false;
		move_clock(mount, mount->still_clock_us);
		mount->suspects = mutation != MUTATE_unnoticed;
	}
	mount->paused = false;
	mount->paused_total_us += mount->sim->agenda.now_us - mount->paused_since_us;
	trace("%s: goes on", mount->host);
	mount_wake(mount);
}

void mount_pause(struct mount *mount, int64_t duration_us)
{
	if (mount->paused)
		return;
	mount->paused = true;
	mount->paused_since_us = mount->sim->agenda.now_us;
	agenda_in(&mount->sim->agenda, duration_us, resume, mount, 0);
}

void mount_still(struct mount *mount, int64_t duration_us)
{
	if (mount->paused)
		return;
	mount->still_clock_us = mount_clock_us(mount);
	mount->still = true;
	mount_pause(mount, duration_us);
}

void mount_slew(struct mount *mount, int64_t drift_ppm)
{
	int64_t clock_us = mount_clock_us(mount);

	mount->drift_ppm = drift_ppm;
	if (!mount->still)
		move_clock(mount, clock_us);
}

static void wire_freeze(void *ctx, int64_t duration_us)
{
	mount_pause(ctx, duration_us);
}

static void wire_up(struct mount *mount)
{
	wire_init(&mount->wire, &mount->sim->world, rng_fork(&mount->rng), clock_us, wire_wake,
	          mount);
	mount->wire.freeze = wire_freeze;
	mount->wire.joined = joined;
	mount->wire.wrote = wrote;
}

void mount_begin(struct mount *mount, struct sim *sim, int index)
{
	*mount = (struct mount){.sim = sim,
	                        .index = index,
	                        .turn_at_us = INT64_MAX,
	                        .jump_rng = {sim->seed * 31 + (uint64_t)index}};
	mount->host[0] = 'm';
	mount->host[1] = (char)('0' + index);
	mount->rng = rng_fork(&sim->rng);
	mount->clock_base_us = rng_between(&mount->rng, 1000000, 1000000000000);
	if (rng_chance(&mount->rng, 500))
		mount->drift_ppm = rng_between(&mount->rng, -1000, 1000);
	if (mutation == MUTATE_slow_clock)
		mount->drift_ppm = -200000;
	wire_up(mount);
}

void mount_start(struct mount *mount)
{
	struct plan *plan = &mount->sim->plan;
	struct lc_config config = {
		.root = SIM_ROOT,
		.make_root = true,
		.host = plan->namesakes ? "app" : mount->host,
		.session_timeout_us = plan->timeout_us,
		.tick_time_us = plan->tick_us,
		.loss_lead_us = plan->loss_lead_us,
		.without = {.uid = 1, .gid = 1, .mode = 0755, .door_mode = 0644},
		.clock_us = clock_us,
		.wall_ms = wall_ms,
		.random = random_bytes,
		.report = report,
		.disrupted = disrupted,
		.deadline = deadline,
		.ctx = mount,
	};

	mount->deadline_us = INT64_MIN;
	mount->lease_session = 0;
	mount->lease_blurred = false;
	mount->lease_over_us = -1;
	mount->suspects = false;
	lease_begin(&mount->lease, plan->tick_us);
	if (lc_create(&config, &mount->wire.ensemble, &mount->lc) < 0)
		abort();
	plan_turn(mount);
}

void mount_stop(struct mount *mount, bool farewell)
{
	lc_destroy(mount->lc, farewell);
	mount->lc = NULL;
	mount->drained = mount->forfeited = false;
	memset(&mount->told, 0, sizeof(mount->told));
	mount->life++;
	mount->turn_serial++;
	mount->turn_at_us = INT64_MAX;
	wire_finish(&mount->wire);
	wire_up(mount);
}
