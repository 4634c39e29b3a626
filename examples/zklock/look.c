/* SPDX-License-Identifier: MIT
 *
 * look.c - `zklock ls` and `zklock evict`, see look.h.
 */
#include "look.h"

#include "clean.h"
#include "entry.h"
#include "span.h"
#include "table.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>
#include <wchar.h>

/* ---- columns ---- */

#define COLUMNS 9

struct line {
	char *words[COLUMNS];
};

static char *copy_word(const char *text)
{
	char shown[CLEAN_MAX], *word = strdup(clean(shown, sizeof(shown), text));

	if (!word)
		err(EX_OSERR, NULL);
	return word;
}

/* Places on a screen, not bytes. */
static int width_of(const char *word)
{
	int width = 0;
	size_t n;
	wchar_t c;

	for (; (n = clean_next(word, &c)) > 0; word += n)
		width += wcwidth(c);
	return width;
}

/* Each column as wide as it must be, the last one as it is. Frees the words. */
static void print_lines(struct line *lines, size_t count)
{
	for (size_t column = 0; column + 1 < COLUMNS; column++) {
		int width = 0;

		for (size_t i = 0; i < count; i++)
			if (width_of(lines[i].words[column]) > width)
				width = width_of(lines[i].words[column]);
		for (size_t i = 0; i < count; i++) {
			char *word = lines[i].words[column], *padded = NULL;

			if (asprintf(&padded, "%s%*s", word, width - width_of(word), "") < 0)
				err(EX_OSERR, NULL);
			free(word);
			lines[i].words[column] = padded;
		}
	}
	for (size_t i = 0; i < count; i++) {
		for (size_t column = 0; column < COLUMNS; column++) {
			printf("%s%s", column ? "  " : "", lines[i].words[column]);
			free(lines[i].words[column]);
		}
		putchar('\n');
	}
	free(lines);
}

static struct line *new_lines(size_t count, const char *const heads[COLUMNS])
{
	struct line *lines = calloc(count + 1, sizeof(*lines));

	if (!lines)
		err(EX_OSERR, NULL);
	for (size_t column = 0; column < COLUMNS; column++)
		lines[0].words[column] = copy_word(heads[column]);
	return lines;
}

/* ---- ls ---- */

int look_all(const struct mount *mount)
{
	static const char *const heads[COLUMNS] = {"LOCK",  "HELD",    "HOST", "PID",   "COMMAND",
	                                           "TOKEN", "WAITERS", "WAIT", "REASON"};
	struct line *lines;
	struct table table;

	if (!table_read(mount, &table)) {
		if (errno == ENOENT)
			errx(EX_UNAVAILABLE,
			     "%s/.zklockfs/locks: no such file; is this the whole mount?",
			     mount->path);
		err(EX_UNAVAILABLE, "%s/.zklockfs/locks", mount->path);
	}
	lines = new_lines(table.count, heads);
	for (size_t i = 0; i < table.count; i++) {
		const struct row *row = &table.rows[i];
		char held[SPAN_MAX], waited[SPAN_MAX];
		const char *words[COLUMNS] = {
			row->lock,    span_format(held, row->held_ms),
			row->host,    row->pid,
			row->command, row->token,
			row->waiters, span_format(waited, row->waited_ms),
			row->reason,
		};

		for (size_t column = 0; column < COLUMNS; column++)
			lines[i + 1].words[column] = copy_word(words[column]);
	}
	print_lines(lines, table.count + 1);
	table_free(&table);
	return EX_OK;
}

static void find_entries(const struct mount *mount, const char *lock, struct entry **ret_entries,
                         size_t *ret_count)
{
	char shown[CLEAN_MAX];

	if (entries_list(mount, lock, ret_entries, ret_count))
		return;
	clean(shown, sizeof(shown), lock);
	if (errno == ENOENT || errno == ENOTDIR)
		errx(EX_NOINPUT, "%s: no such lock", shown);
	err(errno == EACCES ? EX_NOPERM : EX_UNAVAILABLE, "%s", shown);
}

int look_queue(const struct mount *mount, const char *lock)
{
	static const char *const heads[COLUMNS] = {"NUMBER", "STATE",   "MODE",  "FOR",   "HOST",
	                                           "PID",    "COMMAND", "TOKEN", "REASON"};
	struct entry *entries;
	struct line *lines;
	size_t count;

	find_entries(mount, lock, &entries, &count);
	lines = new_lines(count, heads);
	for (size_t i = 0; i < count; i++) {
		struct entry *entry = &entries[i];
		char age[SPAN_MAX], number[16];
		int64_t since;

		entry_read(mount, lock, entry);
		since = span_since(entry->held ? entry->held_since : entry->queued_since);
		snprintf(number, sizeof(number), "%.*s", (int)strcspn(entry->name, "-"),
		         entry->name);
		const char *words[COLUMNS] = {
			number,
			entry->held ? "held" : "waiting",
			entry->shared ? "shared" : "exclusive",
			span_format(age, since),
			entry->host,
			entry->pid,
			entry->command,
			entry->token,
			entry->reason,
		};

		for (size_t column = 0; column < COLUMNS; column++)
			lines[i + 1].words[column] = copy_word(words[column]);
	}
	print_lines(lines, count + 1);
	entries_free(entries, count);
	return EX_OK;
}

/* ---- evict ---- */

/* The whole name, its number with or without zeros in front, or that it holds. */
static bool is_meant(const struct entry *entry, const char *word)
{
	const char *name = entry->name;
	size_t n;

	if (strcmp(word, "holder") == 0)
		return entry->held;
	if (strcmp(word, name) == 0)
		return true;
	name += strspn(name, "0");
	word += strspn(word, "0");
	n = strcspn(name, "-");
	return *word && strlen(word) == n && strncmp(name, word, n) == 0;
}

static int evict_one(const struct mount *mount, const char *lock, const struct entry *entry)
{
	char shown[CLEAN_MAX];
	int error = mount_evict(mount, lock, entry->name) == 0 ? 0 : errno;

	clean(shown, sizeof(shown), entry->name);
	if (error == 0) {
		printf("%s: evicted\n", shown);
		return EX_OK;
	}
	if (error == ENOENT)
		warnx("%s: is gone already", shown);
	else if (error == EPERM)
		warnx("%s: only its user, the lock's owner and root may evict it", shown);
	else
		warnx("%s: %s", shown, strerror(error));
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
		if (!found) {
			warnx("%s: no such entry in the queue",
			      clean(shown, sizeof(shown), *words));
			status = EX_NOINPUT;
		}
	}
	entries_free(entries, count);
	return status;
}
