/* SPDX-License-Identifier: MIT
 *
 * child.h - a child whose end can be awaited for a while: it may hang in the mount. Its end is that
 * of a pipe, since a filter of system calls may refuse pidfd_open(2).
 */
#ifndef ZKLOCK_CHILD_H
#define ZKLOCK_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

struct child {
	pid_t pid; /* -1: none */
	int end;   /* readable when it has ended */
};

/* Like fork(2): 0 in the child, whose own children keep its end open. -1 and errno. */
pid_t child_fork(struct child *child);
/* Whether it has ended within that time. */
bool child_await(const struct child *child, int wait_ms);
/* Ends the use of a child that was waited for, or is given up. */
void child_close(struct child *child);

#endif
