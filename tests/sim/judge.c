/* SPDX-License-Identifier: MIT
 *
 * judge.c - what must hold in every run. The judge sees the world as no client
 * can: what is proposed, what is committed, who was told what.
 *
 *   a  one holder: whoever may believe to hold has its entry in the ensemble, and
 *      nobody else believes so
 *   b  grants in the order of creation, past own leavers only
 *   c  fencing tokens rise
 *   d  no entry without a taker; nobody waits for a free lock
 *   e  each take and each call has one answer
 *   f  try and timed takes keep their time, errors have their reason
 *   g  lost only with a cause
 *
 * Bounds count from the last moment of trouble for the mount in question.
 */
#include "sim.h"

#include "mutation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define LOOK_US 250000            /* how often slow wrongs are looked for */
#define LAG_US 500000             /* a server without trouble shows what is committed */
#define NOTICE_US 2000000         /* an evicted holder has heard of it */
#define SETTLED_US 4000000        /* after trouble, before brisk answers are asked for */
/* Some round trips: an entry without a taker is deleted, who is first is granted. */
#define BRISK_US(sim) (200000 + 15 * (sim)->plan.world.delay_max_us + 5 * (sim)->plan.world.commit_max_us)
#define NEWS_US 50000             /* where nothing is slow: a watch tells */
/* After a silence the lease wants two more steps, each w after the other, or T/6
 * while nobody waits. */
#define AFTER_TROUBLE_US(sim) (2500000 + (sim)->plan.tick_us + (sim)->plan.timeout_us / 3)
#define ALONE_US 4000000          /* who waits has an entry */
#define UNHELD_US 1000000         /* who does not hold any more is told */
#define SLACK_US 1000000          /* of a time limit */

void sim_violation(struct sim *sim, const char *format, ...)
{
	va_list args;

	if (sim->violation[0])
		return;
	va_start(args, format);
	vsnprintf(sim->violation, sizeof(sim->violation), format, args);
	va_end(args);
	trace("VIOLATION: %s", sim->violation);
}

