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
/* Called now and then with the number of things that are in use. When most of many are free again,
 * and once more when the last of them is, the kernel gets their memory back: free(3) gives back
 * only what lies at the end of the heap.
 * `most`: for the next call; 0 at first. */
void memory_tend(unsigned used, unsigned *most);

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
