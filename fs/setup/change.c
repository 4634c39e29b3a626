/* SPDX-License-Identifier: MIT */
#include "setup/change.h"

#include "host/safe.h"
#include "setup/options_file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_AGAIN_MS 20 /* the file is made when it is opened: nothing tells of a change */

static int say(const char *mountpoint, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int say(const char *mountpoint, const char *format, ...)
{
	char why[1024], line[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	snprintf(line, sizeof(line), "%s: %s", mountpoint, why);
	fprintf(stderr, "zklockfs: %s\n", safe_text(line, sizeof(line), line, SAFE_LINE));
	return EXIT_MOUNT;
}

struct counts_of {
	unsigned long reloads, adoptions, refused;
	const char *why; /* in the text */
};

static const char *count_line(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (; text; text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL)
		if (strncmp(text, name, len) == 0 && strncmp(text + len, ": ", 2) == 0)
			return text + len + 2;
	return "";
}

static struct counts_of count(const char *text)
{
	return (struct counts_of){
		.reloads = strtoul(count_line(text, OPTIONS_FILE_RELOADS), NULL, 10),
		.adoptions = strtoul(count_line(text, OPTIONS_FILE_ADOPTIONS), NULL, 10),
		.refused = strtoul(count_line(text, OPTIONS_FILE_REFUSED), NULL, 10),
		.why = count_line(text, OPTIONS_FILE_WHY),
	};
}

static void wait_a_moment(void)
{
	(void)poll(NULL, 0, LOOK_AGAIN_MS);
}

/* The program of a mount may be older than these files. systemd says which process it is: the
 * program of today takes over first. */
static char *read_after_upgrade(const char *mountpoint, const char **ret_why)
{
	const char *process = getenv("MAINPID");
	pid_t pid = process ? (pid_t)strtol(process, NULL, 10) : 0;
	char *text = options_file_read(mountpoint, /* waits = */ true, ret_why);

	if (text || errno != ENOENT || pid <= 1 || kill(pid, SIGUSR2) < 0)
		return text;
	do {
		wait_a_moment();
		text = options_file_read(mountpoint, /* waits = */ true, ret_why);
	} while (!text && errno == ENOENT);
	return text;
}

/* 0 or -errno. */
static int tell(const char *mountpoint, const char *args, size_t len)
{
	ssize_t n = -1;
	int fd = options_file_open(mountpoint, O_WRONLY);

	if (fd < 0)
		return -errno;
	/* EBUSY: another reload is under way. */
	while ((n = write(fd, args, len)) < 0 && errno == EBUSY)
		wait_a_moment();
	n = n == (ssize_t)len ? 0 : -errno;
	close(fd);
	return (int)n;
}

/* The mount serves with these options. Returns the exit status. */
static int tell_session(const struct options *options, const char *text)
{
	char *session;

	if (options_session_is_shorter(options, text, &session)) {
		(void)say(options->mountpoint,
		          "the session that the mount has is of %s: the longer "
		          "session_timeout counts from the next session on, as after a restart",
		          session);
		free(session);
	}
	return 0;
}

/* Waits for the outcome, and says it. `before`: the counts when the change was asked for. */
static int await(const struct options *options, const struct counts_of *before)
{
	const char *mountpoint = options->mountpoint;
	char differ[1024];
	char stay[OPTIONS_STAY_MAX];

	for (;; wait_a_moment()) {
		const char *why;
		char *text = options_file_read(mountpoint, /* waits = */ true, &why);
		struct counts_of now;
		int status = -1;

		if (!text)
			return say(mountpoint, "%s", why);
		now = count(text);
		if (now.adoptions > before->adoptions)
			status = say(mountpoint,
			             "the new program did not serve, and the mount goes on as it "
			             "was: see its log");
		else if (now.reloads > before->reloads)
			status = *options_differ(options, text, differ, sizeof(differ), stay)
			                 ? say(mountpoint, "the mount runs with %s", differ)
			                 : tell_session(options, text);
		else if (now.refused > before->refused)
			status = say(mountpoint, "no reload, the mount goes on as it was: %.*s",
			             (int)strcspn(now.why, "\n"), now.why);
		free(text);
		if (status >= 0)
			return status;
	}
}

int change_ask(const struct options *options)
{
	const char *mountpoint = options->mountpoint, *why;
	char *text = read_after_upgrade(mountpoint, &why), *args;
	struct counts_of before;
	size_t len;
	int r;

	if (!text)
		return say(mountpoint, "%s", why);
	before = count(text);
	before.why = NULL;
	free(text);
	args = options_args(options, &len);
	r = args ? tell(mountpoint, args, len) : -ENOMEM;
	free(args);
	if (r < 0)
		return say(mountpoint, "%s",
		           r == -EACCES || r == -EPERM
		                   ? "only root, and who has mounted, can change it"
		                   : strerror(-r));
	return await(options, &before);
}
