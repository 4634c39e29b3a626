/* SPDX-License-Identifier: MIT
 *
 * One entry: what each answer to its create, its delete, its reads and writes makes of it, and
 * what is told above. Creates and deletes are sent by batch.c.
 */
#include "rig.h"

#include "record.h"

#include <stdio.h>
#include <string.h>

static struct entry one;

static int set_up(void **state)
{
	struct rig *rig = rig_begin_ready();

	rig_make_entry(rig, &one, "build", 7, LC_EXCLUSIVE);
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	rig_forget(rig);
	rig_end_session(rig, false);
	if (one.state != ENTRY_ABSENT)
		entry_set_absent(&one);
	rig_free_entry(&one);
	rig_finish(rig);
	return 0;
}

static void create(void)
{
	entry_begin(&one);
	assert_int_equal(one.state, ENTRY_CREATING);
	one.pending++;
	one.sent_us = one.lc->session->lease.answered_us;
}

static void created(enum ensemble_result result, const char *path, const struct ensemble_stat *stat)
{
	entry_created(&one,
	              &(struct ensemble_answer){.result = result, .path = path, .stat = stat});
}

static struct ensemble_stat stat_of(int64_t czxid, int64_t session)
{
	return (struct ensemble_stat){.czxid = czxid, .mzxid = czxid, .ephemeral_owner = session};
}

static void make(struct rig *rig)
{
	struct ensemble_stat stat = stat_of(100, RIG_SESSION);

	create();
	created(ENSEMBLE_OK, rig_entry_path(&one, 5), &stat);
	rig_forget(rig);
}

static void answer_get(struct rig *rig, int64_t czxid, int64_t session, int32_t version,
                       const char *data)
{
	struct ensemble_stat stat = stat_of(czxid, session);

	stat.version = version;
	rig_answer(rig, &(struct ensemble_answer){
				.stat = &stat, .data = data, .data_len = (int)strlen(data)});
}

static void begin_deletion(void)
{
	one.wanted = false;
	entry_set_deleting(&one, true);
	one.pending++;
	one.sent_us = one.lc->session->lease.answered_us;
}

static void deleted(enum ensemble_result result)
{
	entry_deleted(&one, &(struct ensemble_answer){.result = result});
}

static bool is_list_wanted(void)
{
	bool wanted = one.lock->want_list;

	lock_unwant_list(one.lock);
	return wanted;
}

/* ---- creating ---- */

static void is_made(void **state)
{
	struct rig *rig = *state;
	struct ensemble_stat stat = stat_of(100, RIG_SESSION);
	char *path;

	create();
	assert_false(entry_is_queued(&one));
	created(ENSEMBLE_OK, rig_entry_path(&one, 5), &stat);
	rig_expect_told(rig, "alive, 7 present made, 7 changed");
	assert_true(entry_is_queued(&one));
	assert_false(entry_is_seen(&one));
	assert_int_equal(one.number, 5);
	assert_int_equal(one.czxid, 100);
	assert_int_equal(one.version, 0);
	assert_int_equal(one.pending, 0);
	assert_true(one.lock->batch.last_write_ok);
	assert_false(is_list_wanted());
	path = entry_path(&one);
	assert_string_equal(path, "/locks/build/"
	                          "_c_00000000-0000-0001-0000-000000000002-m0.7-lock-0000000005");
	free(path);
}

static void is_made_in_a_transaction(void **state)
{
	struct rig *rig = *state;

	create();
	created(ENSEMBLE_OK, rig_entry_path(&one, 5), NULL);
	rig_expect_told(rig, "alive, 7 present made, 7 changed");
	assert_int_equal(one.czxid, 0);
}

/* Its create is a step of the lease, from when it was sent. */
static void is_a_step(void **state)
{
	struct rig *rig = *state;

	for (int i = 0; i < 3; i++) {
		rig->now_us += 2 * SECOND;
		create();
		one.sent_us = rig->now_us;
		created(ENSEMBLE_OK, rig_entry_path(&one, i), NULL);
		entry_set_absent(&one);
	}
	expect(strstr(rig->told, "extended"), "the lease is not extended: %s", rig->told);
}

