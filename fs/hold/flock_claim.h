/* SPDX-License-Identifier: MIT
 *
 * flock_claim.h - a lock that is held by flock(2) or fcntl(2) on its `flock` file, and the requests
 * that wait for one.
 *
 *   kind     its owner, as the kernel tells it     given back
 *   flock    the open file                         LOCK_UN, or its last close
 *   fcntl    the process, or for an OFD lock the   F_UNLCK, or any close of the file by
 *            open file                             the process, or the last close
 *
 * One process may lock a file in both ways, which on a local file do not conflict: its two claims
 * share one hold. Two claims of one kind never share a hold: they conflict as those of two
 * processes do.
 *
 *   ask     same mode        other mode
 *   flock   nothing to do    gives back, and asks anew at the end of the queue
 *   fcntl   nothing to do    shared after exclusive: the entry stays as it is;
 *                            exclusive after shared: a new entry in place of the old one,
 *                            EDEADLK if one that is exclusive waits in between
 *
 *   flock_claim_take() ─► it waits, with a hold of its own (struct ask) ─► granted ─┐
 *        │ the process has the lock by the other kind                            ▼
 *        └───────────────────────────► [shared] ◄── fcntl: both ways ──► [exclusive]
 *                                          └──────────── flock_claim_drop() ──────────┴──► gone
 *
 * Once the lock is lost, every request by the claim gets EIO until the claim is dropped, like every
 * other use of the descriptor.
 */
#ifndef FS_FLOCK_CLAIM_H
#define FS_FLOCK_CLAIM_H

#include "hold/advisory.h"

/* CLAIM_BYTE: by fcntl(2), of the first byte alone, which stands for the whole file. One owner has
 * no claim of the whole beside it. */
enum claim_kind { CLAIM_FLOCK, CLAIM_FCNTL, CLAIM_BYTE };

/* Whether the same call makes both kinds: two such claims conflict. */
static inline bool claim_kinds_alike(enum claim_kind a, enum claim_kind b)
{
	return (a == CLAIM_FLOCK) == (b == CLAIM_FLOCK);
}

/* The key of a claim: a lock file has one claim of each. */
struct claim_id {
	uint64_t owner;
	enum claim_kind kind;
};

struct flock_claim {
	struct claim base; /* by the file that it was made through */
	struct claim_id id;
	enum lc_mode mode;      /* as asked for: the hold's own may be the stronger one */
	struct process process; /* the process that asked; pid 0: no process may share the hold */
	struct flock_claim *prev, *next; /* in node->claims */
	UT_hash_handle hh;               /* in node->claims_by_id */
};

struct claim_request {
	struct advisory *file;
	struct node *node; /* the lock file */
	enum claim_kind kind;
	uint64_t owner;
	enum lc_mode mode;
	int64_t wait_us; /* as of lc_request */
	struct process asker;
	uid_t uid;
};

/* Answers the request. */
void flock_claim_take(struct frontend *front, struct request *req,
                      const struct claim_request *request);
/* The claim of that owner, or NULL. */
struct flock_claim *flock_claim_find(const struct node *node, enum claim_kind kind, uint64_t owner);
/* The hold by which that process has the lock with a claim of the other kind; NULL. It takes time
 * for each claim of the lock file. */
struct hold *flock_claim_companion(const struct node *node, enum claim_kind kind,
                                   const struct process *process);
void flock_claim_drop(struct flock_claim *claim);
/* From now on no process shares the hold of the claim. */
void flock_claim_disown(struct flock_claim *claim);
/* Answers with this errno the requests by fcntl of this owner that wait through this file. */
void flock_claim_refuse(const struct advisory *file, struct node *node, uint64_t owner, int error);

/* The kind of the holds that flock(2) and fcntl(2) make. */
extern const struct hold_kind flock_claim_hold_kind;

#endif
