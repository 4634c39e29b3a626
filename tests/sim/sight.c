/* SPDX-License-Identifier: MIT
 *
 * sight.c - a look at the trees when they have changed: the entries, the takers that could hold,
 * that would have to wait, that wait behind a holder; and errors that one look can show.
 */
#include "judge.h"

#include <inttypes.h>
#include <utlist.h>

static struct crowd without(const struct crowd *crowd, const struct crowd *leavers)
{
	return (struct crowd){crowd->all - leavers->all, crowd->exclusive - leavers->exclusive,
	                      crowd->apart - leavers->apart};
}

/* Notes for each try without an entry whether it would have to wait now. */
static void look_at_tries(struct sim *sim, struct lock_state *lock, const struct crowd *crowd,
                          const struct crowd *leavers, unsigned slots)
{
	struct taker *taker;

	DL_FOREACH(sim->takers, taker) {
		struct crowd left;

		if (taker->lock != lock || taker->wait_us || taker->phase != T_WAITING ||
		    taker->seen == sim->trees_seen)
			continue;
		left = without(crowd, &leavers[taker->mount->host.index]);
		if (!crowd_admits(&left, taker->mode, slots))
			taker->unfree_us = now_us(sim);
	}
}

/* So many wait now; the same before each taker that does not wait behind many. */
static void look_at_crowd(struct sim *sim, struct lock_state *lock, unsigned waiting)
{
	struct taker *taker;

	for (unsigned n = 0; n <= waiting && n <= CROWD_MAX; n++)
		lock->crowded_us[n] = now_us(sim);
	DL_FOREACH(sim->takers, taker)
		if (taker->lock == lock && taker->crowd > 0 && waiting >= taker->crowd &&
		    taker->phase == T_WAITING && taker->seen != sim->trees_seen)
			taker->crowded_us = now_us(sim);
}

/* Whether the waiter has to be told something: it could hold, or never will. `crowd`: the entries
 * before it. An upgrade never will if an exclusive entry stands before it: that one waits for the
 * shared lock which the upgrade replaces. When the shared lock is lost, the upgrade waits like any
 * other taker. */
static bool look_at_waiter(struct taker *taker, struct crowd *crowd, const struct crowd *leavers,
                           unsigned slots)
{
	bool replaces = taker->replaces && taker->replaces->phase == T_HELD;
	struct crowd left;

	if (replaces) {
		crowd->all--;
		crowd->apart--;
	}
	left = without(crowd, leavers);
	taker->seen = taker->sim->trees_seen;
	if (!crowd_admits(&left, taker->mode, slots))
		taker->unfree_us = now_us(taker->sim);
	if (left.exclusive)
		taker->barred_us = now_us(taker->sim);
	return crowd_admits(crowd, taker->mode, slots) || (replaces && crowd->exclusive);
}

/* With several slots another client's entry may hold, even if there are fewer slots now. */
bool sight_may_wait(const struct sim *sim, const struct taker *owner, const struct mount *mount)
{
	return owner ? owner->phase != T_HELD && !judge_leaving(owner, mount)
	             : sim->plan.slots_max == 1;
}

/* Its mount counts the entry as gone. */
static bool surely_leaves(const struct taker *owner, const struct mount *mount)
{
	return judge_leaving(owner, mount) && (owner->phase != T_LOST || judge_may_go(owner));
}

/* Does anybody wait behind a holder? An entry that its own mount will delete may count or not. */
static void look_behind(struct sim *sim, struct lock_state *lock, struct node *parent,
                        unsigned slots)
{
	struct taker *taker;

	DL_FOREACH2(sim->held, taker, held_next) {
		bool behind = false, surely = false, maybe = false;
		struct crowd crowd = {0};
		struct node *node;

		if (taker->lock != lock)
			continue;
		DL_FOREACH(parent->children, node) {
			unsigned shape = order_shape(node);
			enum lc_mode mode = shape & SHAPE_SHARED ? LC_SHARED : LC_EXCLUSIVE;
			struct taker *owner;

			if (behind && shape & SHAPE_ENTRY && !crowd_admits(&crowd, mode, slots) &&
			    (taker->mode == LC_EXCLUSIVE || mode == LC_EXCLUSIVE)) {
				owner = judge_owner(sim, node);
				maybe |= !surely_leaves(owner, taker->mount);
				surely |= sight_may_wait(sim, owner, taker->mount) &&
				          !(shape & SHAPE_STRAY);
			}
			behind |= node->stat.czxid == taker->token;
			crowd_add(&crowd, shape);
		}
		if (maybe)
			taker->behind_us = now_us(sim);
		if (!surely)
			taker->behind_since_us = 0;
		else if (!taker->behind_since_us)
			taker->behind_since_us = now_us(sim);
	}
}

