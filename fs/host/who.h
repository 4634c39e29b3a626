/* SPDX-License-Identifier: MIT
 *
 * who.h - what the kernel says of a process at once: neither does it wait for anything, nor
 * does it cost more for one than for another, where the kernel can be asked by a pidfd
 * (6.13). Before that it is /proc/PID/status, where the kernel writes out all groups of the
 * process: of one with 65536 of them, as a user can have in a container of his, that takes
 * some 20 ms.
 */
#ifndef FS_WHO_H
#define FS_WHO_H

#include <stdbool.h>
#include <sys/types.h>

struct who {
	pid_t process; /* of the thread that was asked about */
	pid_t parent;  /* 0: not visible here */
	uid_t real, saved;
};

/* A pidfd, which polls readable when the thread is gone. -1: it is gone, or the kernel has none for
 * a thread that is not the first of its process (before 6.9). */
int who_watch(pid_t thread);
/* The process of the thread, which always costs little; 0: it is not there. */
pid_t who_process(pid_t thread);
/* False: it is not there. */
bool who_is(pid_t thread, struct who *ret_who);
/* That of a pidfd. False: -1, it is gone, or the kernel cannot be asked. */
bool who_has(int pidfd, struct who *ret_who);

/* The beginning of a small text of /proc or /sys. False: it is empty, or cannot be read. */
bool who_read(int directory, const char *file, char *ret_text, size_t size);
/* The same, of /proc/PID. */
bool who_read_of(pid_t pid, const char *file, char *ret_text, size_t size);
/* The first line that begins with that, behind blanks or not, malloced. NULL: there is none. */
char *who_read_line(const char *path, const char *start);

#endif
