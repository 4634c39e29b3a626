/* SPDX-License-Identifier: MIT
 *
 * files.c - locks that are files, with open, close and nothing else of zklockfs:
 *
 *     files open MOUNT     open(2) of a lock file takes, close(2) gives back
 *     files flock DIR      flock(2) on local files: what a host alone can do
 */
#include "actor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct session {
	char path[256];
	int fd;
	bool shared;
};

static const char *directory;
static bool lock_files;

static void start(int argc, char **argv)
{
	if (argc != 3)
		actor_fail("usage: files open|flock DIRECTORY");
	lock_files = !strcmp(argv[1], "open");
	directory = argv[2];
}

static void make(const char *lock)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, lock);
	if (lock_files) {
		if (mkdir(path, 0777) < 0 && errno != EEXIST)
			actor_fail("mkdir %s: %s", path, strerror(errno));
		return;
	}
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		actor_fail("%s: %s", path, strerror(errno));
	close(fd);
}

static void *session_create(const char *lock, bool shared)
{
	struct session *session = actor_alloc(sizeof(*session));

	session->shared = shared;
	if (lock_files)
		snprintf(session->path, sizeof(session->path), "%s/%s/%s", directory, lock,
		         shared ? "shared" : "lock");
	else
		snprintf(session->path, sizeof(session->path), "%s/%s", directory, lock);
	return session;
}

static void take(void *argument)
{
	struct session *session = argument;

	session->fd = open(session->path, O_RDWR | O_CLOEXEC);
	if (session->fd < 0)
		actor_fail("open %s: %s", session->path, strerror(errno));
	if (!lock_files && flock(session->fd, session->shared ? LOCK_SH : LOCK_EX) < 0)
		actor_fail("flock %s: %s", session->path, strerror(errno));
}

static void drop(void *argument)
{
	struct session *session = argument;

	close(session->fd);
}

int main(int argc, char **argv)
{
	static const struct peer files = {
		.usage = "files open|flock DIRECTORY",
		.start = start,
		.make = make,
		.session_create = session_create,
		.session_destroy = free,
		.take = take,
		.drop = drop,
	};

	return actor_main(&files, argc, argv);
}
