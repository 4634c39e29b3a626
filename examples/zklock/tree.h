/* SPDX-License-Identifier: MIT
 *
 * tree.h - all processes that this one has started, and those that they have started. As
 * the calling process is made their subreaper, none of them gets away by losing its parent.
 */
#ifndef ZKLOCK_TREE_H
#define ZKLOCK_TREE_H

#include <stdbool.h>
#include <sys/types.h>

/* From now on; processes that were orphaned before belong to others. */
bool tree_adopt(void);
/* Sends a signal to every descendant of this process, parents first, as far as the hard limit of
 * descriptors goes; the soft one is raised. How many may not be signalled, as they run for another
 * user; where /proc hides those, 1 if no other child is left. */
int tree_signal(int number);

/* 0: it is gone; -1: no descriptor is left to see it. */
pid_t tree_parent(pid_t pid);
/* Whether `above` has started it, or has started who has. */
bool tree_is_below(pid_t pid, pid_t above);

#endif
