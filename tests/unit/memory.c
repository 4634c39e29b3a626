/* SPDX-License-Identifier: MIT
 *
 * A large piece of memory is a mapping of its own. A sanitizer has no heap that ends somewhere.
 */
#include "host/memory.h"

#include "unit.h"

#include <stdlib.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(large_pieces),
	};

	memory_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
