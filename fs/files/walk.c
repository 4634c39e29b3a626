/* SPDX-License-Identifier: MIT
 *
 * walk.c - see walk.h.
 *
 * The steps that are still to be reported are in a list, in that order: locks, and names of locks
 * that are not asked about yet. At first it is the root alone. The first name that is left becomes
 * a lock when there is room for one more question; the names below a lock come into the list right
 * behind it, when it is answered.
 *
 *   lock:  [NEW] ─► stat ─► [STATED] ─► list ─► first holder, first who waits ─► [ANSWERED]
 *                    │ no children, or not for this user                             ▲
 *                    `───────────────────────────────────────────────────────────────┘
 */
#include "files/walk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

/* How often a lock is listed again whose entries are gone when they are read. */
#define TRIES 3

struct step {
	struct walk *walk;
	struct step *prev, *next;
	enum { STEP_NEW, STEP_STATED, STEP_ASKED, STEP_ANSWERED, STEP_NAMES } kind;
	struct lc_call *call; /* ASKED */
	bool lists;           /* the locks below it are to come, too */
	bool listed;          /* they have come */
	unsigned tries;
	struct walk_lock lock;
	const char *name, *end; /* NAMES: those that are left, a byte 0 behind each */
	char path[];
};

struct walk {
	struct frontend *front;
	struct viewer *viewer;
	void (*answered)(void *ctx);
	void *ctx;
	struct step *steps;
	struct step *told; /* the last one */
	int error;         /* nothing more is asked or told */
	unsigned asked;    /* locks: from the first question to the last answer */
	unsigned listing;  /*   those among them that are being listed */
	bool inside;       /* a call of the caller's */
};

/* The memory for a lock that is asked about, beside its step: the entries in the engine. */
#define QUESTION_BYTES (2 * sizeof(struct lc_entry_info))

/* NULL: errno. */
static struct step *new_step(struct walk *walk, size_t path_size)
{
	struct step *step =
		budget_alloc(&walk->front->files, walk->viewer->uid, sizeof(*step) + path_size);

	if (step)
		step->walk = walk;
	return step;
}

static struct step *new_lock_step(struct walk *walk, const char *above, const char *name)
{
	const char *slash = *above ? "/" : "";
	size_t size = strlen(above) + strlen(slash) + strlen(name) + 1;
	struct step *step = new_step(walk, size);

	if (step && budget_add(step, QUESTION_BYTES) < 0) {
		budget_free(step);
		errno = ENFILE;
		return NULL;
	}
	if (!step)
		return NULL;
	snprintf(step->path, size, "%s%s%s", above, slash, name);
	step->kind = STEP_NEW;
	return step;
}

static void drop_step(struct step *step)
{
	DL_DELETE(step->walk->steps, step);
	budget_free(step);
}

/* ---- one lock ---- */

/* The root is no lock, and everybody may list it. */
static bool is_root(const struct step *step)
{
	return *step->path == '\0';
}

static void tell_caller(struct walk *walk)
{
	if (!walk->inside)
		walk->answered(walk->ctx);
}

static void answer_step(struct step *step, int error)
{
	struct walk *walk = step->walk;

	step->kind = STEP_ANSWERED;
	step->call = NULL;
	if (!is_root(step) && (error == -EACCES || error == -ENOENT))
		step->lock = (struct walk_lock){.path = step->path, .closed = error == -EACCES};
	else if (error < 0)
		walk_fail(walk, error);
	walk->asked--;
	tell_caller(walk);
}

/* The step's lock will be listed in its turn: now, or when another one has been. */
static void want_list(struct step *step)
{
	step->kind = STEP_STATED;
	step->call = NULL;
	if (step->walk->listing < WALK_LISTS)
		tell_caller(step->walk);
}

static void learn_entry(struct walk_lock *lock, const struct lc_entry_info *info)
{
	if (info->entry.held) {
		lock->holder = *info;
		lock->holder.entry.znode = NULL;
	} else {
		lock->waiting_since_ms = info->queued_since_ms;
	}
}

