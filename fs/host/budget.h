/* SPDX-License-Identifier: MIT
 *
 * budget.h - how much memory users can make the daemon keep. A user who exhausts the daemon's
 * memory takes all locks away, so objects that users can keep for any time are allocated here,
 * charged to the user, and refused beyond a limit.
 *
 * A mount has two budgets: for open files, and for requests that wait for the ensemble, so that a
 * user with too many open files can still look, fsync and close. Takers and their data have the
 * engine's limit (LC_USER_BYTES_MAX); names have node.h's.
 */
#ifndef FS_BUDGET_H
#define FS_BUDGET_H

#include "pure/per_user.h"

#include <stdbool.h>

/* What one user may have, and all together; more is ENFILE. Root has the second limit only, and all
 * others leave root the last part of that. */
#define BUDGET_USER_BYTES (8 * 1024 * 1024)
#define BUDGET_BYTES (64 * 1024 * 1024)
#define BUDGET_ROOT_BYTES (8 * 1024 * 1024)
/* The cost of an object beside its size: the allocator's share, and a poll of it. */
#define BUDGET_OBJECT 128
/* The cost of a descriptor: the daemon has few (DESCRIPTORS_WANTED). */
#define BUDGET_DESCRIPTOR 1024

struct budget {
	const char *what; /* for the log: "open files" */
	size_t bytes;
	bool restores; /* records are read: what was there before is refused nothing */
	struct per_user *users;
};

/* Zeroed. NULL: errno is ENFILE or ENOMEM. */
void *budget_alloc(struct budget *budget, uid_t uid, size_t size);
/* The object costs so much more from now on: 0, or -ENFILE. */
int budget_add(void *memory, size_t bytes);
/* The user who asked for it. */
uid_t budget_uid(const void *memory);
/* NULL is nothing. */
void budget_free(void *memory);

#endif
