/* SPDX-License-Identifier: MIT
 *
 * The limits of one session: it makes no more entries than one transaction can delete at its end,
 * and one user's takers get half of that. There is no ensemble here: all takers wait for one.
 */
#include "unit.h"

#include "port/ensemble.h"
#include "lockcore.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAKERS_MAX 20000

static int64_t now_us = 1000000000;

/* ---- a port that connects to nothing ---- */

static int port_open(struct ensemble *ensemble, int64_t timeout_us,
                     const struct ensemble_session *session, const struct ensemble_events *events,
                     void *ctx)
{
	(void)ensemble;
	(void)timeout_us;
	(void)session;
	(void)events;
	(void)ctx;
	return 0;
}

static void port_close(struct ensemble *ensemble, bool farewell)
{
	(void)ensemble;
	(void)farewell;
}

static void port_drop(struct ensemble *ensemble)
{
	(void)ensemble;
}

static void port_submit(struct ensemble *ensemble, const struct ensemble_op *ops, int count,
                        ensemble_answer_fn *answer, void *ctx)
{
	(void)ensemble;
	(void)answer;
	(void)ctx;
	fail_msg("%d operations on %s without a connection", count, ops[0].path);
}

static int64_t port_prepare(struct ensemble *ensemble, struct pollfd *ret_pollfd)
{
	(void)ensemble;
	*ret_pollfd = (struct pollfd){.fd = -1};
	return INT64_MAX;
}

static void port_process(struct ensemble *ensemble, short revents)
{
	(void)ensemble;
	(void)revents;
}

static const char *port_server(struct ensemble *ensemble)
{
	(void)ensemble;
	return "-";
}

static const struct ensemble_port port = {
	.open = port_open,
	.close = port_close,
	.rest = port_drop,
	.drop = port_drop,
	.submit = port_submit,
	.prepare = port_prepare,
	.process = port_process,
	.server = port_server,
};
static struct ensemble nowhere = {&port};

/* ---- an engine ---- */

static int64_t clock_us(void *ctx)
{
	(void)ctx;
	return now_us;
}

static void random_bytes(void *ctx, void *ret_bytes, size_t len)
{
	static uint64_t count;

	(void)ctx;
	assert_int_equal(len, sizeof(count));
	count++;
	memcpy(ret_bytes, &count, len);
}

static unsigned reports;

static void report(void *ctx, enum lc_level level, const char *text)
{
	(void)ctx;
	assert_int_equal(level, LC_WARNING);
	assert_non_null(strstr(text, "are refused"));
	reports++;
}

static void taken(void *ctx, int err)
{
	(void)ctx;
	fail_msg("taken(%d)", err);
}

static struct lc_config config_of(const char *root)
{
	return (struct lc_config){
		.root = root,
		.host = "host",
		.session_timeout_us = 15000000,
		.tick_time_us = 2000000,
		.clock_us = clock_us,
		.wall_ms = clock_us,
		.random = random_bytes,
		.report = report,
	};
}

static struct lc *begin(void)
{
	struct lc_config config = config_of("/locks");
	struct lc *lc;

	assert_int_equal(lc_create(&config, &nowhere, &lc), 0);
	return lc;
}

static void not_every_path_is_a_root(void **state)
{
	static const char *const bad[] = {"",        "/",          "l",
	                                  "locks",   "/locks/",    "/a//b",
	                                  "/a/../b", "/zookeeper", "/zookeeper/quota"};
	struct lc *lc;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct lc_config config = config_of(bad[i]);

		if (lc_create(&config, &nowhere, &lc) != -EINVAL)
			fail_msg("'%s' is a root", bad[i]);
	}
}

static int take(struct lc *lc, const char *lock, uid_t uid)
{
	struct lc_request request = {
		.lock = lock, .wait_us = LC_FOREVER, .pid = 1, .uid = uid, .command = "x"};
	struct lc_taker *taker;

	return lc_take(lc, &request, taken, NULL, NULL, &taker);
}

/* The number of takers until one is refused. */
static unsigned fill(struct lc *lc, const char *lock, uid_t uid)
{
	unsigned count = 0;
	int r = 0;

	while (count < TAKERS_MAX && (r = take(lc, lock, uid)) == 0)
		count++;
	assert_int_equal(r, -ENOLCK);
	return count;
}

static size_t weight(struct lc *lc)
{
	struct lc_status status;

	lc_status(lc, &status);
	return status.entry_bytes;
}

static void one_session_has_a_limit(void **state)
{
	struct lc *lc = begin();
	unsigned count;

	(void)state;
	reports = 0;
	count = fill(lc, "build", 0);
	/* ZOOKEEPER-4306: with 2 MiB or more the ensemble does not come up again. */
	assert_true(weight(lc) <= LC_ENTRY_BYTES_MAX);
	assert_true(weight(lc) >
	            LC_ENTRY_BYTES_MAX - 600); /* an entry, and the watches of a lock */
	assert_true(count > 9000);
	assert_int_equal(take(lc, "build", 1000), -ENOLCK);
	/* The log says it, but not for every refusal. */
	assert_int_equal(reports, 1);
	now_us += 10000000;
	assert_int_equal(take(lc, "build", 1000), -ENOLCK);
	assert_int_equal(take(lc, "build", 1000), -ENOLCK);
	assert_int_equal(reports, 2);
	now_us -= 10000000;
	lc_destroy(lc, false);
}

