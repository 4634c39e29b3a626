/* SPDX-License-Identifier: MIT
 *
 * Whose settings count: those of servers that have shown the mark, which the engine knows. It is
 * played by this test.
 */
#include "setup/settings.h"

#include "host/log.h"
#include "lockcore.h"
#include "unit.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ADDRESS "127.0.0.1:1"

static const struct lc_mark ours = {50, 60, 70}, foreign = {50, 60, 71}, none;
static const struct options options = {
	.root = (char *)"/locks", .session_timeout_us = 15000000, .tick_time_us = 2000000};
static bool ready, knows, woken;
static int64_t epoch;
static int64_t raised_us, limited_us;
static char logged[4096];

bool lc_ready(const struct lc *lc)
{
	(void)lc;
	return ready;
}

bool lc_woken(const struct lc *lc)
{
	(void)lc;
	return woken;
}

bool lc_knows_mark(const struct lc *lc)
{
	(void)lc;
	return knows;
}

bool lc_is_mark(const struct lc *lc, const struct lc_mark *mark)
{
	(void)lc;
	return knows && mark->czxid == ours.czxid && mark->number == ours.number;
}

struct lc_mark lc_mark_of(int64_t czxid, int64_t ctime_ms, const void *data, size_t len)
{
	(void)data;
	(void)len;
	return (struct lc_mark){czxid, ctime_ms, 0};
}

void lc_raise_tick(struct lc *lc, int64_t tick_us)
{
	(void)lc;
	raised_us = tick_us;
}

void lc_limit_session(struct lc *lc, int64_t timeout_us)
{
	(void)lc;
	limited_us = timeout_us;
}

void lc_status(struct lc *lc, struct lc_status *ret_status)
{
	(void)lc;
	*ret_status =
		(struct lc_status){.tick_time_us = 2000000, .server = ADDRESS, .epoch = epoch};
}

void log_line_of(uid_t uid, enum lc_level level, const char *format, ...)
{
	size_t len = strlen(logged);
	va_list args;

	(void)uid, (void)level;
	va_start(args, format);
	vsnprintf(logged + len, sizeof(logged) - len, format, args);
	va_end(args);
}

static void turn(struct settings *settings, int64_t now_us, bool serves)
{
	settings_process(settings, NULL, ADDRESS, now_us, POLLIN, serves);
}

static void begin(struct settings *settings)
{
	settings_init(settings, &options);
	raised_us = limited_us = 0;
	logged[0] = '\0';
	ready = knows = true;
}

/* A server says that its tick is so long, and how long sessions are at most. NULL: it shows no
 * mark. */
static void say(struct settings *settings, int64_t tick_ms, int64_t longest_ms,
                const struct lc_mark *mark)
{
	struct probe probe = {.address = ADDRESS,
	                      .has_conf = true,
	                      .tick_ms = tick_ms,
	                      .longest_ms = longest_ms,
	                      .looked = mark,
	                      .mark = mark ? *mark : none,
	                      .version = "3.4.14"};
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], &probe, sizeof(probe)), sizeof(probe));
	close(fds[1]);
	prober_stop(&settings->prober);
	settings->prober.fd = fds[0];
}

static void whose(void **state)
{
	static const struct {
		const struct lc_mark *mark;
		int64_t tick_us, limit_us;
		const char *by, *version, *log, *wrong;
	} rows[] = {
		{&ours, 3000000, 9000000, "conf", "3.4.14",
	         "has a tickTime of 3000 ms by its conf: the lease is computed from it, not from "
	         "2000",
	         "server " ADDRESS " grants no longer sessions than 9000 ms"},
		{&foreign, 2000000, INT64_MAX, "-", "",
	         "server " ADDRESS " is of another ensemble, and what it says does not count",
	         "server " ADDRESS " is of another ensemble, and what it says does not count"},
		{&none, 2000000, INT64_MAX, "-", "", "is of another ensemble",
	         "server " ADDRESS " is of another ensemble, and what it says does not count"},
		{NULL, 2000000, INT64_MAX, "-", "", "has not shown that it is of this ensemble",
	         "server " ADDRESS
	         " has not shown that it is of this ensemble, and what it says does not count"},
	};
	char wrong[512];

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct settings settings;

		begin(&settings);
		say(&settings, 3000, 9000, rows[i].mark);
		turn(&settings, 0, true);
		turn(&settings, 0, true); /* the end of the answers */
		expect(raised_us == rows[i].tick_us, "%zu", i);
		expect(limited_us == rows[i].limit_us, "%zu", i);
		expect(settings.tick_us == rows[i].tick_us, "%zu", i);
		assert_string_equal(settings_tick_by(&settings), rows[i].by);
		assert_string_equal(settings_version(&settings), rows[i].version);
		expect(strstr(logged, rows[i].log), "%zu: %s", i, logged);
		assert_string_equal(settings_wrong(&settings, wrong, sizeof(wrong)), rows[i].wrong);
		/* It is said once, and the next answers take the place of these. */
		logged[0] = '\0';
		turn(&settings, 0, true);
		assert_string_equal(logged, "");
		say(&settings, 3000, 9000, rows[i].mark);
		turn(&settings, 0, true);
		turn(&settings, 0, true);
		assert_null(strstr(logged, "the lease is computed"));
		settings.count = 0;
		assert_string_equal(settings_wrong(&settings, wrong, sizeof(wrong)), "");
		settings_finish(&settings);
	}
}

