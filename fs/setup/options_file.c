/* SPDX-License-Identifier: MIT */
#include "setup/options_file.h"

#include "setup/mountpoint.h"
#include "setup/options.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_MS 180000 /* longer than a reload can take, and one before it */

/* From here on a child does the work, and this process ends as it does: no signal ends a process
 * that waits for a daemon which stands still. */
static void supervise(const char *mountpoint)
{
	static bool supervised;
	struct pollfd ended = {.events = POLLIN}; /* a pipe that the child alone can write to */
	int fds[2], status = 0;
	pid_t pid;

	if (supervised || pipe2(fds, O_CLOEXEC) < 0)
		return;
	supervised = true;
	pid = fork();
	if (pid <= 0) {
		close(fds[0]);
		return;
	}
	close(fds[1]);
	ended.fd = fds[0];
	if (poll(&ended, 1, ANSWER_MS) == 0) {
		kill(pid, SIGKILL);
		fprintf(stderr, "zklockfs: %s: the mount does not answer\n", mountpoint);
		_exit(EXIT_MOUNT);
	}
	_exit(waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
	                                                           : EXIT_MOUNT);
}

int options_file_open(const char *mountpoint, int flags)
{
	char path[4200];

	snprintf(path, sizeof(path), "%s/.zklockfs/options", mountpoint);
	return open(path, flags | O_CLOEXEC);
}

/* NULL: errno. */
static char *read_text(const char *mountpoint)
{
	size_t room = 65536, len = 0;
	int fd = options_file_open(mountpoint, O_RDONLY);
	char *text = fd < 0 ? NULL : calloc(1, room);
	ssize_t n = -1;

	while (text && len + 1 < room && (n = read(fd, text + len, room - 1 - len)) > 0)
		len += (size_t)n;
	if (fd >= 0)
		close(fd);
	if (text && n < 0) {
		free(text);
		return NULL;
	}
	return text;
}

static bool is_mounted(const char *mountpoint)
{
	char *path = realpath(mountpoint, NULL);
	bool mounted = path && mountpoint_is_zklockfs(path);

	free(path);
	return mounted;
}

char *options_file_read(const char *mountpoint, bool waits, const char **ret_why)
{
	char *text = NULL;

	*ret_why = "no zklockfs is mounted there";
	if (!is_mounted(mountpoint)) {
		errno = ENODEV;
		return NULL;
	}
	if (waits)
		supervise(mountpoint);
	text = read_text(mountpoint);
	if (!text)
		*ret_why = errno == ENOENT ? "its program is too old to say its options: reload "
		                             "it first, by SIGUSR2"
		                           : strerror(errno);
	return text;
}
