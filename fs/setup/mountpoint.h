/* SPDX-License-Identifier: MIT
 *
 * mountpoint.h - the directory to mount on: is it one, is it free, is it the dead
 * mount of a daemon that was killed?
 */
#ifndef FS_MOUNTPOINT_H
#define FS_MOUNTPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define MOUNTPOINT_TYPE "fuse.zklockfs"

/* How long what is mounted there may take to answer. */
#define MOUNTPOINT_ANSWER_MS 10000

/* Calls look() in a child, since what is mounted there may not answer. What it returns, 0 to 255;
 * -ETIMEDOUT: nothing within MOUNTPOINT_ANSWER_MS; or another -errno. */
int mountpoint_ask(int (*look)(void *ctx), void *ctx);
/* Why not, for people: an -errno of it. */
const char *mountpoint_unasked(int error);
/* Why what is mounted at the path cannot be asked; NULL: it answers, or nothing is mounted. */
const char *mountpoint_silence(const char *path);
/* Why the kernel would abort a new mount while a process waits for a lock, and what to do (Linux
 * 6.15 and later, sysctls); NULL: the kernel would not. */
const char *mountpoint_aborted(bool is_mounted);
/* Why nothing may be mounted at this absolute path; NULL: it may. May wait: mountpoint_ask(). */
const char *mountpoint_refusal(const char *path);
/* Why realpath(3) has no path for what was given: `error` is its errno. */
const char *mountpoint_unresolved(const char *path, int error);
/* Its absolute path, malloced. A dead zklockfs there is taken off. NULL: not to
 * be mounted on, and why: *ret_why. */
char *mountpoint_prepare(const char *path, const char **ret_why);
/* Before mount(2), which would stack a second mount on one that has come meanwhile: waits while
 * another process has that lock, but not for long, since whoever may read the directory can lock
 * it. A descriptor, which the caller closes after the mount; or -1. */
int mountpoint_lock(const char *path);
/* A zklockfs is mounted there, alive or dead. */
bool mountpoint_is_zklockfs(const char *path);
/* The number and the device ("0:57") of the zklockfs that is topmost at the path, from
 * mountinfo(5); and its source, as it was mounted, malloced, unless `ret_source` is NULL. False:
 * none is there. */
bool mountpoint_identify(const char *path, int *ret_mount_id, char ret_device[32],
                         char **ret_source);
/* The source that the kernel has of the zklockfs there, as it was mounted. Malloced; NULL: there is
 * none. */
char *mountpoint_source(const char *path);
/* No filesystem has that device any more: of the one that had it, no file is open. False: it is
 * not known. If a mount with that device is there, it is asked: never in the loop. */
bool mountpoint_is_gone(const char *device);
/* A mount with that device is somewhere in the tree. */
bool mountpoint_lists(const char *device);
/* Says which other filesystem is mounted below the path, and by whom: the last, and how many more;
 * "" for none. `device`: of the mount that is there. The text is for people, in words of
 * mountinfo(5), which have neither blanks nor line ends. */
void mountpoint_covered(const char *path, const char *device, char *text, size_t size);
/* A dead zklockfs is there, and still is after the limit: an unmount by force ends the connection
 * first. May wait: never in the loop. */
bool mountpoint_stays_dead(const char *path, int limit_ms);

enum mountpoint_detached {
	DETACH_DONE, /* or it was not there any more */
	DETACH_FAILED,
	DETACH_COVERED, /* something else is mounted over it */
};

/* Takes the mount with that device off the tree, and no other one that has been mounted at its path
 * since; NULL: a zklockfs that is dead. In a child, since it may wait for this very filesystem.
 * Files that are open there stay open. The child, which ends with a mountpoint_detached; or
 * -errno. */
pid_t mountpoint_detach(const char *path, const char *device);
/* Waits for the end. */
void mountpoint_detach_now(const char *path, const char *device);

#endif
