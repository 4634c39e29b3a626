/* SPDX-License-Identifier: MIT
 *
 * door.c - see door.h.
 */
#include "door.h"

#include "duration.h"
#include "lockcore.h"

#include <errno.h>
#include <string.h>

const char *const door_names[] = {"lock", "try", NULL};

int door_parse(const char *name, struct door *ret_door)
{
	if (strcmp(name, "lock") == 0) {
		ret_door->wait_us = LC_FOREVER;
		return 0;
	}
	if (strcmp(name, "try") == 0) {
		ret_door->wait_us = 0;
		return 0;
	}
	if (strncmp(name, "lock@", 5) == 0 && strlen(name) > DOOR_NAME_MAX)
		return -EINVAL;
	if (strncmp(name, "lock@", 5) == 0)
		return duration_parse(name + 5, &ret_door->wait_us) ? 0 : -EINVAL;
	if (strncmp(name, "try@", 4) == 0)
		return -EINVAL;
	return -ENOENT;
}
