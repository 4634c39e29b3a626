/* SPDX-License-Identifier: MIT
 *
 * opener.h - which processes of this host have a file of a lock open. An entry shows the process
 * that opened the file, and stays while any process has it, also when that one is gone.
 */
#ifndef ZKLOCK_OPENER_H
#define ZKLOCK_OPENER_H

#include "mount.h"

#include <sys/types.h>

struct opener {
	pid_t pid;
	char command[64]; /* its name may hold anything: see clean.h */
};

/* At most `max` of them. `ret_all`: all processes could be looked into. */
size_t openers_find(const struct mount *mount, const char *lock, struct opener *ret_openers,
                    size_t max, bool *ret_all);
/* There is no such process, or it has ended and nobody has waited for it. */
bool opener_is_gone(pid_t pid);
/* The process has no file of the lock open, as far as that can be seen. */
bool opener_has_closed(const struct mount *mount, const char *lock, pid_t pid);

#endif
