/* SPDX-License-Identifier: MIT
 *
 * keeper_run.c - see keeper_run.h.
 *
 *   [STARTS] ──the daemon serves──► [IN_SERVICE] ──it leaves, or is unmounted──► [LEAVING]
 *       │                            ▲    │                                         │
 *       │                     serves │    │ ended by a signal                       │
 *       │                            │    ▼                                         │
 *       │                          [RESTARTS] ──the lease is over──► [KILLED]       │
 *       │                            │    │                             │           │
 *       │        ended by a signal ──┘    │ ended with a status         │           │
 *       ▼                                 ▼                             ▼           ▼
 *   the daemon has ended, and no other one is started: the keeper closes its copies of the
 *   descriptors, so that the kernel ends the connection and the guardian goes by the lease; then
 *   the keeper ends as the daemon did
 *
 *   [IN_SERVICE] ──another program is to take over──► [RELOADS] ──it serves──► [IN_SERVICE]
 *                                                         └──it ends, or hangs──► [RESTARTS]
 *
 * The keeper does little, and nothing that waits, so that it is there when the daemon is not.
 */
#include "daemon/keeper_run.h"

#include "host/clock.h"
#include "host/log.h"
#include "host/memory.h"
#include "host/signals.h"
#include "setup/options.h"
#include "setup/ready.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* With so many crashes within a session timeout no daemon is started any more. */
#define CRASHES_MAX 3
/* For another program to serve, when less than the first is half of the lease. */
#define RELOAD_MIN_US 500000
#define RELOAD_US 60000000

struct gift {
	int fd;     /* -1: not given, or closed */
	int number; /* of the daemon's own descriptor */
};

struct keeper {
	const struct keeper_config *config;
	enum keeper_stage {
		KEEPER_STARTS,
		KEEPER_IN_SERVICE,
		KEEPER_RELOADS,
		KEEPER_RESTARTS,
		KEEPER_KILLED,
		KEEPER_LEAVING,
	} stage;
	pid_t daemon;
	int socket; /* -1: the daemon has closed its end */
	int signals;
	struct gift gifts[KEEPER_GIFTS];
	int64_t until_us; /* RELOADS, RESTARTS: it must serve by then */
	/* Since it served last: */
	int crash;                         /* how it ended, as wait(2) says it, */
	int64_t ended_us;                  /*   and when */
	uint64_t crashed_by;               /* the request that was being served; 0: none */
	int64_t crashes_us[CRASHES_MAX];   /* when; the newest first */
	char oom_score[MEMORY_SCORE_SIZE]; /* for the daemon */
};

/* ---- what the daemon says ---- */

static void keep_gift(struct keeper *keeper, const struct keeper_word *word, int fd)
{
	struct gift *gift = &keeper->gifts[word->gift];

	if (gift->fd >= 0)
		close(gift->fd);
	*gift = (struct gift){.fd = fd, .number = word->number};
}

/* Closes all copies: so the daemon's own close at its end has its effect. */
static void return_gifts(struct keeper *keeper)
{
	for (int i = 0; i < KEEPER_GIFTS; i++) {
		if (keeper->gifts[i].fd >= 0)
			close(keeper->gifts[i].fd);
		keeper->gifts[i].fd = -1;
	}
}

static int64_t lease_left(const struct keeper *keeper, int64_t now_us)
{
	int64_t deadline_us = store_deadline(keeper->config->store);

	return deadline_us > now_us ? deadline_us - now_us : 0;
}

/* A program is to serve within that time, or within a minute if it is too short: without a lease
 * nothing is lost meanwhile, and a busy machine may be slow. */
static int64_t limit_by(int64_t now_us, int64_t lease_us)
{
	return now_us + (lease_us > RELOAD_MIN_US ? lease_us : RELOAD_US);
}

