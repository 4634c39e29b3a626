/* SPDX-License-Identifier: MIT
 *
 * The log: the number of lines is limited, dropped lines are reported, warnings and errors have
 * their own room, no call waits for a reader, and one message is one line.
 */
#include "host/counts.h"
#include "host/log.h"

#include "captured.h"
#include "pure/codec.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static time_t now_s;
static char text[256 * 1024];

/* In place of libc's function: only the log's clock stands still. */
int clock_gettime(clockid_t id, struct timespec *ret)
{
	if (id != CLOCK_MONOTONIC_COARSE)
		return (int)syscall(SYS_clock_gettime, id, ret);
	*ret = (struct timespec){.tv_sec = now_s};
	return 0;
}

/* Each test has windows of its own. */
static int begin(void **state)
{
	(void)state;
	now_s += 10 * LOG_WINDOW_S;
	return capture_begin();
}

static int end(void **state)
{
	(void)state;
	capture_end();
	log_level(LC_NOTICE);
	return 0;
}

/* Reads into `text` what was written since the last call. Returns the number of lines. */
static unsigned lines(void)
{
	unsigned count = 0;
	size_t len = 0;
	ssize_t n;

	while (len < sizeof(text) - 1 && (n = read(reader, text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	for (char *c = text; *c; c++)
		count += *c == '\n';
	return count;
}

static void say(unsigned count, enum lc_level level)
{
	for (unsigned i = 0; i < count; i++)
		log_line(level, "line %u", i);
}

static void a_burst_is_cut(void **state)
{
	(void)state;
	say(LOG_BURST + 1000, LC_NOTICE);
	assert_int_equal(lines(), LOG_BURST);
	assert_ptr_equal(strstr(text, "zklockfs: line 0\nzklockfs: line 1\n"), text);
	now_s += LOG_WINDOW_S - 1;
	say(3, LC_NOTICE);
	assert_int_equal(lines(), 0);
	now_s += 1;
	log_line(LC_NOTICE, "again");
	assert_int_equal(lines(), 2);
	assert_string_equal(text, "zklockfs: 1003 lines were not written\nzklockfs: again\n");
	/* Dropped lines are reported once. */
	now_s += LOG_WINDOW_S;
	log_line(LC_NOTICE, "later");
	assert_int_equal(lines(), 1);
	assert_string_equal(text, "zklockfs: later\n");
}

/* Lines that users can cause at will hide no warning, and warnings hide no error. */
static void each_level_has_its_own_room(void **state)
{
	(void)state;
	say(LOG_BURST + 1, LC_NOTICE);
	assert_int_equal(lines(), LOG_BURST);
	log_line(LC_WARNING, "lost");
	assert_int_equal(lines(), 1);
	assert_string_equal(text, "zklockfs: lost\n");
	say(LOG_BURST, LC_WARNING);
	assert_int_equal(lines(), LOG_BURST - 1);
	log_line(LC_ERROR, "gone");
	assert_int_equal(lines(), 1);
	assert_string_equal(text, "zklockfs: gone\n");
	now_s += LOG_WINDOW_S;
	log_line(LC_NOTICE, "x");
	log_line(LC_WARNING, "y");
	log_line(LC_ERROR, "z");
	assert_int_equal(lines(), 5);
	assert_string_equal(text, "zklockfs: 1 line was not written\nzklockfs: x\n"
	                          "zklockfs: 1 line was not written\nzklockfs: y\nzklockfs: z\n");
}

static void say_of(uid_t uid, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		log_line_of(uid, LC_WARNING, "lost by %u", (unsigned)uid);
}

/* Nobody's noise hides what is said of another. */
static void each_user_has_room(void **state)
{
	(void)state;
	say_of(1000, LOG_BURST + 10);
	assert_int_equal(lines(), LOG_BURST);
	say_of(0, 1);
	say_of(1001, 1);
	say(1, LC_WARNING);
	assert_int_equal(lines(), 3);
	assert_string_equal(text,
	                    "zklockfs: lost by 0\nzklockfs: lost by 1001\nzklockfs: line 0\n");
	now_s += LOG_WINDOW_S;
	log_tend();
	assert_int_equal(lines(), 1);
	assert_string_equal(text, "zklockfs: 10 lines about uid 1000 were not written\n");
	/* Very many users have room together, and none of root's. */
	for (uid_t uid = 2000; uid < 2000 + LOG_USERS + 10 * LOG_BURST; uid++)
		say_of(uid, 1);
	assert_int_equal(lines(), LOG_USERS - 1 + LOG_BURST);
	say_of(0, 1);
	say_of(2000, 1);
	assert_int_equal(lines(), 2);
	now_s += LOG_WINDOW_S;
	log_tend();
	assert_int_equal(lines(), 1); /* those of many users are told in one line */
	say_of(5000, LOG_BURST);
	assert_int_equal(lines(), LOG_BURST);
}

static void what_is_not_wanted_takes_no_room(void **state)
{
	(void)state;
	say(2 * LOG_BURST, LC_INFO);
	assert_int_equal(lines(), 0);
	say(LOG_BURST, LC_NOTICE);
	assert_int_equal(lines(), LOG_BURST);
	now_s += LOG_WINDOW_S;
	log_level(LC_INFO);
	say(1, LC_INFO);
	assert_int_equal(lines(), 1);
}

/* A line that the full pipe cannot take is dropped, and reported later; no call waits. */
static void a_full_pipe_is_not_waited_for(void **state)
{
	static const char much[4096];
	int saved = errno;

	(void)state;
	fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
	while (write(STDERR_FILENO, much, sizeof(much)) > 0)
		;
	fcntl(STDERR_FILENO, F_SETFL, 0);
	alarm(200);
	errno = EDOM;
	say(10, LC_WARNING);
	assert_int_equal(errno, EDOM);
	errno = saved;
	alarm(0);
	assert_int_equal(lines(), 0);
	now_s += LOG_WINDOW_S;
	log_line(LC_WARNING, "again");
	assert_int_equal(lines(), 2);
	assert_string_equal(text, "zklockfs: 10 lines were not written\nzklockfs: again\n");
	close(reader);
	reader = -1;
	signal(SIGPIPE, SIG_DFL); /* SIGPIPE would kill */
	log_line(LC_WARNING, "nobody reads");
}

/* By itself, and not because it used too much of the processor. */
static void expect_child_ends(void)
{
	int status;

	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
}

/* The log's child waits for the pipe, and nobody for the child: after a second its lines are given
 * up. */
static void the_child_waits_alone(void **state)
{
	static const char much[4096];

	(void)state;
	log_to_child();
	say(3, LC_WARNING);
	log_finish();
	assert_int_equal(lines(), 3);
	expect_child_ends();

	fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
	while (write(STDERR_FILENO, much, sizeof(much)) > 0)
		;
	fcntl(STDERR_FILENO, F_SETFL, 0);
	alarm(200);
	log_to_child();
	say(30, LC_WARNING);
	log_finish();
	alarm(0);
	close(reader);
	reader = -1;
	expect_child_ends(); /* though nobody reads */
}

/* Lines that the log's child cannot write are counted. */
static void the_child_cannot_write(void **state)
{
	unsigned long before = counted.log_lines_not_written;
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	dup2(full, STDERR_FILENO);
	close(full);
	log_to_child();
	say(3, LC_WARNING);
	log_finish();
	expect_child_ends();
	assert_int_equal(counted.log_lines_not_written, before + 3);
}

/* The log's child may come after its first lines, and from other processes: a guardian's. */
static void others_write_by_the_child(void **state)
{
	pid_t child;

	(void)state;
	log_prepare_child();
	child = fork();
	if (child == 0) {
		log_in_guardian();
		log_line(LC_WARNING, "of a guardian");
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(lines(), 0);
	log_to_child();
	assert_false(log_reap(getpid()));
	log_finish();
	assert_int_equal(lines(), 1);
	assert_string_equal(text, "zklockfs: of a guardian\n");
	expect_child_ends();
}

static void exit_after(unsigned count)
{
	say(count, LC_WARNING);
	_exit(0);
}

/* The guardian and its children have one limit together. */
static void a_guardian_and_its_children_share_a_limit(void **state)
{
	(void)state;
	log_prepare_child();
	if (fork() == 0) {
		log_in_guardian();
		for (int i = 0; i < 3; i++) {
			if (fork() == 0)
				exit_after(LOG_BURST / 2);
			(void)wait(NULL);
		}
		exit_after(LOG_BURST);
	}
	expect_child_ends();
	log_to_child();
	log_finish();
	assert_int_equal(lines(), LOG_BURST);
	expect_child_ends();
}

/* Lines that there was no room for are told when there is some, though no other line comes. */
static void dropped_lines_are_told_without_another(void **state)
{
	unsigned long before = counted.log_lines_not_written;

	(void)state;
	assert_true(log_has_room(LOG_NOBODY, LC_WARNING)); /* and takes none */
	say(LOG_BURST + 6, LC_WARNING);
	assert_false(log_has_room(LOG_NOBODY, LC_WARNING)); /* which counts as a line */
	assert_int_equal(lines(), LOG_BURST);
	assert_int_equal(counted.log_lines_not_written, before + 7);
	log_tend();
	assert_int_equal(lines(), 0);
	now_s += LOG_WINDOW_S;
	log_tend();
	assert_int_equal(lines(), 1);
	assert_string_equal(text, "zklockfs: 7 lines were not written\n");
	now_s += LOG_WINDOW_S;
	log_tend();
	assert_int_equal(lines(), 0);
}

static void one_message_is_one_line(void **state)
{
	char name[4000];

	(void)state;
	log_line(LC_NOTICE, "%s",
	         "two\nlines\r\x7f\x1b[31m\xc2\x9b"
	         "31m\xc3\x9b");
	assert_int_equal(lines(), 1);
	assert_string_equal(text, "zklockfs: two?lines???[31m?"
	                          "31m\xc3\x9b\n");
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	log_line(LC_NOTICE, "%s", name);
	assert_int_equal(lines(), 1);
	assert_in_range(strlen(text), 2000, 2100);
}

/* Each line does, also where the journal reads stderr, and wants a priority in front. */
static void each_line_names_the_mount(void **state)
{
	char stream[64];
	struct stat st;

	(void)state;
	log_about("/mnt/locks");
	log_line(LC_WARNING, "a line");
	log_wanted("another %d", 42);
	assert_int_equal(lines(), 2);
	assert_string_equal(text,
	                    "zklockfs: /mnt/locks: a line\nzklockfs: /mnt/locks: another 42\n");

	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
	         (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	log_about("/mnt/locks");
	log_line(LC_WARNING, "a line");
	log_line(LC_ERROR, "another");
	assert_int_equal(lines(), 2);
	assert_string_equal(text, "<4>/mnt/locks: a line\n<3>/mnt/locks: another\n");

	setenv("JOURNAL_STREAM", "1:1", 1); /* inherited, of another stderr */
	log_about(NULL);
	log_line(LC_WARNING, "a line");
	assert_int_equal(lines(), 1);
	assert_string_equal(text, "zklockfs: a line\n");
}

static void records_have_no_limit(void **state)
{
	(void)state;
	for (int i = 0; i < 5 * LOG_BURST; i++)
		log_wanted("line %d", i);
	assert_int_equal(lines(), 5 * LOG_BURST);
	log_line(LC_NOTICE, "one more");
	assert_int_equal(lines(), 1);
}

/* What log_save_load() writes of where lines go now. */
static size_t carried(unsigned char *ret_bytes, size_t size)
{
	struct codec codec = {0};
	size_t len;

	codec_begin(&codec);
	log_save_load(&codec);
	len = codec.len;
	assert_in_range(len, 1, size);
	memcpy(ret_bytes, codec.data, len);
	codec_end(&codec);
	return len;
}

static void the_next_daemon_writes_to_the_same_place(void **state)
{
	unsigned char before[256], after[256], again[256];
	struct codec codec = {.loads = true, .checks = true};
	size_t len = carried(before, sizeof(before));

	(void)state;
	log_to_syslog(false);
	assert_int_equal(carried(after, sizeof(after)), len);
	assert_memory_not_equal(before, after, len);
	codec_read(&codec, before, len);
	log_save_load(&codec);
	codec_read_all(&codec);
	assert_int_equal(carried(again, sizeof(again)), len);
	assert_memory_equal(again, before, len);
	log_line(LC_WARNING, "a line");
	assert_true(lines() > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_burst_is_cut, begin, end),
		cmocka_unit_test_setup_teardown(each_level_has_its_own_room, begin, end),
		cmocka_unit_test_setup_teardown(what_is_not_wanted_takes_no_room, begin, end),
		cmocka_unit_test_setup_teardown(each_user_has_room, begin, end),
		cmocka_unit_test_setup_teardown(the_child_waits_alone, begin, end),
		cmocka_unit_test_setup_teardown(the_child_cannot_write, begin, end),
		cmocka_unit_test_setup_teardown(others_write_by_the_child, begin, end),
		cmocka_unit_test_setup_teardown(a_guardian_and_its_children_share_a_limit, begin,
	                                        end),
		cmocka_unit_test_setup_teardown(dropped_lines_are_told_without_another, begin, end),
		cmocka_unit_test_setup_teardown(each_line_names_the_mount, begin, end),
		cmocka_unit_test_setup_teardown(records_have_no_limit, begin, end),
		cmocka_unit_test_setup_teardown(a_full_pipe_is_not_waited_for, begin, end),
		cmocka_unit_test_setup_teardown(one_message_is_one_line, begin, end),
		cmocka_unit_test_setup_teardown(the_next_daemon_writes_to_the_same_place, begin,
	                                        end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
