/* SPDX-License-Identifier: MIT */
#include "host/watchdog.h"

#ifdef ZKLOCKFS_WATCHDOG

#include "host/clock.h"
#include "host/log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static int64_t begun_ns, begun_late_ns, begun_busy_ns;

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

static void read_text(int *fd, const char *path, char text[128])
{
	ssize_t n;

	if (*fd < 0)
		*fd = open(path, O_RDONLY | O_CLOEXEC);
	n = pread(*fd, text, 127, 0);
	text[n > 0 ? n : 0] = '\0';
}

/* How long this thread was ready to run and did not, so far. */
static int64_t late_ns(void)
{
	static int fd = -1;
	long long ran, late = 0;
	char text[128];

	read_text(&fd, "/proc/thread-self/schedstat", text);
	(void)sscanf(text, "%lld %lld", &ran, &late);
	return late;
}

/* How long any thread of the machine was ready to run and did not, so far; and how long the machine
 * itself did not run, because its host ran others. 0: the kernel does not tell. */
static int64_t busy_ns(void)
{
	static int pressure = -1, stat = -1;
	long long total_us = 0, stolen = 0;
	char text[128];

	read_text(&pressure, "/proc/pressure/cpu", text);
	(void)sscanf(text, "some avg10=%*f avg60=%*f avg300=%*f total=%lld", &total_us);
	read_text(&stat, "/proc/stat", text);
	(void)sscanf(text, "cpu %*d %*d %*d %*d %*d %*d %*d %lld", &stolen);
	return total_us * 1000 + stolen * (1000000000 / sysconf(_SC_CLK_TCK));
}

void watchdog_begin(void)
{
	(void)was_stopped();
	begun_late_ns = late_ns();
	begun_busy_ns = busy_ns();
	begun_ns = clock_read_ns(CLOCK_MONOTONIC);
}

void watchdog_end(void)
{
	int64_t took = clock_read_ns(CLOCK_MONOTONIC) - begun_ns, busy;

	if (took <= ZKLOCKFS_WATCHDOG * 1000000LL)
		return;
	/* The owner of a lock of the kernel that it waits for may wait for a processor. */
	busy = busy_ns() - begun_busy_ns;
	if (busy > took / 2)
		return;
	took -= late_ns() - begun_late_ns;
	if (took > ZKLOCKFS_WATCHDOG * 1000000LL && !was_stopped())
		log_line(LC_ERROR,
		         "watchdog: a turn of the loop took %" PRId64
		         " ms, processes waited for %" PRId64 " ms",
		         took / 1000000, busy / 1000000);
}

#endif
