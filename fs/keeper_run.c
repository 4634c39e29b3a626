/* SPDX-License-Identifier: MIT
 *
 * keeper_run.c - see keeper_run.h.
 *
 *   [STARTS] ──the daemon serves──► [SERVES] ──it leaves, or is unmounted──► [LEAVES]
 *       │                               │                                        │
 *       └───────────────────────────────┴──────────the daemon has ended──────────┘
 *                                       ▼
 *                          all is given back, and the keeper ends as it did
 *
 * It does little, and nothing that waits: it is there when the daemon is not.
 */
#include "keeper_run.h"

#include "keeper.h"
#include "ready.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct gift {
	int fd;     /* -1: not given, or given back */
	int number; /* of the daemon's own */
};

struct keeper {
	enum { KEEPER_STARTS, KEEPER_IN_SERVICE, KEEPER_LEAVING } stage;
	pid_t daemon;
	int socket; /* -1: the daemon has closed its end */
	int signals;
	struct gift gifts[KEEPER_GIFTS];
};

/* ---- what the daemon says ---- */

static void keep_gift(struct keeper *keeper, const struct keeper_word *word, int fd)
{
	struct gift *gift = &keeper->gifts[word->gift];

	if (gift->fd >= 0)
		close(gift->fd);
	*gift = (struct gift){.fd = fd, .number = word->number};
}

/* The daemon closes them at its end, and that must have its effect. */
static void return_gifts(struct keeper *keeper)
{
	for (int i = 0; i < KEEPER_GIFTS; i++) {
		if (keeper->gifts[i].fd >= 0)
			close(keeper->gifts[i].fd);
		keeper->gifts[i].fd = -1;
	}
}

static void hear_word(struct keeper *keeper, const struct keeper_word *word, int fd)
{
	switch (word->word) {
	case KEEPER_HAS:
		if (fd >= 0 && word->gift >= 0 && word->gift < KEEPER_GIFTS)
			keep_gift(keeper, word, fd);
		return;
	case KEEPER_SERVES:
		keeper->stage = KEEPER_IN_SERVICE;
		(void)ready_detach();
		ready_tell();
		return;
	case KEEPER_LEAVES:
		keeper->stage = KEEPER_LEAVING;
		return_gifts(keeper);
		ready_stopping();
		return;
	}
}

/* 1: *ret_word, and *ret_fd or -1; 0: nothing now; -1: nothing any more. */
static int receive_word(int socket, struct keeper_word *ret_word, int *ret_fd)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = ret_word, .iov_len = sizeof(*ret_word)};
	struct msghdr message = {.msg_iov = &iov,
	                         .msg_iovlen = 1,
	                         .msg_control = &control,
	                         .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *header;

	if (n != (ssize_t)sizeof(*ret_word))
		return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
	header = CMSG_FIRSTHDR(&message);
	*ret_fd = -1;
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
		memcpy(ret_fd, CMSG_DATA(header), sizeof(*ret_fd));
	return 1;
}

static void listen_to_daemon(struct keeper *keeper)
{
	struct keeper_word word;
	int fd, r = keeper->socket >= 0 ? 1 : 0;

	while (r > 0) {
		r = receive_word(keeper->socket, &word, &fd);
		if (r > 0)
			hear_word(keeper, &word, fd);
	}
	if (r == 0)
		return;
	close(keeper->socket);
	keeper->socket = -1;
}

/* ---- the end ---- */

/* As the daemon did, for whoever waits for this process. */
static _Noreturn void end_as(int status)
{
	int number = WTERMSIG(status);
	sigset_t set;

	if (WIFEXITED(status)) {
		ready_fail(WEXITSTATUS(status));
		_exit(WEXITSTATUS(status));
	}
	signal(number, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, number);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	_exit(128 + number); /* the first process of a container is ended by no signal of its own */
}

static void reap_daemon(struct keeper *keeper)
{
	int status, ended_status = 0;
	bool ended = false;
	pid_t pid;

	/* In a container also those whose parents have ended. */
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == keeper->daemon) {
			ended = true;
			ended_status = status;
		}
	if (!ended)
		return;
	listen_to_daemon(keeper); /* what it said last */
	return_gifts(keeper);
	end_as(ended_status);
}

/* ---- signals ---- */

static void pass_signals(struct keeper *keeper)
{
	struct signalfd_siginfo info;

	while (read(keeper->signals, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			kill(keeper->daemon, (int)info.ssi_signo);
}

/* ---- the process ---- */

/* Whoever ends processes by their name, or for want of memory, means the daemon. */
static void stand_aside(void)
{
	static const char least[] = "-1000";
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	prctl(PR_SET_NAME, "zklock-keeper");
	if (fd < 0)
		return;
	(void)!write(fd, least, strlen(least)); /* root alone may */
	close(fd);
}

_Noreturn void keeper_run(pid_t daemon, int socket)
{
	struct keeper keeper = {.daemon = daemon, .socket = socket};
	sigset_t set;

	for (int i = 0; i < KEEPER_GIFTS; i++)
		keeper.gifts[i].fd = -1;
	stand_aside();
	signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_DUMPABLE, 0); /* it has what the daemon has */
	sigprocmask(SIG_SETMASK, NULL, &set);
	keeper.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	for (;;) {
		struct pollfd fds[2] = {{.fd = keeper.signals, .events = POLLIN},
		                        {.fd = keeper.socket, .events = POLLIN}};

		if (keeper.signals < 0 || poll(fds, 2, -1) < 0)
			continue;
		if (fds[1].revents)
			listen_to_daemon(&keeper);
		if (fds[0].revents) {
			pass_signals(&keeper);
			reap_daemon(&keeper);
		}
	}
}
