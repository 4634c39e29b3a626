/* SPDX-License-Identifier: MIT */
#include "setup/unit_name.h"

#include <stdio.h>
#include <string.h>

static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:_.";

const char *unit_name(const char *path, char name[UNIT_NAME_MAX])
{
	size_t n = 0;

	*name = '\0';
	for (path += strspn(path, "/"); *path && n + 5 < UNIT_NAME_MAX; path++) {
		if (*path == '/') {
			path += strspn(path, "/") - 1;
			if (path[1])
				name[n++] = '-';
		} else if (strchr(plain, *path) && (*path != '.' || n > 0)) {
			name[n++] = *path;
		} else {
			n += (size_t)snprintf(name + n, 5, "\\x%02x", (unsigned char)*path);
		}
		name[n] = '\0';
	}
	return name;
}

const char *unit_file(const char *path, char name[UNIT_NAME_MAX])
{
	char *to = name;

	unit_name(path, name);
	for (const char *from = name; *from; from++)
		if (*from != '\\')
			*to++ = *from;
	*to = '\0';
	return name;
}
