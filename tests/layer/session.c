/* SPDX-License-Identifier: MIT
 *
 * The session: how it begins, goes on with another connection, and ends; and its callbacks.
 * Its heartbeats and its lease are in session_lease.c.
 */
#include "rig.h"

#include <errno.h>

#define DIR RIG_DIR
#define NODE RIG_NODE
#define FOUND "sync " DIR ", get " DIR
#define MADE "create ephemeral " NODE " ''"

static int set_up(void **state)
{
	*state = rig_begin();
	return 0;
}

static int set_up_ready(void **state)
{
	*state = rig_begin_ready();
	return 0;
}

static int tear_down(void **state)
{
	rig_finish(*state);
	return 0;
}

/* ---- beginning ---- */

static void begins(void **state)
{
	struct rig *rig = *state;

	rig_expect_sent(rig, "open 15 s");
	rig_expect_told(rig, "");
	assert_int_equal(rig->session.away_us, rig->now_us);
	rig_connect(rig, RIG_SESSION);
	rig_expect_told(rig, "");
	rig_expect_sent(rig, FOUND);
	rig_find_home(rig);
	rig_expect_sent(rig, MADE);
	assert_false(lc_ready(&rig->lc));
	assert_false(session_lease_is_valid(&rig->lc));
	rig_answer_version(rig, 0);
	rig_expect_told(rig, "alive, over, beaten resumed"); /* there was no lease */
	rig_expect_reported(rig, "session 0x7 begun at server:2181");
	assert_true(lc_ready(&rig->lc));
	assert_true(session_may_grant(&rig->lc));
	rig_expect_sent(rig, "");
}

/* A server accepts the connection and then says nothing. */
static void no_server_answers(void **state)
{
	struct rig *rig = *state;

	rig_forget(rig);
	rig_expect_sent_after(rig, 3 * SECOND, "drop");
}

static void makes_its_directory(void **state)
{
	struct rig *rig = *state;

	rig_connect(rig, RIG_SESSION);
	rig_forget(rig);
	rig_find_nothing(rig);
	rig_expect_sent(rig, "create " DIR " '0000000000000002'");
	rig_answer_created(rig, DIR, 50);
	rig_expect_sent(rig, FOUND);
	rig_find_home(rig);
	rig_expect_sent(rig, MADE);
	rig_expect_told(rig, "");
	rig_answer_version(rig, 0);
	assert_true(lc_ready(&rig->lc));
}

/* Another mount was quicker. */
static void finds_its_directory(void **state)
{
	struct rig *rig = *state;

	rig_connect(rig, RIG_SESSION);
	rig_find_nothing(rig);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_EXISTS);
	rig_expect_sent(rig, FOUND);
	rig_find_home(rig);
	rig_expect_sent(rig, MADE);
	rig_expect_told(rig, "");
}

static void makes_its_root(void **state)
{
	struct rig *rig = *state;

	rig->lc.config.make_root = true;
	rig_connect(rig, RIG_SESSION);
	rig_forget(rig);
	rig_find_nothing(rig);
	rig_expect_sent(rig, "create /locks '', create " DIR " '0000000000000002'");
	rig_answer_error(rig, ENSEMBLE_EXISTS);
	rig_answer_created(rig, DIR, 50);
	rig_expect_sent(rig, FOUND);
	rig_find_home(rig);
	rig_expect_sent(rig, MADE);
}

static void no_root(void **state)
{
	static const struct {
		enum ensemble_result result;
		const char *told;
	} rows[] = {
		{ENSEMBLE_NONODE, "unusable ENOENT"},
		{ENSEMBLE_NOCHILDREN, "unusable ENOTDIR"},
		{ENSEMBLE_NOAUTH, "unusable EACCES"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct rig *rig = rig_begin();

		rig_connect(rig, RIG_SESSION);
		rig_find_nothing(rig);
		rig_forget(rig);
		rig->now_us += 4 * SECOND; /* the heartbeat has waited for too long, as well */
		rig_answer_error(rig, rows[i].result);
		rig_expect_told(rig, rows[i].told);
		assert_int_equal(rig->session.state, LC_UNUSABLE);
		/* A session that is of no use is not kept alive. */
		rig_expect_sent(rig, "");
		rig_run(rig, 0);
		rig_expect_sent(rig, "close");
		rig_expect_told(rig, "ended");
		rig_run(rig, 60 * SECOND);
		rig_expect_sent(rig, "");
		rig_finish(rig);
	}
}

static void no_right_to_write(void **state)
{
	struct rig *rig = *state;

	rig_connect(rig, RIG_SESSION);
	rig_find_home(rig);
	rig_forget(rig);
	rig->now_us += 4 * SECOND;
	rig_answer_error(rig, ENSEMBLE_NOAUTH);
	rig_expect_told(rig, "unusable EACCES");
	rig_run(rig, 0);
	rig_expect_sent(rig, "close");
}

static void no_right_to_read(void **state)
{
	struct rig *rig = *state;

	rig_connect(rig, RIG_SESSION);
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_NOAUTH);
	rig_expect_told(rig, "unusable EACCES");
	rig_run(rig, 0);
	rig_expect_sent(rig, "close");
}

