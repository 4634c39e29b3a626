/* SPDX-License-Identifier: MIT
 *
 * trial.h - whether on_lost can stop anybody here: a filter of system calls, or a /proc that shows
 * nothing, makes it impossible without a word at the moment when it matters.
 */
#ifndef FS_TRIAL_H
#define FS_TRIAL_H

/* Starts a process that has a file open, finds it by that file and stops it, by the functions that
 * the guardian uses. Takes some milliseconds. NULL: it was stopped; otherwise what could not be
 * done, with its errno. */
const char *trial_stop(void);

#endif
