/* SPDX-License-Identifier: MIT */
#include "host/duration.h"

#include <stddef.h>
#include <string.h>

bool duration_parse(const char *text, int64_t *ret_us)
{
	static const struct {
		const char *name;
		int64_t us;
	} units[] = {{"ms", 1000}, {"s", 1000000}, {"m", 60 * 1000000LL}, {"h", 3600 * 1000000LL}};
	int64_t number = 0;
	size_t n;

	for (n = 0; text[n] >= '0' && text[n] <= '9'; n++) {
		int digit = text[n] - '0';

		if (number > (INT64_MAX - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	if (n == 0)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(text + n, units[i].name) != 0)
			continue;
		if (number > INT64_MAX / units[i].us)
			return false;
		*ret_us = number * units[i].us;
		return true;
	}
	return false;
}
