/* SPDX-License-Identifier: MIT */
#include "host/watchdog.h"

#ifdef ZKLOCKFS_WATCHDOG

#include "host/clock.h"
#include "host/log.h"
#include "host/proc.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#define BUSY_FACTOR 100

static int64_t begun_ns, begun_late_ns, begun_ran_ns;

/* Whether somebody stopped the process, and let it go on, since this was asked last. SIGCONT is
 * blocked for that: with a handler ppoll(2) would fail with EINTR, as it does in no other build. */
static bool was_stopped(void)
{
	static const struct timespec now;
	static bool blocked;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCONT);
	if (!blocked)
		sigprocmask(SIG_BLOCK, &set, NULL);
	blocked = true;
	return sigtimedwait(&set, NULL, &now) == SIGCONT;
}

/* How long this thread was ready to run and did not, so far. */
static int64_t late_ns(void)
{
	static int fd = -1;
	long long ran, late = 0;
	char text[128];
	ssize_t n;

	if (fd < 0)
		fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	n = pread(fd, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	(void)sscanf(text, "%lld %lld", &ran, &late);
	return late;
}

/* Whether more are ready to run, or were in the last minute, than there are processors; those that
 * wait for a disk count, too. (/proc/pressure would say more. But each reading loses up to a tick
 * of what is counted there, for all readers.) */
static bool machine_is_busy(void)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN), running = 0;
	double load = 0;
	char text[128];

	if (proc_read(AT_FDCWD, "/proc/loadavg", text, sizeof(text)))
		(void)sscanf(text, "%lf %*f %*f %ld", &load, &running);
	return load > (double)processors || running > processors;
}

void watchdog_begin(void)
{
	(void)was_stopped();
	begun_late_ns = late_ns();
	begun_ran_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	begun_ns = clock_read_ns(CLOCK_MONOTONIC);
}

void watchdog_end(void)
{
	const int64_t most = ZKLOCKFS_WATCHDOG * 1000000LL;
	int64_t took = clock_read_ns(CLOCK_MONOTONIC) - begun_ns, ran;

	if (took <= most)
		return;
	took -= late_ns() - begun_late_ns;
	if (took <= most || was_stopped())
		return;
	ran = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - begun_ran_ns;
	/* The owner of a lock of the kernel that it waits for may wait for a processor. */
	if (ran > most || took > (machine_is_busy() ? BUSY_FACTOR * most : most))
		log_line(LC_ERROR,
		         "watchdog: a turn of the loop took %" PRId64 " ms, %" PRId64
		         " of them on a processor",
		         took / 1000000, ran / 1000000);
}

#endif
