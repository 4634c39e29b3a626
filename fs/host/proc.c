/* SPDX-License-Identifier: MIT */
#include "host/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned scarce;

unsigned proc_scarce(void)
{
	return scarce;
}

int proc_opened(int result)
{
	scarce += result < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM);
	return result;
}

bool proc_read(int directory, const char *file, char *ret_text, size_t size)
{
	int fd = proc_opened(openat(directory, file, O_RDONLY | O_CLOEXEC));
	ssize_t n = fd < 0 ? -1 : read(fd, ret_text, size - 1);

	if (fd >= 0)
		close(fd);
	ret_text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

bool proc_read_of(pid_t pid, const char *file, char *ret_text, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	return proc_read(AT_FDCWD, path, ret_text, size);
}

char *proc_read_line(const char *path, const char *start)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	bool found = false;

	while (file && !found && getline(&line, &size, file) >= 0)
		found = strncmp(line + strspn(line, " \t"), start, strlen(start)) == 0;
	if (file)
		fclose(file);
	if (found)
		return line;
	free(line);
	return NULL;
}
