/* SPDX-License-Identifier: MIT */
#include "mount.h"

#include "child.h"
#include "clean.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
#define READ_BYTES 65536
#define ANSWER_MS 10000 /* until then a good daemon has answered that needs no ensemble for it */

/* ---- where it is ---- */

static _Noreturn void cannot_open(const char *path)
{
	if (errno == ENOTCONN || errno == ECONNABORTED)
		errx(EX_UNAVAILABLE, "%s: the daemon of the mount is dead", path);
	err(EX_UNAVAILABLE, "%s", path);
}

/* `path`: of a mount, or of a lock; `real`: the same, resolved. */
static _Noreturn void not_mounted(const char *path, const char *real)
{
	char unit[PLACE_UNIT_MAX], shown[CLEAN_MAX];

	errx(EX_UNAVAILABLE, "%s: no zklockfs is mounted there%s",
	     clean(shown, sizeof(shown), path), place_unit(real, unit));
}

/* A file of the same name on another filesystem would look like a lock and be none. */
static void open_place(struct mount *mount)
{
	struct stat stat;

	mount->dir = open(mount->place->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (mount->dir < 0 || fstat(mount->dir, &stat) < 0)
		cannot_open(mount->path);
	if (stat.st_dev != mount->place->device)
		errx(EX_UNAVAILABLE, "%s: no zklockfs is mounted there", mount->path);
}

/* A directory in the mount stands for the whole. */
static void open_part_of_place(struct mount *mount)
{
	const char *part = place_skip(mount->real, mount->place->path);
	char text[PLACE_COVER_MAX];
	int top = mount->dir;

	part += strspn(part, "/");
	if (!*part)
		return;
	mount->dir = mount_open(mount, ".", part, O_PATH | O_DIRECTORY);
	if (mount->dir < 0 && errno == EXDEV)
		errx(EX_UNAVAILABLE, "%s: %s", mount->path, mount_covered(mount, "", text));
	if (mount->dir < 0)
		cannot_open(mount->path);
	close(top);
}

void mount_find(struct mount *mount, const char *given, const char *lock)
{
	const char *variable = getenv("ZKLOCKFS");

	*mount = (struct mount){.dir = -1};
	places_read(&mount->places);
	if (!given && variable && *variable)
		given = variable;
	if (given || (lock && *lock == '/')) {
		mount->real = places_resolve(&mount->places, given ? given : lock);
		mount->place = places_around(&mount->places, mount->real);
	}
	if (given && !mount->place && open(given, O_PATH | O_DIRECTORY | O_CLOEXEC) < 0)
		cannot_open(given);
	if (mount->real && !mount->place)
		not_mounted(given ? given : lock, mount->real);
	if (!mount->place)
		mount->place = places_only(&mount->places);
	if (!given) {
		free(mount->real);
		mount->real = strdup(mount->place->path);
	}
	mount->path = strdup(given ? given : mount->place->path);
	if (!mount->real || !mount->path)
		err(EX_OSERR, NULL);
	open_place(mount);
	open_part_of_place(mount);
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

/* Also of a path that leads there by a symbolic link; `ret_real` is to be freed. */
static const char *skip_mount(const struct mount *mount, const char *word, char **ret_real)
{
	const char *below = word;
	char shown[CLEAN_MAX];

	*ret_real = NULL;
	if (*word != '/')
		return word;
	*ret_real = places_resolve(&mount->places, word);
	below = place_skip(*ret_real, mount->real);
	if (!below)
		errx(EX_USAGE, "%s is not below %s", clean(shown, sizeof(shown), word),
		     mount->path);
	return below;
}

char *mount_lock_name(const struct mount *mount, const char *word)
{
	char shown[CLEAN_MAX], file[CLEAN_MAX], *name = malloc(LOCK_NAME_MAX + 1), *real;
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
		errx(EX_USAGE,
		     "%s is inside a lock: '%s' is a file of each lock: name its directory", shown,
		     clean(file, sizeof(file), part ? part + 1 : name));
	return name;
}

/* ---- the files in it ---- */

static int close_with(int fd, int result)
{
	int error = errno;

	close(fd);
	errno = error;
	return result;
}

/* Without a question to the filesystem, whose daemon may be anybody's and may not answer; but where
 * that call is refused. */
static bool is_of_mount(const struct mount *mount, int fd)
{
	struct statx statx_of;
	struct stat stat_of;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &statx_of) == 0)
		return makedev(statx_of.stx_dev_major, statx_of.stx_dev_minor) ==
		       mount->place->device;
	return fstat(fd, &stat_of) == 0 && stat_of.st_dev == mount->place->device;
}

