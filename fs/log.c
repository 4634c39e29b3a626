/* SPDX-License-Identifier: MIT
 *
 * log.c - see log.h. syslog(3) is not used: it waits when the log daemon does not
 * read, and a daemon that waits misses its lease.
 */
#include "log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

static int syslog_fd = -1;
static bool to_syslog;
static enum lc_level most_level = LC_NOTICE;

static int priority(enum lc_level level)
{
	switch (level) {
	case LC_ERROR: return LOG_ERR;
	case LC_WARNING: return LOG_WARNING;
	case LC_NOTICE: return LOG_NOTICE;
	case LC_INFO: return LOG_INFO;
	}
	return LOG_ERR;
}

static int connect_syslog(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/dev/log"};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static bool send_syslog(enum lc_level level, const char *text)
{
	char message[600];
	int len = snprintf(message, sizeof(message), "<%d>zklockfs[%d]: %s",
	                   LOG_DAEMON | priority(level), (int)getpid(), text);

	for (int try = 0; try < 2; try++) {
		if (syslog_fd < 0)
			syslog_fd = connect_syslog();
		if (syslog_fd < 0)
			return false;
		if (send(syslog_fd, message, (size_t)len, MSG_NOSIGNAL) >= 0)
			return true;
		if (errno == EAGAIN)
			return false;
		close(syslog_fd);   /* the log daemon was started anew */
		syslog_fd = -1;
	}
	return false;
}

static bool write_stderr(const char *text)
{
	struct pollfd pollfd = {.fd = STDERR_FILENO, .events = POLLOUT};
	char line[600];
	int len = snprintf(line, sizeof(line), "zklockfs: %s\n", text);

	/* A pipe that polls writable takes this much without blocking. */
	return poll(&pollfd, 1, 0) == 1 && !(pollfd.revents & (POLLERR | POLLNVAL)) &&
	       write(STDERR_FILENO, line, (size_t)len) == len;
}

static bool put(enum lc_level level, const char *text)
{
	return to_syslog ? send_syslog(level, text) : write_stderr(text);
}

/* What users can cause at will has a window of its own, and cannot silence the rest. */
static struct window {
	time_t since;
	unsigned lines, dropped;
} windows[2];

static struct window *window_of(enum lc_level level)
{
	return &windows[level > LC_WARNING];
}

/* True while the window has room; says afterwards how much it had not. */
static bool admit(enum lc_level level)
{
	struct window *window = window_of(level);
	struct timespec now;
	char text[64];

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if (now.tv_sec - window->since >= LOG_WINDOW_S) {
		unsigned dropped = window->dropped;

		*window = (struct window){.since = now.tv_sec};
		if (dropped > 0) {
			snprintf(text, sizeof(text), "%u lines were not written", dropped);
			if (!put(LC_NOTICE, text))
				window->dropped = dropped;
		}
	}
	if (window->lines < LOG_BURST) {
		window->lines++;
		return true;
	}
	window->dropped++;
	return false;
}

void log_line(enum lc_level level, const char *format, ...)
{
	int saved = errno;
	char text[512];
	va_list args;

	if (level <= most_level && admit(level)) {
		va_start(args, format);
		vsnprintf(text, sizeof(text), format, args);
		va_end(args);
		for (char *c = text; *c; c++)
			if ((unsigned char)*c < 0x20 || *c == 0x7f)
				*c = '?';   /* names are users' text: one line stays one line */
		if (!put(level, text))
			window_of(level)->dropped++;
	}
	errno = saved;
}

void log_level(enum lc_level most)
{
	most_level = most;
}

void log_to_syslog(void)
{
	to_syslog = true;
}
