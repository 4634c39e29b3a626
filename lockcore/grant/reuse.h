/* SPDX-License-Identifier: MIT
 *
 * reuse.h - an entry that serves several takes of one process: rules 28 and 43, see reuse.c.
 */
#ifndef LOCKCORE_REUSE_H
#define LOCKCORE_REUSE_H

#include "lock/taker.h"

/* Its process takes the lock a moment after it has given it back. */
bool reuse_is_repeated(const struct lock *lock, const struct lc_request *request);
/* A holder leaves. True: its entry is spare for a moment, and the frontend is done with
 * the taker. */
bool reuse_leave(struct lc_taker *taker);
/* The taker with the spare entry, HELD by the one that asks. NULL: none for this request, and what
 * was spare is on its way out. */
struct lc_taker *reuse_take(struct lock *lock, const struct lc_request *request);
/* Somebody else wants the lock, or asks about it: the entry of the holder will not be spare, and
 * one that is goes. */
void reuse_end(struct lock *lock);
/* The same for the lock of that path, and the lock in which that path is an entry. */
void reuse_end_at(struct lc *lc, const char *path);

#endif
