/* SPDX-License-Identifier: MIT
 *
 * ready.h - the daemon forks before anything is set up, and the command returns when
 * the mount serves, or has failed: with the true exit status.
 */
#ifndef FS_READY_H
#define FS_READY_H

#include <stdbool.h>

/* First of all: no file that is opened later may be taken for standard input or output. False:
 * /dev/null cannot be opened. */
bool ready_open_standard(void);
/* In the background: only the child returns from here. False: it is said why not. */
bool ready_begin(bool foreground);
/* In the background: leaves the session of the command, whose signals are not for this process. The
 * process that mounts does so after the mount: by its process group autofs knows the mount command,
 * and makes all others wait for it. */
void ready_leave_session(void);
/* The mount serves: let go of the terminal; false: not in the foreground. */
bool ready_detach(void);
/* The command returns 0, and systemd is told. Comes after ready_detach(). */
void ready_tell(void);
/* Another process tells the command, or has told it. */
void ready_by_other(void);
/* The mount does not serve, and will not. `status`: the command exits with it. */
void ready_fail(int status);
/* The line that `systemctl status` shows; whether there is a systemd that hears it. */
void ready_status(const char *line);
bool ready_tells(void);
/* systemd: the end has begun. */
void ready_stopping(void);

#endif
