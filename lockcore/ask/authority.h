/* SPDX-License-Identifier: MIT
 *
 * authority.h - who may do what to a lock. It is looked at when it is done, in the data that
 * the ensemble has then: a file may have been opened, or a name looked up, when the lock was
 * another's.
 */
#ifndef LOCKCORE_AUTHORITY_H
#define LOCKCORE_AUTHORITY_H

#include "session/base.h"

/* Reads the owner and modes from the answer of a get; a lock without attributes has the mount's. */
void authority_read(const struct lc *lc, const struct ensemble_answer *answer,
                    struct lc_attributes *ret_attributes);
/* The lock's owner, and root: they may write its slots, remove it, and evict from it. */
bool authority_owns(const struct lc_attributes *now, uid_t uid);

#endif
