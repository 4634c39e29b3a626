/* SPDX-License-Identifier: MIT
 *
 * A whole number and one unit; everything else is refused.
 */
#include "host/duration.h"

#include "unit.h"

static void good(void **state)
{
	static const struct {
		const char *text;
		int64_t us;
	} rows[] = {
		{"1ms", 1000},
		{"1s", 1000000},
		{"1m", 60000000},
		{"1h", 3600000000},
		{"0ms", 0},
		{"0s", 0},
		{"0m", 0},
		{"0h", 0},
		{"500ms", 500000},
		{"30s", 30000000},
		{"5m", 300000000},
		{"2h", 7200000000},
		{"007s", 7000000},
		{"00000000000000000000000000000001s", 1000000},
		/* the largest of each unit */
		{"9223372036854775ms", 9223372036854775000},
		{"9223372036854s", 9223372036854000000},
		{"153722867280m", 9223372036800000000},
		{"2562047788h", 9223372036800000000},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		int64_t us = -1;

		expect(duration_parse(rows[i].text, &us), "'%s' is refused", rows[i].text);
		expect(us == rows[i].us, "'%s' is %lld us", rows[i].text, (long long)us);
	}
}

static void bad(void **state)
{
	static const char *const rows[] = {
		"",
		" ",
		"s",
		"ms",
		"30",
		"0",
		"30 s",
		" 30s",
		"30s ",
		"30s\n",
		"-1s",
		"+1s",
		"1.5s",
		"1,5s",
		"1e3s",
		"0x1s",
		"30S",
		"30M",
		"30H",
		"30Ms",
		"30us",
		"30ns",
		"30d",
		"30sec",
		"30ss",
		"30min",
		"1h30m",
		"30s30s",
		"ms30",
		"@30s",
		"infinity",
		"\xd9\xa3s",
		"3\xb0s",
		"/s",
		":s",
		/* one more than the largest, then far more */
		"9223372036854776ms",
		"9223372036855s",
		"153722867281m",
		"2562047789h",
		"9223372036854775807ms",
		"9223372036854775807h",
		"9223372036854775808ms",
		"18446744073709551617s",
		"99999999999999999999s",
		"1000000000000000000000000000000000000000000000000000000000000000s",
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		int64_t us = -7;

		expect(!duration_parse(rows[i], &us), "'%s' is taken", rows[i]);
		expect(us == -7, "'%s' is refused and yet written", rows[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good),
		cmocka_unit_test(bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
