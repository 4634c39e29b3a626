/* SPDX-License-Identifier: MIT
 *
 * tell.c - see tell.h.
 */
#include "tell.h"

#include "clean.h"

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

struct teller tell_start(const struct take *take, void (*work)(const void *), const void *context)
{
	struct teller teller = {.fd = -1};
	pid_t parent = getpid();

	teller.pid = fork();
	if (teller.pid == 0)
		become_teller(take, parent, work, context);
	if (teller.pid > 0)
		teller.fd = (int)syscall(SYS_pidfd_open, teller.pid, 0);
	return teller;
}

void tell_end(struct teller *teller, int wait_ms)
{
	struct pollfd pollfd = {.fd = teller->fd, .events = POLLIN};

	if (teller->fd < 0)
		return;
	if (poll(&pollfd, 1, wait_ms) == 0)
		syscall(SYS_pidfd_send_signal, teller->fd, SIGKILL, NULL, 0);
	waitpid(teller->pid, NULL, WNOHANG); /* it may hang in the mount */
	close(teller->fd);
	*teller = (struct teller){.fd = -1};
}

static void write_line(const void *line)
{
	warnx("%s", (const char *)line);
}

void tell(const struct take *take, const char *format, ...)
{
	static bool in_vain;
	char line[CLEAN_MAX * 2];
	struct teller teller;
	struct pollfd pollfd;
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	teller = tell_start(take, write_line, line);
	if (teller.pid < 0) {
		pollfd = (struct pollfd){.fd = STDERR_FILENO, .events = POLLOUT};
		if (poll(&pollfd, 1, 0) == 1)
			write_line(line);
		return;
	}
	pollfd = (struct pollfd){.fd = teller.fd, .events = POLLIN};
	if (!in_vain && teller.fd >= 0 && poll(&pollfd, 1, WAIT_MS) == 0)
		in_vain = true;
	if (teller.fd >= 0)
		close(teller.fd);
	waitpid(teller.pid, NULL, WNOHANG);
}
