/* SPDX-License-Identifier: MIT
 *
 * memory.h - what the kernel is told about this process's memory.
 */
#ifndef FS_MEMORY_H
#define FS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* First of all: how malloc(3) gets memory. */
void memory_begin(void);
/* Until memory_expect_no_more(), about so many bytes will be allocated, most of them in small
 * pieces, and users wait for that: so they come in huge pages, if the kernel has any. It does no
 * harm if they are fewer or more. */
void memory_expect(size_t bytes);
void memory_expect_no_more(void);
/* In the process before: memory that it gives back when it ends, so that the kernel has as much at
 * hand for the next one. Other memory may be slow to get, as in a virtual machine that has not used
 * it yet. All 0: none. */
struct memory_spare {
	unsigned char *bytes;
	size_t len, filled;
};
/* Gets one more huge page of so many bytes, which may take some milliseconds. False: that is
 * all. */
bool memory_spare_more(struct memory_spare *spare, size_t bytes);
void memory_spare_end(struct memory_spare *spare);

/* Zeroed, and shared with the processes that are forked later. NULL: no memory. */
void *memory_share(size_t size);

/* How likely the kernel ends this process when it lacks memory: proc_pid_oom_score_adj(5). Only
 * root may make it less likely. If it is not known: "". */
#define MEMORY_SCORE_SIZE 16
void memory_read_score(char ret_score[MEMORY_SCORE_SIZE]);
void memory_set_score(const char *score);
/* More likely than others that had the same score. */
void memory_end_first(void);

#endif
