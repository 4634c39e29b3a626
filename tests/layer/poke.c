/* SPDX-License-Identifier: MIT
 *
 * How a mount is told that one of its entries was marked, and how it tells another mount.
 */
#include "rig.h"

#include <stdio.h>
#include <string.h>

#define NODE RIG_NODE "-pokes"
#define LINE "0000000000000002\n"

static struct entry one, other;

static void make(struct rig *rig, struct entry *entry, pid_t pid)
{
	rig_make_entry(rig, entry, "a", pid, LC_EXCLUSIVE);
	entry_begin(entry);
	entry->pending++;
	entry->sent_us = rig->now_us;
	entry_created(entry, &(struct ensemble_answer){.path = rig_entry_path(entry, pid)});
}

/* The mount's node for pokes is there and watched, and two entries are there, #2-7 and #3-8. */
static int set_up(void **state)
{
	struct rig *rig = rig_begin_ready();

	*state = rig;
	assert_int_equal(pokes_begin(&rig->lc), 0);
	pokes_new_session(&rig->lc);
	make(rig, &one, 7);
	make(rig, &other, 8);
	rig_forget(rig);
	pokes_resume(&rig->lc);
	rig_expect_sent(rig, "create ephemeral " NODE " ''");
	rig_answer_created(rig, NODE, 50);
	rig_expect_told(rig, "alive");
	rig_expect_sent(rig, "watch " NODE);
	rig_answer_data(rig, 0, "");
	rig_expect_sent(rig, "");
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	rig_end_session(rig, false);
	pokes_cancel(&rig->lc);
	entry_set_absent(&one);
	entry_set_absent(&other);
	lock_unwant_list(one.lock);
	rig_free_entry(&one);
	rig_free_entry(&other);
	pokes_finish(&rig->lc);
	rig_finish(rig);
	return 0;
}

/* ---- being poked ---- */

static void poked(struct rig *rig, int32_t version, const char *data)
{
	while (rig->unanswered) /* the reads that the last poke has caused */
		rig_answer_data(rig, 0, "");
	pokes_changed(&rig->lc, NODE, ENSEMBLE_DATA);
	rig_expect_sent(rig, "watch " NODE);
	rig_answer_data(rig, version, data);
}

/* The mount reads the entries that the new lines name. */
static void looks_at_those_named(void **state)
{
	struct rig *rig = *state;

	poked(rig, 1, LINE);
	rig_expect_sent(rig, "get /locks/a/#2-7");
	poked(rig, 3, LINE LINE "0000000000000003\n");
	rig_expect_sent(rig, "get /locks/a/#2-7, get /locks/a/#3-8");
	poked(rig, 3, LINE LINE "0000000000000003\n");
	rig_expect_sent(rig, "");
	poked(rig, 4, "0000000000000999\n"); /* no entry has this id */
	rig_expect_sent(rig, "");
}

/* There were more pokes than the node has lines: all entries are read. */
static void looks_at_all(void **state)
{
	struct rig *rig = *state;

	poked(rig, 2, LINE);
	rig_expect_sent(rig, "get /locks/a/#2-7, get /locks/a/#3-8");
	poked(rig, 3, "");
	rig_expect_sent(rig, "get /locks/a/#2-7, get /locks/a/#3-8");
}

static void of_another_node(void **state)
{
	struct rig *rig = *state;

	pokes_changed(&rig->lc, RIG_NODE, ENSEMBLE_DATA);
	pokes_changed(&rig->lc, "/locks", ENSEMBLE_DELETED);
	rig_expect_sent(rig, "");
	assert_int_equal(rig->pokes.state, POKES_MADE);
}

static void looks_again_on_each_connection(void **state)
{
	struct rig *rig = *state;

	rig_disconnect(rig);
	rig_connect(rig, RIG_SESSION);
	rig_answer_version(rig, 1);
	rig_prove(rig);
	rig_forget(rig);
	pokes_resume(&rig->lc);
	rig_expect_sent(rig, "watch " NODE);
	rig_answer_data(rig, 1, LINE);
	rig_expect_sent(rig, "get /locks/a/#2-7");
}

/* Of the record: how the next process has to take the pokes. */
static enum pokes_state recorded(struct rig *rig, struct codec *codec)
{
	struct codec reads = {.loads = true};
	struct pokes pokes = rig->pokes;
	bool look_failed = rig->entries.look_failed;
	enum pokes_state state;

