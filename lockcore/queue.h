/* SPDX-License-Identifier: MIT
 *
 * queue.h - from a list of child names to who is first and who waits for whom.
 * Pure: knows names and numbers only, neither whose entries these are nor
 * whether their sessions live.
 */
#ifndef LOCKCORE_QUEUE_H
#define LOCKCORE_QUEUE_H

#include "name.h"

struct queue_entry {
	const char *znode;     /* points into the names given to queue_build() */
	struct entry_name name;
	int64_t czxid;         /* known only where it orders: zone.c */
};

struct queue {
	struct queue_entry *entries;   /* in queue order */
	size_t count;
	uint64_t listing;      /* which listing of the lock it is: the engine's count */
	bool in_zone;          /* a number that does not order any more: see NAME_NUMBER_ZONE */
};

/* Takes the numbered children, leaves the others. 0 or -ENOMEM. */
int queue_build(const char *const *names, size_t count, struct queue *ret_queue);
void queue_finish(struct queue *queue);

/* The index of the entry that entry i waits for, the nearest one that stands in its way:
 * for an exclusive one its predecessor, for a shared one the nearest exclusive
 * before it (readers do not wait for writers that came later). -1: none. */
ssize_t queue_blocker(const struct queue *queue, size_t i);

#endif
