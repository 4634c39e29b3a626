/* SPDX-License-Identifier: MIT
 *
 * columns.h - lines of words in columns for a person. The words may hold anything: see clean.h.
 */
#ifndef ZKLOCK_COLUMNS_H
#define ZKLOCK_COLUMNS_H

#include <stddef.h>

#define COLUMNS_MAX 16

struct columns {
	size_t columns, lines, size;
	char **words; /* `columns` of each line; the first line is the heads */
};

/* The heads, up to a NULL. */
void columns_begin(struct columns *columns, const char *const *heads);
/* One more line, with a word for each head. */
void columns_add(struct columns *columns, const char *const *words);
/* Prints them, each column as wide as it must be, the last one as it is; and frees all. */
void columns_print(struct columns *columns);

#endif
