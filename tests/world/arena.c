/* SPDX-License-Identifier: MIT
 *
 * arena.c - chunks of 64 KiB, given back all at once.
 */
#include "arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (64 * 1024)

struct arena_chunk {
	struct arena_chunk *next;
	size_t used, room;
	_Alignas(max_align_t) char bytes[];
};

void *arena_zalloc(struct arena *arena, size_t size)
{
	struct arena_chunk *chunk = arena->chunks;
	void *bytes;

	size = (size + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
	if (!chunk || chunk->room - chunk->used < size) {
		size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;

		chunk = malloc(sizeof(*chunk) + room);
		if (!chunk)
			abort();
		chunk->used = 0;
		chunk->room = room;
		chunk->next = arena->chunks;
		arena->chunks = chunk;
	}
	bytes = chunk->bytes + chunk->used;
	chunk->used += size;
	memset(bytes, 0, size);
	return bytes;
}

void *arena_copy(struct arena *arena, const void *bytes, size_t size)
{
	void *copy = arena_zalloc(arena, size + 1);

	if (size)
		memcpy(copy, bytes, size);
	return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
	return arena_copy(arena, text, strlen(text));
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
	char text[2048];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (len < 0 || (size_t)len >= sizeof(text))
		abort();
	return arena_copy(arena, text, (size_t)len);
}

void arena_finish(struct arena *arena)
{
	struct arena_chunk *chunk = arena->chunks;

	while (chunk) {
		struct arena_chunk *next = chunk->next;

		free(chunk);
		chunk = next;
	}
	arena->chunks = NULL;
}
