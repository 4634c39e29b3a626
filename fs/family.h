/* SPDX-License-Identifier: MIT
 *
 * family.h - who a process is. FUSE tells the thread that asks, 0 when it is not
 * visible here; what is read of /proc is bounded and never waits.
 */
#ifndef FS_FAMILY_H
#define FS_FAMILY_H

#include "lockcore.h"

struct person {
	pid_t pid;                          /* 0: not visible */
	char command[LC_COMMAND_MAX + 1];   /* "-" then */
};

/* Only while the request is pending: afterwards the number may be another's. */
void family_identify(pid_t thread, struct person *ret_person);

#endif
