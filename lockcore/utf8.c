/* SPDX-License-Identifier: MIT
 *
 * utf8.c - see utf8.h.
 */
#include "utf8.h"

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
