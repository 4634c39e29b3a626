/* SPDX-License-Identifier: MIT
 *
 * captured.h - what a test writes to standard error, to be read from a pipe.
 */
#ifndef TESTS_CAPTURED_H
#define TESTS_CAPTURED_H

#include <fcntl.h>
#include <unistd.h>

static int reader, saved_stderr;

/* From now on it goes to `reader`, which does not wait. -1: errno. */
static inline int capture_begin(void)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	saved_stderr = dup(STDERR_FILENO);
	dup2(fds[1], STDERR_FILENO);
	close(fds[1]);
	reader = fds[0];
	return fcntl(reader, F_SETFL, O_NONBLOCK);
}

static inline void capture_end(void)
{
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	close(reader);
}

#endif
