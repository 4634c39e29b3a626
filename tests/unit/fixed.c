/* SPDX-License-Identifier: MIT
 *
 * The files of every lock, and the names that no lock can have because of them.
 */
#include "tree/fixed.h"

#include "unit.h"

#include <string.h>

static void files(void **state)
{
	(void)state;
	assert_int_equal(fixed_find(NODE_LOCK, "queue")->kind, NODE_QUEUE);
	assert_int_equal(fixed_find(NODE_LOCK, "holder")->kind, NODE_HOLDER);
	assert_int_equal(fixed_find(NODE_LOCK, "value")->kind, NODE_VALUE);
	assert_int_equal(fixed_find(NODE_LOCK, "slots")->kind, NODE_SLOTS);
	assert_null(fixed_find(NODE_LOCK, "lock"));
	assert_null(fixed_find(NODE_LOCK, "queues"));
	assert_null(fixed_find(NODE_LOCK, ""));
	assert_null(fixed_find(NODE_LOCK, "status"));
	assert_int_equal(fixed_find(NODE_ABOUT, "status")->kind, NODE_STATUS);
	assert_int_equal(fixed_find(NODE_ROOT, ".zklockfs")->kind, NODE_ABOUT);
	assert_ptr_equal(fixed_of(NODE_SLOTS), fixed_find(NODE_LOCK, "slots"));
	assert_null(fixed_of(NODE_ENTRY));
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
		{"lock@", "with options"},
		{"lock@x", "with options"},
		{"lock@30s", "with options"},
		{"shared@5m", "with options"},
		{"try@", "with options"},
		{"reentrant@30s", "with options"},
		{"flock@1", "with options"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const char *why = fixed_reserved(rows[i].name);

		expect(why && strstr(why, rows[i].word), "%s: %s", rows[i].name, why);
	}
}

static void not_reserved(void **state)
{
	static const char *const names[] = {"build", "locks", "loc",      "Lock",      "queue2",
	                                    "@",     "@lock", "queue@1s", "user@host", ""};

	(void)state;
	for (size_t i = 0; i < LENGTH(names); i++)
		expect(!fixed_reserved(names[i]), "'%s': %s", names[i], fixed_reserved(names[i]));
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
