/* SPDX-License-Identifier: MIT
 *
 * Which names take a lock when they are opened, how long each waits, and how long it may hold.
 */
#include "tree/lock_file.h"

#include "lockcore.h"
#include "unit.h"

#include <errno.h>
#include <string.h>

static void lock_files(void **state)
{
	static const struct {
		const char *name;
		enum lc_mode mode;
		int64_t wait_us;
		bool joins;
	} rows[] = {
		{"lock", LC_EXCLUSIVE, LC_FOREVER, false},
		{"shared", LC_SHARED, LC_FOREVER, false},
		{"try", LC_EXCLUSIVE, 0, false},
		{"lock@30s", LC_EXCLUSIVE, 30000000, false},
		{"lock@500ms", LC_EXCLUSIVE, 500000, false},
		{"lock@5m", LC_EXCLUSIVE, 300000000, false},
		{"lock@1h", LC_EXCLUSIVE, 3600000000, false},
		{"lock@0s", LC_EXCLUSIVE, 0, false},
		{"lock@0ms", LC_EXCLUSIVE, 0, false},
		{"lock@9223372036854775ms", LC_EXCLUSIVE, 9223372036854775000, false},
		{"shared@30s", LC_SHARED, 30000000, false},
		{"shared@0s", LC_SHARED, 0, false},
		{"reentrant", LC_EXCLUSIVE, LC_FOREVER, true},
		{"reentrant@5m", LC_EXCLUSIVE, 300000000, true},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct lock_file lock_file = {.wait_us = -1};

		expect(lock_file_parse(rows[i].name, &lock_file) == 0, "%s is no lock file",
		       rows[i].name);
		expect(lock_file.wait_us == rows[i].wait_us, "%s waits %lld us", rows[i].name,
		       (long long)lock_file.wait_us);
		expect(lock_file.mode == rows[i].mode, "%s takes in mode %d", rows[i].name,
		       (int)lock_file.mode);
		expect(lock_file.joins == rows[i].joins, "%s joins: %d", rows[i].name,
		       lock_file.joins);
	}
}

static void limits(void **state)
{
	static const struct {
		const char *name;
		int64_t wait_us, most_us, least_us;
	} rows[] = {
		{"lock", LC_FOREVER, LC_FOREVER, 0},
		{"lock@30s", 30000000, LC_FOREVER, 0},
		{"lock@most=10m", LC_FOREVER, 600000000, 0},
		{"lock@least=1m", LC_FOREVER, LC_FOREVER, 60000000},
		{"lock@30s,most=10m", 30000000, 600000000, 0},
		{"lock@0s,least=1ms", 0, LC_FOREVER, 1000},
		{"lock@30s,most=10m,least=1m", 30000000, 600000000, 60000000},
		{"lock@30s,least=1m,most=10m", 30000000, 600000000, 60000000},
		{"lock@most=1m,least=1m", LC_FOREVER, 60000000, 60000000},
		{"try@most=10m,least=1m", 0, 600000000, 60000000},
		{"shared@5m,least=2h", 300000000, LC_FOREVER, 7200000000},
		{"reentrant@30000ms,most=600000ms,least=600000ms", 30000000, 600000000, 600000000},
		{"flock@most=10m,least=1m", 0, 600000000, 60000000},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct lock_file lock_file;

		expect(lock_file_parse(rows[i].name, &lock_file) == 0, "%s is no lock file",
		       rows[i].name);
		expect(lock_file.wait_us == rows[i].wait_us, "%s waits %lld us", rows[i].name,
		       (long long)lock_file.wait_us);
		expect(lock_file.most_us == rows[i].most_us, "%s: %lld us at most", rows[i].name,
		       (long long)lock_file.most_us);
		expect(lock_file.least_us == rows[i].least_us, "%s: %lld us at least", rows[i].name,
		       (long long)lock_file.least_us);
	}
}

static void ahead(void **state)
{
	static const struct {
		const char *name;
		unsigned crowd;
		int64_t wait_us;
	} rows[] = {
		{"lock", 0, LC_FOREVER},
		{"lock@ahead=1", 1, LC_FOREVER},
		{"shared@ahead=1048575", 1048575, LC_FOREVER},
		{"reentrant@30s,ahead=12,most=1m", 12, 30000000},
		{"lock@most=1m,ahead=007", 7, LC_FOREVER},
		{"flock@least=1m,ahead=2", 2, 0},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct lock_file lock_file;

		expect(lock_file_parse(rows[i].name, &lock_file) == 0, "%s is no lock file",
		       rows[i].name);
		expect(lock_file.crowd == rows[i].crowd && lock_file.wait_us == rows[i].wait_us,
		       "%s: %u", rows[i].name, lock_file.crowd);
	}
}

