/* SPDX-License-Identifier: MIT */
#include "memory.h"

#include <errno.h>
#include <execinfo.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAMES_MAX 24

static struct {
	long fail_at, count, alive;
	int64_t spell_us, spell_end_us;
	const int64_t *now_us;
	size_t least;
	bool patchy, failed, inside;
	void *frames[FRAMES_MAX];
	int frame_count;
} memory;

void memory_start(long fail_at, int64_t spell_us, bool patchy, const int64_t *now_us, size_t least)
{
	void *frame;

	backtrace(&frame, 1); /* its first call allocates, which is not to be counted */
	memset(&memory, 0, sizeof(memory));
	memory.fail_at = fail_at;
	memory.spell_us = spell_us;
	memory.patchy = patchy;
	memory.spell_end_us = INT64_MIN;
	memory.now_us = now_us;
	memory.least = least;
}

long memory_count(void)
{
	return memory.count;
}

long memory_alive(void)
{
	return memory.alive;
}

void memory_show_failure(void)
{
	if (memory.failed)
		backtrace_symbols_fd(memory.frames, memory.frame_count, STDERR_FILENO);
}

/* About half of the allocations succeed; other ones in each run. */
static bool kept(long fail_at, long count)
{
	uint64_t z = (uint64_t)fail_at * 0x9e3779b97f4a7c15u + (uint64_t)count;

	z = (z ^ (z >> 31)) * 0xbf58476d1ce4e5b9u;
	return (z ^ (z >> 29)) & 1;
}

bool memory_refuses(size_t size)
{
	int64_t now_us = memory.now_us ? *memory.now_us : 0;

	if (size < memory.least || memory.inside)
		return false;
	memory.count++;
	if (memory.count == memory.fail_at) {
		memory.failed = true;
		memory.spell_end_us = now_us + memory.spell_us;
		memory.inside = true;
		memory.frame_count = backtrace(memory.frames, FRAMES_MAX);
		memory.inside = false;
	} else if (now_us >= memory.spell_end_us ||
	           (memory.patchy && kept(memory.fail_at, memory.count))) {
		return false;
	}
	errno = ENOMEM;
	return true;
}

void memory_note(int by)
{
	memory.alive += by;
}

void *oom_malloc(size_t size)
{
	void *block = memory_refuses(size) ? NULL : malloc(size);

	if (!block)
		return NULL;
	memory_note(+1);
	return memset(block, 0xa5, size);
}

void *oom_calloc(size_t count, size_t size)
{
	void *block = memory_refuses(count * size) ? NULL : calloc(count, size);

	if (block)
		memory_note(+1);
	return block;
}

void *oom_realloc(void *old, size_t size)
{
	void *block = memory_refuses(size) ? NULL : realloc(old, size);

	if (block && !old)
		memory_note(+1);
	return block;
}

void oom_free(void *block)
{
	if (block)
		memory_note(-1);
	free(block);
}

char *oom_strdup(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = oom_malloc(size);

	return copy ? memcpy(copy, text, size) : NULL;
}

int oom_asprintf(char **ret_text, const char *format, ...)
{
	va_list args;
	char *text;
	int len;

	va_start(args, format);
	len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	text = oom_malloc((size_t)len + 1);
	if (!text) {
		*ret_text = (char *)(uintptr_t)0xdead; /* libc leaves it undefined */
		return -1;
	}
	va_start(args, format);
	vsnprintf(text, (size_t)len + 1, format, args);
	va_end(args);
	*ret_text = text;
	return len;
}

FILE *oom_open_memstream(char **ret_data, size_t *ret_len)
{
	/* Where libc's own allocations are counted, that of the FILE is one of them. */
	bool seen = memory_libc(true);

	return !seen && memory_refuses(sizeof(FILE)) ? NULL : open_memstream(ret_data, ret_len);
}
