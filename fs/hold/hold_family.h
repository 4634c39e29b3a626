/* SPDX-License-Identifier: MIT
 *
 * hold_family.h - which process may have a lock by the hold of another: a descendant of a process
 * that has it, on a reentrant lock file.
 */
#ifndef FS_HOLD_FAMILY_H
#define FS_HOLD_FAMILY_H

#include "hold/hold.h"

/* The exclusive hold, not lost, of the nearest living ancestor that has one on this mount, if its
 * user might signal the process. NULL: there is none. */
struct hold *hold_of_family(struct frontend *front, const char *lock,
                            const struct lineage *lineage);
/* Whether the process of a waiting hold may join that one. Its lineage was read when it asked,
 * before its family had the lock: so it is read again, into *now, which is the caller's to free.
 * The next call takes it from there if it is of the same process: threads of one process usually
 * wait one behind the other. */
bool hold_has_family(const struct hold *family, const struct hold *waiting, struct lineage **now);

#endif
