/* SPDX-License-Identifier: MIT
 *
 * keeper.c - see keeper.h. The daemon's half. Nothing here waits.
 */
#include "daemon/keeper.h"

#include "daemon/keeper_run.h"
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

/* The most time between a signal and the same signal from the keeper, which may be slow on a busy
 * machine: a mistake for a second signal would end all locks. */
#define REPEATS_US 10000000

static int keeper_socket = -1;
static pid_t keeper_pid;

/* Until the mount serves, the daemon is to end with the keeper: only the keeper can tell the shell
 * how the start went. */
static void end_with_keeper(void)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != keeper_pid) /* it ended before that */
		raise(SIGTERM);
}

bool keeper_begin(const struct keeper_config *config, char *credentials)
{
	pid_t pid, keeper = getpid();
	sigset_t before;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		return false;
	signals_block(&before);
	pid = fork();
	if (pid < 0) {
		close(fds[0]);
		close(fds[1]);
		sigprocmask(SIG_SETMASK, &before, NULL);
		return false;
	}
	if (pid > 0) {
		close(fds[1]);
		credentials_wipe(credentials);
		keeper_run(config, pid, fds[0]);
	}
	close(fds[0]);
	keeper_socket = fds[1];
	keeper_pid = keeper;
	ready_by_other();
	end_with_keeper();
	return true;
}

/* ---- words to the keeper ---- */

static bool tell_keeper(const struct keeper_word *word, int fd)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {.iov_base = (void *)word, .iov_len = sizeof(*word)};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

	if (keeper_socket < 0)
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
	return sendmsg(keeper_socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

void keeper_give(enum keeper_gift gift, int fd)
{
	struct keeper_word word = {.word = KEEPER_HAS, .gift = (int)gift, .number = fd};

	if (fd >= 0)
		(void)tell_keeper(&word, fd);
}

static void give_program(void)
{
	struct keeper_word word = {.word = KEEPER_HAS, .gift = KEEPER_PROGRAM, .number = -1};
	int fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)tell_keeper(&word, fd);
	close(fd);
}

bool keeper_serves(void)
{
	(void)prctl(PR_SET_PDEATHSIG, 0);
	give_program();
	return tell_keeper(&(struct keeper_word){.word = KEEPER_SERVES}, -1);
}

bool keeper_makes_way(void)
{
	return tell_keeper(&(struct keeper_word){.word = KEEPER_MAKES_WAY}, -1);
}

void keeper_leaves(void)
{
	if (!tell_keeper(&(struct keeper_word){.word = KEEPER_LEAVES}, -1))
		ready_stopping();
}

int keeper_fd(void)
{
	return keeper_socket;
}

/* The keeper never says anything: its socket is readable because it has ended. */
void keeper_listen(void)
{
	close(keeper_socket);
	keeper_socket = -1;
	log_line(LC_WARNING,
	         "the keeper was killed: after a crash the daemon would not be restarted");
}

/* ---- signals ---- */

bool keeper_repeats(const struct signalfd_siginfo *info, int64_t now_us)
{
	static struct {
		uint32_t signo; /* 0: none, or it was repeated */
		bool by_keeper;
		int64_t at_us;
	} last;
	bool by_keeper = (pid_t)info->ssi_pid == keeper_pid, repeats;

	if (keeper_socket < 0)
		return false;
	repeats = last.signo == info->ssi_signo && last.by_keeper != by_keeper &&
	          now_us - last.at_us < REPEATS_US;
	last.signo = repeats ? 0 : info->ssi_signo;
	last.by_keeper = by_keeper;
	last.at_us = now_us;
	return repeats;
}

/* ---- over an exec ---- */

void keeper_pass(bool pass)
{
	char number[16];

	if (keeper_socket < 0)
		return;
	snprintf(number, sizeof(number), "%d", keeper_socket);
	if (pass && setenv(KEEPER_ENVIRONMENT, number, 1) == 0) {
		(void)fcntl(keeper_socket, F_SETFD, 0);
		return;
	}
	unsetenv(KEEPER_ENVIRONMENT);
	(void)fcntl(keeper_socket, F_SETFD, FD_CLOEXEC);
}

struct keeper_crash keeper_take_over(void)
{
	const char *text = getenv(KEEPER_ENVIRONMENT);
	struct keeper_crash crash = {0};
	struct stat st;
	int fd = -1;

	if (text)
		(void)sscanf(text, "%d:%d:%" SCNd64, &fd, &crash.signal, &crash.at_us);
	unsetenv(KEEPER_ENVIRONMENT);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISSOCK(st.st_mode))
		return (struct keeper_crash){0};
	(void)prctl(PR_SET_NAME, program_invocation_short_name); /* the keeper knows none */
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	keeper_socket = fd;
	keeper_pid = getppid();
	return crash;
}
