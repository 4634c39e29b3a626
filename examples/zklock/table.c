/* SPDX-License-Identifier: MIT */
#include "table.h"

#include "clean.h"
#include "span.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 40
#define LOCKS 1U
#define HISTORY 2U

static const struct column {
	const char *name;
	size_t offset;
	bool is_time;    /* seconds, which become int64_t */
	unsigned needed; /* by which file */
} known[] = {
	{"LOCK", offsetof(struct row, lock), false, LOCKS | HISTORY},
	{"MODE", offsetof(struct row, mode), false, 0},
	{"HOLDERS", offsetof(struct row, holders), false, LOCKS},
	{"WAITERS", offsetof(struct row, waiters), false, LOCKS},
	{"SLOTS", offsetof(struct row, slots), false, 0},
	{"ENDED", offsetof(struct row, ended), false, HISTORY},
	{"END", offsetof(struct row, end), false, HISTORY},
	{"BY", offsetof(struct row, by), false, 0},
	{"HELD", offsetof(struct row, held_ms), true, LOCKS | HISTORY},
	{"WAITED", offsetof(struct row, waited_ms), true, LOCKS | HISTORY},
	{"HOST", offsetof(struct row, host), false, 0},
	{"PID", offsetof(struct row, pid), false, 0},
	{"UID", offsetof(struct row, uid), false, 0},
	{"COMMAND", offsetof(struct row, command), false, 0},
	{"SINCE", offsetof(struct row, since), false, 0},
	{"TOKEN", offsetof(struct row, token), false, 0},
	{"REASON", offsetof(struct row, reason), false, 0},
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
	const struct column *found[KNOWN] = {NULL};
	unsigned missed = 0;
	size_t n = 0;
	char *word;

	while (n < COLUMNS_MAX && (word = next_word(&line))) {
		for (size_t i = 0; i < KNOWN; i++) {
			if (strcmp(known[i].name, word) != 0)
				continue;
			columns[n] = found[i] = &known[i];
		}
		n++;
	}
	for (size_t i = 0; i < KNOWN; i++)
		missed |= found[i] ? 0 : known[i].needed;
	return missed != (LOCKS | HISTORY);
}

static void parse_row(char *line, const struct column *const columns[COLUMNS_MAX], struct row *row)
{
	char *word;

	*row = (struct row){.held_ms = -1, .waited_ms = -1};
	for (size_t i = 0; i < KNOWN; i++)
		if (!known[i].is_time)
			*(const char **)((char *)row + known[i].offset) = "-";
	for (size_t n = 0; n < COLUMNS_MAX && (word = next_word(&line)); n++) {
		char *field = (char *)row;

		if (!columns[n])
			continue;
		field += columns[n]->offset;
		if (!columns[n]->is_time) {
			clean_unescape(word);
			if (columns[n]->offset == offsetof(struct row, reason))
				(void)span_kept(word);
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

bool row_has_slots(const struct row *row)
{
	return strcmp(row->slots, "-") != 0 && strcmp(row->slots, "1") != 0;
}

const char *row_holders(const struct row *row, char buffer[ROW_HOLDERS_MAX])
{
	snprintf(buffer, ROW_HOLDERS_MAX, "%.20s%s%.20s", row->holders,
	         row_has_slots(row) ? "/" : "", row_has_slots(row) ? row->slots : "");
	return buffer;
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

bool table_read(const struct mount *mount, const char *file, struct table *ret_table)
{
	char *text = mount_read(mount, ".zklockfs", file);

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
