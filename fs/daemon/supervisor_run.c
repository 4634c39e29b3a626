/* SPDX-License-Identifier: MIT
 *
 * supervisor_run.c - see supervisor_run.h.
 *
 *   [STARTS] ──the daemon serves──► [IN_SERVICE] ──it leaves, or is unmounted──► [LEAVING]
 *       │                            ▲    │                                         │
 *       │                     serves │    │ ended by a signal                       │
 *       │                            │    ▼                                         │
 *       │                          [RESTARTS] ──the lease is over──► [KILLED]       │
 *       │                            │    │                             │           │
 *       │        ended by a signal ──┘    │ ended with a status         │           │
 *       ▼                                 ▼                             ▼           ▼
 *   the daemon has ended, and no other one is started: the supervisor closes its copies of the
 *   descriptors, so that the kernel ends the connection and the guardian goes by the lease; then
 *   the supervisor ends as the daemon did
 *
 *   [IN_SERVICE] ──another program is to take over──► [RELOADS] ──it serves──► [IN_SERVICE]
 *                                                         └──it ends, or hangs──► [RESTARTS]
 *
 * The supervisor does little, and nothing that waits, so that it is there when the daemon is not.
 */
#include "daemon/supervisor_run.h"

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

/* After so many crashes within a session timeout no daemon is started. */
#define CRASHES_MAX 3
/* A limit for another program that would be shorter than this is a minute: limit_by(). */
#define RELOAD_MIN_US 500000
#define RELOAD_US 60000000

struct gift {
	int fd;     /* -1: not given, or closed */
	int number; /* of the daemon's own descriptor */
};

struct supervisor {
	const struct supervisor_config *config;
	enum supervisor_stage {
		SUPERVISOR_STARTS,
		SUPERVISOR_IN_SERVICE,
		SUPERVISOR_RELOADS,
		SUPERVISOR_RESTARTS,
		SUPERVISOR_KILLED,
		SUPERVISOR_LEAVING,
	} stage;
	pid_t daemon;
	int socket; /* -1: the daemon has closed its end */
	int signals;
	struct gift gifts[SUPERVISOR_GIFTS];
	int64_t until_us; /* RELOADS, RESTARTS: it must serve by then */
	/* What is known of the crashes so far: */
	int crash;                         /* how it ended, as wait(2) says it, */
	int64_t ended_us;                  /*   and when */
	uint64_t crashed_by;               /* the request that was being served; 0: none */
	int64_t crashes_us[CRASHES_MAX];   /* when; the newest first */
	char oom_score[MEMORY_SCORE_SIZE]; /* for the daemon */
};

/* ---- what the daemon says ---- */

static void keep_gift(struct supervisor *supervisor, const struct supervisor_word *word, int fd)
{
	struct gift *gift = &supervisor->gifts[word->gift];

	if (gift->fd >= 0)
		close(gift->fd);
	*gift = (struct gift){.fd = fd, .number = word->number};
}

/* Closes all copies of descriptors, so that the daemon's own close at its end takes effect. */
static void return_gifts(struct supervisor *supervisor)
{
	for (int i = 0; i < SUPERVISOR_GIFTS; i++) {
		if (supervisor->gifts[i].fd >= 0)
			close(supervisor->gifts[i].fd);
		supervisor->gifts[i].fd = -1;
	}
}

static int64_t lease_left(const struct supervisor *supervisor, int64_t now_us)
{
	int64_t deadline_us = store_head(supervisor->config->store)->deadline_us;

	return deadline_us > now_us ? deadline_us - now_us : 0;
}

/* The time by which a program must serve: `lease_us` from now. If that is too short, it is a
 * minute from now: without a lease nothing is lost meanwhile, and a busy machine may be slow. */
static int64_t limit_by(int64_t now_us, int64_t lease_us)
{
	return now_us + (lease_us > RELOAD_MIN_US ? lease_us : RELOAD_US);
}

