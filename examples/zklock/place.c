/* SPDX-License-Identifier: MIT */
#include "place.h"

#include "clean.h"

#include <dirent.h>
#include <err.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sysexits.h>
#include <unistd.h>

#define TYPE "fuse.zklockfs"
#define LINKS_MAX 40
#define SETTINGS ".conf"
#define SETTINGS_DIR "/etc/zklockfs"

const char *place_skip(const char *path, const char *directory)
{
	size_t n = strlen(directory);

	while (n > 1 && directory[n - 1] == '/')
		n--;
	return strncmp(path, directory, n) == 0 && (path[n] == '/' || path[n] == '\0') ? path + n
	                                                                               : NULL;
}

static bool is_inside(const char *path, const char *directory)
{
	const char *behind = place_skip(path, directory);

	return behind && *behind;
}

/* ---- mountinfo ---- */

/* One line of mountinfo; `path` and `root` are to be freed. */
struct line {
	char *root, *path;
	char type[64];
	unsigned major, minor;
	unsigned long user; /* who has mounted it; 0: root, or it is not known */
	bool has_user;
};

/* The kernel shows the mounting user behind the source, which is the mounter's text. */
static bool parse_line(const char *text, struct line *ret_line)
{
	const char *behind = strstr(text, " - "), *user;
	int options = 0;

	if (!behind || sscanf(behind, " - %63s %*s %n", ret_line->type, &options) != 1)
		return false;
	if (sscanf(text, "%*u %*u %u:%u %ms %ms", &ret_line->major, &ret_line->minor,
	           &ret_line->root, &ret_line->path) != 4)
		return false;
	user = strstr(behind + options, ",user_id=");
	ret_line->has_user = user != NULL;
	ret_line->user = user ? strtoul(user + strlen(",user_id="), NULL, 10) : 0;
	clean_unescape(ret_line->path);
	return true;
}

/* Calls `see` for each mount, in the order of mountinfo: one that covers another comes later. It
 * takes root and path of the line. */
static void see_mounts(void (*see)(void *ctx, struct line *line), void *ctx)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	struct line line;
	char *text = NULL;
	size_t size = 0;

	if (!file)
		err(EX_UNAVAILABLE, "/proc/self/mountinfo");
	while (getline(&text, &size, file) >= 0)
		if (parse_line(text, &line))
			see(ctx, &line);
	free(text);
	fclose(file);
}

static void add_place(void *ctx, struct line *line)
{
	struct places *places = ctx;

	if (strcmp(line->type, TYPE) == 0) {
		places->list = reallocarray(places->list, places->count + 1, sizeof(*places->list));
		if (!places->list)
			err(EX_OSERR, NULL);
		places->list[places->count++] = (struct place){
			.path = line->path,
			.device = makedev(line->major, line->minor),
			.whole = strcmp(line->root, "/") == 0,
			.trusted = line->has_user && (line->user == 0 || line->user == geteuid()),
		};
	} else {
		free(line->path);
	}
	free(line->root);
}

/* Mounted by another user over a directory of a mount that is there. */
static bool is_foreign(const struct places *places, const struct place *place)
{
	for (size_t i = 0; i < places->count && !place->trusted; i++)
		if (places->list[i].device != place->device &&
		    is_inside(place->path, places->list[i].path))
			return true;
	return false;
}

void places_read(struct places *ret_places)
{
	size_t kept = 0;

	*ret_places = (struct places){.count = 0};
	see_mounts(add_place, ret_places);
	for (size_t i = 0; i < ret_places->count; i++) {
		struct place place = ret_places->list[i];

		if (is_foreign(ret_places, &place)) {
			free(place.path);
			ret_places->list[i].path = strdup("");
		}
	}
	for (size_t i = 0; i < ret_places->count; i++) {
		if (!ret_places->list[i].path)
			err(EX_OSERR, NULL);
		if (*ret_places->list[i].path)
			ret_places->list[kept++] = ret_places->list[i];
		else
			free(ret_places->list[i].path);
	}
	ret_places->count = kept;
}

void places_free(struct places *places)
{
	for (size_t i = 0; i < places->count; i++)
		free(places->list[i].path);
	free(places->list);
	*places = (struct places){.count = 0};
}

/* ---- the one that is not there ---- */

/* Finds the mount point that a file of settings is for. False: the file is none, or its name has a
 * dash of the mount point, which cannot be told from a slash. */
static bool find_mountpoint(const char *file, char mountpoint[NAME_MAX + 2])
{
	size_t n = strlen(file);

	if (n <= strlen(SETTINGS) || strcmp(file + n - strlen(SETTINGS), SETTINGS) != 0 ||
	    strstr(file, "x2d"))
		return false;
	snprintf(mountpoint, NAME_MAX + 2, "/%.*s", (int)(n - strlen(SETTINGS)), file);
	for (char *dash = mountpoint; (dash = strchr(dash, '-'));)
		*dash = '/';
	return true;
}

const char *place_unit(const char *path, char text[PLACE_UNIT_MAX])
{
	DIR *settings = opendir(SETTINGS_DIR);
	char mountpoint[NAME_MAX + 2];
	struct dirent *file;
	unsigned count = 0;

	while (settings && (file = readdir(settings)))
		if (find_mountpoint(file->d_name, mountpoint) &&
		    (!path || place_skip(path, mountpoint)) && ++count)
			snprintf(text, PLACE_UNIT_MAX,
			         "; this mounts it: systemctl start zklockfs@%.*s",
			         (int)strlen(mountpoint + 1), file->d_name);
	if (settings)
		closedir(settings);
	if (count != 1)
		*text = '\0';
	return text;
}

