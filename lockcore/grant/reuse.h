/* SPDX-License-Identifier: MIT
 *
 * reuse.h - an entry that serves several takes of one process: rules 28 and 43, see reuse.c.
 */
#ifndef LOCKCORE_REUSE_H
#define LOCKCORE_REUSE_H

#include "lock/taker.h"

/* The process of this request has given the lock back a moment ago. */
bool reuse_is_repeated(const struct lock *lock, const struct lc_request *request);
/* A holder leaves. True: its entry is spare for a moment, and the frontend is done with
 * the taker. */
bool reuse_leave(struct lc_taker *taker);
/* The taker whose spare entry serves this request. NULL: there is none, and an entry that was spare
 * is being deleted. */
struct lc_taker *reuse_take(struct lock *lock, const struct lc_request *request);
/* Another taker wants the lock, or a question is asked about it: the holder's entry will not become
 * spare, and a spare entry is deleted. */
void reuse_end(struct lock *lock);
/* The same for the lock of that path, and the lock in which that path is an entry. */
void reuse_end_at(struct lc *lc, const char *path);

#endif
