/* SPDX-License-Identifier: MIT
 *
 * Which uids are one user's, by the texts of /etc/subuid and /etc/passwd.
 */
#include "host/subuid.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PASSWD                                                      \
	"root:x:0:0:root:/root:/bin/sh\ntoor:x:0:0::/root:\n"       \
	"alice:x:1000:1000:Alice,,,:/home/alice:/bin/bash\n"        \
	"alice:x:1007:1000:another line of hers:/:/bin/false\n"     \
	"bob:x:1001:1001::/home/bob:/bin/bash\n+::::::\nodd:x:\n\n" \
	"minus:x:-1:0:::\n4242:x:1002:1002:a name of digits:/:"

/* "1-2=1000 ", each range and its user. */
static void expect_ranges(const char *subuid, const char *passwd, const char *wanted)
{
	char *text = strdup(subuid), *names = strdup(passwd), found[400] = "";
	struct per_user_range *ranges;
	size_t count = subuid_parse(text, names, &ranges), len = 0;

	for (size_t i = 0; i < count; i++)
		len += (size_t)snprintf(found + len, sizeof(found) - len, "%u-%u=%u ",
		                        ranges[i].first, ranges[i].last, ranges[i].share);
	expect(strcmp(found, wanted) == 0, "%s: %s, not %s", subuid, found, wanted);
	free(ranges);
	free(text);
	free(names);
}

static void texts(void **state)
{
	static const struct {
		const char *subuid, *ranges;
	} cases[] = {
		{"", ""},
		{"alice:100000:65536\nbob:165536:65536\n",
	         "100000-165535=1000 165536-231071=1001 "},
		/* In any order, without the last end of line, several of one user. */
		{"bob:300:10\nalice:500:1\nalice:100:10",
	         "100-109=1000 300-309=1001 500-500=1000 "},
		/* The owner as a number, and as a name that only looks like one. */
		{"1003:100:10\n4242:200:10", "100-109=1003 200-209=1002 "},
		/* Of a directory service: each range is a user of its own. */
		{"carol:100:10\ncarol:200:10\n:300:10\n", "100-109=100 200-209=200 300-309=300 "},
		/* Root's are left alone, and nothing becomes root's. */
		{"root:1000000:1000000000\ntoor:100:10\n0:200:10\n", ""},
		{"alice:0:10\ncarol:0:10\nalice:0:1\n", "1-9=1 "},
		{"root:100:1000\nalice:200:10\n", "200-209=1000 "},
		/* Overlapping. */
		{"alice:100:10\nalice:105:10\nalice:102:1\n", "100-114=1000 "},
		{"alice:105:10\nbob:100:10\nbob:300:10\n", "100-114=100 300-309=1001 "},
		{"alice:100:10\nalice:110:10\n", "100-109=1000 110-119=1000 "},
		/* Beyond the last uid: (uid_t)-1 is nobody. */
		{"alice:4294967290:100\n", "4294967290-4294967294=1000 "},
		{"alice:1:18446744073709551616\n", "1-4294967294=1000 "},
		{"alice:4294967294:1\nbob:4294967295:1\n", "4294967294-4294967294=1000 "},
		/* What says nothing. */
		{"# alice:100:10\n\nalice\nalice:\nalice:100\nalice:100:\nalice:100:0\n", ""},
		{"alice:-5:10\nalice:100:-1\nalice: 100:10\nalice:0x100:10\nalice:100:10:1\n", ""},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(cases); i++)
		expect_ranges(cases[i].subuid, PASSWD, cases[i].ranges);
	expect_ranges("alice:100:10\n", "", "100-109=100 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(texts)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
