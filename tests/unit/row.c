/* SPDX-License-Identifier: MIT
 *
 * Words become texts without blanks; a full row leaves out the words that do not fit.
 */
#include "host/row.h"

#include "unit.h"

#include <string.h>

static void expect_row(const struct row *row, const char *wanted)
{
	assert_int_equal(row->len, strlen(wanted));
	assert_memory_equal(row->text, wanted, row->len);
	assert_false(row->short_of_room);
}

static void words(void **state)
{
	static const struct {
		const char *text, *word;
	} cases[] = {
		{"build", "build"},
		{"", "-"},
		{NULL, "-"},
		{"-", "\\055"},
		{"--", "--"},
		{"a b", "a\\040b"},
		{" ", "\\040"},
		{"a\\b", "a\\134b"},
		{"\\040", "\\134040"},
		{" 4", "\\0404"},
		{"a\tb\nc\x7f", "a?b?c?"},
		{"\x1b[31m", "?[31m"},
		{"\xc2\xa0", "\\302\\240"},
		{"\xc2\x85", "\\302\\205"},
		{"\xe1\x9a\x80", "\\341\\232\\200"},
		{"\xe2\x80\x8a", "\\342\\200\\212"},
		{"\xe2\x80\xa8", "\\342\\200\\250"},
		{"\xe2\x80\xaf", "\\342\\200\\257"},
		{"\xe2\x81\x9f", "\\342\\201\\237"},
		{"\xe3\x80\x80", "\\343\\200\\200"},
		{"\xc2\x9b", "\\302\\233"}, /* a control character of 8 bits, U+202E, U+2066 */
		{"\xe2\x80\xae", "\\342\\200\\256"},
		{"\xe2\x81\xa6", "\\342\\201\\246"},
		/* Characters next to these, and bytes that are no characters. */
		{"\xe2\x80\x8b", "\xe2\x80\x8b"},
		{"\xc3\xa4", "\xc3\xa4"},
		{"\xe2\x82\xac", "\xe2\x82\xac"},
		{"\xe2", "?"},
		{"\xe2\x80", "??"},
		{"\xc2", "?"},
		{"\xe3\x80", "??"},
		{"\xe1\x9a", "??"},
		{"\xff", "?"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[64];
		struct row row = {.text = text, .room = sizeof(text)};

		row_word(&row, cases[i].text);
		expect_row(&row, cases[i].word);
		assert_true(row.len <= ROW_WORD_MAX(cases[i].text ? strlen(cases[i].text) : 0));
	}
}

static void lines(void **state)
{
	char text[128];
	struct row row = {.text = text, .room = sizeof(text)};

	(void)state;
	row_word(&row, "a");
	row_number(&row, 42, -1);
	row_number(&row, -1, -1);
	row_number(&row, INT64_MIN, 0);
	row_end(&row);
	row_seconds(&row, 0);
	row_seconds(&row, 1949);
	row_seconds(&row, 1950);
	row_seconds(&row, -1);
	row_seconds(&row, INT64_MAX);
	row_end(&row);
	expect_row(&row, "a 42 - -9223372036854775808\n0.0 1.9 2.0 - 9223372036854775.8\n");
}

static void full(void **state)
{
	char text[8] = "------";
	struct row row = {.text = text, .room = 4};

	(void)state;
	row_word(&row, "abc");
	row_word(&row, "d");
	assert_true(row.short_of_room);
	assert_memory_equal(text, "abc ", 4);
	assert_string_equal(text + 4, "--");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words),
		cmocka_unit_test(lines),
		cmocka_unit_test(full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
