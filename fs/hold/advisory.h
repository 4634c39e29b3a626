/* SPDX-License-Identifier: MIT
 *
 * advisory.h - an open file of a lock's `flock` file. Opening takes nothing; flock(2)
 * and fcntl(2) do, and each of them is a place in the same queue as an open of another
 * lock file. Their meaning: see flock_claim.h.
 *
 * The kernel sends no unlock for locks that it does not know: none comes at close, but a FLUSH for
 * every close of a descriptor, which ends the process's fcntl locks, and a RELEASE after the last,
 * which ends the rest.
 *
 * It reads, writes and polls as a held lock file while a lock is held through the file, or by the
 * fcntl lock of the process that asks. Otherwise there is nothing to read, and what is written
 * is the reason of the locks to come.
 */
#ifndef FS_ADVISORY_H
#define FS_ADVISORY_H

#include "hold/hold.h"
#include "hold/open_lock_file.h"

/* Bytes of a reason that is written before the lock is held: EFBIG. Each taker that waits
 * keeps its own. */
#define ADVISORY_REASON_MAX 255

struct advisory {
	struct open_lock_file lock_file;
	struct process opener;                /* with a pidfd of process_watch() */
	int slot;                             /* the guardian's */
	char reason[ADVISORY_REASON_MAX + 1]; /* of the locks to come */
};

/* Answers the request. */
void advisory_open(struct frontend *front, struct request *req, struct node *node);
/* The mount has another guardian, or none. */
void advisory_guard(struct open_file *file);
record_save_load_fn advisory_record_save_load; /* of struct frontend */

#endif
