/* SPDX-License-Identifier: MIT */
#include "host/row.h"

#include "lockcore.h"

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

/* The bytes of a character beyond ASCII that cannot stand in a word. 0: none begins here. */
static size_t unfit(const char *text)
{
	size_t len = strnlen(text, 4), blank = lc_text_blank(text, len);
	size_t size = blank > 0 ? blank : lc_text_harmful(text, len);

	return size > 1 ? size : 0;
}

static void put_octal(struct row *row, const unsigned char *bytes, size_t count)
{
	char code[8];

	for (size_t i = 0; i < count; i++) {
		snprintf(code, sizeof(code), "\\%03o", bytes[i]);
		put_bytes(row, code, 4);
	}
}

void row_word(struct row *row, const char *text)
{
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
		const unsigned char *byte = (const unsigned char *)text;
		size_t wide = unfit(text);

		if (wide > 0)
			put_octal(row, byte, wide);
		else if (*byte == ' ' || *byte == '\\')
			put_octal(row, byte, 1);
		else if (*byte < 0x20 || *byte == 0x7f)
			put_bytes(row, "?", 1);
		else
			put_bytes(row, text, 1);
		text += wide > 0 ? wide : 1;
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
