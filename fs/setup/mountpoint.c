/* SPDX-License-Identifier: MIT */
#include "setup/mountpoint.h"

#include "host/clock.h"
#include "host/mounts.h"
#include "host/proc.h"
#include "host/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

/* mountinfo writes blanks and backslashes as \ooo. */
static void unescape(char *text)
{
	char *out = text;

	while (*text) {
		if (text[0] == '\\' && text[1] && text[2] && text[3]) {
			*out++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 |
			                (text[3] - '0'));
			text += 4;
		} else {
			*out++ = *text++;
		}
	}
	*out = '\0';
}

bool mountpoint_identify(const char *path, int *ret_mount_id, char ret_device[32],
                         char **ret_source)
{
	FILE *file = fopen(MOUNTS_OWN, "re");
	char *line = NULL;
	size_t size = 0;
	bool found = false;

	if (!file)
		return false;
	while (getline(&line, &size, file) >= 0) {
		char where[4096], device[32], *rest = strstr(line, " - ");
		int id, source = 0;

		if (!rest || sscanf(line, "%d %*s %31s %*s %4095[^ ]", &id, device, where) != 3)
			continue;
		unescape(where);
		if (strcmp(where, path) != 0)
			continue;
		(void)sscanf(rest, " - " MOUNTPOINT_TYPE " %n", &source);
		found = source > 0;
		*ret_mount_id = id;
		strcpy(ret_device, device);
		if (!ret_source)
			continue;
		free(*ret_source);
		*ret_source = found ? strndup(rest + source, strcspn(rest + source, " ")) : NULL;
		if (*ret_source)
			unescape(*ret_source);
	}
	free(line);
	fclose(file);
	return found;
}

char *mountpoint_source(const char *path)
{
	char device[32], *source = NULL, *real = realpath(path, NULL);
	int id;

	if (real)
		(void)mountpoint_identify(real, &id, device, &source);
	free(real);
	return source;
}

bool mountpoint_is_zklockfs(const char *path)
{
	char device[32];
	int id;

	return mountpoint_identify(path, &id, device, NULL);
}

/* ustat(2) is old, but nothing else asks for a device, and the C libraries have forgotten it. */
bool mountpoint_is_gone(const char *device)
{
#ifdef SYS_ustat
	unsigned major, minor;
	char answer[256]; /* the kernel's struct ustat has 32 */

	return sscanf(device, "%u:%u", &major, &minor) == 2 &&
	       syscall(SYS_ustat, (unsigned long)makedev(major, minor), answer) < 0 &&
	       errno == EINVAL;
#else
	(void)device;
	return false;
#endif
}

bool mountpoint_lists(const char *device)
{
	FILE *file = fopen(MOUNTS_OWN, "re");
	char *line = NULL, listed[32];
	size_t size = 0;
	bool found = false;

	while (file && !found && getline(&line, &size, file) >= 0)
		found = sscanf(line, "%*d %*s %31s", listed) == 1 && strcmp(listed, device) == 0;
	free(line);
	if (file)
		fclose(file);
	return found;
}

/* One line, if its mount is below the path, and not a part of the mount itself. */
static bool is_below(char *line, const char *path, const char *device, char ret_where[4096])
{
	char there[32], plain[4096];
	size_t n = strlen(path);

	if (sscanf(line, "%*d %*s %31s %*s %4095[^ ]", there, ret_where) != 2)
		return false;
	strcpy(plain, ret_where);
	unescape(plain);
	return strcmp(there, device) != 0 && strncmp(plain, path, n) == 0 && plain[n] == '/';
}

static void describe(const char *line, const char *where, unsigned more, char *text, size_t size)
{
	const char *behind = strstr(line, " - "), *user = strstr(line, ",user_id=");
	char type[64] = "-", by[32] = "", others[32] = "";

	if (behind)
		(void)sscanf(behind, " - %63s", type);
	if (user)
		snprintf(by, sizeof(by), " of user %lu", strtoul(user + 9, NULL, 10));
	if (more)
		snprintf(others, sizeof(others), ", and %u more", more);
	snprintf(text, size, "%.300s (%s%s)%s", where, type, by, others);
}

