/* SPDX-License-Identifier: MIT
 *
 * watchdog.c - see watchdog.h.
 */
#include "watchdog.h"

#ifdef ZKLOCKFS_WATCHDOG

#include "clock.h"
#include "log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static int64_t begun_ns, begun_late_ns;

/* Somebody stopped the process, and let it go on: how long that was is not the loop's doing. */
static volatile sig_atomic_t was_stopped;

static void on_continue(int sig)
{
	(void)sig;
	was_stopped = 1;
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

void watchdog_begin(void)
{
	struct sigaction action = {.sa_handler = on_continue, .sa_flags = SA_RESTART};

	if (begun_ns == 0)
		sigaction(SIGCONT, &action, NULL);
	was_stopped = 0;
	begun_late_ns = late_ns();
	begun_ns = clock_read_ns(CLOCK_MONOTONIC);
}

void watchdog_end(void)
{
	int64_t took = clock_read_ns(CLOCK_MONOTONIC) - begun_ns;

	if (took > ZKLOCKFS_WATCHDOG * 1000000LL)
		took -= late_ns() - begun_late_ns;
	if (took > ZKLOCKFS_WATCHDOG * 1000000LL && !was_stopped)
		log_line(LC_ERROR, "watchdog: a turn of the loop took %" PRId64 " ms",
		         took / 1000000);
}

#endif
