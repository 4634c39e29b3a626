/* SPDX-License-Identifier: MIT
 *
 * locks.h - the open file of .zklockfs/locks: one line for each lock below the root that is
 * held or waited for, by whomever.
 *
 * It is read like a pipe, from the start to the end once. The ensemble is asked only during reads,
 * so a reader that stops costs at most LOCKS_ROOM and the requests under way.
 */
#ifndef FS_LOCKS_H
#define FS_LOCKS_H

#include "request/frontend.h"

/* Answers the request. */
void locks_open(struct frontend *front, struct request *req, struct node *node, int flags);
void locks_stored_carry(struct carry *carry, struct frontend *front, struct stored *stored);

#endif
