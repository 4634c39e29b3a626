/* SPDX-License-Identifier: MIT */
#include "host/nearest.h"

#include <stdbool.h>
#include <string.h>

#define SLIPS_MAX 2
#define LETTERS_PER_SLIP 3

static bool ends(const char *word)
{
	return *word == '\0' || *word == '=';
}

/* A slip is a letter too many, one too few, another one, or two that are exchanged. */
static bool within(const char *a, const char *b, unsigned slips)
{
	for (; !ends(a) && *a == *b; a++)
		b++;
	if (ends(a) && ends(b))
		return true;
	if (slips-- == 0)
		return false;
	if ((!ends(a) && within(a + 1, b, slips)) || (!ends(b) && within(a, b + 1, slips)))
		return true;
	return !ends(a) && !ends(b) &&
	       (within(a + 1, b + 1, slips) ||
	        (a[0] == b[1] && a[1] == b[0] && within(a + 2, b + 2, slips)));
}

const char *nearest(const char *word, const void *rows, size_t size_of_row)
{
	size_t most = strcspn(word, "=") / LETTERS_PER_SLIP;

	for (unsigned slips = 1; slips <= most && slips <= SLIPS_MAX; slips++)
		for (const char *row = rows;; row += size_of_row) {
			const char *name;

			memcpy(&name, row, sizeof(name));
			if (!name)
				break;
			if (within(word, name, slips))
				return name;
		}
	return NULL;
}
