/* SPDX-License-Identifier: MIT
 *
 * tree.c - see tree.h.
 */
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEPTH_MAX 200

bool tree_adopt(void)
{
	return prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

/* From `status`: `stat` waits for a process that is in exec(2). */
pid_t tree_parent(pid_t pid)
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

/* Whether it may be signalled. By a descriptor, as its pid may have become another's since
 * it was read. */
static bool signal_child(pid_t pid, pid_t parent, int number)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	bool allowed = true;

	if (fd < 0)
		return true;
	if (tree_parent(pid) == parent)
		allowed =
			syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) == 0 || errno != EPERM;
	close(fd);
	return allowed;
}

static int signal_children(pid_t parent, int number, int depth);

/* The children that one thread has started. */
static int signal_of_thread(pid_t parent, const char *thread, int number, int depth)
{
	char path[80];
	int pid, refused = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/children", (int)parent, thread);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (fscanf(file, "%d", &pid) == 1) {
		/* First those below it: when it is dead they are found elsewhere. */
		if (depth < DEPTH_MAX)
			refused += signal_children(pid, number, depth + 1);
		refused += !signal_child(pid, parent, number);
	}
	fclose(file);
	return refused;
}

static int signal_children(pid_t parent, int number, int depth)
{
	struct dirent *thread;
	int refused = 0;
	char path[40];
	DIR *threads;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)parent);
	threads = opendir(path);
	if (!threads)
		return 0;
	while ((thread = readdir(threads)))
		if (*thread->d_name != '.')
			refused += signal_of_thread(parent, thread->d_name, number, depth);
	closedir(threads);
	return refused;
}

int tree_signal(int number)
{
	return signal_children(getpid(), number, 0);
}
