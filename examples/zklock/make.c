/* SPDX-License-Identifier: MIT */
#include "make.h"

#include "span.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ABOVE_MODE 0777
#define OWNER_ENTERS 0300 /* mkdir(1) does not lock itself out of what it has created above */
#define PAUSE_NS 100000000

/* The first `length` bytes of `lock` are the path. */
static int create(const struct mount *mount, const char *lock, size_t length, mode_t mode)
{
	char path[LOCK_NAME_MAX + 1], *slash;
	int dir, error;

	snprintf(path, sizeof(path), "%.*s", (int)length, lock);
	slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
	dir = mount_open(mount, ".", slash ? path : ".", O_PATH | O_DIRECTORY);
	if (dir < 0)
		return -errno;
	error = mkdirat(dir, slash ? slash + 1 : path, mode) < 0 ? -errno : 0;
	close(dir);
	return error;
}

static int write_slots(const struct mount *mount, const char *lock, unsigned slots)
{
	int fd = mount_open(mount, lock, "slots", O_WRONLY), error = 0;
	char text[16];
	int n = snprintf(text, sizeof(text), "%u\n", slots);

	if (fd < 0)
		return -errno;
	if (write(fd, text, (size_t)n) != n)
		error = -errno;
	close(fd);
	return error;
}

int make_lock(const struct mount *mount, const char *lock, const struct make *make)
{
	mode_t mask = umask(0);
	mode_t above = (ABOVE_MODE & ~mask) | OWNER_ENTERS;
	mode_t mode = make->mode < 0 ? ABOVE_MODE & ~mask : (mode_t)make->mode;
	int error = 0;

	for (const char *end = strchr(lock, '/'); end; end = strchr(end + 1, '/')) {
		error = create(mount, lock, (size_t)(end - lock), above);
		if (error && error != -EEXIST)
			break;
	}
	if (!error || error == -EEXIST)
		error = create(mount, lock, strlen(lock), mode);
	umask(mask);
	if (error == -EEXIST)
		return 0;
	return error || !make->slots ? error : write_slots(mount, lock, make->slots);
}

int make_await_slots(const struct mount *mount, const char *lock, const struct make *make)
{
	static const struct timespec moment = {.tv_nsec = PAUSE_NS};
	int64_t until = span_now_ms() + MAKE_SLOTS_MS;
	unsigned long slots;
	char *text;

	for (;; (void)nanosleep(&moment, NULL)) {
		text = mount_read(mount, lock, "slots");
		if (!text)
			return -errno;
		slots = strtoul(text, NULL, 10);
		free(text);
		if (slots == make->slots)
			return 0;
		if (span_now_ms() > until)
			return -EDOM;
	}
}

const char *make_explain(int error)
{
	switch (error) {
	case EACCES:
		return "you may not create it: the directory above is not writable for you";
	case EINVAL:
	case ENAMETOOLONG:
		return "no lock can have this name, see zklockfs(5)";
	case EDQUOT:
		return "it cannot be created: there are too many locks beside it";
	case ENOTDIR:
	case EEXIST:
		return "it cannot be created: a part of this path is a file";
	default:
		return NULL;
	}
}
