/* SPDX-License-Identifier: MIT */
#include "tree/lock_file.h"

#include "host/duration.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const lock_file_names[] = {"lock", "shared", "try", "reentrant", "flock", NULL};

static const struct {
	const char *name;
	bool waits; /* name@30s is another lock file */
	struct lock_file lock_file;
} lock_files[] = {
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

static bool parse_part(const char *part, const char *lock_file_name, struct lock_file *lock_file)
{
	if (strncmp(part, "most=", 5) == 0)
		return parse_limit(part + 5, LC_FOREVER, &lock_file->most_us);
	if (strncmp(part, "least=", 6) == 0)
		return parse_limit(part + 6, 0, &lock_file->least_us);
	return strncmp(part, "ahead=", 6) == 0 && strcmp(lock_file_name, "try") != 0 &&
	       parse_crowd(part + 6, &lock_file->crowd);
}

/* The text behind the @: the time to wait comes first, then the rest. */
static bool parse_parts(char *text, size_t which, struct lock_file *lock_file)
{
	const char *part = strsep(&text, ",");

	if (lock_files[which].waits && duration_parse(part, &lock_file->wait_us)) {
		if (!text)
			return true;
		part = strsep(&text, ",");
	}
	for (; part; part = strsep(&text, ","))
		if (!parse_part(part, lock_files[which].name, lock_file))
			return false;
	return lock_file->least_us <= lock_file->most_us;
}

int lock_file_parse(const char *name, struct lock_file *ret_lock_file)
{
	size_t len = strcspn(name, "@");

	for (size_t i = 0; i < sizeof(lock_files) / sizeof(lock_files[0]); i++) {
		char parts[LOCK_FILE_NAME_MAX + 1];

		if (strncmp(name, lock_files[i].name, len) != 0 || lock_files[i].name[len] != '\0')
			continue;
		*ret_lock_file = lock_files[i].lock_file;
		ret_lock_file->most_us = LC_FOREVER;
		if (name[len] == '\0')
			return 0;
		if (strlen(name) > LOCK_FILE_NAME_MAX)
			return -EINVAL;
		strcpy(parts, name + len + 1);
		return parse_parts(parts, i, ret_lock_file) ? 0 : -EINVAL;
	}
	return -ENOENT;
}

struct lc_request lock_file_request(const struct lock_file *lock_file, const char *lock)
{
	return (struct lc_request){
		.lock = lock,
		.mode = lock_file->mode,
		.wait_us = lock_file->wait_us,
		.crowd = lock_file->crowd,
	};
}
