/* SPDX-License-Identifier: MIT */
#include "guard/trial.h"

#include "guard/scan.h"
#include "host/process.h"
#include "host/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

/* The uid of "nobody" on most systems. */
#define ANOTHER_UID 65534

/* A process that has a file open. */
struct trial {
	pid_t pid;
	int fd; /* it ends, at the latest, when this is closed */
	struct stat file;
};

struct sought {
	uint64_t ino;
	bool found;
};

static bool compare(void *ctx, const struct seen_file *file)
{
	struct sought *sought = ctx;

	sought->found |= file->ino == sought->ino;
	return !sought->found;
}

static const char *explain_failure(const char *what, int error)
{
	static char why[128];

	snprintf(why, sizeof(why), "%s: %s", what, strerror(error));
	return why;
}

/* Another user's process, or where that may not be had one that the kernel protects as such: only
 * CAP_SYS_PTRACE looks into it. */
static void become_another(void)
{
	(void)!setresuid(ANOTHER_UID, ANOTHER_UID, ANOTHER_UID);
	(void)prctl(PR_SET_DUMPABLE, 0);
}

static _Noreturn void wait_for_end(int fd, bool another)
{
	char byte;

	signals_unblock_all();
	if (another)
		become_another();
	if (send(fd, "", 1, MSG_NOSIGNAL) == 1)
		(void)!read(fd, &byte, 1);
	_exit(0);
}

static const char *begin_trial(struct trial *trial, bool another)
{
	int fds[2];
	char byte;

	*trial = (struct trial){.pid = -1, .fd = -1};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return explain_failure("socketpair", errno);
	trial->fd = fds[1];
	if (fstat(fds[0], &trial->file) == 0)
		trial->pid = fork();
	if (trial->pid == 0) {
		close(fds[1]);
		wait_for_end(fds[0], another);
	}
	close(fds[0]);
	if (trial->pid < 0)
		return explain_failure("fork", errno);
	return read(trial->fd, &byte, 1) == 1 ? NULL : "a process in trial has ended";
}

/* The guardian stops processes in the same way, in look.c. Sets errno unless it returns NULL. */
static const char *find_by_file(const struct trial *trial)
{
	struct sought sought = {.ino = trial->file.st_ino};
	struct scan_place place = {0};
	char device[32];

	snprintf(device, sizeof(device), "%u:%u", major(trial->file.st_dev),
	         minor(trial->file.st_dev));
	if (scan_process(trial->pid, device, &place, SCAN_ALL, compare, &sought) < 0)
		return explain_failure("the files of a process cannot be read in /proc", errno);
	errno = ENOENT;
	return sought.found ? NULL : "/proc does not show which file a process has open";
}

static const char *stop_found(const struct trial *trial)
{
	struct process process;
	int r = process_open(trial->pid, &process);

	if (r < 0)
		return explain_failure("a process cannot be told from others", -r);
	r = process_signal(&process, SIGKILL);
	process_close(&process);
	return r < 0 ? explain_failure("a process cannot be signalled", -r) : NULL;
}

/* Whether a signal has ended it. */
static bool end_trial(struct trial *trial)
{
	int status;

	close(trial->fd);
	return trial->pid > 0 && waitpid(trial->pid, &status, 0) == trial->pid &&
	       WIFSIGNALED(status);
}

/* Whether /proc is that of another pid namespace. Its numbers are those of other processes here,
 * which would be stopped instead. */
static bool proc_is_foreign(void)
{
	char self[16] = "";

	return readlink("/proc/self", self, sizeof(self) - 1) > 0 &&
	       strtol(self, NULL, 10) != getpid();
}

static const char *try_to_stop(void)
{
	struct trial trial;
	const char *why;

	if (proc_is_foreign())
		return "/proc is that of another pid namespace";
	why = begin_trial(&trial, /* another = */ false);
	why = why ? why : find_by_file(&trial);
	why = why ? why : stop_found(&trial);
	return end_trial(&trial) || why ? why : "a process outlives SIGKILL";
}

const char *trial_stop(void)
{
	static bool tried;
	static const char *why;

	if (!tried)
		why = try_to_stop();
	tried = true;
	return why;
}

const char *trial_find_others(void)
{
	struct trial trial;
	const char *why;

	if (!process_may_signal_all())
		return NULL;
	why = begin_trial(&trial, /* another = */ true);
	if (!why && find_by_file(&trial))
		why = explain_failure("CAP_SYS_PTRACE is missing, or /proc hides them", errno);
	(void)end_trial(&trial);
	return why;
}