static void hear_word(struct supervisor *supervisor, const struct supervisor_word *word, int fd)
{
	int64_t now_us = clock_now_us();

	switch (word->word) {
	case SUPERVISOR_HAS:
		if (fd >= 0 && word->gift >= 0 && word->gift < SUPERVISOR_GIFTS)
			keep_gift(supervisor, word, fd);
		return;
	case SUPERVISOR_SERVES:
		if (supervisor->stage == SUPERVISOR_STARTS) {
			(void)ready_detach();
			ready_tell();
		}
		supervisor->stage = SUPERVISOR_IN_SERVICE;
		return;
	case SUPERVISOR_MAKES_WAY:
		supervisor->stage = SUPERVISOR_RELOADS;
		/* The former program needs the second half of the lease to go on. */
		supervisor->until_us = limit_by(now_us, lease_left(supervisor, now_us) / 2);
		return;
	case SUPERVISOR_LEAVES:
		supervisor->stage = SUPERVISOR_LEAVING;
		return_gifts(supervisor);
		ready_stopping();
		return;
	}
}

/* 1: *ret_word, and *ret_fd or -1; 0: there is no word now; -1: there will be none any more. */
static int receive_word(int socket, struct supervisor_word *ret_word, int *ret_fd)
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

static void close_socket(struct supervisor *supervisor)
{
	if (supervisor->socket >= 0)
		close(supervisor->socket);
	supervisor->socket = -1;
}

static void listen_to_daemon(struct supervisor *supervisor)
{
	struct supervisor_word word;
	int fd, r = 0;

	while (supervisor->socket >= 0 && (r = receive_word(supervisor->socket, &word, &fd)) > 0)
		hear_word(supervisor, &word, fd);
	if (r < 0)
		close_socket(supervisor);
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

/* Counts a crash. Returns how many there were within a session timeout. */
static int count_crash(struct supervisor *supervisor, int64_t now_us)
{
	int count = 0;

	memmove(supervisor->crashes_us + 1, supervisor->crashes_us,
	        (CRASHES_MAX - 1) * sizeof(supervisor->crashes_us[0]));
	supervisor->crashes_us[0] = now_us;
	for (int i = 0; i < CRASHES_MAX; i++)
		count +=
			now_us - supervisor->crashes_us[i] < supervisor->config->session_timeout_us;
	return count;
}

/* Why no daemon can go on, whichever program it is; NULL: one may. */
static const char *why_nobody_can(const struct supervisor *supervisor, int64_t now_us)
{
	const struct store *store = supervisor->config->store;

	if (supervisor->gifts[SUPERVISOR_DEVICE].fd < 0 ||
	    supervisor->gifts[SUPERVISOR_PROGRAM].fd < 0)
		return "the keeper lacks what a new daemon needs";
	if (store_head(store)->spoilt)
		return "the daemon's record is incomplete";
	/* Another program that fails without a lease costs nothing: the former one goes on. */
	if (supervisor->stage == SUPERVISOR_RELOADS || lease_left(supervisor, now_us) > 0)
		return NULL;
	if (store_head(store)->elsewhere)
		return STORE_ELSEWHERE;
	return store_head(store)->deadline_us == INT64_MIN ? NULL : "the lease is over";
}

/* Ends the supervisor: the mount is lost. The exit status is the daemon's;
 * EXIT_USAGE if the servers are of another ensemble. */
static _Noreturn void lose_mount(struct supervisor *supervisor)
{
	return_gifts(supervisor);
	end_as(store_head(supervisor->config->store)->elsewhere ? W_EXITCODE(EXIT_USAGE, 0)
	                                                        : supervisor->crash);
}

/* Why the program that a signal has ended is not started again; NULL: it is. */
static const char *why_not_again(struct supervisor *supervisor, int64_t now_us)
{
	uint64_t before = supervisor->crashed_by;
	int crashes = count_crash(supervisor, now_us);

	supervisor->crashed_by = store_head(supervisor->config->store)->serving;
	if (before != 0 && supervisor->crashed_by == before)
		return "the same request has ended two daemons";
	return crashes < CRASHES_MAX ? NULL : "too many crashes within the session timeout";
}

/* Puts each descriptor under its number. A descriptor that has the number of another one would be
 * closed by that: so all are moved out of the way first. 0 or -errno. */
static int place_gifts(struct supervisor *supervisor, int *sources[], size_t count)
{
	int above = STDERR_FILENO;

	for (int i = 0; i < SUPERVISOR_GIFTS; i++)
		if (supervisor->gifts[i].fd >= 0 && supervisor->gifts[i].number > above)
			above = supervisor->gifts[i].number;
	for (size_t i = 0; i < count; i++) {
		*sources[i] = fcntl(*sources[i], F_DUPFD, above + 1);
		if (*sources[i] < 0)
			return -errno;
	}
	for (int i = 0; i < SUPERVISOR_GIFTS; i++) {
		struct gift *gift = &supervisor->gifts[i];

		if (gift->fd < 0)
			continue;
		gift->fd = fcntl(gift->fd, F_DUPFD_CLOEXEC, above + 1);
		if (gift->fd < 0)
			return -errno;
	}
	for (int i = 0; i < SUPERVISOR_GIFTS; i++)
		if (supervisor->gifts[i].number >= 0 &&
		    dup2(supervisor->gifts[i].fd, supervisor->gifts[i].number) < 0)
			return -errno;
	return 0;
}

static _Noreturn void fail_to_start(const char *call, int error)
{
	log_line(LC_ERROR, "the daemon cannot be started again: %s: %s", call, strerror(error));
	_exit(1);
}

static _Noreturn void be_the_daemon(struct supervisor *supervisor, int socket)
{
	int store = store_fd(supervisor->config->store);
	int *passed[] = {&socket, &store}, error;
	char text[64];

	(void)prctl(PR_SET_DUMPABLE, 1); /* /proc/self is root's otherwise */
	memory_set_score(supervisor->oom_score);
	signal(SIGPIPE, SIG_DFL);
	error = place_gifts(supervisor, passed, 2);
	if (error < 0)
		fail_to_start("dup2", -error);
	snprintf(text, sizeof(text), "%d:%d:%" PRId64, socket, WTERMSIG(supervisor->crash),
	         supervisor->ended_us);
	setenv(SUPERVISOR_ENVIRONMENT, text, 1);
	snprintf(text, sizeof(text), "%d", store);
	setenv(SUPERVISOR_ENVIRONMENT_STORE, text, 1);
	fexecve(supervisor->gifts[SUPERVISOR_PROGRAM].fd, supervisor->config->argv, environ);
	fail_to_start("fexecve", errno);
}

/* NULL, or why the daemon cannot be started. */
static const char *start_daemon(struct supervisor *supervisor)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		return strerror(errno);
	supervisor->daemon = fork();
	if (supervisor->daemon == 0)
		be_the_daemon(supervisor, fds[1]);
	close(fds[1]);
	if (supervisor->daemon < 0) {
		close(fds[0]);
		return strerror(errno);
	}
	close_socket(supervisor);
	supervisor->socket = fds[0];
	return NULL;
}

