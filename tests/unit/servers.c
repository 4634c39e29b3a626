/* SPDX-License-Identifier: MIT
 *
 * What is wrong with the servers' names, in one text, which is cut off where there is no room.
 */
#include "setup/servers.h"

#include "unit.h"

#include <string.h>

static void problems(void **state)
{
	static char first[] = "a: not known", third[] = "c: no answer";
	struct server_name each[] = {{.problem = first}, {0}, {.problem = third}};
	const struct servers servers = {.each = each, .count = LENGTH(each)};
	static const char whole[] = "a: not known; c: no answer";
	char text[64];

	(void)state;
	for (size_t size = 1; size < sizeof(text) - 8; size++) {
		size_t len = size <= strlen(whole) ? size - 1 : strlen(whole);

		memset(text, '#', sizeof(text));
		assert_ptr_equal(servers_problems(&servers, text, size), text);
		expect(strlen(text) == len && memcmp(text, whole, len) == 0, "%zu: %s", size, text);
		for (size_t i = size; i < sizeof(text); i++)
			expect(text[i] == '#', "%zu: a byte behind the end", size);
	}
	assert_string_equal(servers_problems(&(struct servers){0}, text, sizeof(text)), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(problems),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
