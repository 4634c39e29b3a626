/* SPDX-License-Identifier: MIT
 *
 * holds_guard.h - the mount has another guardian, or none: it is told of all who hold, and of all
 * open files of `flock`. A process that it has no room for is not stopped, and the log says so.
 */
#ifndef FS_HOLDS_GUARD_H
#define FS_HOLDS_GUARD_H

struct frontend;

void holds_guard(struct frontend *front);

#endif
