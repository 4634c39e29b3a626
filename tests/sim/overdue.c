/* SPDX-License-Identifier: MIT
 *
 * overdue.c - steps that take too long: looked for from time to time; and leftovers at the end,
 * when all faults are over and all takers have left.
 */
#include "judge.h"

#include <inttypes.h>
#include <utlist.h>

static void judge_waiter(struct taker *taker)
{
	struct sim *sim = taker->sim;
	struct mount *mount = taker->mount;
	int64_t waited_us = host_running_us(&mount->host) - taker->took_running_us;
	int64_t limit_us = taker->wait_us == 0 ? sim->plan.timeout_us / 3 : taker->wait_us;

	if (taker->wait_us != LC_FOREVER && waited_us > limit_us + SLACK_US)
		sim_violation(sim,
		              "f: taker %d on %s waits for %" PRId64 " ms, %" PRId64 " were asked",
		              taker->pid, mount->host.name, waited_us / 1000, limit_us / 1000);
	if (taker->evicted_front && !taker->entries && taker->evicted_us >= 0 &&
	    now_us(sim) - later(taker->evicted_us, mount_trouble(mount)) > NOTICE_US)
		sim_violation(sim, "d: taker %d on %s was evicted from %s and is not told",
		              taker->pid, mount->host.name, taker->lock->name);
	/* Only a mount's first waiter watches its entry; the others hear of an
	 * eviction when the lock is listed next. */
	if (taker->entries || taker->phase != T_WAITING || taker->evicted_token ||
	    taker->marked_us >= 0) {
		taker->alone_since_us = -1;
		return;
	}
	if (taker->alone_since_us < 0)
		taker->alone_since_us = now_us(sim);
	if (now_us(sim) - later(taker->alone_since_us, mount_trouble(mount)) > ALONE_US)
		sim_violation(sim, "d: taker %d on %s waits for %s without an entry", taker->pid,
		              mount->host.name, taker->lock->name);
}

/* An entry of a create that was done late is found by a listing of its lock. */
static void judge_late(struct sim *sim, struct node *node, struct taker *owner)
{
	bool lone = !owner || owner->phase == T_LEFT || owner->phase == T_FAILED;

	if (!node->behind || !judge_is_entry(node))
		return;
	if (!lone || !world_session_alive(&sim->world, node->stat.ephemeral_owner))
		node->late_since_us = 0;
	else if (!node->late_since_us)
		node->late_since_us = now_us(sim);
	for (int i = 0; node->late_since_us && i < sim->plan.mounts; i++) {
		struct mount *mount = &sim->mounts[i];

		if (mount->host.wire.session == node->stat.ephemeral_owner &&
		    now_us(sim) - later(node->late_since_us, mount_trouble(mount)) > LATE_US)
			sim_violation(sim, "d: %s of %s, which came late, stays in its lock",
			              node->path, mount->host.name);
	}
}

static void judge_node(struct sim *sim, struct lock_state *lock, struct node *node)
{
	struct taker *owner = judge_owner(sim, node);
	int64_t trouble_us;
	bool lone;

	marks_judge_node(sim, node);
	judge_late(sim, node, owner);
	if (!owner || owner->life != owner->mount->life)
		return;
	trouble_us = mount_trouble(owner->mount);
	owner->entries++;
	lone = owner->phase == T_LEFT || owner->phase == T_FAILED || owner->entries > 1 ||
	       (owner->phase == T_LOST && judge_may_go(owner));
	if (!lone || !world_session_alive(&sim->world, node->stat.ephemeral_owner))
		node->lone_since_us = 0;
	else if (!node->lone_since_us)
		node->lone_since_us = now_us(sim);
	/* An entry of a former session, which the mount has given up, goes with that session. */
	if (node->stat.ephemeral_owner != mount_session(owner->mount))
		return;
	if (node->lone_since_us && !node->behind &&
	    now_us(sim) - node->lone_since_us > BRISK_US(sim) &&
	    now_us(sim) - trouble_us > SETTLED_US)
		sim_violation(sim, "d: %s of %s stays in %s, its taker has %s", node->name,
		              owner->mount->host.name, lock->name,
		              owner->entries > 1 ? "another" : taker_phase_name(owner->phase));
	if (node->could_since_us && owner->phase == T_WAITING &&
	    now_us(sim) - node->could_since_us > BRISK_US(sim) &&
	    now_us(sim) - trouble_us > AFTER_TROUBLE_US(sim))
		sim_violation(sim, "d: taker %d, %s, on %s could hold %s and waits", owner->pid,
		              owner->mode == LC_SHARED ? "shared" : "exclusive",
		              owner->mount->host.name, lock->name);
}

