/* SPDX-License-Identifier: MIT
 *
 * handoff.h - who may hold the lock without a listing: see handoff.c, which proves it.
 */
#ifndef LOCKCORE_HANDOFF_H
#define LOCKCORE_HANDOFF_H

#include "lock/taker.h"

/* A taker is about to leave. If it holds, the next taker of ours is granted the lock, where
 * that is known to come next. */
void handoff_leave(struct lc_taker *leaver);
/* Grants, and sees to it that the next hand-off can do without a listing. */
void handoff_grant(struct lc_taker *taker, bool first);
/* The lock is watched while a taker of ours comes next behind this holder; and so is that
 * one's entry, if the holder stays for a while. */
void handoff_watch_next(struct lc_taker *holder);
/* The front waits for that node of another client: the two are watched, and whoever is let in
 * when that one goes. */
void handoff_wait(struct lock *lock, struct lc_taker *front, const char *znode);
/* The same where it is known without a listing who the front is. False: it is not. */
bool handoff_line_up(struct lock *lock);
/* That node is gone, and was watched on this connection. False: only a listing can tell who
 * holds now. */
bool handoff_by_event(struct lock *lock, const char *znode);
/* The entry that got the lock was there after it got it. */
void handoff_seen(struct entry *entry);
/* Deletes what was held back for an entry that is not `unseen` any more. */
void handoff_release(struct lock *lock);

/* An entry of ours comes into the queue; `made`: its create was answered now. It may be first
 * without a listing. */
void handoff_present(struct entry *entry, bool made);
/* An entry of ours is about to go out of the queue. */
void handoff_absent(struct entry *entry);

#endif
