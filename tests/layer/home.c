/* SPDX-License-Identifier: MIT
 *
 * The ensemble that the mount belongs to: it is known again before anything is made in a session;
 * another one is left. And servers that turn the mount away.
 */
#include "rig.h"

#include <errno.h>

#define DIR RIG_DIR
#define NODE RIG_NODE
#define FIND "sync " DIR ", get " DIR
#define MADE(half) "create ephemeral " DIR "/000000000000000" half " ''"

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

/* The session ends, and the next one begins. */
static void next_session(struct rig *rig)
{
	rig_end_session(rig, false);
	rig_connect(rig, RIG_SESSION + 1);
	rig_forget(rig);
}

static void answer_mark(struct rig *rig, int64_t czxid, int64_t ctime_ms, const char *number)
{
	struct ensemble_stat stat = {.czxid = czxid, .ctime_ms = ctime_ms};

	rig_answer(rig, &(struct ensemble_answer){.result = ENSEMBLE_OK}); /* the sync */
	rig_answer(rig, &(struct ensemble_answer){
				.stat = &stat, .data = number, .data_len = (int)strlen(number)});
}

static void the_same(void **state)
{
	struct rig *rig = *state;

	next_session(rig);
	rig_find_home(rig);
	rig_expect_sent(rig, MADE("2"));
	rig_answer_version(rig, 0);
	assert_true(lc_ready(&rig->lc));
}

/* Nothing was made, and nothing will be: the connection is closed, and another one is begun. */
static void expect_left(struct rig *rig, const char *why)
{
	rig_expect_reported(rig, why);
	assert_true(rig->home.elsewhere);
	assert_non_null(strstr(rig->home.met, why));
	rig_forget(rig);
	heartbeat_send(&rig->lc);
	session_prove(&rig->lc);
	rig_expect_sent(rig, "");
	rig_run(rig, 0);
	rig_expect_sent(rig, "close");
	rig_expect_told(rig, "ended");
	rig_expect_sent_after(rig, SECOND, "open 15 s");
	assert_int_equal(rig->session.state, LC_CONNECTING);
	/* There is the right one. */
	rig_connect(rig, RIG_SESSION + 2);
	rig_find_home(rig);
	rig_expect_sent(rig, FIND ", " MADE("3"));
	rig_answer_version(rig, 0);
	assert_true(lc_ready(&rig->lc));
	assert_false(rig->home.elsewhere);
	assert_string_equal(rig->home.met, "");
}

static void another(void **state)
{
	static const struct {
		int64_t czxid, ctime_ms;
		const char *number;
	} rows[] = {
		{51, 1600000000000, RIG_NUMBER},         {50, 1600000000001, RIG_NUMBER},
		{50, 1600000000000, "00000000000000ab"}, {50, 1600000000000, ""},
		{50, 1600000000000, RIG_NUMBER "0"},     {50, 1600000000000, "00000000000000aA"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct rig *rig = rig_begin_ready();

		next_session(rig);
		answer_mark(rig, rows[i].czxid, rows[i].ctime_ms, rows[i].number);
		expect_left(rig, "server:2181 is another ensemble: " DIR " there: made 2020-09-13 "
		                 "12:26:40 UTC");
		rig_finish(rig);
	}
}

/* The root is made at the start alone, even if it may be made. */
static void without_the_root(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct rig *rig = rig_begin_ready();

		rig->lc.config.make_root = true;
		next_session(rig);
		rig_answer_error(rig, ENSEMBLE_OK);
		rig_answer_error(rig, i == 0 ? ENSEMBLE_NONODE : ENSEMBLE_NOAUTH);
		expect_left(rig, "server:2181 is another ensemble, or ours without its data: we "
		                 "find no " DIR " there; ours: made 2020-09-13 12:26:40 UTC, zxid "
		                 "0x32, number " RIG_NUMBER);
		rig_finish(rig);
	}
}

/* The client is replaced by one that has seen nothing, in the same session; at home it goes on. */
static void expect_gone_on(struct rig *rig)
{
	rig_disconnect(rig);
	rig_forget(rig);
	rig_run(rig, 0);
	rig_expect_sent(rig, "rest");
	rig_forget(rig);
	rig_expect_sent_after(rig, 100 * MS, "open 15 s again");
	rig_connect(rig, RIG_SESSION);
	rig_expect_told(rig, "");
}

