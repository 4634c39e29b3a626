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

/* The last piece stands at the end of the heap, so free(3) alone gives nothing back. */
static void after_many(void **state)
{
	static void *pieces[PIECES];
	unsigned most = 0;
	long before = resident_pages();

	(void)state;
	for (int i = 0; i < PIECES; i++) {
		pieces[i] = malloc(2048);
		assert_non_null(pieces[i]);
		memset(pieces[i], 1, 2048);
	}
	memory_tend(PIECES, &most);
	for (int i = 0; i < PIECES - 1; i++)
		free(pieces[i]);
	memory_tend(PIECES / 8 + 1, &most);
	assert_in_range(resident_pages(), before + PIECES / 3, LONG_MAX);
	memory_tend(PIECES / 8, &most);
	assert_in_range(resident_pages(), 0, before + PIECES / 8);
	assert_int_equal(most, PIECES / 8);
	free(pieces[PIECES - 1]);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(large_pieces),
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(after_many),
#endif
	};

	memory_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
