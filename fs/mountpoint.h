/* SPDX-License-Identifier: MIT
 *
 * mountpoint.h - the directory to mount on: is it one, is it free, is it the dead
 * mount of a daemon that was killed?
 */
#ifndef FS_MOUNTPOINT_H
#define FS_MOUNTPOINT_H

#include <stdbool.h>
#include <sys/types.h>

#define MOUNTPOINT_TYPE "fuse.zklockfs"

/* Its absolute path, malloced. A dead zklockfs there is taken off. NULL: not to
 * be mounted on, and why: *ret_why. */
char *mountpoint_prepare(const char *path, const char **ret_why);
/* A zklockfs is mounted there, alive or dead. */
bool mountpoint_is_zklockfs(const char *path);
/* Its number and its device, such as "0:57", from mountinfo(5). */
bool mountpoint_identify(const char *path, int *ret_mount_id, char ret_device[32]);
/* No filesystem has that device any more: of the one that had it, no file is open. False: it is
 * not known. If a mount with that device is there, it is asked: never in the loop. */
bool mountpoint_is_gone(const char *device);
/* Takes a mount off the tree, in a child, since it may wait for this very
 * filesystem. Files that are open there stay open. The child, or -errno. */
pid_t mountpoint_detach(const char *path);

#endif
