/* SPDX-License-Identifier: MIT */
#include "host/mounts.h"

#include "host/proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOUNT_ID "\nmnt_id:"

/* By fdinfo, since a filter may refuse statx(2). */
int mounts_id(int fd)
{
	char path[40], text[512];
	const char *line;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	line = proc_read(AT_FDCWD, path, text, sizeof(text)) ? strstr(text, MOUNT_ID) : NULL;
	return line ? (int)strtol(line + strlen(MOUNT_ID), NULL, 10) : -1;
}

bool mounts_device(const char *list, int mount_id, char ret_device[MOUNTS_DEVICE_MAX])
{
	FILE *file = fopen(list, "re");
	char *line = NULL;
	size_t size = 0;
	bool found = false;
	int id;

	(void)proc_opened(file ? 0 : -1);
	while (file && !found && getline(&line, &size, file) >= 0)
		found = sscanf(line, "%d %*s %31s", &id, ret_device) == 2 && id == mount_id;
	free(line);
	if (file)
		fclose(file);
	return found;
}
