/* SPDX-License-Identifier: MIT
 *
 * mutation.c - the table of lies, by name.
 */
#include "mutation.h"

#include <stddef.h>
#include <string.h>

enum mutation mutation;

static const struct {
	const char *name, *text;
} mutations[] = {
#define M(name, text) {#name, text},
	MUTATIONS(M)
#undef M
};

const char *mutation_name(enum mutation which)
{
	return mutations[which].name;
}

const char *mutation_text(enum mutation which)
{
	return mutations[which].text;
}

enum mutation mutation_find(const char *name)
{
	int i = 0;

	while (i < MUTATION_COUNT && strcmp(mutations[i].name, name) != 0)
		i++;
	return (enum mutation)i;
}
