/* SPDX-License-Identifier: MIT
 *
 * arena.h - memory that is freed as a whole at the end of a run. The world's messages are shared by
 * several queues, so it would be hard to say when to free one; and a run is short.
 */
#ifndef WORLD_ARENA_H
#define WORLD_ARENA_H

#include <stddef.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks;
};

void *arena_zalloc(struct arena *arena, size_t size);
void *arena_copy(struct arena *arena, const void *bytes, size_t size);
char *arena_strdup(struct arena *arena, const char *text);
char *arena_printf(struct arena *arena, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void arena_finish(struct arena *arena);

#endif