static void say_what_ended(const struct supervisor *supervisor)
{
	if (supervisor->stage == SUPERVISOR_RELOADS)
		log_line(LC_ERROR, "the new program does not serve: the former one is "
		                   "started again");
	else
		log_line(LC_ERROR, "the daemon was ended by signal %d: it is started again",
		         WTERMSIG(supervisor->crash));
}

/* The daemon, which served or was to, has ended. */
static void go_on(struct supervisor *supervisor, int status)
{
	int64_t now_us = clock_now_us(),
		deadline_us = store_head(supervisor->config->store)->deadline_us;
	const char *why = why_nobody_can(supervisor, now_us);

	/* Another program's end is no crash of this one. */
	if (!why && supervisor->stage != SUPERVISOR_RELOADS)
		why = why_not_again(supervisor, now_us);
	supervisor->ended_us = now_us;
	supervisor->crash = WIFSIGNALED(status) ? status : SIGABRT;
	if (!why) {
		say_what_ended(supervisor);
		/* The next daemon may crash before it serves a request: then no request is to
		 * blame. */
		store_head(supervisor->config->store)->serving = 0;
		supervisor->until_us =
			supervisor->stage == SUPERVISOR_RELOADS || deadline_us == INT64_MIN
				? limit_by(now_us, lease_left(supervisor, now_us))
				: deadline_us;
		supervisor->stage = SUPERVISOR_RESTARTS;
		why = start_daemon(supervisor);
	}
	if (!why)
		return;
	log_line(LC_ERROR, "the daemon was ended by signal %d, and the mount is lost: %s",
	         WTERMSIG(supervisor->crash), why);
	lose_mount(supervisor);
}

