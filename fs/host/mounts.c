/* SPDX-License-Identifier: MIT */
#include "host/mounts.h"

#include <stdio.h>
#include <stdlib.h>

bool mounts_device(const char *list, int mount_id, char ret_device[MOUNTS_DEVICE_MAX])
{
	FILE *file = fopen(list, "re");
	char *line = NULL;
	size_t size = 0;
	bool found = false;
	int id;

	while (file && !found && getline(&line, &size, file) >= 0)
		found = sscanf(line, "%d %*s %31s", &id, ret_device) == 2 && id == mount_id;
	free(line);
	if (file)
		fclose(file);
	return found;
}
