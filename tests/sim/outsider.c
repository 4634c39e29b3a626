/* SPDX-License-Identifier: MIT
 *
 * outsider.c - other users of the ensemble: clients with entries of every family,
 * owners of locks, and operators with zkCli.
 */
#include "sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct outsider {
	struct sim *sim;
	struct rng rng, mode_rng;
	int64_t session, forger, arrived_us, czxid;
	struct lock_state *lock;
	char path[1280], second[1280]; /* its entry, and another one of the same number, or "" */
	bool asked_away, second_asked_away;
	struct outsider *next;
};

static void arrives(void *ctx, uint64_t arg);
static void evict(struct sim *sim, struct node *node);

/* Somebody made an entry by hand, after the pattern of a mount's entry: it has the
 * session's half of the UUID, but no taker's, and another owner. */
static bool copy_mark(const struct outsider *outsider, const struct lock_state *lock, char *prefix,
                      size_t size)
{
	struct node *parent = tree_find(&outsider->sim->world.proposed, lock->path);
	struct node *node;

	if (parent)
		DL_FOREACH(parent->children, node)
			if (judge_owner(outsider->sim, node)) {
				snprintf(prefix, size, "%s/%.21s-0000-%012" PRIx64 "-app.99-lock-",
				         lock->path, node->name,
				         (uint64_t)outsider->sim->agenda.now_us);
				return true;
			}
	return false;
}

/* A name of a client that shares the lock with the mounts. False: of any that waits for them. */
static bool put_at_home(const char *clients, bool shared, uint64_t a, uint64_t b, char *ret_name,
                        size_t size)
{
	const char *kazoo = shared ? "rlock" : "lock";

	if (!strcmp(clients, "curator-rw"))
		snprintf(ret_name, size, "_c_%016" PRIx64 "%016" PRIx64 "__%s__", a, b,
		         shared ? "READ" : "WRIT");
	else if (!strncmp(clients, "kazoo", 5))
		snprintf(ret_name, size, "%016" PRIx64 "%016" PRIx64 "__%s__", a, b, kazoo);
	else if (!strcmp(clients, "ruby"))
		snprintf(ret_name, size, "%s", shared ? "sh" : "ex");
	else
		return false;
	return true;
}

/* Prefixes of the families. Clients of the first three kinds wait for a mount's entry. */
static void pick_prefix(struct outsider *outsider, struct lock_state *lock, char *prefix,
                        size_t size)
{
	struct plan *plan = &outsider->sim->plan;
	uint64_t a = rng_next(&outsider->rng), b = rng_next(&outsider->rng);
	unsigned kind = (unsigned)rng_below(&outsider->rng, plan->foreign_families ? 6 : 3);
	bool shared = rng_chance(&outsider->mode_rng, plan->shared);
	const char *lock_word = shared ? "rlock" : "lock";
	char name[100];

	if (plan->namesakes && copy_mark(outsider, lock, prefix, size))
		return;
	if (kind < 3 && put_at_home(plan->clients, shared, a, b, name, sizeof(name))) {
		snprintf(prefix, size, "%s/%s", lock->path, name);
		return;
	}
	switch (kind) {
	case 0:
	case 1:
		snprintf(prefix, size, "%s/_c_%016" PRIx64 "%016" PRIx64 "-%s-", lock->path, a, b,
		         lock_word);
		return;
	case 2:
		snprintf(prefix, size, "%s/x-%" PRIx64 "-%s-", lock->path, a, lock_word);
		return;
	case 3:
		snprintf(prefix, size, "%s/%016" PRIx64 "%016" PRIx64 "__%s__", lock->path, a, b,
		         lock_word);
		return;
	case 4:
		snprintf(prefix, size, "%s/_c_%016" PRIx64 "%016" PRIx64 "__%s__", lock->path, a, b,
		         shared ? "READ" : "WRIT");
		return;
	default:
		snprintf(prefix, size, "%s/job", lock->path);
		return;
	}
}

/* A writer that holds takes the lock for reading, too: one more entry, with the number of its own.
 * Then it gives up the first one. */
static bool goes_on_as_reader(struct outsider *outsider, struct node *node)
{
	struct sim *sim = outsider->sim;
	size_t len = strlen(outsider->path);
	struct ensemble_op op = {
		.kind = ENSEMBLE_CREATE, .path = outsider->second, .ephemeral = true};
	unsigned shape = node ? order_shape(node) : SHAPE_INCOMPATIBLE;

	if (!sim->plan.late_readers || shape & (SHAPE_INCOMPATIBLE | SHAPE_SHARED) ||
	    node != node->parent->children || !node->stat.ephemeral_owner ||
	    !rng_chance(&outsider->mode_rng, 700))
		return false;
	outsider->second_asked_away = false;
	snprintf(outsider->second, sizeof(outsider->second), "%s/_c_%016" PRIx64 "__READ__%s",
	         outsider->lock->path, rng_next(&outsider->mode_rng), outsider->path + len - 10);
	return world_do(&sim->world, outsider->session, &op, 1, NULL) == ENSEMBLE_OK;
}

