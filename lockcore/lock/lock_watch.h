/* SPDX-License-Identifier: MIT
 *
 * lock_watch.h - what is watched of a lock: its own node, which tells the number of slots, and
 * that the lock was not removed and made again; and the foreign entry that the front waits for.
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
void lock_watch_answered(struct lock *lock, const struct ensemble_answer *answer);
/* What a lock's data says, and its Stat. */
void lock_info_read_data(struct lc_lock_info *info, const char *data, size_t len);
void lock_info_read_stat(struct lc_lock_info *info, const struct ensemble_stat *stat);
/* The lock was seen with this czxid. Another one than before: it was removed and made again,
 * and what is remembered of it is void. */
void lock_see_czxid(struct lock *lock, int64_t czxid);
/* Watches the foreign entry that the front waits for, and no other one any more. As long as it
 * is watched the lock is in use. */
void lock_watch_front(struct lock *lock, const char *znode);
void lock_watch_none(struct lock *lock);
/* The session has ended, and its watches with it. */
void lock_watches_gone(struct lock *lock);
/* The entry that lock_watch_front() was told of last, if it was not there any more. */
const char *lock_front_gone(const struct lock *lock);
/* It is the entry that lock_watch_front() was told of last. */
bool lock_front_is(const struct lock *lock, const char *znode);
/* That one's watch is good: it was there on this connection. */
bool lock_front_is_watched(const struct lock *lock);
/* That one's event has come. */
void lock_front_fired(struct lock *lock);

#endif
