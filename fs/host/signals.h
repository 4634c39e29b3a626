/* SPDX-License-Identifier: MIT
 *
 * signals.h - the signals that the daemon and its supervisor read from a descriptor: SIGTERM,
 * SIGINT and SIGHUP to leave, SIGUSR2 to reload, SIGCHLD of their children.
 */
#ifndef FS_SIGNALS_H
#define FS_SIGNALS_H

#include <signal.h>

/* Others that would end a process, and that somebody may send to all at once, are ignored from now
 * on, by children too. */
void signals_ignore_others(void);
/* The signals that end or replace the daemon are blocked from now on. */
void signals_block(sigset_t *ret_before);
/* Blocks the same signals, and makes the signalfd(2) that reads them. -1: errno. */
int signals_open(void);
/* In a child that does what the end of the daemon needs: signals to leave, which systemd sends to
 * all processes, do not end it, nor a program that follows. */
void signals_ignore_leaving(void);
/* In a child, which another program may follow: no signal is blocked. */
void signals_unblock_all(void);

#endif
