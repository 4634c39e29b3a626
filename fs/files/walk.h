/* SPDX-License-Identifier: MIT
 *
 * walk.h - all locks of a mount, one after the other, and which of them are held or waited
 * for.
 *
 * The locks come in the order of their paths, each before those below it. Some are asked about
 * at the same time; nothing is asked unless the caller wants more. The questions have the
 * user's own share (lockcore.h), and what is kept meanwhile is at the user's cost.
 */
#ifndef FS_WALK_H
#define FS_WALK_H

#include "files/viewer.h"

/* Locks that are asked about at a time; and lists. The engine sends one list at a time, and
 * refuses a question after two seconds: with more, those of one walk would wait for each other for
 * too long where the ensemble is far away; with two it would have none to send while answers are
 * told. */
#define WALK_WINDOW 32
#define WALK_LISTS 4

/* One lock that is held or waited for. */
struct walk_lock {
	const char *path;
	bool closed; /* the ensemble denies this mount the lock: nothing else is known */
	size_t holders, waiters;
	unsigned slots;
	struct lc_entry_info holder; /* the first of them; its znode is NULL */
	int64_t waiting_since_ms;    /* the first waiter, by the ensemble's clock; -1: not known */
};

struct walk;

/* `answered`: something has been answered: walk_next() may return more, or walk_ask() ask more. No
 * call of the walk calls it. Takes the viewer. NULL: errno. */
struct walk *walk_begin(struct frontend *front, struct viewer *viewer, void (*answered)(void *ctx),
                        void *ctx);
void walk_end(struct walk *walk);

/* Asks on. */
void walk_ask(struct walk *walk);
/* 1: the next lock; it stays until the next call. 0: not known yet, or the walk is over. -errno: a
 * lock could not be read, and the walk ends. */
int walk_next(struct walk *walk, const struct walk_lock **ret_lock);
/* The walk ends by that error. */
void walk_fail(struct walk *walk, int error);
/* All locks were told; or the walk ends, and no question is under way. */
bool walk_over(const struct walk *walk);

#endif
