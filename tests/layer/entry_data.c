/* SPDX-License-Identifier: MIT
 *
 * One entry: its data is read, watched and written.
 */
#include "lock/taker.h"
#include "pure/limits.h"
#include "one_entry.h"

/* ---- reading ---- */

static void look(struct rig *rig)
{
	loss_by_letters(&rig->lc, NULL, 0, true);
}

static void is_asked_for_a_mark(void **state)
{
	struct rig *rig = *state;

	look(rig);
	rig_expect_sent(rig, "");
	make(rig);
	look(rig);
	rig_expect_sent(rig, "get /locks/build/#2-5");
	answer_get(rig, 100, RIG_SESSION, 1, "host: m0\nevict: root\n");
	rig_expect_told(rig, "7 marked by root, 7 changed");
	assert_int_equal(one.version, 1);
	look(rig);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_told(rig, "7 gone, 7 changed");
	look(rig);
	rig_answer_error(rig, ENSEMBLE_UNKNOWN);
	rig_expect_told(rig, "7 changed");
	assert_false(is_list_wanted());
	look(rig);
	rig_answer_error(rig, ENSEMBLE_GONE);
	rig_expect_told(rig, "");
	rig_forget(rig);
	one.wanted = false;
	look(rig);
	rig_expect_sent(rig, "");
}

/* Letters name the entries; what is no letter is passed over. */
static void is_named_by_a_letter(void **state)
{
	static const struct {
		const char *letters;
		bool asked;
	} rows[] = {
		{"0000000000000003\n", false},
		{"0000000000000002\n", true},
		{"0000000000000003\n0000000000000002\n", true},
		{"000000000000000x\n0000000000000002\nx", true},
		{"x0000000000000002\n", false},
		{"0000000000000002", false},
		{"", false},
	};
	struct rig *rig = *state;

	make(rig);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		rig->session.mailbox.len = 1;
		loss_by_letters(&rig->lc, rows[i].letters, strlen(rows[i].letters), false);
		if (rows[i].asked) {
			rig_expect_sent(rig, "get /locks/build/#2-5");
			answer_get(rig, 100, RIG_SESSION, 1, "");
		}
		rig_expect_sent(rig, "set " RIG_NODE "-pokes v0 ''"); /* it is done */
		rig_answer_version(rig, 1);
	}
}

/* Its letter stays until it is known whether it is marked. If the ensemble will not say, the next
 * connection asks. */
static void is_asked_again_for_a_mark(void **state)
{
	static const struct {
		enum ensemble_result result;
		const char *sent;
	} rows[] = {
		{ENSEMBLE_UNKNOWN, ""},
		{ENSEMBLE_REFUSED, "drop"},
		{ENSEMBLE_NOAUTH, "set " RIG_NODE "-pokes v0 ''"},
		{ENSEMBLE_NONODE, "set " RIG_NODE "-pokes v0 ''"},
	};
	struct rig *rig = *state;

	make(rig);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		rig->session.mailbox.len = 17;
		look(rig);
		assert_int_equal(rig->entries.looks, 1);
		rig_forget(rig);
		rig_answer_error(rig, rows[i].result);
		assert_int_equal(rig->entries.looks, 0);
		rig_expect_sent(rig, rows[i].sent);
		if (rig->unanswered)
			rig_answer_version(rig, 1);
	}
}

/* Another client has made a node of the same name: it is of another session, or made later. */
static void another_has_its_name(void **state)
{
	static const struct {
		int64_t czxid, session;
		const char *told;
	} rows[] = {
		{100, RIG_SESSION, "7 changed"},
		{100, RIG_SESSION + 1, "7 gone, 7 changed"},
		{101, RIG_SESSION, "7 gone, 7 changed"},
	};
	struct rig *rig = *state;

	make(rig);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		look(rig);
		answer_get(rig, rows[i].czxid, rows[i].session, 0, i == 0 ? "" : "evict: root\n");
		rig_expect_told(rig, rows[i].told);
	}
}

static void token_is_learnt(void **state)
{
	struct rig *rig = *state;

	create();
	created(ENSEMBLE_OK, rig_entry_path(&one, 5), NULL);
	look(rig);
	answer_get(rig, 104, RIG_SESSION, 0, "");
	assert_int_equal(one.czxid, 104);
}

/* ---- watching ---- */