static void hear_word(struct keeper *keeper, const struct keeper_word *word, int fd)
{
	int64_t now_us = clock_now_us();

	switch (word->word) {
	case KEEPER_HAS:
		if (fd >= 0 && word->gift >= 0 && word->gift < KEEPER_GIFTS)
			keep_gift(keeper, word, fd);
		return;
	case KEEPER_SERVES:
		if (keeper->stage == KEEPER_STARTS) {
			(void)ready_detach();
			ready_tell();
		}
		keeper->stage = KEEPER_IN_SERVICE;
		return;
	case KEEPER_MAKES_WAY:
		keeper->stage = KEEPER_RELOADS;
		/* The second half of the lease is for the program before. */
		keeper->until_us = limit_by(now_us, lease_left(keeper, now_us) / 2);
		return;
	case KEEPER_LEAVES:
		keeper->stage = KEEPER_LEAVING;
		return_gifts(keeper);
		ready_stopping();
		return;
	}
}

/* 1: *ret_word, and *ret_fd or -1; 0: there is no word now; -1: there will be none any more. */
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

static void close_socket(struct keeper *keeper)
{
	if (keeper->socket >= 0)
		close(keeper->socket);
	keeper->socket = -1;
}

static void listen_to_daemon(struct keeper *keeper)
{
	struct keeper_word word;
	int fd, r = 0;

	while (keeper->socket >= 0 && (r = receive_word(keeper->socket, &word, &fd)) > 0)
		hear_word(keeper, &word, fd);
	if (r < 0)
		close_socket(keeper);
}

/* ---- the end ---- */

/* Ends this process as the daemon ended, for the process that waits for it. */
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

/* ---- a new daemon ---- */

/* One more crash; returns how many there were within a session timeout. */
static int count_crash(struct keeper *keeper, int64_t now_us)
{
	int count = 0;

	memmove(keeper->crashes_us + 1, keeper->crashes_us,
	        (CRASHES_MAX - 1) * sizeof(keeper->crashes_us[0]));
	keeper->crashes_us[0] = now_us;
	for (int i = 0; i < CRASHES_MAX; i++)
		count += now_us - keeper->crashes_us[i] < keeper->config->session_timeout_us;
	return count;
}

/* Why no daemon can go on, whichever program it is; NULL: one may. */
static const char *why_nobody_can(const struct keeper *keeper, int64_t now_us)
{
	const struct store *store = keeper->config->store;

	if (keeper->gifts[KEEPER_DEVICE].fd < 0 || keeper->gifts[KEEPER_PROGRAM].fd < 0)
		return "the keeper lacks what a new daemon needs";
	if (store_spoilt(store))
		return "the daemon's record is incomplete";
	/* Another program that fails without a lease costs nothing: the former one goes on. */
	if (keeper->stage == KEEPER_RELOADS || lease_left(keeper, now_us) > 0)
		return NULL;
	return store_elsewhere(store) ? STORE_ELSEWHERE : "the lease is over";
}

/* As the daemon ended, or as store_elsewhere() says. */
static _Noreturn void lose_mount(struct keeper *keeper)
{
	return_gifts(keeper);
	end_as(store_elsewhere(keeper->config->store) ? W_EXITCODE(EXIT_USAGE, 0) : keeper->crash);
}

/* Why the program that a signal has ended is not started again; NULL: it is. */
static const char *why_not_again(struct keeper *keeper, int64_t now_us)
{
	uint64_t before = keeper->crashed_by;
	int crashes = count_crash(keeper, now_us);

	keeper->crashed_by = store_serving(keeper->config->store);
	if (before != 0 && keeper->crashed_by == before)
		return "the same request has ended two daemons";
	return crashes < CRASHES_MAX ? NULL : "too many crashes within the session timeout";
}

/* Puts each descriptor under its number. A descriptor that has the number of another one would be
 * closed by that: so all are moved out of the way first. False: errno. */
