/* SPDX-License-Identifier: MIT
 *
 * Whose settings are believed: those of servers that are asked while there is contact, and at the
 * start. The engine is played by this test.
 */
#include "setup/settings.h"

#include "host/log.h"
#include "lockcore.h"
#include "unit.h"

#include <unistd.h>

static bool ready;
static int64_t raised_us;

bool lc_ready(const struct lc *lc)
{
	(void)lc;
	return ready;
}

void lc_raise_tick(struct lc *lc, int64_t tick_us)
{
	(void)lc;
	raised_us = tick_us;
}

void lc_status(struct lc *lc, struct lc_status *ret_status)
{
	(void)lc;
	*ret_status = (struct lc_status){.tick_time_us = 2000000};
}

void log_line(enum lc_level level, const char *format, ...)
{
	(void)level;
	(void)format;
}

static void turn(struct settings *settings, int64_t now_us, bool serves)
{
	settings_process(settings, NULL, "127.0.0.1:1", now_us, POLLIN, serves);
}

/* A server says that its tick is so long. */
static void say(struct settings *settings, int64_t tick_ms)
{
	struct probe probe = {.address = "127.0.0.1:1", .has_conf = true, .tick_ms = tick_ms};
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
		bool ready, serves;
		int64_t heard_us;
	} rows[] = {
		{false, false, 3000000}, /* the start: there is nobody else */
		{true, true, 3000000},
		{false, true, 2000000},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct settings settings;

		settings_init(&settings, 2000000, false);
		raised_us = 2000000;
		ready = rows[i].ready;
		say(&settings, 3000);
		turn(&settings, 0, rows[i].serves);
		expect(raised_us == rows[i].heard_us, "%zu", i);
		expect(settings.tick_us == rows[i].heard_us, "%zu", i);
		settings_finish(&settings);
	}
}

/* They are asked within two seconds after each new connection, and in no outage. */
static void when(void **state)
{
	struct settings settings;

	(void)state;
	settings_init(&settings, 2000000, false);
	ready = true;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whose),
		cmocka_unit_test(when),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
