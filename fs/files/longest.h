/* SPDX-License-Identifier: MIT
 *
 * longest.h - which holds and waits of a mount are the oldest, and which are kept: for
 * .zklockfs/metrics and status.
 */
#ifndef FS_LONGEST_H
#define FS_LONGEST_H

#include "request/frontend.h"
#include "tree/view.h"

/* Fills in oldest_hold_us, oldest_wait_us, kept, longest and longest_count. Its pointers are good
 * until something changes. */
void longest_find(const struct frontend *front, struct view_held ret_longest[VIEW_LONGEST_MAX],
                  struct view_mount *ret_mount);

#endif
