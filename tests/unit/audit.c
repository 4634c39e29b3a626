/* SPDX-License-Identifier: MIT
 *
 * How a hold ends: its line in the history and those in the log, what is counted, and all of it
 * over a reload.
 */
#include "hold/audit.h"

#include "captured.h"
#include "refused.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS INT64_C(1000)

static const struct lc_taker *const TAKER = (const void *)"a taker";
static int64_t now_us = 1000000;
static struct audit_log log_of_mount;
static struct audit audit;

/* In place of the engine's functions. */
int64_t lc_token(const struct lc_taker *taker)
{
	assert_ptr_equal(taker, TAKER);
	return 9;
}

const char *lc_reason(const struct lc_taker *taker)
{
	assert_ptr_equal(taker, TAKER);
	return "deploy 42";
}

/* In place of the history. */
static struct history_hold last;
static char last_by[128];
static unsigned holds;
static enum lc_mode audit_mode;

void history_add(struct history *history, const struct history_hold *hold, int64_t held_us)
{
	assert_ptr_equal(history, &log_of_mount.history);
	assert_int_equal(held_us / 1000, hold->held_ms);
	last = *hold;
	snprintf(last_by, sizeof(last_by), "%s", hold->by);
	holds++;
}

const char *history_end_name(enum history_end how)
{
	static const char *const names[] = {"closed", "exited", "lost", "evicted", "stopped"};

	return names[how];
}

static struct lc_status status_of_engine;

void lc_status(struct lc *lc, struct lc_status *ret)
{
	assert_ptr_equal(lc, log_of_mount.lc);
	*ret = status_of_engine;
}

static int64_t clock_us(void)
{
	return now_us;
}

static int begin(void **state)
{
	static const struct process caller = {.pid = 42, .command = "a b"};

	(void)state;
	log_of_mount = (struct audit_log){.clock_us = clock_us};
	holds = 0;
	audit_mode = LC_EXCLUSIVE;
	audit_begin(&audit, &log_of_mount, "build", LC_EXCLUSIVE, &caller, 7);
	now_us += 1500 * MS;
	return capture_begin();
}

static int end(void **state)
{
	(void)state;
	capture_end();
	return 0;
}

