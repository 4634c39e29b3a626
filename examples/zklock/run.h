/* SPDX-License-Identifier: MIT
 *
 * run.h - the command, for as long as the locks are held.
 *
 *   running --lost, or held for too long--> stopping --grace is over--> killing
 *      |                                        |                          |
 *      +-- the command has ended --> done <-----+-- nothing is left of it--+
 */
#ifndef ZKLOCK_RUN_H
#define ZKLOCK_RUN_H

#include "take.h"

#define STATUS_AT_MOST 124 /* as of timeout(1) */

struct run {
	struct take *take;
	char **command;
	int64_t grace_ms;   /* between SIGTERM and SIGKILL */
	int64_t at_most_ms; /* -1: for ever */
	bool close;         /* the command does not have the descriptors */
};

/* Takes the locks, and runs it. The status to end with. A signal that ended the command ends this
 * process too. */
int run(struct run *run);

#endif
