/* SPDX-License-Identifier: MIT
 *
 * stray.c - another ensemble. It has the same root and locks, and sessions with the ids of the
 * first real ones. A mount strays there for a while, by its addresses: it has to make nothing, and
 * to hold nothing by what it is told there. It has met its own ensemble before.
 */
#include "sim.h"

/* The longest pause of an engine that has met another ensemble, and some time to come back. */
#define PAUSE_US 35000000

/* Their ids are known in both. */
#define TWINS 12

static void committing(void *ctx, const struct transaction *transaction)
{
	struct sim *sim = ctx;

	if (!transaction->outside)
		sim_violation(sim, "a mount has changed another ensemble: %s",
		              transaction->changes[0].path);
}

void strays_begin(struct sim *sim)
{
	struct rng rng = {sim->seed * 0x9e3779b97f4a7c15u + 41};
	static const char *const names[] = {SIM_ROOT, SIM_ROOT "/build", SIM_ROOT "/q",
	                                    SIM_ROOT "/.zklockfs"};
	int count = (int)rng_between(&rng, 0, 4);

	if (!sim->plan.weight[FAULT_STRAY])
		return;
	world_init(&sim->other, &sim->agenda, rng, &sim->plan.world);
	/* Ahead of the mounts, or behind what they have seen. */
	sim->other.epoch += rng_chance(&rng, 700) ? 1000 : 0;
	sim->other.committing = committing;
	sim->other.committing_ctx = sim;
	for (int i = 0; i < count; i++)
		world_do(&sim->other, 0, OP(.kind = ENSEMBLE_CREATE, .path = names[i]), 1, NULL);
	for (int i = 0; i < TWINS; i++)
		world_twin_session(&sim->other);
	/* No mount has two sessions with one id, one after the other: ids are made of the time. */
	sim->other.session_count += 1000000;
}

void strays_finish(struct sim *sim)
{
	if (sim->plan.weight[FAULT_STRAY])
		world_finish(&sim->other);
}

static void lead(struct mount *mount, struct world *world)
{
	mount->host.world = mount->host.wire.world = world;
	if (mount->host.wire.conn)
		conn_break(mount->host.wire.conn, rng_chance(&mount->sim->rng, 500) ? -1 : 0);
}

bool stray_is_away(const struct mount *mount)
{
	return mount->host.world == &mount->sim->other;
}

static void come_back(void *ctx, uint64_t serial)
{
	struct mount *mount = ctx;

	if (mount->stray_serial != serial || !stray_is_away(mount))
		return;
	trace("fault: %s is led to its own ensemble again", mount->host.name);
	lead(mount, &mount->sim->world);
}

void stray_begin(struct mount *mount, int64_t duration_us)
{
	struct sim *sim = mount->sim;

	/* At its start it would take the other one for its own, and may. */
	if (mount->host.paused || !lc_ready(mount->host.lc))
		return;
	lead(mount, &sim->other);
	mount->strays_until_us = sim->agenda.now_us + duration_us + PAUSE_US;
	if (sim->faults_end_us < mount->strays_until_us)
		sim->faults_end_us = mount->strays_until_us;
	agenda_in(&sim->agenda, duration_us, come_back, mount, ++mount->stray_serial);
}

void stray_end(struct mount *mount)
{
	if (stray_is_away(mount))
		lead(mount, &mount->sim->world);
}
