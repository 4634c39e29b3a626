/* SPDX-License-Identifier: MIT
 *
 * scan.c - see scan.h. A descriptor's number of its file and of its mount stand in fdinfo,
 * which costs less than its path and waits for nobody on most kernels.
 */
#include "scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* So many are read before the first is looked at, and then from the last: what was opened
 * last is what is looked for, most of the time. */
#define BATCH 512

/* "ino:" is in fdinfo since Linux 5.14, near its beginning. */
static bool read_fdinfo(struct open_file *file)
{
	char name[16], text[512], *ino, *mount;
	ssize_t n;
	int info;

	snprintf(name, sizeof(name), "%d", file->fd);
	info = openat(file->dir, name, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return false;
	n = read(info, text, sizeof(text) - 1);
	close(info);
	if (n <= 0)
		return false;
	text[n] = '\0';
	mount = strstr(text, "\nmnt_id:");
	ino = mount ? strstr(mount, "\nino:") : NULL;
	if (!ino)
		return false;
	file->mount_id = (int)strtol(mount + strlen("\nmnt_id:"), NULL, 10);
	file->ino = strtoull(ino + strlen("\nino:"), NULL, 10);
	return true;
}

static size_t read_batch(DIR *dir, int *ret_fds)
{
	struct dirent *entry;
	size_t count = 0;

	while (count < BATCH && (entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.')
			ret_fds[count++] = (int)strtol(entry->d_name, NULL, 10);
	return count;
}

/* Returns how many there are, as far as it looked; -1 if that cannot be seen. */
static int look_into(const char *path, pid_t pid, scan_found_fn *found, void *ctx)
{
	DIR *dir = opendir(path);
	int fds[BATCH], count = 0;
	bool more = true;
	size_t n;

	if (!dir)
		return -1;
	while (more && (n = read_batch(dir, fds)) > 0) {
		count += (int)n;
		for (size_t i = n; i-- > 0 && more;) {
			struct open_file file = {.pid = pid, .dir = dirfd(dir), .fd = fds[i]};

			if (read_fdinfo(&file))
				more = found(ctx, &file);
		}
	}
	closedir(dir);
	return count;
}

int scan_process(pid_t pid, scan_found_fn *found, void *ctx)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int)pid);
	return look_into(path, pid, found, ctx);
}

void scan_threads(pid_t pid, scan_found_fn *found, void *ctx)
{
	char path[320];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/fdinfo", (int)pid, entry->d_name);
		look_into(path, pid, found, ctx);
	}
	closedir(dir);
}

/* With nothing asked for but where it is, no filesystem is asked. */
bool scan_is_on_mount(const struct open_file *file, int mount_id, const char *device)
{
	struct statx st;
	char seen[32], path[32];

	if (file->mount_id == mount_id)
		return true;
	snprintf(path, sizeof(path), "../fd/%d", file->fd);
	if (statx(file->dir, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, 0, &st) < 0)
		return false;
	snprintf(seen, sizeof(seen), "%u:%u", st.stx_dev_major, st.stx_dev_minor);
	return strcmp(seen, device) == 0;
}

struct named {
	bool (*wanted)(void *ctx, const char *name);
	void (*found)(void *ctx, const struct open_file *file);
	void *ctx;
};

static bool look_at_name(void *ctx, const struct open_file *file)
{
	const struct named *named = ctx;
	char link[32], path[4096], *slash;
	ssize_t n;

	snprintf(link, sizeof(link), "../fd/%d", file->fd);
	n = readlinkat(file->dir, link, path, sizeof(path) - 1);
	if (n <= 0)
		return true;
	path[n] = '\0';
	slash = strrchr(path, '/');
	if (slash && named->wanted(named->ctx, slash + 1))
		named->found(named->ctx, file);
	return true;
}

void scan_open_files(bool (*wanted)(void *ctx, const char *name),
                     void (*found)(void *ctx, const struct open_file *file), void *ctx)
{
	struct named named = {.wanted = wanted, .found = found, .ctx = ctx};
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	if (!dir)
		return;
	while ((entry = readdir(dir)) != NULL) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 1 && scan_process(pid, look_at_name, &named) == 0)
			scan_threads(pid, look_at_name, &named);
	}
	closedir(dir);
}

size_t scan_pids(pid_t *ret_pids, size_t max)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	size_t count = 0;

	if (!dir)
		return 0;
	while (count < max && (entry = readdir(dir)) != NULL) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 1)
			ret_pids[count++] = pid;
	}
	closedir(dir);
	return count;
}
