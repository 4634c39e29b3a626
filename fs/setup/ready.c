/* SPDX-License-Identifier: MIT */
#include "setup/ready.h"

#include "host/helper.h"
#include "host/log.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int status_fd = -1; /* to the command */
static bool background;

bool ready_open_standard(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			return log_cannot_start("fcntl, or open of /dev/null");
	return true;
}

/* The command: its exit status is what the daemon says, or 32 if it says nothing. */
static void wait_for_status(int fd, pid_t child)
{
	unsigned char status;

	if (read(fd, &status, 1) == 1)
		_exit(status);
	(void)waitpid(child, NULL, 0);
	fprintf(stderr, "zklockfs: the daemon ended before it could mount\n");
	_exit(32);
}

bool ready_begin(bool foreground)
{
	pid_t command = getpid(), child;
	int fds[2];

	if (foreground)
		return true;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return log_cannot_start("pipe2");
	child = fork();
	if (child < 0)
		return log_cannot_start("fork");
	if (child > 0) {
		close(fds[1]);
		wait_for_status(fds[0], child);
	}
	/* Who ends the command while it waits, by ^C for example, wants no mount later. */
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
		return log_cannot_start("prctl");
	if (getppid() != command)
		_exit(32);
	close(fds[0]);
	status_fd = fds[1];
	background = true;
	log_to_syslog(/* and_stderr = */ true);
	return true;
}

void ready_leave_session(void)
{
	if (background)
		(void)setsid(); /* no child of the command leads a group before that */
}

/* sd_notify(3), without its library. */
static void notify_systemd(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t len = path ? strlen(path) : 0;
	int fd;

	if (len < 2 || len >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, path, len);
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address,
	             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}

bool ready_tells(void)
{
	static int tells = -1;

	if (tells < 0)
		tells = getenv("NOTIFY_SOCKET") != NULL;
	return tells;
}

void ready_status(const char *line)
{
	char state[512];

	snprintf(state, sizeof(state), "STATUS=%s\n", line);
	notify_systemd(state);
}

static void tell_parent(int status)
{
	unsigned char byte = (unsigned char)status;

	if (status_fd < 0)
		return;
	(void)prctl(PR_SET_PDEATHSIG, 0);
	(void)!write(status_fd, &byte, 1);
	close(status_fd);
	status_fd = -1;
}

bool ready_detach(void)
{
	if (!background)
		return false;
	log_to_syslog(/* and_stderr = */ false);
	(void)!chdir("/");
	helper_let_go();
	return true;
}

void ready_tell(void)
{
	notify_systemd("READY=1\n");
	tell_parent(0);
}

void ready_by_other(void)
{
	if (status_fd >= 0)
		close(status_fd);
	status_fd = -1;
}

void ready_fail(int status)
{
	tell_parent(status);
}

void ready_stopping(void)
{
	notify_systemd("STOPPING=1\n");
}