static void long_names_weigh_more(void **state)
{
	struct lc *lc = begin();
	char lock[LC_NAME_MAX + 1];

	(void)state;
	memset(lock, 'x', LC_NAME_MAX);
	lock[LC_NAME_MAX] = '\0';
	assert_in_range(fill(lc, lock, 0), 2500, 3500);
	assert_true(weight(lc) <= LC_ENTRY_BYTES_MAX);
	lc_destroy(lc, false);
}

static void a_user_has_half_of_it(void **state)
{
	struct lc *lc = begin();

	(void)state;
	fill(lc, "build", 1000);
	assert_in_range(weight(lc), LC_USER_BYTES_MAX - 200, LC_USER_BYTES_MAX);
	lc_destroy(lc, false);
}

static void the_last_tenth_is_roots(void **state)
{
	struct lc *lc = begin();

	(void)state;
	fill(lc, "build", 1000);
	fill(lc, "other", 1001);
	assert_in_range(weight(lc), LC_ENTRY_BYTES_MAX - LC_ROOT_BYTES - 1000,
	                LC_ENTRY_BYTES_MAX - LC_ROOT_BYTES);
	assert_int_equal(take(lc, "build", 1002), -ENOLCK);
	assert_true(fill(lc, "backup", 0) > 900);
	lc_destroy(lc, false);
}

static void root_is_left_room(void **state)
{
	struct lc *lc = begin();

	(void)state;
	fill(lc, "build", 1000);
	assert_int_equal(take(lc, "build", 0), 0);
	assert_int_equal(take(lc, "build", 1001), 0);
	lc_destroy(lc, false);
}

static void who_leaves_gives_it_back(void **state)
{
	struct lc *lc = begin();
	struct lc_request request = {
		.lock = "build", .wait_us = LC_FOREVER, .pid = 1, .uid = 1000, .command = "x"};
	struct lc_taker *taker;

	(void)state;
	assert_int_equal(lc_take(lc, &request, taken, NULL, NULL, &taker), 0);
	fill(lc, "build", 1000);
	lc_leave(taker);
	assert_int_equal(lc_take(lc, &request, taken, NULL, NULL, &taker), 0);
	assert_int_equal(lc_take(lc, &request, taken, NULL, NULL, &taker), -ENOLCK);
	lc_destroy(lc, false);
}

/* All watches go into one request when a client connects again (ZOOKEEPER-706). */
static void watches_have_a_limit(void **state)
{
	struct lc *lc = begin();
	char lock[LC_NAME_MAX + 1];
	unsigned count = 0;
	int r = 0;

	(void)state;
	while (count < TAKERS_MAX && r == 0) {
		snprintf(lock, sizeof(lock), "%0200u", count++);
		r = take(lc, lock, 0);
	}
	assert_int_equal(r, -ENOLCK);
	assert_true(weight(lc) < LC_ENTRY_BYTES_MAX - 10000);
	assert_in_range(count, 600, 900);
	lc_destroy(lc, false);
}

/* Each holder watches its entry. That watch goes into the same request as the locks' watches. */
static void watches_and_entries_have_one_limit(void **state)
{
	struct lc *lc = begin();
	char lock[LC_NAME_MAX + 1];
	size_t before;

	(void)state;
	for (unsigned i = 0; i < 400; i++) {
		snprintf(lock, sizeof(lock), "%0200u", i);
		assert_int_equal(take(lc, lock, 0), 0);
	}
	before = weight(lc);
	fill(lc, "build", 0);
	/* 400 locks of four paths of 200 bytes and more. */
	assert_true(weight(lc) > before);
	assert_true(weight(lc) < LC_ENTRY_BYTES_MAX - 400 * 4 * 200);
	lc_destroy(lc, false);
}

static void one_user_has_half_of_the_watches(void **state)
{
	struct lc *lc = begin();
	char lock[LC_NAME_MAX + 1];
	unsigned count = 0;
	int r = 0;

	(void)state;
	while (count < TAKERS_MAX && r == 0) {
		snprintf(lock, sizeof(lock), "%0200u", count++);
		r = take(lc, lock, 1000);
	}
	assert_int_equal(r, -ENOLCK);
	assert_in_range(count, 300, 450);
	assert_int_equal(take(lc, "for-others", 1001), 0);
	assert_int_equal(take(lc, "for-root", 0), 0);
	lc_destroy(lc, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(not_every_path_is_a_root),
		cmocka_unit_test(one_session_has_a_limit),
		cmocka_unit_test(long_names_weigh_more),
		cmocka_unit_test(a_user_has_half_of_it),
		cmocka_unit_test(the_last_tenth_is_roots),
		cmocka_unit_test(root_is_left_room),
		cmocka_unit_test(who_leaves_gives_it_back),
		cmocka_unit_test(watches_have_a_limit),
		cmocka_unit_test(watches_and_entries_have_one_limit),
		cmocka_unit_test(one_user_has_half_of_the_watches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
