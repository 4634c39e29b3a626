/* SPDX-License-Identifier: MIT
 *
 * family.c - see family.h.
 */
#include "family.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

void family_identify(pid_t thread, struct person *ret_person)
{
	char text[1024], *line;

	*ret_person = (struct person){.command = "-"};
	if (thread <= 0 || !read_proc(thread, "status", text, sizeof(text)))
		return;
	line = strstr(text, "\nTgid:");
	if (!line)
		return;
	ret_person->pid = (pid_t)strtol(line + strlen("\nTgid:"), NULL, 10);
	if (read_proc(ret_person->pid, "comm", text, sizeof(text))) {
		snprintf(ret_person->command, sizeof(ret_person->command), "%.*s",
		         (int)strcspn(text, "\n"), text);
	}
}
