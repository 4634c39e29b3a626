/* SPDX-License-Identifier: MIT
 *
 * table.c - see table.h. A row for each object, or more. The highest bits of a number's product
 * with SPREAD give its row, so numbers that follow each other are spread. When the rows double, the
 * objects of row r go to 2 r and 2 r + 1: never to a row before their old one.
 */
#include "pure/table.h"

#include <assert.h>
#include <stdlib.h>

#define BITS_MIN 4
/* 2^64, divided by the golden ratio. */
#define SPREAD UINT64_C(0x9e3779b97f4a7c15)

static size_t row_of(unsigned bits, uint64_t number)
{
	return (size_t)(number * SPREAD >> (64 - bits));
}

static size_t row_count(const struct table *table)
{
	return table->rows ? (size_t)1 << table->bits : 0;
}

static void put_in(struct table_link **rows, unsigned bits, struct table_link *link)
{
	struct table_link **row = &rows[row_of(bits, link->number)];

	link->next = *row;
	*row = link;
}

/* Without memory the rows become longer. False: there is no row at all. */
static bool make_room(struct table *table)
{
	unsigned bits = table->rows ? table->bits + 1 : BITS_MIN;
	struct table_link **rows, *link;

	if (table->count < row_count(table))
		return true;
	rows = calloc((size_t)1 << bits, sizeof(struct table_link *));
	if (!rows)
		return table->rows;
	for (size_t at = 0; (link = table_row(table, &at));) {
		table->rows[at] = link->next;
		put_in(rows, bits, link);
	}
	free(table->rows);
	table->rows = rows;
	table->bits = bits;
	return true;
}

bool table_add(struct table *table, struct table_link *link, uint64_t number)
{
	assert(!table_find(table, number));
	if (!make_room(table))
		return false;
	link->number = number;
	put_in(table->rows, table->bits, link);
	table->count++;
	return true;
}

void table_remove(struct table *table, struct table_link *link)
{
	struct table_link **at = &table->rows[row_of(table->bits, link->number)];

	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	table->count--;
}

struct table_link *table_find(const struct table *table, uint64_t number)
{
	struct table_link *link = table->rows ? table->rows[row_of(table->bits, number)] : NULL;

	while (link && link->number != number)
		link = link->next;
	return link;
}

struct table_link *table_row(const struct table *table, size_t *at)
{
	for (; *at < row_count(table); ++*at)
		if (table->rows[*at])
			return table->rows[*at];
	return NULL;
}

struct table_link *table_next(const struct table *table, const struct table_link *link)
{
	size_t at = link ? row_of(table->bits, link->number) + 1 : 0;

	return link && link->next ? link->next : table_row(table, &at);
}

struct table_link *table_take_all(struct table *table)
{
	struct table_link *all = NULL, *link;

	for (size_t at = 0; (link = table_row(table, &at));) {
		table->rows[at] = link->next;
		link->next = all;
		all = link;
	}
	table->count = 0;
	return all;
}

void table_finish(struct table *table)
{
	assert(table->count == 0);
	free(table->rows);
	*table = (struct table){0};
}
