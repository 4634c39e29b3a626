/* SPDX-License-Identifier: MIT
 *
 * trial.h - whether on_lost can stop anybody here: a filter of system calls, or a /proc that shows
 * nothing, makes it impossible without a word at the moment when it matters.
 */
#ifndef FS_TRIAL_H
#define FS_TRIAL_H

/* Starts a process that has a file open, finds it by that file and stops it, by the functions that
 * the guardian uses. Takes some milliseconds. NULL: it was stopped; otherwise what could not be
 * done, with its errno. The first answer stays, also for processes that are forked later: with
 * credentials= the daemon hides its own memory, and what it forks is hidden, too. */
const char *trial_stop(void);

/* The same for finding a process of another user, where this process may signal those of all
 * users; where it may not, it stops none of them. Without CAP_SYS_PTRACE the kernel shows the files
 * of none. Then on_lost still stops whoever took a lock, whom the mount knows, and not whoever has
 * inherited its file. NULL: it was found. */
const char *trial_find_others(void);

#endif
