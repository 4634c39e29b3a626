/* SPDX-License-Identifier: MIT */
#include "columns.h"

#include "clean.h"

#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <wchar.h>

/* Two blanks end a column: others write none into a text, and none at its ends. */
static void keep_column(char *text)
{
	for (char *c = text; *c; c++)
		if (*c == ' ' && (c == text || c[-1] == ' ' || !c[1]))
			*c = '?';
}

static char *copy_word(const char *text, bool last)
{
	char shown[CLEAN_MAX], *word;

	clean(shown, sizeof(shown), text);
	if (!last)
		keep_column(shown);
	word = strdup(shown);
	if (!word)
		err(EX_OSERR, NULL);
	return word;
}

void columns_add(struct columns *columns, const char *const *words)
{
	if (columns->lines == columns->size) {
		columns->size = columns->size * 2 + 64;
		columns->words = reallocarray(columns->words, columns->size * columns->columns,
		                              sizeof(*columns->words));
		if (!columns->words)
			err(EX_OSERR, NULL);
	}
	for (size_t i = 0; i < columns->columns; i++)
		columns->words[columns->lines * columns->columns + i] =
			copy_word(words[i], i + 1 == columns->columns);
	columns->lines++;
}

void columns_begin(struct columns *columns, const char *const *heads)
{
	*columns = (struct columns){.words = NULL};
	while (heads[columns->columns])
		columns->columns++;
	columns_add(columns, heads);
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

static void find_widths(const struct columns *columns, int widths[COLUMNS_MAX])
{
	for (size_t i = 0; i < columns->lines * columns->columns; i++) {
		int width = width_of(columns->words[i]);

		if (width > widths[i % columns->columns])
			widths[i % columns->columns] = width;
	}
	widths[columns->columns - 1] = 0;
}

void columns_print(struct columns *columns)
{
	int widths[COLUMNS_MAX] = {0};

	find_widths(columns, widths);
	for (size_t i = 0; i < columns->lines * columns->columns; i++) {
		size_t column = i % columns->columns;
		int blanks = widths[column] - width_of(columns->words[i]);

		printf("%s%s%*s", column ? "  " : "", columns->words[i], blanks > 0 ? blanks : 0,
		       "");
		if (column + 1 == columns->columns)
			putchar('\n');
		free(columns->words[i]);
	}
	free(columns->words);
}
