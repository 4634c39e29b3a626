/* SPDX-License-Identifier: MIT
 *
 * table.c - see table.h.
 */
#include "table.h"

#include "clean.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 40

static const struct column {
	const char *name;
	size_t offset;
	bool is_time; /* seconds, which become int64_t */
	bool needed;
} known[] = {
	{"LOCK", offsetof(struct row, lock), false, true},
	{"MODE", offsetof(struct row, mode), false, false},
	{"HOLDERS", offsetof(struct row, holders), false, true},
	{"WAITERS", offsetof(struct row, waiters), false, true},
	{"HELD", offsetof(struct row, held_ms), true, true},
	{"WAITED", offsetof(struct row, waited_ms), true, true},
	{"HOST", offsetof(struct row, host), false, false},
	{"PID", offsetof(struct row, pid), false, false},
	{"UID", offsetof(struct row, uid), false, false},
	{"COMMAND", offsetof(struct row, command), false, false},
	{"SINCE", offsetof(struct row, since), false, false},
	{"TOKEN", offsetof(struct row, token), false, false},
	{"REASON", offsetof(struct row, reason), false, false},
};
#define KNOWN (sizeof(known) / sizeof(known[0]))

static char *next_word(char **rest)
{
	char *word = *rest + strspn(*rest, " ");

	*rest = word + strcspn(word, " ");
	if (**rest)
		*(*rest)++ = '\0';
	return *word ? word : NULL;
}

static char *next_line(char **rest)
{
	char *line = *rest;

	*rest += strcspn(line, "\n");
	if (**rest)
		*(*rest)++ = '\0';
	return line;
}

/* columns[n]: which known one the n-th of the file is; NULL: none. */
static bool parse_header(char *line, const struct column *columns[COLUMNS_MAX])
{
	size_t needed = 0, n = 0;
	char *word;

	for (size_t i = 0; i < KNOWN; i++)
		needed += known[i].needed;
	while (n < COLUMNS_MAX && (word = next_word(&line))) {
		for (size_t i = 0; i < KNOWN; i++) {
			if (strcmp(known[i].name, word) != 0)
				continue;
			columns[n] = &known[i];
			needed -= known[i].needed;
		}
		n++;
	}
	return needed == 0;
}

static void parse_row(char *line, const struct column *const columns[COLUMNS_MAX], struct row *row)
{
	char *word;

	*row = (struct row){"-", "-", "0", "0", "-", "-", "-", "-", "-", "-", "-", -1, -1};
	for (size_t n = 0; n < COLUMNS_MAX && (word = next_word(&line)); n++) {
		char *field = (char *)row;

		if (!columns[n])
			continue;
		field += columns[n]->offset;
		if (!columns[n]->is_time) {
			clean_unescape(word);
			*(const char **)field = word;
		} else if (strcmp(word, "-") != 0) {
			*(int64_t *)field = (int64_t)(strtod(word, NULL) * 1000);
		}
	}
	if (strcmp(row->holders, "-") == 0)
		row->holders = "?";
	if (strcmp(row->waiters, "-") == 0)
		row->waiters = "?";
}

bool table_parse(char *text, struct table *ret_table)
{
	const struct column *columns[COLUMNS_MAX] = {NULL};
	size_t lines = 0;

	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	if (!parse_header(next_line(&text), columns)) {
		errno = EINVAL;
		return false;
	}
	ret_table->rows = calloc(lines + 1, sizeof(*ret_table->rows));
	if (!ret_table->rows)
		return false;
	ret_table->count = 0;
	while (*text) {
		char *line = next_line(&text);

		if (*line)
			parse_row(line, columns, &ret_table->rows[ret_table->count++]);
	}
	return true;
}

bool table_read(const struct mount *mount, struct table *ret_table)
{
	char *text = mount_read(mount, ".zklockfs", "locks");

	if (!text)
		return false;
	if (!table_parse(text, ret_table)) {
		int error = errno;

		free(text);
		errno = error;
		return false;
	}
	ret_table->text = text;
	return true;
}

void table_free(struct table *table)
{
	free(table->rows);
	free(table->text);
	*table = (struct table){.text = NULL};
}
