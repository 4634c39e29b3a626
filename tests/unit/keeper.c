/* SPDX-License-Identifier: MIT
 *
 * A daemon and its keeper: of two signals that are one, to both of them, the second is known; two
 * that were sent are two. A mistake for a second SIGTERM would end all locks.
 */
#include "daemon/keeper.h"

#include "daemon/keeper_run.h"
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECOND INT64_C(1000000)

static int socket_of_keeper;

/* As the program after an exec, whose parent is the keeper. */
static int begin(void **state)
{
	char number[16];
	int fds[2];

	(void)state;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds) < 0)
		return -1;
	socket_of_keeper = fds[1];
	snprintf(number, sizeof(number), "%d", fds[0]);
	setenv(KEEPER_ENVIRONMENT, number, 1);
	(void)keeper_take_over();
	return keeper_fd() == fds[0] ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	keeper_listen();
	return close(socket_of_keeper);
}

static void two_signals_that_are_one(void **state)
{
	enum { KEEPER, OTHER };
	static int64_t at = SECOND;
	static const struct {
		int from;
		uint32_t signal;
		int64_t after_us;
		bool repeats;
	} rows[] = {
		{KEEPER, SIGTERM, 0, false},           {OTHER, SIGTERM, SECOND, true},
		{KEEPER, SIGTERM, SECOND, false}, /* the pair before it is complete */
		{KEEPER, SIGTERM, SECOND, false}, /* the keeper was told twice */
		{OTHER, SIGTERM, SECOND, true},        {OTHER, SIGTERM, SECOND, false},
		{OTHER, SIGTERM, SECOND, false},       {KEEPER, SIGTERM, SECOND, true},
		{OTHER, SIGHUP, SECOND, false},        {KEEPER, SIGTERM, SECOND, false},
		{OTHER, SIGTERM, 9 * SECOND, true},    {OTHER, SIGTERM, SECOND, false},
		{KEEPER, SIGTERM, 10 * SECOND, false}, {OTHER, SIGTERM, 10 * SECOND, false},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct signalfd_siginfo info = {
			.ssi_signo = rows[i].signal,
			.ssi_pid = (uint32_t)(rows[i].from == KEEPER ? getppid() : getpid()),
		};

		at += rows[i].after_us;
		expect(keeper_repeats(&info, at) == rows[i].repeats, "row %zu", i);
	}
	keeper_listen();
	for (int i = 0; i < 2; i++) {
		struct signalfd_siginfo info = {.ssi_signo = SIGTERM,
		                                .ssi_pid = (uint32_t)getppid()};

		expect(!keeper_repeats(&info, at), "without a keeper");
		info.ssi_pid = (uint32_t)getpid();
		expect(!keeper_repeats(&info, at), "without a keeper");
	}
}

static void expect_word(int wanted)
{
	struct keeper_word word = {0};

	assert_int_equal(recv(socket_of_keeper, &word, sizeof(word), 0), sizeof(word));
	assert_int_equal(word.word, wanted);
}

static void words(void **state)
{
	(void)state;
	assert_true(keeper_serves());
	expect_word(KEEPER_HAS); /* the program */
	expect_word(KEEPER_SERVES);
	assert_true(keeper_makes_way());
	expect_word(KEEPER_MAKES_WAY);
	keeper_leaves();
	expect_word(KEEPER_LEAVES);
	assert_true(fcntl(keeper_fd(), F_GETFD) & FD_CLOEXEC);
	keeper_pass(true);
	assert_false(fcntl(keeper_fd(), F_GETFD) & FD_CLOEXEC);
	assert_int_equal(atoi(getenv(KEEPER_ENVIRONMENT)), keeper_fd());
	keeper_pass(false);
	assert_true(fcntl(keeper_fd(), F_GETFD) & FD_CLOEXEC);
	assert_null(getenv(KEEPER_ENVIRONMENT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(two_signals_that_are_one, begin, end),
		cmocka_unit_test_setup_teardown(words, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
