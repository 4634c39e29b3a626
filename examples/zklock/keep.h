/* SPDX-License-Identifier: MIT
 *
 * keep.h - locks that stay taken until a time has come, whatever becomes of the command and
 * of zklock: a small process of a session of its own has their descriptors.
 */
#ifndef ZKLOCK_KEEP_H
#define ZKLOCK_KEEP_H

#include "take.h"

/* Starts the keeper; `until_ms` by span_now_ms(). Gives a descriptor, close-on-exec, whose
 * close says that the command has ended; then the reason says why the lock is still taken.
 * -1 and errno. */
int keep_start(const struct take *take, int64_t until_ms);

#endif
