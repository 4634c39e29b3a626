/* SPDX-License-Identifier: MIT
 *
 * advisory.h - an open file of a lock's `flock` door. Opening takes nothing; flock(2)
 * and fcntl(2) do, and each of them is a place in the same queue as an open of another
 * door. Their meaning: see claim.h.
 *
 * The kernel sends no unlock for locks that it does not know: none comes at close, but a FLUSH for
 * every close of a descriptor, which ends the process's fcntl locks, and a RELEASE after the last,
 * which ends the rest.
 */
#ifndef FS_ADVISORY_H
#define FS_ADVISORY_H

#include "hold/held.h"
#include "hold/hold.h"

/* Bytes of a reason that is written before the lock is held: EFBIG. Each taker that waits
 * keeps its own. */
#define ADVISORY_REASON_MAX 255

struct advisory {
	struct face *face;
	struct node *node; /* a reference */
	uint64_t fh;
	struct caller opener;
	int opener_life; /* family_watch() */
	int slot;        /* the guardian's */
	uint64_t poller; /* 0: nobody polls */
	struct cursor cursor;
	char reason[ADVISORY_REASON_MAX + 1]; /* of the locks to come */
	struct stored stored;
	struct advisory *prev, *next; /* in face->holds->advisories */
};

void advisory_open(struct face *face, fuse_req_t req, struct node *node,
                   const struct fuse_file_info *fi);
void advisory_flock(struct advisory *file, fuse_req_t req, uint64_t owner, int op);
void advisory_setlk(struct advisory *file, fuse_req_t req, uint64_t owner, const struct flock *lock,
                    bool wait);
void advisory_getlk(struct advisory *file, fuse_req_t req, const struct fuse_file_info *fi,
                    const struct flock *lock);

/* As of a held door while a lock is held through the file, or by the asking process's
 * fcntl lock. Otherwise there is nothing to read, and what is written is the reason of the
 * locks to come. */
void advisory_read(struct advisory *file, fuse_req_t req, size_t size, off_t off);
void advisory_write(struct advisory *file, fuse_req_t req, const char *data, size_t size);
void advisory_fsync(struct advisory *file, fuse_req_t req);
void advisory_poll(struct advisory *file, fuse_req_t req, unsigned asked, uint64_t poller);

/* One descriptor of it was closed. */
void advisory_flush(struct advisory *file, fuse_req_t req, uint64_t owner);
/* The last one was. */
void advisory_release(struct advisory *file);
/* No RELEASE will come any more; after holds_end(). `leave`: as there. */
void advisories_end(struct face *face, bool leave);

/* Pollers of these files are to ask again. */
void advisories_wake(struct face *face);
void advisory_stored_carry(struct carry *carry, struct face *face, struct stored *stored);

#endif
