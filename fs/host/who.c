/* SPDX-License-Identifier: MIT */
#include "host/who.h"

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of linux/pidfd.h, which may be older here than the kernel. */
#define OF_A_THREAD O_EXCL /* PIDFD_THREAD, since 6.9 */
#define INFO_PID 1         /* PIDFD_INFO_* */
#define INFO_CREDS 2

struct info { /* PIDFD_INFO_SIZE_VER0 */
	uint64_t mask, cgroup;
	uint32_t thread, process, parent;
	uint32_t real_uid, real_gid, effective_uid, effective_gid, saved_uid, saved_gid, fs_uid,
		fs_gid;
	int32_t exit_code;
};

#define GET_INFO _IOWR(0xff, 11, struct info)

bool who_has(int pidfd, struct who *ret_who)
{
	struct info info = {.mask = INFO_PID | INFO_CREDS};

	if (pidfd < 0 || ioctl(pidfd, GET_INFO, &info) < 0 ||
	    (info.mask & (INFO_PID | INFO_CREDS)) != (INFO_PID | INFO_CREDS))
		return false;
	*ret_who = (struct who){
		.process = (pid_t)info.process,
		.parent = (pid_t)info.parent,
		.real = info.real_uid,
		.saved = info.saved_uid,
	};
	return true;
}

int who_watch(pid_t thread)
{
	int fd = (int)syscall(SYS_pidfd_open, thread, OF_A_THREAD);

	return fd >= 0 ? fd : (int)syscall(SYS_pidfd_open, thread, 0);
}

static bool ask_pidfd(pid_t thread, struct who *ret_who)
{
	int fd = who_watch(thread);
	bool is = who_has(fd, ret_who);

	if (fd >= 0)
		close(fd);
	return is;
}

bool who_read(int directory, const char *file, char *ret_text, size_t size)
{
	int fd = openat(directory, file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret_text, size - 1);

	if (fd >= 0)
		close(fd);
	ret_text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

bool who_read_of(pid_t pid, const char *file, char *ret_text, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	return who_read(AT_FDCWD, path, ret_text, size);
}

char *who_read_line(const char *path, const char *start)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	bool found = false;

	while (file && !found && getline(&line, &size, file) >= 0)
		found = strncmp(line + strspn(line, " \t"), start, strlen(start)) == 0;
	if (file)
		fclose(file);
	if (found)
		return line;
	free(line);
	return NULL;
}

static const char *value_of(const char *text, const char *key)
{
	const char *line = strstr(text, key);

	return line ? line + strlen(key) : NULL;
}

static bool read_status(pid_t thread, struct who *ret_who)
{
	const char *process, *parent, *uids;
	char text[1024];
	unsigned real, saved;

	if (!who_read_of(thread, "status", text, sizeof(text)))
		return false;
	/* The name is in the first line, and newlines in it are escaped. */
	process = value_of(text, "\nTgid:");
	parent = value_of(text, "\nPPid:");
	uids = value_of(text, "\nUid:");
	if (!process || !parent || !uids || sscanf(uids, "%u %*u %u", &real, &saved) != 2)
		return false;
	*ret_who = (struct who){
		.process = (pid_t)strtol(process, NULL, 10),
		.parent = (pid_t)strtol(parent, NULL, 10),
		.real = real,
		.saved = saved,
	};
	return true;
}

/* The names in task/ cost the kernel nothing, and the thread that the process began with comes
 * first. */
static pid_t first_thread(pid_t thread)
{
	char path[64], names[256];
	ssize_t n, at = 0;
	pid_t first = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)thread);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = syscall(SYS_getdents64, fd, names, sizeof(names));
	close(fd);
	while (first == 0 && at < n) { /* behind . and .. */
		unsigned short length;

		memcpy(&length, names + at + offsetof(struct dirent64, d_reclen), sizeof(length));
		first = (pid_t)strtol(names + at + offsetof(struct dirent64, d_name), NULL, 10);
		at += length;
	}
	return first;
}

pid_t who_process(pid_t thread)
{
	struct who who;

	if (thread <= 0)
		return 0;
	return ask_pidfd(thread, &who) ? who.process : first_thread(thread);
}

bool who_is(pid_t thread, struct who *ret_who)
{
	return thread > 0 && (ask_pidfd(thread, ret_who) || read_status(thread, ret_who));
}
