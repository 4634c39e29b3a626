/* SPDX-License-Identifier: MIT */
#include "mount.h"

#include "child.h"
#include "clean.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <sysexits.h>
#include <unistd.h>

#define FILE_MAX (16 << 20)
#define ANSWER_MS 10000 /* until then a good daemon has answered that needs no ensemble for it */

struct place {
	char *path;
	dev_t device;
	bool whole;   /* not bound from a directory of the mount */
	bool trusted; /* to be found without being named */
};

/* By root, or by the user himself. Anybody may mount another filesystem under this name, without
 * locks. The kernel shows the mounting user, behind the source, which is the mounter's text. */
static bool is_trusted(const char *options)
{
	const char *user = strstr(options, ",user_id=");
	unsigned long uid = user ? strtoul(user + strlen(",user_id="), NULL, 10) : 0;

	return user && (uid == 0 || uid == geteuid());
}

/* One line of mountinfo, if it is of a zklockfs. */
static bool parse_line(const char *line, struct place *ret_place)
{
	const char *behind = strstr(line, " - ");
	unsigned major, minor;
	int options = 0;
	char *root;

	if (!behind || strncmp(behind, " - fuse.zklockfs ", 17) != 0)
		return false;
	sscanf(behind, " - %*s %*s %n", &options);
	if (sscanf(line, "%*u %*u %u:%u %ms %ms", &major, &minor, &root, &ret_place->path) != 4)
		return false;
	ret_place->whole = strcmp(root, "/") == 0;
	ret_place->trusted = is_trusted(behind + options);
	free(root);
	ret_place->device = makedev(major, minor);
	clean_unescape(ret_place->path);
	return true;
}

/* All mounts of zklockfs, in the order of mountinfo. */
static size_t list_places(struct place **ret_places)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	struct place *places = NULL, place;
	size_t count = 0, size = 0;
	char *line = NULL;

	if (!file)
		err(EX_UNAVAILABLE, "/proc/self/mountinfo");
	while (getline(&line, &size, file) >= 0) {
		if (!parse_line(line, &place))
			continue;
		places = reallocarray(places, count + 1, sizeof(*places));
		if (!places)
			err(EX_OSERR, NULL);
		places[count++] = place;
	}
	free(line);
	fclose(file);
	*ret_places = places;
	return count;
}

/* Of several ways to one mount the first, a whole one rather than a part. */
static const struct place *choose_only(const struct place *places, size_t count)
{
	const struct place *chosen = NULL;
	char shown[CLEAN_MAX];

	for (size_t i = 0; i < count; i++) {
		if (!places[i].trusted)
			continue;
		if (chosen && chosen->device != places[i].device) {
			warnx("several are mounted; choose one by -m or $ZKLOCKFS:");
			for (i = 0; i < count; i++)
				if (places[i].trusted)
					warnx("  %s", clean(shown, sizeof(shown), places[i].path));
			exit(EX_USAGE);
		}
		if (!chosen || (places[i].whole && !chosen->whole))
			chosen = &places[i];
	}
	if (!chosen)
		errx(EX_UNAVAILABLE, "no zklockfs is mounted here, see zklockfs(8)");
	return chosen;
}

/* What of a path is behind that directory; NULL: it does not lie there. */
static const char *skip_directory(const char *path, const char *directory)
{
	size_t n = strlen(directory);

	while (n > 1 && directory[n - 1] == '/')
		n--;
	return strncmp(path, directory, n) == 0 && (path[n] == '/' || path[n] == '\0') ? path + n
	                                                                               : NULL;
}

/* The innermost in which the path lies. */
static const struct place *choose_by_path(const struct place *places, size_t count,
                                          const char *path)
{
	const struct place *chosen = NULL;

	for (size_t i = 0; i < count; i++)
		if (skip_directory(path, places[i].path) &&
		    (!chosen || strlen(places[i].path) >= strlen(chosen->path)))
			chosen = &places[i];
	return chosen;
}

