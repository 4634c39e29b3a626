/* SPDX-License-Identifier: MIT */
#include "child.h"

#include "span.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

pid_t child_fork(struct child *child)
{
	int ends[2], error;

	*child = (struct child){.pid = -1, .end = -1};
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	child->pid = fork();
	error = errno;
	if (child->pid == 0) {
		close(ends[0]); /* the other end stays open until this process ends */
		return 0;
	}
	close(ends[1]);
	child->end = ends[0];
	if (child->pid < 0)
		child_close(child);
	errno = error;
	return child->pid;
}

bool child_await(const struct child *child, int wait_ms)
{
	struct pollfd pollfd = {.fd = child->end, .events = POLLIN};
	int64_t until = span_now_ms() + wait_ms, left;
	bool ended = false;

	while (!ended && (left = until - span_now_ms()) > 0)
		ended = poll(&pollfd, 1, (int)left) == 1;
	return ended;
}

void child_close(struct child *child)
{
	if (child->end >= 0)
		close(child->end);
	*child = (struct child){.pid = -1, .end = -1};
}
