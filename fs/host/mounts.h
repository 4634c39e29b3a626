/* SPDX-License-Identifier: MIT
 *
 * mounts.h - a list of mounts, as mountinfo in /proc/PID has it. It asks no filesystem.
 */
#ifndef FS_MOUNTS_H
#define FS_MOUNTS_H

#include <stdbool.h>

#define MOUNTS_DEVICE_MAX 32
#define MOUNTS_OWN "/proc/self/mountinfo"

/* The number of the mount that the descriptor's file is on; -1: it is not known. */
int mounts_id(int fd);

/* The device of the mount with that number, as "0:57". `list`: the path of a mountinfo. False: it
 * has no such mount, or cannot be read. */
bool mounts_device(const char *list, int mount_id, char ret_device[MOUNTS_DEVICE_MAX]);

#endif
