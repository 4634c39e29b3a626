/* SPDX-License-Identifier: MIT
 *
 * snapshot.h - a queue as it was at one moment, so that the lookups of one `ls -l`
 * do not each list it again. Good for SNAPSHOT_US.
 */
#ifndef FS_SNAPSHOT_H
#define FS_SNAPSHOT_H

#include "lockcore.h"

#define SNAPSHOT_US 1000000

/* Digits, mode, pid, host, repeat. */
#define QUEUE_NAME_MAX (20 + 1 + 9 + 1 + 10 + 1 + LC_HOST_MAX + 1 + 10)

/* The name of an entry in queue/: 0000000042-exclusive-4242-web1. Where a number is
 * there more than once, the second has `.1` behind its name, and so on. */
void snapshot_name(char ret_name[QUEUE_NAME_MAX + 1], const struct lc_entry *entry);

struct snapshot *snapshot_take(const struct lc_listing *listing, int64_t now_us);
void snapshot_free(struct snapshot *snapshot);
bool snapshot_fresh(const struct snapshot *snapshot, int64_t now_us);
/* NULL: no entry of that name. */
const struct lc_entry *snapshot_find(const struct snapshot *snapshot, const char *name);

#endif