static void malformed(void **state)
{
	static const char *const rows[] = {
		"lock@",
		"lock@30",
		"lock@s",
		"lock@1.5s",
		"lock@1h30m",
		"lock@-1s",
		"lock@ 1s",
		"lock@1s ",
		"lock@lock",
		"lock@30s@30s",
		"lock@99999999999999999999s",
		"lock@9223372036854776ms",
		"lock@30S",
		"try@",
		"try@30s",
		"try@0s",
		"try@x",
		"shared@",
		"shared@30",
		"shared@x",
		"reentrant@",
		"reentrant@30",
		"flock@",
		"flock@30s",
		"flock@0s",
		"lock@30s,",
		"lock@,most=1m",
		"lock@30s,,most=1m",
		"lock@most",
		"lock@most=",
		"lock@most=x",
		"lock@most=0s",
		"lock@least=0s",
		"lock@most=1m,",
		"lock@most=1m,most=2m",
		"lock@least=1m,least=1m",
		"lock@most=1m,30s",
		"lock@30s,30s",
		"lock@30s,most=1m,x",
		"lock@most=1m,least=61s",
		"lock@Most=1m",
		"lock@wait=1m",
		"lock@ahead",
		"lock@ahead=",
		"lock@ahead=0",
		"lock@ahead=x",
		"lock@ahead=1x",
		"lock@ahead=1s",
		"lock@ahead=-1",
		"lock@ahead=+1",
		"lock@ahead= 1",
		"lock@ahead=1048576",
		"lock@ahead=99999999999999999999",
		"lock@ahead=1,ahead=1",
		"lock@ahead=1,30s",
		"lock@Ahead=1",
		"try@ahead=1",
		"try@0s,most=1m",
		"try@most=1m,0s",
		"flock@30s,most=1m",
		"reentrant@30000ms,most=600000ms,least=600000ms,xxxxxxxxxxxxxxxxxxxxxxxx",
		"lock@most=0000000000000000000000000000000000000000000000000000000001h",
	};
	struct lock_file lock_file;

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++)
		expect(lock_file_parse(rows[i], &lock_file) == -EINVAL, "%s", rows[i]);
}

static void no_lock_files(void **state)
{
	static const char *const rows[] = {
		"",           "l",     "loc",      "lock ",      " lock",
		"locks",      "lock2", "lock.30s", "lock30s",    "Lock",
		"LOCK",       "try ",  "tr",       "tryx",       "Try@",
		"xlock@30s",  "@",     "@30s",     "lo@30s",     "queue",
		"holder",     "value", "slots",    "build",      "backup@home.service",
		"lock\n",     "share", "shared ",  "shared2",    "sharedlock",
		"lockshared", "re",    "reentran", "reentrants", "floc",
		"flocks",
	};
	struct lock_file lock_file;

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++)
		expect(lock_file_parse(rows[i], &lock_file) == -ENOENT, "'%s'", rows[i]);
}

/* The names that ls shows can be opened. */
static void listed_lock_files(void **state)
{
	size_t count = 0;

	(void)state;
	for (const char *const *name = lock_file_names; *name; name++, count++) {
		struct lock_file lock_file;

		expect(lock_file_parse(*name, &lock_file) == 0, "%s is shown and no lock file",
		       *name);
		expect(!strchr(*name, '@'), "%s: timed names are not shown", *name);
	}
	assert_true(count >= 2);
}

static void advisory(void **state)
{
	struct lock_file lock_file;

	(void)state;
	assert_int_equal(lock_file_parse("flock", &lock_file), 0);
	assert_true(lock_file.advisory);
	for (const char *const *name = lock_file_names; *name; name++)
		expect(lock_file_parse(*name, &lock_file) == 0 &&
		               lock_file.advisory == (strcmp(*name, "flock") == 0),
		       "opening %s takes nothing?", *name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lock_files),    cmocka_unit_test(malformed),
		cmocka_unit_test(no_lock_files), cmocka_unit_test(listed_lock_files),
		cmocka_unit_test(advisory),      cmocka_unit_test(limits),
		cmocka_unit_test(ahead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