/* The first entries may be gone since the listing: then others are first. */
static void step_entries_read(void *ctx, int err, const struct lc_entry_info *infos, size_t count)
{
	struct step *step = ctx;
	size_t wanted = (step->lock.holders > 0 ? 1U : 0) + (step->lock.waiters > 0 ? 1U : 0);

	if ((err == -ENOENT || (err == 0 && count < wanted)) && ++step->tries < TRIES) {
		want_list(step);
		return;
	}
	for (size_t i = 0; err == 0 && i < count; i++)
		learn_entry(&step->lock, &infos[i]);
	/* The data of an entry may be closed to this mount, or gone too often. That the entry is
	 * there is known from its name. */
	answer_step(step, err == -EACCES || err == -ENOENT ? 0 : err);
}

static void ask_entries(struct step *step, const struct lc_listing *listing)
{
	struct frontend *front = step->walk->front;
	struct walk_lock *lock = &step->lock;
	struct lc_entry first[2];
	size_t count = 0;
	int r;

	if (lock->holders > 0)
		first[count++] = listing->entries[0];
	if (lock->waiters > 0)
		first[count++] = listing->entries[lock->holders];
	r = lc_entries(front->lc, step->path, step->walk->viewer->uid, NULL, first, count,
	               step_entries_read, step, &step->call);
	if (r < 0)
		answer_step(step, r);
	else
		tell_caller(step->walk); /* the next one may be listed */
}

/* Counts by the names alone. */
static void count_entries(struct walk_lock *lock, const struct lc_listing *listing)
{
	lock->holders = 0;
	while (lock->holders < listing->entry_count && listing->entries[lock->holders].held)
		lock->holders++;
	lock->waiters = listing->entry_count - lock->holders;
	lock->waiting_since_ms = -1;
	lock->holder = (struct lc_entry_info){.uid = -1, .held_since_ms = -1};
	if (lock->holders > 0)
		lock->holder.entry = listing->entries[0];
	lock->holder.entry.znode = NULL;
}

/* False: no room for them. */
static bool add_names_step(struct step *step, const struct lc_listing *listing)
{
	size_t path_size = strlen(step->path) + 1, bytes = 0;
	struct step *names;
	char *name;

	for (size_t i = 0; i < listing->lock_count; i++)
		bytes += strlen(listing->locks[i]) + 1;
	if (bytes == 0)
		return true;
	names = new_step(step->walk, path_size + bytes);
	if (!names)
		return false;
	names->kind = STEP_NAMES;
	memcpy(names->path, step->path, path_size);
	name = names->path + path_size;
	names->name = name;
	for (size_t i = 0; i < listing->lock_count; i++)
		name = stpcpy(name, listing->locks[i]) + 1;
	names->end = name;
	DL_APPEND_ELEM(step->walk->steps, step, names);
	return true;
}

static void step_listed(void *ctx, int err, const struct lc_listing *listing)
{
	struct step *step = ctx;

	step->walk->listing--;
	if (err < 0) {
		answer_step(step, err);
		return;
	}
	if (step->lists && !step->listed && !add_names_step(step, listing)) {
		answer_step(step, -errno);
		return;
	}
	step->listed = true;
	if (!is_root(step))
		count_entries(&step->lock, listing);
	if (is_root(step) || listing->entry_count == 0)
		answer_step(step, 0);
	else
		ask_entries(step, listing);
}

static void ask_list(struct step *step)
{
	struct walk *walk = step->walk;
	int r = lc_list(walk->front->lc, step->path, walk->viewer->uid, step_listed, step,
	                &step->call);

	step->kind = STEP_ASKED;
	if (r < 0)
		answer_step(step, r);
	else
		walk->listing++;
}

