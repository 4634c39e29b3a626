/* SPDX-License-Identifier: MIT
 *
 * door.c - see door.h.
 */
#include "door.h"

#include "duration.h"

#include <errno.h>
#include <string.h>

const char *const door_names[] = {"lock", "shared", "try", "reentrant", "flock", NULL};

static const struct {
	const char *name;
	bool timed; /* name@30s is another door */
	struct door door;
} doors[] = {
	{"lock", true, {.mode = LC_EXCLUSIVE, .wait_us = LC_FOREVER}},
	{"shared", true, {.mode = LC_SHARED, .wait_us = LC_FOREVER}},
	{"try", false, {.mode = LC_EXCLUSIVE, .wait_us = 0}},
	{"reentrant", true, {.mode = LC_EXCLUSIVE, .wait_us = LC_FOREVER, .joins = true}},
	{"flock", false, {.advisory = true}},
};

int door_parse(const char *name, struct door *ret_door)
{
	size_t len = strcspn(name, "@");

	for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++) {
		if (strncmp(name, doors[i].name, len) != 0 || doors[i].name[len] != '\0')
			continue;
		*ret_door = doors[i].door;
		if (name[len] == '\0')
			return 0;
		if (!doors[i].timed || strlen(name) > DOOR_NAME_MAX)
			return -EINVAL;
		return duration_parse(name + len + 1, &ret_door->wait_us) ? 0 : -EINVAL;
	}
	return -ENOENT;
}
