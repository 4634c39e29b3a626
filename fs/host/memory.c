/* SPDX-License-Identifier: MIT */
#include "host/memory.h"

#include "host/who.h"

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
/* A process that holds locks does not put itself at risk for more. */
#define SPARE_MAX (32 * HUGE_PAGE)
#define SCORE "/proc/self/oom_score_adj"
/* As much as a tenth of all memory. */
#define SCORE_STEP 100
#define SCORE_MAX 1000
/* malloc(3)'s own values. */
#define MAPPINGS_MAX 65536
#define TRIM_BYTES (128 * 1024)

static uintptr_t round_up(uintptr_t address)
{
	return (address + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

void memory_begin(void)
{
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

void memory_expect(size_t bytes)
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
	free(piece);
}

void memory_expect_no_more(void)
{
	(void)mallopt(M_TRIM_THRESHOLD, TRIM_BYTES);
}

bool memory_spare_more(struct memory_spare *spare, size_t bytes)
{
	size_t len = bytes < SPARE_MAX ? round_up(bytes) : SPARE_MAX;
	void *memory;

	if (!spare->bytes && bytes >= EXPECTED_MIN) {
		memory =
			mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			return false;
		*spare = (struct memory_spare){.bytes = memory, .len = len};
		(void)madvise(memory, len, MADV_HUGEPAGE);
		(void)madvise(memory, len, MADV_DONTFORK);
	}
	if (spare->filled >= spare->len)
		return false;
	if (madvise(spare->bytes + spare->filled, HUGE_PAGE, MADV_POPULATE_WRITE) < 0)
		return false;
	spare->filled += HUGE_PAGE;
	return spare->filled < spare->len;
}

void memory_spare_end(struct memory_spare *spare)
{
	if (spare->bytes)
		munmap(spare->bytes, spare->len);
	*spare = (struct memory_spare){0};
}

void *memory_share(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* ---- who ends first ---- */

void memory_read_score(char ret_score[MEMORY_SCORE_SIZE])
{
	(void)who_read(AT_FDCWD, SCORE, ret_score, MEMORY_SCORE_SIZE);
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