	codec_begin(codec);
	pokes_save_load(codec, &rig->lc);
	codec_read(&reads, codec->data, codec->len);
	pokes_save_load(&reads, &rig->lc);
	assert_null(reads.bad);
	state = rig->pokes.state;
	rig->pokes = pokes;
	rig->entries.look_failed = look_failed;
	return state;
}

/* The next process looks at all entries if this one has not read those that were named. */
static void not_read_by_this_process(void **state)
{
	struct codec unread = {0}, now = {0}, reads = {.loads = true};
	struct rig *rig = *state;

	assert_int_equal(recorded(rig, &now), POKES_MADE);
	pokes_changed(&rig->lc, NODE, ENSEMBLE_DATA);
	rig_answer_data(rig, 1, LINE);
	assert_int_equal(recorded(rig, &now), POKES_VANISHED);
	rig_answer_error(rig, ENSEMBLE_REFUSED);
	assert_int_equal(recorded(rig, &unread), POKES_VANISHED);
	entries_check_marks_again(&rig->lc);
	rig_answer_data(rig, 0, "");
	assert_int_equal(recorded(rig, &now), POKES_MADE);
	codec_read(&reads, unread.data, unread.len);
	pokes_save_load(&reads, &rig->lc);
	codec_end(&unread);
	codec_end(&now);
	rig_forget(rig);
	pokes_resume(&rig->lc);
	rig_answer_error(rig, ENSEMBLE_EXISTS);
	rig_expect_sent(rig, "create ephemeral " NODE " '', watch " NODE);
	rig_answer_data(rig, 1, LINE);
	rig_expect_sent(rig, "get /locks/a/#2-7, get /locks/a/#3-8");
}

/* Nothing is granted on a new connection before all marks from before it are read. */
static void grants_wait_for_marks(void **state)
{
	struct rig *rig = *state;

	rig_reconnect(rig);
	assert_false(session_may_grant(&rig->lc));
	pokes_resume(&rig->lc);
	pokes_changed(&rig->lc, NODE, ENSEMBLE_DATA);
	rig_forget(rig);
	rig_answer_data(rig, 1, LINE);
	rig_expect_sent(rig, "get /locks/a/#2-7");
	/* A later poke does not put it off. */
	rig_answer_data(rig, 2, LINE "0000000000000003\n");
	rig_expect_sent(rig, "get /locks/a/#3-8");
	assert_false(session_may_grant(&rig->lc));
	rig_answer_data(rig, 0, "");
	rig_expect_told(rig, "extended, 7 changed");
	assert_true(session_may_grant(&rig->lc));
	rig_answer_data(rig, 0, "");
	rig_expect_told(rig, "8 changed");
}

/* If the node for pokes cannot be read, all entries are. */
static void grants_wait_for_all(void **state)
{
	static const enum ensemble_result failures[] = {ENSEMBLE_REFUSED, ENSEMBLE_NONODE};
	struct rig *rig = *state;

	for (size_t i = 0; i < LENGTH(failures); i++) {
		rig_reconnect(rig);
		pokes_resume(&rig->lc);
		rig_forget(rig);
		rig_answer_error(rig, failures[i]);
		rig_expect_sent(rig, "get /locks/a/#2-7, get /locks/a/#3-8");
		rig_answer_data(rig, 0, "");
		assert_false(session_may_grant(&rig->lc));
		rig_answer_data(rig, 0, "");
		rig_expect_told(rig, "7 changed, extended, 8 changed");
		assert_true(session_may_grant(&rig->lc));
	}
}

/* Nor can it be made: then those that a write to the heartbeats' node has caused to be read. */
static void grants_wait_without_a_node(void **state)
{
	struct rig *rig = *state;

	for (int poked = 0; poked < 2; poked++) {
		rig_reconnect(rig);
		rig->pokes.state = POKES_ABSENT;
		rig_forget(rig);
		if (poked)
			entry_check_mark(&one);
		pokes_resume(&rig->lc);
		rig_expect_sent(rig, poked ? "get /locks/a/#2-7, create ephemeral " NODE " ''"
		                           : "create ephemeral " NODE " ''");
		if (poked)
			rig_answer_data(rig, 0, "");
		assert_false(session_may_grant(&rig->lc));
		rig_answer_error(rig, ENSEMBLE_NOAUTH);
		assert_true(session_may_grant(&rig->lc));
	}
}

