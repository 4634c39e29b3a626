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
 * harm if they are fewer or more. `at_once`: not when they are used, but now: so it is seen whether
 * there are as many, and the next process finds them ready when this one has ended. */
void memory_expect(size_t bytes, bool at_once);
void memory_expect_no_more(void);
/* In the process before: one more part of a large heap is put in a huge page, which takes up to
 * some milliseconds. So the kernel has huge pages at hand for the next process. Otherwise it takes
 * others, which are slow when a virtual machine has not used them yet. `*at` is 0 at first. False:
 * there are no more parts, or the kernel cannot do it. */
bool memory_gather(uintptr_t *at);

/* How likely the kernel ends this process when it lacks memory: proc_pid_oom_score_adj(5). Only
 * root may make it less likely. If it is not known: "". */
#define MEMORY_SCORE_SIZE 16
void memory_read_score(char ret_score[MEMORY_SCORE_SIZE]);
void memory_set_score(const char *score);
/* More likely than others that had the same score. */
void memory_end_first(void);

#endif
