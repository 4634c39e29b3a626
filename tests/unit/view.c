/* SPDX-License-Identifier: MIT
 *
 * The exact contents of the text files; no user's text can make a line or a field of its own.
 * lc_state_name() comes from the engine.
 */
#include "tree/facts.h"

#include "pure/node_data.h"
#include "tree/history.h"
#include "unit.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define ZNODE "_c_01234567-89ab-cdef-fedc-ba9876543210-web1.4242-lock-0000000042"

static struct lc_entry_info holder(void)
{
	const struct lc_entry entry = {
		.znode = ZNODE,
		.number = 42,
		.mode = LC_EXCLUSIVE,
		.of_mount = true,
		.held = true,
		.host = "web1",
		.pid = 4242,
	};

	return (struct lc_entry_info){
		.entry = entry,
		.token = 4294967301,
		.session = 0x1000000000000ab,
		.queued_since_ms = 1700000000123,
		.held_since_ms = 1700000001004,
		.uid = 1000,
		.command = "make",
		.reason = "deploying v42",
	};
}

static struct lc_entry_info foreign(void)
{
	const struct lc_entry entry = {
		.znode = "x__rlock__0000000007",
		.number = 7,
		.mode = LC_SHARED,
		.client = "kazoo",
		.host = "-",
	};

	return (struct lc_entry_info){
		.entry = entry,
		.token = 9,
		.session = -1,
		.queued_since_ms = -1,
		.held_since_ms = -1,
		.uid = -1,
		.reason = "10.0.0.7 a=b",
	};
}

static void expect_entry(const struct lc_entry_info *info, const char *wanted)
{
	struct text text = {0};

	assert_int_equal(view_entry(info, -1, &text), 0);
	assert_string_equal(text.data, wanted);
	assert_int_equal(text.len, strlen(wanted));
	free(text.data);
}

static void expect_holders(const struct lc_entry_info *infos, size_t count, const char *wanted)
{
	struct text text = {0};

	assert_int_equal(view_holders(infos, count, &text), 0);
	assert_string_equal(text.data, wanted);
	assert_int_equal(text.len, strlen(wanted));
	free(text.data);
}

static size_t count_lines(const struct text *text)
{
	size_t lines = 0;

	for (size_t i = 0; i < text->len; i++)
		lines += text->data[i] == '\n';
	assert_true(text->len == 0 || text->data[text->len - 1] == '\n');
	return lines;
}

static void entry_of_a_holder(void **state)
{
	struct lc_entry_info info = holder();

	(void)state;
	expect_entry(&info, "mode: exclusive\n"
	                    "state: held\n"
	                    "host: web1\n"
	                    "pid: 4242\n"
	                    "uid: 1000\n"
	                    "command: make\n"
	                    "queued_since: 2023-11-14T22:13:20.123Z\n"
	                    "held_since: 2023-11-14T22:13:21.004Z\n"
	                    "token: 4294967301\n"
	                    "session: 0x1000000000000ab\n"
	                    "znode: " ZNODE "\n"
	                    "renewed_ago: -\nreason: deploying v42\n");
}

static void entry_of_a_waiter(void **state)
{
	struct lc_entry_info info = holder();

	(void)state;
	info.entry.held = false;
	info.entry.mode = LC_SHARED;
	info.uid = 0;
	info.queued_since_ms = 0;
	info.reason[0] = '\0';
	/* held_since may be left from earlier data: it does not count. */
	expect_entry(&info,
	             "mode: shared\nstate: waiting\nhost: web1\npid: 4242\nuid: 0\ncommand: make\n"
	             "queued_since: 1970-01-01T00:00:00.000Z\nheld_since: -\ntoken: 4294967301\n"
	             "session: 0x1000000000000ab\nznode: " ZNODE "\nrenewed_ago: -\nreason: -\n");
}

