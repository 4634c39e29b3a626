/* SPDX-License-Identifier: MIT
 *
 * The mount's mailbox: when it is made and read, what its letters cause, and when it is emptied.
 */
#include "rig.h"

#include <stdio.h>
#include <string.h>

#define BOX RIG_NODE "-pokes"
#define LETTER "0000000000000002\n"
#define BEAT "set " RIG_NODE " ''"

static struct entry one, other;

static void make(struct rig *rig, struct entry *entry, pid_t pid)
{
	rig_make_entry(rig, entry, "a", pid, LC_EXCLUSIVE);
	entry_begin(entry);
	entry->pending++;
	entry->sent_us = rig->now_us;
	entry_created(entry, &(struct ensemble_answer){.path = rig_entry_path(entry, pid)});
}

/* The mailbox is watched, and two entries are there, #2-7 and #3-8. */
static int set_up(void **state)
{
	struct rig *rig = rig_begin_ready();

	*state = rig;
	rig->has_letters = true;
	make(rig, &one, 7);
	make(rig, &other, 8);
	session_read_mailbox(&rig->lc);
	rig_answer_data(rig, 0, "");
	rig_forget(rig);
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	rig_end_session(rig, false);
	entry_set_absent(&one);
	entry_set_absent(&other);
	lock_unwant_list(one.lock);
	rig_free_entry(&one);
	rig_free_entry(&other);
	rig_finish(rig);
	return 0;
}

/* ---- making it ---- */

static void is_made_in_each_session(void **state)
{
	struct rig *rig = *state;

	rig_end_session(rig, false);
	rig_connect(rig, RIG_SESSION + 1);
	rig_find_home(rig);
	rig_answer_version(rig, 0);
	assert_true(lc_ready(&rig->lc));
	rig_forget(rig);
	session_read_mailbox(&rig->lc);
	assert_string_equal(rig_unanswered(rig), rig->sent);
	assert_memory_equal(rig->sent, "watch ", 6);
	session_read_mailbox(&rig->lc); /* asked for already */
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	assert_non_null(strstr(rig->sent, "create ephemeral /locks/.zklockfs/"));
	session_read_mailbox(&rig->lc);
	rig_answer_created(rig, BOX, 60);
	assert_memory_equal(rig_unanswered(rig), "watch ", 6);
	rig_answer_data(rig, 0, "");
	rig_forget(rig);
	session_read_mailbox(&rig->lc);
	rig_expect_sent(rig, "");
}

/* Entries may have been marked before it was there: all are read. */
static void was_missing(void **state)
{
	struct rig *rig = *state;

	rig->port_events->changed(&rig->lc, BOX, ENSEMBLE_DELETED);
	rig_expect_sent(rig, BEAT);
	rig_answer_version(rig, 1);
	session_read_mailbox(&rig->lc);
	rig_expect_sent(rig, "watch " BOX);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_sent(rig, "create ephemeral " BOX " ''");
	rig_answer_created(rig, BOX, 60);
	rig_expect_sent(rig, "watch " BOX);
	rig_answer_data(rig, 0, "");
	rig_expect_sent(rig, "get /locks/a/#2-7, get /locks/a/#3-8");
	rig_answer_data(rig, 0, "");
	rig_answer_data(rig, 0, "");
	rig_expect_sent(rig, "");
	/* That is done once. */
	rig->port_events->changed(&rig->lc, BOX, ENSEMBLE_DATA);
	rig_answer_data(rig, 1, LETTER);
	rig_expect_sent(rig, "watch " BOX ", get /locks/a/#2-7");
}

/* All entries are read instead, and it is tried again. */
static void cannot_be_had(void **state)
{
	static const enum ensemble_result failures[] = {ENSEMBLE_REFUSED, ENSEMBLE_NOAUTH};
	struct rig *rig = *state;

	for (size_t i = 0; i < 2 * LENGTH(failures); i++) {
		rig->session.mailbox.there = false;
		session_read_mailbox(&rig->lc);
		if (i >= LENGTH(failures))
			rig_answer_error(rig, ENSEMBLE_NONODE);
		rig_forget(rig);
		rig_answer_error(rig, failures[i % LENGTH(failures)]);
		rig_expect_sent(rig, "get /locks/a/#2-7, get /locks/a/#3-8");
		rig_answer_data(rig, 0, "");
		rig_answer_data(rig, 0, "");
		assert_false(rig->session.mailbox.there);
	}
}

/* ---- letters ---- */

static void letters(struct rig *rig, int32_t version, const char *data)
{
	rig->port_events->changed(&rig->lc, BOX, ENSEMBLE_DATA);
	rig_expect_sent(rig, "watch " BOX);
	rig_answer_data(rig, version, data);
}