/* Without symbolic links, as far as it exists. */
static char *resolve(const char *path)
{
	char *copy = strdup(path), *real = NULL, *result;
	size_t n = copy ? strlen(copy) : 0;

	while (n > 0 && !(real = realpath(copy, NULL))) {
		while (n > 0 && copy[--n] != '/')
			;
		copy[n] = '\0';
	}
	if (!copy || asprintf(&result, "%s%s", real ? real : "", path + n) < 0)
		err(EX_OSERR, NULL);
	free(real);
	free(copy);
	return result;
}

static const struct place *choose_by_real_path(const struct place *places, size_t count,
                                               const char *path)
{
	char *real = resolve(path);
	const struct place *chosen = choose_by_path(places, count, real);

	free(real);
	return chosen;
}

static void open_place(struct mount *mount, const char *path)
{
	mount->path = strdup(path);
	mount->dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!mount->path)
		err(EX_OSERR, NULL);
	if (mount->dir < 0 && (errno == ENOTCONN || errno == ECONNABORTED))
		errx(EX_UNAVAILABLE, "%s: the daemon of the mount is dead", path);
	if (mount->dir < 0)
		err(EX_UNAVAILABLE, "%s", path);
}

/* A file of the same name on another filesystem would look like a lock and be none. */
static void check_place(struct mount *mount, const struct place *places, size_t count)
{
	struct stat stat;

	if (fstat(mount->dir, &stat) < 0) {
		if (errno == ENOTCONN || errno == ECONNABORTED)
			errx(EX_UNAVAILABLE, "%s: the daemon of the mount is dead", mount->path);
		err(EX_UNAVAILABLE, "%s", mount->path);
	}
	for (size_t i = 0; i < count; i++)
		if (places[i].device == stat.st_dev)
			return;
	errx(EX_UNAVAILABLE, "%s: no zklockfs is mounted there", mount->path);
}

void mount_find(struct mount *mount, const char *given, const char *lock)
{
	const char *variable = getenv("ZKLOCKFS");
	const struct place *chosen = NULL;
	struct place *places;
	size_t count = list_places(&places);

	if (!given && variable && *variable)
		given = variable;
	if (!given && lock && *lock == '/')
		chosen = choose_by_path(places, count, lock);
	if (!given && !chosen && lock && *lock == '/')
		chosen = choose_by_real_path(places, count, lock);
	if (!given && !chosen)
		chosen = choose_only(places, count);
	open_place(mount, given ? given : chosen->path);
	check_place(mount, places, count);
	for (size_t i = 0; i < count; i++)
		free(places[i].path);
	free(places);
}

/* In a process of its own: a daemon that was stopped answers nothing, and no signal that a process
 * can catch ends a call to it. */
static _Noreturn void look_for_it(struct mount *mount, const char *given, const char *lock)
{
	struct statvfs statvfs;

	mount_find(mount, given, lock);
	(void)fstatvfs(mount->dir, &statvfs);
	_exit(EX_OK);
}

void mount_find_answering(struct mount *mount, const char *given, const char *lock)
{
	struct child child;
	int status = 0;

	if (child_fork(&child) == 0)
		look_for_it(mount, given, lock);
	if (child.pid < 0)
		err(EX_OSERR, "fork");
	if (!child_await(&child, ANSWER_MS)) {
		kill(child.pid, SIGKILL);
		errx(EX_UNAVAILABLE, "the daemon of the mount does not answer: it is stopped "
		                     "(SIGCONT), or hangs");
	}
	if (waitpid(child.pid, &status, 0) == child.pid && WIFEXITED(status) && status)
		exit(WEXITSTATUS(status)); /* it has said why */
	child_close(&child);
	mount_find(mount, given, lock);
}

/* The files in a lock, which are often named by mistake. */
static bool is_inside(const char *word)
{
	static const char *const names[] = {"lock",  "shared", "try",   "reentrant", "flock",
	                                    "queue", "holder", "value", "slots"};
	size_t n = strcspn(word, "@");

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == n && strncmp(word, names[i], n) == 0)
			return true;
	return false;
}

/* Of a path that leads there by a symbolic link, too; `ret_real` is to be freed. */
static const char *skip_mount(const struct mount *mount, const char *word, char **ret_real)
{
	const char *below = *word == '/' ? skip_directory(word, mount->path) : word;
	char shown[CLEAN_MAX], *directory;

	*ret_real = below ? NULL : resolve(word);
	if (below)
		return below;
	directory = resolve(mount->path);
	below = skip_directory(*ret_real, directory);
	free(directory);
	if (!below)
		errx(EX_USAGE, "%s is not below %s", clean(shown, sizeof(shown), word),
		     mount->path);
	return below;
}

