/* SPDX-License-Identifier: MIT
 *
 * Letters in a mailbox: written by this version or the former one, among what strangers have left,
 * and read by both.
 */
#include "pure/letters.h"
#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMER_LINE 17
#define FORMER_LINES 64
#define ID UINT64_C(0x0011223344556677)
#define LETTER "0011223344556677\n"

static const char *const left_by_others[] = {
	"",
	"0000000000000001\n",
	"x",
	"no letter",
	"0000000000000001\n00000000",
	"0011223344556677",
	"0000000000000001\n\n\n\n",
	"\n",
	"0000000000000001 0000000000000002\n",
};

/* What the former version writes: it keeps whole lines, counted from the beginning. */
static size_t added_by_the_former(char *ret_data, const char *data, size_t len)
{
	size_t kept = len / FORMER_LINE * FORMER_LINE, most = (FORMER_LINES - 1) * FORMER_LINE;

	if (kept > most) {
		data += kept - most;
		kept = most;
	}
	memcpy(ret_data, data, kept);
	snprintf(ret_data + kept, FORMER_LINE + 1, "%016" PRIx64 "\n", ID);
	return kept + FORMER_LINE;
}

/* What the former version reads: the last line, counted from the end. */
static uint64_t last_for_the_former(const char *data, size_t len)
{
	char digits[FORMER_LINE] = "";

	assert_true(len >= FORMER_LINE);
	memcpy(digits, data + len - FORMER_LINE, FORMER_LINE - 1);
	return strtoull(digits, NULL, 16);
}

static bool is_found(const char *data, size_t len, uint64_t id)
{
	uint64_t found;

	for (size_t at = 0; letters_next(data, len, &at, &found);)
		if (found == id)
			return true;
	return false;
}

static void is_found_by_both(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(left_by_others); i++) {
		const char *left = left_by_others[i];
		char data[LETTERS_SIZE + 1];
		size_t len = letters_add(data, left, strlen(left), ID);

		assert_memory_equal(data + len - LETTER_LEN, LETTER, LETTER_LEN);
		assert_int_equal(len, strlen(left) / LETTER_LEN * LETTER_LEN + LETTER_LEN);
		expect(is_found(data, len, ID), "behind '%s'", left);
		expect(last_for_the_former(data, len) == ID, "behind '%s'", left);
		len = added_by_the_former(data, left, strlen(left));
		expect(is_found(data, len, ID), "by the former version, behind '%s'", left);
	}
	assert_false(is_found("0000000000000001\n0000000000000002", 33, 2));
	assert_true(is_found("0000000000000001\n0000000000000002", 33, 1));
	assert_false(is_found(NULL, 0, 0));
}

/* The oldest are left out, by both versions. */
static void so_many_at_most(void **state)
{
	char data[65 * LETTER_LEN + 1], more[LETTERS_SIZE + 1], same[LETTERS_SIZE + 1];
	size_t len = 0;

	(void)state;
	for (uint64_t i = 1; i <= 65; i++, len += LETTER_LEN)
		snprintf(data + len, LETTER_LEN + 1, "%016" PRIx64 "\n", i);
	for (size_t count = 62; count <= 65; count++) {
		len = letters_add(more, data, count * LETTER_LEN, ID);
		assert_int_equal(len, added_by_the_former(same, data, count * LETTER_LEN));
		assert_memory_equal(more, same, len);
		assert_true(is_found(more, len, ID) && is_found(more, len, count));
		assert_int_equal(is_found(more, len, 1), count < 64);
		assert_int_equal(letters_are_full(len), count > 62);
	}
	assert_false(letters_are_full(64 * LETTER_LEN - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_found_by_both),
		cmocka_unit_test(so_many_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
