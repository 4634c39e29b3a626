/* SPDX-License-Identifier: MIT
 *
 * parked.h - a request that waits for an answer of the ensemble.
 */
#ifndef FS_PARKED_H
#define FS_PARKED_H

#include "request/reply.h"

/* Each kind of request embeds this as its first member.
 *
 *   park() ─► no call ──park_call()──► a call ──unpark()──► no call ──parked_free()──► answered
 *                                       │  ▲                   │
 *                 interrupted: answered │  └────park_call()────┘
 *                                       ▼
 *                                     EINTR
 *
 * What has changed something is the last call of a request: an error of a later one would be told
 * as that of the change.
 */
struct parked {
	struct frontend *front;
	struct request *req;
	struct lc_call *call; /* cancelled when the request is interrupted; NULL: none */
	struct node *node;    /* a reference, or NULL */
	uid_t by;             /* the user whose rights count: park_by() */
};

/* A new request of that size, whose first member is a struct parked; the rest is zero. Takes a
 * reference on the node. NULL: the request is answered ENOMEM or ENFILE. */
void *park(struct frontend *front, struct request *req, struct node *node, size_t size);
/* The same for a write by a file that `opener` has opened. A file may be handed on, for example as
 * the standard error of a program with setuid, which then writes what its user wants. So both must
 * be allowed to. EPERM: these are two users, and neither is root. */
void *park_by(struct frontend *front, struct request *req, struct node *node, size_t size,
              uid_t opener);
/* Notes the result of making the call: 0, or an error, which answers the request. */
void park_call(struct parked *parked, int r);
/* The same for a call that may change something: after a crash no other daemon makes it again. */
void park_change(struct parked *parked, int r);
/* The call is answered: from now on no interrupt ends the request. */
void unpark(struct parked *parked);
/* The same. False: the call failed; the request is answered with its error, and freed. */
bool unpark_succeeded(struct parked *parked, int err);
/* The user that asks. */
uid_t parked_uid(const struct parked *parked);
void parked_free(struct parked *parked);
/* Both answer the request and free. */
void parked_error(struct parked *parked, int error);
void parked_done(void *ctx, int err); /* an lc_done_fn */

#endif
