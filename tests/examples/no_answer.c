/* SPDX-License-Identifier: MIT
 *
 * no_answer.c - preloaded into zklock(1): each fsync(2) and pread(2) fails a few times, as they do
 * for a user who asks too much at a time or while the ensemble does not answer.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fails(unsigned *asked)
{
	static const int errors[] = {EBUSY, ENFILE, ENOMEM, EHOSTUNREACH, EINTR};

	if (*asked == sizeof(errors) / sizeof(errors[0])) {
		*asked = 0;
		return 0;
	}
	errno = errors[(*asked)++];
	return -1;
}

int fsync(int fd)
{
	static unsigned asked;

	return fails(&asked) < 0 ? -1 : (int)syscall(SYS_fsync, fd);
}

ssize_t pread(int fd, void *data, size_t size, off_t at)
{
	static unsigned asked;

	return fails(&asked) < 0 ? -1 : syscall(SYS_pread64, fd, data, size, at);
}

ssize_t pread64(int fd, void *data, size_t size, off_t at)
{
	return pread(fd, data, size, at);
}
