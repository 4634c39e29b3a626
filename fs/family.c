/* SPDX-License-Identifier: MIT
 *
 * family.c - see family.h.
 */
#include "family.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Further up nobody is looked for: /proc is read in the loop. */
#define GENERATIONS_MAX 64

static bool read_proc(pid_t pid, const char *file, char *ret_text, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, ret_text, size - 1);
	close(fd);
	if (n <= 0)
		return false;
	ret_text[n] = '\0';
	return true;
}

bool family_ancestry(pid_t pid, struct ancestry *ret_ancestry)
{
	char text[1024], file[32], *rest;
	unsigned long long start;
	char state;
	int parent;

	/* Of its first thread: for the whole process the kernel adds up what every thread of it
	 * has used, which takes milliseconds where there are thousands. */
	snprintf(file, sizeof(file), "task/%d/stat", (int)pid);
	if (pid <= 0 || !read_proc(pid, file, text, sizeof(text)))
		return false;
	/* The name in brackets may itself hold brackets and blanks. */
	rest = strrchr(text, ')');
	if (!rest ||
	    sscanf(rest + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
	           "%*d %*d %*d %llu", &state, &parent, &start) != 3)
		return false;
	*ret_ancestry = (struct ancestry){
		.parent = parent, .start = start, .ended = state == 'Z' || state == 'X',
	};
	return true;
}

/* A loop of takes asks for the same thread thousands of times a second, and reading who it is
 * costs more than all else that is done here. Remembered so shortly that no number can
 * come round again: all others would have to be given out before. */
#define REMEMBERED_NS (10 * 1000000)
#define REMEMBERED_COUNT 256

static struct remembered {
	pid_t thread;
	int64_t read_ns;
	struct person person;
} remembered[REMEMBERED_COUNT];

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static void read_person(pid_t thread, struct person *ret_person)
{
	struct ancestry ancestry;
	char text[1024], *line;

	*ret_person = (struct person){.command = "-"};
	line = read_proc(thread, "status", text, sizeof(text)) ? strstr(text, "\nTgid:") : NULL;
	if (!line)
		return;
	ret_person->pid = (pid_t)strtol(line + strlen("\nTgid:"), NULL, 10);
	if (family_ancestry(ret_person->pid, &ancestry))
		ret_person->start = ancestry.start;
	if (read_proc(ret_person->pid, "comm", text, sizeof(text)))
		snprintf(ret_person->command, sizeof(ret_person->command), "%.*s",
		         (int)strlen(text) - 1, text);   /* without the newline that /proc adds */
}

void family_identify(pid_t thread, struct person *ret_person)
{
	struct remembered *entry = &remembered[(unsigned)thread % REMEMBERED_COUNT];
	int64_t now = now_ns();

	if (thread <= 0) {
		*ret_person = (struct person){.command = "-"};
		return;
	}
	if (entry->thread != thread || now - entry->read_ns >= REMEMBERED_NS) {
		*entry = (struct remembered){.thread = thread, .read_ns = now};
		read_person(thread, &entry->person);
	}
	*ret_person = entry->person;
}

struct lineage *family_lineage(const struct person *person)
{
	struct process line[GENERATIONS_MAX];
	struct lineage *lineage;
	struct ancestry ancestry;
	size_t count = 0;

	for (pid_t pid = person->pid; count < GENERATIONS_MAX && family_ancestry(pid, &ancestry);
	     pid = ancestry.parent) {
		/* A number that was given to another one meanwhile: no child is older than its
		 * parent. */
		if (count == 0 ? ancestry.start != person->start
		               : pid == 1 || ancestry.start > line[count - 1].start)
			break;
		line[count++] = (struct process){.pid = pid, .start = ancestry.start};
	}
	lineage = count > 0 ? malloc(sizeof(*lineage) + count * sizeof(line[0])) : NULL;
	if (!lineage)
		return NULL;
	lineage->count = count;
	memcpy(lineage->of, line, count * sizeof(line[0]));
	return lineage;
}

int lineage_find(const struct lineage *lineage, pid_t pid, uint64_t start)
{
	for (size_t i = 0; i < lineage->count; i++)
		if (lineage->of[i].pid == pid && lineage->of[i].start == start)
			return (int)i;
	return -1;
}
