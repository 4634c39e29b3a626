/* SPDX-License-Identifier: MIT */
#include "setup/covers.h"

#include "host/helper.h"
#include "host/log.h"
#include "setup/mountpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PAUSE_US 5000000 /* between two looks */

void covers_init(struct covers *covers)
{
	*covers = (struct covers){.reader = -1, .changed = true};
	covers->tree = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
}

static void stop_reading(struct covers *covers)
{
	if (covers->reader >= 0)
		close(covers->reader);
	covers->reader = -1;
}

void covers_finish(struct covers *covers)
{
	stop_reading(covers);
	if (covers->tree >= 0)
		close(covers->tree);
}

/* ---- the child ---- */

struct search {
	const char *mountpoint, *device;
};

/* One message, also if nothing is there. */
static void read_tree(int fd, size_t number, char *word, const void *ctx)
{
	const struct search *search = ctx;
	char text[COVERS_MAX] = "";

	(void)number, (void)word;
	mountpoint_covered(search->mountpoint, search->device, text, sizeof(text));
	(void)!write(fd, text, sizeof(text));
}

static void begin_to_read(struct covers *covers, const char *mountpoint, const char *device,
                          int64_t now_us)
{
	struct search search = {.mountpoint = mountpoint, .device = device};

	covers->changed = false;
	covers->next_us = now_us + PAUSE_US;
	if (helper_start("zklockfs-mounts", "mounts", read_tree, &search, &covers->reader) < 0)
		covers->changed = true;
}

/* ---- the loop ---- */

int64_t covers_prepare(const struct covers *covers, int64_t now_us,
                       struct pollfd ret_fds[COVERS_POLLED])
{
	bool waits = covers->changed && covers->reader < 0;

	/* While a look is due anyway no further change wakes the loop. */
	ret_fds[COVERS_TREE] =
		(struct pollfd){.fd = covers->changed ? -1 : covers->tree, .events = POLLPRI};
	ret_fds[COVERS_READER] = (struct pollfd){.fd = covers->reader, .events = POLLIN};
	return waits ? covers->next_us - now_us : INT64_MAX;
}

static void take_text(struct covers *covers, const char text[COVERS_MAX])
{
	if (strcmp(covers->text, text) == 0)
		return;
	if (*text)
		log_line(LC_WARNING, "another filesystem hides a part of the mount: %s", text);
	else
		log_line(LC_NOTICE, "no other filesystem hides a part of the mount any more");
	strcpy(covers->text, text);
}

static void hear(struct covers *covers)
{
	char text[COVERS_MAX];
	ssize_t n = read(covers->reader, text, sizeof(text));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == (ssize_t)sizeof(text) && memchr(text, '\0', sizeof(text)))
		take_text(covers, text);
	stop_reading(covers);
}

void covers_process(struct covers *covers, const char *mountpoint, const char *device,
                    int64_t now_us, const struct pollfd fds[COVERS_POLLED])
{
	covers->changed |= fds[COVERS_TREE].revents & (POLLPRI | POLLERR);
	if (fds[COVERS_READER].revents)
		hear(covers);
	if (covers->changed && covers->reader < 0 && now_us >= covers->next_us)
		begin_to_read(covers, mountpoint, device, now_us);
}