static void entry_with_nothing_known(void **state)
{
	struct lc_entry_info info = foreign();

	(void)state;
	expect_entry(&info, "mode: shared\nstate: waiting\nhost: -\npid: -\nuid: -\ncommand: "
	                    "-\nqueued_since: -\n"
	                    "held_since: -\ntoken: 9\nsession: 0xffffffffffffffff\n"
	                    "znode: x__rlock__0000000007\n"
	                    "renewed_ago: -\nclient: kazoo\ndata: 10.0.0.7 a=b\nreason: -\n");
	info.entry.held = true;
	info.entry.mode = LC_EXCLUSIVE;
	expect_entry(&info, "mode: exclusive\nstate: held\nhost: -\npid: -\nuid: -\ncommand: "
	                    "-\nqueued_since: -\n"
	                    "held_since: -\ntoken: 9\nsession: 0xffffffffffffffff\n"
	                    "znode: x__rlock__0000000007\n"
	                    "renewed_ago: -\nclient: kazoo\ndata: 10.0.0.7 a=b\nreason: -\n");
}

/* Clients may set any time; the text stays a time or '-'. */
static void times_at_the_edges(void **state)
{
	static const struct {
		int64_t ms;
		const char *line;
	} rows[] = {
		{-1, "\nqueued_since: -\n"},
		{INT64_MIN, "\nqueued_since: -\n"},
		{999, "\nqueued_since: 1970-01-01T00:00:00.999Z\n"},
		{253402300799999, "\nqueued_since: 9999-12-31T23:59:59.999Z\n"},
		{INT64_MAX, "\nqueued_since: 292278994-08-17T07:12:55.807Z\n"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct lc_entry_info info = holder();
		struct text text = {0};

		info.queued_since_ms = rows[i].ms;
		assert_int_equal(view_entry(&info, -1, &text), 0);
		expect(strstr(text.data, rows[i].line) != NULL, "%lld ms: %s",
		       (long long)rows[i].ms, text.data);
		free(text.data);
	}
}

static void holders(void **state)
{
	struct lc_entry_info infos[] = {holder(), foreign()}, spaced = holder();

	(void)state;
	expect_holders(NULL, 0, "");
	strcpy(spaced.command, "Web  Content x=");
	expect_holders(
		&spaced, 1,
		"0000000042-exclusive-4242-web1 host=web1 pid=4242 uid=1000"
		" command=Web__Content_x= queued_since=2023-11-14T22:13:20.123Z"
		" held_since=2023-11-14T22:13:21.004Z token=4294967301 reason=deploying v42\n");
	expect_holders(
		infos, 1,
		"0000000042-exclusive-4242-web1 host=web1 pid=4242 uid=1000"
		" command=make queued_since=2023-11-14T22:13:20.123Z"
		" held_since=2023-11-14T22:13:21.004Z token=4294967301 reason=deploying v42\n");
	expect_holders(
		infos, 2,
		"0000000042-exclusive-4242-web1 host=web1 pid=4242 uid=1000"
		" command=make queued_since=2023-11-14T22:13:20.123Z"
		" held_since=2023-11-14T22:13:21.004Z token=4294967301 reason=deploying v42\n"
		"0000000007-shared-foreign host=- pid=- uid=- command=- queued_since=- "
		"held_since=- token=9 client=kazoo data=10.0.0.7_a=b reason=-\n");
}

/* As the daemon does it: the data of the node is read, then shown. */
static void hostile_data_makes_no_line(void **state)
{
	static const char *const data[] = {
		"reason: a\rtoken: 1\x0b\x0c\x1b[2J\x7f\ncommand: b\rstate: held\n",
		"command: \x01\x02\x03\x04\x05\x06\x07\x08\nreason: \t\t\n",
		"reason: a\n\ntoken: 1\n",
		"reason: \ncommand: \n",
		"reason: x",
		"\xff\xff\xff",
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(data); i++) {
		struct lc_entry_info info = holder();
		struct text text = {0};

		node_data_parse_entry(data[i], strlen(data[i]), &info);
		assert_int_equal(view_entry(&info, -1, &text), 0);
		assert_int_equal(count_lines(&text), 13);
		for (size_t k = 0; k < text.len; k++)
			expect(text.data[k] == '\n' || ((unsigned char)text.data[k] >= 0x20 &&
			                                text.data[k] != 0x7f),
			       "row %zu: %s", i, text.data);
		free(text.data);
		assert_int_equal(view_holders(&info, 1, &text), 0);
		assert_int_equal(count_lines(&text), 1);
		free(text.data);
	}
}

static void foreign_names_make_no_line(void **state)
{
	struct lc_entry_info info = foreign();

	(void)state;
	info.entry.znode = "a\nreason: b\r\x1b\x7f\x01 \xc3\xbc-0000000007";
	expect_entry(&info,
	             "mode: shared\nstate: waiting\nhost: -\npid: -\nuid: -\ncommand: "
	             "-\nqueued_since: -\n"
	             "held_since: -\ntoken: 9\nsession: 0xffffffffffffffff\n"
	             "znode: a?reason: b???? \xc3\xbc-0000000007\nrenewed_ago: -\nclient: kazoo\n"
	             "data: 10.0.0.7 a=b\nreason: -\n");
	/* `holder` does not show the node's name at all. */
	expect_holders(&info, 1,
	               "0000000007-shared-foreign host=- pid=- uid=- command=- queued_since=- "
	               "held_since=- token=9 client=kazoo data=10.0.0.7_a=b reason=-\n");
}

/* The entry of a holder may be the next holder's, until its data says since when it is held. */
static void token_of_one_hold(void **state)
{
	struct lc_entry_info info = holder();

	(void)state;
	assert_true(view_token(&info) == info.token);
	info.held_since_ms = 0;
	assert_true(view_token(&info) == info.token);
	info.held_since_ms = -1;
	assert_true(view_token(&info) == 0);
	expect_holders(&info, 1,
	               "0000000042-exclusive-4242-web1 host=web1 pid=4242 uid=1000 command=make "
	               "queued_since=2023-11-14T22:13:20.123Z held_since=- token=- "
	               "reason=deploying v42\n");
	info.entry.mode = LC_SHARED;
	assert_true(view_token(&info) == info.token);
	info.entry.mode = LC_EXCLUSIVE;
	info.entry.held = false;
	assert_true(view_token(&info) == info.token);
	info = foreign();
	info.entry.held = true;
	assert_true(view_token(&info) == info.token);
}

/* The reason stands last because it alone may hold blanks and '='. */
static void reasons_are_the_last_field(void **state)
{
	struct lc_entry_info info = holder();
	struct text text = {0};
	const char *at;

	(void)state;
	strcpy(info.reason, "x token=1 host=evil");
	assert_int_equal(view_holders(&info, 1, &text), 0);
	at = strstr(text.data, " reason=");
	assert_non_null(at);
	assert_string_equal(at, " reason=x token=1 host=evil\n");
	free(text.data);
}

static void longest_texts_fit_the_size(void **state)
{
	struct lc_entry_info info = holder();
	char znode[4096]; /* other clients may use long names */
	struct text text = {0};

	(void)state;
	memset(info.reason, 'r', LC_REASON_MAX);
	memset(info.command, 'c', LC_COMMAND_MAX);
	memset(info.entry.host, 'h', LC_HOST_MAX);
	memset(znode, 'z', sizeof(znode) - 1);
	znode[sizeof(znode) - 1] = '\0';
	info.entry.znode = znode;
	assert_int_equal(view_entry(&info, -1, &text), 0);
	assert_true(text.len > LC_REASON_MAX + strlen(znode) && text.len <= VIEW_SIZE);
	free(text.data);
}

static void status_of_a_mount(void **state)
{
	struct facts facts = {
		.mount = {.host = "web1", .on_lost = "term", .supervisor_up = 1},
		.engine = {.state = LC_READY,
	                   .session = 0x1000000000000ab,
	                   .session_timeout_us = 15000000,
	                   .tick_time_us = 2000000,
	                   .lease_left_us = 12345678,
	                   .server = "10.0.0.1:2181",
	                   .met = "",
	                   .holders = 1,
	                   .waiters = 2,
	                   .leaving = 3,
	                   .entry_bytes = 270,
	                   .connections = 4,
	                   .sessions = 5,
	                   .counters.clock_doubts = 6},
		.clock_watched_by = "realtime",
		.tick_time_by = "conf",
		.server_version = "3.8.0, which can forget answered writes: use 3.9.4 or later",
		.open_bytes = 4711,
		.away_since_ms = -1,
		.ensemble_ahead_ms = -1500,
		.pid_namespace = 4026531836,
		.addresses = "10.0.0.7:2181,10.0.0.8:2181",
		.left_out = "",
		.wrong_servers = "server 10.0.0.8:2181 is wrong",
		.kept = 1,
		.guardian_up = 1,
	};
	struct text text = {0};

	(void)state;
	assert_int_equal(view_status(&facts, &text), 0);
	assert_string_equal(text.data, "state: ready\n"
	                               "session: 0x1000000000000ab\n"
	                               "session_timeout: 15000ms\n"
	                               "tick_time: 2000ms\n"
	                               "tick_time_by: conf\n"
	                               "lease_left: 12345ms\n"
	                               "resting: 0\n"
	                               "server: 10.0.0.1:2181\n"
	                               "server_version: 3.8.0, which can forget answered "
	                               "writes: use 3.9.4 or later\n"
	                               "host: web1\n"
	                               "holders: 1\n"
	                               "waiters: 2\n"
	                               "kept: 1\n"
	                               "leaving: 3\n"
	                               "entry_bytes: 270\n"
	                               "connections: 4\n"
	                               "sessions: 5\n"
	                               "clock_watched_by: realtime\n"
	                               "clock_doubts: 6\n"
	                               "open_bytes: 4711\n"
	                               "no_contact_since: -\n"
	                               "no_contact_why: -\n"
	                               "ensemble_clock: -1500ms\n"
	                               "on_lost: term\n"
	                               "pid_namespace: 4026531836\n"
	                               "addresses: 10.0.0.7:2181,10.0.0.8:2181\n"
	                               "names_without_address: -\n"
	                               "servers_wrong: server 10.0.0.8:2181 is wrong\n"
	                               "servers_tried: -\n"
	                               "covered_by: -\n"
	                               "keeper: 1\n");
	assert_int_equal(text.len, strlen(text.data));
	free(text.data);
	facts.engine.resting = 1;
	facts.engine.lease_left_us = -1;
	assert_int_equal(view_status(&facts, &text), 0);
	assert_non_null(strstr(text.data, "\nlease_left: -\nresting: 1\n"));
	free(text.data);
	facts.guardian_up = 0;
	assert_int_equal(view_status(&facts, &text), 0);
	assert_ptr_equal(strstr(text.data, "state: unguarded\n"), text.data);
	free(text.data);
}

static void status_without_a_session(void **state)
{
	static const char *const words[] = {
		[LC_CONNECTING] = "state: connecting\n",
		[LC_READY] = "state: ready\n",
		[LC_SUSPENDED] = "state: lost\n",
		[LC_UNUSABLE] = "state: unusable\n",
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(words); i++) {
		struct facts facts = {
			.mount = {.host = "web1",
		                  .on_lost = "none",
		                  .covered = "/mnt/locks/team (fuse of user 1001)",
		                  .supervisor_up = -1},
			.engine = {.state = (enum lc_state)i,
		                   .server = "-",
		                   .met = "it is elsewhere"},
			.away_since_ms = 1500,
			.tick_time_by = "-",
			.server_version = "",
			.addresses = "10.0.0.7:2181",
			.left_out = "zk2: Name or service not known",
			.tried = "10.0.0.7:2181: Connection refused",
			.clock_watched_by = "realtime",
			.guardian_up = -1,
		};
		struct text text = {0};

		assert_int_equal(view_status(&facts, &text), 0);
		assert_ptr_equal(strstr(text.data, words[i]), text.data);
		assert_non_null(strstr(text.data, "\nsession: -\nsession_timeout: 0ms\n"));
		assert_non_null(strstr(text.data, "\nserver: -\nserver_version: -\n"));
		assert_non_null(strstr(text.data, "\nno_contact_since: 1970-01-01T00:00:01.500Z\n"
		                                  "no_contact_why: it is elsewhere\n"));
		assert_non_null(strstr(text.data, "\nensemble_clock: +0ms\non_lost: none\n"
		                                  "pid_namespace: -\n"));
		assert_non_null(strstr(text.data,
		                       "\naddresses: 10.0.0.7:2181\n"
		                       "names_without_address: zk2: Name or service not known\n"
		                       "servers_wrong: -\n"
		                       "servers_tried: 10.0.0.7:2181: Connection refused\n"
		                       "covered_by: /mnt/locks/team (fuse of user 1001)\n"
		                       "keeper: -\n"));
		free(text.data);
	}
}

/* Without contact a mount is suspended until its lease is over, and lost then. */
static void status_without_contact(void **state)
{
	struct lc_status status = {.state = LC_SUSPENDED, .server = "-", .lease_left_us = 1};

	(void)state;
	assert_string_equal(view_state(&status), "suspended");
	status.lease_left_us = 0;
	assert_string_equal(view_state(&status), "lost");
	status.leaseless = true;
	assert_string_equal(view_state(&status), "suspended");
	status.state = LC_CONNECTING;
	assert_string_equal(view_state(&status), "connecting");
	status.elsewhere = true;
	assert_string_equal(view_state(&status), "another_ensemble");
	status.state = LC_UNUSABLE;
	assert_string_equal(view_state(&status), "unusable");
	status.elsewhere = false;
	status.state = LC_READY;
	assert_string_equal(view_state(&status), "ready");
}

/* The largest numbers, and a host that needs quoting. */
static void metrics_fit_the_size(void **state)
{
	struct history history;
	struct facts facts = {
		.mount = {.host = "a\"b\\c\nd",
	                  .mountpoint = "/mnt/\xff\xc3\xa4\xed\xa0\x80/\"",
	                  .supervisor_up = -1},
		.engine = {.state = LC_READY, .server = "[2001:db8::1]:65535"},
		.history = &history,
		.open_bytes = SIZE_MAX,
	};
	struct text text = {0};

	(void)state;
	memset(&facts.engine.session_timeout_us, 0x7f, sizeof(int64_t));
	facts.engine.lease_left_us = facts.engine.tick_time_us = facts.engine.session_timeout_us;
	facts.oldest_hold_us = facts.oldest_wait_us = INT64_MAX;
	facts.kept = facts.engine.holders = facts.engine.waiters = facts.engine.losing =
		facts.engine.leaving = facts.engine.entries = UINT_MAX;
	facts.engine.entry_bytes = facts.engine.watch_bytes = SIZE_MAX;
	facts.engine.connections = facts.engine.sessions = ULONG_MAX;
	memset(&facts.engine.counters, 0x7f, sizeof(facts.engine.counters));
	memset(&facts.counts, 0x7f, sizeof(facts.counts));
	memset(&history, 0x7f, sizeof(history));
	assert_int_equal(view_metrics(&facts, &text), 0);
	assert_int_equal(text.len, strlen(text.data));
	assert_true(text.len < VIEW_SIZE);
	assert_non_null(strstr(text.data, "{mount=\"/mnt/?\xc3\xa4?"
	                                  "?"
	                                  "?/\\\"\",version="));
	assert_non_null(strstr(text.data, "\nzklockfs_covered{mount="));
	assert_non_null(strstr(text.data, "} 18446744073709551615\n"));
	assert_non_null(strstr(text.data, ",helper=\"guardian\"} 0\n"));
	assert_null(strstr(text.data, "helper=\"keeper\""));
	assert_non_null(strstr(text.data, ",host=\"a\\\"b\\\\c\\nd\",server="));
	free(text.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entry_of_a_holder),
		cmocka_unit_test(entry_of_a_waiter),
		cmocka_unit_test(entry_with_nothing_known),
		cmocka_unit_test(times_at_the_edges),
		cmocka_unit_test(holders),
		cmocka_unit_test(hostile_data_makes_no_line),
		cmocka_unit_test(foreign_names_make_no_line),
		cmocka_unit_test(token_of_one_hold),
		cmocka_unit_test(reasons_are_the_last_field),
		cmocka_unit_test(longest_texts_fit_the_size),
		cmocka_unit_test(status_of_a_mount),
		cmocka_unit_test(status_without_a_session),
		cmocka_unit_test(status_without_contact),
		cmocka_unit_test(metrics_fit_the_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
