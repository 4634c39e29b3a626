/* SPDX-License-Identifier: MIT
 *
 * A process by its pidfd, and by its number where there is no pidfd: what it is, whether it runs,
 * whom it obeys, and a life that is watched on after a crash.
 */
#include "host/process.h"

#include "host/helper.h"
#include "host/proc.h"
#include "pure/codec.h"
#include "unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Faults, as by a filter: these calls are refused. */
static bool no_pidfds, no_kill, no_close_range;

long syscall(long number, ...)
{
	long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	long a[4];
	va_list args;

	errno = EPERM;
	if (no_pidfds && (number == SYS_pidfd_open || number == SYS_pidfd_send_signal))
		return -1;
	va_start(args, number);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	return real(number, a[0], a[1], a[2], a[3]);
}

int kill(pid_t pid, int signal)
{
	errno = EPERM;
	return no_kill ? -1 : (int)syscall(SYS_kill, pid, signal);
}

int close_range(unsigned first, unsigned last, int flags)
{
	int (*real)(unsigned, unsigned, int) =
		(int (*)(unsigned, unsigned, int))dlsym(RTLD_NEXT, "close_range");

	errno = EPERM;
	return no_close_range ? -1 : real(first, last, flags);
}

static pid_t fork_one(void)
{
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	assert_true(child > 0);
	return child;
}

static void end_one(pid_t child)
{
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* As it is where the kernel has no pidfd. */
static struct process by_start(pid_t pid)
{
	struct process process;

	assert_true(process_read(pid, &process));
	return process;
}

static void what_it_is(void **state)
{
	pid_t child = fork_one();
	struct process process, bare = by_start(child);
	int sent;

	(void)state;
	assert_int_equal(process_open(child, &process), 0);
	for (int i = 0; i < 2; i++) {
		struct process asked = i ? bare : process;

		assert_true(process_ask(&asked));
		assert_int_equal(asked.pid, child);
		assert_int_equal(asked.parent, getpid());
		assert_int_equal(asked.real, getuid());
		assert_int_equal(process_signal(i ? &bare : &process, 0), 0);
		assert_true(process_runs(i ? &bare : &process));
	}
	no_kill = true; /* a pidfd needs none, and its process is no other */
	sent = process_signal(&process, 0);
	no_kill = false;
	assert_int_equal(sent, 0);
	assert_true(process_is(&process, bare.start, 0));
	assert_false(process_is(&process, bare.start + 1, 0));
	assert_true(process_is(&process, bare.start + 1, process_number(&process)) ||
	            process_number(&process) == 0);
	assert_false(process_is(&process, bare.start, process_number(&process) + 1));
	assert_int_equal(process_number(&bare), 0);
	bare.start++;
	assert_false(process_runs(&bare)); /* another one of that number */
	bare.start--;
	end_one(child);
	assert_false(process_runs(&process));
	assert_false(process_runs(&bare));
	assert_int_equal(process_signal(&process, SIGTERM), -ESRCH);
	process_close(&process);
	process_close(&process);
	assert_int_equal(process.fd, -1);
	assert_int_equal(process_open(child, &process), -ESRCH);
	assert_int_equal(process_open(0, &process), -ESRCH);
}

/* Where no pidfd can be had, /proc says what it is, and kill(2) signals it. */
static void without_pidfds(void **state)
{
	pid_t child = fork_one();
	struct process process = by_start(child), asked = process;
	int status;

	(void)state;
	no_pidfds = true;
	assert_true(process_ask(&asked));
	assert_int_equal(asked.pid, child);
	assert_int_equal(asked.parent, getpid());
	assert_int_equal(asked.real, getuid());
	assert_int_equal(asked.saved, getuid());
	assert_int_equal(process_signal(&process, SIGKILL), 0);
	no_pidfds = false;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Also where close_range(2) is refused the next program gets none but the first three. */
static void what_the_next_program_gets(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		int fds[2];

		assert_int_equal(pipe(fds), 0);
		no_close_range = i;
		assert_int_equal(helper_close_by_exec(), 0);
		no_close_range = false;
		for (int k = 0; k < 2; k++) {
			assert_int_equal(fcntl(fds[k], F_GETFD), FD_CLOEXEC);
			close(fds[k]);
		}
		assert_int_equal(fcntl(STDERR_FILENO, F_GETFD), 0);
	}
}

static void whom_it_obeys(void **state)
{
	const struct process status = {.real = 1001, .saved = 1002};

	(void)state;
	assert_true(process_obeys(&status, 0));
	assert_true(process_obeys(&status, 1001));
	assert_true(process_obeys(&status, 1002));
	assert_false(process_obeys(&status, 1003));
}

/* The life of the process after a crash of who watched it; -1: it is not watched any more. */
static int carried(pid_t pid, uid_t uid, int life, bool crashed)
{
	struct codec out = {0}, in = {.loads = true, .crashed = crashed};
	int after;

	codec_begin(&out);
	(void)process_life_save_load(&out, pid, uid, life);
	codec_read(&in, out.data, out.len);
	after = process_life_save_load(&in, pid, uid, -1);
	codec_read_all(&in);
	assert_null(in.bad);
	codec_end(&out);
	return after;
}

static void a_life_over_a_crash(void **state)
{
	pid_t child = fork_one(), other = fork_one();
	int life = process_watch(child), after;

	(void)state;
	after = carried(child, getuid(), life, true);
	assert_true(after >= 0 && after != life && process_lives(after));
	close(after);
	assert_int_equal(carried(child, getuid(), -1, true), -1); /* none was watched */
	end_one(child);
	assert_int_equal(carried(child, getuid(), life, true), -1);
	close(life);
	/* Its number is another's now, as far as the kernel tells. */
	life = process_watch(other);
	if (process_number(&(struct process){.pid = other, .fd = life}) != 0)
		assert_int_equal(carried(getpid(), getuid(), life, true), -1);
	close(life);
	end_one(other);
}

/* A want of descriptors or memory counts, and no process that has ended. */
static void what_is_scarce(void **state)
{
	static const struct {
		int result, error;
		bool counts;
	} rows[] = {
		{-1, EMFILE, true},  {-1, ENFILE, true}, {-1, ENOMEM, true},
		{-1, ENOENT, false}, {-1, ESRCH, false}, {3, EMFILE, false},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		unsigned before = proc_scarce();

		errno = rows[i].error;
		assert_int_equal(proc_opened(rows[i].result), rows[i].result);
		expect(proc_scarce() - before == rows[i].counts, "row %zu", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_it_is),
		cmocka_unit_test(without_pidfds),
		cmocka_unit_test(what_the_next_program_gets),
		cmocka_unit_test(whom_it_obeys),
		cmocka_unit_test(a_life_over_a_crash),
		cmocka_unit_test(what_is_scarce),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
