/* SPDX-License-Identifier: MIT
 *
 * memory.c - see memory.h.
 */
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Larger pieces are mappings of their own, unless they are expected, and go back to the kernel when
 * they are freed. The answers with thousands of names need such buffers. If the threshold were not
 * fixed, the first one that is freed would raise it. */
#define LARGE_BYTES (128 * 1024)
#define HUGE_PAGE ((size_t)2 * 1024 * 1024)
/* Less is allocated in a few milliseconds. */
#define EXPECTED_MIN (4 * HUGE_PAGE)
#define EXPECTED_MAX (256 * HUGE_PAGE)
#define SCORE "/proc/self/oom_score_adj"
/* As much as a tenth of all memory. */
#define SCORE_STEP 100
#define SCORE_MAX 1000
/* Since Linux 6.1. */
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
/* malloc(3)'s own values. */
#define MAPPINGS_MAX 65536
#define TRIM_BYTES (128 * 1024)

static uintptr_t heap_begin;

static uintptr_t heap_end(void)
{
	return (uintptr_t)sbrk(0);
}

static uintptr_t round_up(uintptr_t address)
{
	return (address + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

void memory_begin(void)
{
	heap_begin = round_up(heap_end());
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
}

/* When the piece is freed, it is the end of the heap, which malloc(3) takes from. */
static void *get_end_of_heap(size_t bytes)
{
	void *piece;

	(void)mallopt(M_TRIM_THRESHOLD, (int)(2 * bytes));
	(void)mallopt(M_MMAP_MAX, 0);
	piece = malloc(bytes);
	(void)mallopt(M_MMAP_MAX, MAPPINGS_MAX);
	return piece;
}

void memory_expect(size_t bytes, bool at_once)
{
	uintptr_t begin, end;
	void *piece;

	if (bytes < EXPECTED_MIN)
		return;
	piece = get_end_of_heap(bytes < EXPECTED_MAX ? bytes : EXPECTED_MAX);
	if (!piece)
		return;
	begin = round_up((uintptr_t)piece);
	end = ((uintptr_t)piece + malloc_usable_size(piece)) / HUGE_PAGE * HUGE_PAGE;
	(void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
	if (at_once)
		(void)madvise((void *)begin, end - begin, MADV_POPULATE_WRITE);
	free(piece);
}

void memory_expect_no_more(void)
{
	(void)mallopt(M_TRIM_THRESHOLD, TRIM_BYTES);
}

bool memory_gather(uintptr_t *at)
{
	uintptr_t end = heap_end();

	if (*at == 0 && end > heap_begin && end - heap_begin >= EXPECTED_MIN)
		*at = heap_begin;
	if (*at == 0 || end < *at || end - *at < HUGE_PAGE)
		return false;
	if (madvise((void *)*at, HUGE_PAGE, MADV_COLLAPSE) < 0 && errno == EINVAL)
		return false;
	*at += HUGE_PAGE;
	return true;
}

/* ---- who ends first ---- */

void memory_read_score(char ret_score[MEMORY_SCORE_SIZE])
{
	int fd = open(SCORE, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, ret_score, MEMORY_SCORE_SIZE - 1);

	ret_score[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
}

void memory_set_score(const char *score)
{
	int fd = open(SCORE, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!write(fd, score, strlen(score));
	close(fd);
}

void memory_end_first(void)
{
	char text[MEMORY_SCORE_SIZE];
	int score;

	memory_read_score(text);
	score = (int)strtol(text, NULL, 10) + SCORE_STEP;
	snprintf(text, sizeof(text), "%d", score < SCORE_MAX ? score : SCORE_MAX);
	memory_set_score(text);
}