static void is_refused(void **state)
{
	static const struct {
		enum ensemble_result result;
		const char *told;
	} rows[] = {
		{ENSEMBLE_NONODE, "7 absent, 7 not made: ENOENT, 7 changed"},
		{ENSEMBLE_NOAUTH, "7 absent, 7 not made: EACCES, 7 changed"},
		{ENSEMBLE_REFUSED, "7 absent, 7 not made: ENOLCK, 7 changed"},
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		one.lock->batch.last_write_ok = true;
		create();
		created(rows[i].result, NULL, NULL);
		rig_expect_told(rig, rows[i].told);
		assert_int_equal(one.state, ENTRY_ABSENT);
		assert_string_equal(one.name, "");
		assert_false(one.lock->batch.last_write_ok);
		assert_int_equal(strlen(rig->reported) > 0, rows[i].result == ENSEMBLE_REFUSED);
	}
	rig_expect_reported(rig, "/locks/build: the ensemble refuses entries");
}

static void session_ends_first(void **state)
{
	struct rig *rig = *state;

	create();
	created(ENSEMBLE_GONE, NULL, NULL);
	rig_expect_told(rig, "");
	assert_int_equal(one.pending, 0);
}

static void is_not_sent(void **state)
{
	struct rig *rig = *state;

	one.lock->batch.last_write_ok = true;
	create();
	entry_unsent(&one);
	rig_expect_told(rig, "7 absent, 7 changed");
	assert_false(one.lock->batch.last_write_ok);
	make(rig);
	begin_deletion();
	entry_unsent(&one);
	rig_expect_told(rig, "7 changed");
	assert_int_equal(one.state, ENTRY_PRESENT);
	assert_int_equal(one.pending, 0);
}

/* ---- creates of unknown outcome ---- */

static void become_unknown(struct rig *rig)
{
	create();
	created(ENSEMBLE_UNKNOWN, NULL, NULL);
	rig_expect_told(rig, "7 changed");
	assert_int_equal(one.state, ENTRY_UNKNOWN);
	assert_true(one.lock->unresolved);
	assert_true(is_list_wanted());
}

static const char *node_name(int number)
{
	return strrchr(rig_entry_path(&one, number), '/') + 1;
}

static void is_unknown(void **state)
{
	struct rig *rig = *state;

	become_unknown(rig);
	assert_false(entry_is_queued(&one));
	assert_true(entry_may_be(&one, node_name(5)));
	assert_false(entry_may_be(&one, "_c_00000000-0000-0001-0000-000000000003-m0.7-lock-"
	                                "0000000005"));
	assert_false(entry_may_be(&one, "_c_00000000-0000-0001-0000-000000000002-m1.7-lock-"
	                                "0000000005"));
	entry_not_found(&one);
	rig_expect_told(rig, "7 absent");
	assert_false(entry_may_be(&one, node_name(5)));
}

static void is_found(void **state)
{
	struct rig *rig = *state;

	become_unknown(rig);
	entry_found(&one, node_name(5), 1);
	rig_expect_sent(rig, "get /locks/build/#2-5");
	answer_get(rig, 100, RIG_SESSION, 3, "");
	rig_expect_told(rig, "7 present found, 7 changed");
	assert_int_equal(one.number, 5);
	assert_int_equal(one.czxid, 100);
	assert_int_equal(one.version, 3);
	assert_true(is_list_wanted());
}

static void is_found_marked(void **state)
{
	struct rig *rig = *state;

	become_unknown(rig);
	entry_found(&one, node_name(5), 1);
	answer_get(rig, 100, RIG_SESSION, 1, "evict: root\n");
	rig_expect_told(rig, "7 present found, 7 marked by root, 7 changed");
}

/* A copy, which another client has made. */
static void a_copy_is_found(void **state)
{
	struct rig *rig = *state;

	become_unknown(rig);
	entry_found(&one, node_name(5), 1);
	answer_get(rig, 100, RIG_SESSION + 1, 0, "");
	rig_expect_told(rig, "7 absent, 7 changed");
	assert_true(is_list_wanted());
}

