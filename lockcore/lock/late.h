/* SPDX-License-Identifier: MIT
 *
 * late.h - nodes that a create without an answer may have made: see late.c.
 */
#ifndef LOCKCORE_LATE_H
#define LOCKCORE_LATE_H

#include "lock/taker.h"

/* Listing number `number` shows a node that is no taker's entry. If its name has this session's
 * half, the ensemble is asked whose it is. A node of this session is the entry of the taker whose
 * create was not answered, or it is deleted. */
void late_found(struct lock *lock, const char *znode, const struct entry_name *name,
                uint64_t number);

#endif
