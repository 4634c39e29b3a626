/* SPDX-License-Identifier: MIT */
#include "entry.h"

#include "clean.h"
#include "health.h"
#include "span.h"
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int compare_entries(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

bool entry_is_own(const struct entry *entry, const struct health *health)
{
	pid_t pid = atoi(entry->pid); /* 0: the mount cannot see it */

	return pid > 0 && health_sees_pids(health, entry->session) && tree_is_below(getpid(), pid);
}

const char *entry_owner(const struct entry *entry)
{
	const char *mode = entry->name + strcspn(entry->name, "-");
	const char *owner = *mode ? mode + 1 + strcspn(mode + 1, "-") : mode;

	return *owner ? owner + 1 : owner;
}

pid_t entry_pid(const struct entry *entry)
{
	return atoi(entry_owner(entry));
}

static bool add(struct entry **entries, size_t *count, size_t *size, const char *name)
{
	struct entry *entry;

	if (*count == *size) {
		size_t more = *size ? *size * 2 : 64;

		entry = reallocarray(*entries, more, sizeof(*entry));
		if (!entry)
			return false;
		*entries = entry;
		*size = more;
	}
	entry = &(*entries)[(*count)++];
	memset(entry, 0, sizeof(*entry));
	snprintf(entry->name, sizeof(entry->name), "%s", name);
	entry->shared = strncmp(name + strcspn(name, "-"), "-shared-", 8) == 0;
	entry->foreign = strncmp(entry_owner(entry), "foreign", 7) == 0;
	entry->host = entry->pid = entry->uid = entry->command = entry->queued_since =
		entry->held_since = entry->token = entry->session = entry->renewed_ago =
			entry->reason = "-";
	return true;
}

/* `x` marks those who hold. Each look is a request to the ensemble, and the first entry that is
 * there and waits ends them: no entry behind a waiter holds. */
static void look_who_holds(const struct mount *mount, const char *lock, struct entry *entries,
                           size_t count)
{
	struct stat stat;
	char file[320];
	bool waits = false;

	for (size_t i = 0; i < count && !waits; i++) {
		bool seen;

		snprintf(file, sizeof(file), "queue/%s", entries[i].name);
		seen = mount_stat(mount, lock, file, &stat) == 0;
		entries[i].held = seen && stat.st_mode & S_IXUSR;
		entries[i].covered = !seen && errno == EXDEV;
		waits = seen && !entries[i].held;
	}
}

bool entries_list(const struct mount *mount, const char *lock, struct entry **ret_entries,
                  size_t *ret_count)
{
	int fd = mount_open(mount, lock, "queue", O_RDONLY | O_DIRECTORY);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	struct entry *entries = NULL;
	size_t count = 0, size = 0;
	struct dirent *dirent;

	if (!directory) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (errno = 0, (dirent = readdir(directory)))
		if (*dirent->d_name != '.' && !add(&entries, &count, &size, dirent->d_name))
			break;
	if (errno) {
		int error = errno;

		closedir(directory);
		free(entries);
		errno = error;
		return false;
	}
	if (count)
		qsort(entries, count, sizeof(*entries), compare_entries);
	look_who_holds(mount, lock, entries, count);
	closedir(directory);
	*ret_entries = entries;
	*ret_count = count;
	return true;
}

void entry_read(const struct mount *mount, const char *lock, struct entry *entry)
{
	struct {
		const char *name;
		const char **value;
	} fields[] = {
		{"host", &entry->host},
		{"pid", &entry->pid},
		{"uid", &entry->uid},
		{"command", &entry->command},
		{"queued_since", &entry->queued_since},
		{"held_since", &entry->held_since},
		{"renewed_ago", &entry->renewed_ago},
		{"token", &entry->token},
		{"session", &entry->session},
		{"reason", &entry->reason},
	};
	char file[320], *line, *next;

	if (entry->text)
		return;
	snprintf(file, sizeof(file), "queue/%s", entry->name);
	entry->text = mount_read(mount, lock, file);
	for (line = entry->text; line && *line; line = next) {
		char *value = strstr(line, ": ");

		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		if (!value || value > next)
			continue;
		*value = '\0';
		for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
			if (strcmp(line, fields[i].name) == 0)
				*fields[i].value = value + 2;
		if (strcmp(line, "reason") == 0)
			entry->kept = span_kept(value + 2);
	}
}

/* The arrival is told by the ensemble's clock, the start of a hold by that of the holder's host. */
int64_t entry_age(const struct entry *entry, const struct health *health)
{
	char ahead[32];

	if (entry->held)
		return span_since(entry->held_since);
	health_value(health, "ensemble_clock", ahead, sizeof(ahead));
	return span_since_by(entry->queued_since, strtoll(ahead, NULL, 10));
}

const char *entry_who(const struct entry *entry, char buffer[ENTRY_WHO_MAX])
{
	char pid[24], command[80], host[80];

	clean(command, sizeof(command), entry->command);
	for (char *c = command; *c; c++)
		*c = (char)(*c == ' ' ? '_' : *c);
	snprintf(buffer, ENTRY_WHO_MAX, "process %s (%s) on %s",
	         clean(pid, sizeof(pid), entry->pid), command,
	         clean(host, sizeof(host), entry->host));
	return buffer;
}

const char *entry_why(const struct entry *entry, char buffer[CLEAN_MAX])
{
	*buffer = '\0';
	if (strcmp(entry->reason, "-") != 0 && strcmp(entry->reason, entry->command) != 0) {
		strcpy(buffer, ": ");
		clean(buffer + 2, CLEAN_MAX - 2, entry->reason);
	}
	return buffer;
}

void entries_free(struct entry *entries, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(entries[i].text);
	free(entries);
}