/* Its id is known elsewhere, too: the node is not there. Reads and other writes are no proof. */
static void the_same_session_elsewhere(void **state)
{
	struct rig *rig = *state;

	rig_disconnect(rig);
	rig_connect(rig, RIG_SESSION);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_sent(rig, FIND);
	answer_mark(rig, 51, 1600000000000, RIG_NUMBER);
	rig_expect_reported(rig, "is another ensemble");
	rig_expect_sent(rig, "drop");
	expect_gone_on(rig);
	rig_find_home(rig);
	rig_answer_error(rig, ENSEMBLE_EXISTS);
	rig_answer_version(rig, 1);
	rig_expect_told(rig, "alive, beaten resumed");
	assert_string_equal(rig->home.met, "");
}

/* What is told before the ensemble is known is not believed: all is looked at anew. */
static void events_elsewhere(void **state)
{
	struct rig *rig = *state;

	rig_disconnect(rig);
	rig_connect(rig, RIG_SESSION);
	rig_forget(rig);
	rig->port_events->changed(&rig->lc, "/locks/a", ENSEMBLE_DELETED);
	rig_expect_told(rig, "");
	rig_answer_version(rig, 1);
	rig_forget(rig);
	rig->port_events->changed(&rig->lc, "/locks/a", ENSEMBLE_DELETED);
	rig_expect_told(rig, "changed /locks/a deleted");
}

/* The connection is lost before it is known where it led: perhaps the client has seen too much. A
 * server that says nothing has shown nothing, and the same client tries the next one. */
static void lost_elsewhere(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct rig *rig = rig_begin_ready();

		rig_disconnect(rig);
		rig_connect(rig, RIG_SESSION);
		rig_disconnect(rig);
		rig_forget(rig);
		rig_run(rig, 0);
		rig_expect_sent(rig, "");
		rig_connect(rig, RIG_SESSION);
		rig_forget(rig);
		if (i == 0)
			rig->port_events->changed(&rig->lc, "/locks/a", ENSEMBLE_DATA);
		if (i >= 1)
			rig_answer_error(rig, ENSEMBLE_NONODE); /* the heartbeat */
		if (i >= 2)
			rig_answer_error(rig, ENSEMBLE_OK); /* the sync */
		expect_gone_on(rig);
		rig_finish(rig);
	}
}

/* It was at home before, so a server that refuses its credentials is not the last word. */
static void refused_elsewhere(void **state)
{
	struct rig *rig = *state;

	rig_disconnect(rig);
	rig_forget(rig);
	for (int i = 0; i < 2; i++) {
		rig_end_session(rig, true);
		assert_int_equal(strlen(rig->reported) > 0, i == 0);
		assert_non_null(strstr(rig->home.met, "a server refuses the credentials"));
		rig_expect_sent(rig, "rest");
		rig_forget(rig);
		rig_expect_sent_after(rig, 100 * MS, "open 15 s again");
	}
	rig_expect_told(rig, "");
	assert_true(session_lease_is_valid(&rig->lc));
	rig_connect(rig, RIG_SESSION);
	rig_answer_version(rig, 1);
	rig_expect_told(rig, "alive, beaten resumed");
	assert_string_equal(rig->home.met, "");
}

/* ---- "the session is over", before it can be ---- */

/* A server says so on a new connection, and an inquiry is connected. */
static void begin_inquiry(struct rig *rig)
{
	rig_disconnect(rig);
	rig_forget(rig);
	rig_say_over(rig);
	rig_expect_sent(rig, "open 15 s");
	rig_expect_reported(rig, "a server says that the session is over, 14");
	rig_expect_told(rig, "");
	rig_connect(rig, RIG_SESSION + 9);
	rig_expect_sent(rig, FIND);
}

static void answer_node(struct rig *rig, int64_t owner)
{
	struct ensemble_stat stat = {.ephemeral_owner = owner};

	rig_answer(rig, &(struct ensemble_answer){.stat = &stat});
}

/* Another ensemble said so. Nothing is lost, and the session goes on. */
static void not_over(void **state)
{
	struct rig *rig = *state;

	begin_inquiry(rig);
	rig_find_home(rig);
	rig_expect_sent(rig, "get " NODE);
	answer_node(rig, RIG_SESSION);
	rig_run(rig, 0);
	rig_expect_sent(rig, "close");
	rig_run(rig, 100 * MS);
	rig_expect_sent(rig, "open 15 s again");
	rig_expect_told(rig, "");
	assert_true(session_lease_is_valid(&rig->lc));
	rig_connect(rig, RIG_SESSION);
	rig_answer_version(rig, 1);
	rig_expect_told(rig, "alive, beaten resumed");
}

