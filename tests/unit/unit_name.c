/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "setup/unit_name.h"

static void names_are_those_of_systemd(void **state)
{
	/* By systemd-escape --path, of systemd 252. */
	static const struct {
		const char *path, *name, *file;
	} rows[] = {
		{"/mnt/locks", "mnt-locks", "mnt-locks"},
		{"/mnt/zk-locks", "mnt-zk\\x2dlocks", "mnt-zkx2dlocks"},
		{"//mnt///locks//", "mnt-locks", "mnt-locks"},
		{"/.locks/.a", "\\x2elocks-.a", "x2elocks-.a"},
		{"/srv/a b\\c", "srv-a\\x20b\\x5cc", "srv-ax20bx5cc"},
		{"/\xc3\xa4", "\\xc3\\xa4", "xc3xa4"},
	};
	char name[UNIT_NAME_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_string_equal(unit_name(rows[i].path, name), rows[i].name);
		assert_string_equal(unit_file(rows[i].path, name), rows[i].file);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_those_of_systemd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