static void is_found_among_copies(void **state)
{
	struct rig *rig = *state;

	become_unknown(rig);
	for (int i = 4; i <= 6; i++)
		entry_found(&one, node_name(i), 1);
	rig_expect_sent(rig, "get /locks/build/#2-4, get /locks/build/#2-5, get /locks/build/#2-6");
	answer_get(rig, 99, RIG_SESSION + 1, 0, "");
	rig_expect_told(rig, "");
	answer_get(rig, 100, RIG_SESSION, 0, "");
	rig_expect_told(rig, "7 present found");
	assert_false(is_list_wanted());
	answer_get(rig, 101, RIG_SESSION + 1, 0, "");
	rig_expect_told(rig, "7 changed");
	assert_true(is_list_wanted());
	assert_int_equal(one.number, 5);
}

/* One of those that may be it could not be asked: it may still be there. */
static void one_could_not_be_asked(void **state)
{
	struct rig *rig = *state;

	become_unknown(rig);
	entry_found(&one, node_name(4), 1);
	entry_found(&one, node_name(5), 1);
	rig_answer_error(rig, ENSEMBLE_UNKNOWN);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_told(rig, "7 changed");
	assert_int_equal(one.state, ENTRY_UNKNOWN);
	assert_true(is_list_wanted());
	rig_forget(rig);
	entry_found(&one, node_name(4), 2);
	rig_expect_sent(rig, "get /locks/build/#2-4");
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_told(rig, "7 absent, 7 changed");
}

/* The nodes of one listing are asked about, and not those of the next one meanwhile. */
static void one_listing_at_a_time(void **state)
{
	struct rig *rig = *state;

	become_unknown(rig);
	entry_found(&one, node_name(4), 1);
	entry_found(&one, node_name(5), 2);
	rig_expect_sent(rig, "get /locks/build/#2-4");
	assert_int_equal(one.listed, 2);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_told(rig, "7 absent, 7 changed");
}

static void session_ends_while_it_is_looked_for(void **state)
{
	struct rig *rig = *state;

	become_unknown(rig);
	entry_found(&one, node_name(4), 1);
	rig_answer_error(rig, ENSEMBLE_GONE);
	rig_expect_told(rig, "");
	assert_false(is_list_wanted());
	assert_int_equal(one.pending, 0);
}

/* ---- deleting ---- */

static void is_deleted(void **state)
{
	struct rig *rig = *state;

	make(rig);
	one.first = one.adjacent = true;
	begin_deletion();
	assert_true(entry_is_queued(&one));
	deleted(ENSEMBLE_OK);
	rig_expect_told(rig, "alive, 7 absent, 7 changed");
	assert_true(one.lock->batch.last_write_ok);
	assert_false(one.first || one.adjacent);
	assert_false(is_list_wanted());
}

/* No write was answered OK: no evidence. */
static void was_deleted_already(void **state)
{
	struct rig *rig = *state;

	make(rig);
	one.lock->obstacle = OBSTACLE_LEAVER;
	begin_deletion();
	deleted(ENSEMBLE_NONODE);
	rig_expect_told(rig, "7 absent, 7 changed");
	assert_true(is_list_wanted());
	assert_false(one.lock->batch.last_write_ok);
	one.lock->obstacle = OBSTACLE_OTHER;
}

static void is_deleted_again(void **state)
{
	struct rig *rig = *state;

	make(rig);
	one.lock->obstacle = OBSTACLE_LEAVER;
	begin_deletion();
	deleted(ENSEMBLE_UNKNOWN);
	rig_expect_told(rig, "7 changed");
	assert_int_equal(one.state, ENTRY_PRESENT);
	assert_string_equal(rig->reported, "");
	begin_deletion();
	deleted(ENSEMBLE_REFUSED);
	rig_expect_told(rig, "7 later, 7 changed");
	assert_int_equal(one.state, ENTRY_PRESENT);
	rig_expect_reported(rig, "lock-0000000005: cannot be deleted, trying again");
	assert_false(is_list_wanted());
	begin_deletion();
	deleted(ENSEMBLE_GONE);
	rig_expect_told(rig, "");
	one.lock->obstacle = OBSTACLE_OTHER;
}