/* Somebody has closed it. */
static void over_indeed(void **state)
{
	static const int64_t owners[] = {0, RIG_SESSION + 1};

	(void)state;
	for (size_t i = 0; i < LENGTH(owners); i++) {
		struct rig *rig = rig_begin_ready();

		begin_inquiry(rig);
		rig_find_home(rig);
		rig_forget(rig);
		if (owners[i])
			answer_node(rig, owners[i]);
		else
			rig_answer_error(rig, ENSEMBLE_NONODE);
		rig_run(rig, 0);
		rig_expect_sent(rig, "close, open 15 s");
		rig_expect_told(rig, "ended");
		rig_expect_reported(rig, "session ended, beginning a new one");
		rig_finish(rig);
	}
}

/* The server that is asked is another ensemble's, or hangs up: the next one. */
static void asked_elsewhere(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct rig *rig = rig_begin_ready();

		begin_inquiry(rig);
		rig_forget(rig);
		switch (i) {
		case 0:
			answer_mark(rig, 51, 1600000000000, RIG_NUMBER);
			break;
		case 1:
			rig_answer_error(rig, ENSEMBLE_OK);
			rig_answer_error(rig, ENSEMBLE_NONODE);
			break;
		case 2:
			rig_find_home(rig);
			rig_answer_error(rig, ENSEMBLE_REFUSED);
			break;
		case 3:
			rig_disconnect(rig);
			rig_say_over(rig);
			break;
		}
		if (i < 2)
			rig_expect_reported(rig, "server:2181 is of another ensemble: whether our");
		rig_forget(rig);
		rig_run(rig, 0);
		rig_expect_sent(rig, "close");
		rig_run(rig, 100 * MS);
		rig_expect_sent(rig, "open 15 s");
		rig_expect_told(rig, "");
		rig_connect(rig, RIG_SESSION + 10);
		rig_find_home(rig);
		answer_node(rig, RIG_SESSION);
		rig_run(rig, 100 * MS);
		rig_connect(rig, RIG_SESSION);
		rig_answer_version(rig, 1);
		rig_expect_told(rig, "alive, beaten resumed");
		rig_finish(rig);
	}
}

/* There is no memory to ask: that says nothing of the session. */
static void asked_later(void **state)
{
	struct rig *rig = *state;

	rig_disconnect(rig);
	rig_forget(rig);
	rig->open_result = -ENOMEM;
	rig_say_over(rig);
	rig_expect_sent(rig, "open 15 s");
	rig_expect_reported(rig, "cannot begin a session: Cannot allocate memory");
	rig_run(rig, SECOND);
	rig_expect_sent(rig, "open 15 s");
	rig_expect_told(rig, "");
	rig->open_result = 0;
	rig_run(rig, SECOND);
	rig_expect_sent(rig, "open 15 s");
	rig_connect(rig, RIG_SESSION + 9);
	rig_find_home(rig);
	answer_node(rig, RIG_SESSION);
	rig_run(rig, 100 * MS);
	rig_connect(rig, RIG_SESSION);
	rig_answer_version(rig, 1);
	rig_expect_told(rig, "alive, beaten resumed");
	rig_forget(rig);
}

/* Nobody answers. When the lease is over, whoever says so is believed. */
static void no_answer_in_time(void **state)
{
	struct rig *rig = *state;

	rig_disconnect(rig);
	rig_say_over(rig);
	rig_forget(rig);
	rig_run(rig, 3 * SECOND);
	rig_expect_sent(rig, "drop");
	rig_run(rig, 9 * SECOND);
	rig_expect_sent(rig, "drop, drop, drop");
	rig_expect_told(rig, "");
	rig_run(rig, 3 * SECOND);
	rig_expect_told(rig, "over, ended");
	rig_expect_sent(rig, "close, open 15 s");
}

/* Another ensemble may grant too short a session, or have longer ticks: it is left all the same.
 * Only in the right one that makes the mount unusable. */
static void too_short_elsewhere(void **state)
{
	struct rig *rig = *state;

	rig_end_session(rig, false);
	rig_accept(rig, RIG_SESSION + 1, 4 * SECOND);
	lc_raise_tick(&rig->lc, 3 * SECOND);
	answer_mark(rig, 51, 1600000000000, RIG_NUMBER);
	expect_left(rig, "server:2181 is another ensemble");
	rig_disconnect(rig);
	rig_forget(rig);
	rig_accept(rig, RIG_SESSION + 2, 4 * SECOND);
	rig_expect_told(rig, "");
	rig_answer_version(rig, 1);
	rig_expect_told(rig, "unusable ERANGE");
	assert_int_equal(rig->session.state, LC_UNUSABLE);
	rig_run(rig, 0);
	rig_forget(rig);
}