static void credentials_refused(void **state)
{
	struct rig *rig = *state;

	rig_end_session(rig, true);
	rig_expect_told(rig, "ended, unusable EKEYREJECTED");
	rig_forget(rig);
	rig_run(rig, 60 * SECOND);
	rig_expect_sent(rig, "");
}

/* The directory or the heartbeat is refused for another reason: tried again after a second. */
static void refused_for_a_while(void **state)
{
	struct rig *rig = *state;

	rig_connect(rig, RIG_SESSION);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_answer_error(rig, ENSEMBLE_REFUSED);
	rig_expect_reported(rig, "the ensemble refuses to show " DIR);
	rig_run(rig, SECOND - 1);
	rig_expect_sent(rig, "");
	rig_run(rig, 1);
	rig_expect_sent(rig, FOUND);
	rig_find_nothing(rig);
	rig_forget(rig);
	rig_answer(rig,
	           &(struct ensemble_answer){.result = ENSEMBLE_REFUSED, .why = "a quota is full"});
	rig_expect_reported(rig, "cannot make " DIR ": a quota is full");
	rig_run(rig, SECOND - 1);
	rig_expect_sent(rig, "");
	rig_run(rig, 1);
	rig_expect_sent(rig, FOUND);
	rig_find_home(rig);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_REFUSED);
	rig_expect_reported(rig, "the ensemble refuses heartbeats below " DIR
	                         ": for a reason of its own");
	rig_run(rig, SECOND - 1);
	rig_expect_sent(rig, "");
	rig_run(rig, 1);
	rig_expect_sent(rig, MADE);
}

static void too_short(void **state)
{
	struct rig *rig = *state;

	rig_accept(rig, RIG_SESSION, 4 * SECOND);
	rig_expect_told(rig, "unusable ERANGE");
	rig_expect_reported(rig, "the ensemble grants a session of 4000 ms; with a tick of 2000 ms "
	                         "the lease needs 5000 ms at least");
	rig_expect_sent(rig, "open 15 s");
}

static void cannot_be_opened(void **state)
{
	struct rig *rig = *state;

	rig_end_session(rig, false);
	rig->open_result = -EMFILE;
	rig_forget(rig);
	rig_run(rig, 3 * SECOND); /* the session that could be opened finds no server */
	rig_expect_sent(rig, "drop");
	rig_end_session(rig, false);
	rig_expect_sent(rig, "open 15 s");
	rig_expect_reported(rig, "cannot begin a session: Too many open files");
	rig_run(rig, SECOND - 1);
	rig_expect_sent(rig, "");
	rig->open_result = 0;
	rig_run(rig, 1);
	rig_expect_sent(rig, "open 15 s");
}

/* ---- connections ---- */

static void goes_on(void **state)
{
	struct rig *rig = *state;
	unsigned long connections = rig->session.connections;

	rig->now_us += SECOND;
	rig_disconnect(rig);
	rig_expect_told(rig, "disconnected");
	rig_expect_reported(rig, "connection lost, lease left: 13670 ms");
	assert_int_equal(rig->session.state, LC_SUSPENDED);
	assert_false(rig->session.beat.timer.armed);
	assert_int_equal(rig->session.away_us, rig->now_us);
	assert_true(session_lease_is_valid(&rig->lc));
	assert_false(session_may_grant(&rig->lc));
	rig_connect(rig, RIG_SESSION);
	rig_expect_told(rig, ""); /* the session is the same */
	assert_int_equal(rig->session.connections, connections + 1);
	rig_expect_sent(rig, "set " NODE " ''");
	assert_false(lc_ready(&rig->lc));
	rig_answer_version(rig, 1);
	rig_expect_told(rig, "alive, beaten resumed");
	rig_expect_reported(rig, "session 0x7 resumed at server:2181");
}

/* A server that does not accept the connection is given up after a fifth of the timeout that was
 * asked for. */
static void next_server(void **state)
{
	struct rig *rig = *state;

	rig_disconnect(rig);
	rig_forget(rig);
	rig_expect_sent_after(rig, 3 * SECOND, "drop");
	rig_run(rig, 3 * SECOND);
	rig_expect_sent(rig, "drop");
	rig_connect(rig, RIG_SESSION);
	rig_forget(rig);
	rig_answer_version(rig, 1);
	rig_answer_version(rig, 2);
	rig_forget(rig);
	rig_run(rig, 2 * SECOND);
	rig_expect_sent(rig, "");
}

/* ---- the end ---- */

static int64_t told_deadline_us;

static void deadline(void *ctx, int64_t deadline_us)
{
	(void)ctx;
	told_deadline_us = deadline_us;
}

