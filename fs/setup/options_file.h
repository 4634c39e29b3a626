/* SPDX-License-Identifier: MIT
 *
 * options_file.h - .zklockfs/options of a mount.
 */
#ifndef FS_OPTIONS_FILE_H
#define FS_OPTIONS_FILE_H

#include <stdbool.h>

/* What the locks rest on, behind the lines of options_text(): the timeout of the session. */
#define OPTIONS_FILE_SESSION "session_timeout_in_force"
/* How it went, behind that: */
#define OPTIONS_FILE_RELOADS "reloads"     /* so many have taken over */
#define OPTIONS_FILE_ADOPTIONS "adoptions" /* so many after a crash */
#define OPTIONS_FILE_REFUSED "refused"     /* so many could not, since the last takeover, */
#define OPTIONS_FILE_WHY "why"             /*   and why the last could not */

/* The text. Malloced; NULL: *ret_why, and errno, ENOENT if the program of the mount is too old.
 * `waits`: for a mount that reloads. If it does not answer for long, this process says so and ends,
 * here or later. */
char *options_file_read(const char *mountpoint, bool waits, const char **ret_why);
/* A descriptor; -1: errno. */
int options_file_open(const char *mountpoint, int flags);

#endif