static int64_t now_us(const struct sim *sim)
{
	return sim->agenda.now_us;
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* ---- whose entry ---- */

struct taker *judge_owner(struct sim *sim, struct node *node)
{
	int number = order_pid(node) - PID_BASE;

	return number >= 0 && number < sim->taker_count ? sim->all[number] : NULL;
}

/* The token that it has, whether or not its mount knows. */
int64_t judge_find_token(const struct taker *taker)
{
	struct node *parent = tree_find(&taker->sim->world.committed, taker->lock->path), *node;
	int64_t token = taker->evicted_token > taker->entry_token ? taker->evicted_token : taker->entry_token;

	if (parent)
		DL_FOREACH(parent->children, node)
			if (order_pid(node) == taker->pid && node->stat.czxid > token)
				token = node->stat.czxid;
	return token;
}

struct node *judge_entry(const struct tree *tree, const struct taker *taker)
{
	struct node *parent = tree_find(tree, taker->lock->path);
	struct node *node;

	if (!parent)
		return NULL;
	DL_FOREACH(parent->children, node)
		if (node->stat.czxid == taker->token && order_pid(node) == taker->pid)
			return node;
	return NULL;
}

/* Lost, and somebody may still work under it: for a session timeout at most. */
static bool works_on(const struct taker *taker)
{
	const struct plan *plan = &taker->sim->plan;

	return taker->phase == T_LOST && taker->forfeited ? true
	       : taker->phase == T_LOST && plan->loss_lead_us && !taker->stopped &&
	       /* who has evicted it does not wait for ever */
	       (!marks_taken_away(taker) || now_us(taker->sim) - taker->marked_us < plan->timeout_us * 8 / 10) &&
	       mount_clock_us(taker->mount) - taker->lost_clock_us < plan->timeout_us * 8 / 10;
}

/* Lost, and its entry is to be deleted. */
static bool may_go(const struct taker *taker)
{
	if (taker->forfeited)
		return false;
	return taker->stopped || !taker->sim->plan.loss_lead_us ||
	       mount_clock_us(taker->mount) - taker->lost_clock_us > taker->sim->plan.timeout_us + UNHELD_US;
}

/* Its own mount may pass this entry by: it is going to be deleted. */
static bool leaving(const struct taker *owner, const struct mount *mount)
{
	return owner && !works_on(owner) && owner->mount == mount && owner->life == mount->life && owner->phase != T_WAITING &&
	       owner->phase != T_HELD;
}

/* Or it is to take that one's place. */
bool judge_passes(const struct taker *taker, int pid)
{
	int number = pid - PID_BASE;

	if (taker->instead && taker->instead->pid == pid && taker->instead->phase == T_HELD)
		return true;
	return number >= 0 && number < taker->sim->taker_count && leaving(taker->sim->all[number], taker->mount);
}

/* ---- one look at the trees, when they have changed ---- */

static struct crowd without(const struct crowd *crowd, const struct crowd *leavers)
{
	return (struct crowd){crowd->all - leavers->all, crowd->exclusive - leavers->exclusive,
	                      crowd->apart - leavers->apart};
}

/* Whoever will not wait, and has no entry yet, would have to. */
static void look_at_tries(struct sim *sim, struct lock_state *lock, const struct crowd *crowd,
                          const struct crowd *leavers, unsigned slots)
{
	struct taker *taker;

	DL_FOREACH(sim->takers, taker) {
		struct crowd left;

		if (taker->lock != lock || taker->wait_us || taker->phase != T_WAITING || taker->seen == sim->trees_seen)
			continue;
		left = without(crowd, &leavers[taker->mount->index]);
		if (!crowd_admits(&left, taker->mode, slots))
			taker->unfree_us = now_us(sim);
	}
}

/* Whether it has to be told something: it could hold, or never will. `crowd`: those before it. */
static bool look_at_waiter(struct taker *taker, struct crowd *crowd, const struct crowd *leavers, unsigned slots)
{
	struct crowd left;

	if (taker->instead && taker->instead->phase == T_HELD) {
		crowd->all--;
		crowd->apart--;
	}
	left = without(crowd, leavers);
	taker->seen = taker->sim->trees_seen;
	if (!crowd_admits(&left, taker->mode, slots))
		taker->unfree_us = now_us(taker->sim);
	if (left.exclusive)
		taker->barred_us = now_us(taker->sim);
	return crowd_admits(crowd, taker->mode, slots) || (taker->instead && crowd->exclusive);
}

static bool somebody_deaf(struct node *parent)
{
	struct node *node;

	DL_FOREACH(parent->children, node)
		if (order_shape(node) & SHAPE_DEAF)
			return true;
	return false;
}

/* Where there are fewer slots than there were, it may hold all the same. */
static bool may_wait(const struct sim *sim, const struct taker *owner, const struct mount *mount)
{
	return owner ? owner->phase != T_HELD && !leaving(owner, mount) : sim->plan.slots_max == 1;
}

/* Who waits behind a holder. An entry that its own mount is to delete counts as it likes. */
static void look_behind(struct sim *sim, struct lock_state *lock, struct node *parent, unsigned slots)
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
				maybe |= !leaving(owner, taker->mount) || (owner->phase == T_LOST && !may_go(owner));
				surely |= may_wait(sim, owner, taker->mount);
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

static void look_at_entries(struct sim *sim, struct lock_state *lock, struct node *parent, bool committed)
{
	struct crowd leavers[MOUNTS_MAX] = {0};   /* surely so */
	unsigned slots = order_slots(parent);
	bool deaf = sim->plan.foreign_families && somebody_deaf(parent);
	struct crowd crowd = {0}, left;
	struct node *node;

	sim->trees_seen++;
	if (deaf)
		lock->deaf_us = now_us(sim);
	DL_FOREACH(parent->children, node) {
		unsigned shape = order_shape(node);
		struct taker *owner = judge_owner(sim, node);
		enum lc_mode mode = shape & SHAPE_SHARED ? LC_SHARED : LC_EXCLUSIVE;
		bool could;

		if (!(shape & SHAPE_ENTRY))
			continue;
		left = crowd;
		if (owner && owner->phase == T_WAITING)
			could = look_at_waiter(owner, &left, &leavers[owner->mount->index], slots);
		else
			could = crowd_admits(&left, mode, slots);
		if (committed && (deaf || !could))
			node->could_since_us = 0;
		else if (committed && !node->could_since_us)
			node->could_since_us = now_us(sim);
		crowd_add(&crowd, shape);
		if (owner && leaving(owner, owner->mount) && (owner->phase != T_LOST || may_go(owner)))
			crowd_add(&leavers[owner->mount->index], shape);
	}
	for (int i = 0; i < sim->plan.mounts; i++)
		for (enum lc_mode mode = LC_EXCLUSIVE; mode <= LC_SHARED; mode++) {
			left = without(&crowd, &leavers[i]);
			if (!crowd_admits(&left, mode, slots))
				lock->contended_us[i][mode] = now_us(sim);
		}
	look_at_tries(sim, lock, &crowd, leavers, slots);
	if (committed && sim->plan.curious)
		look_behind(sim, lock, parent, slots);
}

static void look_at_lock(struct sim *sim, struct lock_state *lock)
{
	struct node *proposed = tree_find(&sim->world.proposed, lock->path);
	struct node *committed = tree_find(&sim->world.committed, lock->path);

	if (!proposed || !committed)
		lock->absent_us = now_us(sim);
	if (proposed || committed)
		lock->present_us = now_us(sim);
	if (proposed)
		look_at_entries(sim, lock, proposed, false);
	if (committed)
		look_at_entries(sim, lock, committed, true);
}

/* Who loses its session loses its place, not its turn among those of its mount. */
static void judge_places(struct sim *sim, struct lock_state *lock)
{
	struct node *parent = tree_find(&sim->world.committed, lock->path);
	struct taker *last[MOUNTS_MAX] = {NULL};
	struct node *node;

	if (!parent)
		return;
	DL_FOREACH(parent->children, node) {
		struct taker *taker = judge_owner(sim, node), *before;
		bool again;

		if (!taker || taker->life != taker->mount->life)
			continue;
		again = node->stat.ephemeral_owner != taker->entry_session;
		if (taker->look == sim->looks && !again)
			sim_violation(sim, "d: taker %d on %s has two entries in %s", taker->pid, taker->mount->host,
			              lock->name);
		taker->look = sim->looks;
		if (node->stat.czxid != taker->entry_token && (again || node->stat.czxid > taker->entry_token)) {
			taker->former_token = again ? taker->entry_token : taker->former_token;
			taker->former_session = again ? taker->entry_session : taker->former_session;
			taker->entry_token = node->stat.czxid;
			taker->entry_session = node->stat.ephemeral_owner;
		}
		before = last[taker->mount->index];
		/* Unless its first create was refused, and nobody heard of it. */
		if (before && before->entry_session == taker->entry_session && !before->former_token &&
		    !sim->plan.weight[FAULT_REFUSE] &&
		    !taker->former_token && before->wait_us && taker->wait_us && before->took_us > taker->took_us)
			sim_violation(sim, "b: taker %d on %s came before %d to %s, and stands behind it", taker->pid,
			              taker->mount->host, before->pid, lock->name);
		if (before && before->entry_session == taker->entry_session && before->former_token &&
		    taker->former_token && before->former_session == taker->former_session &&
		    before->former_token > taker->former_token)
			sim_violation(sim, "b: taker %d on %s stands in %s before %d, which was before it", before->pid,
			              taker->mount->host, lock->name, taker->pid);
		last[taker->mount->index] = taker;
	}
}

static int64_t made_us(const struct sim *sim, const struct node *node)
{
	return now_us(sim) - (world_wall_ms(&sim->world) - node->stat.ctime_ms) * 1000;
}

/* Whoever will not wait looks first, so as not to be in the way of others. */
static void judge_try(struct sim *sim, struct lock_state *lock)
{
	struct node *parent = tree_find(&sim->world.committed, lock->path);
	struct node *node, *before;

	if (!parent)
		return;
	DL_FOREACH(parent->children, node) {
		struct taker *taker = judge_owner(sim, node);
		struct crowd crowd = {0};

		if (!taker || taker->wait_us != 0 || taker->upgrades || taker->phase != T_WAITING ||
		    mount_trouble(taker->mount) >= taker->took_us - LAG_US)
			continue;
		for (before = parent->children; before != node; before = before->next)
			if (made_us(sim, before) < taker->took_us - LAG_US && !judge_passes(taker, order_pid(before)))
				crowd_add(&crowd, order_shape(before));
		if (!crowd_admits(&crowd, taker->mode, sim->plan.slots_max))
			sim_violation(sim, "f: taker %d would not wait and queues in %s, which was not free",
			              taker->pid, lock->name);
	}
}

/* Who loses a lock may work on until it is stopped. */
static void judge_guards(struct sim *sim)
{
	struct taker *taker;

	DL_FOREACH(sim->takers, taker) {
		if (taker->phase != T_LOST || !taker->guarding)
			continue;
		if (!works_on(taker) || taker->evicted_token == taker->token ||
		    !world_session_alive(&sim->world, taker->entry_session))
			taker->guarding = false;
		else if (!judge_entry(&sim->world.proposed, taker))
			sim_violation(sim, "a: taker %d has lost %s and may still work, its entry is gone", taker->pid,
			              taker->lock->name);
	}
}

static void look_at_locks(struct sim *sim)
{
	sim->looks++;
	for (int i = 0; i < sim->plan.locks; i++) {
		look_at_lock(sim, &sim->locks[i]);
		judge_places(sim, &sim->locks[i]);
		judge_try(sim, &sim->locks[i]);
	}
	judge_guards(sim);
	sim->changes_seen = sim->world.changes;
}

/* ---- a: one holder ---- */

static void judge_evicted(struct taker *taker)
{
	struct sim *sim = taker->sim;
	int64_t since_us = later(taker->evicted_us, mount_trouble(taker->mount));

	/* Nobody sees before it has contact; then the watch tells. */
	if (now_us(sim) - since_us > NOTICE_US)
		sim_violation(sim, "a: taker %d was evicted and still holds %s", taker->pid, taker->lock->name);
	if (now_us(sim) - taker->evicted_us > sim->plan.timeout_us + NOTICE_US && taker->mount->paused)
		sim_violation(sim, "a: taker %d was evicted, its lease never ends", taker->pid);
}

/* Evicted before a local hand-off made it a holder: nobody can have known, but
 * until it is known the leaver's entry has to stand guard. */
static bool guarded(struct taker *taker)
{
	struct node *parent = tree_find(&taker->sim->world.proposed, taker->lock->path);
	struct node *node;

	if (parent)
		DL_FOREACH(parent->children, node)
			if (node->stat.czxid < taker->token && leaving(judge_owner(taker->sim, node), taker->mount))
				return true;
	return false;
}

/* Or so shortly before the grant that the news was on its way. */
static bool evicted_as_holder(const struct taker *taker)
{
	int64_t under_way_us = taker->sim->plan.evict_waiters ? NEWS_US : BRISK_US(taker->sim);

	return taker->evicted_us >= 0 && (taker->evicted_us >= taker->granted_us - under_way_us ||
	                                  taker->mount->trouble_us >= taker->evicted_us);
}

/* Who holds a lock at this moment, by what they believe. */
struct band {
	struct taker *exclusive, *shared;   /* the last one of them in the queue */
	int count;                          /* exclusive */
};

static void judge_band(struct band *band, struct taker *taker)
{
	struct taker **last = taker->mode == LC_SHARED ? &band->shared : &band->exclusive;

	/* Both of one owner: that is one. */
	if (taker->heir && taker->heir->phase == T_HELD)
		return;
	if (!*last || (*last)->token < taker->token)
		*last = taker;
	band->count += taker->mode == LC_EXCLUSIVE;
	if (band->exclusive && band->shared)
		sim_violation(taker->sim, "a: takers %d, exclusive, and %d, shared, both hold %s", band->exclusive->pid,
		              band->shared->pid, taker->lock->name);
	/* Each of them was let in with all those before it. */
	if (band->count > 1 && band->count > (int)band->exclusive->most_slots)
		sim_violation(taker->sim, "a: %d hold %s, among them taker %d; there were %u slots", band->count,
		              taker->lock->name, band->exclusive->pid, band->exclusive->most_slots);
}

static void judge_holders(struct sim *sim)
{
	struct band bands[LOCKS_MAX] = {0};
	bool over[MOUNTS_MAX] = {0};
	struct taker *taker;

	/* Without asking lc_holds(), from which the engine would learn it. */
	for (int i = 0; sim->held && i < sim->plan.mounts; i++) {
		struct mount *mount = &sim->mounts[i];

		over[i] = mount->deadline_us == INT64_MIN || mount->deadline_us <= mount_clock_us(mount);
	}
	DL_FOREACH2(sim->held, taker, held_next) {
		bool lease_over = over[taker->mount->index];

		if (lease_over && sim->seed % 2 && !taker->mount->paused && lc_holds(taker->lc))
			sim_violation(sim, "a: taker %d holds %s without a lease", taker->pid, taker->lock->name);
		if (lease_over || !lc_holds(taker->lc)) {
			if (taker->unheld_running_us < 0)
				taker->unheld_running_us = mount_running_us(taker->mount);
			continue;
		}
		if (taker->unheld_running_us >= 0)
			sim_violation(sim, "a: taker %d holds %s again", taker->pid, taker->lock->name);
		if (evicted_as_holder(taker)) {
			judge_evicted(taker);
			continue;
		}
		if (taker->evicted_us >= 0 && !guarded(taker))
			sim_violation(sim, "a: taker %d on %s was evicted while it waited, and holds %s", taker->pid,
			              taker->mount->host, taker->lock->name);
		if (taker->evicted_us < 0 && !judge_entry(&sim->world.proposed, taker))
			sim_violation(sim, "a: taker %d on %s holds %s, its entry is gone", taker->pid,
			              taker->mount->host, taker->lock->name);
		if (lc_token(taker->lc) && lc_token(taker->lc) != taker->token)
			sim_violation(sim, "c: the token of taker %d is another one", taker->pid);
		judge_band(&bands[taker->lock - sim->locks], taker);
	}
}

/* ---- b, c: grants ---- */

static void judge_order(struct taker *taker)
{
	struct node *parent = tree_find(&taker->sim->world.committed, taker->lock->path);
	struct node *node, *blocker = NULL;

	if (order_justified(taker, &taker->most_slots))
		return;
	if (parent)
		DL_FOREACH(parent->children, node) {
			if (order_pid(node) == taker->pid)
				break;
			if (judge_is_entry(node) && !judge_passes(taker, order_pid(node)) &&
			    (taker->mode == LC_EXCLUSIVE || !(order_shape(node) & SHAPE_SHARED)))
				blocker = node;
		}
	sim_violation(taker->sim, "b: taker %d, %s, is granted %s past %s", taker->pid,
	              taker->mode == LC_SHARED ? "shared" : "exclusive", taker->lock->name,
	              blocker ? blocker->name : "one that does not wait");
}

/* Those that share, or fill a slot each, come in any order. */
static void judge_token(struct taker *taker)
{
	int64_t *last = taker->lock->last_token;
	bool alone = taker->mode == LC_EXCLUSIVE && taker->most_slots == 1;

	for (enum lc_mode mode = LC_EXCLUSIVE; mode <= LC_SHARED; mode++)
		if ((mode != taker->mode || alone) && taker->token <= last[mode])
			sim_violation(taker->sim, "c: taker %d has token %" PRIx64 " after %" PRIx64, taker->pid,
			              (uint64_t)taker->token, (uint64_t)last[mode]);
	if (last[taker->mode] < taker->token)
		last[taker->mode] = taker->token;
}

void judge_granted(struct taker *taker)
{
	struct sim *sim = taker->sim;
	struct lock_state *lock = taker->lock;

	taker->granted_us = now_us(sim);
	taker->granted_clock_us = mount_clock_us(taker->mount);
	/* Evicted while it waited, or with an earlier session. */
	if (taker->evicted_token != taker->token)
		taker->evicted_us = -1;
	if (!lc_holds(taker->lc)) {
		sim_violation(sim, "a: taker %d is told that it holds, and does not", taker->pid);
		return;
	}
	if (!taker->mount->wire.proved && taker->mount->wire.state == WIRE_CONNECTED)
		sim_violation(sim, "b: taker %d on %s is granted %s without a barrier", taker->pid, taker->mount->host,
		              lock->name);
	/* Who was evicted while its mount was stopped may be granted by an old listing. */
	if (taker->evicted_us >= 0)
		return;
	if (!judge_entry(&sim->world.proposed, taker)) {
		sim_violation(sim, "b: taker %d on %s is granted %s without an entry", taker->pid, taker->mount->host,
		              lock->name);
		return;
	}
	if (!(order_shape(judge_entry(&sim->world.proposed, taker)) & SHAPE_SHARED) != (taker->mode == LC_EXCLUSIVE))
		sim_violation(sim, "b: the entry of taker %d is of the other mode", taker->pid);
	judge_order(taker);
	judge_token(taker);
}

/* ---- f: errors and their reasons ---- */

void judge_failed(struct taker *taker, int err)
{
	struct sim *sim = taker->sim;
	struct lock_state *lock = taker->lock;
	int64_t waited_us = mount_clock_us(taker->mount) - taker->took_clock_us;
	struct lc_status status;

	look_at_lock(sim, lock);
	lc_status(taker->mount->lc, &status);
	if (err == -EAGAIN) {
		if (taker->wait_us != 0)
			sim_violation(sim, "f: EAGAIN for taker %d that would wait", taker->pid);
		else if (taker->unfree_us < taker->took_us - LAG_US &&
		         mount_trouble(taker->mount) < taker->took_us - LAG_US)
			sim_violation(sim, "f: EAGAIN for taker %d, and nobody else was there", taker->pid);
	} else if (err == -EDEADLK) {
		if (!taker->upgrades || taker->wait_us == 0 || taker->barred_us < taker->took_us)
			sim_violation(sim, "f: EDEADLK for taker %d, and nothing exclusive stood before it", taker->pid);
	} else if (err == -ETIMEDOUT) {
		if (taker->wait_us == 0 || taker->wait_us == LC_FOREVER || waited_us < taker->wait_us)
			sim_violation(sim, "f: ETIMEDOUT for taker %d after %" PRId64 " us", taker->pid, waited_us);
	} else if (err == -ENOENT) {
		if (lock->absent_us < taker->took_us)
			sim_violation(sim, "f: ENOENT for taker %d, and %s was there", taker->pid, lock->name);
	} else if (err == -ECANCELED) {
		if (!taker->evicted_token && taker->marked_us < 0)
			sim_violation(sim, "f: ECANCELED for taker %d that nobody evicted", taker->pid);
	} else if (err == -ENOLCK) {
		/* What a follower that lags still shows is reason enough, as for EAGAIN. */
		bool wanted = status.state == LC_UNUSABLE || taker->mount->drained ||
		              lock->deaf_us >= taker->took_us - LAG_US;

		/* A try gives up when the ensemble is out of reach; a refused create is final. */
		wanted |= mount_trouble(taker->mount) >= taker->took_us - AFTER_TROUBLE_US(sim);
		if (!wanted)
			sim_violation(sim, "f: ENOLCK for taker %d without a reason", taker->pid);
	} else {
		sim_violation(sim, "f: error %d for taker %d", err, taker->pid);
	}
}

/* ---- g: losses ---- */

void judge_lost(struct taker *taker)
{
	struct sim *sim = taker->sim;

	taker->lost_clock_us = mount_clock_us(taker->mount);
	taker->forfeited = taker->mount->forfeited;
	taker->guarding = (taker->forfeited || sim->plan.loss_lead_us) &&
	                  judge_entry(&sim->world.proposed, taker);
	if (taker->forfeited)
		return;
	if (sim->plan.lossless)
		sim_violation(sim, "g: taker %d on %s has lost %s, one server hangs", taker->pid, taker->mount->host,
		              taker->lock->name);
	if (!judge_entry(&sim->world.proposed, taker) || taker->mount->wire.refused || marks_taken_away(taker))
		return;
	if (taker->mount->wire.state == WIRE_ENDED && !world_session_alive(&sim->world, taker->mount->wire.session))
		return;
	/* Otherwise the lease must have run out for want of answers. */
	if (!mount_lease_was_over(taker->mount, taker->granted_clock_us))
		sim_violation(sim, "g: taker %d on %s has lost %s, and the lease was good all the time", taker->pid,
		              taker->mount->host, taker->lock->name);
}

/* ---- questions ---- */

void judge_asking(struct question *question)
{
	struct sim *sim = question->sim;
	struct taker *taker = question->taker;

	look_at_lock(sim, question->lock);
	if (taker)
		question->entry_gone = !judge_entry(&sim->world.proposed, taker) &&
		                       !judge_entry(&sim->world.committed, taker);
}

/* Changes that a server in trouble may not know of yet. */
static bool too_late(const struct question *question, int64_t us)
{
	return us < question->asked_us - LAG_US && mount_trouble(question->mount) < question->asked_us - LAG_US;
}

/* One of those came before the question was put. */
static bool waiter_behind(const struct question *question)
{
	struct sim *sim = question->sim;
	struct node *node = judge_entry(&sim->world.committed, question->taker);

	for (node = node ? node->next : NULL; node; node = node->next) {
		struct taker *owner = judge_owner(sim, node);

		if (judge_is_entry(node) && !node->could_since_us && made_us(sim, node) < question->asked_us - LAG_US &&
		    may_wait(sim, owner, question->mount) &&
		    (question->taker->mode == LC_EXCLUSIVE || !(order_shape(node) & SHAPE_SHARED)))
			return true;
	}
	return false;
}

static void judge_waited_for(struct question *question, int err)
{
	struct taker *taker = question->taker;

	if (err == 0 && taker->behind_since_us && too_late(question, taker->behind_since_us) && waiter_behind(question))
		sim_violation(question->sim, "f: nobody waits behind taker %d, it is said, and somebody does", taker->pid);
	if (err == 1 && too_late(question, later(taker->behind_us, taker->granted_us)) &&
	    !question->sim->plan.near_overflow)
		sim_violation(question->sim, "f: somebody waits behind taker %d, it is said, and nobody does", taker->pid);
}

/* Of those questions that a lock or a holder answers. */
static bool may_fail(const struct question *question, int err)
{
	struct sim *sim = question->sim;
	struct taker *taker = question->taker;

	switch (err) {
	case -EHOSTUNREACH:
		return true;
	case -EACCES:
		return question->mount->wire.refused;
	case -ENOLCK:
		return sim->plan.weight[FAULT_REFUSE];
	case -EIO:
		return taker && (taker->phase != T_HELD || !lc_holds(taker->lc) ||
		                 !judge_entry(&sim->world.proposed, taker));
	case -ENOENT:
		return question->lock->absent_us >= question->asked_us || question->znode;
	default:
		return false;
	}
}

static void judge_evict(struct question *question, int err)
{
	struct node *node = tree_find(&question->sim->world.proposed, question->lock->path);

	if (node && err == -ENOENT)
		DL_FOREACH(node->children, node)
			if (node->stat.czxid == question->token)
				sim_violation(question->sim, "f: lc_evict does not find %s", node->path);
}

void judge_answered(struct question *question, int err)
{
	struct sim *sim = question->sim;
	struct lock_state *lock = question->lock;

	look_at_lock(sim, lock);
	if (question->kind == Q_STAT && err == -ENOENT && lock->absent_us < question->asked_us)
		sim_violation(sim, "f: lc_stat says that %s is not there", lock->name);
	if (question->kind == Q_MKDIR && err == 0 && lock->present_us < question->asked_us)
		sim_violation(sim, "f: lc_mkdir has not made %s", lock->name);
	if (question->kind == Q_RMDIR && err == 0 && lock->absent_us < question->asked_us)
		sim_violation(sim, "f: lc_rmdir has not removed %s", lock->name);
	if (question->kind == Q_CONFIRM && err == 0 && question->entry_gone)
		sim_violation(sim, "a: lc_confirm says that taker %d holds", question->taker->pid);
	if (question->kind >= Q_CONFIRM && err < 0 && !may_fail(question, err))
		sim_violation(sim, "f: question %d about %s is answered %d", question->kind, lock->name, err);
	if (question->kind == Q_WAITED)
		judge_waited_for(question, err);
	if (question->kind == Q_EVICT)
		judge_evict(question, err);
	if (question->kind == Q_TOKEN && err == 0 && lc_token(question->taker->lc) != question->taker->token)
		sim_violation(sim, "c: taker %d has token %" PRIx64 ", it is told %" PRIx64, question->taker->pid,
		              (uint64_t)question->taker->token, (uint64_t)lc_token(question->taker->lc));
	if (question->deed)
		ledger_answered(question, err);
}

static unsigned shape_of(const struct lc_entry *entry)
{
	return SHAPE_ENTRY | (entry->mode == LC_SHARED ? SHAPE_SHARED : 0) | (entry->ours ? SHAPE_OURS : 0);
}

/* Who is shown as holding is who would, with so many slots. */
static const struct lc_entry *shown_wrong(const struct lc_listing *listing, unsigned slots)
{
	struct crowd crowd = {0};

	for (size_t i = 0; i < listing->entry_count; i++) {
		const struct lc_entry *entry = &listing->entries[i];

		if (entry->held != crowd_admits(&crowd, entry->mode, slots))
			return entry;
		crowd_add(&crowd, shape_of(entry));
	}
	return NULL;
}

static void judge_held(struct question *question, const struct lc_listing *listing)
{
	const struct lc_entry *wrong = NULL;

	for (unsigned slots = question->sim->plan.slots_max; slots > 0; slots--)
		if (ledger_had_slots(question, slots)) {
			wrong = shown_wrong(listing, slots);
			if (!wrong)
				return;
		}
	if (wrong)
		sim_violation(question->sim, "lc_list shows %s as %s", wrong->znode, wrong->held ? "held" : "waiting");
}

void judge_listing(struct question *question, const struct lc_listing *listing)
{
	struct sim *sim = question->sim;

	if (!question->root)
		judge_held(question, listing);
	for (size_t i = 1; i < listing->entry_count; i++)
		if (!sim->plan.near_overflow && listing->entries[i].number <= listing->entries[i - 1].number)
			sim_violation(sim, "lc_list shows %s after %s", listing->entries[i].znode,
			              listing->entries[i - 1].znode);
	for (size_t i = 1; i < listing->lock_count; i++)
		if (strcmp(listing->locks[i - 1], listing->locks[i]) >= 0)
			sim_violation(sim, "lc_list shows lock %s after %s", listing->locks[i], listing->locks[i - 1]);
}

/* What is told of an entry is its own, not another's. */
void judge_entries(struct question *question, const struct lc_entry_info *infos, size_t count)
{
	struct sim *sim = question->sim;
	struct node *parent = tree_find(&sim->world.committed, question->lock->path), *node;

	for (size_t i = 0; i < count && parent; i++)
		DL_FOREACH(parent->children, node) {
			const struct lc_entry_info *info = &infos[i];

			if (strcmp(node->name, info->entry.znode) != 0)
				continue;
			if (info->token != node->stat.czxid || info->session != node->stat.ephemeral_owner ||
			    (info->entry.mode == LC_SHARED) != !!(order_shape(node) & SHAPE_SHARED) ||
			    info->entry.deaf != !!(order_shape(node) & SHAPE_DEAF) ||
			    (judge_owner(sim, node) && info->entry.pid != order_pid(node)))
				sim_violation(sim, "lc_entries tells something else of %s", node->path);
		}
}

static void judge_questions(struct sim *sim)
{
	struct question *question;

	DL_FOREACH(sim->questions, question)
		if (mount_running_us(question->mount) - question->asked_running_us > LC_CALL_TIMEOUT_US + SLACK_US)
			sim_violation(sim, "e: question %d about %s is not answered", question->kind,
			              question->lock->name);
}

/* ---- d: what takes too long ---- */

static void judge_waiter(struct taker *taker)
{
	struct sim *sim = taker->sim;
	struct mount *mount = taker->mount;
	int64_t waited_us = mount_running_us(mount) - taker->took_running_us;
	int64_t limit_us = taker->wait_us == 0 ? sim->plan.timeout_us / 3 : taker->wait_us;

	if (taker->wait_us != LC_FOREVER && waited_us > limit_us + SLACK_US)
		sim_violation(sim, "f: taker %d on %s waits for %" PRId64 " ms, %" PRId64 " were asked", taker->pid,
		              mount->host, waited_us / 1000, limit_us / 1000);
	if (taker->evicted_front && !taker->entries && taker->evicted_us >= 0 &&
	    now_us(sim) - later(taker->evicted_us, mount_trouble(mount)) > NOTICE_US)
		sim_violation(sim, "d: taker %d on %s was evicted from %s and is not told", taker->pid, mount->host,
		              taker->lock->name);
	/* Only a mount's first waiter watches its entry; the others hear of an
	 * eviction when they are looked at next. */
	if (taker->entries || taker->phase != T_WAITING || taker->evicted_token || taker->marked_us >= 0) {
		taker->alone_since_us = -1;
		return;
	}
	if (taker->alone_since_us < 0)
		taker->alone_since_us = now_us(sim);
	if (now_us(sim) - later(taker->alone_since_us, mount_trouble(mount)) > ALONE_US)
		sim_violation(sim, "d: taker %d on %s waits for %s without an entry", taker->pid, mount->host,
		              taker->lock->name);
}

static void judge_node(struct sim *sim, struct lock_state *lock, struct node *node)
{
	struct taker *owner = judge_owner(sim, node);
	int64_t trouble_us;
	bool lone;

	if (!owner || owner->life != owner->mount->life)
		return;
	trouble_us = mount_trouble(owner->mount);
	owner->entries++;
	lone = owner->phase == T_LEFT || owner->phase == T_FAILED || owner->entries > 1 ||
	       (owner->phase == T_LOST && may_go(owner));
	if (!lone || !world_session_alive(&sim->world, node->stat.ephemeral_owner))
		node->lone_since_us = 0;
	else if (!node->lone_since_us)
		node->lone_since_us = now_us(sim);
	/* An old session that its client gave up dies by itself. */
	if (node->stat.ephemeral_owner != owner->mount->wire.session)
		return;
	if (node->lone_since_us && now_us(sim) - node->lone_since_us > BRISK_US(sim) &&
	    now_us(sim) - trouble_us > SETTLED_US)
		sim_violation(sim, "d: %s of %s stays in %s, its taker has %s", node->name, owner->mount->host,
		              lock->name, owner->entries > 1 ? "another" : taker_phase_name(owner->phase));
	if (node->could_since_us && owner->phase == T_WAITING && now_us(sim) - node->could_since_us > BRISK_US(sim) &&
	    now_us(sim) - trouble_us > AFTER_TROUBLE_US(sim))
		sim_violation(sim, "d: taker %d, %s, on %s could hold %s and waits", owner->pid,
		              owner->mode == LC_SHARED ? "shared" : "exclusive", owner->mount->host, lock->name);
}

static void judge_mount(struct mount *mount)
{
	struct sim *sim = mount->sim;
	int64_t told_us = mount->deadline_us == INT64_MIN ? 0 : later(mount->deadline_us - mount_clock_us(mount), 0);
	struct lc_status status;

	lc_status(mount->lc, &status);
	if (told_us != status.lease_left_us)
		sim_violation(sim, "a: %s has a lease of %" PRId64 " us, the guardian was told %" PRId64, mount->host,
		              status.lease_left_us, told_us);
	if (mount->deadline_us != INT64_MIN && mount->deadline_us != mount->lease.deadline_us && !mount->lease_blurred)
		sim_violation(sim, "a: %s has a lease until %" PRId64 " us, by what was answered it is %" PRId64,
		              mount->host, mount->deadline_us, mount->lease.deadline_us);
	if (status.state == LC_READY && !mount->wire.proved)
		sim_violation(sim, "b: %s is ready, and no write was answered on this connection", mount->host);
	if (sim->plan.short_sessions && status.state == LC_READY)
		sim_violation(sim, "a: %s is ready with a session of %" PRId64 " ms", mount->host,
		              status.session_timeout_us / 1000);
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
		    now_us(sim) - later(taker->behind_since_us, mount_trouble(taker->mount)) > NOTICE_US)
			sim_violation(sim, "d: somebody waits behind taker %d on %s, and it is not stirred", taker->pid,
			              taker->mount->host);
		if (taker->phase == T_HELD && taker->unheld_running_us >= 0 &&
		    mount_running_us(taker->mount) - taker->unheld_running_us > UNHELD_US)
			sim_violation(sim, "a: taker %d does not hold %s any more and is not told", taker->pid,
			              taker->lock->name);
	}
	judge_questions(sim);
	agenda_in(&sim->agenda, LOOK_US, look_slowly, sim, 0);
}

