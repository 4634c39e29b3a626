/* SPDX-License-Identifier: MIT
 *
 * supervisor.c - see supervisor.h. The daemon's half. Nothing here waits.
 */
#include "daemon/supervisor.h"

#include "daemon/supervisor_run.h"
#include "host/log.h"
#include "host/signals.h"
#include "setup/credentials.h"
#include "setup/ready.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* The most time between a signal and the same signal from the supervisor, which may be slow on a
 * busy machine: a mistake for a second signal would end all locks. */
#define REPEATS_US 10000000

static int supervisor_socket = -1;
static pid_t supervisor_pid;

/* Until the mount serves, the daemon is to end with the supervisor: only the supervisor can tell
 * the shell how the start went. */
static void end_with_supervisor(void)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != supervisor_pid) /* it ended before that */
		raise(SIGTERM);
}

bool supervisor_begin(const struct supervisor_config *config, char *credentials)
{
	pid_t pid, supervisor = getpid();
	sigset_t before;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		return log_cannot_start("socketpair");
	signals_block(&before);
	pid = fork();
	if (pid < 0) {
		(void)log_cannot_start("fork");
		close(fds[0]);
		close(fds[1]);
		sigprocmask(SIG_SETMASK, &before, NULL);
		return false;
	}
	if (pid > 0) {
		close(fds[1]);
		credentials_wipe(credentials);
		supervisor_run(config, pid, fds[0]);
	}
	close(fds[0]);
	supervisor_socket = fds[1];
	supervisor_pid = supervisor;
	ready_by_other();
	end_with_supervisor();
	return true;
}

/* ---- words to the supervisor ---- */

static bool tell_supervisor(const struct supervisor_word *word, int fd)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {.iov_base = (void *)word, .iov_len = sizeof(*word)};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

	if (supervisor_socket < 0)
		return false;
	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.align = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(sizeof(int)),
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
		};
		memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
	}
	return sendmsg(supervisor_socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

void supervisor_give(enum supervisor_gift gift, int fd)
{
	struct supervisor_word word = {
		.word = SUPERVISOR_HAS,
		.gift = (int)gift,
		.number =
			gift == SUPERVISOR_PROGRAM ? -1 : fd, /* the next daemon does not get it */
	};

	if (fd >= 0)
		(void)tell_supervisor(&word, fd);
}

bool supervisor_serves(void)
{
	int program = open("/proc/self/exe", O_PATH | O_CLOEXEC);

	(void)prctl(PR_SET_PDEATHSIG, 0);
	supervisor_give(SUPERVISOR_PROGRAM, program);
	if (program >= 0)
		close(program);
	return tell_supervisor(&(struct supervisor_word){.word = SUPERVISOR_SERVES}, -1);
}

bool supervisor_makes_way(void)
{
	return tell_supervisor(&(struct supervisor_word){.word = SUPERVISOR_MAKES_WAY}, -1);
}

void supervisor_leaves(void)
{
	if (!tell_supervisor(&(struct supervisor_word){.word = SUPERVISOR_LEAVES}, -1))
		ready_stopping();
}

int supervisor_fd(void)
{
	return supervisor_socket;
}

/* The supervisor never says anything: its socket is readable because it has ended. */
void supervisor_listen(void)
{
	close(supervisor_socket);
	supervisor_socket = -1;
	log_line(LC_WARNING,
	         "the keeper was killed: after a crash the daemon would not be restarted");
}

/* ---- signals ---- */

bool supervisor_repeats(const struct signalfd_siginfo *info, int64_t now_us)
{
	static struct {
		uint32_t signo; /* 0: none, or it was repeated */
		bool by_supervisor;
		int64_t at_us;
	} last;
	bool by_supervisor = (pid_t)info->ssi_pid == supervisor_pid, repeats;

	if (supervisor_socket < 0)
		return false;
	repeats = last.signo == info->ssi_signo && last.by_supervisor != by_supervisor &&
	          now_us - last.at_us < REPEATS_US;
	last.signo = repeats ? 0 : info->ssi_signo;
	last.by_supervisor = by_supervisor;
	last.at_us = now_us;
	return repeats;
}

/* ---- over an exec ---- */

void supervisor_pass(bool pass)
{
	char number[16];

	if (supervisor_socket < 0)
		return;
	snprintf(number, sizeof(number), "%d", supervisor_socket);
	if (pass && setenv(SUPERVISOR_ENVIRONMENT, number, 1) == 0) {
		(void)fcntl(supervisor_socket, F_SETFD, 0);
		return;
	}
	unsetenv(SUPERVISOR_ENVIRONMENT);
	(void)fcntl(supervisor_socket, F_SETFD, FD_CLOEXEC);
}

struct supervisor_crash supervisor_take_over(void)
{
	const char *text = getenv(SUPERVISOR_ENVIRONMENT);
	struct supervisor_crash crash = {0};
	struct stat st;
	int fd = -1;

	if (text)
		(void)sscanf(text, "%d:%d:%" SCNd64, &fd, &crash.signal, &crash.at_us);
	unsetenv(SUPERVISOR_ENVIRONMENT);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISSOCK(st.st_mode))
		return (struct supervisor_crash){0};
	/* The supervisor's fexecve() knows no name of the program. */
	(void)prctl(PR_SET_NAME, program_invocation_short_name);
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	supervisor_socket = fd;
	supervisor_pid = getppid();
	return crash;
}