/* A lock without children is free, and has none below: most are so, and need no listing. */
static void lock_stated(void *ctx, int err, const struct lc_lock_info *info)
{
	struct step *step = ctx;
	const struct walk *walk = step->walk;
	const struct lc_attributes *attributes;

	if (err < 0) {
		answer_step(step, err);
		return;
	}
	step->lock.slots = info->slots;
	attributes = info->has_attributes ? &info->attributes : &walk->front->without;
	if (info->children == 0 || !viewer_enters(walk->viewer, attributes)) {
		answer_step(step, 0);
		return;
	}
	step->lists = viewer_lists(walk->viewer, attributes);
	want_list(step);
}

static void ask_step(struct step *step)
{
	struct walk *walk = step->walk;
	int r;

	step->kind = STEP_ASKED;
	step->lock = (struct walk_lock){.path = step->path};
	walk->asked++;
	if (is_root(step)) {
		step->lists = true;
		ask_list(step);
		return;
	}
	r = lc_stat(walk->front->lc, step->path, walk->viewer->uid, lock_stated, step, &step->call);
	if (r < 0)
		answer_step(step, r);
}

/* ---- all of them ---- */

struct walk *walk_begin(struct frontend *front, struct viewer *viewer, void (*answered)(void *ctx),
                        void *ctx)
{
	struct walk *walk = budget_alloc(&front->files, viewer->uid, sizeof(*walk));
	struct step *root;

	if (!walk)
		return NULL;
	*walk = (struct walk){.front = front, .viewer = viewer, .answered = answered, .ctx = ctx};
	root = new_lock_step(walk, "", "");
	if (!root) {
		budget_free(walk);
		return NULL;
	}
	DL_APPEND(walk->steps, root);
	return walk;
}

void walk_fail(struct walk *walk, int error)
{
	if (walk->error == 0)
		walk->error = error;
}

void walk_end(struct walk *walk)
{
	struct step *step, *next;

	DL_FOREACH_SAFE(walk->steps, step, next) {
		if (walk->front->lc && step->call) /* with the engine they are gone */
			lc_cancel(step->call);
		drop_step(step);
	}
	budget_free(walk->viewer);
	budget_free(walk);
}

/* The next name becomes a lock. False: it may not cost that much now. */
static bool take_name(struct step *names)
{
	struct walk *walk = names->walk;
	struct step *lock = new_lock_step(walk, names->path, names->name);

	if (!lock) {
		/* The steps before it will be told, and their room is free then. */
		if (names == walk->steps)
			walk_fail(walk, -errno);
		return false;
	}
	names->name += strlen(names->name) + 1;
	DL_PREPEND_ELEM(walk->steps, names, lock);
	return true;
}

void walk_ask(struct walk *walk)
{
	struct step *step;

	if (walk->error < 0)
		return;
	walk->inside = true;
	DL_FOREACH(walk->steps, step) {
		if (walk->listing >= WALK_LISTS)
			break;
		if (step->kind == STEP_STATED)
			ask_list(step);
	}
	step = walk->steps;
	while (step && walk->asked < WALK_WINDOW) {
		if (step->kind == STEP_NAMES && step->name < step->end) {
			if (!take_name(step))
				break;
			step = step->prev;
		}
		if (step->kind == STEP_NEW)
			ask_step(step);
		step = step->next;
	}
	walk->inside = false;
}

int walk_next(struct walk *walk, const struct walk_lock **ret_lock)
{
	struct step *step;

	if (walk->told)
		drop_step(walk->told);
	walk->told = NULL;
	while (walk->error == 0 && (step = walk->steps) != NULL) {
		if (step->kind == STEP_NAMES ? step->name < step->end : step->kind != STEP_ANSWERED)
			return 0;
		if (step->kind == STEP_ANSWERED &&
		    (step->lock.closed || step->lock.holders + step->lock.waiters > 0)) {
			*ret_lock = &step->lock;
			walk->told = step;
			return 1;
		}
		drop_step(step);
	}
	return walk->error;
}

bool walk_over(const struct walk *walk)
{
	const struct step *step;

	if (walk->error == 0)
		return !walk->steps || (walk->steps == walk->told && !walk->steps->next);
	DL_FOREACH(walk->steps, step)
		if (step->kind == STEP_ASKED)
			return false;
	return true;
}