void judge_step(struct sim *sim)
{
	/* What was injected to be refused may make anybody's next steps fail, and
	 * the lease needs some to be good for a grant again. */
	bool refusing = sim->world.refuse_next > 0;

	for (int i = 0; i < sim->plan.mounts; i++) {
		mount_trouble(&sim->mounts[i]);
		if (refusing)
			sim->mounts[i].trouble_us = later(sim->mounts[i].trouble_us,
			                                  now_us(sim) + sim->plan.timeout_us / 2);
	}
	if (sim->changes_seen != sim->world.changes)
		look_at_locks(sim);
	judge_holders(sim);
}

void judge_begin(struct sim *sim)
{
	for (int i = 0; i < sim->plan.locks; i++)
		sim->locks[i].absent_us = sim->locks[i].present_us = sim->locks[i].deaf_us = -1;
	ledger_begin(sim);
	look_at_locks(sim);
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
	if (sim->programs_left || sim->outsiders_left || sim->takers || sim->questions || some_entry(sim))
		return false;
	for (int i = 0; i < sim->plan.mounts; i++)
		if (!lc_idle(sim->mounts[i].lc))
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

		lc_status(mount->lc, &status);
		counters = &status.counters;
		for (int j = 0; j < LC_FAILURES; j++)
			failures += counters->failures[j];
		for (int j = 0; j <= LC_WAIT_BUCKETS; j++)
			waits += counters->waits[j];
		if (counters->takes != mount->told.takes || counters->grants != mount->told.grants ||
		    counters->losses != mount->told.losses || failures != mount->told.failures ||
		    counters->abandoned != mount->told.abandoned || waits != counters->grants ||
		    counters->takes != counters->grants + failures + counters->abandoned ||
		    counters->hand_offs > counters->takes)
			sim_violation(sim, "%s counts %lu takes, %lu grants, %lu losses, %lu failures, %lu abandoned "
			              "and %lu waits; %lu, %lu, %lu, %lu, %lu there were", mount->host,
			              counters->takes, counters->grants, counters->losses, failures,
			              counters->abandoned, waits, mount->told.takes, mount->told.grants,
			              mount->told.losses, mount->told.failures, mount->told.abandoned);
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
			      judge_owner(sim, node) ? taker_phase_name(judge_owner(sim, node)->phase) : "-");
	}
}

void judge_leftovers(struct sim *sim)
{
	struct node *node = some_entry(sim);

	trace_entries(sim);

	if (sim->takers)
		sim_violation(sim, "d: at the end taker %d on %s is still %s for %s", sim->takers->pid,
		              sim->takers->mount->host, taker_phase_name(sim->takers->phase), sim->takers->lock->name);
	if (sim->questions)
		sim_violation(sim, "e: at the end question %d is not answered", sim->questions->kind);
	if (node)
		sim_violation(sim, "d: at the end there is %s", node->path);
	for (int i = 0; i < sim->plan.mounts; i++)
		if (!lc_idle(sim->mounts[i].lc))
			sim_violation(sim, "d: at the end %s is not idle", sim->mounts[i].host);
	sim_violation(sim, "d: at the end %d programs and %d outsiders are not done", sim->programs_left,
	              sim->outsiders_left);
}