void mountpoint_covered(const char *path, const char *device, char *text, size_t size)
{
	FILE *file = fopen(MOUNTS_OWN, "re");
	char *line = NULL, where[4096];
	size_t room = 0;
	unsigned found = 0;

	*text = '\0';
	while (file && getline(&line, &room, file) >= 0)
		if (is_below(line, path, device, where))
			describe(line, where, found++, text, size);
	free(line);
	if (file)
		fclose(file);
}

/* ---- the dead ---- */

/* ENOTCONN: its daemon is dead. ECONNABORTED: was aborted. stat(2) would not do: the
 * kernel remembers a directory's attributes for a while. */
static bool is_dead(int root)
{
	struct statfs st;

	return fstatfs(root, &st) < 0 && (errno == ENOTCONN || errno == ECONNABORTED);
}

static int open_root(const char *path)
{
	return open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool is_dead_at(const char *path)
{
	int root = open_root(path);
	bool dead = root >= 0 && is_dead(root);

	if (root >= 0)
		close(root);
	return dead;
}

bool mountpoint_stays_dead(const char *path, int limit_ms)
{
	int64_t until_us = clock_now_us() + (int64_t)limit_ms * 1000;
	int tree = open(MOUNTS_OWN, O_RDONLY | O_CLOEXEC), changes = 1;
	bool dead;

	/* The mount point is looked at once more when the time has passed. */
	while ((dead = is_dead_at(path) && mountpoint_is_zklockfs(path)) && changes > 0)
		changes = clock_poll(tree, POLLPRI, until_us);
	if (tree >= 0)
		close(tree);
	return dead;
}

/* ---- taking it off ---- */

/* By /proc, which does not ask the mount's daemon. */
static bool is_on(int root, const char *device)
{
	char there[MOUNTS_DEVICE_MAX];

	return mounts_device(MOUNTS_OWN, mounts_id(root), there) && strcmp(there, device) == 0;
}

/* The descriptor names the very mount that was looked at, and not what is at its path now. */
static _Noreturn void detach(const char *path, const char *device)
{
	int root = open_root(path);
	char name[64];

	if (root < 0 ||
	    !(device ? is_on(root, device) : is_dead(root) && mountpoint_is_zklockfs(path)))
		_exit(device && mountpoint_lists(device) ? DETACH_COVERED : DETACH_DONE);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", root);
	if (umount2(name, MNT_DETACH) == 0)
		_exit(DETACH_DONE);
	close(root);
	execlp("fusermount3", "fusermount3", "-u", "-q", "-z", "--", path, (char *)NULL);
	_exit(DETACH_FAILED);
}

pid_t mountpoint_detach(const char *path, const char *device)
{
	pid_t child = fork();

	if (child != 0)
		return child < 0 ? -errno : child;
	closefrom(STDERR_FILENO + 1);
	signals_ignore_leaving();
	signals_unblock_all();
	detach(path, device);
}

void mountpoint_detach_now(const char *path, const char *device)
{
	pid_t child = mountpoint_detach(path, device);

	if (child > 0)
		(void)waitpid(child, NULL, 0);
}

/* ---- before the mount ---- */

/* Without looking at the last part, which may be dead. */
static char *absolute(const char *path)
{
	char *copy = strdup(path), *slash, *parent, *result = NULL;
	size_t len = copy ? strlen(copy) : 0;

	while (len > 1 && copy[len - 1] == '/')
		copy[--len] = '\0';
	slash = copy ? strrchr(copy, '/') : NULL;
	if (slash)
		*slash = '\0';
	parent = copy ? realpath(!slash ? "." : slash == copy ? "/" : copy, NULL) : NULL;
	if (parent && asprintf(&result, "%s/%s", strcmp(parent, "/") == 0 ? "" : parent,
	                       slash ? slash + 1 : copy) < 0)
		result = NULL;
	free(parent);
	free(copy);
	return result;
}

static int look_there(void *ctx)
{
	struct statfs st;

	(void)statfs(ctx, &st);
	return 0;
}

int mountpoint_ask(int (*look)(void *ctx), void *ctx)
{
	struct pollfd ended = {.events = POLLIN}; /* a pipe that the child alone can write to */
	int fds[2], status = 0, r;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	r = -errno;
	if (pid == 0)
		_exit(look(ctx));
	close(fds[1]);
	ended.fd = fds[0];
	if (pid > 0)
		r = poll(&ended, 1, MOUNTPOINT_ANSWER_MS) == 0 ? -ETIMEDOUT : 0;
	close(fds[0]);
	if (r == -ETIMEDOUT)
		kill(pid, SIGKILL); /* it may not end even then */
	else if (pid > 0 && (waitpid(pid, &status, 0) != pid || !WIFEXITED(status)))
		r = -EINTR;
	return r < 0 ? r : WEXITSTATUS(status);
}

#define LOCK_MS 1000
#define LOCK_LOOK_US 5000

int mountpoint_lock(const char *path)
{
	int lock = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int64_t until_us = clock_now_us() + LOCK_MS * 1000;

	while (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK &&
	       clock_now_us() < until_us)
		(void)usleep(LOCK_LOOK_US);
	return lock;
}

const char *mountpoint_unasked(int error)
{
	static char text[128];

	if (error == -ETIMEDOUT)
		return "what is mounted there does not answer within 10 s: it is stopped "
		       "(SIGCONT), or hangs";
	snprintf(text, sizeof(text), "pipe2 or fork, to look at it: %s", strerror(-error));
	return text;
}

static bool is_set(const char *path)
{
	char text[32];

	return proc_read(AT_FDCWD, path, text, sizeof(text)) && strtoll(text, NULL, 10) > 0;
}

const char *mountpoint_aborted(bool is_mounted)
{
	static char why[256];
	const char *name = is_set("/proc/sys/fs/fuse/max_request_timeout") ? "max_request_timeout"
	                   : is_set("/proc/sys/fs/fuse/default_request_timeout")
	                           ? "default_request_timeout"
	                           : NULL;

	if (!name)
		return NULL;
	snprintf(why, sizeof(why),
	         "fs.fuse.%s is set: the kernel aborts a mount, holders included, when one process "
	         "waits for so long: %s",
	         name,
	         is_mounted ? "unmount, write 0 into it, and mount again" : "write 0 into it");
	return why;
}

const char *mountpoint_refusal(const char *path)
{
	struct stat st;

	if (is_dead_at(path))
		return mountpoint_is_zklockfs(path) ? "the dead mount there cannot be unmounted"
		                                    : "a dead mount of another filesystem is there";
	if (stat(path, &st) < 0)
		return strerror(errno);
	if (!S_ISDIR(st.st_mode))
		return strerror(ENOTDIR);
	if (strcmp(path, "/") == 0)
		return "a mount there can be neither seen nor taken off";
	if (mountpoint_is_zklockfs(path))
		return "zklockfs is mounted there already";
	if (geteuid() != 0 && access(path, R_OK | W_OK | X_OK) < 0)
		return "only root can mount there; a user needs a directory of their own";
	return NULL;
}

const char *mountpoint_silence(const char *path)
{
	int asked = mountpoint_ask(look_there, (void *)path);

	return asked < 0 ? mountpoint_unasked(asked) : NULL;
}

const char *mountpoint_unresolved(const char *path, int error)
{
	/* Another word may be the name of a unit, given by mistake. */
	if (error == ENOENT && *path == '/')
		return "No such file or directory: mkdir -p makes it";
	return strerror(error);
}

char *mountpoint_prepare(const char *path, const char **ret_why)
{
	char *result = NULL, *there;

	*ret_why = mountpoint_silence(path);
	if (*ret_why)
		return NULL;
	there = realpath(path, NULL);
	if (!there)
		there = absolute(path);
	if (there && is_dead_at(there) && mountpoint_is_zklockfs(there))
		mountpoint_detach_now(there, NULL);
	*ret_why = there && is_dead_at(there) ? mountpoint_refusal(there) : NULL;
	free(there);
	if (!*ret_why) {
		result = realpath(path, NULL);
		*ret_why = result ? mountpoint_refusal(result) : mountpoint_unresolved(path, errno);
	}
	if (*ret_why) {
		free(result);
		result = NULL;
	}
	return result;
}
