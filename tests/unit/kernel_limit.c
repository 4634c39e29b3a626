/* SPDX-License-Identifier: MIT
 *
 * The kernel's limit for requests: the meaning of two sysctls together, and that each
 * wait ends well before the kernel would abort the mount.
 */
#include "host/kernel_limit.h"

#include "unit.h"

static void two_sysctls(void **state)
{
	static const struct {
		int64_t by_default_s, max_s, limit_s;
	} rows[] = {
		{0, 0, 0},
		{20, 0, 20},
		{0, 20, 20},
		{20, 30, 20},
		{30, 20, 20},
		{20, 20, 20},
		/* The kernel's limit is 15 s at least, the period of its checks. */
		{1, 0, 15},
		{0, 1, 15},
		{14, 0, 15},
		{15, 0, 15},
		{16, 0, 16},
		{100, 1, 15},
		{65535, 65535, 65535},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++)
		expect(kernel_limit_effective(rows[i].by_default_s, rows[i].max_s) ==
		               rows[i].limit_s,
		       "%lld and %lld", (long long)rows[i].by_default_s, (long long)rows[i].max_s);
}

static void waits(void **state)
{
	static const struct {
		int64_t limit_s, wait_us;
	} rows[] = {
		{0, INT64_MAX}, {15, 7000000},  {20, 10000000},       {30, 15000000},
		{31, 16000000}, {60, 45000000}, {65535, 65520000000},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++)
		expect(kernel_limit_wait_us(rows[i].limit_s) == rows[i].wait_us, "%lld s: %lld us",
		       (long long)rows[i].limit_s,
		       (long long)kernel_limit_wait_us(rows[i].limit_s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_sysctls),
		cmocka_unit_test(waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