/* A read that the ensemble refuses leaves no watch, so the next heartbeat repeats it. */
static void is_read_again(void **state)
{
	struct rig *rig = *state;

	pokes_try_again(&rig->lc);
	rig_expect_sent(rig, "");
	pokes_changed(&rig->lc, NODE, ENSEMBLE_DATA);
	rig_expect_sent(rig, "watch " NODE);
	rig_answer_error(rig, ENSEMBLE_REFUSED);
	assert_int_equal(rig->pokes.state, POKES_MADE);
	pokes_try_again(&rig->lc);
	rig_expect_sent(rig, "watch " NODE);
	pokes_try_again(&rig->lc);
	rig_expect_sent(rig, "");
	rig_answer_data(rig, 1, LINE);
	rig_expect_sent(rig, "get /locks/a/#2-7");
	pokes_try_again(&rig->lc);
	rig_expect_sent(rig, "");
}

/* The last lines of the deleted node were perhaps not read: all entries are read. */
static void its_node_is_deleted(void **state)
{
	struct rig *rig = *state;

	for (int i = 0; i < 2; i++) {
		if (i == 0) {
			pokes_changed(&rig->lc, NODE, ENSEMBLE_DELETED);
		} else {
			pokes_changed(&rig->lc, NODE, ENSEMBLE_DATA);
			rig_forget(rig);
			rig_answer_error(rig, ENSEMBLE_NONODE);
		}
		rig_expect_sent(rig, "");
		pokes_changed(&rig->lc, NODE, ENSEMBLE_DATA);
		rig_expect_sent(rig, "");
		pokes_resume(&rig->lc);
		rig_expect_sent(rig, "create ephemeral " NODE " ''");
		rig_answer_created(rig, NODE, 60);
		rig_expect_sent(rig, "watch " NODE);
		rig_answer_data(rig, 1, LINE);
		rig_expect_sent(rig, "get /locks/a/#2-7, get /locks/a/#3-8");
		rig_answer_data(rig, 0, "");
		rig_answer_data(rig, 0, "");
	}
	/* All entries are read only once. */
	poked(rig, 2, LINE LINE);
	rig_expect_sent(rig, "get /locks/a/#2-7");
}

static void its_node_cannot_be_made(void **state)
{
	struct rig *rig = *state;

	pokes_new_session(&rig->lc);
	pokes_resume(&rig->lc);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_REFUSED);
	rig_expect_sent(rig, "");
	rig_expect_told(rig, "");
	pokes_resume(&rig->lc);
	rig_expect_sent(rig, "create ephemeral " NODE " ''");
	rig_answer_error(rig, ENSEMBLE_EXISTS); /* made by a create whose answer was lost */
	rig_expect_told(rig, "");
	rig_expect_sent(rig, "watch " NODE);
}

/* The create of the node is a step of the lease, and counts from the time it was sent. */
static void making_it_is_a_step(void **state)
{
	struct rig *rig = *state;

	for (int i = 0; i < 3; i++) {
		rig->now_us += 2 * SECOND;
		pokes_new_session(&rig->lc);
		pokes_resume(&rig->lc);
		rig_answer_created(rig, NODE, 60);
		rig_answer_data(rig, 0, "");
	}
	expect(strstr(rig->told, "extended"), "the lease is not extended: %s", rig->told);
}

/* A heartbeat is answered meanwhile: the time that the create was sent at is not touched. */
static void its_node_is_made_once(void **state)
{
	struct rig *rig = *state;

	pokes_new_session(&rig->lc);
	pokes_resume(&rig->lc);
	rig_forget(rig);
	for (int i = 0; i < 2; i++) { /* it is made, then read */
		rig->now_us += SECOND;
		pokes_try_again(&rig->lc);
		rig_expect_sent(rig, "");
		if (i == 0) {
			rig_answer_created(rig, NODE, 60);
			rig_expect_sent(rig, "watch " NODE);
		}
	}
	rig_answer_data(rig, 0, "");
}

/* ---- poking ---- */

#define THEIRS(root) root "/.zklockfs/0123456789abcdef"
#define THEIR_LINE "0011223344556677|"

static void poked_it(void *rig)
{
	rig_tell(rig, "poked");
}

static void poke(struct rig *rig, const char *lock)
{
	struct entry_name name = {
		.session_half = 0x0123456789abcdef, .taker_half = 0x0011223344556677, .host = "m1"};
	char path[200];

	snprintf(path, sizeof(path), "%s/entry", lock);
	poke_send(poke_make(&rig->lc, path, &name, poked_it, rig), rig->now_us + 10 * SECOND);
}