static void is_watched(void **state)
{
	struct rig *rig = *state;

	entry_watch(&one);
	rig_expect_sent(rig, "");
	make(rig);
	entry_watch(&one);
	entry_watch(&one);
	rig_expect_sent(rig, "watch /locks/build/#2-5");
	assert_false(entry_is_seen(&one));
	answer_get(rig, 100, RIG_SESSION, 0, "");
	rig_expect_told(rig,
	                "7 changed"); /* and no news: the answer may be older than the last grant */
	assert_true(entry_is_seen(&one));
	entry_watch(&one);
	look(rig); /* the watch would report a mark */
	rig_expect_sent(rig, "");
	rig_reconnect(rig);
	rig_forget(rig);
	assert_false(entry_is_seen(&one));
	entry_watch(&one);
	rig_expect_sent(rig, "watch /locks/build/#2-5");
	one.lock->grant.held_back = true; /* that is asked behind a write */
	answer_get(rig, 100, RIG_SESSION, 0, "");
	rig_expect_told(rig, "7 seen, 7 changed");
	assert_true(entry_is_seen(&one));
	one.lock->grant.held_back = false;
}

static void is_not_watched_without_contact(void **state)
{
	struct rig *rig = *state;

	make(rig);
	rig_disconnect(rig);
	rig_forget(rig);
	entry_watch(&one);
	rig_expect_sent(rig, "");
}

static void is_gone_when_it_is_watched(void **state)
{
	static const struct {
		enum ensemble_result result;
		bool unwanted;
		const char *told;
		bool lists;
	} rows[] = {
		{ENSEMBLE_NONODE, false, "7 gone, 7 changed", false},
		{ENSEMBLE_NONODE, true, "7 gone, 7 changed", false},
		{ENSEMBLE_UNKNOWN, false, "7 changed", true},
		{ENSEMBLE_UNKNOWN, true, "7 changed", false},
		{ENSEMBLE_NOAUTH, false, "7 later, 7 changed", false},
		{ENSEMBLE_GONE, false, "", false},
	};
	struct rig *rig = *state;

	make(rig);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		one.wanted = !rows[i].unwanted;
		entry_watch(&one);
		rig_answer_error(rig, rows[i].result);
		rig_expect_told(rig, rows[i].told);
		assert_int_equal(is_list_wanted(), rows[i].lists);
		assert_false(entry_is_seen(&one));
	}
	one.wanted = true;
	entry_watch(&one);
	answer_get(rig, 101, RIG_SESSION, 0, "");
	rig_expect_told(rig, "7 gone, 7 changed");
	assert_false(entry_is_seen(&one));
}

/* ---- writing ---- */

#define DATA "'host: m0|pid: 7|uid: 5|command: sh|session_timeout: 15000|held_since: 500|'"

static void since_is_written(void **state)
{
	struct rig *rig = *state;

	make(rig);
	look(rig);
	answer_get(rig, 100, RIG_SESSION, 4, "");
	entry_set_absent(&one);
	make(rig); /* another node, of version 0 */
	entry_write_since(&one);
	rig_expect_sent(rig, ""); /* the lock is not held */
	one.data.held_since_ms = 500;
	entry_write_since(&one);
	rig_expect_sent(rig, "set /locks/build/#2-5 v0 " DATA);
	entry_write_since(&one);
	rig_expect_sent(rig, "");
	rig_answer_version(rig, 1);
	rig_expect_told(rig, "alive, 7 changed");
	entry_write_since(&one);
	rig_expect_sent(rig, "");
	assert_int_equal(one.version, 1);
	assert_int_equal(rig->entries.writers.going, 0);
}

/* A write of the data is a step of the lease, and counts from the time it was sent. */
static void writing_is_a_step(void **state)
{
	struct rig *rig = *state;

	make(rig);
	one.data.held_since_ms = 500;
	for (int i = 0; i < 3; i++) {
		rig->now_us += 2 * SECOND;
		one.data.dirty = true;
		entry_write(&one);
		rig_answer_version(rig, i + 1);
	}
	expect(strstr(rig->told, "extended"), "the lease is not extended: %s", rig->told);
}

