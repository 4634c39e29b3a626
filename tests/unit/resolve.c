/* SPDX-License-Identifier: MIT
 *
 * Names to addresses, by a process of its own; numbers need no name service.
 */
#include "resolve.h"

#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static char *resolve(const char *servers, char **ret_problem)
{
	char *addresses = NULL;
	struct resolver resolver;
	struct pollfd pollfd;

	resolver_init(&resolver);
	assert_int_equal(resolver_begin(&resolver, servers), 0);
	pollfd = (struct pollfd){.fd = resolver.fd, .events = POLLIN};
	do
		assert_int_equal(poll(&pollfd, 1, 20000), 1);
	while (!resolver_read(&resolver, &addresses, ret_problem));
	assert_int_equal(resolver.fd, -1);
	resolver_stop(&resolver);
	while (waitpid(-1, NULL, 0) > 0)
		;
	return addresses;
}

static void numbers(void **state)
{
	static const char *const rows[][2] = {
		{"127.0.0.1", "127.0.0.1:2181"},
		{"127.0.0.1:99", "127.0.0.1:99"},
		{"[::1]", "[::1]:2181"},
		{"[::1]:99", "[::1]:99"},
		{"10.0.0.2,10.0.0.1:5,10.0.0.2:2181", "10.0.0.1:5,10.0.0.2:2181"},
		{"[2001:db8::1]:7,127.0.0.1", "127.0.0.1:2181,[2001:db8::1]:7"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *problem, *addresses = resolve(rows[i][0], &problem);

		assert_string_equal(addresses, rows[i][1]);
		assert_null(problem);
		free(addresses);
	}
}

/* The name is not valid, so no name service is asked. */
static void no_such_name(void **state)
{
	char *problem, *addresses;

	(void)state;
	addresses = resolve("zk..invalid:99", &problem);
	assert_null(addresses);
	assert_ptr_equal(strstr(problem, "zk..invalid: "), problem);
	free(problem);
	addresses = resolve("zk..invalid,127.0.0.1", &problem);
	assert_string_equal(addresses, "127.0.0.1:2181");
	assert_non_null(problem);
	free(problem);
	free(addresses);
}

static void stopped(void **state)
{
	struct resolver resolver;
	int status;

	(void)state;
	resolver_init(&resolver);
	resolver_stop(&resolver);
	assert_int_equal(resolver_begin(&resolver, "127.0.0.1"), 0);
	resolver_stop(&resolver);
	assert_int_equal(resolver.fd, -1);
	assert_true(waitpid(-1, &status, 0) > 0);
	assert_int_equal(waitpid(-1, &status, 0), -1);
	assert_int_equal(errno, ECHILD);
}

static void what_is_new(void **state)
{
	(void)state;
	assert_false(resolve_adds("a:1", "a:1"));
	assert_false(resolve_adds("a:1,b:1", "b:1,c:1,a:1"));
	assert_true(resolve_adds("a:1,b:1", "a:1"));
	assert_true(resolve_adds("a:1", "a:11"));
	assert_true(resolve_adds("a:11", "a:1"));
	assert_true(resolve_adds("a:2", "a:1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(no_such_name),
		cmocka_unit_test(stopped),
		cmocka_unit_test(what_is_new),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
