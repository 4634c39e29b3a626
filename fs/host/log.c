/* SPDX-License-Identifier: MIT
 *
 * log.c - see log.h. syslog(3) is not used: it waits when the log daemon does not
 * read, and a daemon that waits misses its lease.
 */
#include "host/log.h"

#include "host/counts.h"
#include "host/memory.h"
#include "host/safe.h"
#include "host/signals.h"
#include "lockcore.h"
#include "pure/per_user.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

/* Below PIPE_BUF: a pipe takes a line as a whole. */
#define TEXT_MAX 2048
#define LINE_MAX (TEXT_MAX + 64)
#define FINISH_MS 1000
/* Some thousand lines may wait while the log's child gets no processor. */
#define WAITING_BYTES (2 << 20)

static int syslog_fd = -1;
static bool to_syslog;
/* The process that writes to stderr. Its end of the socket is kept here, too: if it is killed, what
 * it has not read is read by the next one. */
static struct {
	int fd, its_fd; /* -1: there is none */
	pid_t pid;      /* 0: there is none, or another process has started it */
	bool writes;    /* lines go to it; otherwise to stderr itself */
} child = {-1, -1, 0, false};
static bool to_stderr;  /* beside syslog */
static bool to_journal; /* by stderr */
static const char *about;
static enum lc_level most_level = LC_NOTICE;
static bool verdicts, found_wrong;

static int priority(enum lc_level level)
{
	switch (level) {
	case LC_ERROR:
		return LOG_ERR;
	case LC_WARNING:
		return LOG_WARNING;
	case LC_NOTICE:
		return LOG_NOTICE;
	case LC_INFO:
		return LOG_INFO;
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
	char message[LINE_MAX];
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
		close(syslog_fd); /* the log daemon was started anew */
		syslog_fd = -1;
	}
	return false;
}

