/* SPDX-License-Identifier: MIT
 *
 * no_answer.c - preloaded into zklock(1): each fsync(2) and pread(2) fails a few times, as they do
 * for a user who asks too much at a time or while the ensemble does not answer. zklock asks by the
 * system call; the function says yes to everything, as that of libeatmydata does.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
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
	(void)fd;
	return 0;
}

static long call(long number, const long arguments[6])
{
	static long (*next)(long, ...);

	if (!next)
		next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	return next(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
	            arguments[5]);
}

long syscall(long number, ...)
{
	static unsigned asked;
	long arguments[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		arguments[i] = va_arg(args, long);
	va_end(args);
	return number == SYS_fsync && fails(&asked) < 0 ? -1 : call(number, arguments);
}

ssize_t pread(int fd, void *data, size_t size, off_t at)
{
	static unsigned asked;

	return fails(&asked) < 0 ? -1
	                         : call(SYS_pread64, (long[6]){fd, (long)data, (long)size, at});
}

ssize_t pread64(int fd, void *data, size_t size, off_t at)
{
	return pread(fd, data, size, at);
}
