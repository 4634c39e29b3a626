/* SPDX-License-Identifier: MIT */
#include "tell.h"

#include "clean.h"
#include "span.h"

#include <err.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 1000
#define IN_VAIN_MS 50

static void become_teller(const struct take *take, pid_t parent, void (*work)(const void *),
                          const void *context)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1);
	for (size_t i = 0; i < take->count; i++)
		if (take->locks[i].fd >= 0)
			close(take->locks[i].fd);
	work(context);
	_exit(0);
}

pid_t tell_start(const struct take *take, void (*work)(const void *), const void *context)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0)
		become_teller(take, parent, work, context);
	return pid;
}

/* Whether it has ended within that time. */
static bool await(pid_t pid, int wait_ms)
{
	int64_t until = span_now_ms() + wait_ms, left;
	struct pollfd pollfd = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	bool ended = false;

	while (!ended && (left = until - span_now_ms()) > 0)
		ended = poll(&pollfd, 1, (int)left) == 1;
	if (pollfd.fd >= 0)
		close(pollfd.fd);
	return ended;
}

void tell_stop(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGKILL);
	await(pid, WAIT_MS); /* it may hang in the mount */
	waitpid(pid, NULL, WNOHANG);
}

void tell_by(const struct take *take, void (*work)(const void *), const void *context)
{
	struct pollfd pollfd = {.fd = STDERR_FILENO, .events = POLLOUT};
	pid_t pid = tell_start(take, work, context);
	static bool in_vain;

	if (pid < 0) {
		if (poll(&pollfd, 1, 0) == 1)
			work(context);
		return;
	}
	in_vain |= !await(pid, in_vain ? IN_VAIN_MS : WAIT_MS);
	tell_stop(pid);
}

static void write_line(const void *line)
{
	warnx("%s", (const char *)line);
}

void tell(const struct take *take, const char *format, ...)
{
	char line[CLEAN_MAX * 2];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	tell_by(take, write_line, line);
}
