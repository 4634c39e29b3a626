/* SPDX-License-Identifier: MIT
 *
 * status.c - `zklock status`, see look.h: .zklockfs/status, for a person. Its lines are shown as
 * they come, also those of a later version: what looks like a time or a length is shown as such.
 */
#include "look.h"

#include "clean.h"
#include "health.h"
#include "span.h"

#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

static void print_value(const char *value)
{
	char shown[CLEAN_MAX], at[SPAN_TIME_MAX], age[SPAN_MAX], *unit;
	long long number = strtoll(value, &unit, 10);

	if (span_since(value) >= 0)
		printf("%s, %s ago\n", span_time(at, value), span_format(age, span_since(value)));
	else if (isdigit((unsigned char)*value) && strcmp(unit, "ms") == 0 && number >= 1000)
		printf("%lld.%llds\n", number / 1000, number % 1000 / 100);
	else
		puts(clean(shown, sizeof(shown), value));
}

static void print_line(char *line)
{
	char shown[CLEAN_MAX], *value = strstr(line, ": ");

	if (!value)
		return;
	*value = '\0';
	for (char *c = line; *c; c++)
		*c = (char)(*c == '_' ? ' ' : *c);
	printf("%-24s ", clean(shown, sizeof(shown), line));
	print_value(value + 2);
}

int look_status(const struct mount *mount)
{
	char why[HEALTH_MAX], shown[CLEAN_MAX], *next;
	struct health health;
	bool good;

	health_read(mount, &health);
	if (!health.text && health.error == ENOENT)
		errx(EX_UNAVAILABLE, "%s/.zklockfs/status: no such file; is this the whole mount?",
		     mount->path);
	if (!health.text)
		errx(EX_UNAVAILABLE, "%s/.zklockfs/status: %s", mount->path,
		     health_explain(mount, health.error, why));
	good = health_is_good(&health, why);
	printf("%s: %s\n\n", clean(shown, sizeof(shown), mount->path),
	       good ? "the ensemble answers, locks can be taken" : why);
	for (char *line = health.text; *line; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		print_line(line);
	}
	health_free(&health);
	return good ? EX_OK : EX_UNAVAILABLE;
}
