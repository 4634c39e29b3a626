/* SPDX-License-Identifier: MIT
 *
 * sweep.h - many names of a directory of locks, looked up one after the other.
 *
 * ls -l, ls --color and find look up each name that a listing has shown, one at a time. Who looks
 * up names in the order of the listing has the next ones asked about together with it, more of them
 * each time. What is found is told to one look-up, while it is not older than TIMEOUT_US.
 */
#ifndef FS_SWEEP_H
#define FS_SWEEP_H

#include "files/lists.h"
#include "request/frontend.h"

/* A name is going to be asked about, by that user. True: a listing has shown it, and it is the next
 * one; those behind it are asked about right now. */
bool sweep_ask(struct frontend *front, struct node *directory, const char *name, uid_t uid);
/* The lock was asked about together with another one. */
bool sweep_knows(const struct frontend *front, const struct node *lock);
/* Without an engine. */
void sweep_finish(struct lists *lists);

#endif
