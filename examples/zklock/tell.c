/* SPDX-License-Identifier: MIT */
#include "tell.h"

#include "clean.h"

#include <err.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
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

struct child tell_start(const struct take *take, void (*work)(const void *), const void *context)
{
	pid_t parent = getpid();
	struct child teller;

	if (child_fork(&teller) == 0)
		become_teller(take, parent, work, context);
	return teller;
}

void tell_stop(struct child *teller)
{
	if (teller->pid <= 0)
		return;
	kill(teller->pid, SIGKILL);
	if (child_await(teller, WAIT_MS)) /* it may hang in the mount */
		waitpid(teller->pid, NULL, 0);
	child_close(teller);
}

void tell_by(const struct take *take, void (*work)(const void *), const void *context)
{
	struct pollfd pollfd = {.fd = STDERR_FILENO, .events = POLLOUT};
	struct child teller = tell_start(take, work, context);
	static bool in_vain;

	if (teller.pid < 0) {
		if (poll(&pollfd, 1, 0) == 1)
			work(context);
		return;
	}
	in_vain |= !child_await(&teller, in_vain ? IN_VAIN_MS : WAIT_MS);
	tell_stop(&teller);
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
