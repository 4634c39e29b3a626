/* SPDX-License-Identifier: MIT
 *
 * order.c - which taker has to wait for which. The judge reads that from the nodes: modes,
 * slots, other clients' entries, at present and in the past.
 *
 *   shared     waits while an exclusive entry stands before it
 *   exclusive  waits while as many entries as there are slots stand before it, or one
 *              that fills no slot: a shared or a foreign one
 *
 * A mount knows the queue and the slots as some server showed them, so a grant is right
 * if the ensemble's state justifies it at some moment between the creation of the entry
 * and the grant. New entries come behind the others. So in a span of time in which the
 * number of slots does not change, the last moment is the best one for a taker, and the
 * judge keeps only the last moment of each such span.
 *
 * Some clients do not wait for a mount's entry: their entries are incompatible. Behind such an
 * entry no taker is let in. An incompatible entry that comes behind a taker's entry is no reason
 * for this taker to wait: its client takes the lock in any case.
 */
#include "sim.h"

#include "pure/name.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* ---- names of nodes ---- */

static bool ends_with(const char *text, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && !memcmp(text + len - n, end, n);
}

/* What the judge knows of names, by itself. `theirs`: how the names of those end that wait for a
 * mount's entry. */
static const struct names {
	const char *clients, *head[2], *tail[2], *theirs[3];
} all_names[] = {
	{"curator", {"", ""}, {"-lock-", "-rlock-"}, {"-lock-", "-rlock-", "job"}},
	{"curator-rw", {"", ""}, {"__WRIT__", "__READ__"}, {"__WRIT__", "__READ__", NULL}},
	{"kazoo", {"", ""}, {"__lock__", "r__lock__"}, {"__lock__", "__rlock__", NULL}},
	{"kazoo-rw", {"", ""}, {"__lock__", "__rlock__"}, {"__lock__", "__rlock__", NULL}},
	{"ruby", {"ex", "sh"}, {"-lock-", "-rlock-"}, {"/ex", "/sh", NULL}},
};
static const struct names *names;
static const struct sim *names_of;

void order_begin(const struct sim *sim)
{
	names_of = sim;
	names = all_names;
	while (strcmp(names->clients, sim->plan.clients) != 0)
		names++;
}

/* Names of mounts' entries have "_c_...-<host>.<pid>" in their middle. -1: no such name. */
static int read_pid(const char *name, size_t len, int mode)
{
	size_t head = strlen(names->head[mode]), tail = strlen(names->tail[mode]), end;

	if (strncmp(name, names->head[mode], head) != 0 ||
	    !ends_with(name, len, names->tail[mode]) || strncmp(name + head, "_c_", 3) != 0)
		return -1;
	end = len - tail;
	while (end > 0 && isdigit((unsigned char)name[end - 1]))
		end--;
	return end > 0 && end < len - tail && name[end - 1] == '.' ? atoi(name + end) : -1;
}

/* `name`: with the slash before it, so that a whole name has an end of its own. */
static bool waits_for_us(const char *name, size_t len)
{
	for (int i = 0; i < 3 && names->theirs[i]; i++)
		if (ends_with(name, len, names->theirs[i]))
			return true;
	return false;
}

/* Programs that take a lock again and again do so under one number: then the UUID tells which of
 * their takers it is. */
static int find_pid(const char *node, int pid)
{
	struct entry_name name;

	if (pid < PROCESS_BASE || !name_parse(node, &name))
		return pid;
	for (int i = names_of->taker_count - 1; i >= 0; i--)
		if (names_of->all[i]->id == name.taker_half && !names_of->all[i]->went_on)
			return names_of->all[i]->pid;
	return -1;
}

static unsigned read_shape(const struct node *node, int *ret_pid)
{
	size_t len = strlen(node->name);
	unsigned shape = SHAPE_READ;
	int shared_pid;

	*ret_pid = -1;
	if (len < 10)
		return shape;
	len -= 10;
	for (size_t i = 0; i < 10; i++)
		if (!isdigit((unsigned char)node->name[len + i]))
			return shape;
	shape |= SHAPE_ENTRY;
	if (strtoll(node->name + len, NULL, 10) >= NAME_NUMBER_ZONE)
		shape |= SHAPE_IN_ZONE;
	if (node->stat.ephemeral_owner & WORLD_FORGES)
		shape |= SHAPE_STRAY;
	shared_pid = read_pid(node->name, len, LC_SHARED);
	*ret_pid = shared_pid >= 0 ? shared_pid : read_pid(node->name, len, LC_EXCLUSIVE);
	if (*ret_pid >= 0)
		shape |= SHAPE_OF_MOUNT | (shared_pid >= 0 ? SHAPE_SHARED : 0);
	else if (ends_with(node->name, len, "-rlock-") || ends_with(node->name, len, "__rlock__") ||
	         ends_with(node->name, len, "__READ__") ||
	         ends_with(node->name - 1, len + 1, "/sh"))
		shape |= SHAPE_SHARED;
	if (*ret_pid < 0 && !waits_for_us(node->name - 1, len + 1))
		shape |= SHAPE_INCOMPATIBLE;
	*ret_pid = find_pid(node->name, *ret_pid);
	return shape;
}

/* A create that was given up is done late, behind a barrier. If its taker has not found that entry
 * by then, it makes another one: then the late entry is nobody's. */
static void find_late(struct node *node)
{
	struct node *other;

	DL_FOREACH(node->parent->children, other)
		if (other != node && other->shape && other->who == node->who &&
		    other->stat.ephemeral_owner == node->stat.ephemeral_owner) {
			if (node->behind)
				node->who = WHO_FOREIGN;
			else if (other->behind)
				other->who = WHO_FOREIGN;
		}
}

