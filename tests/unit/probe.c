/* SPDX-License-Identifier: MIT
 *
 * What servers say of their settings, and what it means.
 */
#include "probe.h"

#include "unit.h"

static void versions(void **state)
{
	static const struct {
		const char *a, *b;
		int order;
	} rows[] = {
		{"3.9.4", "3.9.4", 0}, {"3.8.0", "3.9.4", -1}, {"3.10.0", "3.9.4", 1},
		{"3.9", "3.9.0", 0},   {"3.9.10", "3.9.9", 1}, {"4", "3.9.4", 1},
		{"3.9.3", "3.9", 1},   {"", "0.0.1", -1},      {"3..9", "3.0.9", 0},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		expect(probe_compare_versions(rows[i].a, rows[i].b) == rows[i].order, "%s, %s",
		       rows[i].a, rows[i].b);
		expect(probe_compare_versions(rows[i].b, rows[i].a) == -rows[i].order, "%s, %s",
		       rows[i].b, rows[i].a);
	}
}

static void which_forget(void **state)
{
	(void)state;
	assert_true(probe_forgets("3.4.14"));
	assert_true(probe_forgets("3.8.4"));
	assert_true(probe_forgets("3.9.3"));
	assert_false(probe_forgets("3.9.4"));
	assert_false(probe_forgets("3.10.0"));
	assert_false(probe_forgets(""));
}

static void ticks(void **state)
{
	static const struct {
		int64_t conf, shortest, longest, tick;
		bool certain;
	} rows[] = {
		{3000, 4000, 40000, 3000, true}, /* it says so, whatever the limits are */
		{500, 0, 0, 500, true},          {0, 4000, 40000, 2000, true},
		{0, 6000, 60000, 3000, true},    {0, 4000, 60000, 2000, false},
		{0, 10000, 40000, 5000, false},  {0, 0, 0, 0, false},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct probe probe = {.tick_ms = rows[i].conf,
		                      .shortest_ms = rows[i].shortest,
		                      .longest_ms = rows[i].longest};
		bool certain;

		expect(probe_tick(&probe, &certain) == rows[i].tick, "%zu", i);
		expect(certain == rows[i].certain, "%zu", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions),
		cmocka_unit_test(which_forget),
		cmocka_unit_test(ticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
