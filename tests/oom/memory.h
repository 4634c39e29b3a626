/* SPDX-License-Identifier: MIT
 *
 * memory.h - an allocator that can be told to fail.
 *
 * Allocations are counted from 1. The k-th fails, alone or as the first of a spell in which all
 * fail. Blocks that are not freed are counted, too: a run that ends with such blocks has a leak.
 */
#ifndef OOM_MEMORY_H
#define OOM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* fail_at 0: no allocation fails. `spell_us`: how long all fail, or with `patchy` about every
 * second one, by the clock `now_us`, which may be NULL; 0: only one fails. Allocations of less than
 * `least` bytes neither count nor fail. */
void memory_start(long fail_at, int64_t spell_us, bool patchy, const int64_t *now_us, size_t least);
long memory_count(void);
long memory_alive(void);
/* Prints to stderr where the first failure was. */
void memory_show_failure(void);
/* Between on and off, memory that libc allocates for itself counts, too (libc.c). False: this build
 * cannot count it. */
bool memory_libc(bool on);

/* For libc.c: whether this allocation has to fail. */
bool memory_refuses(size_t size);
void memory_note(int by);

void *oom_malloc(size_t size);
void *oom_calloc(size_t count, size_t size);
void *oom_realloc(void *memory, size_t size);
void oom_free(void *memory);
char *oom_strdup(const char *text);
int oom_asprintf(char **ret_text, const char *format, ...) __attribute__((format(printf, 2, 3)));
FILE *oom_open_memstream(char **ret_data, size_t *ret_len);

#endif
