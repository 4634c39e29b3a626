/* SPDX-License-Identifier: MIT
 *
 * holder.h - an open file or a claim that has the lock by a hold. It is a part of that object, and
 * has a slot of its own with the guardian.
 */
#ifndef FS_HOLDER_H
#define FS_HOLDER_H

#include "hold/hold.h"

struct holder {
	struct hold *hold;            /* NULL: none */
	const struct hold_kind *kind; /* its own: a door may join what flock(2) has taken */
	pid_t pid;                    /* the process that opened or locked, */
	int life;                     /*   and its pidfd of family_watch() */
	uid_t uid;                    /* of the process; other users may not signal it */
	int slot;                     /* the guardian's; -1: not guarded */
	bool watches_waiters;
	struct holder *prev, *next; /* in hold->holders */
};

/* One more holder of a hold, which has opened that door. 0; or an error of guardian_hold(): its
 * process could not be stopped if the lock were lost. To be called while its request is pending. */
int holder_join(struct holder *holder, struct hold *hold, const struct hold_kind *kind,
                const struct caller *caller, uid_t uid, const struct node *door);
/* The holder does not have the lock any more. With the last holder the hold is gone, or KEPT. */
void holder_part(struct holder *holder);
/* The holder has the lock by another hold from now on, and keeps its slot with the guardian. */
void holder_move(struct holder *holder, struct hold *to);
/* From now on kind->wake() is called, once, when a taker may have come or gone behind the lock. */
void holder_watch_waiters(struct holder *holder);

#endif