static bool place_gifts(struct keeper *keeper, int *sources[], size_t count)
{
	int above = STDERR_FILENO;

	for (int i = 0; i < KEEPER_GIFTS; i++)
		if (keeper->gifts[i].fd >= 0 && keeper->gifts[i].number > above)
			above = keeper->gifts[i].number;
	for (size_t i = 0; i < count; i++) {
		*sources[i] = fcntl(*sources[i], F_DUPFD, above + 1);
		if (*sources[i] < 0)
			return false;
	}
	for (int i = 0; i < KEEPER_GIFTS; i++) {
		struct gift *gift = &keeper->gifts[i];

		if (gift->fd < 0)
			continue;
		gift->fd = fcntl(gift->fd, F_DUPFD_CLOEXEC, above + 1);
		if (gift->fd < 0)
			return false;
	}
	for (int i = 0; i < KEEPER_GIFTS; i++)
		if (keeper->gifts[i].number >= 0 &&
		    dup2(keeper->gifts[i].fd, keeper->gifts[i].number) < 0)
			return false;
	return true;
}

static _Noreturn void fail_to_start(const char *call)
{
	log_line(LC_ERROR, "the daemon cannot be started again: %s: %s", call, strerror(errno));
	_exit(1);
}

static _Noreturn void be_the_daemon(struct keeper *keeper, int socket)
{
	int store = store_fd(keeper->config->store);
	int *passed[] = {&socket, &store};
	char text[64];

	(void)prctl(PR_SET_DUMPABLE, 1); /* /proc/self is root's otherwise */
	memory_set_score(keeper->oom_score);
	signal(SIGPIPE, SIG_DFL);
	if (!place_gifts(keeper, passed, 2))
		fail_to_start("dup2");
	snprintf(text, sizeof(text), "%d:%d:%" PRId64, socket, WTERMSIG(keeper->crash),
	         keeper->ended_us);
	setenv(KEEPER_ENVIRONMENT, text, 1);
	snprintf(text, sizeof(text), "%d", store);
	setenv(KEEPER_ENVIRONMENT_STORE, text, 1);
	fexecve(keeper->gifts[KEEPER_PROGRAM].fd, keeper->config->argv, environ);
	fail_to_start("fexecve");
}

/* NULL, or why the daemon cannot be started. */
static const char *start_daemon(struct keeper *keeper)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		return strerror(errno);
	keeper->daemon = fork();
	if (keeper->daemon == 0)
		be_the_daemon(keeper, fds[1]);
	close(fds[1]);
	if (keeper->daemon < 0) {
		close(fds[0]);
		return strerror(errno);
	}
	close_socket(keeper);
	keeper->socket = fds[0];
	return NULL;
}

static void say_what_ended(const struct keeper *keeper)
{
	if (keeper->stage == KEEPER_RELOADS)
		log_line(LC_ERROR, "the new program does not serve: the former one is "
		                   "started again");
	else
		log_line(LC_ERROR, "the daemon was ended by signal %d: it is started again",
		         WTERMSIG(keeper->crash));
}

/* The daemon, which served or was to, has ended. */
static void go_on(struct keeper *keeper, int status)
{
	int64_t now_us = clock_now_us();
	const char *why = why_nobody_can(keeper, now_us);

	/* Another program's end is no crash of this one. */
	if (!why && keeper->stage != KEEPER_RELOADS)
		why = why_not_again(keeper, now_us);
	keeper->ended_us = now_us;
	keeper->crash = WIFSIGNALED(status) ? status : SIGABRT;
	if (!why) {
		say_what_ended(keeper);
		/* The next one may end before it serves a request. */
		store_set_serving(keeper->config->store, 0);
		keeper->until_us = keeper->stage == KEEPER_RELOADS
		                           ? limit_by(now_us, lease_left(keeper, now_us))
		                           : store_deadline(keeper->config->store);
		keeper->stage = KEEPER_RESTARTS;
		why = start_daemon(keeper);
	}
	if (!why)
		return;
	log_line(LC_ERROR, "the daemon was ended by signal %d, and the mount is lost: %s",
	         WTERMSIG(keeper->crash), why);
	lose_mount(keeper);
}

