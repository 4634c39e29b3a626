/* SPDX-License-Identifier: MIT */
#include "host/subuid.h"

#include "host/clock.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_US 1000000
#define UID_LAST (UINT32_MAX - 1)

/* ---- the texts ---- */

struct name {
	const char *text;
	uid_t uid;
	UT_hash_handle hh;
};

static size_t count_lines(const char *text)
{
	size_t count = 1;

	for (; *text; text++)
		count += *text == '\n';
	return count;
}

/* The whole text is a number. */
static bool is_number(const char *text, uint64_t *ret_number)
{
	size_t len = text ? strlen(text) : 0;

	if (len == 0 || strspn(text, "0123456789") != len)
		return false;
	*ret_number = strtoull(text, NULL, 10);
	return true;
}

/* The first line with a name counts, as it does for getpwnam(3). */
static struct name *read_names(char *passwd, struct name *room)
{
	struct name *names = NULL, *found;
	char *line;

	while ((line = strsep(&passwd, "\n"))) {
		const char *text = strsep(&line, ":");
		uint64_t uid;

		(void)strsep(&line, ":");
		HASH_FIND_STR(names, text, found);
		if (found || !is_number(strsep(&line, ":"), &uid) || uid > UID_LAST)
			continue;
		*room = (struct name){.text = text, .uid = (uid_t)uid};
		HASH_ADD_KEYPTR(hh, names, text, strlen(text), room);
		room++;
	}
	return names;
}

/* "alice:100000:65536". False: the line says nothing, or nothing that counts. */
static bool read_range(char *line, struct name *names, struct per_user_range *ret_range)
{
	const char *owner = strsep(&line, ":"), *from = strsep(&line, ":");
	uint64_t first, count, uid;
	struct name *name;

	if (*owner == '#' || !is_number(from, &first) || !is_number(line, &count) ||
	    first > UID_LAST || count == 0)
		return false;
	count = count > UID_LAST - first ? UID_LAST - first + 1 : count;
	*ret_range = (struct per_user_range){
		.first = first > 0 ? (uid_t)first : 1,
		.last = (uid_t)(first + count - 1),
	};
	HASH_FIND_STR(names, owner, name);
	if (name)
		ret_range->share = name->uid;
	else if (is_number(owner, &uid) && uid <= UID_LAST)
		ret_range->share = (uid_t)uid;
	else
		ret_range->share = ret_range->first;
	return ret_range->share != 0 && ret_range->last >= ret_range->first;
}

static int compare_first(const void *a, const void *b)
{
	const struct per_user_range *one = a, *other = b;

	return (one->first > other->first) - (one->first < other->first);
}

static size_t join_overlapping(struct per_user_range *ranges, size_t count)
{
	size_t kept = 0;

	qsort(ranges, count, sizeof(*ranges), compare_first);
	for (size_t i = 0; i < count; i++) {
		struct per_user_range *before = kept > 0 ? &ranges[kept - 1] : NULL;

		if (!before || ranges[i].first > before->last) {
			ranges[kept++] = ranges[i];
			continue;
		}
		if (ranges[i].share != before->share)
			before->share = before->first;
		if (ranges[i].last > before->last)
			before->last = ranges[i].last;
	}
	return kept;
}

size_t subuid_parse(char *subuid, char *passwd, struct per_user_range **ret_ranges)
{
	struct name *room = calloc(count_lines(passwd), sizeof(*room)), *names;
	struct per_user_range *ranges = calloc(count_lines(subuid), sizeof(*ranges));
	size_t count = 0;
	char *line;

	*ret_ranges = ranges;
	if (!room || !ranges) {
		free(room);
		free(ranges);
		*ret_ranges = NULL;
		return 0;
	}
	names = read_names(passwd, room);
	while ((line = strsep(&subuid, "\n")))
		count += read_range(line, names, &ranges[count]);
	HASH_CLEAR(hh, names);
	free(room);
	return join_overlapping(ranges, count);
}

/* ---- the files ---- */

/* No more than whole lines, if there are more bytes. NULL: no such file, or no memory. */
static char *read_lines(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char *text = fd < 0 ? NULL : malloc(SUBUID_BYTES_MAX + 1);
	size_t len = 0;
	ssize_t n;

	while (text && len < SUBUID_BYTES_MAX &&
	       (n = read(fd, text + len, SUBUID_BYTES_MAX - len)) > 0)
		len += (size_t)n;
	if (fd >= 0)
		close(fd);
	if (!text)
		return NULL;
	text[len] = '\0';
	if (len == SUBUID_BYTES_MAX && strrchr(text, '\n'))
		*strrchr(text, '\n') = '\0';
	return text;
}

/* NULL: no memory. */
static struct per_user_range *read_files(size_t *ret_count)
{
	char nothing[] = "", nobody[] = "";
	char *subuid = read_lines("/etc/subuid"), *passwd = read_lines("/etc/passwd");
	struct per_user_range *ranges;

	*ret_count = subuid_parse(subuid ? subuid : nothing, passwd ? passwd : nobody, &ranges);
	free(subuid);
	free(passwd);
	return ranges;
}

static bool is_same(const struct stat *one, const struct stat *other)
{
	return one->st_dev == other->st_dev && one->st_ino == other->st_ino &&
	       one->st_size == other->st_size && one->st_mtim.tv_sec == other->st_mtim.tv_sec &&
	       one->st_mtim.tv_nsec == other->st_mtim.tv_nsec;
}

void subuid_look(void)
{
	static struct per_user_range *ranges;
	static struct stat was; /* all zero: no file */
	static int64_t next_us = INT64_MIN;
	struct stat is = {0};
	struct per_user_range *before = ranges, *now;
	size_t count;

	if (clock_now_us() < next_us)
		return;
	next_us = clock_now_us() + LOOK_US;
	if (stat("/etc/subuid", &is) < 0)
		is = (struct stat){0};
	if (is_same(&is, &was) || !(now = read_files(&count)))
		return;
	was = is;
	ranges = now;
	per_user_ranges(ranges, count);
	free(before);
}
