/* SPDX-License-Identifier: MIT */
#include "words.h"

#include "clean.h"

#include <err.h>
#include <stdbool.h>
#include <string.h>
#include <sysexits.h>

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

const char *words_nearest(const char *word, const void *rows, size_t size_of_row)
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

const char *words_long_name(const struct option *table, int option)
{
	while (table->name && table->val != option)
		table++;
	return table->name;
}

_Noreturn void words_misused(const struct option *table, int option, const char *word,
                             const char *usage)
{
	char shown[CLEAN_MAX], letter[3] = {'-', (char)optopt, '\0'};
	bool is_letter = optopt > 0 && optopt <= 0xff;
	const char *name = optopt ? words_long_name(table, optopt) : NULL;
	const char *meant = optopt ? NULL : words_nearest(word + 2, table, sizeof(*table));

	if (option == ':' && is_letter)
		errx(EX_USAGE, "%s needs a value: %s", letter, usage);
	if (option == ':')
		errx(EX_USAGE, "--%s needs a value: %s", name, usage);
	if (name)
		errx(EX_USAGE, "--%s takes no value: %s", name, usage);
	errx(EX_USAGE, "no option is named %s%s%s%s: %s",
	     clean(shown, sizeof(shown), optopt ? letter : word), meant ? " (did you mean --" : "",
	     meant ? meant : "", meant ? "?)" : "", usage);
}
