/* SPDX-License-Identifier: MIT
 *
 * scan.h - who has which file open, looked up in /proc. Never in the loop: if a process is in exec,
 * or has many descriptors, all of this may take long. No filesystem but /proc gets a request.
 */
#ifndef FS_SCAN_H
#define FS_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* One descriptor of a process. */
struct seen_file {
	uint64_t ino;
	int mount_id; /* of all mounts, in whatever namespace: no two have the same */
	int dir;      /* /proc/PID/fdinfo, and its number there */
	int fd;
};

typedef bool scan_found_fn(void *ctx, const struct seen_file *file); /* true: go on */

/* The descriptors of that process. Files of other devices than this one ("0:57") may be left
 * out: where descriptors are expensive to read, that is looked at first. Returns how many there
 * are, as far as was looked; -1: that cannot be seen. */
int scan_process(pid_t pid, const char *device, scan_found_fn *found, void *ctx);
/* The same for each of its threads: a thread may have descriptors of its own, and where the
 * first thread has ended only the others show any. */
void scan_threads(pid_t pid, const char *device, scan_found_fn *found, void *ctx);
/* The same for every process that can be looked into. */
void scan_all(const char *device, scan_found_fn *found, void *ctx);

/* The file is on that mount, or on another mount of the same filesystem: its device. */
bool scan_is_on_mount(const struct seen_file *file, int mount_id, const char *device);

/* The processes that there are now, in the order of their numbers: at most so many. */
size_t scan_pids(pid_t *ret_pids, size_t max);

#endif