/* The connection ends before it is left, and the next one leads home: the session goes on. */
static void back_before_it_is_left(void **state)
{
	struct rig *rig = *state;

	rig_disconnect(rig);
	rig_connect(rig, RIG_SESSION);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	answer_mark(rig, 51, 1600000000000, RIG_NUMBER);
	rig_expect_reported(rig, "is another ensemble");
	rig_disconnect(rig);
	rig_connect(rig, RIG_SESSION);
	rig_find_home(rig);
	rig_answer_version(rig, 0);
	assert_true(lc_ready(&rig->lc));
	rig_disconnect(rig);
	rig_forget(rig);
	rig_run(rig, 3 * SECOND);
	rig_expect_sent(rig, "drop");
	assert_int_equal(rig->session.id, RIG_SESSION);
}

/* The mark was read, and the connection lost before a heartbeat was answered. */
static void nothing_is_made_elsewhere_at_the_start(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct rig *rig = rig_begin();

		rig->lc.config.make_root = true;
		rig_connect(rig, RIG_SESSION);
		rig_find_home(rig);
		rig_end_session(rig, false);
		rig_connect(rig, RIG_SESSION + 1);
		rig_forget(rig);
		rig_answer_error(rig, ENSEMBLE_OK);
		rig_answer_error(rig, i == 0 ? ENSEMBLE_NONODE : ENSEMBLE_NOAUTH);
		expect_left(rig, "server:2181 is another ensemble, or ours without its data");
		rig_finish(rig);
	}
}

/* Somebody has removed only the heartbeats' node, or the root, while there was no contact. */
static void node_removed_meanwhile(void **state)
{
	struct rig *rig = *state;

	rig_disconnect(rig);
	rig_connect(rig, RIG_SESSION);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_forget(rig);
	rig_find_home(rig);
	rig_expect_sent(rig, "create ephemeral " NODE " ''");
	rig_answer_version(rig, 0);
	assert_true(lc_ready(&rig->lc));
}

/* The root is removed and made again while the mount looks on: that is the new mark. */
static void made_again(void **state)
{
	struct rig *rig = *state;

	heartbeat_send(&rig->lc);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	answer_mark(rig, 700, 1700000000000, "");
	rig_answer_version(rig, 0);
	assert_true(lc_ready(&rig->lc));
	assert_string_equal(rig->reported, "");
	next_session(rig);
	answer_mark(rig, 700, 1700000000000, "");
	rig_expect_sent(rig, MADE("2"));
	rig_answer_version(rig, 0);
	next_session(rig);
	rig_find_home(rig);
	rig_expect_reported(rig, "is another ensemble");
}

static void lost_while_reading(void **state)
{
	struct rig *rig = *state;

	next_session(rig);
	rig_disconnect(rig);
	rig_connect(rig, RIG_SESSION + 1);
	rig_expect_sent(rig, FIND);
	rig_find_home(rig);
	rig_expect_sent(rig, MADE("2"));
	rig_disconnect(rig); /* what was read there says nothing of the next one */
	rig_connect(rig, RIG_SESSION + 1);
	rig_expect_sent(rig, FIND);
}

/* Each time twice as long, and one line for each that is met. */
static void waits_longer(void **state)
{
	struct rig *rig = *state;
	int64_t pause_us = SECOND;

	rig_end_session(rig, false);
	for (int i = 0; i < 8; i++) {
		rig_connect(rig, RIG_SESSION + 1 + i);
		rig_forget(rig);
		answer_mark(rig, 51, 1600000000000, RIG_NUMBER);
		assert_int_equal(strlen(rig->reported) > 0, i == 0);
		rig_run(rig, 0);
		rig_expect_sent(rig, "close");
		rig_expect_sent_after(rig, pause_us, "open 15 s");
		pause_us = pause_us < 15 * SECOND ? 2 * pause_us : 30 * SECOND;
	}
	rig_connect(rig, RIG_SESSION + 9);
	rig_find_home(rig);
	rig_answer_version(rig, 0);
	next_session(rig);
	answer_mark(rig, 51, 1600000000000, RIG_NUMBER);
	rig_expect_reported(rig, "is another ensemble");
	rig_run(rig, 0);
	rig_forget(rig);
	rig_run(rig, SECOND);
	rig_expect_sent(rig, "open 15 s");
}

/* ---- from one process to the next ---- */

