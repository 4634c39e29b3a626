/* SPDX-License-Identifier: MIT
 *
 * scan.c - see scan.h. The inode number of a descriptor's file, and its mount, are in fdinfo, which
 * never blocks. But all other facts about the file are there, too: each entry of an epoll, each
 * lock of a file. A process can have thousands of descriptors of which each takes milliseconds to
 * read. So where reading takes long, the device of each file is read first, by statx(2) of fd/N.
 * That always costs little, but it waits while the process is in exec, so it is not done
 * everywhere.
 */
#include "guard/scan.h"

#include "host/clock.h"
#include "host/mounts.h"
#include "host/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* From so much of this process's own CPU time on, one descriptor of another process is expensive.
 * Most take 5 us. */
#define EXPENSIVE_US 100

/* "ino:" is in fdinfo since Linux 5.14, near its beginning. */
static bool read_fdinfo(struct seen_file *file)
{
	char name[16], text[512], *ino, *mount;

	snprintf(name, sizeof(name), "%d", file->fd);
	if (!proc_read(file->dir, name, text, sizeof(text)))
		return false;
	mount = strstr(text, "\nmnt_id:");
	ino = mount ? strstr(mount, "\nino:") : NULL;
	if (!ino)
		return false;
	file->mount_id = (int)strtol(mount + strlen("\nmnt_id:"), NULL, 10);
	file->ino = strtoull(ino + strlen("\nino:"), NULL, 10);
	return true;
}

/* The device of its file, as "0:57". False: it cannot be told. Only the place of the file is read,
 * so no filesystem gets a request. */
static bool read_device(const struct seen_file *file, char *ret_device, size_t size)
{
	struct statx st;
	char path[32];

	snprintf(path, sizeof(path), "../fd/%d", file->fd);
	if (statx(file->dir, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, 0, &st) < 0)
		return false;
	snprintf(ret_device, size, "%u:%u", st.stx_dev_major, st.stx_dev_minor);
	return true;
}

/* Finds the device in mountinfo, by the mount's ID. That is slower, and only for where a filter
 * refuses statx(2). */
static bool look_up_device(const struct seen_file *file, char ret_device[MOUNTS_DEVICE_MAX])
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d/../mountinfo", file->dir);
	return mounts_device(path, file->mount_id, ret_device);
}

static bool is_elsewhere(const struct seen_file *file, const char *device)
{
	char seen[32];

	return read_device(file, seen, sizeof(seen)) && strcmp(seen, device) != 0;
}

static int64_t cpu_us(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID) / 1000;
}

/* A look at the descriptors of one process. */
struct look_into {
	const char *device;
	struct scan_place *place;
	int64_t until_us; /* of this process's CPU time */
	int64_t cpu_us;   /* of this process, when note_slow() was called last; */
	int64_t since;    /*   the number of descriptors that were read since */
	scan_found_fn *found;
	void *ctx;
	bool ends; /* told by found() */
};

static struct look_into begin_scan(const char *device, struct scan_place *place,
                                   int64_t cpu_us_most, scan_found_fn *found, void *ctx)
{
	int64_t now = cpu_us();

	place->more = false;
	return (struct look_into){
		.device = device,
		.place = place,
		.until_us = cpu_us_most < SCAN_ALL - now ? now + cpu_us_most : SCAN_ALL,
		.cpu_us = now,
		.found = found,
		.ctx = ctx,
	};
}

/* This one took long. Was it work, or did others want the processor? */
static void note_slow(struct look_into *look)
{
	int64_t now = cpu_us();

	look->place->expensive =
		now - look->cpu_us > EXPENSIVE_US + look->since * EXPENSIVE_US / 10;
	look->cpu_us = now;
	look->since = 0;
}

static bool read_file(struct look_into *look, struct seen_file *file)
{
	int64_t began;
	bool read;

	if (look->place->expensive && is_elsewhere(file, look->device))
		return false;
	began = clock_now_us();
	read = read_fdinfo(file);
	look->since++;
	if (!look->place->expensive && clock_now_us() - began > EXPENSIVE_US)
		note_slow(look);
	return read;
}

static DIR *open_proc(const char *path)
{
	DIR *dir = opendir(path);

	(void)proc_opened(dir ? 0 : -1);
	return dir;
}

/* Returns how many there were; -1 if that cannot be seen. */
static int look_at_files(struct look_into *look, const char *path)
{
	struct scan_place *place = look->place;
	DIR *dir = open_proc(path);
	struct dirent *entry;
	int count = 0;

	if (!dir)
		return -1;
	if (place->file > 0)
		seekdir(dir, place->file);
	place->file = 0;
	while (!look->ends && !place->more && (entry = readdir(dir)) != NULL) {
		struct seen_file file = {.dir = dirfd(dir)};

		if (entry->d_name[0] == '.')
			continue;
		count++;
		file.fd = (int)strtol(entry->d_name, NULL, 10);
		if (read_file(look, &file))
			look->ends = !look->found(look->ctx, &file);
		if (!look->ends && look->until_us != SCAN_ALL && cpu_us() >= look->until_us) {
			place->file = telldir(dir);
			place->more = true;
		}
	}
	closedir(dir);
	return count;
}

static void look_at_threads(struct look_into *look, pid_t pid)
{
	struct scan_place *place = look->place;
	char path[320];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = open_proc(path);
	if (!dir)
		return;
	if (place->task > 0)
		seekdir(dir, place->task);
	while (!look->ends && !place->more) {
		place->task = telldir(dir);
		entry = readdir(dir);
		if (!entry)
			break;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/fdinfo", (int)pid, entry->d_name);
		if (entry->d_name[0] != '.')
			(void)look_at_files(look, path);
	}
	closedir(dir);
}

int scan_process(pid_t pid, const char *device, struct scan_place *place, int64_t cpu_us_most,
                 scan_found_fn *found, void *ctx)
{
	struct look_into look = begin_scan(device, place, cpu_us_most, found, ctx);
	bool begins = place->file == 0;
	char path[64];
	int count = 0;

	if (place->task == 0) {
		snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int)pid);
		count = look_at_files(&look, path);
	}
	if (place->task > 0 || (count == 0 && begins))
		look_at_threads(&look, pid);
	return count;
}

void scan_threads(pid_t pid, const char *device, struct scan_place *place, int64_t cpu_us_most,
                  scan_found_fn *found, void *ctx)
{
	struct look_into look = begin_scan(device, place, cpu_us_most, found, ctx);

	look_at_threads(&look, pid);
}

void scan_all(const char *device, scan_found_fn *found, void *ctx)
{
	struct dirent *entry;
	DIR *dir = open_proc("/proc");

	if (!dir)
		return;
	while ((entry = readdir(dir)) != NULL) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		struct scan_place place = {0};

		if (pid > 1)
			scan_process(pid, device, &place, SCAN_ALL, found, ctx);
	}
	closedir(dir);
}

bool scan_is_on_mount(const struct seen_file *file, int mount_id, const char *device)
{
	char seen[MOUNTS_DEVICE_MAX];

	return file->mount_id == mount_id ||
	       ((read_device(file, seen, sizeof(seen)) || look_up_device(file, seen)) &&
	        strcmp(seen, device) == 0);
}

size_t scan_pids(pid_t *ret_pids, size_t max)
{
	DIR *dir = open_proc("/proc");
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
