/* SPDX-License-Identifier: MIT
 *
 * What is wrong with the servers' names, in one text, which is cut off where there is no room; and
 * how often they are looked up without contact.
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

/* Without contact each pause between two looks is twice as long as the one before; with numbers in
 * the place of names there is nothing to look up. */
static void pauses(void **state)
{
	static const int64_t wanted_ms[] = {500, 1000, 2000, 4000, 8000, 15000, 15000};
	const struct pollfd no_answers[SERVERS_POLLED] = {0};
	struct servers servers;
	int64_t now_us = 1;

	(void)state;
	assert_true(servers_init(&servers, "127.0.0.1:9", 15000000));
	servers.addresses = strdup("127.0.0.1:9");
	for (size_t i = 0; i < LENGTH(wanted_ms); i++) {
		struct pollfd fds[SERVERS_POLLED];

		servers_process(&servers, NULL, now_us, no_answers);
		assert_true(servers.resolver.fd < 0);
		expect(servers.next_us - now_us == wanted_ms[i] * 1000, "look %zu: %lld us", i,
		       (long long)(servers.next_us - now_us));
		assert_int_equal(servers_prepare(&servers, now_us, fds), wanted_ms[i] * 1000);
		now_us = servers.next_us - 1; /* too early */
		servers_process(&servers, NULL, now_us, no_answers);
		assert_int_equal(servers.next_us, now_us + 1);
		now_us = servers.next_us;
	}
	servers_finish(&servers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pauses),
		cmocka_unit_test(problems),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
