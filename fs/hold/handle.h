/* SPDX-License-Identifier: MIT
 *
 * handle.h - the open file of a lock file.
 */
#ifndef FS_HANDLE_H
#define FS_HANDLE_H

#include "hold/hold.h"

/* Answers the request when the lock is held, or not to be had. */
void handle_open(struct frontend *front, struct request *req, struct node *node, int flags);
/* The kind of the holds that lock files make. */
extern const struct hold_kind handle_kind;

#endif