char *mount_lock_name(const struct mount *mount, const char *word)
{
	char shown[CLEAN_MAX], *name = malloc(LOCK_NAME_MAX + 1), *real;
	const char *part = skip_mount(mount, word, &real);
	size_t length = 0;

	if (!name)
		err(EX_OSERR, NULL);
	clean(shown, sizeof(shown), word);
	while (*(part += strspn(part, "/"))) {
		size_t n = strcspn(part, "/");

		if (n != 1 || *part != '.') {
			if (*part == '.')
				errx(EX_NOINPUT, "%s: no lock begins with a dot", shown);
			if (length + n + 1 > LOCK_NAME_MAX)
				errx(EX_USAGE, "%s: too long for a lock", shown);
			if (length)
				name[length++] = '/';
			memcpy(name + length, part, n);
			length += n;
		}
		part += n;
	}
	name[length] = '\0';
	free(real);
	if (length == 0)
		errx(EX_USAGE, "'%s' names no lock", shown);
	part = strrchr(name, '/');
	if (is_inside(part ? part + 1 : name))
		errx(EX_USAGE, "%s is inside a lock: name the directory", shown);
	return name;
}

int mount_open(const struct mount *mount, const char *lock, const char *file, int flags)
{
	char path[LOCK_NAME_MAX + 300];

	if (snprintf(path, sizeof(path), "%s/%s", lock, file) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return openat(mount->dir, path, flags | O_CLOEXEC | O_NOCTTY);
}

/* Daemons of former versions know no attribute, and the kernel remembers that for as long as they
 * are mounted. */
static int evict_by_writing(int queue, const char *entry)
{
	int fd = openat(queue, entry, O_WRONLY | O_CLOEXEC | O_NOCTTY), result, error;

	if (fd < 0)
		return -1;
	result = write(fd, "evict", 5) == 5 ? 0 : -1;
	error = errno;
	close(fd);
	errno = error;
	return result;
}

static int evict_in(int queue, const char *entry)
{
	char path[LOCK_NAME_MAX + 300];
	int result;

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", queue, entry);
	result = setxattr(path, "user.evict", "", 0, 0);
	return result < 0 && errno == EOPNOTSUPP ? evict_by_writing(queue, entry) : result;
}

int mount_evict(const struct mount *mount, const char *lock, const char *entry)
{
	int queue = mount_open(mount, lock, "queue", O_PATH | O_DIRECTORY), result = -1, error;
	struct stat top, there;

	if (queue < 0)
		return -1;
	if (fstat(mount->dir, &top) == 0 && fstat(queue, &there) == 0) {
		errno = EXDEV; /* another user's mount may lead anywhere */
		if (there.st_dev == top.st_dev)
			result = evict_in(queue, entry);
	}
	error = errno;
	close(queue);
	errno = error;
	return result;
}

static char *read_all(int fd)
{
	size_t size = 0, length = 0;
	char *data = NULL;
	ssize_t n;

	do {
		if (length + 65536 + 1 > size) {
			char *more = realloc(data, size = size * 2 + 65536 + 1);

			if (!more || size > FILE_MAX) {
				free(more ? more : data);
				errno = more ? EFBIG : ENOMEM;
				return NULL;
			}
			data = more;
		}
		n = read(fd, data + length, 65536);
		if (n < 0 && errno != EINTR) {
			free(data);
			return NULL;
		}
		length += n > 0 ? (size_t)n : 0;
	} while (n != 0);
	data[length] = '\0';
	return data;
}

/* The owner of an entry may have a lease on it (F_SETLEASE), which a blocking open waits for. */
char *mount_read(const struct mount *mount, const char *lock, const char *file)
{
	int fd = mount_open(mount, lock, file, O_RDONLY | O_NONBLOCK), error;
	char *data;

	if (fd < 0)
		return NULL;
	data = read_all(fd);
	error = errno;
	close(fd);
	errno = error;
	return data;
}
