/* SPDX-License-Identifier: MIT */
#include "guard/trial.h"

#include "guard/scan.h"
#include "host/process.h"
#include "host/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* As round.c does it. `file`: the child has it open. */
static const char *stop_child(pid_t child, int file)
{
	struct process_ref process;
	struct sought sought = {0};
	struct stat st;
	int error;

	if (fstat(file, &st) < 0)
		return explain_failure("fstat", errno);
	sought.ino = st.st_ino;
	if (scan_process(child, "", compare, &sought) < 0)
		return explain_failure("the files of a process cannot be read in /proc", errno);
	if (!sought.found)
		return "/proc does not show which file a process has open";
	if (!process_open(child, &process))
		return explain_failure("a process cannot be told from others", errno);
	error = process_signal(&process, SIGKILL);
	process_close(&process);
	return error ? explain_failure("a process cannot be signalled", error) : NULL;
}

/* It ends, at the latest, when the pipe has no writer. */
static _Noreturn void wait_for_end(const int fds[2])
{
	char byte;

	signals_unblock_all();
	close(fds[1]);
	(void)!read(fds[0], &byte, 1);
	_exit(0);
}

const char *trial_stop(void)
{
	const char *why;
	int fds[2], status;
	pid_t child;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return explain_failure("pipe2", errno);
	child = fork();
	if (child == 0)
		wait_for_end(fds);
	why = child < 0 ? explain_failure("fork", errno) : stop_child(child, fds[0]);
	close(fds[0]);
	close(fds[1]);
	if (child > 0 && waitpid(child, &status, 0) == child && !why && !WIFSIGNALED(status))
		why = "a process outlives SIGKILL";
	return why;
}
