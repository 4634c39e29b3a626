/* SPDX-License-Identifier: MIT */
#include "setup/unit_name.h"

#include "host/args.h"
#include "host/nearest.h"
#include "setup/env_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

const char *unit_settings(const char *path, char file[UNIT_FILE_MAX])
{
	char name[UNIT_NAME_MAX];

	snprintf(file, UNIT_FILE_MAX, "/etc/zklockfs/%s.conf", unit_file(path, name));
	return file;
}

char *unit_settings_read(const char *path, char file[UNIT_FILE_MAX])
{
	FILE *settings = fopen(unit_settings(path, file), "re");
	char *text = NULL;
	size_t size = 0;

	if (settings && getdelim(&text, &size, '\0', settings) < 0 && text)
		*text = '\0';
	if (settings)
		fclose(settings);
	return text;
}

const char *unit_slip(const char *name, char text[UNIT_SLIP_MAX])
{
	static const char *const names[] = {"OPTIONS", "SERVERS", NULL};
	static const char shells[] = "export ";
	bool exports = strncmp(name, shells, strlen(shells)) == 0;
	const char *meant = nearest(name + (exports ? strlen(shells) : 0), names, sizeof(*names));

	*text = '\0';
	if (meant && strcmp(name, meant) != 0)
		snprintf(text, UNIT_SLIP_MAX, "%s= is no setting: write %s=", name, meant);
	return text;
}

char **unit_words(const char *path, int argc, char **argv, char file[UNIT_FILE_MAX],
                  char slip[UNIT_SLIP_MAX])
{
	/* Where there is no directory yet, its unit is that of the path. */
	char *real = realpath(path, NULL), *text = unit_settings_read(real ? real : path, file);
	char none[] = "", *options = none, *servers = none, *name, *value, *bytes = NULL;
	char **words = NULL;
	size_t len = 0;
	FILE *to = text ? open_memstream(&bytes, &len) : NULL;

	*slip = '\0';
	for (char *at = text; to && env_file_next(&at, &name, &value);)
		if (strcmp(name, "OPTIONS") == 0)
			options = value;
		else if (strcmp(name, "SERVERS") == 0)
			servers = value;
		else if (!*slip)
			(void)unit_slip(name, slip);
	if (to) {
		fwrite(options, 1, env_file_words(options), to);
		fwrite(servers, 1, strlen(servers) + 1, to);
		for (int i = 1; i < argc; i++)
			fwrite(argv[i], 1, strlen(argv[i]) + 1, to);
		if (fclose(to) == 0)
			words = args_split(argv[0], bytes, len);
	}
	free(bytes);
	free(text);
	free(real);
	return words;
}

/* Takes back what unit_name() does. */
static void unit_unescape(const char *name, size_t len, char path[PATH_MAX])
{
	size_t n = 0;
	unsigned byte;

	path[n++] = '/';
	for (const char *end = name + len; name < end && n + 1 < PATH_MAX; name++) {
		if (*name == '-') {
			path[n++] = '/';
		} else if (name + 4 <= end && sscanf(name, "\\x%2x", &byte) == 1) {
			path[n++] = (char)byte;
			name += 3;
		} else {
			path[n++] = *name;
		}
	}
	path[n] = '\0';
}

const char *unit_meant(const char *word, char path[PATH_MAX])
{
	static const char begin[] = "zklockfs@", end[] = ".service";
	size_t len;
	struct stat st;

	if (strncmp(word, begin, strlen(begin)) == 0)
		word += strlen(begin);
	len = strlen(word);
	if (len > strlen(end) && strcmp(word + len - strlen(end), end) == 0)
		len -= strlen(end);
	if (len == 0 || strchr(word, '/'))
		return NULL;
	unit_unescape(word, len, path);
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? path : NULL;
}

const char *unit_advice(const char *word, char text[UNIT_ADVICE_MAX])
{
	char path[PATH_MAX], file[UNIT_FILE_MAX], name[UNIT_NAME_MAX];
	char *real = realpath(word, NULL);

	*text = '\0';
	if (real && access(unit_settings(real, file), F_OK) == 0)
		snprintf(text, UNIT_ADVICE_MAX, "; this mounts it: systemctl start 'zklockfs@%s'",
		         unit_name(real, name));
	else if (!real && unit_meant(word, path))
		snprintf(text, UNIT_ADVICE_MAX, "; name the mount point, %s", path);
	free(real);
	return text;
}
