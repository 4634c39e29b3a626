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
	struct hold *hold; /* NULL: none */
	struct open_file
		*file; /* its, or that it locked: a lock file may join what flock(2) has taken */
	pid_t pid;     /* the process that opened or locked, */
	int life;      /*   and its pidfd of family_watch() */
	uid_t uid;     /* of the process; other users may not signal it */
	int slot;      /* the guardian's; -1: not guarded */
	bool watches_waiters;
	struct claim *prev, *next; /* in hold->claims */
};

/* One more claim on a hold, by that open file of a lock file. 0; or an error of guardian_hold():
 * its process could not be stopped if the lock were lost. To be called while its request is
 * pending. */
int claim_join(struct claim *claim, struct hold *hold, struct open_file *file,
               const struct caller *caller, uid_t uid);
/* The owner does not have the lock any more. With the last claim the hold is gone, or KEPT. */
void claim_part(struct claim *claim);
/* The claim has the lock by another hold from now on, and keeps its slot with the guardian. */
void claim_move(struct claim *claim, struct hold *to);
/* Its poller is woken, once, when a taker may have come or gone behind the lock. */
void claim_watch_waiters(struct claim *claim);
static inline void claim_wake(const struct claim *claim)
{
	answers_wake_poller(claim->file->front, claim->file->poller);
}

#endif