static bool write_stderr(enum lc_level level, const char *text)
{
	struct pollfd pollfd = {.fd = STDERR_FILENO, .events = POLLOUT};
	char line[LINE_MAX];
	int len = to_journal ? snprintf(line, sizeof(line), "<%d>%s\n", priority(level), text)
	                     : snprintf(line, sizeof(line), "zklockfs: %s\n", text);

	if (child.writes) {
		if (send(child.fd, line, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
			return true;
		if (errno == EAGAIN)
			return false;
		to_syslog =
			true; /* this is the guardian: the daemon and the log's child are gone */
		return send_syslog(level, text);
	}
	/* A pipe that polls writable takes this much without blocking. */
	return poll(&pollfd, 1, 0) == 1 && !(pollfd.revents & (POLLERR | POLLNVAL)) &&
	       write(STDERR_FILENO, line, (size_t)len) == len;
}

static bool print_verdict(enum lc_level level, const char *text)
{
	static const char *const words[] = {"wrong", "risk ", "ok   ", "info "};

	printf("%s  %s\n", words[level], text);
	if (fflush(stdout) != 0 && !found_wrong) /* now, since a later step may hang */
		fprintf(stderr, "zklockfs: standard output cannot be written\n");
	found_wrong |= level == LC_ERROR || ferror(stdout);
	return true;
}

static bool put(enum lc_level level, const char *text)
{
	if (verdicts)
		return print_verdict(level, text);
	if (!to_syslog)
		return write_stderr(level, text);
	if (to_stderr)
		(void)write_stderr(level, text);
	return send_syslog(level, text) || to_stderr;
}

/* Lines that users can cause at will, warnings of their own locks' losses among them, have
 * windows of their own, and cannot silence errors, nor what is said of another user. */
struct window {
	time_t since;
	unsigned lines, dropped;
};
#define LEVELS (LC_NOTICE + 1)
static struct windows {
	struct window
		of_none[LEVELS]; /* of lines about no user, and about those beyond LOG_USERS */
	struct {
		uid_t uid; /* the first is root's; 0 in another: it is free */
		struct window of[LEVELS];
	} users[LOG_USERS];
} own_windows, *windows = &own_windows;

static time_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec;
}

static bool window_over(const struct window *window)
{
	return window->lines == 0 || now_s() - window->since >= LOG_WINDOW_S;
}

/* Nothing is kept there of the user who had it. */
static bool is_unused(const struct window of[LEVELS])
{
	for (int level = 0; level < LEVELS; level++)
		if (of[level].dropped > 0 || !window_over(&of[level]))
			return false;
	return true;
}

static struct window *windows_of(uid_t whose)
{
	uid_t uid = per_user_share(whose);
	int unused = -1;

	if (uid == LOG_NOBODY)
		return windows->of_none;
	for (int i = 0; i < LOG_USERS; i++) {
		if (windows->users[i].uid == uid)
			return windows->users[i].of;
		if (i > 0 && unused < 0 && is_unused(windows->users[i].of))
			unused = i;
	}
	if (unused < 0)
		return windows->of_none;
	windows->users[unused].uid = uid;
	return windows->users[unused].of;
}

static struct window *window_of(uid_t uid, enum lc_level level)
{
	return &windows_of(uid)[level < LC_NOTICE ? level : LC_NOTICE];
}

static void drop_line(struct window *window)
{
	window->dropped++;
	counted.log_lines_not_written++;
}

/* A window that is over begins anew, and says what it had no room for. */
static void roll_window(uid_t uid, struct window *window)
{
	unsigned dropped = window->dropped;
	char text[80], about_whom[32] = "";

	if (now_s() - window->since < LOG_WINDOW_S)
		return;
	*window = (struct window){.since = now_s()};
	if (dropped == 0)
		return;
	if (uid != LOG_NOBODY)
		snprintf(about_whom, sizeof(about_whom), " about uid %u", (unsigned)uid);
	snprintf(text, sizeof(text),
	         dropped == 1 ? "%u line%s was not written" : "%u lines%s were not written",
	         dropped, about_whom);
	if (!put(LC_NOTICE, text))
		window->dropped = dropped;
}

/* False: the child tells of no lines that it could not write. */
static bool hear_child(void)
{
	uint32_t lost;

	if (!child.writes || recv(child.fd, &lost, sizeof(lost), MSG_DONTWAIT) != sizeof(lost))
		return false;
	counted.log_lines_not_written += lost;
	return true;
}

static void roll_dropped(uid_t uid, struct window of[LEVELS])
{
	for (int level = 0; level < LEVELS; level++)
		if (of[level].dropped > 0)
			roll_window(uid, &of[level]);
}

void log_tend(void)
{
	roll_dropped(LOG_NOBODY, windows->of_none);
	for (int i = 0; i < LOG_USERS; i++)
		roll_dropped(windows->users[i].uid, windows->users[i].of);
}

bool log_has_room(uid_t uid, enum lc_level level)
{
	struct window *window = window_of(uid, level);

	roll_window(window == window_of(LOG_NOBODY, level) ? LOG_NOBODY : uid, window);
	if (window->lines < LOG_BURST)
		return true;
	drop_line(window);
	return false;
}

static bool admit_line(uid_t uid, enum lc_level level)
{
	bool room = verdicts || log_has_room(uid, level);

	window_of(uid, level)->lines += room;
	return room;
}

static void put_formatted(uid_t uid, enum lc_level level, const char *format, va_list args)
{
	char text[TEXT_MAX];
	int len = about ? snprintf(text, sizeof(text), "%.512s: ", about) : 0;

	if ((size_t)len < sizeof(text))
		vsnprintf(text + len, sizeof(text) - (size_t)len, format, args);
	safe_text(text, sizeof(text), text, SAFE_LINE); /* names are users' text */
	if (!put(level, text))
		drop_line(window_of(uid, level));
}

void log_line_of(uid_t uid, enum lc_level level, const char *format, ...)
{
	int saved = errno;
	va_list args;

	va_start(args, format);
	if (level <= most_level && admit_line(uid, level))
		put_formatted(uid, level, format, args);
	va_end(args);
	errno = saved;
}

void log_wanted(const char *format, ...)
{
	int saved = errno;
	va_list args;

	va_start(args, format);
	put_formatted(LOG_NOBODY, LC_INFO, format, args);
	va_end(args);
	errno = saved;
}

void log_level(enum lc_level most)
{
	most_level = most;
}

void log_verdicts(void)
{
	verdicts = true;
}

bool log_found_wrong(void)
{
	return found_wrong;
}

void log_set_wrong(void)
{
	found_wrong = true;
}

/* systemd tells which device and inode its journal's socket has. */
static bool is_journal(int fd)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && fstat(fd, &st) == 0 &&
	       st.st_dev == device && st.st_ino == inode;
}

