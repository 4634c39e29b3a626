/* SPDX-License-Identifier: MIT */
#include "host/memory.h"

#include "host/proc.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Larger pieces are mappings of their own, and go back to the kernel when they are freed. The
 * answers with thousands of names need such buffers. If the threshold were not fixed, the first one
 * that is freed would raise it. */
#define LARGE_BYTES (128 * 1024)
#define SCORE "/proc/self/oom_score_adj"
/* The score is in thousandths of all memory: this is a tenth. */
#define SCORE_STEP 100
#define SCORE_MAX 1000
/* The memory of so many waiters is some two MiB. Fewer are not worth a call. */
#define MANY 1000

void memory_begin(void)
{
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
}

void memory_tend(unsigned used, unsigned *most)
{
	if (used >= MANY && used > *most)
		*most = used;
	if (*most == 0 || used > *most / 8)
		return;
	/* The rest holds memory of those that are gone: what it shares with them goes later, when
	 * most of the rest are free, and at the latest with the last one. */
	*most = used;
	(void)malloc_trim(0);
}

void *memory_share(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* ---- who ends first ---- */

void memory_read_score(char ret_score[MEMORY_SCORE_SIZE])
{
	(void)proc_read(AT_FDCWD, SCORE, ret_score, MEMORY_SCORE_SIZE);
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
