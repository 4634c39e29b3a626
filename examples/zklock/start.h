/* SPDX-License-Identifier: MIT
 *
 * start.h - the process that becomes COMMAND. It takes the locks itself: so it is what others see
 * in the queue and as the holder, with the pid of COMMAND and its name, and what on_lost of the
 * mount stops. Then it hands the descriptors to zklock, which watches them, and waits for its word.
 *
 * With -o zklock takes them: COMMAND shall not have them open, and a mount stops those who do.
 */
#ifndef ZKLOCK_START_H
#define ZKLOCK_START_H

#include "run.h"

#include <signal.h>
#include <sys/types.h>

struct start {
	const struct run *run;
	pid_t pid;
	int fd; /* to it */
};

/* Process 1 of a container gets no signal that has its default action: from now on those that end
 * any other process end it, too. */
void start_as_first(void);
/* Signals that zklock ignores, and what SIGCHLD does: from now on until COMMAND has them back. */
void start_prepare(void);
/* Takes the locks, in whichever process. False: none is held, stderr says why, and that is the
 * status to end with. `ret_signal`: the signal that ended the process, or 0. */
bool start_take(struct start *start, struct run *run, int *ret_status, int *ret_signal);
/* Lets COMMAND begin. Its signals are blocked as in `mask`. */
void start_command(struct start *start, const sigset_t *mask);

#endif