/* The line is added by compare-and-set, or another mount's line could get lost. */
static void adds_a_line(void **state)
{
	struct rig *rig = *state;

	poke(rig, "/locks/a");
	rig_expect_sent(rig, "get " THEIRS("/locks") "-pokes");
	rig_answer_data(rig, 4, LINE);
	rig_expect_sent(rig, "set " THEIRS("/locks") "-pokes v4 '0000000000000002|" THEIR_LINE "'");
	rig_answer_error(rig, ENSEMBLE_BADVERSION);
	rig_expect_sent(rig, "get " THEIRS("/locks") "-pokes");
	rig_answer_data(rig, 5, "");
	rig_expect_sent(rig, "set " THEIRS("/locks") "-pokes v5 '" THEIR_LINE "'");
	rig_answer_error(rig, ENSEMBLE_NONODE); /* the node is being made again */
	rig_expect_sent(rig, "get " THEIRS("/locks") "-pokes");
	rig_answer_data(rig, 0, "");
	rig_forget(rig);
	rig_answer_version(rig, 1);
	rig_expect_sent(rig, "");
	assert_null(rig->pokes.under_way);
	rig_expect_told(rig, "poked");
}

/* A refusal is no poke: nobody would be told, and the evictor would wait in vain. */
static void refused(void **state)
{
	static const char *const asked[] = {"get " THEIRS("/locks") "-pokes",
	                                    "set " THEIRS("/locks") "-pokes v4 '" THEIR_LINE "'"};
	struct rig *rig = *state;

	poke(rig, "/locks/a");
	rig_expect_sent(rig, asked[0]);
	for (size_t i = 0; i < LENGTH(asked); i++) {
		if (i == 1) {
			rig_answer_data(rig, 4, "");
			rig_expect_sent(rig, asked[1]);
		}
		rig_answer_error(rig, ENSEMBLE_REFUSED);
		rig_expect_sent(rig, "");
		rig_run(rig, SECOND);
		rig_expect_sent(rig, asked[0]); /* from the beginning */
	}
	/* It is tried for so long; then the other node, and that is all. */
	rig->now_us += 8 * SECOND;
	rig_answer_data(rig, 4, "");
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_REFUSED);
	rig_expect_sent(rig, "set " THEIRS("/locks") " 'm1'");
	rig_expect_told(rig, "");
	rig_answer_error(rig, ENSEMBLE_REFUSED);
	rig_expect_sent(rig, "");
	rig_expect_told(rig, "poked");
	assert_null(rig->pokes.under_way);
}

/* The other node may be written by whom the first may not. */
static void denied(void **state)
{
	struct rig *rig = *state;

	poke(rig, "/locks/a");
	rig_answer_data(rig, 4, "");
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_NOAUTH);
	rig_expect_sent(rig, "set " THEIRS("/locks") " 'm1'");
	rig_answer_version(rig, 9);
	rig_expect_told(rig, "poked");
}

/* The oldest lines are left out. */
static void names_so_many_at_most(void **state)
{
	struct rig *rig = *state;
	char data[65 * 17 + 1] = "", expected[1400];
	size_t n;

	for (int i = 0; i < 65; i++)
		snprintf(data + 17 * i, 18, "%016d\n", i);
	poke(rig, "/locks/a");
	rig_forget(rig);
	rig_answer_data(rig, 70, data);
	n = (size_t)snprintf(expected, sizeof(expected), "set %s-pokes v70 '", THEIRS("/locks"));
	for (int i = 2; i < 65; i++)
		n += (size_t)snprintf(expected + n, sizeof(expected) - n, "%016d|", i);
	snprintf(expected + n, sizeof(expected) - n, THEIR_LINE "'");
	rig_expect_sent(rig, expected);
	rig_answer_version(rig, 71);
	rig_expect_sent(rig, "");
	assert_null(rig->pokes.under_way);
}

/* The node is not below our root. The other mount may have another root: each is tried, from the
 * top. */
