/* SPDX-License-Identifier: MIT
 *
 * queue.h - from a list of child names to the order: which entry is first, and which waits for
 * which. Pure: knows names and numbers only, not the entries' owners, nor whether their sessions
 * live.
 */
#ifndef LOCKCORE_QUEUE_H
#define LOCKCORE_QUEUE_H

#include "pure/name.h"

struct queue_entry {
	const char *znode; /* points into the names given to queue_build() */
	struct entry_name name;
	ssize_t blocker;   /* queue_judge() */
	bool incompatible; /* its client does not wait for our entries; queue_build() */
	bool own;          /* a taker of this mount had it then: asking.c */
};

struct queue {
	struct queue_entry *entries; /* in queue order */
	size_t count;
	int64_t made;     /* children of the lock so far: the engine's */
	uint64_t listing; /* which listing of the lock it is: the engine's count */
	bool in_zone;     /* a number that does not order any more: see NAME_NUMBER_ZONE */
	/* A child of a client that does not wait for our entries, and which client that is; NULL:
	 * there is none. */
	const char *incompatible, *client;
};

/* Takes the numbered children, leaves the others, judges for one slot. `clients`: with whom the
 * lock is shared. 0 or -ENOMEM. */
int queue_build(const struct clients *clients, const char *const *names, size_t count,
                struct queue *ret_queue);
void queue_finish(struct queue *queue);

/* Finds for each entry the one that it waits for, the nearest that stands in its way, or -1:
 *   shared     the nearest exclusive before it (readers do not wait for writers that came
 *              later)
 *   exclusive  the nearest shared or foreign one before it; else its predecessor, when
 *              `slots` or more stand before it
 * Who waits for none may hold. If one waits, all later ones do: each later one of its own
 * kind waits for the same reason, and each of the other kind for it. */
void queue_judge(struct queue *queue, unsigned slots);
/* Where a node of that name stands, or -1. */
ssize_t queue_find(const struct queue *queue, const char *znode);

#endif
