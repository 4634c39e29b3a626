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

/* From where a look at a process goes on; zeroed: from the beginning. */
struct scan_place {
	long task, file; /* of telldir(3) */
	bool expensive;  /* the files are: scan.c */
	bool more;       /* told: the time was over before all was seen */
};

#define SCAN_ALL INT64_MAX

/* The descriptors of that process, and of its other threads if its first thread shows none, for
 * about so much processor time (SCAN_ALL: all of them), and one of them at least. Files of other
 * devices than this one ("0:57") may be left out: where descriptors are expensive to read, that is
 * looked at first. Returns how many of the process's own descriptors this call came to, without
 * those of threads; -1: that cannot be seen. */
int scan_process(pid_t pid, const char *device, struct scan_place *place, int64_t cpu_us,
                 scan_found_fn *found, void *ctx);
/* The same for each of its threads: a thread may have descriptors of its own. */
void scan_threads(pid_t pid, const char *device, struct scan_place *place, int64_t cpu_us,
                  scan_found_fn *found, void *ctx);
/* The same for every process that can be looked into. */
void scan_all(const char *device, scan_found_fn *found, void *ctx);

/* The file is on that mount, or on another mount of the same filesystem: its device. */
bool scan_is_on_mount(const struct seen_file *file, int mount_id, const char *device);

/* The processes that there are now, in the order of their numbers: at most so many. */
size_t scan_pids(pid_t *ret_pids, size_t max);

#endif
