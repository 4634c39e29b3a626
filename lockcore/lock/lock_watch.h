/* SPDX-License-Identifier: MIT
 *
 * lock_watch.h - what is watched of a lock: its own node, which tells the number of slots, and
 * that the lock was not removed and made again; and the entries of other clients that bar the way
 * of a waiter.
 */
#ifndef LOCKCORE_LOCK_WATCH_H
#define LOCKCORE_LOCK_WATCH_H

#include "lock/taker.h"

/* Watches the lock's own node, unless that is watched on this connection. */
void lock_watch(struct lock *lock);
/* A read of that node is about to be sent, for that user. If this mount has used the lock, and its
 * node is not watched on this connection, the read is to leave the watch, and lock_watch_answered()
 * gets its answer. NULL: it is to leave none. */
struct lock *lock_watch_by_read(struct lc *lc, const char *path, uid_t uid);
void lock_watch_answered(void *lock, const struct ensemble_answer *answer);
/* Sets the fields of `info` that a lock's data says, and those that its Stat says. */
void lock_info_read_data(struct lc_lock_info *info, const char *data, size_t len);
void lock_info_read_stat(struct lc_lock_info *info, const struct ensemble_stat *stat);
/* The lock was seen with this czxid. Another one than before: it was removed and made again,
 * and what is remembered of it is void. */
void lock_see_czxid(struct lock *lock, int64_t czxid);
/* Watches these entries of other clients (NULL: fewer), and no others any more. As long as one is
 * watched the lock is in use. */
void lock_watch_others(struct lock *lock, const char *const znodes[OTHERS_WATCHED]);
void lock_watch_none(struct lock *lock);
/* The session has ended, and its watches with it. */
void lock_watches_gone(struct lock *lock);
/* An event of a node in the lock has come, perhaps of a watched entry of another client. */
void lock_other_changed(struct lock *lock, const char *znode, enum ensemble_change change);

#endif
