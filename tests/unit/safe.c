/* SPDX-License-Identifier: MIT
 *
 * What others have written stays one line, word, column or label, and is cut between two
 * characters.
 */
#include "host/safe.h"

#include "unit.h"

#include <string.h>

static const struct {
	const char *text, *line, *word, *column, *label;
} rows[] = {
	{"", "", "", "", ""},
	{"a b", "a b", "a_b", "a\\040b", "a b"},
	{"a\nb\x7f", "a?b?", "a?b?", "a?b?", "a\\nb\x7f"},
	{"\"\\", "\"\\", "\"\\", "\"\\134", "\\\"\\\\"},
	{"\xc3\xa4\xe2\x82\xac", "\xc3\xa4\xe2\x82\xac", "\xc3\xa4\xe2\x82\xac",
         "\xc3\xa4\xe2\x82\xac", "\xc3\xa4\xe2\x82\xac"},
	/* A blank that ends a line, one that does not, and what turns the direction of writing. */
	{"\xe2\x80\xa8", "?", "_", "\\342\\200\\250", "\xe2\x80\xa8"},
	{"\xc2\xa0", "\xc2\xa0", "_", "\\302\\240", "\xc2\xa0"},
	{"\xe1\x9a\x80", "\xe1\x9a\x80", "_", "\\341\\232\\200", "\xe1\x9a\x80"},
	{"\xe2\x80\xae", "?", "?", "\\342\\200\\256", "\xe2\x80\xae"},
	/* Bytes that are no character. */
	{"\xff\xe2\x80", "???", "???", "???", "???"},
	{"\xed\xa0\x80", "???", "???", "???", "???"},
};

static void expect_text(size_t row, enum safe how, const char *wanted)
{
	char text[64];

	expect(strcmp(safe_text(text, sizeof(text), rows[row].text, how), wanted) == 0,
	       "row %zu, %d: %s", row, (int)how, text);
}

static void texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		expect_text(i, SAFE_LINE, rows[i].line);
		expect_text(i, SAFE_WORD, rows[i].word);
		expect_text(i, SAFE_COLUMN, rows[i].column);
		expect_text(i, SAFE_LABEL, rows[i].label);
	}
}

static void in_its_own_place(void **state)
{
	char text[] = "a\tb\xe2\x80\xa8 c";

	(void)state;
	assert_string_equal(safe_text(text, sizeof(text), text, SAFE_WORD), "a?b__c");
}

static void cut_between_characters(void **state)
{
	char text[6];

	(void)state;
	assert_string_equal(safe_text(text, sizeof(text), "abcdefgh", SAFE_LINE), "abcde");
	assert_string_equal(safe_text(text, sizeof(text), "abcd\xc3\xa4", SAFE_LINE), "abcd");
	assert_string_equal(safe_text(text, sizeof(text), "ab cd", SAFE_COLUMN), "ab");
	assert_string_equal(safe_text(text, 1, "a", SAFE_LINE), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts),
		cmocka_unit_test(in_its_own_place),
		cmocka_unit_test(cut_between_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