static void look_at_entries(struct sim *sim, struct lock_state *lock, struct node *parent,
                            bool committed)
{
	struct crowd leavers[MOUNTS_MAX] = {0}; /* entries that surely leave */
	unsigned slots = order_slots(parent);
	bool incompatible = (sim->plan.foreign_families || sim->plan.near_overflow) &&
	                    order_has_incompatible(parent);
	bool stray = sim->plan.copies && order_has_stray(parent); /* its place is not certain */
	unsigned waiting = 0;
	struct crowd crowd = {0}, left;
	struct node *node;

	sim->trees_seen++;
	if (incompatible)
		lock->incompatible_us = now_us(sim);
	DL_FOREACH(parent->children, node) {
		unsigned shape = order_shape(node);
		struct taker *owner = judge_owner(sim, node);
		enum lc_mode mode = shape & SHAPE_SHARED ? LC_SHARED : LC_EXCLUSIVE;
		bool could;

		if (!(shape & SHAPE_ENTRY))
			continue;
		left = crowd;
		waiting += !crowd_admits(&crowd, mode, slots);
		if (owner && owner->phase == T_WAITING)
			could = look_at_waiter(owner, &left, &leavers[owner->mount->host.index],
			                       slots);
		else
			could = crowd_admits(&left, mode, slots);
		if (stray && owner && owner->phase == T_WAITING)
			owner->unfree_us = owner->barred_us = now_us(sim);
		if (committed && (incompatible || stray || !could))
			node->could_since_us = 0;
		else if (committed && !node->could_since_us)
			node->could_since_us = now_us(sim);
		crowd_add(&crowd, shape);
		/* An entry of a session that was given up stays until that session expires.
		 * One that came late is another client's until its mount has read it. */
		if (owner && surely_leaves(owner, owner->mount) && !node->late_since_us &&
		    node->stat.ephemeral_owner == mount_session(owner->mount))
			crowd_add(&leavers[owner->mount->host.index], shape);
	}
	for (int i = 0; i < sim->plan.mounts; i++)
		for (enum lc_mode mode = LC_EXCLUSIVE; mode <= LC_SHARED; mode++) {
			left = without(&crowd, &leavers[i]);
			if (!crowd_admits(&left, mode, slots))
				lock->contended_us[i][mode] = now_us(sim);
		}
	look_at_tries(sim, lock, &crowd, leavers, slots);
	/* The place of a copy of an entry is not certain, nor who waits behind it. */
	look_at_crowd(sim, lock, stray ? CROWD_MAX : waiting);
	if (committed && sim->plan.curious)
		look_behind(sim, lock, parent, slots);
}

/* The end of an entry's session was proposed, and the leader failed before the commit: session
 * and entry live on. */
static void look_at_spared(struct sim *sim, struct node *parent)
{
	struct node *node;

	DL_FOREACH(parent->children, node) {
		struct taker *taker = judge_owner(sim, node);

		if (!taker || taker->evicted_token != node->stat.czxid)
			continue;
		taker->evicted_us = -1;
		taker->evicted_token = 0;
		taker->evicted_front = false;
	}
}

void look_at_lock(struct sim *sim, struct lock_state *lock)
{
	struct node *proposed = tree_find(&sim->world.proposed, lock->path);
	struct node *committed = tree_find(&sim->world.committed, lock->path);

	if (!proposed || !committed)
		lock->absent_us = now_us(sim);
	if (proposed || committed)
		lock->present_us = now_us(sim);
	if (proposed) {
		look_at_spared(sim, proposed);
		look_at_entries(sim, lock, proposed, false);
	}
	if (committed)
		look_at_entries(sim, lock, committed, true);
}

/* Its create was under way when somebody ended the session. Then the create of a taker before it
 * may have been refused already, and be sent behind it. */
static bool was_under_way(const struct taker *taker)
{
	int64_t killed_us = taker->mount->killed_us;

	return taker->took_us <= killed_us && taker->took_us > killed_us - LAG_US;
}