static void departs(void *ctx, uint64_t arg);

/* Its first entry is gone, its second is what it has. */
static void goes_on(struct outsider *outsider)
{
	struct sim *sim = outsider->sim;

	strcpy(outsider->path, outsider->second);
	outsider->second[0] = '\0';
	outsider->asked_away = outsider->second_asked_away;
	outsider->czxid = tree_find(&sim->world.proposed, outsider->path)->stat.czxid;
	agenda_in(&sim->agenda, rng_spread(&outsider->mode_rng, 1000, 10000000), departs, outsider,
	          0);
}

static void departs(void *ctx, uint64_t arg)
{
	struct outsider *outsider = ctx;
	struct sim *sim = outsider->sim;
	struct ensemble_op op = {
		.kind = ENSEMBLE_DELETE, .path = outsider->path, .version = ENSEMBLE_ANY_VERSION};

	struct node *node = tree_find(&sim->world.proposed, outsider->path);
	bool may_read = !outsider->second[0] && !arg;
	/* The entry went with its lock, and another entry has its name now. */
	bool gone = node && node->stat.czxid != outsider->czxid;
	enum ensemble_result result;

	if (may_read && !gone && sim->world.leader >= 0 && goes_on_as_reader(outsider, node)) {
		agenda_in(&sim->agenda, rng_spread(&outsider->mode_rng, 1000, 1000000), departs,
		          outsider, 1);
		return;
	}
	result = gone ? ENSEMBLE_NONODE : world_do(&sim->world, 0, &op, 1, NULL);
	if (result == ENSEMBLE_UNKNOWN) {
		agenda_in(&sim->agenda, 100000, departs, outsider, arg);
		return;
	}
	/* A mount may take a copy of a taker's entry for that entry: see marks.c. */
	if (result == ENSEMBLE_NONODE && !gone && !outsider->asked_away && !sim->plan.copies &&
	    outsider->lock->absent_us < outsider->arrived_us)
		sim_violation(sim, "d: %s was deleted by a client that does not own it",
		              outsider->path);
	if (outsider->second[0] && tree_find(&sim->world.proposed, outsider->second)) {
		goes_on(outsider);
		return;
	}
	outsider->second[0] = '\0';
	if (sim->stopping) {
		sim->outsiders_left--;
		return;
	}
	agenda_in(&sim->agenda, rng_spread(&outsider->rng, 1000, 20000000), arrives, outsider, 0);
}

/* A client that means harm to a taker makes an entry with the UUID of the taker's entry, or with
 * its whole name, and with a number of its own choice, or with the next number of the lock. */
static bool copy_entry(struct outsider *outsider, struct lock_state *lock, char *path, size_t size,
                       struct ensemble_op *op)
{
	struct sim *sim = outsider->sim;
	struct node *parent = tree_find(&sim->world.proposed, lock->path), *node, *victim = NULL;
	unsigned seen = 0;
	int64_t number;
	size_t len;

	if (parent)
		DL_FOREACH(parent->children, node)
			if (judge_owner(sim, node) && rng_chance(&outsider->rng, 1000 / ++seen))
				victim = node;
	if (!victim)
		return false;
	len = strlen(victim->name) - 10;
	number = strtoll(victim->name + len, NULL, 10) + rng_between(&outsider->rng, -3, 3);
	if (number < 0 || number > INT32_MAX)
		number = 0;
	op->ephemeral = true;
	op->sequence = rng_chance(&outsider->rng, 300);
	if (sim->plan.near_overflow && rng_chance(&outsider->rng, 200))
		number = rng_between(&outsider->rng, INT32_MAX - 5, INT32_MAX);
	if (op->sequence)
		snprintf(path, size, "%s/%.*s", lock->path, (int)len, victim->name);
	else if (rng_chance(&outsider->rng, 700))
		snprintf(path, size, "%s/%.*s%010" PRId64, lock->path, (int)len, victim->name,
		         number);
	else
		snprintf(path, size, "%s/%.40s%s.%d-lock-%010" PRId64, lock->path, victim->name,
		         rng_chance(&outsider->rng, 500) ? "a" : "z", order_pid(victim), number);
	if (sim->plan.weight[FAULT_EVICT] && sim->world.leader >= 0 &&
	    rng_chance(&outsider->rng, 200))
		evict(sim, victim);
	return true;
}

