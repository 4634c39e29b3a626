/* SPDX-License-Identifier: MIT
 *
 * unit.h - cmocka with the headers that it needs before it, and an assertion that can say which row
 * of a table failed.
 */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

#define expect(condition, ...)                 \
	do {                                   \
		if (!(condition))              \
			fail_msg(__VA_ARGS__); \
	} while (0)

#endif