/* ---- which node it is ---- */

static struct entry *found(struct lock *lock, const char *znode)
{
	struct entry_name name;

	assert_true(name_parse(znode, &name));
	return entry_of_node(lock, znode, &name);
}

static void by_its_full_name(void **state)
{
	struct rig *rig = *state;
	struct entry_name name;
	struct entry other;

	rig_make_entry(rig, &other, "other", 8, LC_SHARED);
	assert_null(found(one.lock, node_name(5)));
	make(rig);
	assert_ptr_equal(found(one.lock, node_name(5)), &one);
	assert_null(found(one.lock, node_name(6)));
	assert_null(found(other.lock, node_name(5)));
	assert_true(name_parse(node_name(6), &name)); /* a copy bears its UUID */
	assert_ptr_equal(entry_named(one.lock, &name), &one);
	assert_null(entry_named(other.lock, &name));
	name.session_half++;
	assert_null(entry_named(one.lock, &name));
	one.gone = true;
	assert_null(found(one.lock, node_name(5)));
	one.gone = false;
	begin_deletion();
	assert_ptr_equal(found(one.lock, node_name(5)), &one);
	deleted(ENSEMBLE_OK);
	rig_free_entry(&other);
}

/* ---- reading ---- */

static void is_asked_for_a_mark(void **state)
{
	struct rig *rig = *state;

	entry_check_mark(&one);
	rig_expect_sent(rig, "");
	make(rig);
	entries_check_marks(&rig->lc);
	rig_expect_sent(rig, "get /locks/build/#2-5");
	answer_get(rig, 100, RIG_SESSION, 1, "host: m0\nevict: root\n");
	rig_expect_told(rig, "7 marked by root, 7 changed");
	assert_int_equal(one.version, 1);
	entry_check_mark(&one);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_told(rig, "7 changed");
	assert_true(is_list_wanted());
	entry_check_mark(&one);
	rig_answer_error(rig, ENSEMBLE_UNKNOWN);
	rig_expect_told(rig, "7 changed");
	assert_false(is_list_wanted());
	entry_check_mark(&one);
	rig_answer_error(rig, ENSEMBLE_GONE);
	rig_expect_told(rig, "");
	rig_forget(rig);
	one.wanted = false;
	entry_check_mark(&one);
	rig_expect_sent(rig, "");
}

/* Another client has made a node of its name: of another session, or a later one. */
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
		entry_check_mark(&one);
		answer_get(rig, rows[i].czxid, rows[i].session, 0, i == 0 ? "" : "evict: root\n");
		rig_expect_told(rig, rows[i].told);
	}
}

static void token_is_learnt(void **state)
{
	struct rig *rig = *state;

	create();
	created(ENSEMBLE_OK, rig_entry_path(&one, 5), NULL);
	entry_check_mark(&one);
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
	rig_expect_told(rig, "7 seen, 7 changed");
	assert_true(entry_is_seen(&one));
	entry_watch(&one);
	entry_check_mark(&one); /* a watch would tell */
	rig_expect_sent(rig, "");
	rig_reconnect(rig);
	rig_forget(rig);
	assert_false(entry_is_seen(&one));
	entry_watch(&one);
	rig_expect_sent(rig, "watch /locks/build/#2-5");
	answer_get(rig, 100, RIG_SESSION, 0, "");
	assert_true(entry_is_seen(&one));
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
		{ENSEMBLE_NONODE, true, "7 changed", false},
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
	entry_check_mark(&one);
	answer_get(rig, 100, RIG_SESSION, 4, "");
	entry_set_absent(&one);
	make(rig); /* another node, of version 0 */
	entry_write_since(&one);
	rig_expect_sent(rig, ""); /* it is not held */
	one.held_since_ms = 500;
	entry_write_since(&one);
	rig_expect_sent(rig, "set /locks/build/#2-5 v0 " DATA);
	entry_write_since(&one);
	rig_expect_sent(rig, "");
	rig_answer_version(rig, 1);
	rig_expect_told(rig, "alive, 7 changed");
	entry_write_since(&one);
	rig_expect_sent(rig, "");
	assert_int_equal(one.version, 1);
	assert_int_equal(rig->entries.writing, 0);
}

