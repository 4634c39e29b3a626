/* SPDX-License-Identifier: MIT
 *
 * Numbers of all lengths, wherever they stand in a record, are read as they were written; records
 * that are cut off, or hold no number, are refused.
 */
#include "pure/codec.h"

#include "unit.h"

#include <setjmp.h>
#include <string.h>

static jmp_buf refused;
static const char *why_refused;

static __attribute__((noreturn)) void refuse(const char *why)
{
	why_refused = why;
	longjmp(refused, 1);
}

static const unsigned char *filled_up(const struct codec *written, size_t room, unsigned char with)
{
	static unsigned char bytes[64];

	assert_true(written->len <= sizeof(bytes) && room <= sizeof(bytes));
	memset(bytes, with, sizeof(bytes));
	memcpy(bytes, written->data, written->len);
	return bytes;
}

/* With that many bytes behind it, all of which go on, or end. */
static void expect_number(int64_t number, size_t behind, unsigned char with)
{
	struct codec written = {0}, read = {.loads = true, .give_up = refuse};

	codec_begin(&written);
	assert_true(codec_number(&written, number, INT64_MIN, INT64_MAX) == number);
	codec_read(&read, filled_up(&written, written.len + behind, with), written.len + behind);
	assert_true(codec_number(&read, 0, INT64_MIN, INT64_MAX) == number);
	assert_int_equal(read.at, written.len);
	codec_end(&written);
}

static void expect_everywhere(int64_t number)
{
	for (size_t behind = 0; behind < 12; behind++) {
		expect_number(number, behind, 0);
		expect_number(number, behind, 0x7f);
		expect_number(number, behind, 0x80);
		expect_number(number, behind, 0xff);
	}
}

static void numbers(void **state)
{
	(void)state;
	expect_everywhere(0);
	expect_everywhere(INT64_MIN);
	expect_everywhere(INT64_MAX);
	for (unsigned bit = 0; bit < 63; bit++)
		for (int64_t by = -2; by <= 2; by++) {
			int64_t number = (int64_t)(UINT64_C(1) << bit);

			expect_everywhere(number + (bit < 62 || by < 0 ? by : 0));
			expect_everywhere(-number + by);
		}
	expect_everywhere(INT64_C(0x0123456789abcdef));
	expect_everywhere(INT64_C(0x00a5c3967e18d42b));
}

/* NULL: it is read. */
static const char *why_not(const void *bytes, size_t len)
{
	struct codec read = {.loads = true, .give_up = refuse};

	why_refused = NULL;
	codec_read(&read, bytes, len);
	if (setjmp(refused) == 0)
		(void)codec_number(&read, 0, INT64_MIN, INT64_MAX);
	return why_refused;
}

static void cut_off(void **state)
{
	static const unsigned char goes_on[16] = {
		0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
		0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
	};
	unsigned char bytes[16];

	(void)state;
	for (size_t len = 0; len <= 10; len++)
		assert_string_equal(why_not(goes_on, len), "the state is too short");
	for (size_t len = 11; len <= 16; len++)
		assert_string_equal(why_not(goes_on, len), "the state has an invalid number");
	for (size_t len = 1; len <= 16; len++) {
		memcpy(bytes, goes_on, sizeof(bytes));
		bytes[len - 1] = 1;
		if (len <= 10)
			assert_null(why_not(bytes, len));
		else
			assert_non_null(why_not(bytes, len));
	}
}

/* So what is read is written again as it was. */
static void one_form(void **state)
{
	static const unsigned char longer[] = {0xb0, 0x00};
	static const unsigned char beyond[] = {0xff, 0xff, 0xff, 0xff, 0xff,
	                                       0xff, 0xff, 0xff, 0xff, 0x03};

	(void)state;
	assert_string_equal(why_not(longer, sizeof(longer)), "the state has an invalid number");
	assert_string_equal(why_not(beyond, sizeof(beyond)), "the state has an invalid number");
}

static void out_of_range(void **state)
{
	static const unsigned char three[8] = {6}; /* the lowest bit is the sign */
	struct codec read = {.loads = true, .give_up = refuse};

	(void)state;
	codec_read(&read, three, sizeof(three));
	assert_int_equal(codec_number(&read, 0, 3, 3), 3);
	codec_read(&read, three, sizeof(three));
	why_refused = NULL;
	if (setjmp(refused) == 0)
		(void)codec_number(&read, 0, 0, 2);
	assert_string_equal(why_refused, "the state has a number out of range");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(cut_off),
		cmocka_unit_test(one_form),
		cmocka_unit_test(out_of_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