static void looks_for_its_root(void **state)
{
	struct rig *rig = *state;

	poke(rig, "/top/locks/team/a");
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	/* The path is cut to the length of our own root, "/locks"; here this does no harm. */
	rig_expect_sent(rig, "set " THEIRS("/top/l") " 'm1'");
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_sent(rig, "get " THEIRS("/top") "-pokes");
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_sent(rig, "set " THEIRS("/top") " 'm1'");
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_sent(rig, "get " THEIRS("/top/locks") "-pokes");
	rig_answer_error(rig, ENSEMBLE_NOAUTH);
	rig_expect_sent(rig, "set " THEIRS("/top/locks") " 'm1'");
	rig_answer_version(rig, 9);
	rig_expect_sent(rig, "");
	assert_null(rig->pokes.under_way);
	rig_expect_told(rig, "poked");
}

static void finds_no_root(void **state)
{
	struct rig *rig = *state;

	poke(rig, "/locks/team/a");
	for (int i = 0; i < 2; i++) {
		rig_expect_sent(rig, i == 0 ? "get " THEIRS("/locks") "-pokes"
		                            : "get " THEIRS("/locks/team") "-pokes");
		rig_answer_error(rig, ENSEMBLE_NONODE);
		rig_forget(rig);
		rig_answer_error(rig, ENSEMBLE_NONODE);
	}
	rig_expect_sent(rig, ""); /* our own root is not asked twice */
	assert_null(rig->pokes.under_way);
	rig_expect_told(rig, "poked");
}

static void not_below_too_many(void **state)
{
	struct rig *rig = *state;
	int asked = 0;

	poke(rig, "/locks/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20");
	for (; rig->pokes.under_way; asked++) {
		rig_answer_error(rig, ENSEMBLE_NONODE);
		rig_answer_error(rig, ENSEMBLE_NONODE);
	}
	assert_int_equal(asked, 16); /* our own root among them */
	rig_forget(rig);
}

/* A poke without an answer is tried again. */
static void tried_again(void **state)
{
	struct rig *rig = *state;

	poke(rig, "/locks/a");
	rig_disconnect(rig);
	rig_forget(rig);
	rig_run(rig, SECOND);
	rig_expect_sent(rig, ""); /* no contact */
	rig_connect(rig, RIG_SESSION);
	rig_answer_version(rig, 1);
	rig_forget(rig);
	rig_run(rig, SECOND - 1);
	rig_expect_sent(rig, "");
	rig_run(rig, 1);
	rig_expect_sent(rig, "get " THEIRS("/locks") "-pokes");
	rig_answer_data(rig, 0, "");
	rig_answer_error(rig, ENSEMBLE_UNKNOWN);
	rig_forget(rig);
	rig->now_us += SECOND;
	timers_run(&rig->lc.timers, rig->now_us);
	assert_non_null(strstr(rig->sent, "get " THEIRS("/locks") "-pokes"));
	rig_forget(rig);
	rig_end_session(rig, false);
	rig_run(rig, 60 * SECOND);
	assert_non_null(rig->pokes.under_way);
	assert_string_equal(rig->told, "ended");
	rig_connect(rig, RIG_SESSION + 1);
	rig_find_home(rig);
	rig_answer_version(rig, 1);
	rig_forget(rig);
	rig_run(rig, SECOND);
	assert_non_null(strstr(rig->sent, "get " THEIRS("/locks") "-pokes"));
}

static void heartbeat_without_answer(void **state)
{
	struct rig *rig = *state;

	poke(rig, "/locks/a");
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_UNKNOWN);
	rig_expect_sent(rig, "");
	rig_run(rig, SECOND);
	rig_expect_sent(rig, "get " THEIRS("/locks") "-pokes");
}

#define POKE_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		POKE_TEST(looks_at_those_named),
		POKE_TEST(looks_at_all),
		POKE_TEST(of_another_node),
		POKE_TEST(looks_again_on_each_connection),
		POKE_TEST(not_read_by_this_process),
		POKE_TEST(grants_wait_for_marks),
		POKE_TEST(grants_wait_for_all),
		POKE_TEST(grants_wait_without_a_node),
		POKE_TEST(is_read_again),
		POKE_TEST(its_node_is_deleted),
		POKE_TEST(its_node_cannot_be_made),
		POKE_TEST(making_it_is_a_step),
		POKE_TEST(its_node_is_made_once),
		POKE_TEST(adds_a_line),
		POKE_TEST(refused),
		POKE_TEST(denied),
		POKE_TEST(names_so_many_at_most),
		POKE_TEST(looks_for_its_root),
		POKE_TEST(finds_no_root),
		POKE_TEST(not_below_too_many),
		POKE_TEST(tried_again),
		POKE_TEST(heartbeat_without_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
