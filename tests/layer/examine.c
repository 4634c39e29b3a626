/* SPDX-License-Identifier: MIT
 *
 * Would a mount work? What is asked of an ensemble, and what each answer means. The port is the
 * test's own, which keeps the last request.
 */
#include "port/ensemble.h"
#include "lockcore.h"
#include "unit.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

struct asked {
	struct ensemble ensemble; /* first */
	const struct ensemble_events *events;
	void *ctx;
	char sent[256]; /* since the last answer; "": nothing */
	ensemble_answer_fn *answer;
	void *answer_ctx;
	int64_t now_us;
	int closed, errors;
};

static int port_open(struct ensemble *ensemble, int64_t timeout_us,
                     const struct ensemble_session *session, const struct ensemble_events *events,
                     void *ctx)
{
	struct asked *asked = (struct asked *)ensemble;

	assert_int_equal(timeout_us, 15000000);
	assert_null(session);
	asked->events = events;
	asked->ctx = ctx;
	return 0;
}

static void port_close(struct ensemble *ensemble, bool end_session)
{
	assert_true(end_session);
	((struct asked *)ensemble)->closed++;
}

static void port_submit(struct ensemble *ensemble, const struct ensemble_op *ops, int count,
                        ensemble_answer_fn *answer, void *ctx)
{
	struct asked *asked = (struct asked *)ensemble;

	assert_string_equal(asked->sent, "");
	if (count == 1) {
		assert_int_equal(ops[0].kind, ENSEMBLE_GET);
		snprintf(asked->sent, sizeof(asked->sent), "get %s", ops[0].path);
	} else {
		/* It must not be possible that all of it happens. */
		assert_int_equal(count, 2);
		assert_int_equal(ops[0].kind, ENSEMBLE_CREATE);
		assert_true(ops[0].ephemeral);
		assert_int_equal(ops[1].kind, ENSEMBLE_CHECK);
		assert_int_equal(ops[1].version, INT_MAX);
		snprintf(asked->sent, sizeof(asked->sent), "create %s, check %s", ops[0].path,
		         ops[1].path);
	}
	asked->answer = answer;
	asked->answer_ctx = ctx;
}

static void port_flush(struct ensemble *ensemble)
{
	(void)ensemble;
}

static void port_process(struct ensemble *ensemble, short revents)
{
	(void)ensemble;
	(void)revents;
}

static const char *port_server(struct ensemble *ensemble)
{
	(void)ensemble;
	return "10.0.0.1:2181";
}

static int64_t clock_us(void *ctx)
{
	return ((struct asked *)ctx)->now_us;
}

static const struct ensemble_port port = {
	.open = port_open,
	.close = port_close,
	.submit = port_submit,
	.flush = port_flush,
	.process = port_process,
	.server = port_server,
};

static struct lc_config config_of(struct asked *asked)
{
	return (struct lc_config){.root = "/locks",
	                          .session_timeout_us = 15000000,
	                          .tick_time_us = 2000000,
	                          .clock_us = clock_us,
	                          .ctx = asked};
}

static void answer(struct asked *asked, struct lc_examine *examine, enum ensemble_result result,
                   const char *next)
{
	struct ensemble_answer given = {.result = result, .why = "over a quota"};

	asked->sent[0] = '\0';
	asked->now_us += 3000;
	asked->answer(asked->answer_ctx, &given);
	(void)lc_examine_process(examine, 0);
	assert_string_equal(asked->sent, next);
}

#define WRITE_BELOW "create /locks/.zklockfs/examined, check /locks"
#define WRITE_ABOVE "create /locks/examined, check /locks"

/* Connected, with that answer to whether the mounts' directory is there. */
static struct lc_examine *begin(struct asked *asked, const struct lc_config *config,
                                enum ensemble_result dir)
{
	struct lc_examine *examine;

	*asked = (struct asked){.ensemble.port = &port, .now_us = 1000};
	assert_int_equal(lc_examine(config, &asked->ensemble, &examine), 0);
	assert_false(lc_examine_process(examine, 0)->done);
	assert_string_equal(asked->sent, "");
	asked->events->connected(asked->ctx, &(struct ensemble_session){.id = 7}, 12000000, 1000);
	(void)lc_examine_process(examine, 0);
	assert_string_equal(asked->sent, "get /locks/.zklockfs");
	answer(asked, examine, dir, dir == ENSEMBLE_NONODE ? WRITE_ABOVE : WRITE_BELOW);
	return examine;
}

