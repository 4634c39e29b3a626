/* SPDX-License-Identifier: MIT */
#include "pure/letters.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS (LETTER_LEN - 1)

size_t letters_add(char ret_data[LETTERS_SIZE], const void *data, size_t len, uint64_t id)
{
	/* Mounts of former versions read from the end: an unfinished letter there goes. */
	size_t kept = len / LETTER_LEN * LETTER_LEN, most = LETTERS_SIZE - LETTER_LEN;
	char letter[LETTER_LEN + 1];

	if (kept > most) {
		data = (const char *)data + (kept - most);
		kept = most;
	}
	if (kept > 0)
		memcpy(ret_data, data, kept);
	snprintf(letter, sizeof(letter), "%016" PRIx64 "\n", id);
	memcpy(ret_data + kept, letter, LETTER_LEN);
	return kept + LETTER_LEN;
}

bool letters_are_full(size_t len)
{
	return len / LETTER_LEN >= LETTERS_MAX;
}

bool letters_next(const void *data, size_t len, size_t *at, uint64_t *ret_id)
{
	while (len - *at >= LETTER_LEN) {
		char digits[DIGITS + 1] = "";

		memcpy(digits, (const char *)data + *at, DIGITS);
		*at += LETTER_LEN;
		if (strspn(digits, "0123456789abcdef") == DIGITS) {
			*ret_id = strtoull(digits, NULL, 16);
			return true;
		}
	}
	return false;
}
