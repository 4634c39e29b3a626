/* SPDX-License-Identifier: MIT
 *
 * orphan.h - entries that bear this session's mark and belong to no taker: see orphan.c.
 */
#ifndef LOCKCORE_ORPHAN_H
#define LOCKCORE_ORPHAN_H

#include "pure/queue.h"
#include "lock/taker.h"

struct orphans {
	struct orphan *by_path; /* those that are being asked, or deleted */
};

/* A listing shows an entry with this session's mark and no taker: reads its owner, and deletes it
 * if that is this session. False: there is no room to ask now. */
bool orphan_check(struct lock *lock, const struct queue_entry *entry);

#endif
