// SPDX-License-Identifier: MIT
/*
 * leader.c - run a command on one host of many, for as long as this host leads.
 *
 *	cc -o leader leader.c
 *	./leader [-y SECONDS] LOCK COMMAND [ARGUMENT...]
 *
 * `zklock LOCK -- COMMAND` does it better for most: it also stops what the command has
 * started. This shows how it is done. leader.py does the same.
 *
 * Start it on every host: the first in the queue leads, the others wait to take over. The
 * command finds the fencing token in $TOKEN. poll(2) on the descriptor reports when the lock
 * is lost: the command is killed at once and this host queues again. With -y it also steps
 * down cleanly when it has led for SECONDS and another taker waits. It passes SIGHUP, SIGINT
 * and SIGTERM on to the command, and ends when the command ends by itself, with its status.
 * When it cannot lead it ends with 77 (no permission), 75 (evicted while it waited), or 69 (no
 * such lock, nothing is mounted).
 *
 * Nobody may work without somebody who looks at the lock. So the command is killed when this
 * process dies (PR_SET_PDEATHSIG); but not processes that the command has started, and not the
 * command itself if it is set-user-ID, has capabilities or changes its user, or if the thread
 * that started it ends before the process. The command has the descriptor as well, so the lock
 * stays taken as long as any of these live.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

static const int passed_on[] = {SIGHUP, SIGINT, SIGTERM};
static volatile pid_t child; /* the command; its number is its own until it is waited for */

static volatile sig_atomic_t asked; /* to end */

static void send_signal(int number)
{
	kill(child, number);
}

static void pass_on(int number)
{
	int before = errno;

	if (number != SIGHUP)
		asked = 1;
	send_signal(number);
	errno = before;
}

/* The first process of a container gets no signal without a handler. */
static void end_at_once(int number)
{
	_exit(128 + number);
}

static void on_signals(void (*handler)(int))
{
	for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
		signal(passed_on[i], handler);
}

static int status_of(int error)
{
	switch (error) {
	case ECANCELED:
		return EX_TEMPFAIL;
	case EACCES:
		return EX_NOPERM;
	default:
		return EX_UNAVAILABLE;
	}
}

/* The lock, open, and its token; -1: lost at once. */
static int take(const char *path, char token[static 64])
{
	int lock_file = open(path, O_RDWR); /* waits for its turn */
	ssize_t length = lock_file < 0 ? 0 : read(lock_file, token, 63);

	if (lock_file < 0)
		err(status_of(errno), "%s", path);
	if (length < 0) {
		close(lock_file);
		return -1;
	}
	token[length] = '\0';
	if (strspn(token, "0123456789") == 0)
		errx(EX_UNAVAILABLE, "%s: no token: is the filesystem mounted?", path);
	token[strcspn(token, "\n")] = '\0';
	return lock_file;
}

static _Noreturn void run(char **command, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it has died before */
		raise(SIGKILL);
	execvp(command[0], command);
	err(127, "%s", command[0]);
}

/* Starts the command with the token in its environment; a pidfd to poll. */
static int start(char **command, int lock_file, const char *token)
{
	setenv("TOKEN", token, 1);
	dprintf(lock_file, "leader: %s\n", command[0]);
	printf("leading with token %s\n", token);
	fflush(stdout);

	pid_t parent = getpid();
	pid_t pid = fork();
	if (pid == 0)
		run(command, parent);
	if (pid < 0)
		err(EX_OSERR, "fork");
	int end = (int)syscall(SYS_pidfd_open, pid, 0);
	if (end < 0)
		err(EX_OSERR, "pidfd_open");
	child = pid;
	on_signals(pass_on);
	return end;
}

/* One term of office: the command's status, or -1 if it did not end by itself. */
static int lead(const char *path, char **command, int term_ms)
{
	char token[64];
	int lock_file = take(path, token);
	if (lock_file < 0)
		return -1;
	int end = start(command, lock_file, token);

	/* POLLERR and POLLHUP are told without being asked for. */
	struct pollfd fds[] = {
		{.fd = end, .events = POLLIN},
		{.fd = lock_file},
	};
	const char *why = NULL;
	for (;;) {
		int count = poll(fds, 2, term_ms);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			err(EX_OSERR, "poll");
		if (count == 0) {
			term_ms = -1;
			fds[1].events = POLLPRI; /* tells of those who wait, from now on */
			continue;
		}
		if (fds[0].revents)
			break;
		if (fds[1].revents & (POLLERR | POLLHUP)) {
			why = "lost";
			send_signal(SIGKILL); /* somebody else may lead in a moment */
			fds[1].fd = -1;
		} else if (fds[1].revents & POLLPRI) {
			why = "wanted by others";
			send_signal(SIGTERM); /* still ours: there is time for good order */
			fds[1].events = 0;
		}
	}
	on_signals(end_at_once); /* it has ended: there is nobody to pass them on to */
	int status;
	waitpid(child, &status, 0);
	close(end);
	close(lock_file);
	if (why && !asked) {
		printf("stepped down: %s\n", why);
		fflush(stdout);
		return -1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	int term_ms = -1;
	if (argc > 2 && !strcmp(argv[1], "-y")) {
		term_ms = (int)(strtod(argv[2], NULL) * 1000);
		argv += 2;
		argc -= 2;
	}
	if (argc < 3)
		errx(EX_USAGE, "usage: leader [-y SECONDS] LOCK COMMAND [ARGUMENT...]");
	char path[4096];
	if (snprintf(path, sizeof(path), "%s/lock", argv[1]) >= (int)sizeof(path))
		errx(EX_USAGE, "%s: too long", argv[1]);
	int status;
	on_signals(end_at_once);
	do
		status = lead(path, argv + 2, term_ms);
	while (status < 0);
	return status;
}