/* It is emptied when the entries were read. */
static void is_emptied(void **state)
{
	struct rig *rig = *state;

	rig->port_events->changed(&rig->lc, RIG_NODE, ENSEMBLE_DATA);
	rig->port_events->changed(&rig->lc, "/locks", ENSEMBLE_DELETED);
	letters(rig, 1, LETTER);
	rig_expect_sent(rig, "get /locks/a/#2-7");
	rig->port_events->changed(&rig->lc, BOX, ENSEMBLE_DATA);
	rig_answer_data(rig, 1, "");
	rig_expect_sent(rig, "watch " BOX ", set " BOX " v1 ''");
	rig_answer_data(rig, 2, LETTER "0000000000000003\n");
	rig_answer_error(rig, ENSEMBLE_BADVERSION); /* the second letter was there by then */
	rig_expect_sent(rig, "get /locks/a/#2-7, get /locks/a/#3-8");
	rig_answer_data(rig, 1, "evict: ann\n");
	rig_expect_sent(rig, "");
	rig_answer_data(rig, 1, "");
	rig_expect_sent(rig, "set " BOX " v2 ''");
	rig_answer_version(rig, 3);
	letters(rig, 3, "");
	rig_expect_sent(rig, "");
	letters(rig, 4, "0000000000000999\n"); /* no entry has this id */
	rig_expect_sent(rig, "set " BOX " v4 ''");
	rig_answer_error(rig, ENSEMBLE_BADVERSION);
	rig_expect_sent(rig, "");
}

/* Mounts of the former version leave the oldest letters out. */
static void is_full(void **state)
{
	struct rig *rig = *state;
	char data[64 * 17 + 1];

	for (int i = 0; i < 64; i++)
		snprintf(data + 17 * i, 18, "%016x\n", i + 100);
	letters(rig, 70, data + 17);
	rig_expect_sent(rig, "set " BOX " v70 ''");
	rig_answer_version(rig, 71);
	letters(rig, 71, data);
	rig_expect_sent(rig, "get /locks/a/#2-7, get /locks/a/#3-8");
}

/* ---- a new connection ---- */

static void come_back(struct rig *rig)
{
	rig_disconnect(rig);
	rig_connect(rig, RIG_SESSION);
	rig_forget(rig);
	while (strncmp(rig_unanswered(rig), "watch ", 6) != 0)
		rig_answer_version(rig, 1);
	rig_forget(rig);
	assert_false(lc_ready(&rig->lc));
}

/* The session is ready when the letters are read. What proves the connection comes behind. */
static void comes_before_the_proof(void **state)
{
	static const struct {
		enum ensemble_result result;
		const char *letters, *sent;
	} rows[] = {
		{ENSEMBLE_OK, "", ""},
		{ENSEMBLE_OK, LETTER, "get /locks/a/#2-7, "},
		{ENSEMBLE_REFUSED, NULL, "get /locks/a/#2-7, get /locks/a/#3-8, "},
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		char sent[200];

		come_back(rig);
		if (rows[i].letters)
			rig_answer_data(rig, 1, rows[i].letters);
		else
			rig_answer_error(rig, rows[i].result);
		snprintf(sent, sizeof(sent), "%s" BEAT, rows[i].sent);
		rig_expect_sent(rig, sent);
		assert_true(lc_ready(&rig->lc));
	}
}

/* Letters that were read, and not done, are there on the next connection. */
static void connection_is_lost(void **state)
{
	struct rig *rig = *state;

	letters(rig, 1, LETTER);
	rig_forget(rig);
	come_back(rig);
	rig_disconnect(rig);
	rig_expect_sent(rig, "");
	come_back(rig);
	rig_answer_data(rig, 1, LETTER);
	rig_forget(rig);
	rig_answer_data(rig, 1, "");
	rig_expect_sent(rig, "set " BOX " v1 ''");
}

/* Meanwhile the session cannot be used any more. */
static void session_is_unusable(void **state)
{
	struct rig *rig = *state;

	come_back(rig);
	lc_limit_session(&rig->lc, SECOND);
	rig_answer_data(rig, 0, "");
	assert_int_equal(rig->session.state, LC_UNUSABLE);
}

/* A server that owes the mailbox is left. */
static void server_hangs(void **state)
{
	struct rig *rig = *state;

	come_back(rig);
	rig_run(rig, RIG_TIMEOUT_US / 5);
	rig_expect_sent(rig, "drop");
}

#define MAILBOX_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MAILBOX_TEST(is_made_in_each_session),
		MAILBOX_TEST(was_missing),
		MAILBOX_TEST(cannot_be_had),
		MAILBOX_TEST(is_emptied),
		MAILBOX_TEST(is_full),
		MAILBOX_TEST(comes_before_the_proof),
		MAILBOX_TEST(connection_is_lost),
		MAILBOX_TEST(session_is_unusable),
		MAILBOX_TEST(server_hangs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