/* Finds a mount point that has settings, and on which nothing is mounted. */
static bool find_absent(const struct places *places, char mountpoint[NAME_MAX + 2])
{
	DIR *settings = opendir(SETTINGS_DIR);
	struct dirent *file;
	struct stat status;
	bool absent = false;

	while (!absent && settings && (file = readdir(settings))) {
		char *real;

		if (!find_mountpoint(file->d_name, mountpoint))
			continue;
		real = places_resolve(places, mountpoint);
		absent = !places_around(places, real) && stat(real, &status) == 0 &&
		         S_ISDIR(status.st_mode);
		free(real);
	}
	if (settings)
		closedir(settings);
	return absent;
}

/* ---- the one that is meant ---- */

/* Several ways may lead to one mount: the first is taken, a whole one rather than a part. */
const struct place *places_only(const struct places *places)
{
	const struct place *chosen = NULL, *end = places->list + places->count;
	char shown[CLEAN_MAX], other[CLEAN_MAX], unit[PLACE_UNIT_MAX], absent[NAME_MAX + 2];

	for (const struct place *place = places->list; place < end; place++) {
		if (!place->trusted)
			continue;
		if (chosen && chosen->device != place->device) {
			warnx("several are mounted; choose one by -m or $ZKLOCKFS:");
			for (place = places->list; place < end; place++)
				if (place->trusted)
					warnx("  %s", clean(shown, sizeof(shown), place->path));
			exit(EX_USAGE);
		}
		if (!chosen || (place->whole && !chosen->whole))
			chosen = place;
	}
	if (!chosen)
		errx(EX_UNAVAILABLE, "no zklockfs is mounted here%s",
		     *place_unit(NULL, unit) ? unit : ", see zklockfs(8)");
	if (find_absent(places, absent))
		errx(EX_UNAVAILABLE,
		     "%s has settings and is not mounted: its locks may be meant, or those of %s; "
		     "choose by -m or $ZKLOCKFS%s",
		     clean(shown, sizeof(shown), absent), clean(other, sizeof(other), chosen->path),
		     place_unit(absent, unit));
	return chosen;
}

const struct place *places_around(const struct places *places, const char *path)
{
	const struct place *chosen = NULL;

	for (size_t i = 0; i < places->count; i++)
		if (place_skip(path, places->list[i].path) &&
		    (!chosen || strlen(places->list[i].path) >= strlen(chosen->path)))
			chosen = &places->list[i];
	return chosen;
}

/* ---- paths ---- */

/* "../" goes up. */
static void add_part(char real[PATH_MAX], const char *part, size_t n)
{
	size_t length = strlen(real);
	char *last = strrchr(real, '/');

	if (n == 2 && strncmp(part, "..", 2) == 0) {
		if (last)
			*last = '\0';
	} else if (n != 1 || *part != '.') {
		snprintf(real + length, PATH_MAX - length, "/%.*s", (int)n, part);
	}
}

/* If `real` ends in a symbolic link: it ends before that, and `rest` begins with what the link
 * says. */
static bool follow_link(char real[PATH_MAX], char rest[2 * PATH_MAX])
{
	char behind[2 * PATH_MAX];
	ssize_t n;

	strcpy(behind, rest);
	n = readlink(real, rest, PATH_MAX - 1);
	if (n <= 0) {
		strcpy(rest, behind);
		return false;
	}
	snprintf(rest + n, 2 * PATH_MAX - (size_t)n, "/%s", behind);
	*(*rest == '/' ? real : strrchr(real, '/')) = '\0';
	return true;
}

char *places_resolve(const struct places *places, const char *path)
{
	char real[PATH_MAX] = "", rest[2 * PATH_MAX], here[PATH_MAX] = "", *result;
	unsigned links = 0;
	size_t skipped;

	if (*path != '/' && !getcwd(here, sizeof(here)))
		err(EX_UNAVAILABLE, "the working directory");
	if (snprintf(rest, sizeof(rest), "%s/%s", here, path) >= PATH_MAX)
		errx(EX_USAGE, "the path is too long");
	while (rest[skipped = strspn(rest, "/")]) {
		size_t n = strcspn(rest + skipped, "/");

		add_part(real, rest + skipped, n);
		memmove(rest, rest + skipped + n, strlen(rest + skipped + n) + 1);
		if (links < LINKS_MAX && *real && !places_around(places, real))
			links += follow_link(real, rest);
	}
	result = strdup(*real ? real : "/");
	if (!result)
		err(EX_OSERR, NULL);
	return result;
}

/* ---- what hides a path ---- */

struct cover {
	const char *top, *path;
	char *text;
};

static void see_cover(void *ctx, struct line *line)
{
	struct cover *cover = ctx;
	char where[256], type[64], user[40] = "";

	if (is_inside(line->path, cover->top) &&
	    (place_skip(line->path, cover->path) || place_skip(cover->path, line->path))) {
		clean(where, sizeof(where), line->path);
		if (line->has_user)
			snprintf(user, sizeof(user), " of user %lu", line->user);
		snprintf(cover->text, PLACE_COVER_MAX,
		         "another filesystem (%s%s) is mounted on %s and hides it: umount %s",
		         clean(type, sizeof(type), line->type), user, where, where);
	}
	free(line->root);
	free(line->path);
}

const char *place_cover(const char *top, const char *path, char text[PLACE_COVER_MAX])
{
	struct cover cover = {.top = top, .path = path, .text = text};

	snprintf(text, PLACE_COVER_MAX, "another filesystem is mounted over it, see findmnt(8)");
	see_mounts(see_cover, &cover);
	return text;
}
