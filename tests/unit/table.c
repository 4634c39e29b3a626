/* SPDX-License-Identifier: MIT
 *
 * The table of objects by a number.
 */
#include "pure/table.h"

#include "unit.h"

#include <string.h>

#define THINGS 1000

struct thing {
	struct table_link link;
	unsigned seen;
};

static struct thing things[THINGS];

static void add_all(struct table *table, size_t count)
{
	memset(things, 0, sizeof(things));
	for (size_t i = 0; i < count; i++)
		assert_true(table_add(table, &things[i].link, i * i));
	assert_int_equal(table->count, count);
}

static void remove_all(struct table *table, size_t count)
{
	for (size_t i = 0; i < count; i++)
		table_remove(table, &things[i].link);
	table_finish(table);
}

static void finds_by_number(void **state)
{
	struct table table = {0};

	(void)state;
	assert_null(table_find(&table, 0));
	add_all(&table, THINGS);
	for (size_t i = 0; i < THINGS; i++)
		assert_ptr_equal(table_find(&table, i * i), &things[i].link);
	assert_null(table_find(&table, 2));
	assert_null(table_find(&table, UINT64_MAX));
	for (size_t i = 0; i < THINGS; i += 2)
		table_remove(&table, &things[i].link);
	for (size_t i = 0; i < THINGS; i++)
		assert_ptr_equal(table_find(&table, i * i), i % 2 ? &things[i].link : NULL);
	for (size_t i = 1; i < THINGS; i += 2)
		table_remove(&table, &things[i].link);
	table_finish(&table);
}

static void rows_are_short(void **state)
{
	struct table table = {0};
	size_t longest = 0;

	(void)state;
	add_all(&table, THINGS);
	for (size_t at = 0; table_row(&table, &at); at++) {
		size_t length = 0;

		for (struct table_link *link = table_row(&table, &at); link; link = link->next)
			length++;
		longest = length > longest ? length : longest;
	}
	assert_in_range(longest, 1, 8);
	remove_all(&table, THINGS);
}

static void walks_all(void **state)
{
	struct table table = {0};
	struct table_link *link, *next;
	size_t left = THINGS;

	(void)state;
	assert_null(table_next(&table, NULL));
	add_all(&table, THINGS);
	for (link = table_next(&table, NULL); link; link = next) {
		next = table_next(&table, link);
		assert_int_equal(((struct thing *)link)->seen++, 0);
		table_remove(&table, link);
		assert_int_equal(table.count, --left);
	}
	assert_int_equal(left, 0);
	table_finish(&table);
}

/* The table grows after each row of the walk: all objects that were there at first are seen. */
static void goes_on_in_a_table_that_grows(void **state)
{
	struct table table = {0};
	size_t added = 20;

	(void)state;
	add_all(&table, added);
	for (size_t at = 0; table_row(&table, &at); at++) {
		for (struct table_link *link = table_row(&table, &at); link; link = link->next)
			((struct thing *)link)->seen++;
		for (size_t more = added; added < 2 * more && added < THINGS; added++)
			assert_true(table_add(&table, &things[added].link, added * added));
	}
	for (size_t i = 0; i < 20; i++)
		assert_true(things[i].seen > 0);
	remove_all(&table, added);
}

static void gives_all(void **state)
{
	struct table table = {0};
	size_t count = 0;

	(void)state;
	assert_null(table_take_all(&table));
	add_all(&table, THINGS);
	for (struct table_link *link = table_take_all(&table); link; link = link->next)
		count++;
	assert_int_equal(count, THINGS);
	assert_null(table_find(&table, 4));
	table_finish(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_by_number), cmocka_unit_test(rows_are_short),
		cmocka_unit_test(walks_all),       cmocka_unit_test(goes_on_in_a_table_that_grows),
		cmocka_unit_test(gives_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