static void ended(void **state)
{
	struct rig *rig = *state;

	rig->lc.config.deadline = deadline;
	rig->now_us += SECOND;
	rig_end_session(rig, false);
	assert_int_equal(rig->session.away_us, rig->now_us);
	rig_expect_told(rig, "ended");
	rig_expect_reported(rig, "session ended, beginning a new one");
	rig_expect_sent(rig, "open 15 s");
	rig_run(rig, 2500 * MS); /* no more heartbeats */
	rig_expect_sent(rig, "");
	assert_false(rig->session.beat.timer.armed);
	assert_int_equal(rig->session.state, LC_CONNECTING);
	assert_int_equal(told_deadline_us, INT64_MIN);
	assert_false(session_lease_is_valid(&rig->lc));
	rig_connect(rig, RIG_SESSION + 1);
	rig_expect_told(rig, "");
	assert_int_equal(rig->session.sessions, 2);
	rig_expect_sent(rig, FOUND);
	rig_find_home(rig);
	/* Another node, named by the new session's random half. */
	rig_expect_sent(rig, "create ephemeral " DIR "/0000000000000002 ''");
}

/* An engine that is being destroyed begins no new session. */
static void ended_while_dying(void **state)
{
	struct rig *rig = *state;

	rig->lc.dying = true;
	rig_end_session(rig, false);
	rig_expect_told(rig, "ended");
	rig_expect_sent(rig, "");
}

static void finished(void **state)
{
	struct rig *rig = *state;

	heartbeat_send(&rig->lc);
	rig_forget(rig);
	session_finish(&rig->lc, true);
	rig_expect_sent(rig, "close, farewell");
	rig_expect_told(rig, "ended");
	assert_null(rig->lc.timers.first);
	assert_null(rig->unanswered);
	rig_doubt(rig); /* no connection is left that could be dropped */
	rig_expect_sent(rig, "");
}

static void note_answer(void *ctx, const struct ensemble_answer *answer)
{
	*(enum ensemble_result *)ctx = answer->result;
}

/* What is asked without a session has its answer before the engine is gone. */
static void finished_without_a_session(void **state)
{
	const struct ensemble_op op = ensemble_sync("/locks");
	enum ensemble_result result = ENSEMBLE_OK;
	struct rig *rig = *state;

	rig_end_session(rig, true); /* it may live on elsewhere: the mount rests */
	assert_int_equal(rig->session.link, LINK_CLOSED);
	rig->lc.ensemble->port->submit(rig->lc.ensemble, &op, 1, note_answer, &result);
	session_finish(&rig->lc, false);
	assert_int_equal(result, ENSEMBLE_GONE);
}

/* ---- from one process to the next ---- */

/* What the next process makes of the record. */
static void expect_recorded(struct rig *rig, enum lc_state state, bool made, int64_t away_us)
{
	struct codec codec = {0}, reads = {.loads = true};
	struct session session = rig->session;

	session_save_load(&codec, &rig->lc);
	codec_read(&reads, codec.data, codec.len);
	session_save_load(&reads, &rig->lc);
	codec_read_all(&reads);
	assert_null(reads.bad);
	assert_int_equal(rig->session.state, state);
	assert_int_equal(rig->session.node.made, made);
	assert_int_equal(rig->session.away_us, away_us);
	codec_end(&codec);
	rig->session = session;
}

/* The next process tells a session that was lost for a while from one that has not begun. */
static void saves(void **state)
{
	struct rig *rig = *state;
	int64_t away_us;

	expect_recorded(rig, LC_CONNECTING, false, rig->now_us);
	rig_connect(rig, RIG_SESSION);
	expect_recorded(rig, LC_CONNECTING, false, rig->now_us);
	rig_find_home(rig);
	rig_answer_version(rig, 0);
	expect_recorded(rig, LC_SUSPENDED, true, rig->now_us);
	rig->now_us += SECOND;
	rig_disconnect(rig);
	away_us = rig->now_us;
	rig->now_us += SECOND;
	expect_recorded(rig, LC_SUSPENDED, true, away_us);
	rig_end_session(rig, false);
	expect_recorded(rig, LC_CONNECTING, true, away_us);
}

static void changes_are_told(void **state)
{
	struct rig *rig = *state;

	rig->port_events->changed(&rig->lc, "/locks/a", ENSEMBLE_DELETED);
	rig_expect_told(rig, "changed /locks/a deleted");
}

#define NEW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define READY(test) cmocka_unit_test_setup_teardown(test, set_up_ready, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		NEW(begins),
		NEW(no_server_answers),
		NEW(makes_its_directory),
		NEW(finds_its_directory),
		NEW(makes_its_root),
		cmocka_unit_test(no_root),
		NEW(no_right_to_write),
		NEW(no_right_to_read),
		NEW(credentials_refused),
		NEW(refused_for_a_while),
		NEW(too_short),
		NEW(cannot_be_opened),
		READY(goes_on),
		READY(next_server),
		READY(ended),
		READY(ended_while_dying),
		READY(finished),
		READY(finished_without_a_session),
		NEW(saves),
		READY(changes_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
