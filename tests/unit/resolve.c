/* SPDX-License-Identifier: MIT
 *
 * Names to addresses, by processes of its own; numbers need no name service.
 */
#include "setup/resolve.h"

#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

struct answers {
	char *found[4], *none[4], *unknown[4];
};

static void heard(void *ctx, enum resolver_answer answer, size_t name, char *text)
{
	struct answers *answers = ctx;
	char **place = answer == RESOLVER_FOUND  ? &answers->found[name]
	               : answer == RESOLVER_NONE ? &answers->none[name]
	                                         : &answers->unknown[name];

	assert_null(*place);
	*place = strdup(text);
}

static void resolve(const char *names, struct answers *ret_answers)
{
	struct resolver resolver;
	struct pollfd pollfd;

	*ret_answers = (struct answers){0};
	resolver_init(&resolver);
	assert_int_equal(resolver_begin(&resolver, names), 0);
	pollfd = (struct pollfd){.fd = resolver.fd, .events = POLLIN};
	do
		assert_int_equal(poll(&pollfd, 1, 20000), 1);
	while (!resolver_read(&resolver, heard, ret_answers));
	assert_int_equal(resolver.fd, -1);
	resolver_stop(&resolver);
}

static void forget(struct answers *answers)
{
	for (int i = 0; i < 4; i++) {
		free(answers->found[i]);
		free(answers->none[i]);
		free(answers->unknown[i]);
	}
}

static void numbers(void **state)
{
	static const char *const rows[][2] = {
		{"127.0.0.1", "127.0.0.1:2181"},
		{"127.0.0.1:99", "127.0.0.1:99"},
		{"[::1]", "[::1]:2181"},
		{"[::1]:99", "[::1]:99"},
	};
	struct answers answers;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(resolve_are_numbers(rows[i][0]));
		resolve(rows[i][0], &answers);
		assert_string_equal(answers.found[0], rows[i][1]);
		forget(&answers);
	}
	assert_true(resolve_are_numbers("10.0.0.1,[::1]:7,10.0.0.2:1"));
	assert_false(resolve_are_numbers("10.0.0.1,zk1"));
	assert_false(resolve_are_numbers("zk1:2181"));
}

/* The names are not valid, so no name service is asked. */
static void no_such_name(void **state)
{
	struct answers answers;

	(void)state;
	resolve("zk..invalid:99,127.0.0.1,zk..other", &answers);
	assert_ptr_equal(strstr(answers.none[0], "zk..invalid: "), answers.none[0]);
	assert_string_equal(answers.found[1], "127.0.0.1:2181");
	assert_ptr_equal(strstr(answers.none[2], "zk..other: "), answers.none[2]);
	forget(&answers);
}

static void stopped(void **state)
{
	struct resolver resolver;
	int status;

	(void)state;
	resolver_init(&resolver);
	resolver_stop(&resolver);
	while (waitpid(-1, NULL, 0) > 0)
		;
	assert_int_equal(resolver_begin(&resolver, "127.0.0.1"), 0);
	resolver_stop(&resolver);
	assert_int_equal(resolver.fd, -1);
	assert_true(waitpid(-1, &status, 0) > 0);
	assert_int_equal(waitpid(-1, &status, 0), -1);
	assert_int_equal(errno, ECHILD);
}

static void joined(void **state)
{
	static const char *const lists[] = {"b:1,a:1", NULL, "c:1", "a:1,a:11", ""};
	char *all;

	(void)state;
	all = resolve_join(lists, 5);
	assert_string_equal(all, "a:1,a:11,b:1,c:1");
	free(all);
	all = resolve_join(lists, 1);
	assert_string_equal(all, "a:1,b:1");
	free(all);
	assert_null(resolve_join(lists + 1, 1));
	assert_null(resolve_join(lists + 4, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(no_such_name),
		cmocka_unit_test(stopped),
		cmocka_unit_test(joined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
