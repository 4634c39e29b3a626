/* SPDX-License-Identifier: MIT
 *
 * What is expected is at the end of the heap, and goes back if it is not used. A sanitizer has no
 * such heap.
 */
#include "host/memory.h"

#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPECTED ((size_t)20 * 1024 * 1024)
#define HUGE_PAGE ((size_t)2 * 1024 * 1024)
#define PIECE 1000
#define PIECES (EXPECTED / 2 / PIECE)

#if defined(__SANITIZE_ADDRESS__)
#define HAS_HEAP 0
#else
#define HAS_HEAP 1
#endif

static const char *end_of_heap(void)
{
	return sbrk(0);
}

static void expected_and_used(void **state)
{
	static char *pieces[PIECES];
	const char *begin = end_of_heap(), *end;

	(void)state;
	memory_expect(EXPECTED);
	end = end_of_heap();
	assert_true(!HAS_HEAP || (size_t)(end - begin) >= EXPECTED);
	for (size_t i = 0; i < PIECES; i++) {
		pieces[i] = malloc(PIECE);
		assert_non_null(pieces[i]);
		memset(pieces[i], 1, PIECE);
	}
	assert_ptr_equal(end_of_heap(), end);
	memory_expect_no_more();
	for (size_t i = 0; i < PIECES; i++) /* malloc may keep them for the next user */
		free(pieces[i]);
	assert_true(!HAS_HEAP || (size_t)(end - end_of_heap()) > EXPECTED / 3);
}

/* A large piece is a mapping of its own, before and after. */
static void large_pieces(void **state)
{
	const char *end = end_of_heap();
	void *piece;

	(void)state;
	for (int i = 0; i < 2; i++) {
		piece = malloc(EXPECTED);
		assert_non_null(piece);
		assert_ptr_equal(end_of_heap(), end);
		free(piece);
		memory_expect(EXPECTED);
		memory_expect_no_more();
		free(malloc(PIECE * 100)); /* what is not used goes back then */
		end = end_of_heap();
	}
}

/* It comes page by page, apart from the heap. */
static void spare(void **state)
{
	struct memory_spare spare = {0};
	const char *end = end_of_heap();
	unsigned char resident[1];
	size_t parts = 1;

	(void)state;
	while (memory_spare_more(&spare, EXPECTED)) {
		assert_int_equal(spare.filled, parts * HUGE_PAGE);
		assert_int_equal(mincore(spare.bytes + spare.filled - 4096, 4096, resident), 0);
		assert_true(resident[0] & 1);
		parts++;
	}
	assert_true(spare.len >= EXPECTED);
	assert_int_equal(parts, spare.len / HUGE_PAGE);
	assert_false(memory_spare_more(&spare, EXPECTED));
	assert_ptr_equal(end_of_heap(), end);
	memory_spare_end(&spare);
	assert_null(spare.bytes);
	memory_spare_end(&spare);
}

static void little_is_not_spared(void **state)
{
	struct memory_spare spare = {0};

	(void)state;
	assert_false(memory_spare_more(&spare, PIECE));
	assert_null(spare.bytes);
	memory_spare_end(&spare);
}

static void little(void **state)
{
	const char *end = end_of_heap();

	(void)state;
	memory_expect(PIECE);
	assert_ptr_equal(end_of_heap(), end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spare),
		cmocka_unit_test(little_is_not_spared),
		cmocka_unit_test(expected_and_used),
		cmocka_unit_test(large_pieces),
		cmocka_unit_test(little),
	};

	memory_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
