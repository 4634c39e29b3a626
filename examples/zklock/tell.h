/* SPDX-License-Identifier: MIT
 *
 * tell.h - what is said on standard error while locks are held or waited for. A process of its own
 * says it: a pipe that nobody reads, a terminal that is stopped, or a mount that does not answer
 * must not hold up the one that has the locks.
 */
#ifndef ZKLOCK_TELL_H
#define ZKLOCK_TELL_H

#include "take.h"

#include <sys/types.h>

struct teller {
	pid_t pid;
	int fd; /* a pidfd; -1: none is at work, or the kernel has no pidfds */
};

/* Starts a process that does that work and ends. It has no lock's descriptor, and dies with this
 * one. */
struct teller tell_start(const struct take *take, void (*work)(const void *), const void *context);
/* Waits until it has ended, for so long at most, and kills it then. */
void tell_end(struct teller *teller, int wait_ms);
/* As warnx(3), by such a process; it is waited for a second at most, and not again if that was in
 * vain. */
void tell(const struct take *take, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