/* To write it is a step of the lease, from when it was sent. */
static void writing_is_a_step(void **state)
{
	struct rig *rig = *state;

	make(rig);
	one.held_since_ms = 500;
	for (int i = 0; i < 3; i++) {
		rig->now_us += 2 * SECOND;
		one.data_dirty = true;
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
	one.held_since_ms = 500;
	entry_write_since(&one);
	rig_forget(rig);
	one.reason = strdup("why");
	one.data_dirty = true;
	entry_write(&one); /* when this one is answered */
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

/* Somebody has written to it: that is read first, or a mark could be wiped out. */
static void read_before_it_is_written_again(void **state)
{
	struct rig *rig = *state;

	make(rig);
	entry_watch(&one);
	answer_get(rig, 100, RIG_SESSION, 0, "");
	one.held_since_ms = 500;
	entry_write_since(&one);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_BADVERSION);
	rig_expect_sent(rig, "watch /locks/build/#2-5");
	answer_get(rig, 100, RIG_SESSION, 4, "x");
	rig_expect_sent(rig, "set /locks/build/#2-5 v4 " DATA);
	rig_expect_told(rig, "7 changed, 7 seen, 7 changed");
	rig_answer_error(rig, ENSEMBLE_NONODE);
	assert_true(is_list_wanted());
	rig_expect_sent(rig, "");
}

static void not_written_when(void **state)
{
	struct rig *rig = *state;

	make(rig);
	one.held_since_ms = 500;
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

/* Only so many at a time; then users take turns, and one that goes has none any more. */
static void others_come_first(void **state)
{
	struct rig *rig = *state;

	make(rig);
	one.held_since_ms = 500;
	rig->entries.writing = LC_DATA_WRITES_MAX;
	entry_write_since(&one);
	entry_write(&one);
	rig_expect_sent(rig, "");
	rig->entries.writing--;
	entry_write(&one); /* its turn comes with an answer */
	rig_expect_sent(rig, "");
	assert_non_null(rig->entries.writers.by_uid);
	rig->entries.writing = 0;
}

/* The next one is written when an answer comes. */
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
	one.held_since_ms = 500;
	other.held_since_ms = 0;
	rig->entries.writing = LC_DATA_WRITES_MAX - 1;
	entry_write_since(&one);
	entry_write_since(&other);
	rig_expect_sent(rig, "set /locks/build/#2-5 v0 " DATA);
	rig_answer_version(rig, 1);
	assert_memory_equal(rig->sent, "set /locks/other/#3-6 v0 'host: m0|pid: 8|", 42);
	rig->entries.writing = 1;
	rig_answer_version(rig, 1);
	entry_set_absent(&other);
	rig_free_entry(&other);
}

#define ENTRY_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENTRY_TEST(is_made),
		ENTRY_TEST(is_made_in_a_transaction),
		ENTRY_TEST(is_a_step),
		ENTRY_TEST(is_refused),
		ENTRY_TEST(session_ends_first),
		ENTRY_TEST(is_not_sent),
		ENTRY_TEST(is_unknown),
		ENTRY_TEST(is_found),
		ENTRY_TEST(is_found_marked),
		ENTRY_TEST(a_copy_is_found),
		ENTRY_TEST(is_found_among_copies),
		ENTRY_TEST(one_could_not_be_asked),
		ENTRY_TEST(one_listing_at_a_time),
		ENTRY_TEST(session_ends_while_it_is_looked_for),
		ENTRY_TEST(is_deleted),
		ENTRY_TEST(was_deleted_already),
		ENTRY_TEST(is_deleted_again),
		ENTRY_TEST(by_its_full_name),
		ENTRY_TEST(is_asked_for_a_mark),
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