static void remembered(void **state)
{
	struct rig *rig = *state;
	struct codec codec = {0}, reads = {.loads = true};

	home_save_load(&codec, &rig->lc);
	rig->home.known = (struct lc_mark){0};
	codec_read(&reads, codec.data, codec.len);
	home_save_load(&reads, &rig->lc);
	codec_end(&codec);
	assert_null(reads.bad);
	assert_int_equal(rig->home.known.czxid, 50);
	assert_int_equal(rig->home.known.ctime_ms, 1600000000000);
	assert_int_equal(rig->home.known.number, 0xaa);
	next_session(rig);
	answer_mark(rig, 51, 1600000000000, RIG_NUMBER);
	rig_expect_reported(rig, "is another ensemble");
}

/* ---- servers that close each connection ---- */

static void turn_away(struct rig *rig)
{
	rig->port_events->turned_away(&rig->lc, "server:2181");
}

static void turned_away(void **state)
{
	struct rig *rig = *state;
	int64_t pause_us = SECOND;

	rig_disconnect(rig);
	rig_forget(rig);
	rig_run(rig, 15 * SECOND - 1);
	rig_forget(rig);
	turn_away(rig);
	rig_run(rig, 0);
	rig_expect_sent(rig, ""); /* the session may live */
	rig->now_us += 1;
	turn_away(rig);
	rig_expect_reported(rig, "server:2181 closes each connection");
	assert_non_null(strstr(rig->home.met, "server:2181 closes each connection"));
	assert_false(rig->home.elsewhere);
	for (int i = 0; i < 4; i++) {
		rig_run(rig, 0);
		rig_expect_sent(rig, "rest");
		rig_expect_sent_after(rig, pause_us, "open 15 s again");
		rig_run(rig, 500 * MS - 1);
		turn_away(rig);
		rig_run(rig, 0);
		rig_expect_sent(rig, ""); /* other servers are tried */
		rig->now_us += 1;
		turn_away(rig);
		assert_string_equal(rig->reported, "");
		pause_us = pause_us < 4 * SECOND ? 2 * pause_us : 5 * SECOND;
	}
	rig_run(rig, 0);
	rig_run(rig, 5 * SECOND);
	rig_forget(rig);
	rig_end_session(rig, false);
	rig_expect_sent(rig, "open 15 s");
	rig_connect(rig, RIG_SESSION + 1);
	rig_expect_sent(rig, FIND);
	rig_find_home(rig);
	rig_answer_version(rig, 0);
	assert_true(lc_ready(&rig->lc));
	assert_string_equal(rig->home.met, "");
}

/* The session goes on, by the password that the client had. */
static void turned_away_and_back(void **state)
{
	struct rig *rig = *state;

	rig_disconnect(rig);
	rig_run(rig, 15 * SECOND);
	turn_away(rig);
	rig_run(rig, SECOND);
	rig_connect(rig, RIG_SESSION);
	rig_forget(rig);
	turn_away(rig); /* of a connection before this one */
	rig_answer_version(rig, 1);
	rig_expect_told(rig, "alive, over, beaten resumed");
	rig_run(rig, 0);
	assert_null(strstr(rig->sent, "rest"));
}

/* The session is shorter than it was asked for: no pause is so long that it would end. */
static void turned_away_in_a_short_session(void **state)
{
	struct rig *rig = *state;

	rig_disconnect(rig);
	rig_accept(rig, RIG_SESSION, 9 * SECOND);
	rig_answer_version(rig, 1);
	rig_prove(rig);
	rig_disconnect(rig);
	rig_run(rig, 9 * SECOND);
	for (int i = 0; i < 4; i++) {
		rig->now_us += SECOND;
		turn_away(rig);
		rig_run(rig, 0);
		rig_forget(rig);
		rig_run(rig, 3 * SECOND);
		rig_expect_sent(rig, "open 15 s again");
	}
}

#define READY(test) cmocka_unit_test_setup_teardown(test, set_up_ready, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		READY(the_same),
		cmocka_unit_test(another),
		cmocka_unit_test(without_the_root),
		READY(the_same_session_elsewhere),
		READY(events_elsewhere),
		cmocka_unit_test(lost_elsewhere),
		READY(refused_elsewhere),
		READY(not_over),
		cmocka_unit_test(over_indeed),
		cmocka_unit_test(asked_elsewhere),
		READY(asked_later),
		READY(no_answer_in_time),
		READY(too_short_elsewhere),
		READY(back_before_it_is_left),
		cmocka_unit_test(nothing_is_made_elsewhere_at_the_start),
		READY(node_removed_meanwhile),
		READY(made_again),
		READY(lost_while_reading),
		READY(waits_longer),
		READY(remembered),
		READY(turned_away),
		READY(turned_away_and_back),
		READY(turned_away_in_a_short_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
