/* SPDX-License-Identifier: MIT
 *
 * libc.c - malloc itself, so that allocations of libc inside a stream can fail. Not with a
 * sanitizer, which has its own malloc.
 */
#include "memory.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || \
	__has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define SANITIZED
#endif

#ifdef SANITIZED

bool memory_libc(bool on)
{
	(void)on;
	return false;
}

#else

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void __libc_free(void *memory);

void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *memory, size_t size);
void free(void *memory);

static bool counting;

bool memory_libc(bool on)
{
	counting = on;
	return true;
}

void *malloc(size_t size)
{
	void *block = counting && memory_refuses(size) ? NULL : __libc_malloc(size);

	if (counting && block)
		memory_note(+1);
	return block;
}

void *calloc(size_t count, size_t size)
{
	void *block = counting && memory_refuses(count * size) ? NULL : __libc_calloc(count, size);

	if (counting && block)
		memory_note(+1);
	return block;
}

void *realloc(void *old, size_t size)
{
	void *block = counting && memory_refuses(size) ? NULL : __libc_realloc(old, size);

	if (counting && block && !old)
		memory_note(+1);
	return block;
}

void free(void *block)
{
	if (counting && block)
		memory_note(-1);
	__libc_free(block);
}

#endif
