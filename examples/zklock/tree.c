/* SPDX-License-Identifier: MIT */
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEPTH_MAX 200

bool tree_adopt(void)
{
	return prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

/* Reads `status`, since a read of `stat` waits for a process that is in exec(2). */
pid_t tree_parent(pid_t pid)
{
	char path[40], line[256];
	int parent = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return errno == EMFILE || errno == ENFILE ? -1 : 0;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "PPid: %d", &parent) == 1)
			break;
	fclose(file);
	return parent;
}

bool tree_is_below(pid_t pid, pid_t above)
{
	for (int i = 0; i < DEPTH_MAX && pid > 1; i++) {
		pid = tree_parent(pid);
		if (pid == above)
			return true;
	}
	return false;
}

/* One process of all. */
struct kin {
	pid_t pid, parent;
	int fd; /* holds it: its pid may become another's; -1: not held */
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
		family.kin[family.count++] =
			(struct kin){.pid = pid, .parent = tree_parent(pid), .fd = -1};
	}
	if (proc)
		closedir(proc);
	return family;
}

static bool has_ended(const struct kin *kin)
{
	struct pollfd pollfd = {.fd = kin->fd, .events = POLLIN};

	return kin->fd >= 0 && poll(&pollfd, 1, 0) == 1;
}

/* Whether it may be signalled. A filter may refuse pidfd_send_signal(2) alone. */
static bool signal_one(const struct kin *kin, int number)
{
	if (kin->fd >= 0 && syscall(SYS_pidfd_send_signal, kin->fd, number, NULL, 0) == 0)
		return true;
	return has_ended(kin) || kill(kin->pid, number) == 0 || errno != EPERM;
}

static void let_go(struct kin *kin)
{
	if (kin->fd >= 0)
		close(kin->fd);
	kin->fd = -1;
}

/* Whether it still is what was read. It is not held where no descriptor is left, or where a filter
 * refuses the call. */
static bool hold(struct kin *child)
{
	pid_t parent;

	child->fd = (int)syscall(SYS_pidfd_open, child->pid, 0);
	parent = tree_parent(child->pid);
	if (parent < 0) { /* that was the last descriptor */
		let_go(child);
		parent = tree_parent(child->pid);
	}
	if (parent != child->parent)
		let_go(child);
	return parent == child->parent;
}

/* A parent comes before its children: a shell whose command ends by the signal would go on with the
 * next one, without the lock. */
static int signal_from(const struct family *family, struct kin *kin, int number, int depth)
{
	struct kin *end = family->kin + family->count, *child;
	int refused = 0;

	for (child = family->kin; child < end && depth < DEPTH_MAX; child++)
		/* What is not held comes at once: when its parent is dead it is found elsewhere. */
		if (child->parent == kin->pid && hold(child) && child->fd < 0)
			refused += signal_from(family, child, number, depth + 1);
	if (kin->pid != getpid())
		refused += !signal_one(kin, number);
	for (child = family->kin; child < end && depth < DEPTH_MAX; child++) {
		if (child->parent != kin->pid || child->fd < 0)
			continue;
		refused += signal_from(family, child, number, depth + 1);
		let_go(child);
	}
	return refused;
}

/* A child runs, and /proc shows none: it hides those of another user (hidepid=). */
static bool has_hidden_child(const struct family *family)
{
	siginfo_t info = {0};

	for (size_t i = 0; i < family->count; i++)
		if (family->kin[i].parent == getpid() || family->kin[i].parent < 0)
			return false;
	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

int tree_signal(int number)
{
	struct family family = read_family();
	struct kin self = {.pid = getpid(), .fd = -1};
	struct rlimit files;
	int refused;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	refused = signal_from(&family, &self, number, 0) + has_hidden_child(&family);
	free(family.kin);
	return refused;
}