/* One server has a longer tick than another of the ensemble. What strangers have does not count. */
static void ticks_that_differ(void **state)
{
	struct settings_answer answers[3];
	struct settings settings;
	char wrong[512];

	(void)state;
	begin(&settings);
	say(&settings, 3000, 0, &ours);
	turn(&settings, 0, true);
	turn(&settings, 0, true);
	assert_int_equal(settings.count, 1);
	for (size_t i = 0; i < LENGTH(answers); i++)
		answers[i] = settings.answers[0];
	answers[1].probe.tick_ms = 2000;
	answers[2].probe.tick_ms = 1000;
	answers[2].whose = SETTINGS_FOREIGN;
	assert_string_equal(
		settings_wrong(
			&(struct settings){.options = &options, .answers = answers, .count = 3},
			wrong, sizeof(wrong)),
		"server " ADDRESS " has a tickTime of 3000 ms, and another one of 2000 ms; "
		"server " ADDRESS " is of another ensemble, and what it says does not count");
	settings_finish(&settings);
}

/* Before the first mount there is no mark: who has shown none then is asked again. */
static void the_first_mount(void **state)
{
	struct settings settings;

	(void)state;
	begin(&settings);
	ready = knows = false;
	settings.early = settings.asked = true;
	say(&settings, 3000, 40000, &none);
	turn(&settings, 0, false);
	turn(&settings, 0, false);
	assert_int_equal(raised_us, 0);
	knows = ready = true;
	turn(&settings, 1, true);
	assert_false(settings_has_heard(&settings, ADDRESS));
	assert_true(settings.prober.fd >= 0);
	say(&settings, 3000, 40000, &ours);
	turn(&settings, 2, true);
	assert_int_equal(raised_us, 3000000);
	assert_true(settings_has_heard(&settings, ADDRESS));
	assert_null(strstr(logged, "ensemble"));
	settings_finish(&settings);
}

/* They are asked within two seconds after each new connection, and in no outage. */
static void when(void **state)
{
	struct settings settings;

	(void)state;
	begin(&settings);
	turn(&settings, 0, true);
	assert_in_range(settings.ask_us, 0, 2000000);
	ready = false;
	turn(&settings, 2000000, true);
	assert_int_equal(settings.prober.fd, -1);
	ready = true;
	turn(&settings, 3000000, true);
	assert_in_range(settings.ask_us, 3000000, 5000000);
	turn(&settings, 5000000, true);
	assert_true(settings.prober.fd >= 0);
	settings_finish(&settings);
}

/* After a rest only the server in use is asked, unless there is another leader. */
static void after_a_rest(void **state)
{
	struct settings settings;

	(void)state;
	begin(&settings);
	turn(&settings, 0, true);
	settings_process(&settings, NULL, ADDRESS, 2000000, 0, true);
	for (int round = 0; round < 3; round++) {
		bool rested = round < 2, same = round == 0, one = rested && same;

		say(&settings, 2000, 40000, &ours);
		turn(&settings, 2000001, true);
		say(&settings, 2000, 40000, &ours);
		turn(&settings, 2000001, true);
		strcpy(settings.answers[0].probe.address, "127.0.0.1:2");
		ready = false;
		woken = rested;
		turn(&settings, 10000000, true);
		woken = false;
		ready = true;
		epoch += !same;
		turn(&settings, 10000000, true);
		settings_process(&settings, NULL, ADDRESS, 12000000, 0, true);
		assert_true(settings.prober.fd >= 0);
		assert_int_equal(settings.count, one);
		assert_false(settings_has_heard(&settings, ADDRESS));
		assert_true(settings_has_heard(&settings, "127.0.0.1:2") == one);
	}
	settings_finish(&settings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whose),           cmocka_unit_test(ticks_that_differ),
		cmocka_unit_test(the_first_mount), cmocka_unit_test(when),
		cmocka_unit_test(after_a_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