static void arrives(void *ctx, uint64_t arg)
{
	struct outsider *outsider = ctx;
	struct sim *sim = outsider->sim;
	struct lock_state *lock = &sim->locks[rng_below(&outsider->rng, (uint64_t)sim->plan.locks)];
	char prefix[1024];
	const char *path = NULL;
	struct ensemble_op op = {.kind = ENSEMBLE_CREATE,
	                         .path = prefix,
	                         .sequence = true,
	                         .ephemeral = !rng_chance(&outsider->rng, 100)};
	int64_t session = op.ephemeral ? outsider->session : 0;

	(void)arg;
	if (sim->stopping) {
		sim->outsiders_left--;
		return;
	}
	if (sim->plan.copies && rng_chance(&outsider->rng, sim->plan.copies) &&
	    copy_entry(outsider, lock, prefix, sizeof(prefix), &op))
		session = op.sequence ? outsider->session : outsider->forger;
	else
		pick_prefix(outsider, lock, prefix, sizeof(prefix));
	if (world_do(&sim->world, session, &op, 1, &path) != ENSEMBLE_OK) {
		agenda_in(&sim->agenda, 1000000, arrives, outsider, 0);
		return;
	}
	snprintf(outsider->path, sizeof(outsider->path), "%s", path);
	outsider->asked_away = false;
	outsider->lock = lock;
	outsider->arrived_us = sim->agenda.now_us;
	outsider->czxid = tree_find(&sim->world.proposed, path)->stat.czxid;
	agenda_in(&sim->agenda, rng_spread(&outsider->rng, 1000, 10000000), departs, outsider, 0);
}

void outsider_asked_away(struct sim *sim, const char *path)
{
	struct outsider *outsider;

	LL_FOREACH(sim->outsiders, outsider)
		if (!strcmp(outsider->path, path))
			outsider->asked_away = true;
		else if (!strcmp(outsider->second, path))
			outsider->second_asked_away = true;
}

void outsiders_begin(struct sim *sim)
{
	sim->outsiders_left = sim->plan.outsiders;
	for (int i = 0; i < sim->plan.outsiders; i++) {
		struct outsider *outsider = arena_zalloc(&sim->arena, sizeof(*outsider));

		outsider->sim = sim;
		LL_PREPEND(sim->outsiders, outsider);
		outsider->rng = rng_fork(&sim->rng);
		outsider->mode_rng =
			(struct rng){sim->seed * 0x9e3779b97f4a7c15u + 3000 + (uint64_t)i};
		outsider->session = world_foreign_session(
			&sim->world, sim->plan.late_readers ? TREE_BY_NUMBER : 0);
		if (sim->plan.copies)
			outsider->forger = world_foreign_session(&sim->world, WORLD_FORGES);
		agenda_in(&sim->agenda, rng_spread(&outsider->rng, 1000, 10000000), arrives,
		          outsider, 0);
	}
}

/* ---- a lock's owner ---- */

/* The data of a lock with another number of slots, and all else as before, as with zkCli. */
static char *with_slots(struct arena *arena, const struct node *node, unsigned slots, int *ret_len)
{
	static const char fresh[] = "zklockfs: 1\nuid: 1\ngid: 1\nmode: 755\ndoor_mode: 644\n\n";
	const char *data = node->data_len ? node->data : fresh, *line = data;
	size_t len = node->data_len ? (size_t)node->data_len : sizeof(fresh) - 1;
	const char *end = data + len;
	char *text = arena_zalloc(arena, len + 32), *to = text;

	while (line < end && *line != '\n') {
		const char *next = (const char *)memchr(line, '\n', (size_t)(end - line)) + 1;

		if (memcmp(line, "slots: ", 7) != 0)
			to = mempcpy(to, line, (size_t)(next - line));
		line = next;
	}
	to += sprintf(to, "slots: %u\n", slots);
	to = mempcpy(to, line, (size_t)(end - line));
	*ret_len = (int)(to - text);
	return text;
}

/* The data of the new lock has version 0, whatever its contents. */
void outsider_make(struct sim *sim, struct lock_state *lock)
{
	struct ensemble_op op = {.kind = ENSEMBLE_CREATE, .path = lock->path};
	struct rng rng = {sim->seed * 0x9e3779b97f4a7c15u + 7000 + (uint64_t)sim->agenda.now_us};

	if (sim->plan.slots_max > 1)
		op.data = with_slots(&sim->arena, &(struct node){0},
		                     (unsigned)rng_between(&rng, 1, sim->plan.slots_max),
		                     &op.data_len);
	world_do(&sim->world, 0, &op, 1, NULL);
}

