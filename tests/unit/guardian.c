/* SPDX-License-Identifier: MIT
 *
 * A guardian that was told no deadline takes nobody for a loser; losers by their own time show that
 * it has looked. A guardian without a daemon stays until SIGKILL is sent.
 */
#include "guard/guardian.h"

#include "host/clock.h"
#include "pure/codec.h"
#include "unit.h"

#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY_LOOKS 60000

static int hold_by(struct guardian *guardian, pid_t pid, int64_t until_us)
{
	const struct guarded who = {
		.uid = getuid(),
		.process = {.pid = pid},
		.lock = "build",
		.ino = 1,
		.until_us = until_us,
	};
	int slot = guardian_hold(guardian, &who);

	assert_true(slot >= 0);
	return slot;
}

static int hold_until(struct guardian *guardian, int64_t until_us)
{
	return hold_by(guardian, 0, until_us);
}

static void await_loss(const struct guardian *guardian, int slot)
{
	for (int i = 0; i < MANY_LOOKS && !guardian_has_lost(guardian, slot); i++)
		(void)poll(NULL, 0, 1);
	assert_true(guardian_has_lost(guardian, slot));
}

static void without_a_deadline(void **state)
{
	struct guardian *guardian;
	int holder;

	(void)state;
	assert_true(guardian_start(ON_LOST_KILL, &guardian));
	if (guardian_fd(guardian) < 0) {
		guardian_end(guardian, true);
		skip(); /* nobody can be stopped here */
	}
	guardian_mounted(guardian, 1, "0:0");
	holder = hold_until(guardian, INT64_MAX);
	/* Two: the second one is seen by a look that began after the first one. */
	await_loss(guardian, hold_until(guardian, 0));
	await_loss(guardian, hold_until(guardian, 0));
	assert_false(guardian_has_lost(guardian, holder));
	guardian_deadline(guardian, clock_now_us() + 60 * 1000000LL);
	await_loss(guardian, hold_until(guardian, 0));
	assert_false(guardian_has_lost(guardian, holder));
	guardian_deadline(guardian, clock_now_us());
	await_loss(guardian, holder);
	assert_false(guardian_leaves(guardian));
	guardian_end(guardian, true);
}

static int hold_of(struct guardian *guardian, uid_t uid)
{
	const struct guarded who = {.uid = uid, .lock = "build", .ino = 1, .until_us = INT64_MAX};

	return guardian_hold(guardian, &who);
}

/* Over a reload a slot stays its user's: once it is free, the user may have a quarter of all. */
static void slots_of_a_user_over_a_reload(void **state)
{
	enum { ROOT = 0, USER = 4711 };
	struct codec out = {0}, in = {.loads = true};
	struct guardian *before, *after = NULL;
	int slots[2];

	(void)state;
	assert_true(guardian_start(ON_LOST_KILL, &before));
	if (guardian_fd(before) < 0) {
		guardian_end(before, true);
		skip(); /* nobody can be stopped here */
	}
	slots[0] = hold_of(before, ROOT);
	slots[1] = hold_of(before, USER);
	codec_begin(&out);
	guardian_save_load(&out, &before);
	codec_read(&in, out.data, out.len);
	guardian_save_load(&in, &after);
	for (int i = 0; i < 2; i++) {
		assert_true(slots[i] >= 0);
		guardian_release(after, slots[i]);
	}
	guardian_free_released(after);
	for (int i = 0; i < GUARDIAN_SLOTS / 4; i++)
		expect(hold_of(after, USER) >= 0, "hold %d", i);
	assert_int_equal(hold_of(after, USER), -ENOLCK);
	codec_end(&out);
	guardian_end(after, true);
	guardian_end(before, false); /* frees its memory; the descriptors were those of the other */
}

/* For good, and so do those that are started from now on. */
static void lose_capability(int capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	assert_int_equal(syscall(SYS_capget, &header, data), 0);
	data[0].effective &= ~(1U << capability);
	data[0].permitted &= ~(1U << capability);
	assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

/* A process that nobody looks into, and that SIGTERM does not end. */
static pid_t start_protected(void)
{
	int fds[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGTERM, SIG_IGN);
		(void)prctl(PR_SET_DUMPABLE, 0);
		(void)!write(fds[1], "", 1);
		while (1)
			pause();
	}
	assert_int_equal(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	close(fds[1]);
	return pid;
}

/* The search for others finds nobody, and the opener, which could not be looked into, waits for
 * SIGKILL. */
static void without_a_daemon(void **state)
{
	struct guardian *guardian;
	pid_t loser = start_protected();
	int slot, status;

	(void)state;
	lose_capability(CAP_SYS_PTRACE);
	assert_true(guardian_start(ON_LOST_TERM, &guardian));
	if (guardian_fd(guardian) < 0) {
		kill(loser, SIGKILL);
		skip(); /* nobody can be stopped here */
	}
	guardian_mounted(guardian, 1, "0:0");
	slot = hold_by(guardian, loser, INT64_MAX);
	guardian_deadline(guardian, clock_now_us());
	for (int i = 0; i < MANY_LOOKS && !guardian_stopped(guardian, slot); i++)
		(void)poll(NULL, 0, 1);
	guardian_end(guardian, /* clean = */ false);
	alarm(60);
	assert_int_equal(waitpid(loser, &status, 0), loser);
	alarm(0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_deadline),
		cmocka_unit_test(slots_of_a_user_over_a_reload),
		cmocka_unit_test(without_a_daemon), /* the last one: it loses a capability */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