/* One step of a path. Whoever may write to a directory or a file may mount a filesystem of their
 * own over it (fusermount3): its files look like those of a lock, and are none. openat2(2) does the
 * same by RESOLVE_NO_XDEV, but container engines refuse it. */
static int open_part(const struct mount *mount, int dir, const char *name, int flags)
{
	int fd = openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);

	if (fd < 0 || is_of_mount(mount, fd))
		return fd;
	errno = EXDEV;
	return close_with(fd, -1);
}

/* The open of a foreign file could wait for ever: it is looked at before. */
static int open_last(const struct mount *mount, int dir, const char *name, int flags)
{
	int fd = open_part(mount, dir, name, O_PATH | (flags & O_DIRECTORY));

	if (fd < 0 || flags & O_PATH)
		return fd;
	close(fd);
	return open_part(mount, dir, name, flags);
}

const char *mount_word(const struct mount *mount, const char *name, char word[CLEAN_WORDS_MAX])
{
	char path[CLEAN_WORDS_MAX], words[CLEAN_WORDS_MAX] = "";

	snprintf(path, sizeof(path), "%s/%s", mount->real, name);
	clean_add_word(words, path);
	return clean(word, CLEAN_WORDS_MAX, words + 1);
}

int mount_open(const struct mount *mount, const char *lock, const char *file, int flags)
{
	char path[LOCK_NAME_MAX + 300], *part = path, *end;
	int dir = mount->dir, fd;

	if (snprintf(path, sizeof(path), "%s/%s", lock, file) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	for (; (end = strchr(part, '/')); part = end + 1) {
		*end = '\0';
		fd = open_part(mount, dir, part, O_PATH | O_DIRECTORY);
		if (dir != mount->dir)
			(void)close_with(dir, 0);
		if (fd < 0)
			return -1;
		dir = fd;
	}
	fd = open_last(mount, dir, part, flags);
	return dir == mount->dir ? fd : close_with(dir, fd);
}

const char *mount_covered(const struct mount *mount, const char *lock, char text[PLACE_COVER_MAX])
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s%s%s", mount->real, *lock ? "/" : "", lock);
	return place_cover(mount->place->path, path, text);
}

/* ---- of one file ---- */

/* The file that is open, and not what its name leads to by now. */
static const char *name_open(int fd, char name[40])
{
	snprintf(name, 40, "/proc/self/fd/%d", fd);
	return name;
}

int mount_stat(const struct mount *mount, const char *lock, const char *file, struct stat *ret_stat)
{
	int fd = mount_open(mount, lock, file, O_PATH);

	return fd < 0 ? -1 : close_with(fd, fstat(fd, ret_stat));
}

int mount_may_write(const struct mount *mount, const char *lock, const char *file)
{
	int fd = mount_open(mount, lock, file, O_PATH);
	char name[40];

	return fd < 0 ? -1
	              : close_with(fd, faccessat(AT_FDCWD, name_open(fd, name), W_OK, AT_EACCESS));
}

/* Daemons of former versions know no attribute, and the kernel remembers that for as long as they
 * are mounted. */
static int evict_by_writing(const struct mount *mount, const char *lock, const char *file)
{
	int fd = mount_open(mount, lock, file, O_WRONLY);

	return fd < 0 ? -1 : close_with(fd, write(fd, "evict", 5) == 5 ? 0 : -1);
}

int mount_evict(const struct mount *mount, const char *lock, const char *entry)
{
	char file[300], name[40];
	int fd, result;

	snprintf(file, sizeof(file), "queue/%s", entry);
	fd = mount_open(mount, lock, file, O_PATH);
	if (fd < 0)
		return -1;
	result = close_with(fd, setxattr(name_open(fd, name), "user.evict", "", 0, 0));
	return result < 0 && errno == EOPNOTSUPP ? evict_by_writing(mount, lock, file) : result;
}

/* A mount answers a read with all that it asks for, or with all that is left. */
static char *read_all(int fd)
{
	size_t size = 0, length = 0;
	char *data = NULL;
	ssize_t n;

	do {
		if (length + READ_BYTES + 1 > size) {
			char *more = realloc(data, size = size * 2 + READ_BYTES + 1);

			if (!more || size > FILE_MAX) {
				free(more ? more : data);
				errno = more ? EFBIG : ENOMEM;
				return NULL;
			}
			data = more;
		}
		n = read(fd, data + length, READ_BYTES);
		if (n < 0 && errno != EINTR) {
			free(data);
			return NULL;
		}
		length += n > 0 ? (size_t)n : 0;
	} while (n < 0 || n == READ_BYTES);
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
