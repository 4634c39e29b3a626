/* SPDX-License-Identifier: MIT
 *
 * loss.h - why a lock was lost, as far as the mount knows.
 */
#ifndef ZKLOCK_LOSS_H
#define ZKLOCK_LOSS_H

#include "take.h"

#define LOSS_MAX 600

/* In words, from .zklockfs/history; "" if it says nothing. Returns `why`. */
const char *loss_explain(const struct mount *mount, const struct lock *lock, char why[LOSS_MAX]);

#endif
