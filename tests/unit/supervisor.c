/* SPDX-License-Identifier: MIT
 *
 * A daemon and its supervisor: of two signals that are one, to both of them, the second is known;
 * two that were sent are two. A mistake for a second SIGTERM would end all locks.
 */
#include "daemon/supervisor.h"

#include "daemon/supervisor_run.h"
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECOND INT64_C(1000000)

static int socket_of_supervisor;

/* As the program after an exec, whose parent is the supervisor. */
static int begin(void **state)
{
	char number[16];
	int fds[2];

	(void)state;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds) < 0)
		return -1;
	socket_of_supervisor = fds[1];
	snprintf(number, sizeof(number), "%d", fds[0]);
	setenv(SUPERVISOR_ENVIRONMENT, number, 1);
	(void)supervisor_take_over();
	return supervisor_fd() == fds[0] ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	supervisor_listen();
	return close(socket_of_supervisor);
}

static void two_signals_that_are_one(void **state)
{
	enum { SUPERVISOR, OTHER };
	static int64_t at = SECOND;
	static const struct {
		int from;
		uint32_t signal;
		int64_t after_us;
		bool repeats;
	} rows[] = {
		{SUPERVISOR, SIGTERM, 0, false},
		{OTHER, SIGTERM, SECOND, true},
		{SUPERVISOR, SIGTERM, SECOND, false}, /* the pair before it is complete */
		{SUPERVISOR, SIGTERM, SECOND, false}, /* the supervisor was told twice */
		{OTHER, SIGTERM, SECOND, true},
		{OTHER, SIGTERM, SECOND, false},
		{OTHER, SIGTERM, SECOND, false},
		{SUPERVISOR, SIGTERM, SECOND, true},
		{OTHER, SIGHUP, SECOND, false},
		{SUPERVISOR, SIGTERM, SECOND, false},
		{OTHER, SIGTERM, 9 * SECOND, true},
		{OTHER, SIGTERM, SECOND, false},
		{SUPERVISOR, SIGTERM, 10 * SECOND, false},
		{OTHER, SIGTERM, 10 * SECOND, false},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct signalfd_siginfo info = {
			.ssi_signo = rows[i].signal,
			.ssi_pid = (uint32_t)(rows[i].from == SUPERVISOR ? getppid() : getpid()),
		};

		at += rows[i].after_us;
		expect(supervisor_repeats(&info, at) == rows[i].repeats, "row %zu", i);
	}
	supervisor_listen();
	for (int i = 0; i < 2; i++) {
		struct signalfd_siginfo info = {.ssi_signo = SIGTERM,
		                                .ssi_pid = (uint32_t)getppid()};

		expect(!supervisor_repeats(&info, at), "without a keeper");
		info.ssi_pid = (uint32_t)getpid();
		expect(!supervisor_repeats(&info, at), "without a keeper");
	}
}

static void expect_word(int wanted)
{
	struct supervisor_word word = {0};

	assert_int_equal(recv(socket_of_supervisor, &word, sizeof(word), 0), sizeof(word));
	assert_int_equal(word.word, wanted);
}

static void words(void **state)
{
	(void)state;
	/* A program that comes later must not take another descriptor of this number for it. */
	assert_null(getenv(SUPERVISOR_ENVIRONMENT));
	assert_true(supervisor_serves());
	expect_word(SUPERVISOR_HAS); /* the program */
	expect_word(SUPERVISOR_SERVES);
	assert_true(supervisor_makes_way());
	expect_word(SUPERVISOR_MAKES_WAY);
	supervisor_leaves();
	expect_word(SUPERVISOR_LEAVES);
	assert_true(fcntl(supervisor_fd(), F_GETFD) & FD_CLOEXEC);
	supervisor_pass(true);
	assert_false(fcntl(supervisor_fd(), F_GETFD) & FD_CLOEXEC);
	assert_int_equal(atoi(getenv(SUPERVISOR_ENVIRONMENT)), supervisor_fd());
	supervisor_pass(false);
	assert_true(fcntl(supervisor_fd(), F_GETFD) & FD_CLOEXEC);
	assert_null(getenv(SUPERVISOR_ENVIRONMENT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(two_signals_that_are_one, begin, end),
		cmocka_unit_test_setup_teardown(words, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
