/* SPDX-License-Identifier: MIT
 *
 * keep.h - locks that stay taken until a given time, even if the command and zklock end: a small
 * process in a session of its own has their descriptors.
 */
#ifndef ZKLOCK_KEEP_H
#define ZKLOCK_KEEP_H

#include "take.h"

/* Starts the keeper; `until_ms` by span_now_ms(). Returns a descriptor, close-on-exec. Its close
 * means that the command has ended; then the reason says why the lock is still taken.
 * -1 and errno. */
int keep_start(const struct take *take, int64_t until_ms);

#endif