static void all_is_right(void **state)
{
	static const enum ensemble_result dirs[] = {ENSEMBLE_OK, ENSEMBLE_NONODE, ENSEMBLE_NOAUTH};
	struct asked asked;
	struct lc_config config = config_of(&asked);

	(void)state;
	for (size_t i = 0; i < LENGTH(dirs); i++) {
		struct lc_examine *examine = begin(&asked, &config, dirs[i]);
		const char *again = dirs[i] == ENSEMBLE_NONODE ? WRITE_ABOVE : WRITE_BELOW;
		const struct lc_examination *result = lc_examine_process(examine, 0);

		for (unsigned n = 1; n < LC_EXAMINE_WRITES; n++) {
			answer(&asked, examine, ENSEMBLE_BADVERSION, again);
			assert_false(result->done);
			assert_int_equal(result->writes, n);
			assert_int_equal(result->write_us[n - 1], 3000);
		}
		answer(&asked, examine, ENSEMBLE_BADVERSION, "");
		assert_true(result->done);
		assert_int_equal(result->err, 0);
		assert_string_equal(result->server, "10.0.0.1:2181");
		assert_int_equal(result->session_timeout_us, 12000000);
		assert_false(result->too_short);
		lc_examine_end(examine);
		assert_int_equal(asked.closed, 1);
	}
}

static void what_is_wrong(void **state)
{
	static const struct {
		enum ensemble_result result;
		int err;
	} rows[] = {
		{ENSEMBLE_NONODE, -ENOENT}, {ENSEMBLE_NOCHILDREN, -ENOTDIR},
		{ENSEMBLE_NOAUTH, -EACCES}, {ENSEMBLE_REFUSED, -EIO},
		{ENSEMBLE_INVALID, -EIO},   {ENSEMBLE_OK, -EIO},
	};
	struct asked asked;
	struct lc_config config = config_of(&asked);

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct lc_examine *examine = begin(&asked, &config, ENSEMBLE_OK);
		const struct lc_examination *result = lc_examine_process(examine, 0);

		answer(&asked, examine, rows[i].result, "");
		assert_true(result->done);
		assert_int_equal(result->err, rows[i].err);
		assert_string_equal(result->why,
		                    rows[i].result == ENSEMBLE_REFUSED ? "over a quota" : "");
		lc_examine_end(examine);
	}
}

/* The answer is lost: the same again, on the next connection. */
static void connection_lost(void **state)
{
	struct asked asked;
	struct lc_config config = config_of(&asked);
	struct lc_examine *examine = begin(&asked, &config, ENSEMBLE_OK);
	const struct lc_examination *result = lc_examine_process(examine, 0);

	(void)state;
	asked.events->disconnected(asked.ctx);
	answer(&asked, examine, ENSEMBLE_UNKNOWN, "");
	assert_false(result->done);
	asked.events->connected(asked.ctx, &(struct ensemble_session){.id = 7}, 12000000, 2000);
	(void)lc_examine_process(examine, 0);
	assert_string_equal(asked.sent, WRITE_BELOW);
	answer(&asked, examine, ENSEMBLE_BADVERSION, WRITE_BELOW);
	assert_int_equal(result->writes, 1);
	asked.events->ended(asked.ctx, true);
	assert_true(result->done);
	assert_int_equal(result->err, -EKEYREJECTED);
	lc_examine_end(examine);
	assert_int_equal(asked.closed, 1);
}

static void count_errors(void *ctx, enum lc_level level, const char *text)
{
	assert_int_equal(level, LC_ERROR);
	assert_string_equal(text, "the ensemble grants a session of 12000 ms; with a tick of 8000 "
	                          "ms the lease needs 16000 ms at least");
	((struct asked *)ctx)->errors++;
}

/* As a start says it. The root is examined all the same. */
static void short_session(void **state)
{
	struct asked asked;
	struct lc_config config = config_of(&asked);
	struct lc_examine *examine;

	(void)state;
	config.tick_time_us = 8000000;
	config.report = count_errors;
	examine = begin(&asked, &config, ENSEMBLE_OK);
	assert_true(lc_examine_process(examine, 0)->too_short);
	assert_int_equal(asked.errors, 1);
	lc_examine_end(examine);
}

static void bad_roots(void **state)
{
	static const char *const roots[] = {"/",   "locks", "//locks",
	                                    "/a/", "/../x", "/zookeeper/x"};
	struct asked asked = {.ensemble.port = &port};
	struct lc_config config = config_of(&asked);
	struct lc_examine *examine = NULL;

	(void)state;
	for (size_t i = 0; i < LENGTH(roots); i++) {
		config.root = roots[i];
		assert_int_equal(lc_examine(&config, &asked.ensemble, &examine), -EINVAL);
		assert_null(examine);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_is_right),    cmocka_unit_test(what_is_wrong),
		cmocka_unit_test(connection_lost), cmocka_unit_test(short_session),
		cmocka_unit_test(bad_roots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
