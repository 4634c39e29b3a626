/* SPDX-License-Identifier: MIT
 *
 * mountpoint.c - see mountpoint.h.
 */
#include "mountpoint.h"

#include "signals.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t mountpoint_detach(const char *path)
{
	pid_t child = fork();

	if (child != 0)
		return child < 0 ? -errno : child;
	close_range(STDERR_FILENO + 1, ~0U, 0);
	signals_unblock_all();
	if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
		_exit(0);
	execlp("fusermount3", "fusermount3", "-u", "-q", "-z", "--", path, (char *)NULL);
	_exit(1);
}

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

/* The topmost mount there, if it is a zklockfs. */
bool mountpoint_identify(const char *path, int *ret_mount_id, char ret_device[32])
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t size = 0;
	bool found = false;

	if (!file)
		return false;
	while (getline(&line, &size, file) >= 0) {
		char where[4096], device[32], *rest = strstr(line, " - ");
		int id;

		if (!rest || sscanf(line, "%d %*s %31s %*s %4095s", &id, device, where) != 3)
			continue;
		unescape(where);
		if (strcmp(where, path) != 0)
			continue;
		found = strncmp(rest + 3, MOUNTPOINT_TYPE " ", strlen(MOUNTPOINT_TYPE " ")) == 0;
		*ret_mount_id = id;
		strcpy(ret_device, device);
	}
	free(line);
	fclose(file);
	return found;
}

bool mountpoint_is_zklockfs(const char *path)
{
	char device[32];
	int id;

	return mountpoint_identify(path, &id, device);
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

static char *fail(char *path, const char **ret_why, const char *why)
{
	free(path);
	*ret_why = why;
	return NULL;
}

/* ENOTCONN: its daemon is dead. ECONNABORTED: was aborted. stat(2) would not do: the
 * kernel remembers a directory's attributes for a while. */
static bool is_dead(const char *path)
{
	struct statfs st;

	return statfs(path, &st) < 0 && (errno == ENOTCONN || errno == ECONNABORTED);
}

char *mountpoint_prepare(const char *path, const char **ret_why)
{
	char *result;
	struct stat st;

	if (is_dead(path)) {
		result = absolute(path);
		if (!result || !mountpoint_is_zklockfs(result))
			return fail(result, ret_why, "a dead mount of another filesystem is there");
		pid_t child = mountpoint_detach(result);

		if (child > 0)
			(void)waitpid(child, NULL, 0);
		if (is_dead(result))
			return fail(result, ret_why, "the dead mount there cannot be unmounted");
		free(result);
	}
	result = realpath(path, NULL);
	if (!result || stat(result, &st) < 0)
		return fail(result, ret_why, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return fail(result, ret_why, strerror(ENOTDIR));
	if (mountpoint_is_zklockfs(result))
		return fail(result, ret_why, "zklockfs is mounted there already");
	return result;
}
