/* SPDX-License-Identifier: MIT
 *
 * suspend.c - preloaded into a program, it gives the program clocks as some machines have them.
 * Each variable names a file, whose length is a number of ms; a missing file changes nothing:
 *
 *   SUSPENDED  the machine was suspended: CLOCK_BOOTTIME is ahead by so many ms
 *   PAUSED     a virtual machine was paused: all clocks but the wall clock are behind by so many ms
 *   SET_BACK   the wall clock is behind by so many ms
 *   SLEWED     from now on all clocks but CLOCK_MONOTONIC_RAW run at half their speed
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int64_t length(const char *variable)
{
	const char *path = getenv(variable);
	struct stat st;

	return path && stat(path, &st) == 0 ? st.st_size : -1;
}

static int64_t slewed(int64_t ns, int64_t *since)
{
	if (length("SLEWED") < 0)
		return ns;
	if (*since == 0)
		*since = ns;
	return *since + (ns - *since) / 2;
}

static int64_t ms(const char *variable)
{
	int64_t len = length(variable);

	return len > 0 ? len * 1000000 : 0;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	static int64_t monotonic, boottime, realtime;
	long r = syscall(SYS_clock_gettime, id, ts);
	int64_t ns = ts->tv_sec * 1000000000LL + ts->tv_nsec;

	if (r != 0)
		return (int)r;
	if (id == CLOCK_MONOTONIC)
		ns = slewed(ns, &monotonic) - ms("PAUSED");
	else if (id == CLOCK_BOOTTIME)
		ns = slewed(ns, &boottime) - ms("PAUSED") + ms("SUSPENDED");
	else if (id == CLOCK_MONOTONIC_RAW)
		ns -= ms("PAUSED");
	else if (id == CLOCK_REALTIME)
		ns = slewed(ns, &realtime) - ms("SET_BACK");
	ts->tv_sec = ns / 1000000000;
	ts->tv_nsec = ns % 1000000000;
	return 0;
}
