/* SPDX-License-Identifier: MIT
 *
 * env_file.c - see env_file.h. No text becomes longer when it is read: each lies in its own place.
 * systemd before 254 also skips the line after a comment that ends with a backslash.
 */
#include "setup/env_file.h"

#include <string.h>

static const char line_end[] = "\n\r";
static const char blanks[] = " \t\n\r";

static bool is_one_of(char c, const char *set)
{
	return c && strchr(set, c);
}

/* Returns what is behind the second quote. */
static char *read_quoted(char *c, char **to)
{
	char quote = *c++;

	for (; *c && *c != quote; c++) {
		if (quote == '"' && *c == '\\' && c[1]) {
			c++;
			if (*c == '\n')
				continue;
			if (!is_one_of(*c, "\"\\`$"))
				*(*to)++ = '\\';
		}
		*(*to)++ = *c;
	}
	return c + (*c == quote);
}

/* Returns what is behind its line. */
static char *read_value(char *value)
{
	char *c = value, *to = value, *end;

	/* Quoted parts stand first. In the rest a quote is a letter like others. */
	for (c += strspn(c, " \t"); is_one_of(*c, "'\""); c += strspn(c, " \t"))
		c = read_quoted(c, &to);
	for (end = to; *c && !is_one_of(*c, line_end); c++) {
		bool escaped = *c == '\\' && c[1];

		c += escaped;
		if (escaped ? !is_one_of(*c, line_end) : *c != '\\')
			*to++ = *c;
		if (escaped || !is_one_of(*c, blanks))
			end = to;
	}
	c += *c != '\0';
	*end = '\0'; /* without blanks at the end */
	return c;
}

bool env_file_next(char **at, char **ret_name, char **ret_value)
{
	char *c = *at;
	size_t len;

	for (;; c += len) {
		c += strspn(c, blanks);
		len = strcspn(c, is_one_of(*c, "#;") ? line_end : "=\n\r");
		if (!*c || c[len] == '=')
			break;
	}
	*at = c;
	if (!*c)
		return false;
	*ret_name = c;
	*ret_value = c + len + 1;
	*at = read_value(*ret_value);
	while (len > 0 && is_one_of(c[len - 1], blanks))
		len--;
	c[len] = '\0';
	return true;
}

size_t env_file_words(char *value)
{
	char *to = value, quote;

	for (const char *c = value; *(c += strspn(c, blanks)); *to++ = '\0') {
		for (quote = '\0'; *c && (quote || !is_one_of(*c, blanks)); c++) {
			if (*c == '\\' && c[1])
				*to++ = *++c;
			else if (*c == quote)
				quote = '\0';
			else if (!quote && is_one_of(*c, "'\""))
				quote = *c;
			else if (*c != '\\')
				*to++ = *c;
		}
		c += *c != '\0'; /* the 0 may be written there */
	}
	return (size_t)(to - value);
}