/* A mount that loses its session loses its places, but its takers keep their order. */
static void judge_places(struct sim *sim, struct lock_state *lock)
{
	struct node *parent = tree_find(&sim->world.committed, lock->path);
	struct taker *last[MOUNTS_MAX] = {NULL};
	struct node *node;

	if (!parent)
		return;
	DL_FOREACH(parent->children, node)
		order_shape(node); /* which may find that a former one is nobody's */
	DL_FOREACH(parent->children, node) {
		struct taker *taker = judge_owner(sim, node), *before;
		bool again;

		if (!taker || taker->life != taker->mount->life)
			continue;
		again = node->stat.ephemeral_owner != taker->entry_session;
		if (taker->look == sim->looks && !again)
			sim_violation(sim, "d: taker %d on %s has two entries in %s", taker->pid,
			              taker->mount->host.name, lock->name);
		taker->look = sim->looks;
		if (node->stat.czxid != taker->entry_token &&
		    (again || node->stat.czxid > taker->entry_token)) {
			taker->former_token = again ? taker->entry_token : taker->former_token;
			taker->former_session =
				again ? taker->entry_session : taker->former_session;
			taker->entry_token = node->stat.czxid;
			taker->entry_session = node->stat.ephemeral_owner;
		}
		before = last[taker->mount->host.index];
		/* Not if the taker's first create may have been refused, or have found no
		 * lock, or was done late, or if its entry was deleted alone. */
		if (before && !node->behind && before->entry_session == taker->entry_session &&
		    !before->former_token && !sim->plan.weight[FAULT_REFUSE] &&
		    !taker->evicted_alone && lock->absent_us < taker->took_us &&
		    !taker->former_token && before->wait_us && taker->wait_us && !taker->crowd &&
		    !before->crowd && before->took_us > taker->took_us && !was_under_way(before))
			sim_violation(
				sim, "b: taker %d on %s came before %d to %s, and stands behind it",
				taker->pid, taker->mount->host.name, before->pid, lock->name);
		if (before && before->entry_session == taker->entry_session &&
		    before->former_token && !taker->evicted_alone && taker->former_token &&
		    before->former_session == taker->former_session &&
		    before->former_token > taker->former_token)
			sim_violation(
				sim,
				"b: taker %d on %s stands in %s before %d, which was before it",
				before->pid, taker->mount->host.name, lock->name, taker->pid);
		last[taker->mount->host.index] = taker;
	}
}

int64_t sight_made_us(const struct sim *sim, const struct node *node)
{
	return now_us(sim) - (world_wall_ms(&sim->world) - node->stat.ctime_ms) * 1000;
}

bool sight_has_entry(const struct taker *taker)
{
	struct node *parent = tree_find(&taker->sim->world.committed, taker->lock->path), *node;

	if (!parent)
		return false;
	DL_FOREACH(parent->children, node)
		if (judge_owner(taker->sim, node) == taker &&
		    node->stat.ephemeral_owner == mount_session(taker->mount))
			return true;
	return false;
}

/* A try, and a taker that does not wait behind many, list the lock before they make an entry. */
static void judge_picky(struct sim *sim, struct lock_state *lock)
{
	struct node *parent = tree_find(&sim->world.committed, lock->path);
	/* Not all entries that came first stand before it; and copies are made at any place. */
	bool in_order =
		!sim->plan.weight[FAULT_REFUSE] && !sim->plan.late_readers && !sim->plan.copies;
	struct node *node, *before;

	if (!parent)
		return;
	DL_FOREACH(parent->children, node) {
		struct taker *taker = judge_owner(sim, node);
		struct crowd crowd = {0};
		unsigned waiting = 0;

		if (!taker || (taker->wait_us != 0 && taker->crowd == 0) || taker->upgrades ||
		    taker->phase != T_WAITING ||
		    mount_trouble(taker->mount) >= taker->took_us - LAG_US)
			continue;
		for (before = parent->children; before != node; before = before->next) {
			unsigned shape = order_shape(before);
			enum lc_mode mode = shape & SHAPE_SHARED ? LC_SHARED : LC_EXCLUSIVE;

			if (sight_made_us(sim, before) >= taker->took_us - LAG_US ||
			    judge_passes(taker, order_pid(before)))
				continue;
			waiting += shape & SHAPE_ENTRY &&
			           !crowd_admits(&crowd, mode, sim->plan.slots_max);
			crowd_add(&crowd, shape);
		}
		if (taker->wait_us == 0 && !crowd_admits(&crowd, taker->mode, sim->plan.slots_max))
			sim_violation(
				sim,
				"f: taker %d would not wait and queues in %s, which was not free",
				taker->pid, lock->name);
		if (taker->wait_us != 0 && waiting >= taker->crowd && in_order)
			sim_violation(sim, "f: taker %d waits in %s behind %u, not behind %u",
			              taker->pid, lock->name, waiting, taker->crowd);
	}
}

/* A taker that loses its lock may work on until it is stopped: its entry has to stay. */
static void judge_guards(struct sim *sim)
{
	struct taker *taker;

	DL_FOREACH(sim->takers, taker) {
		if (taker->phase != T_LOST || !taker->guarding)
			continue;
		if (!judge_works_on(taker) || taker->evicted_token == taker->token ||
		    !world_session_alive(&sim->world, taker->entry_session))
			taker->guarding = false;
		else if (!judge_entry(&sim->world.proposed, taker))
			sim_violation(
				sim,
				"a: taker %d has lost %s and may still work, its entry is gone",
				taker->pid, taker->lock->name);
	}
}

void look_at_locks(struct sim *sim)
{
	sim->looks++;
	for (int i = 0; i < sim->plan.locks; i++) {
		look_at_lock(sim, &sim->locks[i]);
		judge_places(sim, &sim->locks[i]);
		judge_picky(sim, &sim->locks[i]);
	}
	judge_guards(sim);
	sim->changes_seen = sim->world.changes;
}
