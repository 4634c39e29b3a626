/* SPDX-License-Identifier: MIT
 *
 * fh.h - the numbers by which the kernel names open files (`fh`). They mean the same to a daemon
 * that takes over, so they are no pointers: a place in a table, and which of the files that have
 * stood there.
 */
#ifndef FS_FH_H
#define FS_FH_H

#include "store/carry.h"

#include <stddef.h>
#include <stdint.h>

/* More than budgets let users open. */
#define FH_MAX (1 << 20)

enum fh_kind { FH_NONE, FH_HANDLE, FH_ADVISORY, FH_TEXT, FH_LOCKS, FH_DIR };

struct fhs {
	struct fh_slot *slots;
	uint32_t count, free_count; /* slots that are or were in use; those that are free */
	uint32_t room;
	uint32_t *free;
	uint32_t generation; /* of the last one */
};

void fhs_finish(struct fhs *fhs);
/* 0: errno, ENOMEM or ENFILE. */
uint64_t fh_add(struct fhs *fhs, enum fh_kind kind, void *file);
/* 0 is nothing. */
void fh_drop(struct fhs *fhs, uint64_t fh);
/* The file; NULL: there is none of that number and kind. */
void *fh_find(const struct fhs *fhs, enum fh_kind kind, uint64_t fh);
/* The next file of that kind; *slot is 0 at first. NULL: there are no more. */
void *fh_next(const struct fhs *fhs, enum fh_kind kind, uint32_t *slot);
size_t fh_count(const struct fhs *fhs, enum fh_kind kind);

/* The table; then each file, which is written by its owner, is put into it by its number. */
void fhs_carry(struct carry *carry, struct fhs *fhs);
void fh_carry(struct carry *carry, struct fhs *fhs, enum fh_kind kind, void *file, uint64_t *fh);
/* When all are read. */
void fhs_carried(struct carry *carry, struct fhs *fhs);

#endif
