/* SPDX-License-Identifier: MIT
 *
 * claim.h - an owner that has the lock by a hold. What differs is who that is, and when the lock is
 * given up:
 *
 *   open(2)     the open file    RELEASE
 *   flock(2)    the open file    LOCK_UN, RELEASE      (flock_claim.h)
 *   fcntl(2)    the process      F_UNLCK, FLUSH        (flock_claim.h)
 *
 * It is a part of the owner's object, and has a slot of its own with the guardian.
 */
#ifndef FS_CLAIM_H
#define FS_CLAIM_H

#include "hold/hold.h"

struct claim {
	struct hold *hold;      /* NULL: none */
	struct open_file *file; /* the lock file that it opened, or that it locked */
	pid_t pid;              /* the process that opened or locked, */
	int life;               /*   and its pidfd of process_watch() */
	uid_t uid;              /* of the process; other users may not signal it */
	int slot;               /* the guardian's; -1: not guarded */
	bool watches_waiters;
	struct claim *prev, *next; /* in hold->claims */
};

/* One more claim on a hold, by that open file of a lock file. 0; or an error of guardian_hold():
 * its process could not be stopped if the lock were lost. To be called while its request is
 * pending. */
int claim_join(struct claim *claim, struct hold *hold, struct open_file *file,
               const struct process *caller, uid_t uid);
/* Takes the lock from the owner of the claim. With the last claim the hold ends, or is KEPT. */
void claim_part(struct claim *claim);
/* The claim has the lock by another hold from now on, and keeps its slot with the guardian. */
void claim_move(struct claim *claim, struct hold *to);
/* Asks the engine to wake the claim's poller, once, when a taker may have come or gone behind
 * the lock. */
void claim_watch_waiters(struct claim *claim);
static inline void claim_wake(const struct claim *claim)
{
	answers_wake_poller(claim->file->front, claim->file->poller);
}

#endif
