/* SPDX-License-Identifier: MIT
 *
 * keeper.h - a small process that starts the daemon and outlives it, but for -o nokeeper. It is the
 * one that the command, a terminal or systemd knows: signals to it go on to the daemon, and it ends
 * as the daemon ends, with its status or by its signal.
 *
 * A daemon that is ended by a signal is started again, as long as its lease is good, and goes on
 * with what the other has recorded in the store. It is the same program, even if another one
 * stands in its place by now: what it has recorded it can surely read. Of the descriptors that a
 * record names by their number, these exist then, under the same number, since the keeper has
 * them: KEEPER_GIFTS. All others ended with the process:
 *
 *   who writes the log (log.c)         it has ended, too: another one is started
 *   whether a process lives (family.h) opened anew, with a proof that it is the same one
 *   epoll, timers, signals, the socket to the ensemble, children that were asked
 *                                      are made at every start
 *
 * The daemon has a socket to the keeper. If the keeper is killed, it goes on without one.
 */
#ifndef FS_KEEPER_H
#define FS_KEEPER_H

#include "store.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/signalfd.h>

/* What the daemon leaves to the next one. */
enum keeper_gift {
	KEEPER_DEVICE,        /* the connection to the kernel */
	KEEPER_GUARDIAN,      /* the daemon's end of the socket to it, */
	KEEPER_GUARDIAN_PAGE, /*   and what both share */
	KEEPER_PROGRAM,       /* what is started; has no number there */
	KEEPER_GIFTS,
};

/* ---- the start ---- */

/* What the keeper needs, as long as it lives. */
struct keeper_config {
	const struct store *store; /* the daemon's, who alone changes it */
	char **argv;
	int64_t session_timeout_us;
};

/* Only the daemon, a child, returns from here: true; or false with errno, and there is no daemon.
 * The keeper forgets the credentials. */
bool keeper_begin(const struct keeper_config *config, char *credentials);

/* ---- for the daemon: without a keeper all of it does nothing, if nothing else is said ---- */

/* The keeper has it from now on, too, under the number that it has here. -1: nothing. */
void keeper_give(enum keeper_gift gift, int fd);
/* The mount serves: the keeper tells those who wait for that, and starts this program again from
 * now on. False: there is none. */
bool keeper_serves(void);
/* The end has begun, and the keeper gives back what it has. systemd is told in the same way. */
void keeper_leaves(void);
/* A process group, or all processes of a unit, are sent a signal as a whole: then the daemon has it
 * twice, the second time from the keeper. Whether it is one that was seen already. */
bool keeper_repeats(const struct signalfd_siginfo *info, int64_t now_us);
/* For the loop's poll(2), or -1. When it is readable: listen. */
int keeper_fd(void);
void keeper_listen(void);
/* Over an exec the keeper stays: it is passed on, or no longer. */
void keeper_pass(bool pass);
/* What ended the daemon before this one. */
struct keeper_crash {
	int signal; /* 0: nothing, this is no start after a crash */
	int64_t at_us;
};

/* First of all, and only there: if there is a keeper already, it is this daemon's. */
struct keeper_crash keeper_take_over(void);

#endif
