/* SPDX-License-Identifier: MIT
 *
 * process.h - one process that may be stopped: its identity, its user, and a signal to it alone.
 */
#ifndef FS_PROCESS_H
#define FS_PROCESS_H

#include "host/who.h"
#include "pure/codec.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Held by a pidfd, so that its number cannot become another's; where the kernel has none
 * (before 5.3), or a filter refuses it, by its start. */
struct process_ref {
	pid_t pid;
	int fd;         /* -1: by its start */
	uint64_t start; /* then */
};

/* Of that number, running or not. False and errno: there is none, or no pidfd can be had. */
bool process_hold(pid_t pid, struct process_ref *ret_process);
/* A running one. False: there is none of that number. */
bool process_open(pid_t pid, struct process_ref *ret_process);
void process_close(struct process_ref *process);
/* It has not ended meanwhile: the files that were read by its number were its own. */
bool process_runs(const struct process_ref *process);
/* A number that no other process of this boot has; 0: the kernel tells none (before 6.9). */
uint64_t process_number(const struct process_ref *process);
/* The one of that number and start. `number`: as once told by process_number(). May wait if
 * there is none, as whatever reads stat of /proc. */
bool process_is(const struct process_ref *process, uint64_t start, uint64_t number);
/* 0, or an errno. ESRCH: it has ended. */
int process_signal(const struct process_ref *process, int signal);
/* This process may signal those of all users. */
bool process_may_signal_all(void);

/* As who_is(): it does not wait. */
bool process_status(const struct process_ref *process, struct who *ret_status);
/* kill(2) would let that user signal it. */
bool process_obeys(const struct who *status, uid_t uid);

/* A descriptor of family_watch(), or -1. After a crash it is opened anew: -1 if the process of that
 * number is another one now, or none. Where the kernel cannot tell, one is taken for the same
 * that the user might signal. */
int process_life_save_load(struct codec *codec, pid_t pid, uid_t uid, int life);

#endif
