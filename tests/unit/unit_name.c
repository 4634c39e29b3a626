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

static void names_of_units(void **state)
{
	static const struct {
		const char *word, *path; /* NULL: none is meant */
	} rows[] = {
		{"proc-self", "/proc/self"},
		{"zklockfs@proc-self.service", "/proc/self"},
		{"zklockfs@proc-self", "/proc/self"},
		{"proc-sys-fs-inotify\\x2", NULL},
		{"\\x70roc-self", "/proc/self"},
		{"proc-version", NULL}, /* is no directory */
		{"proc-nosuch", NULL},
		{"/proc", NULL},
		{"zklockfs@", NULL},
		{".service", NULL},
		{"", NULL},
	};
	char path[PATH_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *meant = unit_meant(rows[i].word, path);

		assert_int_equal(meant == NULL, rows[i].path == NULL);
		if (meant)
			assert_string_equal(meant, rows[i].path);
	}
}

static void advice_where_nothing_is_mounted(void **state)
{
	char text[UNIT_ADVICE_MAX], file[UNIT_FILE_MAX];

	(void)state;
	assert_string_equal(unit_settings("/mnt/zk-locks", file),
	                    "/etc/zklockfs/mnt-zkx2dlocks.conf");
	assert_string_equal(unit_advice("proc-self", text), "; name the mount point, /proc/self");
	assert_string_equal(unit_advice("/proc/self", text), ""); /* no unit has settings for it */
	assert_string_equal(unit_advice("proc-nosuch", text), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_those_of_systemd),
		cmocka_unit_test(names_of_units),
		cmocka_unit_test(advice_where_nothing_is_mounted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
