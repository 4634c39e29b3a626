/* SPDX-License-Identifier: MIT
 *
 * tell.h - what is said on standard error while locks are held or waited for. A process of its own
 * says it: a pipe that nobody reads, a terminal that is stopped, or a mount that does not answer
 * must not hold up the one that has the locks.
 */
#ifndef ZKLOCK_TELL_H
#define ZKLOCK_TELL_H

#include "child.h"
#include "take.h"

/* Starts a process that does that work and ends. It has no lock's descriptor, and dies with this
 * one. Its pid is -1, and errno set, if it could not be started. */
struct child tell_start(const struct take *take, void (*work)(const void *), const void *context);
/* Kills it. */
void tell_stop(struct child *teller);
/* Lets one do that work. It is waited for a second at most, and less if that was in vain once. */
void tell_by(const struct take *take, void (*work)(const void *), const void *context);
/* Like warnx(3), in the same way. */
void tell(const struct take *take, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
