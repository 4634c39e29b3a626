/* SPDX-License-Identifier: MIT
 *
 * A file of EnvironmentFile=, and the words of $OPTIONS in a command line: the same that a program
 * gets from systemd 257.
 */
#include "setup/env_file.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The words of the last OPTIONS, each in brackets. */
static const char *words_of(const char *file, char shown[256])
{
	char *text = strdup(file), *at = text, *name, *value, *last = NULL;
	size_t len = 0, n;

	assert_non_null(text);
	while (env_file_next(&at, &name, &value))
		if (strcmp(name, "OPTIONS") == 0)
			last = value;
	assert_string_equal(at, "");
	n = last ? env_file_words(last) : 0;
	*shown = '\0';
	for (size_t i = 0; i < n; i += strlen(last + i) + 1)
		len += (size_t)snprintf(shown + len, 256 - len, "<%s>", last + i);
	free(text);
	return shown;
}

static void words(void **state)
{
	static const struct {
		const char *file, *words;
	} rows[] = {
		{"", ""},
		{"OPTIONS=", ""},
		{"OPTIONS=-o audit\n", "<-o><audit>"},
		{"SERVERS=zk1\nOPTIONS=-o audit", "<-o><audit>"},
		/* blanks, line ends and comments */
		{"  OPTIONS = \t-o\taudit  \r\n\n", "<-o><audit>"},
		{"#OPTIONS=a\n ;OPTIONS=b\n# c \\\nOPTIONS=-o d # e\n", "<-o><d><#><e>"},
		{"no assignment\nOPTIONS=a\nnor this", "<a>"},
		{"export OPTIONS=a\nOPTION=b\nOPTIONSX=c\n", ""},
		{"OPTIONS=a\nOPTIONS=b\n", "<b>"},
		{"OPTIONS=a\nOPTIONS=\n", ""},
		{"OPTIONS=a=b=c\n", "<a=b=c>"},
		/* a backslash in the file */
		{"OPTIONS=-o \\\n  audit\\\n,ro\nX=\n", "<-o><audit,ro>"},
		{"OPTIONS=a\\ b\\\\c\\'d\n", "<a><bcd>"},
		{"OPTIONS=a \\\n", "<a>"},
		{"OPTIONS=a\\", "<a>"},
		/* quotes around a value */
		{"OPTIONS=\"-o audit\"\n", "<-o><audit>"},
		{"OPTIONS='-o audit' \n", "<-o><audit>"},
		{"OPTIONS=\"a\"'b' c \"d\"\n", "<abc><d>"},
		{"OPTIONS=\"a\n b\"\nX=\n", "<a><b>"},
		{"OPTIONS='a\\\nb'\n", "<a\nb>"},
		{"OPTIONS=\"a\\\nb\\\"c d\\\"\\$e\\\\f\\`g\"\n", "<abc d$ef`g>"},
		{"OPTIONS=\"a b", "<a><b>"},
		{"OPTIONS=\"a\\x\"\n", "<ax>"},
		/* quotes within a value are for the command line */
		{"OPTIONS=-o 'host=a b'\n", "<-o><host=a b>"},
		{"OPTIONS=-o host='a b'c\"d e\"\n", "<-o><host=a bcd e>"},
		{"OPTIONS=\"-o 'host=a b'\"\n", "<-o><host=a b>"},
		{"OPTIONS=x 'a\"b' \"c'd\" e\\\\ f\n", "<x><a\"b><c'd><e f>"},
		{"OPTIONS=x '' y\n", "<x><><y>"},
		{"OPTIONS=x 'a b\n", "<x><a b>"},
		{"OPTIONS=$HOME ${X} %h `id` *\n", "<$HOME><${X}><%h><`id`><*>"},
	};
	char shown[256];

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++)
		expect(strcmp(words_of(rows[i].file, shown), rows[i].words) == 0, "row %zu: %s", i,
		       shown);
}

/* No text is read or written beyond its end: for the sanitizers. */
static void anything(void **state)
{
	static const char letters[] = "ab =\n\r\\\"'#;\t$";
	char file[32], shown[256];
	unsigned seed = 1;

	(void)state;
	for (size_t i = 0; i < 20000; i++) {
		char *to = stpcpy(file, i % 2 ? "OPTIONS=" : "");

		for (size_t j = 0; j < i % 16; j++) {
			seed = seed * 1103515245 + 12345;
			*to++ = letters[(seed >> 16) % (sizeof(letters) - 1)];
		}
		*to = '\0';
		(void)words_of(file, shown);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words),
		cmocka_unit_test(anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
