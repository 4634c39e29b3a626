// SPDX-License-Identifier: MIT
/*
 * leader.c - run a command on one host of many, for as long as this host leads.
 *
 *	cc -o leader leader.c
 *	./leader [-y SECONDS] LOCK COMMAND [ARGUMENT...]
 *
 * Start it on every host: the first in the queue leads, the others wait to take over. The
 * command finds the fencing token in $TOKEN. poll(2) on the descriptor reports when the lock
 * is lost: the command is killed at once and this host queues again. With -y it also steps
 * down cleanly when it has led for SECONDS and another taker waits. It ends when the
 * command ends by itself, with its status. leader.py does the same.
 *
 * The command has the descriptor as well. So if this process is killed alone, the lock stays
 * taken until the command has ended.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

static void send_signal(int child, int number)
{
	syscall(SYS_pidfd_send_signal, child, number, NULL, 0);
}

/* Starts the command with the token in its environment; its pid, and a pidfd to poll. */
static pid_t start(char **command, int door, int *ret_child)
{
	char token[32];
	ssize_t length = read(door, token, sizeof(token) - 1);
	if (length <= 0)
		err(EX_IOERR, "read");
	token[strcspn(token, "\n")] = token[length] = '\0';
	setenv("TOKEN", token, 1);
	if (dprintf(door, "leader: %s\n", command[0]) < 0)
		err(EX_IOERR, "write");
	printf("leading with token %s\n", token);
	fflush(stdout);

	pid_t pid = fork();
	if (pid == 0) {
		execvp(command[0], command);
		err(127, "%s", command[0]);
	}
	*ret_child = pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
	if (*ret_child < 0)
		err(EX_OSERR, "fork");
	return pid;
}

/* One term of office: the command's status, or -1 if it did not end by itself. */
static int lead(const char *path, char **command, int term_ms)
{
	int door = open(path, O_RDWR); /* waits for its turn */
	if (door < 0)
		err(EX_TEMPFAIL, "%s", path);
	int child;
	pid_t pid = start(command, door, &child);

	/* POLLERR and POLLHUP are told without being asked for. */
	struct pollfd fds[] = {
		{.fd = child, .events = POLLIN},
		{.fd = door},
	};
	const char *why = NULL;
	for (;;) {
		int count = poll(fds, 2, term_ms);
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
			send_signal(child, SIGKILL); /* somebody else may lead in a moment */
			fds[1].fd = -1;
		} else if (fds[1].revents & POLLPRI) {
			why = "wanted by others";
			send_signal(child, SIGTERM); /* still ours: there is time for good order */
			fds[1].events = 0;
		}
	}
	int status;
	waitpid(pid, &status, 0);
	close(child);
	close(door);
	if (why) {
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
	do
		status = lead(path, argv + 2, term_ms);
	while (status < 0);
	return status;
}
