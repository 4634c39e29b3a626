/* SPDX-License-Identifier: MIT
 *
 * helper.h - a child of the daemon that does what the loop must not wait for.
 */
#ifndef FS_HELPER_H
#define FS_HELPER_H

/* In the child, first: it ends with the daemon, no signal is blocked or ignored that it needs, and
 * it keeps no descriptor but `fd`, by which it answers, with /dev/null for the first three. A copy
 * of the mount's device, of a connection, or of the pipe of whoever mounts would keep it open. */
void helper_begin(int fd);

#endif
