/* SPDX-License-Identifier: MIT
 *
 * snapshot.h - a queue as it was at one moment, so that the lookups of one `ls -l` do not
 * each list it again, nor each read one entry: where one is looked up after the other,
 * those that follow are read beforehand. Good for SNAPSHOT_US. What was read beforehand is also
 * told to the next one who opens the entry's file, if that is soon.
 */
#ifndef FS_SNAPSHOT_H
#define FS_SNAPSHOT_H

#include "lockcore.h"

#define SNAPSHOT_US 1000000
/* Entries read at a time. */
#define SNAPSHOT_AHEAD 256
/* How long after that, and with how many bytes of a reason, an entry is told to who opens it. */
#define SNAPSHOT_OPEN_US 200000
#define SNAPSHOT_REASON_MAX 128

/* Digits, mode, pid, host, repeat. */
#define QUEUE_NAME_MAX (20 + 1 + 9 + 1 + 10 + 1 + LC_HOST_MAX + 1 + 10)

/* The name of an entry in queue/: 0000000042-exclusive-4242-web1. Where a number is
 * there more than once, the second has `.1` behind its name, and so on. */
void snapshot_name(char ret_name[QUEUE_NAME_MAX + 1], const struct lc_entry *entry);

/* The facts of an entry that stat(2) needs. */
struct entry_facts {
	bool of_mount, held;
	int64_t uid;      /* -1: unknown */
	int64_t since_ms; /* it holds, or waits */
	int64_t token;    /* another entry may have its name one day */
};

struct snapshot *snapshot_take(const struct lc_listing *listing, int64_t now_us);
void snapshot_free(struct snapshot *snapshot);
size_t snapshot_count(const struct snapshot *snapshot);
bool snapshot_fresh(const struct snapshot *snapshot, int64_t now_us);
bool snapshot_is_of(const struct snapshot *snapshot, const struct lc_listing *listing);
/* Whether an entry can have that name. */
bool snapshot_is_name(const char *name);
/* No entry has that name, and none will have it, since numbers rise. */
bool snapshot_excludes(const struct snapshot *snapshot, const char *name);
/* NULL: no entry of that name. */
const struct lc_entry *snapshot_find(const struct snapshot *snapshot, const char *name);
/* NULL: it has not been read yet. */
const struct entry_facts *snapshot_facts(const struct snapshot *snapshot,
                                         const struct lc_entry *entry);
/* How many to read now from this one on: the more, the longer they are asked for one after
 * the other. */
size_t snapshot_ahead(struct snapshot *snapshot, const struct lc_entry *entry);
void snapshot_learn(struct snapshot *snapshot, const struct lc_entry_info *info, int64_t asked_us);
/* What was read of that entry a moment ago, until it is told. NULL: it has to be read. */
const struct lc_entry_info *snapshot_info(const struct snapshot *snapshot, const char *name,
                                          int64_t now_us);
void snapshot_told(struct snapshot *snapshot, const char *name);

#endif
