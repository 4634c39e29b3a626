/* SPDX-License-Identifier: MIT
 *
 * Which name was meant: a long word may have two slips, a short word one. A word that is far from
 * all names meant none.
 */
#include "host/nearest.h"

#include "unit.h"

#include <string.h>

static const struct row {
	const char *name;
	int number;
} names[] = {{"session_timeout=%s", 1},
             {"host=%s", 2},
             {"ro", 3},
             {"audit", 4},
             {"noaudit", 5},
             {"reuse", 6},
             {NULL, 0}};

static void words(void **state)
{
	static const struct {
		const char *word, *name;
	} rows[] = {
		{"sesion_timeout=5s", "session_timeout=%s"},
		{"sessionn_timeout", "session_timeout=%s"},
		{"session-timeout", "session_timeout=%s"},
		{"sessoin_timeout", "session_timeout=%s"},
		{"sesion_timout", "session_timeout=%s"},
		{"session_timeou", "session_timeout=%s"},
		{"xsession_timeout", "session_timeout=%s"},
		{"session_timeoutxx", "session_timeout=%s"},
		{"hots=a", "host=%s"},
		{"hos", "host=%s"},
		{"ost=", "host=%s"},
		{"audits", "audit"}, /* the least slips, not the first row */
		{"noaudits", "noaudit"},
		{"noadit", "noaudit"},
		{"aduti", NULL}, /* two, in five letters */
		{"or", NULL},
		{"", NULL},
		{"=", NULL},
		{"=host", NULL},
		{"sesion_tmout", NULL},
		{"hostname=a", NULL},
		{"nonsense", NULL},
		{"timeout=5s", NULL},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const char *name = nearest(rows[i].word, names, sizeof(*names));

		expect(name == rows[i].name ||
		               (name && rows[i].name && strcmp(name, rows[i].name) == 0),
		       "'%s' is %s", rows[i].word, name ? name : "nothing");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
