/* SPDX-License-Identifier: MIT
 *
 * locks.h - .zklockfs/locks: one line for each lock below the root that is held or waited for, by
 * whomever. The OPEN waits until all of them were asked about.
 */
#ifndef FS_LOCKS_H
#define FS_LOCKS_H

#include "request/frontend.h"

/* Answers the request, sooner or later. */
void locks_open(struct frontend *front, struct request *req, struct node *node, int flags);

#endif
