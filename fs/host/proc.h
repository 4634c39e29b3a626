/* SPDX-License-Identifier: MIT
 *
 * proc.h - small texts of /proc and /sys.
 */
#ifndef FS_PROC_H
#define FS_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* How often so far something that is asked about processes could not be opened for want of
 * descriptors or memory. Where this rises, what is not found may be there. */
unsigned proc_scarce(void);
/* To be called with the result of such an open(2), negative for a failure; returns it. */
int proc_opened(int result);

/* The beginning of a text. False: it is empty, or cannot be read. */
bool proc_read(int directory, const char *file, char *ret_text, size_t size);
/* The same, of /proc/PID. */
bool proc_read_of(pid_t pid, const char *file, char *ret_text, size_t size);
/* The first line that begins with that, behind blanks or not, malloced. NULL: there is none. */
char *proc_read_line(const char *path, const char *start);

#endif