static void written_again(void **state)
{
	static const char text[] = "set /locks/build/#2-5 v1 'host: m0|pid: 7|uid: 5|command: sh|"
				   "session_timeout: 15000|held_since: 500|reason: why|'";
	struct rig *rig = *state;

	make(rig);
	one.data.held_since_ms = 500;
	entry_write_since(&one);
	rig_forget(rig);
	one.data.reason = strdup("why");
	one.data.dirty = true;
	entry_write(&one); /* sent when the first write is answered */
	rig_expect_sent(rig, "");
	rig_answer_version(rig, 1);
	rig_expect_sent(rig, text);
	rig_answer_error(rig, ENSEMBLE_UNKNOWN);
	rig_expect_sent(rig, text);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_REFUSED);
	rig_expect_told(rig, "7 changed");
	rig_expect_sent(rig, "");
}

/* Another client has written the data: it is read first, or a mark could be wiped out. */
static void read_before_it_is_written_again(void **state)
{
	struct rig *rig = *state;

	make(rig);
	entry_watch(&one);
	answer_get(rig, 100, RIG_SESSION, 0, "");
	one.data.held_since_ms = 500;
	entry_write_since(&one);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_BADVERSION);
	rig_expect_sent(rig, "watch /locks/build/#2-5");
	answer_get(rig, 100, RIG_SESSION, 4, "x");
	rig_expect_sent(rig, "set /locks/build/#2-5 v4 " DATA);
	rig_expect_told(rig, "7 changed, 7 changed");
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_told(rig, "7 gone, 7 changed");
	rig_expect_sent(rig, "");
}

static void not_written_when(void **state)
{
	struct rig *rig = *state;

	make(rig);
	one.data.held_since_ms = 500;
	rig_disconnect(rig);
	rig_forget(rig);
	entry_write_since(&one);
	rig_expect_sent(rig, "");
	rig_reconnect(rig);
	rig_forget(rig);
	begin_deletion();
	entry_write(&one);
	rig_expect_sent(rig, "");
	deleted(ENSEMBLE_UNKNOWN);
	entry_write(&one);
	rig_expect_sent(rig, "set /locks/build/#2-5 v0 " DATA);
	rig_answer_error(rig, ENSEMBLE_GONE);
}

/* Only so many writes at a time; the others wait for a turn, which an absent entry gives up. */
static void others_come_first(void **state)
{
	struct rig *rig = *state;

	make(rig);
	one.data.held_since_ms = 500;
	rig->entries.writers.going = DATA_WRITES_MAX;
	entry_write_since(&one);
	entry_write(&one);
	rig_expect_sent(rig, "");
	assert_non_null(rig->entries.writers.users);
	rig->entries.writers.going = 0;
}

/* The next entry is written when an answer comes. */
static void written_in_turn(void **state)
{
	struct rig *rig = *state;
	struct entry other;

	make(rig);
	rig_make_entry(rig, &other, "other", 8, LC_EXCLUSIVE);
	entry_begin(&other);
	other.pending++;
	other.sent_us = rig->now_us;
	entry_created(&other, &(struct ensemble_answer){.path = rig_entry_path(&other, 6)});
	one.data.held_since_ms = 500;
	other.data.held_since_ms = 0;
	rig->entries.writers.going = DATA_WRITES_MAX - DATA_WRITES_MAX / GATE_ROOT_PART - 1;
	entry_write_since(&one);
	entry_write_since(&other);
	rig_expect_sent(rig, "set /locks/build/#2-5 v0 " DATA);
	rig_answer_version(rig, 1);
	assert_memory_equal(rig->sent, "set /locks/other/#3-6 v0 'host: m0|pid: 8|", 42);
	rig->entries.writers.going = 1;
	rig_answer_version(rig, 1);
	entry_set_absent(&other);
	rig_free_entry(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENTRY_TEST(is_asked_for_a_mark),
		ENTRY_TEST(is_named_by_a_letter),
		ENTRY_TEST(is_asked_again_for_a_mark),
		ENTRY_TEST(another_has_its_name),
		ENTRY_TEST(token_is_learnt),
		ENTRY_TEST(is_watched),
		ENTRY_TEST(is_not_watched_without_contact),
		ENTRY_TEST(is_gone_when_it_is_watched),
		ENTRY_TEST(since_is_written),
		ENTRY_TEST(writing_is_a_step),
		ENTRY_TEST(written_again),
		ENTRY_TEST(read_before_it_is_written_again),
		ENTRY_TEST(not_written_when),
		ENTRY_TEST(others_come_first),
		ENTRY_TEST(written_in_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
