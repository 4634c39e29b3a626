/* SPDX-License-Identifier: MIT
 *
 * door.c - see door.h.
 */
#include "tree/door.h"

#include "host/duration.h"

#include <errno.h>
#include <string.h>

const char *const door_names[] = {"lock", "shared", "try", "reentrant", "flock", NULL};

static const struct {
	const char *name;
	bool waits; /* name@30s is another door */
	struct door door;
} doors[] = {
	{"lock", true, {.mode = LC_EXCLUSIVE, .wait_us = LC_FOREVER}},
	{"shared", true, {.mode = LC_SHARED, .wait_us = LC_FOREVER}},
	{"try", false, {.mode = LC_EXCLUSIVE, .wait_us = 0}},
	{"reentrant", true, {.mode = LC_EXCLUSIVE, .wait_us = LC_FOREVER, .joins = true}},
	{"flock", false, {.advisory = true}},
};

/* A length of time that is given once, and is not 0. */
static bool parse_limit(const char *text, int64_t none_us, int64_t *limit_us)
{
	return *limit_us == none_us && duration_parse(text, limit_us) && *limit_us > 0;
}

/* The text behind the @: the time to wait comes first, then the limits. */
static bool parse_times(char *text, bool waits, struct door *door)
{
	const char *part = strsep(&text, ",");

	if (waits && duration_parse(part, &door->wait_us)) {
		if (!text)
			return true;
		part = strsep(&text, ",");
	}
	for (; part; part = strsep(&text, ","))
		if (!(strncmp(part, "most=", 5) == 0 &&
		      parse_limit(part + 5, LC_FOREVER, &door->most_us)) &&
		    !(strncmp(part, "least=", 6) == 0 && parse_limit(part + 6, 0, &door->least_us)))
			return false;
	return door->least_us <= door->most_us;
}

int door_parse(const char *name, struct door *ret_door)
{
	size_t len = strcspn(name, "@");

	for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++) {
		char times[DOOR_NAME_MAX + 1];

		if (strncmp(name, doors[i].name, len) != 0 || doors[i].name[len] != '\0')
			continue;
		*ret_door = doors[i].door;
		ret_door->most_us = LC_FOREVER;
		if (name[len] == '\0')
			return 0;
		if (strlen(name) > DOOR_NAME_MAX)
			return -EINVAL;
		strcpy(times, name + len + 1);
		return parse_times(times, doors[i].waits, ret_door) ? 0 : -EINVAL;
	}
	return -ENOENT;
}
