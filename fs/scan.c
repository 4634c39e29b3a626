/* SPDX-License-Identifier: MIT
 *
 * scan.c - see scan.h.
 */
#include "scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "ino:" is in fdinfo since Linux 5.14. */
static bool read_fdinfo(int dir, const char *fd, struct open_file *file)
{
	char name[64], text[1024], *ino, *mount;
	ssize_t n;
	int info;

	snprintf(name, sizeof(name), "../fdinfo/%.20s", fd);
	info = openat(dir, name, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return false;
	n = read(info, text, sizeof(text) - 1);
	close(info);
	if (n <= 0)
		return false;
	text[n] = '\0';
	ino = strstr(text, "\nino:");
	mount = strstr(text, "\nmnt_id:");
	if (!ino || !mount)
		return false;
	file->ino = strtoull(ino + strlen("\nino:"), NULL, 10);
	file->mount_id = (int)strtol(mount + strlen("\nmnt_id:"), NULL, 10);
	return true;
}

/* Returns how many descriptors there are, -1 if that cannot be seen. */
static int look_into(const char *path, pid_t pid, bool (*wanted)(void *ctx, const char *name),
                     void (*found)(void *ctx, const struct open_file *file), void *ctx)
{
	char target[4096];
	struct dirent *entry;
	DIR *dir = opendir(path);
	int count = 0;

	if (!dir)
		return -1;
	while ((entry = readdir(dir)) != NULL) {
		struct open_file file = {.pid = pid};
		ssize_t n;

		if (entry->d_name[0] == '.')
			continue;
		count++;
		n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		if (n <= 0 || target[0] != '/')
			continue;
		target[n] = '\0';
		file.name = strrchr(target, '/') + 1;
		if (wanted(ctx, file.name) && read_fdinfo(dirfd(dir), entry->d_name, &file))
			found(ctx, &file);
	}
	closedir(dir);
	return count;
}

/* A process whose first thread has ended shows its descriptors only by the others. */
static void look_into_threads(pid_t pid, bool (*wanted)(void *ctx, const char *name),
                              void (*found)(void *ctx, const struct open_file *file), void *ctx)
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
		snprintf(path, sizeof(path), "/proc/%d/task/%s/fd", (int)pid, entry->d_name);
		if (look_into(path, pid, wanted, found, ctx) > 0)
			break;
	}
	closedir(dir);
}

bool scan_can_look_into(pid_t pid)
{
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return false;
	closedir(dir);
	return true;
}

void scan_open_files(bool (*wanted)(void *ctx, const char *name),
                       void (*found)(void *ctx, const struct open_file *file), void *ctx)
{
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	if (!dir)
		return;
	while ((entry = readdir(dir)) != NULL) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		char path[64];

		if (pid <= 1)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
		if (look_into(path, pid, wanted, found, ctx) == 0)
			look_into_threads(pid, wanted, found, ctx);
	}
	closedir(dir);
}

bool scan_is_on_mount(const struct open_file *file, int mount_id, const char *device)
{
	char path[64], seen[32], *line = NULL;
	bool found = false;
	size_t room = 0;
	FILE *mounts;
	int id;

	if (file->mount_id == mount_id)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)file->pid);
	mounts = fopen(path, "re");
	if (!mounts)
		return false;
	while (!found && getline(&line, &room, mounts) >= 0)
		found = sscanf(line, "%d %*d %31s", &id, seen) == 2 && id == file->mount_id &&
		        strcmp(seen, device) == 0;
	free(line);
	fclose(mounts);
	return found;
}
