/* SPDX-License-Identifier: MIT */
#include "pure/utf8.h"

#include "lockcore.h"

/* By the first byte; 0: no character begins with it. */
static size_t utf8_size(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if ((first & 0xe0) == 0xc0)
		return 2;
	if ((first & 0xf0) == 0xe0)
		return 3;
	return (first & 0xf8) == 0xf0 ? 4 : 0;
}

size_t utf8_read(const char *text, size_t len, uint32_t *ret_character)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *bytes = (const unsigned char *)text;
	size_t size = len > 0 ? utf8_size(bytes[0]) : 0;
	uint32_t c;

	if (size == 0 || size > len)
		return 0;
	c = size == 1 ? bytes[0] : bytes[0] & (0x7fU >> size);
	for (size_t i = 1; i < size; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (bytes[i] & 0x3f);
	}
	if (c < least[size] || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff)
		return 0;
	*ret_character = c;
	return size;
}

static bool is_harmless(uint32_t c)
{
	bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
	bool ends_line = c == 0x2028 || c == 0x2029;
	bool turns = c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
	             (c >= 0x2066 && c <= 0x2069);

	return !control && !ends_line && !turns;
}

size_t lc_text_harmful(const char *text, size_t len)
{
	uint32_t c;
	size_t size = utf8_read(text, len, &c);

	return size > 0 && !is_harmless(c) ? size : 0;
}

size_t lc_text_shown(const char *text, size_t len)
{
	uint32_t c;
	size_t size = utf8_read(text, len, &c);

	return size > 0 && is_harmless(c) ? size : 0;
}

/* Unicode's White_Space, without control characters of ASCII. */
static bool is_blank(uint32_t c)
{
	return c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
	       c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

size_t lc_text_blank(const char *text, size_t len)
{
	uint32_t c;
	size_t size = utf8_read(text, len, &c);

	return size > 0 && is_blank(c) ? size : 0;
}