bool log_cannot_start(const char *call)
{
	log_line(LC_ERROR, "cannot start: %s: %s", call, strerror(errno));
	return false;
}

void log_about(const char *mountpoint)
{
	about = mountpoint;
	to_journal = is_journal(STDERR_FILENO);
}

void log_to_syslog(bool and_stderr)
{
	to_syslog = true;
	to_stderr = and_stderr;
}

/* A packet of one byte 0 asks whether all before it is written. A packet to the parent says how
 * many lines were not. */
static void write_for_parent(int fd)
{
	char line[LINE_MAX];
	uint32_t lost = 0; /* lines that are not told yet */
	ssize_t n;

	prctl(PR_SET_NAME, "zklockfs-log");
	/* The log's child ends with the daemon, not with a signal to both. */
	signals_ignore_leaving();
	signal(SIGUSR2, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	if (dup2(fd, STDIN_FILENO) < 0)
		_exit(1);
	closefrom(STDERR_FILENO + 1);
	while ((n = recv(STDIN_FILENO, line, sizeof(line), 0)) > 0) {
		if (n == 1 && line[0] == '\0')
			(void)send(STDIN_FILENO, line, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		else
			lost += write(STDERR_FILENO, line, (size_t)n) != n;
		if (lost > 0 && send(STDIN_FILENO, &lost, sizeof(lost),
		                     MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(lost))
			lost = 0;
	}
	_exit(0);
}

/* Only root of the host may do so; for others it stays at some 250 lines. */
static void widen_socket(void)
{
	(void)setsockopt(child.fd, SOL_SOCKET, SO_SNDBUFFORCE, &(int){WAITING_BYTES}, sizeof(int));
}

void log_prepare_child(void)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return; /* lines go to stderr; poll(2) tells mostly whether that would wait */
	child.fd = fds[0];
	child.its_fd = fds[1];
	widen_socket();
}

void log_to_child(void)
{
	if (child.fd < 0)
		log_prepare_child();
	if (child.fd < 0)
		return;
	child.pid = fork();
	if (child.pid == 0)
		write_for_parent(child.its_fd);
	child.writes = child.pid > 0;
	if (!child.writes)
		child.pid = 0;
}

bool log_reap(pid_t pid)
{
	if (pid != child.pid || pid <= 0)
		return false;
	counted.logs_ended++;
	log_to_child();
	log_line(LC_ERROR,
	         "the process that writes the log was killed: another one goes on, and one "
	         "line may be missing");
	return true;
}

void log_in_guardian(void)
{
	struct windows *shared = memory_share(sizeof(own_windows));

	if (shared)
		windows = shared;
	to_syslog = child.fd < 0 || dup2(child.fd, STDERR_FILENO) < 0;
	child.fd = STDERR_FILENO;
	child.writes = !to_syslog;
}

void log_finish(void)
{
	struct pollfd pollfd = {.fd = child.fd, .events = POLLIN};

	if (child.fd < 0)
		return;
	close(child.its_fd);
	if (child.writes && send(child.fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1)
		while (poll(&pollfd, 1, FINISH_MS) == 1 && hear_child())
			; /* until it answers, or hangs up */
	close(child.fd);
	child.fd = child.its_fd = -1;
	child.writes = false;
}

void log_count(void)
{
	while (hear_child())
		;
}

void log_save_load(struct codec *codec)
{
	log_count();
	CODEC_BOOL(codec, to_syslog);
	CODEC_FD(codec, child.fd);
	CODEC_FD(codec, child.its_fd);
	CODEC_PID(codec, child.pid);
	if (!codec_has(codec, 6)) { /* later, counts_save_load() has them */
		CODEC_64(codec, counted.log_lines_not_written);
		CODEC_64(codec, counted.logs_ended);
	}
	if (!codec->loads || codec->checks || to_syslog)
		return;
	/* After a crash the log's child of the former daemon has ended, or only the guardian writes
	 * by it: another one is started. */
	if (child.fd >= 0 && child.its_fd < 0) {
		close(child.fd);
		child.fd = -1;
	}
	widen_socket(); /* as an older program has not */
	child.writes = child.fd >= 0 && child.pid > 0;
	if (!child.writes)
		log_to_child();
}