static void other_slots(void *ctx, uint64_t state)
{
	struct sim *sim = ctx;
	struct rng rng = {state};
	struct lock_state *lock = &sim->locks[rng_below(&rng, (uint64_t)sim->plan.locks)];
	struct node *node = tree_find(&sim->world.proposed, lock->path);
	unsigned slots =
		rng_chance(&rng, 300) ? 1 : (unsigned)rng_between(&rng, 1, sim->plan.slots_max);
	struct ensemble_op op = {
		.kind = ENSEMBLE_SET, .path = lock->path, .version = ENSEMBLE_ANY_VERSION};

	if (sim->stopping)
		return;
	if (node && !node->children && rng_chance(&rng, 300)) {
		/* The empty lock is made anew; no taker can notice. */
		trace("outside: %s is made anew", lock->name);
		world_do(&sim->world, 0,
		         OP(.kind = ENSEMBLE_DELETE, .path = lock->path,
		            .version = ENSEMBLE_ANY_VERSION),
		         1, NULL);
		lock->absent_us = sim->agenda.now_us;
		outsider_make(sim, lock);
	} else if (node) {
		op.data = with_slots(&sim->arena, node, slots, &op.data_len);
		trace("outside: %s gets %u slots", lock->name, slots);
		world_do(&sim->world, 0, &op, 1, NULL);
	}
	agenda_in(&sim->agenda, rng_spread(&rng, 1000, sim->plan.chaos_us / 5), other_slots, sim,
	          rng.state);
}

void owners_begin(struct sim *sim)
{
	struct rng rng = {sim->seed * 0x9e3779b97f4a7c15u + 5000};

	for (int i = 0; i < sim->plan.locks && sim->plan.slots_max > 1; i++)
		other_slots(sim, rng_next(&rng));
}

/* ---- operators ---- */

/* `alone`: the entry alone is deleted. A taker whose session ends queues again. */
static void mark_evicted(struct sim *sim, struct node *node, bool alone)
{
	struct taker *taker = judge_owner(sim, node);
	struct node *other;

	if (!taker || taker->evicted_token == node->stat.czxid)
		return;
	taker->evicted_us = sim->agenda.now_us;
	taker->evicted_token = node->stat.czxid;
	taker->evicted_alone |= alone;
	taker->evicted_front = taker->phase == T_WAITING && node->parent->children != node &&
	                       !order_has_stray(node->parent);
	DL_FOREACH(node->parent->children, other) {
		struct taker *owner = judge_owner(sim, other);

		if (other == node)
			break;
		taker->evicted_front &=
			judge_is_entry(other) && (!owner || owner->mount != taker->mount);
	}
	if (taker->phase == T_HELD && rng_chance(&sim->rng, 300)) {
		if (sim->plan.weight[FAULT_LINK])
			world_stall_link(&sim->world, taker->mount->host.wire.cursor, DOWN,
			                 1000000);
		user_confirm(taker, rng_spread(&sim->rng, 10, 500000));
	}
}

static void evict(struct sim *sim, struct node *node)
{
	mark_evicted(sim, node, true);
	world_do(&sim->world, 0,
	         OP(.kind = ENSEMBLE_DELETE, .path = node->path, .version = ENSEMBLE_ANY_VERSION),
	         1, NULL);
}

/* A waiter right behind a holder of its own mount. */
static struct node *find_next_of_ours(struct sim *sim, struct node *parent)
{
	struct node *node;

	DL_FOREACH(parent->children, node) {
		struct taker *waiter = judge_owner(sim, node);
		struct taker *holder =
			node != parent->children ? judge_owner(sim, node->prev) : NULL;

		if (holder && waiter && holder->mount == waiter->mount && holder->phase == T_HELD &&
		    waiter->phase == T_WAITING)
			return node;
	}
	return NULL;
}

/* The entry of such a waiter is deleted, and before its mount hears of that the holder hands the
 * lock on to it. */
