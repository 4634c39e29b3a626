/* SPDX-License-Identifier: MIT
 *
 * why.c - `zklock why`: the obstacles of a taker that does not wait, see look.h. It only looks: to
 * try would be to take the lock, and to make others fail.
 */
#include "look.h"

#include "clean.h"
#include "entry.h"
#include "span.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sysexits.h>
#include <unistd.h>

#define TOLD_MAX 5 /* holders that are named */

/* ---- the mount and the lock ---- */

static const char *find_state(char *status)
{
	char *state = status ? strstr(status, "state: ") : NULL;

	if (!state)
		return NULL;
	state += 7;
	state[strcspn(state, "\n")] = '\0';
	return state;
}

static int check_mount(const struct mount *mount)
{
	char *status = mount_read(mount, ".zklockfs", "status"), shown[40];
	const char *state = find_state(status);
	int result = EX_OK;

	if (!status && (errno == ENOTCONN || errno == ECONNABORTED)) {
		puts("the daemon of the mount is dead");
		result = EX_UNAVAILABLE;
	} else if (state && strcmp(state, "ready") != 0) {
		printf("the mount is %s: it has no contact with the ensemble, see "
		       "%s/.zklockfs/status\n",
		       clean(shown, sizeof(shown), state), mount->path);
		result = EX_TEMPFAIL;
	}
	free(status);
	return result;
}

static int check_door(const struct mount *mount, const char *lock)
{
	char path[LOCK_NAME_MAX + 16];
	struct stat stat = {0};
	struct statvfs statvfs;

	snprintf(path, sizeof(path), "%s/lock", lock);
	if (fstatat(mount->dir, path, &stat, 0) < 0) {
		if (errno == ENOENT || errno == ENOTDIR) {
			printf("there is no such lock; mkdir %s/NAME makes one\n", mount->path);
			return EX_NOINPUT;
		}
		printf("cannot look at its doors: %s\n", strerror(errno));
		return errno == EACCES ? EX_NOPERM : EX_TEMPFAIL;
	}
	if (fstatvfs(mount->dir, &statvfs) == 0 && statvfs.f_flag & ST_RDONLY) {
		puts("the mount is read-only: no lock can be taken");
		return EX_NOPERM;
	}
	if (faccessat(mount->dir, path, W_OK, AT_EACCESS) < 0) {
		printf("you (user %u) may not write to its doors: they have mode %04o, owner %u "
		       "and group %u\n",
		       (unsigned)geteuid(), (unsigned)stat.st_mode & 0777, (unsigned)stat.st_uid,
		       (unsigned)stat.st_gid);
		return EX_NOPERM;
	}
	return EX_OK;
}

/* ---- the queue ---- */

/* A process that waits for its own ancestor waits for ever. */
static bool is_ancestor(const struct mount *mount, const struct entry *entry)
{
	char *status = mount_read(mount, ".zklockfs", "status"), host[64];
	const char *at = status ? strstr(status, "\nhost: ") : NULL;
	bool same_host =
		at && sscanf(at, "\nhost: %63s", host) == 1 && strcmp(host, entry->host) == 0;
	pid_t pid = getpid();

	free(status);
	while (same_host && pid > 1) {
		pid = tree_parent(pid);
		if (pid == atoi(entry->pid))
			return true;
	}
	return false;
}

static void tell_entry(const struct mount *mount, const char *lock, struct entry *entry)
{
	char host[CLEAN_MAX], command[CLEAN_MAX], reason[CLEAN_MAX], age[SPAN_MAX];
	int64_t since;

	entry_read(mount, lock, entry);
	if (!entry->text)
		return;
	since = span_since(entry->held ? entry->held_since : entry->queued_since);
	printf("%s by process %s (%s) on %s for %s: %s\n",
	       entry->held ? entry->shared ? "shared" : "held" : "wanted", entry->pid,
	       clean(command, sizeof(command), entry->command),
	       clean(host, sizeof(host), entry->host),
	       since < 0 ? "a moment" : span_format(age, since),
	       clean(reason, sizeof(reason), entry->reason));
	if (entry->held && is_ancestor(mount, entry))
		puts("  this is your own hold: you would wait for yourself; use -R");
}

/* Whether an entry behind all of these would hold at once. */
static bool is_free(const struct entry *entries, size_t count, size_t slots, bool shared)
{
	for (size_t i = 0; i < count; i++)
		if (entries[i].foreign || entries[i].shared != shared)
			return false;
	return shared || count < slots;
}

static int check_queue(const struct mount *mount, const char *lock, bool shared)
{
	char *text = mount_read(mount, lock, "slots");
	size_t slots = text ? strtoul(text, NULL, 10) : 1, count, told = 0, waiting = 0;
	struct entry *entries;
	bool free_now;

	free(text);
	if (!entries_list(mount, lock, &entries, &count)) {
		printf("its queue cannot be read: %s\n", strerror(errno));
		return EX_TEMPFAIL;
	}
	free_now = is_free(entries, count, slots, shared);
	for (size_t i = 0; i < count && !free_now; i++) {
		waiting += !entries[i].held;
		if (entries[i].held && told++ < TOLD_MAX)
			tell_entry(mount, lock, &entries[i]);
	}
	if (told > TOLD_MAX)
		printf("and by %zu more\n", told - TOLD_MAX);
	if (waiting)
		printf("%zu %s for it already\n", waiting, waiting == 1 ? "waits" : "wait");
	if (!free_now && slots > 1)
		printf("it has %zu slots\n", slots);
	entries_free(entries, count);
	return free_now ? EX_OK : EX_TEMPFAIL;
}

int look_why(const struct mount *mount, const char *lock, bool shared)
{
	int status = check_mount(mount);

	if (status == EX_OK)
		status = check_door(mount, lock);
	if (status == EX_OK)
		status = check_queue(mount, lock, shared);
	if (status == EX_OK)
		puts("nothing is in the way: it could be taken now");
	return status;
}
