/* SPDX-License-Identifier: MIT
 *
 * suspend.c - a machine that was suspended, for one program: preloaded, CLOCK_BOOTTIME is
 * ahead by as many seconds as the file $SUSPENDED is long. No other clock is.
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *ts)
{
	const char *path = getenv("SUSPENDED");
	struct stat st;
	long r = syscall(SYS_clock_gettime, id, ts);

	if (r == 0 && id == CLOCK_BOOTTIME && path && stat(path, &st) == 0)
		ts->tv_sec += st.st_size;
	return (int)r;
}
