/* SPDX-License-Identifier: MIT
 *
 * wait.h - what is said on a terminal while locks are waited for: for whom, since when, why, and
 * how many come before. It is said after a second, and again when it has changed, ever more seldom.
 */
#ifndef ZKLOCK_WAIT_H
#define ZKLOCK_WAIT_H

#include "take.h"

#include <sys/types.h>

struct wait {
	const struct take *take;
	pid_t taker; /* the process that waits */
};

/* The work of a process of its own (tell.h), without an end. */
void wait_tell(const void *wait);

#endif