static void judge_mount(struct mount *mount)
{
	struct sim *sim = mount->sim;
	int64_t told_us = mount->deadline_us == INT64_MIN
	                          ? 0
	                          : later(mount->deadline_us - host_clock_us(&mount->host), 0);
	struct lc_status status;

	lc_status(mount->host.lc, &status);
	if (mount->suspects || mount_doubted(mount))
		return;
	/* The end of a doubt is told in the next turn. */
	if (mount->lease.doubt_us != INT64_MAX &&
	    (mount->host.paused || mount->host.turn_at_us <= now_us(sim) + 1000))
		return;
	if (told_us != status.lease_left_us)
		sim_violation(sim,
		              "a: %s has a lease of %" PRId64 " us, the guardian was told %" PRId64,
		              mount->host.name, status.lease_left_us, told_us);
	if (mount->deadline_us != INT64_MIN && mount->deadline_us != lease_end(&mount->lease) &&
	    !mount->lease_blurred)
		sim_violation(sim,
		              "a: %s has a lease until %" PRId64
		              " us, by what was answered it is %" PRId64,
		              mount->host.name, mount->deadline_us, lease_end(&mount->lease));
	if (status.state == LC_READY && !mount->host.wire.proved)
		sim_violation(sim, "b: %s is ready, and no write was answered on this connection",
		              mount->host.name);
	if (sim->plan.short_sessions && status.state == LC_READY)
		sim_violation(sim, "a: %s is ready with a session of %" PRId64 " ms",
		              mount->host.name, status.session_timeout_us / 1000);
}

static void look_slowly(void *ctx, uint64_t arg)
{
	struct sim *sim = ctx;
	struct taker *taker;
	struct node *parent, *node;

	(void)arg;
	look_at_locks(sim);
	for (int i = 0; i < sim->plan.mounts; i++)
		judge_mount(&sim->mounts[i]);
	DL_FOREACH(sim->takers, taker)
		taker->entries = 0;
	for (int i = 0; i < sim->plan.locks; i++) {
		parent = tree_find(&sim->world.committed, sim->locks[i].path);
		if (parent)
			DL_FOREACH(parent->children, node)
				judge_node(sim, &sim->locks[i], node);
	}
	DL_FOREACH(sim->takers, taker) {
		if (!taker->told)
			judge_waiter(taker);
		marks_judge(taker);
		if (taker->at_ease && taker->behind_since_us &&
		    now_us(sim) - later(taker->behind_since_us, mount_trouble(taker->mount)) >
		            NOTICE_US)
			sim_violation(sim,
			              "d: a taker waits behind taker %d on %s, which is not told",
			              taker->pid, taker->mount->host.name);
		if (taker->phase == T_HELD && taker->unheld_running_us >= 0 &&
		    host_running_us(&taker->mount->host) - taker->unheld_running_us > UNHELD_US)
			sim_violation(sim, "a: taker %d does not hold %s any more and is not told",
			              taker->pid, taker->lock->name);
	}
	judge_questions(sim);
	agenda_in(&sim->agenda, LOOK_US, look_slowly, sim, 0);
}

