/* SPDX-License-Identifier: MIT
 *
 * slow_answers.c - preloaded into a daemon, it acts as a machine with one processor: a process that
 * gets an answer runs for a moment before the daemon goes on.
 */
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define FUSE_DEVICE makedev(10, 229)

static const struct timespec moment = {.tv_nsec = 6000000};

static long after(int fd, long result)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == FUSE_DEVICE)
		nanosleep(&moment, NULL);
	return result;
}

ssize_t write(int fd, const void *bytes, size_t len)
{
	return after(fd, syscall(SYS_write, fd, bytes, len));
}

ssize_t writev(int fd, const struct iovec *iov, int count)
{
	return after(fd, syscall(SYS_writev, fd, iov, count));
}
