/* SPDX-License-Identifier: MIT
 *
 * lock_dir.c - see lock_dir.h.
 */
#include "tree/lock_dir.h"

#include <errno.h>
#include <string.h>

const struct lock_file lock_files[] = {
	{"holder", NODE_HOLDER}, {"queue", NODE_QUEUE}, {"slots", NODE_SLOTS},
	{"value", NODE_VALUE},   {NULL, NODE_LOCK},
};

const struct lock_file *lock_file_find(const char *name)
{
	for (const struct lock_file *file = lock_files; file->name; file++)
		if (strcmp(name, file->name) == 0)
			return file;
	return NULL;
}

const char *lock_dir_reserved(const char *name)
{
	struct door door;

	if (door_parse(name, &door) != -ENOENT && strchr(name, '@'))
		return "this would be a door with a time limit";
	if (door_parse(name, &door) != -ENOENT || lock_file_find(name))
		return "this is the name of a file in every lock";
	return NULL;
}
