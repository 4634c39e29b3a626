/* SPDX-License-Identifier: MIT
 *
 * The identity and the descent of a process, by /proc, whatever the name of its command is; and
 * whether it lives, by a pidfd.
 */
#include "host/process.h"

#include "unit.h"

#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child with that process id, which waits. -1: not allowed. */
static pid_t fork_as(pid_t wanted)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uintptr_t)&wanted,
		.set_tid_size = 1,
	};
	pid_t child = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (child == 0) {
		pause();
		_exit(0);
	}
	return child;
}

static void identity(void **state)
{
	static const char *const names[] = {"plain", "a b", ") R 1 2 3 (", "((((",
	                                    "))))",  "",    "a\nb: c",     "\n"};
	struct process ancestry;
	struct process self;

	(void)state;
	assert_true(process_read(getpid(), &ancestry));
	assert_int_equal(ancestry.parent, getppid());
	assert_true(ancestry.start > 0);
	process_identify(getpid(), &self);
	assert_int_equal(self.pid, getpid());
	assert_true(self.start == ancestry.start);
	for (size_t i = 0; i < LENGTH(names); i++) {
		pid_t child = fork();
		struct process caller;
		int status;

		if (child == 0) {
			prctl(PR_SET_NAME, names[i]);
			process_identify(getpid(), &caller);
			if (caller.pid != getpid() || caller.start < self.start ||
			    strcmp(caller.command, names[i]) != 0)
				_exit(1);
			process_see(getpid(), &caller);
			_exit(caller.pid != getpid() || caller.start != 0 ||
			      strcmp(caller.command, names[i]) != 0 ||
			      process_of(getpid()) != getpid());
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		expect(status == 0, "'%s' is another process", names[i]);
	}
}

static void nobody(void **state)
{
	struct process caller;
	pid_t gone = fork();

	(void)state;
	if (gone == 0)
		_exit(0);
	assert_int_equal(waitpid(gone, NULL, 0), gone);
	for (size_t i = 0; i < 2; i++) {
		process_identify(i ? gone : 0, &caller);
		assert_int_equal(caller.pid, 0);
		assert_string_equal(caller.command, "-");
		assert_null(lineage_read(caller.pid));
		assert_int_equal(process_watch(i ? gone : 0), -1);
	}
	assert_false(process_lives(-1));
}

static void life(void **state)
{
	int fd, end[2];
	pid_t child;

	(void)state;
	assert_int_equal(pipe(end), 0);
	child = fork();
	if (child == 0) {
		char byte;

		close(end[1]);
		_exit((int)read(end[0], &byte, 1));
	}
	fd = process_watch(child);
	assert_true(fd >= 0);
	assert_true(process_lives(fd));
	close(end[1]);
	assert_int_equal(waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	assert_false(process_lives(fd)); /* a zombie */
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_false(process_lives(fd));
	close(fd);

	/* The last descriptors are kept for other uses. */
	fd = process_watch(getpid());
	close(fd);
	process_limit_fds((uint64_t)fd + PROCESS_FDS_RESERVED);
	assert_int_equal(process_watch(getpid()), -1);
	process_limit_fds((uint64_t)fd + PROCESS_FDS_RESERVED + 1);
	assert_int_equal(process_watch(getpid()), fd);
	process_limit_fds(UINT64_MAX);
	close(fd);
	close(end[0]);
}

/* A pidfd that was given back serves the same process again, and no later one of its number. */
static void watched_again(void **state)
{
	pid_t child = fork(), again;
	int fd;

	(void)state;
	if (child == 0) {
		pause();
		_exit(0);
	}
	fd = process_watch(child);
	process_unwatch(child, fd);
	assert_int_equal(process_watch(child), fd);
	assert_int_not_equal(process_watch(child), fd); /* it is in use */
	process_unwatch(child, fd);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(process_watch(child), -1);
	again = fork_as(child);
	if (again < 0)
		skip(); /* without the right to choose a number */
	fd = process_watch(child);
	assert_true(process_lives(fd));
	process_unwatch(child, fd);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* A process is remembered for a moment, and not when another one gets its number meanwhile. */
static void number_again(void **state)
{
	struct process caller;
	pid_t child, again;

	(void)state;
	prctl(PR_SET_NAME, "former");
	child = fork();
	if (child == 0) {
		pause();
		_exit(0);
	}
	process_see(child, &caller);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_string_equal(caller.command, "former");
	prctl(PR_SET_NAME, "later");
	again = fork_as(child);
	if (again < 0)
		skip();
	process_see(child, &caller);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_string_equal(caller.command, "later");
	assert_int_equal(process_of(child), 0);
}

/* For the grandchild. 0, or the number of the question that had the wrong answer. */
static unsigned char look_up(pid_t top, pid_t middle, bool orphan)
{
	struct lineage *lineage;

	lineage = lineage_read(getpid());
	if (!lineage)
		return 1;
	if (lineage_find(lineage, getpid()) != 0)
		return 2;
	if (lineage_find(lineage, middle) != (orphan ? -1 : 1))
		return 3;
	if (lineage_find(lineage, top) != (orphan ? -1 : 2))
		return 4;
	return lineage_find(lineage, 1) == -1 && lineage_find(lineage, 0) == -1 ? 0 : 5;
}

/* This process, a child and a grandchild: while the child lives, or after its end. */
static void descend(bool orphan)
{
	int results[2], end[2];
	unsigned char result = 255;
	pid_t top = getpid(), child;

	assert_int_equal(pipe(results), 0);
	assert_int_equal(pipe(end), 0);
	child = fork();
	if (child == 0) {
		pid_t middle = getpid(), grandchild = fork();

		if (grandchild == 0) {
			close(end[1]);
			if (orphan)
				(void)!read(end[0], &result, 1); /* until its parent is gone */
			result = look_up(top, middle, orphan);
			_exit(write(results[1], &result, 1) != 1);
		}
		if (!orphan)
			waitpid(grandchild, NULL, 0);
		_exit(0);
	}
	close(results[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(end[1]); /* the grandchild has another parent now */
	assert_int_equal(read(results[0], &result, 1), 1);
	assert_int_equal(result, 0);
	close(end[0]);
	close(results[0]);
}

static void descent(void **state)
{
	(void)state;
	descend(false);
	descend(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(identity),     cmocka_unit_test(nobody),
		cmocka_unit_test(life),         cmocka_unit_test(watched_again),
		cmocka_unit_test(number_again), cmocka_unit_test(descent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
