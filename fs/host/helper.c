/* SPDX-License-Identifier: MIT */
#include "host/helper.h"

#include "host/signals.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT (STDERR_FILENO + 1)

void helper_let_go(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	if (null > STDERR_FILENO)
		close(null);
}

/* closefrom(3) goes through /proc where a filter refuses close_range(2), and ends the process where
 * it cannot do that either. */
int helper_keep_only(int fd)
{
	int kept = fd == KEPT ? KEPT : dup3(fd, KEPT, O_CLOEXEC);

	closefrom(KEPT + 1);
	return kept;
}

int helper_close_by_exec(void)
{
	DIR *own;
	struct dirent *entry;
	int r;

	if (close_range(KEPT, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
		return 0;
	own = opendir("/proc/self/fd");
	r = own ? 0 : -errno;
	while (own && (entry = readdir(own)) != NULL) {
		int fd = (int)strtol(entry->d_name, NULL, 10);

		if (fd > STDERR_FILENO && fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
			r = -errno;
	}
	if (own)
		closedir(own);
	return r;
}

/* No signal is blocked or ignored that is needed. The descriptor that is left. */
static int begin(const char *name, int fd)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (name)
		prctl(PR_SET_NAME, name);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGCHLD, SIG_DFL);
	signals_unblock_all();
	helper_let_go();
	return helper_keep_only(fd);
}

static void do_each(int fd, char *list, helper_work_fn *work, const void *ctx)
{
	char *word;

	for (size_t number = 0; (word = strsep(&list, ",")) != NULL; number++) {
		pid_t pid = fork();

		if (pid == 0)
			prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (pid <= 0)
			work(fd, number, word, ctx);
		if (pid == 0)
			_exit(0);
	}
}

static _Noreturn void run_helper(const char *name, int fd, const char *list, helper_work_fn *work,
                                 const void *ctx)
{
	char *own = strdup(list);

	fd = begin(name, fd);
	if (own && fd >= 0)
		do_each(fd, own, work, ctx);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
	_exit(0);
}

int helper_start(const char *name, const char *list, helper_work_fn *work, const void *ctx,
                 int *ret_fd)
{
	int fds[2], error;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		run_helper(name, fds[1], list, work, ctx);
	error = errno;
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return -error;
	}
	(void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
	*ret_fd = fds[0];
	return 0;
}
