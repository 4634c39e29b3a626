/* SPDX-License-Identifier: MIT
 *
 * look.c - `zklock ls`, `zklock history` and `zklock evict`, see look.h.
 */
#include "look.h"

#include "clean.h"
#include "columns.h"
#include "entry.h"
#include "health.h"
#include "span.h"
#include "table.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#define TERMINAL_LINES 100

/* Ends the program for a file of .zklockfs that could not be read. */
static _Noreturn void cannot_read(const struct mount *mount, const char *file)
{
	char why[HEALTH_MAX];

	if (errno == ENOENT)
		errx(EX_UNAVAILABLE, "%s/.zklockfs/%s: no such file; is this the whole mount?",
		     mount->path, file);
	if (errno == EINVAL)
		errx(EX_UNAVAILABLE, "%s/.zklockfs/%s is not as expected", mount->path, file);
	errx(EX_UNAVAILABLE, "%s/.zklockfs/%s: %s", mount->path, file,
	     health_explain(mount, errno, why));
}

/* ---- ls ---- */

int look_all(const struct mount *mount)
{
	static const char *const heads[] = {"LOCK",    "HELD",   "HOST",    "PID",
	                                    "COMMAND", "TOKEN",  "WAITERS", "WAITED",
	                                    "HOLDERS", "REASON", NULL};
	struct columns columns;
	struct table table;

	if (!table_read(mount, "locks", &table))
		cannot_read(mount, "locks");
	columns_begin(&columns, heads);
	for (size_t i = 0; i < table.count; i++) {
		const struct row *row = &table.rows[i];
		char held[SPAN_MAX], waited[SPAN_MAX], holders[ROW_HOLDERS_MAX];
		const char *const words[] = {
			row->lock,
			span_format(held, row->held_ms),
			row->host,
			row->pid,
			row->command,
			row->token,
			row->waiters,
			span_format(waited, row->waited_ms),
			row_holders(row, holders),
			row->reason,
		};

		columns_add(&columns, words);
	}
	columns_print(&columns);
	table_free(&table);
	return EX_OK;
}

static void find_entries(const struct mount *mount, const char *lock, struct entry **ret_entries,
                         size_t *ret_count)
{
	char shown[CLEAN_MAX], why[HEALTH_MAX];

	if (entries_list(mount, lock, ret_entries, ret_count))
		return;
	clean(shown, sizeof(shown), lock);
	if (errno == ENOENT || errno == ENOTDIR)
		errx(EX_NOINPUT, "%s: no such lock", shown);
	errx(health_exit_status(errno), "%s: %s", shown, health_explain(mount, errno, why));
}

/* To read an entry is a request, and nobody reads thousands of lines on a terminal. */
static size_t lines_of(size_t count)
{
	return count > TERMINAL_LINES && isatty(STDOUT_FILENO) ? TERMINAL_LINES : count;
}

int look_queue(const struct mount *mount, const char *lock)
{
	static const char *const heads[] = {"NUMBER", "STATE",   "MODE",  "FOR",    "HOST",
	                                    "PID",    "COMMAND", "TOKEN", "REASON", NULL};
	struct columns columns;
	struct entry *entries;
	struct health health;
	char name[CLEAN_MAX];
	size_t count, shown;

	find_entries(mount, lock, &entries, &count);
	shown = lines_of(count);
	health_read(mount, &health);
	columns_begin(&columns, heads);
	for (size_t i = 0; i < shown; i++) {
		struct entry *entry = &entries[i];
		char age[SPAN_MAX], number[16];

		entry_read(mount, lock, entry);
		snprintf(number, sizeof(number), "%.*s", (int)strcspn(entry->name, "-"),
		         entry->name);
		const char *const words[] = {
			number,
			entry->covered ? "covered"
			: entry->held  ? "held"
				       : "waiting",
			entry->shared ? "shared" : "exclusive",
			span_format(age, entry_age(entry, &health)),
			entry->host,
			entry->pid,
			entry->command,
			entry->token,
			entry->reason,
		};

		columns_add(&columns, words);
	}
	columns_print(&columns);
	if (shown < count)
		printf("and %zu more; zklock ls %s | cat lists all\n", count - shown,
		       clean(name, sizeof(name), lock));
	entries_free(entries, count);
	health_free(&health);
	return EX_OK;
}

/* ---- history ---- */

static const char *name_user(const char *uid)
{
	char *end;
	unsigned long number = strtoul(uid, &end, 10);
	const struct passwd *user = *uid && !*end ? getpwuid((uid_t)number) : NULL;

	return user ? user->pw_name : uid;
}

static void add_past(struct columns *columns, const struct row *row)
{
	char ended[SPAN_TIME_MAX], held[SPAN_MAX], waited[SPAN_MAX];
	const char *const words[] = {
		span_time(ended, row->ended),
		row->lock,
		row->mode,
		span_format(held, row->held_ms),
		span_format(waited, row->waited_ms),
		row->end,
		name_user(row->uid),
		row->pid,
		row->command,
		row->token,
		row->by,
		row->reason,
	};

	columns_add(columns, words);
}

/* A lock that is gone may have a history; a name without one may be a typing error. Without contact
 * nobody is asked: a history needs no ensemble. */
static void check_lock_there(const struct mount *mount, const char *lock)
{
	char shown[CLEAN_MAX], why[HEALTH_MAX];
	struct entry *entries;
	struct health health;
	size_t count;
	bool good;

	health_read(mount, &health);
	good = health_is_good(&health, why);
	health_free(&health);
	if (!good)
		return;
	if (entries_list(mount, lock, &entries, &count))
		entries_free(entries, count);
	else if (errno == ENOENT || errno == ENOTDIR)
		errx(EX_NOINPUT, "%s: no such lock", clean(shown, sizeof(shown), lock));
}

