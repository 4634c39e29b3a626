/* SPDX-License-Identifier: MIT
 *
 * keeper.h - a small process that starts the daemon and outlives it: -o keeper. It is the one that
 * the command, a terminal or systemd knows: signals to it go on to the daemon, and it ends as the
 * daemon ends, with its status or by its signal.
 *
 * The daemon has a socket to it. If the keeper is killed, the daemon goes on without one.
 */
#ifndef FS_KEEPER_H
#define FS_KEEPER_H

#include "options.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/signalfd.h>

/* What the daemon leaves to the next one. */
enum keeper_gift {
	KEEPER_DEVICE, /* the connection to the kernel */
	KEEPER_GIFTS,
};

/* ---- the start ---- */

/* Only the daemon, a child, returns from here: true; or false with errno, and there is no daemon.
 * Of the options the keeper forgets the credentials. */
bool keeper_begin(struct options *options);

/* ---- for the daemon: without a keeper all of it does nothing, if nothing else is said ---- */

/* The keeper has it from now on, too, under the number that it has here. */
void keeper_give(enum keeper_gift gift, int fd);
/* The mount serves: who started it is told, by the keeper; or by the daemon, if there is none. */
void keeper_serves(void);
/* The end has begun, and the keeper gives back what it has. systemd is told in the same way. */
void keeper_leaves(void);
/* A process group, or all processes of a unit, are sent a signal as a whole: then the daemon has it
 * twice, the second time from the keeper. Whether it is one that was seen already. */
bool keeper_repeats(const struct signalfd_siginfo *info, int64_t now_us);
/* For the loop's poll(2), or -1. When it is readable: listen. */
int keeper_fd(void);
void keeper_listen(void);
/* Over an exec the keeper stays: it is passed on, or no longer; and taken over. */
void keeper_pass(bool pass);
void keeper_take_over(void);

#endif
