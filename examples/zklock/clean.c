/* SPDX-License-Identifier: MIT */
#include "clean.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <wctype.h>

/* Characters that turn the direction of writing, join, or have no width of their own; blanks beside
 * the one of ASCII, which would look like the end of a column; and the controls of C1. */
static bool is_invisible(wchar_t c)
{
	static const struct {
		wchar_t first, last;
	} ranges[] = {
		{0x80, 0xa0},     {0xad, 0xad},     {0x61c, 0x61c},   {0x115f, 0x1160},
		{0x1680, 0x1680}, {0x17b4, 0x17b5}, {0x180b, 0x180f}, {0x2000, 0x200f},
		{0x2028, 0x202f}, {0x205f, 0x206f}, {0x2800, 0x2800}, {0x3000, 0x3000},
		{0x3164, 0x3164}, {0xd800, 0xf8ff}, {0xfe00, 0xfe0f}, {0xfeff, 0xfeff},
		{0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0xfffe, 0xffff}, {0xe0000, 0x10ffff},
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	return false;
}

size_t clean_next(const char *text, wchar_t *ret_char)
{
	mbstate_t state = {0};
	size_t n = mbrtowc(ret_char, text, strlen(text) + 1, &state);

	if (n == 0)
		return 0;
	if (n == (size_t)-1 || n == (size_t)-2) {
		*ret_char = L'?';
		return 1;
	}
	/* A character without a width of its own, such as an accent, would be drawn into its
	 * neighbour. */
	if (!iswprint((wint_t)*ret_char) || is_invisible(*ret_char) || wcwidth(*ret_char) < 1)
		*ret_char = L'?';
	return n;
}

const char *clean(char *buffer, size_t size, const char *text)
{
	size_t at = 0, n;
	wchar_t c;

	for (; (n = clean_next(text, &c)) > 0; text += n) {
		size_t bytes = c == L'?' ? 1 : n;

		if (at + bytes >= size)
			break;
		if (c == L'?')
			buffer[at] = '?';
		else
			memcpy(buffer + at, text, n);
		at += bytes;
	}
	buffer[at] = '\0';
	return buffer;
}

void clean_add_word(char line[CLEAN_WORDS_MAX], const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-+./,:=@%";
	const char *mark = *word && !word[strspn(word, plain)] ? "" : "'";
	size_t n = strlen(line);

	if (strchr(word, '\'') || n + strlen(word) + sizeof(" '' ...") > CLEAN_WORDS_MAX)
		snprintf(line + n, CLEAN_WORDS_MAX - n, " ...");
	else
		snprintf(line + n, CLEAN_WORDS_MAX - n, " %s%s%s", mark, word, mark);
}

void clean_unescape(char *text)
{
	char *to = text;

	while (*text) {
		if (*text == '\\' && strspn(text + 1, "01234567") >= 3) {
			int byte = (text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0');

			if (byte == 0)
				byte = '?';
			*to++ = (char)byte;
			text += 4;
		} else {
			*to++ = *text++;
		}
	}
	*to = '\0';
}
