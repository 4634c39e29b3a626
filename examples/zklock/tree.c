/* SPDX-License-Identifier: MIT */
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEPTH_MAX 200

bool tree_adopt(void)
{
	return prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

/* 0: it is gone. From `status`: `stat` waits for a process that is in exec(2). */
static pid_t parent_of(pid_t pid)
{
	char path[40], line[256];
	int parent = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "PPid: %d", &parent) == 1)
			break;
	fclose(file);
	return parent;
}

bool tree_is_below(pid_t pid, pid_t above)
{
	for (int i = 0; i < DEPTH_MAX && pid > 1; i++) {
		pid = parent_of(pid);
		if (pid == above)
			return true;
	}
	return false;
}

/* Whether it may be signalled. By a descriptor, as its pid may have become another's since
 * it was read. */
static bool signal_child(pid_t pid, pid_t parent, int number)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	bool allowed = true;

	if (fd < 0)
		return true;
	if (parent_of(pid) == parent)
		allowed =
			syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) == 0 || errno != EPERM;
	close(fd);
	return allowed;
}

/* One process of all. */
struct kin {
	pid_t pid, parent;
};

struct family {
	struct kin *kin;
	size_t count;
};

/* Not from the lists of children in /proc: not every kernel has them. As many as memory allows. */
static struct family read_family(void)
{
	struct family family = {.count = 0};
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	size_t room = 0;

	while (proc && (entry = readdir(proc))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid <= 0)
			continue;
		if (family.count == room) {
			size_t more = room ? room * 2 : 512;
			struct kin *kin = reallocarray(family.kin, more, sizeof(*kin));

			if (!kin)
				break;
			family.kin = kin;
			room = more;
		}
		family.kin[family.count++] = (struct kin){.pid = pid, .parent = parent_of(pid)};
	}
	if (proc)
		closedir(proc);
	return family;
}

static int signal_children(const struct family *family, pid_t parent, int number, int depth)
{
	int refused = 0;

	for (size_t i = 0; i < family->count; i++) {
		const struct kin *kin = &family->kin[i];

		if (kin->parent != parent)
			continue;
		/* First those below it: when it is dead they are found elsewhere. */
		if (depth < DEPTH_MAX)
			refused += signal_children(family, kin->pid, number, depth + 1);
		refused += !signal_child(kin->pid, parent, number);
	}
	return refused;
}

int tree_signal(int number)
{
	struct family family = read_family();
	int refused = signal_children(&family, getpid(), number, 0);

	free(family.kin);
	return refused;
}
