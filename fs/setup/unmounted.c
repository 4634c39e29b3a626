/* SPDX-License-Identifier: MIT */
#include "setup/unmounted.h"

#include "host/log.h"
#include "host/mounts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns what open(2) returns. */
static int open_directory(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool is_immutable(int fd)
{
	unsigned flags = 0; /* the kernel writes an int, whatever the name of the ioctl says */

	return ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_IMMUTABLE_FL);
}

/* Returns what ioctl(2) returns. */
static int set_immutable(int fd, bool on)
{
	unsigned flags = 0;

	if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0)
		return -1;
	flags = on ? flags | FS_IMMUTABLE_FL : flags & ~(unsigned)FS_IMMUTABLE_FL;
	return ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

static bool is_empty_directory(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
	const struct dirent *entry;
	bool empty = dir != NULL;

	while (empty && (entry = readdir(dir)) != NULL)
		empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
	if (dir)
		closedir(dir);
	else if (copy >= 0)
		close(copy);
	return empty;
}

/* Something is mounted there. */
static bool is_mount_root(int fd)
{
	int above = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool is = above >= 0 && mounts_id(above) != mounts_id(fd);

	if (above >= 0)
		close(above);
	return is;
}

static enum unmounted_state find_state(int fd)
{
	struct stat st;

	if (is_mount_root(fd))
		return UNMOUNTED_OTHER;
	if (fstat(fd, &st) < 0)
		return UNMOUNTED_UNKNOWN;
	if (!is_empty_directory(fd))
		return UNMOUNTED_USED;
	if (is_immutable(fd))
		return UNMOUNTED_PROTECTED;
	return st.st_uid == geteuid() ? UNMOUNTED_OPEN : UNMOUNTED_FOREIGN;
}

enum unmounted_state unmounted_look(const char *mountpoint)
{
	int fd = open_directory(mountpoint);
	enum unmounted_state state;

	if (fd < 0)
		return UNMOUNTED_UNKNOWN;
	state = find_state(fd);
	close(fd);
	return state;
}

/* A copy of the mount that the directory is in comes without the mounts in it: it shows the
 * directory itself. */
enum unmounted_state unmounted_look_below(const char *mountpoint)
{
	const char *name = strrchr(mountpoint, '/') + 1;
	char *above = strndup(mountpoint, (size_t)(name - mountpoint));
	int tree = above ? open_tree(AT_FDCWD, above, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC) : -1;
	int fd = tree < 0 ? -1 : openat(tree, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	enum unmounted_state state = fd < 0 ? UNMOUNTED_UNKNOWN : find_state(fd);

	if (fd >= 0)
		close(fd);
	if (tree >= 0)
		close(tree);
	free(above);
	return state;
}

/* Somebody may have made a file there meanwhile. */
static void close_up(int fd)
{
	if (fchmod(fd, 0) < 0 || set_immutable(fd, /* on = */ true) < 0)
		log_line(LC_WARNING,
		         "the empty mount point cannot be made immutable (%s): root can make files "
		         "there while nothing is mounted",
		         strerror(errno));
	else if (is_empty_directory(fd))
		log_line(LC_NOTICE,
		         "the empty mount point is made unusable (chmod 000, chattr +i)");
	else
		(void)set_immutable(fd, /* on = */ false);
}

void unmounted_protect(const char *mountpoint)
{
	int fd = open_directory(mountpoint);

	if (fd < 0)
		return; /* the mount fails for the same reason */
	switch (find_state(fd)) {
	case UNMOUNTED_OPEN:
		close_up(fd);
		break;
	case UNMOUNTED_USED:
		log_line(LC_WARNING, "the mount point is not empty: while nothing is mounted, "
		                     "programs find what is in it; unmount, and empty it");
		break;
	case UNMOUNTED_FOREIGN:
		log_line(LC_WARNING,
		         "the mount point is another user's, who can make files there while "
		         "nothing is mounted");
		break;
	case UNMOUNTED_PROTECTED:
	case UNMOUNTED_OTHER:
	case UNMOUNTED_UNKNOWN:
		break;
	}
	close(fd);
}
