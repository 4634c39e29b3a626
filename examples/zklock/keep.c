/* SPDX-License-Identifier: MIT */
#include "keep.h"

#include "span.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Descriptors of the caller, a pipe of ssh or a lock of cron, must not live on in here. */
static void close_others(const struct pollfd *fds, size_t count)
{
	unsigned low = 3;

	for (;;) {
		unsigned next = ~0U;

		for (size_t i = 0; i < count; i++)
			if ((unsigned)fds[i].fd >= low && (unsigned)fds[i].fd < next)
				next = (unsigned)fds[i].fd;
		if (next > low)
			close_range(low, next - 1, 0);
		if (next == ~0U)
			return;
		low = next + 1;
	}
}

static void drop_standard_files(void)
{
	int null = open("/dev/null", O_RDWR);

	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
}

/* The command has ended: its own reason would look as if it was still at work. */
static void tell_why(const struct take *take, const struct pollfd *doors, int64_t until_ms)
{
	char text[REASON_MAX + 1], when[40];
	time_t until = time(NULL) + (until_ms - span_now_ms() + 999) / 1000;
	struct tm tm;

	gmtime_r(&until, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	snprintf(text, sizeof(text), "kept until %s, the command has ended: %.3000s", when,
	         take->reason ? take->reason : "-");
	for (size_t i = 0; i < take->count; i++)
		if (doors[i].fd >= 0 && pwrite(doors[i].fd, text, strlen(text), 0) < 0)
			continue; /* lost, as poll is about to tell */
}

/* fds: the doors, the command's end, the time. */
static void keep(const struct take *take, struct pollfd *fds, int64_t until_ms)
{
	struct pollfd *command = &fds[take->count], *alarm = &fds[take->count + 1];
	size_t left = take->count;

	while (left > 0 && poll(fds, take->count + 2, -1) >= 0) {
		if (alarm->revents)
			return;
		for (size_t i = 0; i < take->count; i++) {
			if (fds[i].fd < 0 || !(fds[i].revents & (POLLERR | POLLHUP | POLLNVAL)))
				continue;
			close(fds[i].fd);
			fds[i].fd = -1;
			left--;
		}
		if (command->fd >= 0 && command->revents) {
			close(command->fd);
			command->fd = -1;
			tell_why(take, fds, until_ms);
		}
	}
}

/* Of a session of its own, and nobody's child. */
static void become_keeper(const struct take *take, int command, int64_t until_ms)
{
	struct pollfd *fds = calloc(take->count + 2, sizeof(*fds));
	int alarm = span_alarm(), ready[2];
	sigset_t none;
	char byte;

	if (setsid() < 0 || !fds || alarm < 0 || !span_alarm_at(alarm, until_ms) || pipe(ready) < 0)
		_exit(1);
	switch (fork()) {
	case -1:
		_exit(1);
	case 0:
		break;
	default:
		/* zklock may end as soon as this does: its caller's files are closed by then. */
		close(ready[1]);
		while (read(ready[0], &byte, 1) < 0 && errno == EINTR)
			;
		_exit(0);
	}
	for (size_t i = 0; i < take->count; i++)
		fds[i].fd = take->locks[i].fd;
	fds[take->count] = (struct pollfd){.fd = command, .events = POLLIN};
	fds[take->count + 1] = (struct pollfd){.fd = alarm, .events = POLLIN};
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL); /* to end it is to give the lock back */
	prctl(PR_SET_NAME, "zklock-keeper");
	drop_standard_files();
	close_others(fds, take->count + 2); /* `ready`, too */
	if (chdir("/") == 0)
		keep(take, fds, until_ms);
	_exit(0);
}

int keep_start(const struct take *take, int64_t until_ms)
{
	int ends[2], status;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		close(ends[1]);
		become_keeper(take, ends[0], until_ms);
	}
	close(ends[0]);
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0) {
		close(ends[1]);
		return -1;
	}
	return ends[1];
}
