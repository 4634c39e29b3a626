/* SPDX-License-Identifier: MIT
 *
 * look.h - the commands of zklock that take nothing: each gives the status to end with.
 */
#ifndef ZKLOCK_LOOK_H
#define ZKLOCK_LOOK_H

#include "mount.h"

/* All locks that are held or waited for. */
int look_all(const struct mount *mount);
/* The holds of this mount that have ended; of one lock, or NULL for all. */
int look_history(const struct mount *mount, const char *lock);
/* What the mount says of itself: EX_OK if it is ready. */
int look_status(const struct mount *mount);
/* The queue of one. */
int look_queue(const struct mount *mount, const char *lock);
/* Whether to take it now, without waiting, would succeed: 0, or what zklock -n would end
 * with; and why. */
int look_why(const struct mount *mount, const char *lock, bool shared);
/* Takes the lock from the entries that the words name: names in queue/, their numbers, or
 * `holder`. */
int look_evict(const struct mount *mount, const char *lock, char **words);

#endif
