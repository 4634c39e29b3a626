/* SPDX-License-Identifier: MIT
 *
 * The files of every lock, and the names that no lock can have because of them.
 */
#include "tree/lock_dir.h"

#include "unit.h"

#include <string.h>

static void files(void **state)
{
	(void)state;
	assert_int_equal(lock_file_find("queue")->kind, NODE_QUEUE);
	assert_int_equal(lock_file_find("holder")->kind, NODE_HOLDER);
	assert_int_equal(lock_file_find("value")->kind, NODE_VALUE);
	assert_int_equal(lock_file_find("slots")->kind, NODE_SLOTS);
	assert_null(lock_file_find("lock"));
	assert_null(lock_file_find("queues"));
	assert_null(lock_file_find(""));
}

static void reserved(void **state)
{
	static const struct {
		const char *name, *word;
	} rows[] = {
		{"lock", "file"},
		{"shared", "file"},
		{"try", "file"},
		{"reentrant", "file"},
		{"flock", "file"},
		{"queue", "file"},
		{"holder", "file"},
		{"value", "file"},
		{"slots", "file"},
		{"lock@", "time limit"},
		{"lock@x", "time limit"},
		{"lock@30s", "time limit"},
		{"shared@5m", "time limit"},
		{"try@", "time limit"},
		{"reentrant@30s", "time limit"},
		{"flock@1", "time limit"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const char *why = lock_dir_reserved(rows[i].name);

		expect(why && strstr(why, rows[i].word), "%s: %s", rows[i].name, why);
	}
}

static void not_reserved(void **state)
{
	static const char *const names[] = {"build", "locks", "loc",      "Lock",      "queue2",
	                                    "@",     "@lock", "queue@1s", "user@host", ""};

	(void)state;
	for (size_t i = 0; i < LENGTH(names); i++)
		expect(!lock_dir_reserved(names[i]), "'%s': %s", names[i],
		       lock_dir_reserved(names[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files),
		cmocka_unit_test(reserved),
		cmocka_unit_test(not_reserved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