int look_history(const struct mount *mount, const char *lock)
{
	static const char *const heads[] = {"ENDED", "LOCK",   "MODE", "HELD",    "WAITED",
	                                    "END",   "USER",   "PID",  "COMMAND", "TOKEN",
	                                    "BY",    "REASON", NULL};
	char shown[CLEAN_MAX];
	struct columns columns;
	struct table table;
	size_t found = 0;

	if (!table_read(mount, "history", &table))
		cannot_read(mount, "history");
	columns_begin(&columns, heads);
	for (size_t i = 0; i < table.count; i++)
		if (!lock || strcmp(table.rows[i].lock, lock) == 0) {
			add_past(&columns, &table.rows[i]);
			found++;
		}
	if (lock && !found)
		check_lock_there(mount, lock);
	columns_print(&columns);
	table_free(&table);
	if (lock && !found)
		warnx("no hold of %s has ended on this mount; each host has its own history",
		      clean(shown, sizeof(shown), lock));
	if (geteuid() != 0)
		warnx("these are your own holds; root sees those of all users");
	return EX_OK;
}

/* ---- evict ---- */

#define LETS_GO_US 2000000
#define LOOK_US 50000

/* The whole name, its number with or without zeros in front, or that it holds. */
static bool is_meant(const struct entry *entry, const char *word)
{
	const char *name = entry->name, *given = word;
	size_t n;

	if (strcmp(word, "holder") == 0)
		return entry->held;
	if (strcmp(word, name) == 0)
		return true;
	name += strspn(name, "0");
	word += strspn(word, "0");
	n = strcspn(name, "-");
	return *given && strlen(word) == n && strncmp(name, word, n) == 0;
}

/* Whether the holder is stopped, only its own mount knows. */
static void tell_what_follows(const struct mount *mount, const struct entry *entry)
{
	char who[ENTRY_WHO_MAX], session[40], on_lost[40];
	struct health health;
	bool here;

	health_read(mount, &health);
	here = strcmp(health_value(&health, "session", session, sizeof(session)), entry->session) ==
	       0;
	health_value(&health, "on_lost", on_lost, sizeof(on_lost));
	health_free(&health);
	entry_who(entry, who);
	if (!here)
		warnx("%s is stopped only if zklock started it, or if its mount has on_lost; "
		      "otherwise it "
		      "keeps running without the lock until it looks",
		      who);
	else if (strcmp(on_lost, "none") == 0)
		warnx("%s is stopped only if zklock started it, as this mount has no on_lost; "
		      "otherwise it "
		      "keeps running without the lock until it looks",
		      who);
}

/* Its own mount lets it go when it has read the mark, as a rule at once. Nothing tells of that. An
 * open asks the ensemble: what a look at the name finds is kept by the kernel for a second. It
 * does not wait for a lease. */
static bool is_let_go(const struct mount *mount, const char *lock, const char *name)
{
	char file[320];

	snprintf(file, sizeof(file), "queue/%s", name);
	for (int64_t waited_us = 0; waited_us < LETS_GO_US; waited_us += LOOK_US) {
		int fd = mount_open(mount, lock, file, O_RDONLY | O_NONBLOCK);

		if (fd < 0 && errno == ENOENT)
			return true;
		if (fd >= 0)
			close(fd);
		usleep(LOOK_US);
	}
	return false;
}

static void tell_eviction(const struct mount *mount, const char *lock, const struct entry *entry)
{
	char shown[CLEAN_MAX];
	bool gone = is_let_go(mount, lock, entry->name);

	printf("%s: %s\n", clean(shown, sizeof(shown), entry->name),
	       gone ? "evicted" : "marked for eviction");
	fflush(stdout);
	if (!gone)
		warnx("it still has its place: the lock is free when its mount has stopped its "
		      "processes or, if its host has no contact, when its session ends");
	if (entry->held && !entry->foreign && !entry->kept)
		tell_what_follows(mount, entry);
}

static int evict_one(const struct mount *mount, const char *lock, struct entry *entry)
{
	char shown[CLEAN_MAX], why[HEALTH_MAX];
	int error;

	entry_read(mount, lock, entry);
	error = mount_evict(mount, lock, entry->name) == 0 ? 0 : errno;
	clean(shown, sizeof(shown), entry->name);
	if (error == 0) {
		tell_eviction(mount, lock, entry);
		return EX_OK;
	}
	if (error == ENOENT)
		warnx("%s: is gone already", shown);
	else if (error == EPERM)
		warnx("%s: only its user, the lock's owner and root may evict it", shown);
	else
		warnx("%s: %s", shown, health_explain(mount, error, why));
	return error == ENOENT ? EX_OK : error == EPERM ? EX_NOPERM : EX_UNAVAILABLE;
}

int look_evict(const struct mount *mount, const char *lock, char **words)
{
	struct entry *entries;
	int status = EX_OK;
	char shown[CLEAN_MAX];
	size_t count;

	find_entries(mount, lock, &entries, &count);
	for (; *words; words++) {
		size_t found = 0;

		for (size_t i = 0; i < count; i++) {
			int result = is_meant(&entries[i], *words)
			                     ? evict_one(mount, lock, &entries[i])
			                     : -1;

			found += result >= 0;
			if (result > 0)
				status = result;
		}
		if (found)
			continue;
		if (strcmp(*words, "holder") == 0)
			warnx("nobody holds %s", clean(shown, sizeof(shown), lock));
		else
			warnx("%s: no such entry in the queue",
			      clean(shown, sizeof(shown), *words));
		status = EX_NOINPUT;
	}
	entries_free(entries, count);
	return status;
}
