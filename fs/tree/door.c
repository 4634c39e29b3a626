/* SPDX-License-Identifier: MIT */
#include "tree/door.h"

#include "host/duration.h"

#include <errno.h>
#include <stdlib.h>
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

/* A number that is given once, and is not 0. */
static bool parse_crowd(const char *text, unsigned *crowd)
{
	size_t digits = strspn(text, "0123456789");

	if (*crowd != 0 || digits > 7 || text[digits] != '\0')
		return false;
	*crowd = (unsigned)strtoul(text, NULL, 10);
	return *crowd > 0 && *crowd <= LC_CROWD_MAX;
}

static bool parse_part(const char *part, const char *door_name, struct door *door)
{
	if (strncmp(part, "most=", 5) == 0)
		return parse_limit(part + 5, LC_FOREVER, &door->most_us);
	if (strncmp(part, "least=", 6) == 0)
		return parse_limit(part + 6, 0, &door->least_us);
	return strncmp(part, "ahead=", 6) == 0 && strcmp(door_name, "try") != 0 &&
	       parse_crowd(part + 6, &door->crowd);
}

/* The text behind the @: the time to wait comes first, then the rest. */
static bool parse_parts(char *text, size_t which, struct door *door)
{
	const char *part = strsep(&text, ",");

	if (doors[which].waits && duration_parse(part, &door->wait_us)) {
		if (!text)
			return true;
		part = strsep(&text, ",");
	}
	for (; part; part = strsep(&text, ","))
		if (!parse_part(part, doors[which].name, door))
			return false;
	return door->least_us <= door->most_us;
}

int door_parse(const char *name, struct door *ret_door)
{
	size_t len = strcspn(name, "@");

	for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++) {
		char parts[DOOR_NAME_MAX + 1];

		if (strncmp(name, doors[i].name, len) != 0 || doors[i].name[len] != '\0')
			continue;
		*ret_door = doors[i].door;
		ret_door->most_us = LC_FOREVER;
		if (name[len] == '\0')
			return 0;
		if (strlen(name) > DOOR_NAME_MAX)
			return -EINVAL;
		strcpy(parts, name + len + 1);
		return parse_parts(parts, i, ret_door) ? 0 : -EINVAL;
	}
	return -ENOENT;
}
