/* SPDX-License-Identifier: MIT
 *
 * What is expected is at the end of the heap, and goes back if it is not used. A sanitizer has no
 * such heap.
 */
#include "memory.h"

#include "unit.h"

#include <stdlib.h>
#include <string.h>
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
	memory_expect(EXPECTED, true);
	end = end_of_heap();
	assert_true(!HAS_HEAP || (size_t)(end - begin) >= EXPECTED);
	for (size_t i = 0; i < PIECES; i++) {
		pieces[i] = malloc(PIECE);
		assert_non_null(pieces[i]);
		memset(pieces[i], 1, PIECE);
	}
	assert_ptr_equal(end_of_heap(), end);
	memory_expect_no_more();
	for (size_t i = 0; i < PIECES; i++) /* malloc keeps the first ones for the next user */
		free(pieces[i]);
	assert_true(!HAS_HEAP || (size_t)(end - end_of_heap()) > EXPECTED / 2);
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
		memory_expect(EXPECTED, false);
		memory_expect_no_more();
		free(malloc(PIECE * 100)); /* what is not used goes back then */
		end = end_of_heap();
	}
}

/* The memory is as it was; where the kernel can do it, the heap is gathered to its end. */
static void gathered(void **state)
{
	static char *pieces[PIECES];
	uintptr_t at = 0, before;
	int parts = 0;

	(void)state;
	for (size_t i = 0; i < PIECES; i++) {
		pieces[i] = malloc(PIECE);
		assert_non_null(pieces[i]);
		memset(pieces[i], (int)i, PIECE);
	}
	for (before = 0; memory_gather(&at); parts++) {
		assert_true(at > before);
		before = at;
	}
	assert_true(parts <= (int)(EXPECTED / HUGE_PAGE));
	if (parts > 0) {
		assert_true((const char *)at <= end_of_heap());
		assert_true((size_t)(end_of_heap() - (const char *)at) < HUGE_PAGE);
	}
	for (size_t i = 0; i < PIECES; i++) {
		for (size_t j = 0; j < PIECE; j += 100)
			assert_int_equal((unsigned char)pieces[i][j], (unsigned char)i);
		free(pieces[i]);
	}
}

static void little_is_not_gathered(void **state)
{
	uintptr_t at = 0;

	(void)state;
	assert_false(memory_gather(&at));
	assert_int_equal(at, 0);
}

static void little(void **state)
{
	const char *end = end_of_heap();

	(void)state;
	memory_expect(PIECE, true);
	assert_ptr_equal(end_of_heap(), end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(little_is_not_gathered),
		cmocka_unit_test(gathered),
		cmocka_unit_test(expected_and_used),
		cmocka_unit_test(large_pieces),
		cmocka_unit_test(little),
	};

	memory_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
