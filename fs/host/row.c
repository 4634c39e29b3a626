/* SPDX-License-Identifier: MIT */
#include "host/row.h"

#include "host/safe.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void put_bytes(struct row *row, const char *text, size_t len)
{
	if (len > row->room - row->len) {
		row->short_of_room = true;
		return;
	}
	memcpy(row->text + row->len, text, len);
	row->len += len;
}

static void put_separator(struct row *row)
{
	if (row->len > 0 && row->text[row->len - 1] != '\n')
		put_bytes(row, " ", 1);
}

void row_word(struct row *row, const char *text)
{
	char next[SAFE_MAX];

	put_separator(row);
	if (!text || !*text) {
		put_bytes(row, "-", 1);
		return;
	}
	if (strcmp(text, "-") == 0) {
		put_bytes(row, "\\055", 4);
		return;
	}
	while (*text) {
		size_t len = safe_next(&text, SAFE_COLUMN, next);

		put_bytes(row, next, len);
	}
}

const char *row_only(char *room, size_t size, const char *text)
{
	struct row row = {.text = room, .room = size - 1};

	row_word(&row, text);
	room[row.len] = '\0';
	return room;
}

void row_number(struct row *row, int64_t number, int64_t none)
{
	char text[ROW_NUMBER_MAX];

	put_separator(row);
	if (number == none)
		put_bytes(row, "-", 1);
	else
		put_bytes(row, text, (size_t)snprintf(text, sizeof(text), "%" PRId64, number));
}

void row_seconds(struct row *row, int64_t ms)
{
	char text[ROW_NUMBER_MAX];
	int64_t tenths = ms / 100 + (ms % 100 >= 50);

	put_separator(row);
	if (ms < 0)
		put_bytes(row, "-", 1);
	else
		put_bytes(row, text,
		          (size_t)snprintf(text, sizeof(text), "%" PRId64 ".%d", tenths / 10,
		                           (int)(tenths % 10)));
}

void row_end(struct row *row)
{
	put_bytes(row, "\n", 1);
}
