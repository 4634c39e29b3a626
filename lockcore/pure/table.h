/* SPDX-License-Identifier: MIT
 *
 * table.h - objects by a number. Each has a link in it, two words, so that thousands of them cost
 * little. Pure; fs/ uses it, too.
 *
 *     struct thing {
 *             struct table_link link;   (first: a cast gives the thing)
 *             ...
 *     };
 *
 * An object of each number at most. The order means nothing.
 */
#ifndef LOCKCORE_TABLE_H
#define LOCKCORE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table_link {
	uint64_t number;
	struct table_link *next; /* in its row */
};

/* All zero: empty. */
struct table {
	struct table_link **rows;
	unsigned bits; /* there are 2 to that many rows; it only grows */
	size_t count;
};

/* False: no memory, and it is not added. */
bool table_add(struct table *table, struct table_link *link, uint64_t number);
void table_remove(struct table *table, struct table_link *link);
/* NULL: none has that number. */
struct table_link *table_find(const struct table *table, uint64_t number);

/* The one after that, NULL: the first; NULL: there are no more. To remove one, ask for the next one
 * before. Items that are added meanwhile may be left out, and any other may come twice. */
struct table_link *table_next(const struct table *table, const struct table_link *link);
/* A walk that goes on after others were added or removed: the first one in row `*at` or behind it,
 * whose row is `*at` then; the others of that row follow by `next`. If the table has grown
 * meanwhile some come twice; none is left out. */
struct table_link *table_row(const struct table *table, size_t *at);
/* All of them, by `next`: none is in the table any more. */
struct table_link *table_take_all(struct table *table);
/* Gives back the memory of an empty one. */
void table_finish(struct table *table);

#endif
