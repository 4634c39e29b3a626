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
/* Sends a signal to every descendant of this process. How many may not be signalled, as
 * they run for another user. */
int tree_signal(int number);

/* The parent of a process; 0 if it is gone. */
pid_t tree_parent(pid_t pid);
/* Of this process: who waits for it waits for ever. */
bool tree_is_ancestor(pid_t pid);

#endif