static void expect_log(const char *wanted)
{
	char text[2048];
	ssize_t n = read(reader, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	assert_string_equal(text, wanted);
}

/* The last hold of the history. */
static void expect_history(enum history_end how, int64_t held_ms, int64_t token, const char *by,
                           const char *reason)
{
	assert_int_equal(last.end, how);
	assert_int_equal(last.mode, audit_mode);
	assert_int_equal(last.pid, 42);
	assert_int_equal(last.uid, 7);
	assert_int_equal(last.waited_ms, 1500);
	assert_int_equal(last.held_ms, held_ms);
	assert_int_equal(last.token, token);
	assert_string_equal(last.command, "a b");
	assert_string_equal(last.lock, "build");
	assert_string_equal(last_by, by);
	assert_string_equal(last.reason, reason);
}

/* The descriptor of a process that has ended. */
static int ended_process(void)
{
	pid_t pid = fork();
	int fd;

	if (pid == 0)
		_exit(0);
	fd = pidfd_open(pid, 0);
	assert_true(fd >= 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return fd;
}

static void closed(void **state)
{
	(void)state;
	log_of_mount.audit = log_of_mount.log_takes = true;
	audit_granted(&audit, TAKER);
	expect_log("zklockfs: build: granted to pid 42 (a\\040b) uid 7 after 1.5 s, token 9\n");
	now_us += 3000 * MS;
	audit_stopped(&audit, 0);
	audit_parted(&audit, getpid(), -1);
	audit_end(&audit, TAKER);
	expect_log(
		"zklockfs: build: released by pid 42 (a\\040b) uid 7 after 3.0 s, token 9: closed\n"
		"zklockfs: audit: build exclusive pid 42 (a\\040b) uid 7 waited 1.5 s held 3.0 s "
		"token 9 closed; reason: deploy 42\n");
	expect_history(HISTORY_CLOSED, 3000, 9, "", "deploy 42");
	assert_int_equal(log_of_mount.stopped, 0);
}

static void never_granted(void **state)
{
	(void)state;
	audit_parted(&audit, getpid(), -1);
	audit_lost(&audit, TAKER, NULL);
	audit_end(&audit, TAKER);
	expect_log("");
	assert_int_equal(holds, 0);
}

static void shared_and_without_the_engine(void **state)
{
	(void)state;
	log_of_mount.audit = true;
	audit.mode = audit_mode = LC_SHARED;
	audit_granted(&audit, TAKER);
	audit_end(&audit, NULL);
	expect_log("zklockfs: audit: build shared pid 42 (a\\040b) uid 7 waited 1.5 s held 0.0 s "
	           "token - closed; reason: -\n");
	expect_history(HISTORY_CLOSED, 0, 0, "", "");
}

/* Nobody asks for so short a hold whether its process has ended. */
static void exited(void **state)
{
	int life = ended_process();

	(void)state;
	audit_granted(&audit, TAKER);
	now_us += 20 * MS - 1;
	audit_parted(&audit, getpid(), life);
	assert_int_equal(audit.end, HISTORY_CLOSED);
	now_us += 1;
	audit_parted(&audit, getpid(), -1);
	assert_int_equal(audit.end, HISTORY_CLOSED);
	audit_parted(&audit, getpid(), life);
	assert_int_equal(audit.end, HISTORY_EXITED);
	audit_end(&audit, TAKER);
	expect_history(HISTORY_EXITED, 20, 9, "", "deploy 42");
	close(life);
}

static void stopped(int signal, const char *by)
{
	log_of_mount.stopped = 5;
	audit_granted(&audit, TAKER);
	audit_stopped(&audit, signal);
	audit_stopped(&audit, 0);
	audit_parted(&audit, getpid(), -1);
	assert_int_equal(log_of_mount.stopped, 6);
	audit_end(&audit, TAKER);
	expect_history(HISTORY_STOPPED, 0, 9, by, "deploy 42");
}

static void stopped_by_sigterm(void **state)
{
	(void)state;
	stopped(SIGTERM, "SIGTERM before the lease's end");
}

static void stopped_by_sigkill(void **state)
{
	(void)state;
	stopped(SIGKILL, "SIGKILL before the lease's end");
}

/* It is told once, though the file is closed later. */
static void lost(void **state)
{
	(void)state;
	audit_granted(&audit, TAKER);
	audit_lost(&audit, TAKER, "held too long");
	expect_log("zklockfs: build: the lock is lost by pid 42 (a\\040b) uid 7, token 9, held for "
	           "0.0 s: held too long; reason: deploy 42\n");
	expect_history(HISTORY_LOST, 0, 9, "held too long", "deploy 42");
	audit_parted(&audit, getpid(), -1);
	audit_end(&audit, TAKER);
	assert_int_equal(holds, 1);
}

/* As far as it can be told. */
static void cause_of_loss(void **state)
{
	static const struct {
		bool leaves;
		enum lc_state state;
		int64_t left_us;
		const char *cause;
	} rows[] = {
		{true, LC_READY, 1, "the mount is shutting down"},
		{false, LC_UNUSABLE, 1, "the mount is unusable"},
		{false, LC_CONNECTING, 1, "the ensemble has ended the session"},
		{false, LC_READY, 0, "no contact with the ensemble, the lease has expired"},
		{false, LC_READY, 1, "its entry was deleted in the ensemble"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		char wanted[256];

		status_of_engine = (struct lc_status){.state = rows[i].state,
		                                      .lease_left_us = rows[i].left_us};
		log_of_mount.leaves = rows[i].leaves;
		audit_granted(&audit, TAKER);
		audit_lost(&audit, TAKER, NULL);
		snprintf(wanted, sizeof(wanted),
		         "zklockfs: build: the lock is lost by pid 42 (a\\040b) uid 7, token 9, "
		         "held "
		         "for 0.0 s: %s; reason: deploy 42\n",
		         rows[i].cause);
		expect_log(wanted);
	}
	audit_end(&audit, TAKER);
}

/* As another process goes on with it. */
static void hand_over(void)
{
	struct codec written = {0}, read = {.loads = true, .give_up = refuse};
	struct audit before = audit;

	codec_begin(&written);
	audit_save_load(&written, &before, &log_of_mount, "build");
	codec_read(&read, written.data, written.len);
	audit = (struct audit){0};
	audit_save_load(&read, &audit, &log_of_mount, "build");
	codec_read_all(&read);
	codec_end(&written);
	free(before.by);
	free(before.after);
}

static void evicted(void **state)
{
	(void)state;
	audit_granted(&audit, TAKER);
	audit_evicted(&audit, "somebody else");
	audit_evicted(&audit, "uid 0");
	hand_over();
	audit_lost(&audit, TAKER, "held too long");
	expect_log("zklockfs: build: the lock is lost by pid 42 (a\\040b) uid 7, token 9, held for "
	           "0.0 s: evicted by uid 0; reason: deploy 42\n");
	expect_history(HISTORY_EVICTED, 0, 9, "uid 0", "deploy 42");
	audit_end(&audit, TAKER);
}

static void after_a_session_that_ended(void **state)
{
	const struct lc_ahead ahead = {.pid = 5, .host = "web", .command = "job", .reason = ""};

	(void)state;
	audit_granted(&audit, TAKER);
	audit_after(&audit, &ahead);
	expect_log("zklockfs: build: granted to pid 42 (a\\040b) uid 7 after 1.5 s, when the "
	           "session of "
	           "web, pid 5 (job), had ended; its reason: -\n");
	hand_over();
	now_us += 1000 * MS;
	audit_end(&audit, TAKER);
	expect_history(HISTORY_CLOSED, 1000, 9,
	               "granted after the session of pid 5 (job) on web had ended", "deploy 42");
}

/* What happens every day is not told; an eviction tells by whom. */
static void refused(void **state)
{
	(void)state;
	audit_refused(&audit, -EAGAIN);
	expect_log("");
	audit_evicted(&audit, "uid 0");
	audit_refused(&audit, -ECANCELED);
	expect_log("zklockfs: build: refused to pid 42 (a\\040b) uid 7 after 1.5 s: its place in "
	           "the queue was taken away by uid 0 "
	           "(ECANCELED)\n");
	log_of_mount.log_takes = true;
	audit_refused(&audit, -EAGAIN);
	expect_log("zklockfs: build: refused to pid 42 (a\\040b) uid 7 after 1.5 s: somebody else "
	           "has the lock or waits "
	           "for it (EAGAIN)\n");
	audit_end(&audit, NULL);
	assert_int_equal(holds, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(closed, begin, end),
		cmocka_unit_test_setup_teardown(never_granted, begin, end),
		cmocka_unit_test_setup_teardown(shared_and_without_the_engine, begin, end),
		cmocka_unit_test_setup_teardown(exited, begin, end),
		cmocka_unit_test_setup_teardown(stopped_by_sigterm, begin, end),
		cmocka_unit_test_setup_teardown(stopped_by_sigkill, begin, end),
		cmocka_unit_test_setup_teardown(lost, begin, end),
		cmocka_unit_test_setup_teardown(cause_of_loss, begin, end),
		cmocka_unit_test_setup_teardown(evicted, begin, end),
		cmocka_unit_test_setup_teardown(after_a_session_that_ended, begin, end),
		cmocka_unit_test_setup_teardown(refused, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