unsigned order_shape(struct node *node)
{
	int pid;

	if (!node->shape) {
		node->shape = read_shape(node, &pid);
		if (node->stat.ephemeral_owner & WORLD_FOREIGN || !node->stat.ephemeral_owner)
			pid = -1; /* whatever pid its name has */
		node->who = pid >= 0 ? pid : WHO_FOREIGN;
		if (pid >= 0 && node->parent && names_of->plan.weight[FAULT_BACKLOG])
			find_late(node);
	}
	return node->shape;
}

int order_pid(struct node *node)
{
	order_shape(node);
	return node->who;
}

bool judge_is_entry(struct node *node)
{
	return order_shape(node) & SHAPE_ENTRY;
}

bool order_has_incompatible(struct node *parent)
{
	struct node *node;
	bool in_zone = false, foreign = false;

	DL_FOREACH(parent->children, node) {
		unsigned shape = order_shape(node);

		in_zone |= (shape & SHAPE_IN_ZONE) != 0;
		foreign |= shape & SHAPE_ENTRY && !(shape & SHAPE_OF_MOUNT);
		if (shape & SHAPE_INCOMPATIBLE)
			return true;
	}
	return in_zone && foreign;
}

bool order_has_stray(struct node *parent)
{
	struct node *node;

	DL_FOREACH(parent->children, node)
		if (order_shape(node) & SHAPE_STRAY)
			return true;
	return false;
}

unsigned order_slots(struct node *node)
{
	if (!node->slots)
		node->slots = lock_data_slots(node->data, node->data_len);
	return node->slots;
}

/* ---- waiting ---- */

void crowd_add(struct crowd *crowd, unsigned shape)
{
	if (!(shape & SHAPE_ENTRY))
		return;
	crowd->all++;
	crowd->exclusive += !(shape & SHAPE_SHARED);
	crowd->apart += shape & SHAPE_SHARED || !(shape & SHAPE_OF_MOUNT);
}

bool crowd_admits(const struct crowd *crowd, enum lc_mode mode, unsigned slots)
{
	if (mode == LC_SHARED)
		return crowd->exclusive == 0;
	return crowd->apart == 0 && crowd->all < slots;
}

/* ---- the past ---- */

/* An entry of that time. */
struct stander {
	int64_t czxid;
	int who;
	unsigned shape;
};

/* The last moment of a span of time. A list, newest first. */
struct span {
	unsigned slots;
	int count;
	struct span *before;
	struct stander standers[];
};

static void close_span(struct sim *sim, struct lock_state *lock, struct node *parent)
{
	size_t room = (size_t)parent->stat.children * sizeof(struct stander);
	struct span *span = arena_zalloc(&sim->arena, sizeof(*span) + room);
	struct node *node;

	span->slots = order_slots(parent);
	DL_FOREACH(parent->children, node)
		span->standers[span->count++] =
			(struct stander){node->stat.czxid, order_pid(node), order_shape(node)};
	span->before = lock->spans;
	lock->spans = span;
}

/* Does the change end the span: with other slots, or because the lock is gone? */
static bool ends_span(const struct lock_state *lock, struct node *parent,
                      const struct change *change)
{
	if (strcmp(change->path, lock->path) != 0)
		return false;
	return change->kind == CHANGE_DELETE ||
	       (change->kind == CHANGE_SET &&
	        lock_data_slots(change->data, change->data_len) != order_slots(parent));
}

void order_committing(struct sim *sim, const struct transaction *transaction)
{
	for (int i = 0; i < sim->plan.locks; i++) {
		struct node *parent = tree_find(&sim->world.committed, sim->locks[i].path);
		bool ends = false;

		for (int j = 0; parent && j < transaction->count; j++)
			ends |= ends_span(&sim->locks[i], parent, &transaction->changes[j]);
		if (ends)
			close_span(sim, &sim->locks[i], parent);
	}
}

/* At that moment the entries before the taker's let it in, without those that its mount ignores. */
static bool admitted(const struct taker *taker, const struct span *span, bool *ret_there)
{
	struct crowd crowd = {0};
	bool incompatible = false;

	*ret_there = false;
	for (int i = 0; i < span->count; i++) {
		const struct stander *stander = &span->standers[i];

		if (stander->czxid == taker->token) {
			*ret_there = true;
			return !incompatible && crowd_admits(&crowd, taker->mode, span->slots);
		}
		incompatible |= stander->shape & SHAPE_INCOMPATIBLE;
		/* An entry whose client chose the number may come before others: no taker
		 * has to wait for it. */
		if (!judge_passes(taker, stander->who) && !(stander->shape & SHAPE_STRAY))
			crowd_add(&crowd, stander->shape);
	}
	return false;
}

bool order_justified(const struct taker *taker, unsigned *ret_slots)
{
	struct node *parent = tree_find(&taker->sim->world.committed, taker->lock->path);
	struct span *span, *last = taker->lock->spans;
	bool there = true, justified = false;

	*ret_slots = 1;
	if (!parent)
		return false;
	close_span(taker->sim, taker->lock,
	           parent); /* the present, as one more span; it is removed below */
	for (span = taker->lock->spans; span && there; span = span->before) {
		justified |= admitted(taker, span, &there);
		if (there && *ret_slots < span->slots)
			*ret_slots = span->slots;
	}
	taker->lock->spans = last;
	return justified;
}