static void daemon_ended(struct supervisor *supervisor, int status)
{
	bool crashed = WIFSIGNALED(status);

	listen_to_daemon(supervisor); /* the words that the daemon sent before it ended */
	switch (supervisor->stage) {
	case SUPERVISOR_RELOADS:
		go_on(supervisor, status);
		return;
	case SUPERVISOR_IN_SERVICE:
	case SUPERVISOR_RESTARTS:
		if (crashed) {
			go_on(supervisor, status);
			return;
		}
		if (supervisor->stage == SUPERVISOR_IN_SERVICE)
			break;
		log_line(LC_ERROR,
		         "the daemon ended with status %d instead of going on: the mount is lost",
		         WEXITSTATUS(status));
		status = supervisor->crash;
		break;
	case SUPERVISOR_KILLED:
		status = supervisor->crash;
		break;
	case SUPERVISOR_STARTS:
	case SUPERVISOR_LEAVING:
		break;
	}
	return_gifts(supervisor);
	end_as(status);
}

/* In a container this process also gets the children of processes that have ended. */
static void reap_processes(struct supervisor *supervisor)
{
	int status, daemon_status = 0;
	bool ended = false;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == supervisor->daemon) {
			ended = true;
			daemon_status = status;
		}
	if (ended)
		daemon_ended(supervisor, daemon_status);
}

/* ---- signals and time ---- */

/* Sends each signal to the daemon's thread. A signal that somebody sends to the daemon's process
 * stays pending beside it, so the kernel does not merge the two: supervisor_repeats() expects
 * both. */
static void pass_signals(struct supervisor *supervisor)
{
	struct signalfd_siginfo info;

	while (read(supervisor->signals, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			tgkill(supervisor->daemon, supervisor->daemon, (int)info.ssi_signo);
}

/* Whether the daemon must serve by until_us. */
static bool has_limit(const struct supervisor *supervisor)
{
	return supervisor->stage == SUPERVISOR_RELOADS || supervisor->stage == SUPERVISOR_RESTARTS;
}

/* How long poll(2) may wait; -1: without limit. */
static int wait_ms(const struct supervisor *supervisor)
{
	int64_t left = supervisor->until_us - clock_now_us();

	if (!has_limit(supervisor))
		return -1;
	return left <= 0 ? 0 : left >= 1000000 ? 1000 : (int)(left / 1000 + 1);
}

static void enforce_limit(struct supervisor *supervisor)
{
	if (!has_limit(supervisor) || clock_now_us() < supervisor->until_us)
		return;
	kill(supervisor->daemon, SIGKILL);
	supervisor->until_us = INT64_MAX; /* SIGCHLD tells when the daemon has ended */
	if (supervisor->stage == SUPERVISOR_RELOADS)
		return;
	log_line(LC_ERROR, "the daemon does not serve before its lease ends: the mount is lost");
	supervisor->stage = SUPERVISOR_KILLED;
	return_gifts(supervisor);
}

/* ---- the process ---- */

/* `killall zklockfs` and the OOM killer are to end the daemon, not the supervisor. */
static void stand_aside(struct supervisor *supervisor)
{
	memory_read_score(supervisor->oom_score);
	memory_set_score("-1000");
	prctl(PR_SET_NAME, "zklockfs-keeper");
	(void)prctl(PR_SET_DUMPABLE, 0); /* the supervisor has the daemon's descriptors */
}

_Noreturn void supervisor_run(const struct supervisor_config *config, pid_t daemon, int socket)
{
	struct supervisor supervisor = {.config = config, .daemon = daemon, .socket = socket};

	for (int i = 0; i < SUPERVISOR_GIFTS; i++)
		supervisor.gifts[i] = (struct gift){-1, -1};
	for (int i = 0; i < CRASHES_MAX; i++)
		supervisor.crashes_us[i] = INT64_MIN / 2;
	stand_aside(&supervisor);
	ready_leave_session();
	signal(SIGPIPE, SIG_IGN);
	supervisor.signals = signals_open();
	/* Without signals the supervisor would not hear of the end of the daemon. */
	if (supervisor.signals < 0) {
		(void)log_cannot_start("signalfd");
		kill(daemon, SIGKILL);
		end_as(W_EXITCODE(EXIT_MOUNT, 0));
	}
	for (;;) {
		struct pollfd fds[2] = {{.fd = supervisor.signals, .events = POLLIN},
		                        {.fd = supervisor.socket, .events = POLLIN}};
		int n = poll(fds, 2, wait_ms(&supervisor));

		if (n > 0 && fds[1].revents)
			listen_to_daemon(&supervisor);
		if (n > 0 && fds[0].revents) {
			pass_signals(&supervisor);
			reap_processes(&supervisor);
		}
		enforce_limit(&supervisor);
	}
}
