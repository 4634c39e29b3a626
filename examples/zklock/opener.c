/* SPDX-License-Identifier: MIT */
#include "opener.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* The name of the lock file that this path ends in, without a look at any filesystem; or NULL. */
static const char *lock_file_of(const char *path)
{
	static const char *const lock_files[] = {"lock", "shared", "try", "reentrant", "flock"};
	const char *name = strrchr(path, '/');
	size_t n;

	if (!name)
		return NULL;
	n = strcspn(++name, "@");
	for (size_t i = 0; i < sizeof(lock_files) / sizeof(lock_files[0]); i++)
		if (strlen(lock_files[i]) == n && strncmp(name, lock_files[i], n) == 0)
			return name;
	return NULL;
}

/* Its number on this mount; 0: it is of another filesystem. Nothing is asked of that, as it may not
 * answer, unless a filter refuses statx(2). */
static uint64_t number_of(const struct mount *mount, int fds, const char *fd)
{
	struct statx seen;
	struct stat stat;

	if (statx(fds, fd, AT_STATX_DONT_SYNC, STATX_INO, &seen) == 0)
		return makedev(seen.stx_dev_major, seen.stx_dev_minor) == mount->place->device
		               ? seen.stx_ino
		               : 0;
	return fstatat(fds, fd, &stat, 0) == 0 && stat.st_dev == mount->place->device ? stat.st_ino
	                                                                              : 0;
}

/* Whether a descriptor, a link of /proc/PID/fd, is of a lock file of the lock. */
static bool is_lock_file(const struct mount *mount, const char *lock, int fds, const char *fd)
{
	char target[4096], file[64];
	ssize_t n = readlinkat(fds, fd, target, sizeof(target) - 1);
	struct stat ours;
	const char *lock_file;

	if (n <= 0)
		return false;
	target[n] = '\0';
	lock_file = lock_file_of(target);
	if (!lock_file || snprintf(file, sizeof(file), "%s", lock_file) >= (int)sizeof(file))
		return false;
	return mount_stat(mount, lock, file, &ours) == 0 &&
	       number_of(mount, fds, fd) == ours.st_ino;
}

/* 1: it has one open; -1: that cannot be seen. */
static int look_into(const struct mount *mount, const char *lock, const char *pid)
{
	char path[300];
	struct dirent *fd;
	int found = 0;
	DIR *fds;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	fds = opendir(path);
	if (!fds)
		return errno == ENOENT || errno == ESRCH ? 0 : -1;
	while (!found && (fd = readdir(fds)))
		found = *fd->d_name != '.' && is_lock_file(mount, lock, dirfd(fds), fd->d_name);
	closedir(fds);
	return found;
}

static void read_command(const char *pid, struct opener *opener)
{
	char path[300];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	file = fopen(path, "re");
	if (!file || !fgets(opener->command, sizeof(opener->command), file))
		snprintf(opener->command, sizeof(opener->command), "-");
	opener->command[strcspn(opener->command, "\n")] = '\0';
	if (file)
		fclose(file);
}

/* Where /proc shows nobody the processes of others (hidepid=2), it is as if there were none. */
static bool sees_all(void)
{
	return access("/proc/1", F_OK) == 0;
}

size_t openers_find(const struct mount *mount, const char *lock, struct opener *ret_openers,
                    size_t max, bool *ret_all)
{
	DIR *processes = opendir("/proc");
	struct dirent *process;
	size_t count = 0;

	*ret_all = processes != NULL && sees_all();
	while (processes && count < max && (process = readdir(processes))) {
		int found = *process->d_name < '0' || *process->d_name > '9'
		                    ? 0
		                    : look_into(mount, lock, process->d_name);

		*ret_all &= found >= 0;
		if (found <= 0)
			continue;
		ret_openers[count].pid = atoi(process->d_name);
		read_command(process->d_name, &ret_openers[count++]);
	}
	if (processes)
		closedir(processes);
	return count;
}

bool opener_is_gone(pid_t pid)
{
	char path[40], line[256], state = 'Z';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	if (!file) /* perhaps /proc does not show it */
		return errno == ENOENT && kill(pid, 0) < 0 && errno == ESRCH;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "State: %c", &state) == 1)
			break;
	fclose(file);
	return state == 'Z' || state == 'X';
}

bool opener_has_closed(const struct mount *mount, const char *lock, pid_t pid)
{
	char name[16];

	snprintf(name, sizeof(name), "%d", (int)pid);
	return look_into(mount, lock, name) == 0;
}
