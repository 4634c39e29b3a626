/* SPDX-License-Identifier: MIT
 *
 * lock_file.h - the names of lock files in a lock: the mode of each, how long it waits and behind
 * how many, and how long it may hold at most and at least:
 *
 *     lock@30s    lock@30s,most=10m,least=1m    try@least=1m    flock@most=10m    lock@ahead=1
 *
 * Pure.
 */
#ifndef FS_LOCK_FILE_H
#define FS_LOCK_FILE_H

#include "lockcore.h"

#include <stdbool.h>
#include <stdint.h>

/* Longer ones are malformed. */
#define LOCK_FILE_NAME_MAX 63

struct lock_file {
	enum lc_mode mode;
	int64_t wait_us;  /* 0: not at all; LC_FOREVER */
	unsigned crowd;   /* it is refused where so many wait; 0: it is not */
	bool joins;       /* reentrant: a hold of its own process or an ancestor is enough */
	bool advisory;    /* opening it takes nothing: flock(2) and fcntl(2) do */
	int64_t most_us;  /* the lock is lost when it has been held for so long; LC_FOREVER */
	int64_t least_us; /* it is not given back before it has been held for so long; 0 */
};

/* 0; -ENOENT: not a lock file; -EINVAL: would be a lock file, but the text after the @ is
 * malformed. */
int lock_file_parse(const char *name, struct lock_file *ret_lock_file);

/* What an open of the lock file in that lock asks the engine for. */
struct lc_request lock_file_request(const struct lock_file *lock_file, const char *lock);

/* The lock files that ls shows. NULL ends the list. */
extern const char *const lock_file_names[];

#endif
