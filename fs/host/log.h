/* SPDX-License-Identifier: MIT
 *
 * log.h - the only output for log lines: stderr while somebody reads it there, syslog afterwards.
 * Each line names the mount and has a priority, also on a stderr that is the journal's
 * (sd-daemon(3)). Never blocks once the mount serves, not on a full pipe, a stopped terminal, or a
 * file on a disk or server that is slow: a line that cannot be written now is counted and dropped.
 * At most LOG_BURST errors in LOG_WINDOW_S, as many warnings, and as many other lines; the rest is
 * counted too. Each user has as much for the lines about that user, so that nobody's noise hides
 * another's loss: root, and the LOG_USERS - 1 others of whom there was something to say last.
 */
#ifndef FS_LOG_H
#define FS_LOG_H

#include "lockcore.h"
#include "pure/codec.h"

#include <stdbool.h>
#include <sys/types.h>

#define LOG_BURST 50
#define LOG_WINDOW_S 10
#define LOG_USERS 16
#define LOG_NOBODY ((uid_t)-1)

/* Keeps errno. */
#define log_line(level, ...) log_line_of(LOG_NOBODY, level, __VA_ARGS__)
/* "cannot start: CALL: WHY", by errno. False. */
bool log_cannot_start(const char *call);
/* A line that this user can cause, or that is about the user's locks. */
void log_line_of(uid_t uid, enum lc_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Whether a line about the user of that level has room now; if not, it is counted as not written.
 * For lines that cost time to make. */
bool log_has_room(uid_t uid, enum lc_level level);
/* A line that the administrator has asked for: no limit holds it back. */
void log_wanted(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_level(enum lc_level most); /* LC_NOTICE at first */
/* --check calls this: from now on each line is a verdict on standard output: an error is "wrong", a
 * warning "risk", a notice "ok". No limit holds one back. */
void log_verdicts(void);
/* One was wrong, here or in a child that has said so by its status; or could not be written. */
bool log_found_wrong(void);
void log_set_wrong(void);
/* The mount point, which each line names. It stays the caller's. */
void log_about(const char *mountpoint);
/* From stderr to the system's log; or to both, while somebody waits for the start. */
void log_to_syslog(bool and_stderr);
/* In the foreground: a child writes to stderr, and may wait there. */
void log_to_child(void);
/* Makes the socket of log_to_child() early: processes that are forked in between can write by that
 * child, too. */
void log_prepare_child(void);
/* The log's child has ended, and there is another one. False: `pid` is not that child. */
bool log_reap(pid_t pid);
/* In the guardian, and in all that it forks, which share the limits: lines go by the log's child,
 * or to syslog, also when the daemon is dead. */
void log_in_guardian(void);
/* In every turn: lines that could not be written are told when their time is over. */
void log_tend(void);
/* The log's child has a second to write what is left. */
void log_finish(void);

/* Counts the lines that the log's child could not write, too (counts.h); the guardian's are not. */
void log_count(void);

/* Where lines go. */
void log_save_load(struct codec *codec);

#endif
