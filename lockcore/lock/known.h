/* SPDX-License-Identifier: MIT
 *
 * known.h - what is known of a lock's queue, and what has been seen of own entries: K0 and K3 of
 * pure/next.h. known.c keeps K0:
 *
 *   every entry of this life of the lock's node with a number up to `last` that stands, or ever
 *   will stand, is in `entries`. Some of them may be gone.
 *
 * It is a fact about the ensemble. No watch and no connection is needed for it to stay true.
 */
#ifndef LOCKCORE_KNOWN_H
#define LOCKCORE_KNOWN_H

#include "lock/taker.h"
#include "pure/queue.h"

/* A listing, asked behind an answered write of its connection, shows that queue. Beside an
 * incompatible entry nothing is known. False: no memory, and nothing is known. */
bool known_listed(struct lock *lock, const struct queue *queue);
/* An own entry is there: its create was answered just now, on this connection. One that is found
 * later has its place from the listing that follows. */
void known_made(struct entry *entry);
/* An own entry is gone for certain. */
void known_gone(struct entry *entry);
/* Another client's entry of that name is gone for certain. */
void known_other_gone(struct lock *lock, const char *znode);
/* Forgets the whole queue: the lock's node may be another one, the connection is new, or memory is
 * to be freed. */
void known_forget(struct lock *lock);
/* The number of slots has changed, or may have: what listings have shown, and what was seen, was
 * with the former number. */
void known_other_slots(struct lock *lock);

/* A decision was made by what was seen. A later one must not rely on that: an entry that nobody
 * watches may be gone meanwhile. */
static inline void known_decided(struct lock *lock)
{
	lock->known.era++;
}

/* An answer has shown the entry just now: that counts for the next decision. */
static inline void known_see(struct entry *entry)
{
	entry->seen_in = entry->lock->known.era;
	lock_touch(entry->lock);
}

/* Another client's entry is there, or was until just now. */
static inline void known_meet(struct lock *lock)
{
	lock->known.met_us = lc_now(lock->lc);
}

/* The entry was seen, as in K3 of pure/next.h. */
static inline bool known_is_seen(const struct entry *entry)
{
	return entry->seen_in == entry->lock->known.era || entry_is_seen(entry);
}

static inline bool known_is_placed(const struct entry *entry)
{
	return entry->known.prev != NULL;
}

/* No entry stands before it. */
static inline bool known_is_first(const struct entry *entry)
{
	return entry->lock->known.entries == &entry->known;
}

#endif