static bool evict_the_next(struct sim *sim, struct node *parent, struct rng *rng)
{
	struct node *node = find_next_of_ours(sim, parent);
	int64_t lag_us = rng_spread(rng, 1000, 1000000);
	struct mount *mount;

	if (!node)
		return false;
	mount = judge_owner(sim, node)->mount;
	trace("outside: %s does not hear of the next for %d ms", mount->host.name,
	      (int)(lag_us / 1000));
	world_stall_link(&sim->world, mount->host.wire.cursor, DOWN, lag_us);
	if (sim->faults_end_us < sim->agenda.now_us + lag_us)
		sim->faults_end_us = sim->agenda.now_us + lag_us;
	user_leave(judge_owner(sim, node->prev), rng_spread(rng, 10, lag_us));
	evict(sim, node);
	return true;
}

/* Deletes an entry and the one before it in one transaction, in either order: a taker that waits
 * for the front one alone sees both go at once. */
static void evict_two(struct sim *sim, struct node *node, struct node *before, bool upwards)
{
	struct ensemble_op ops[2] = {
		{.kind = ENSEMBLE_DELETE, .path = before->path, .version = ENSEMBLE_ANY_VERSION},
		{.kind = ENSEMBLE_DELETE, .path = node->path, .version = ENSEMBLE_ANY_VERSION},
	};
	struct ensemble_op first = ops[0];

	mark_evicted(sim, before, true);
	mark_evicted(sim, node, true);
	if (upwards) {
		ops[0] = ops[1];
		ops[1] = first;
	}
	world_do(&sim->world, 0, ops, 2, NULL);
}

/* Deletes a mount's node: nothing may depend on it. */
static void delete_node(struct sim *sim)
{
	struct node *parent = tree_find(&sim->world.proposed, SIM_ROOT "/.zklockfs");

	if (parent && parent->children)
		world_do(&sim->world, 0,
		         OP(.kind = ENSEMBLE_DELETE, .path = parent->children->path,
		            .version = ENSEMBLE_ANY_VERSION),
		         1, NULL);
}

static void delete_entry(struct sim *sim);

void outsider_evict(struct sim *sim)
{
	if (rng_chance(&sim->rng, 100))
		delete_node(sim);
	else
		delete_entry(sim);
}

static void delete_entry(struct sim *sim)
{
	struct lock_state *lock = &sim->locks[rng_below(&sim->rng, (uint64_t)sim->plan.locks)];
	struct node *parent = tree_find(&sim->world.proposed, lock->path);
	struct node *node;
	uint64_t pick;
	struct rng rng = {sim->seed * 0x9e3779b97f4a7c15u + 9000 + (uint64_t)sim->agenda.now_us};

	if (!parent || !parent->stat.children || sim->world.leader < 0)
		return;
	if (rng_chance(&rng, 200) && evict_the_next(sim, parent, &rng))
		return;
	pick = !sim->plan.evict_waiters && rng_chance(&sim->rng, 400)
	               ? 0
	               : rng_below(&sim->rng, (uint64_t)parent->stat.children);
	if (sim->plan.evict_waiters && pick < (uint64_t)parent->stat.children / 2)
		return;
	DL_FOREACH(parent->children, node)
		if (pick-- == 0)
			break;
	if (!node || !judge_owner(sim, node))
		return;
	if (node != parent->children && judge_owner(sim, node->prev) && !sim->plan.evict_waiters &&
	    rng_chance(&rng, 300))
		evict_two(sim, node, node->prev, rng_chance(&rng, 500));
	else
		evict(sim, node);
}

void outsider_remake(struct sim *sim)
{
	struct lock_state *lock = &sim->locks[rng_below(&sim->rng, (uint64_t)sim->plan.locks)];
	struct node *parent = tree_find(&sim->world.proposed, lock->path);
	struct node *node, *next;

	if (!parent || sim->world.leader < 0)
		return;
	DL_FOREACH(parent->children, node)
		if (!judge_is_entry(node))
			return; /* there are locks below */
	DL_FOREACH_SAFE(parent->children, node, next) {
		evict(sim, node);
	}
	world_do(&sim->world, 0,
	         OP(.kind = ENSEMBLE_DELETE, .path = lock->path, .version = ENSEMBLE_ANY_VERSION),
	         1, NULL);
	lock->absent_us = sim->agenda.now_us;
	outsider_make(sim, lock);
}

void outsider_kill_session(struct sim *sim)
{
	struct mount *mount = &sim->mounts[rng_below(&sim->rng, (uint64_t)sim->plan.mounts)];
	struct node *node, *next;

	if (!mount_session(mount) || sim->world.leader < 0)
		return;
	HASH_ITER(hh, sim->world.proposed.nodes, node, next)
		if (node->stat.ephemeral_owner == mount_session(mount) && node->parent)
			mark_evicted(sim, node, false);
	mount->killed_us = sim->agenda.now_us;
	world_close_session(&sim->world, mount_session(mount));
}