static void daemon_ended(struct keeper *keeper, int status)
{
	bool crashed = WIFSIGNALED(status);

	listen_to_daemon(keeper); /* its last words */
	switch (keeper->stage) {
	case KEEPER_RELOADS:
		go_on(keeper, status);
		return;
	case KEEPER_IN_SERVICE:
	case KEEPER_RESTARTS:
		if (crashed) {
			go_on(keeper, status);
			return;
		}
		if (keeper->stage == KEEPER_IN_SERVICE)
			break;
		log_line(LC_ERROR,
		         "the daemon ended with status %d instead of going on: the mount is lost",
		         WEXITSTATUS(status));
		status = keeper->crash;
		break;
	case KEEPER_KILLED:
		status = keeper->crash;
		break;
	case KEEPER_STARTS:
	case KEEPER_LEAVING:
		break;
	}
	return_gifts(keeper);
	end_as(status);
}

/* In a container this process also gets the children of processes that have ended. */
static void reap_processes(struct keeper *keeper)
{
	int status, daemon_status = 0;
	bool ended = false;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == keeper->daemon) {
			ended = true;
			daemon_status = status;
		}
	if (ended)
		daemon_ended(keeper, daemon_status);
}

/* ---- signals and time ---- */

/* To the daemon's thread: a signal that somebody sends to its process is pending apart from that,
 * and the kernel does not make one of the two, which keeper_repeats() expects. */
static void pass_signals(struct keeper *keeper)
{
	struct signalfd_siginfo info;

	while (read(keeper->signals, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			tgkill(keeper->daemon, keeper->daemon, (int)info.ssi_signo);
}

/* The daemon must serve until then. */
static bool has_limit(const struct keeper *keeper)
{
	return keeper->stage == KEEPER_RELOADS || keeper->stage == KEEPER_RESTARTS;
}

/* For poll(2). */
static int wait_ms(const struct keeper *keeper)
{
	int64_t left = keeper->until_us - clock_now_us();

	if (!has_limit(keeper))
		return -1;
	return left <= 0 ? 0 : left >= 1000000 ? 1000 : (int)(left / 1000 + 1);
}

static void enforce_limit(struct keeper *keeper)
{
	if (!has_limit(keeper) || clock_now_us() < keeper->until_us)
		return;
	kill(keeper->daemon, SIGKILL);
	keeper->until_us = INT64_MAX; /* its end is heard of */
	if (keeper->stage == KEEPER_RELOADS)
		return;
	log_line(LC_ERROR, "the daemon does not serve before its lease ends: the mount is lost");
	keeper->stage = KEEPER_KILLED;
	return_gifts(keeper);
}

/* ---- the process ---- */

/* `killall zklockfs` and the OOM killer are to end the daemon, not the keeper. */
static void stand_aside(struct keeper *keeper)
{
	memory_read_score(keeper->oom_score);
	memory_set_score("-1000");
	prctl(PR_SET_NAME, "zklockfs-keeper");
	(void)prctl(PR_SET_DUMPABLE, 0); /* it has the daemon's descriptors */
}

_Noreturn void keeper_run(const struct keeper_config *config, pid_t daemon, int socket)
{
	struct keeper keeper = {.config = config, .daemon = daemon, .socket = socket};

	for (int i = 0; i < KEEPER_GIFTS; i++)
		keeper.gifts[i] = (struct gift){-1, -1};
	for (int i = 0; i < CRASHES_MAX; i++)
		keeper.crashes_us[i] = INT64_MIN / 2;
	stand_aside(&keeper);
	ready_leave_session();
	signal(SIGPIPE, SIG_IGN);
	keeper.signals = signals_open();
	if (keeper.signals < 0) { /* it would not hear of the daemon's end */
		log_line(LC_ERROR, "cannot start: signalfd: %s", strerror(-keeper.signals));
		kill(daemon, SIGKILL);
		end_as(W_EXITCODE(EXIT_MOUNT, 0));
	}
	for (;;) {
		struct pollfd fds[2] = {{.fd = keeper.signals, .events = POLLIN},
		                        {.fd = keeper.socket, .events = POLLIN}};
		int n = poll(fds, 2, wait_ms(&keeper));

		if (n > 0 && fds[1].revents)
			listen_to_daemon(&keeper);
		if (n > 0 && fds[0].revents) {
			pass_signals(&keeper);
			reap_processes(&keeper);
		}
		enforce_limit(&keeper);
	}
}
