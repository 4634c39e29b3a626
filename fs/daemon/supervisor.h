/* SPDX-License-Identifier: MIT
 *
 * supervisor.h - a small process that starts the daemon and outlives it (with -o nokeeper there is
 * none). The shell, a terminal or systemd know this process: it passes on their signals to the
 * daemon, and it ends as the daemon ends, with its status or by its signal.
 *
 * If a signal ends the daemon while its lease is good, the supervisor starts another daemon, which
 * goes on from the records in the store. It is the same program file, even if an upgrade has
 * replaced it by now: so it surely understands the records. Records name descriptors by their
 * numbers. The supervisor has copies of some of them, SUPERVISOR_GIFTS, and the new daemon gets
 * these under the same numbers. All others ended with the old daemon:
 *
 *   the process that writes the log (log.c)   it has ended, too: another one is started
 *   pidfds of other processes (process.h)     opened anew, with a proof that it is the same process
 *   epoll, timers, signals, the socket to the ensemble, children that answer questions
 *                                             made anew at every start
 *
 * The daemon has a socket to the supervisor. If the supervisor is killed, the daemon goes on
 * without it.
 */
#ifndef FS_SUPERVISOR_H
#define FS_SUPERVISOR_H

#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/signalfd.h>

/* The descriptors that a daemon leaves to the next one. */
enum supervisor_gift {
	SUPERVISOR_DEVICE,        /* the connection to the kernel */
	SUPERVISOR_GUARDIAN,      /* the daemon's end of the socket to the guardian, */
	SUPERVISOR_GUARDIAN_PAGE, /*   and the memory that both share */
	SUPERVISOR_PROGRAM,       /* the program file; the new daemon does not get it */
	SUPERVISOR_GIFTS,
};

/* ---- the start ---- */

/* The supervisor needs these as long as it lives. */
struct supervisor_config {
	struct store *store; /* the supervisor changes it only between two daemons */
	char **argv;
	int64_t session_timeout_us;
};

/* Only the daemon, a child, returns from here: true. False: no child was made, and it is said why.
 * The supervisor forgets the credentials. */
bool supervisor_begin(const struct supervisor_config *config, char *credentials);

/* ---- for the daemon: without a supervisor these do nothing, unless they say otherwise ---- */

/* Gives the supervisor a copy of the descriptor, and its number here. -1: there is none to give. */
void supervisor_give(enum supervisor_gift gift, int fd);
/* The mount serves: the supervisor tells the shell or systemd, and after a crash from now on it
 * starts this program again. False: there is no supervisor. */
bool supervisor_serves(void);
/* Another program comes in the place of this one: if it does not serve, the supervisor starts this
 * one again. False: there is no supervisor. If the exec fails, supervisor_serves() is to be called.
 */
bool supervisor_makes_way(void);
/* The end has begun: the supervisor closes its copies, and tells systemd. Without a supervisor the
 * daemon itself tells systemd. */
void supervisor_leaves(void);
/* A signal to a whole process group, or to all processes of a unit, comes to the daemon twice: the
 * supervisor passes it on, too. True: this is the second one of the two. */
bool supervisor_repeats(const struct signalfd_siginfo *info, int64_t now_us);
/* The descriptor that the loop polls, or -1. When it is readable, call supervisor_listen(). */
int supervisor_fd(void);
void supervisor_listen(void);
/* Whether the program after an exec is to have this supervisor. */
void supervisor_pass(bool pass);
/* What ended the daemon before this one. */
struct supervisor_crash {
	int signal; /* 0: this is no start after a crash */
	int64_t at_us;
};

/* To be called once, first of all: if a supervisor or an exec has started this process, it finds
 * the supervisor. */
struct supervisor_crash supervisor_take_over(void);

#endif
