/* SPDX-License-Identifier: MIT
 *
 * A large piece of memory is a mapping of its own. A sanitizer has no heap that ends somewhere.
 */
#include "host/memory.h"

#include "unit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGE ((size_t)20 * 1024 * 1024)

static const char *end_of_heap(void)
{
	return sbrk(0);
}

static void large_pieces(void **state)
{
	const char *end = end_of_heap();
	void *piece;

	(void)state;
	for (int i = 0; i < 2; i++) {
		piece = malloc(LARGE);
		assert_non_null(piece);
		assert_ptr_equal(end_of_heap(), end);
		free(piece);
	}
}

#ifndef __SANITIZE_ADDRESS__
#define PIECES 10000

static long resident_pages(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long size, resident;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%ld %ld", &size, &resident), 2);
	fclose(file);
	return resident;
}

static void *pieces[PIECES];

static void make_pieces(unsigned *most)
{
	*most = 0;
	for (int i = 0; i < PIECES; i++) {
		pieces[i] = malloc(2048);
		assert_non_null(pieces[i]);
		memset(pieces[i], 1, 2048);
	}
	memory_tend(PIECES, most);
}

/* The last piece stands at the end of the heap, so free(3) alone gives nothing back. */
static void after_many(void **state)
{
	unsigned most;
	long before = resident_pages();

	(void)state;
	make_pieces(&most);
	for (int i = 0; i < PIECES - 1; i++)
		free(pieces[i]);
	memory_tend(PIECES / 8 + 1, &most);
	assert_in_range(resident_pages(), before + PIECES / 3, LONG_MAX);
	memory_tend(PIECES / 8, &most);
	assert_in_range(resident_pages(), 0, before + PIECES / 8);
	assert_int_equal(most, PIECES / 8);
	free(pieces[PIECES - 1]);
}

/* Each eighth piece stays for a while: hardly a page is free. */
static void in_two_parts(void **state)
{
	unsigned most;
	long before = resident_pages();

	(void)state;
	make_pieces(&most);
	for (int i = 0; i < PIECES; i++)
		if (i % 8 != 0)
			free(pieces[i]);
	memory_tend(PIECES / 8, &most);
	assert_in_range(resident_pages(), before + PIECES / 16, LONG_MAX);
	for (int i = 0; i < PIECES - 8; i += 8)
		free(pieces[i]);
	memory_tend(1, &most);
	assert_in_range(resident_pages(), 0, before + PIECES / 16);
	free(pieces[PIECES - 8]);
	memory_tend(0, &most);
	assert_int_equal(most, 0);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(large_pieces),
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(after_many),
		cmocka_unit_test(in_two_parts),
#endif
	};

	memory_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
