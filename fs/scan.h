/* SPDX-License-Identifier: MIT
 *
 * scan.h - who has which file open, looked up in /proc. For those who may take their
 * time: never in the loop.
 */
#ifndef FS_SCAN_H
#define FS_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct open_file {
	pid_t pid;
	uint64_t ino;
	int mount_id;         /* of mountinfo(5), in the process's own namespace */
	const char *name;     /* the last part of its path */
};

/* Every descriptor of every process we may look into whose file is called as wanted.
 * Nothing is looked up below a mount. */
void scan_open_files(bool (*wanted)(void *ctx, const char *name),
                       void (*found)(void *ctx, const struct open_file *file), void *ctx);
/* On the mount of that number; in another mount namespace it has another one, but the
 * same device. */
bool scan_is_on_mount(const struct open_file *file, int mount_id, const char *device);
/* Whether its descriptors can be seen at all. */
bool scan_can_look_into(pid_t pid);

#endif