void overdue_begin(struct sim *sim)
{
	agenda_in(&sim->agenda, LOOK_US, look_slowly, sim, 0);
}

/* ---- the end ---- */

static struct node *some_entry(struct sim *sim)
{
	struct node *parent, *node;

	for (int i = 0; i < sim->plan.locks; i++) {
		parent = tree_find(&sim->world.committed, sim->locks[i].path);
		if (!parent)
			continue;
		DL_FOREACH(parent->children, node)
			if (judge_is_entry(node))
				return node;
	}
	return NULL;
}

bool judge_all_clear(struct sim *sim)
{
	if (sim->programs_left || sim->outsiders_left || sim->takers || sim->questions ||
	    some_entry(sim))
		return false;
	for (int i = 0; i < sim->plan.mounts; i++)
		if (!lc_idle(sim->mounts[i].host.lc))
			return false;
	return true;
}

void judge_counters(struct sim *sim)
{
	for (int i = 0; i < sim->plan.mounts; i++) {
		struct mount *mount = &sim->mounts[i];
		unsigned long failures = 0, waits = 0;
		struct lc_counters *counters;
		struct lc_status status;

		lc_status(mount->host.lc, &status);
		counters = &status.counters;
		for (int j = 0; j < LC_FAILURES; j++)
			failures += counters->failures[j];
		for (int j = 0; j <= LC_WAIT_BUCKETS; j++)
			waits += counters->waits[j];
		if (counters->takes != mount->told.takes ||
		    counters->grants != mount->told.grants ||
		    counters->losses != mount->told.losses || failures != mount->told.failures ||
		    counters->abandoned != mount->told.abandoned || waits != counters->grants ||
		    counters->takes != counters->grants + failures + counters->abandoned ||
		    counters->hand_offs > counters->takes)
			sim_violation(sim,
			              "%s counts %lu takes, %lu grants, %lu losses, %lu failures, "
			              "%lu abandoned "
			              "and %lu waits; there were %lu, %lu, %lu, %lu, %lu",
			              mount->host.name, counters->takes, counters->grants,
			              counters->losses, failures, counters->abandoned, waits,
			              mount->told.takes, mount->told.grants, mount->told.losses,
			              mount->told.failures, mount->told.abandoned);
	}
}

static void trace_entries(struct sim *sim)
{
	struct node *parent, *node;

	for (int i = 0; i < sim->plan.locks; i++) {
		parent = tree_find(&sim->world.committed, sim->locks[i].path);
		if (!parent)
			continue;
		DL_FOREACH(parent->children, node)
			trace("left: %s, owner %" PRIx64 ", alive %d, taker %s", node->path,
			      (uint64_t)node->stat.ephemeral_owner,
			      world_session_alive(&sim->world, node->stat.ephemeral_owner),
			      judge_owner(sim, node)
			              ? taker_phase_name(judge_owner(sim, node)->phase)
			              : "-");
	}
}

void judge_leftovers(struct sim *sim)
{
	struct node *node = some_entry(sim);

	trace_entries(sim);

	if (sim->takers)
		sim_violation(sim, "d: at the end taker %d on %s is still %s for %s",
		              sim->takers->pid, sim->takers->mount->host.name,
		              taker_phase_name(sim->takers->phase), sim->takers->lock->name);
	if (sim->questions)
		sim_violation(sim, "e: at the end question %d is not answered",
		              sim->questions->kind);
	if (node)
		sim_violation(sim, "d: at the end there is %s", node->path);
	for (int i = 0; i < sim->plan.mounts; i++)
		if (!lc_idle(sim->mounts[i].host.lc))
			sim_violation(sim, "d: at the end %s is not idle",
			              sim->mounts[i].host.name);
	sim_violation(sim, "d: at the end %d programs and %d outsiders are not done",
	              sim->programs_left, sim->outsiders_left);
}
