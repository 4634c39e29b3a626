/* SPDX-License-Identifier: MIT
 *
 * Taking an entry away: which users may, what is written to which entry, and what follows.
 */
#include "takers.h"

#include "forged.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define THEIRS "_c_01234567-89ab-cdef-0123-456789abcdef-m1.7-lock-0000000003"
#define PATH "/locks/a/" THEIRS
#define RECORD(uid) "host: m1\npid: 7\nuid: " uid "\ncommand: vi\nsession_timeout: 40000\n"
#define MARKED "evict: ann|host: m1|pid: 7|uid: 8|command: vi|session_timeout: 40000|"
#define BOX(root) root "/.zklockfs/0123456789abcdef-pokes"
#define LETTER "0123456789abcdef|"
#define MARK "set " PATH " v3 '" MARKED "'"
#define LOCK_OF(uid) "zklockfs: 1\nuid: " uid "\ngid: 1\nmode: 755\ndoor_mode: 644\n\n"

static void done(void *ctx, int err)
{
	rig_tell(ctx, err < 0 ? "%s" : "done", strerrorname_np(-err));
}

static struct lc_call *evict(struct rig *rig, const char *znode, uid_t uid, int64_t token)
{
	struct lc_call *call;

	assert_int_equal(lc_evict(&rig->lc, "a", znode,
	                          &(struct lc_evictor){.uid = uid, .name = "ann", .token = token},
	                          done, rig, &call),
	                 0);
	return call;
}

/* An ephemeral node of another session. */
static void answer_entry(struct rig *rig, int32_t version, const char *data)
{
	struct ensemble_stat stat = {.czxid = 77, .version = version, .ephemeral_owner = 9};

	rig_answer(rig, &(struct ensemble_answer){
				.stat = &stat, .data = data, .data_len = (int)strlen(data)});
}

static void answer_lock(struct rig *rig, int32_t version, const char *data)
{
	struct ensemble_stat stat = {.czxid = 50, .version = version};

	rig_answer(rig, &(struct ensemble_answer){
				.stat = &stat, .data = data, .data_len = (int)strlen(data)});
}

/* The entry, of version 3, and its mount's mailbox, of version 9. */
static void answer_both(struct rig *rig, const char *record, const char *letters)
{
	answer_entry(rig, 3, record);
	answer_entry(rig, 9, letters);
}

/* ---- the mark ---- */

static void marked(void **state)
{
	struct rig *rig = *state;

	evict(rig, THEIRS, 0, 0);
	rig_expect_sent(rig, "get " PATH);
	answer_entry(rig, 3, RECORD("8"));
	rig_expect_sent(rig, "get " BOX("/locks"));
	answer_entry(rig, 9, "0000000000000002\n");
	rig_expect_sent(rig, MARK " + set " BOX("/locks") " v9 '0000000000000002|" LETTER "'");
	rig_expect_reported(
		rig,
		"marked for eviction by ann; deleted at the latest 40 s after its mount was told");
	rig_expect_told(rig, "");
	rig_answer_version(rig, 4);
	rig_expect_sent(rig, "");
	rig_expect_told(rig, "done");
}

/* Somebody has written to the entry or the mailbox meanwhile: that must not be wiped out. Or one
 * of them is gone. */
static void changed_meanwhile(void **state)
{
	static const enum ensemble_result results[] = {ENSEMBLE_BADVERSION, ENSEMBLE_NONODE};
	struct rig *rig = *state;

	evict(rig, THEIRS, 0, 0);
	for (size_t i = 0; i < LENGTH(results); i++) {
		answer_both(rig, RECORD("8"), "");
		rig_forget(rig);
		rig_answer_error(rig, results[i]);
		rig_expect_sent(rig, "get " PATH);
	}
	answer_entry(rig, 4, RECORD("8"));
	answer_entry(rig, 11, "");
	assert_string_equal(rig_unanswered(rig), "set " PATH " v4 '" MARKED
	                                         "' + set " BOX("/locks") " v11 '" LETTER "'");
}

/* Its mount may have had no mailbox then. */
static void marked_already(void **state)
{
	struct rig *rig = *state;

	evict(rig, THEIRS, 0, 0);
	answer_both(rig, "evict: bob\n" RECORD("8"), "");
	assert_string_equal(rig_unanswered(rig),
	                    "check " PATH " v3 + set " BOX("/locks") " v9 '" LETTER "'");
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_expect_told(rig, "done");
}

/* The other mount may have another root: each is tried, from the top, after a sync. */
static void looks_for_the_mailbox(void **state)
{
	struct rig *rig = *state;

	evict(rig, THEIRS, 0, 0);
	answer_entry(rig, 3, RECORD("8"));
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_sent(rig, "sync " PATH ", get " PATH);
	rig_answer_error(rig, ENSEMBLE_OK);
	answer_entry(rig, 3, RECORD("8"));
	rig_expect_sent(rig, "get " BOX("/locks"));
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_sent(rig, "get " BOX("/locks/a")); /* our own root is not asked twice */
	rig_answer_error(rig, ENSEMBLE_NOAUTH);
	rig_expect_sent(rig, MARK);
	rig_answer_version(rig, 4);
	rig_expect_told(rig, "done");
	/* It is marked, and there is nobody to tell. */
	evict(rig, THEIRS, 0, 0);
	rig_forget(rig);
	answer_entry(rig, 4, "evict: bob\n" RECORD("8"));
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_answer_error(rig, ENSEMBLE_OK);
	answer_entry(rig, 4, "evict: bob\n" RECORD("8"));
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_told(rig, "done");
	assert_string_equal(rig_unanswered(rig), "");
}

static void not_below_too_many(void **state)
{
	struct rig *rig = *state;
	struct lc_call *call;
	int asked = 0;

	assert_int_equal(lc_evict(&rig->lc, "1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18", THEIRS,
	                          &(struct lc_evictor){.name = "ann"}, done, rig, &call),
	                 0);
	answer_entry(rig, 3, RECORD("8"));
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_answer_error(rig, ENSEMBLE_OK);
	answer_entry(rig, 3, RECORD("8"));
	for (; strncmp(rig_unanswered(rig), "get ", 4) == 0; asked++)
		rig_answer_error(rig, ENSEMBLE_NONODE);
	assert_int_equal(asked, 16); /* our own root among them */
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_expect_told(rig, "done");
}

/* The answer of the mark was lost, and when it is asked again its mount has deleted the entry. */
static void marked_and_gone(void **state)
{
	struct rig *rig = *state;

	evict(rig, THEIRS, 0, 0);
	answer_both(rig, RECORD("8"), "");
	takers_reconnect(rig);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_told(rig, "done");
}

static void no_entry(void **state)
{
	struct rig *rig = *state;
	struct lc_call *call;

	assert_int_equal(lc_evict(&rig->lc, "a", "value", &(struct lc_evictor){.name = "ann"}, done,
	                          rig, &call),
	                 -ENOENT);
	evict(rig, THEIRS, 0, 76);
	answer_entry(rig, 3, RECORD("8"));
	rig_expect_told(rig, "ENOENT"); /* another entry of that name */
	evict(rig, THEIRS, 0, 77);
	answer_entry(rig, 3, RECORD("8"));
	assert_string_equal(rig_unanswered(rig), "get " BOX("/locks"));
}

/* ---- entries of other clients, and nodes that are not ephemeral ---- */

static void deleted_at_once(void **state)
{
	struct rig *rig = *state;

	evict(rig, OTHER(1), 0, 0);
	answer_entry(rig, 3, "");
	rig_expect_sent(rig, "get /locks/a/" OTHER(1) ", delete /locks/a/" OTHER(1) " v3");
	rig_expect_reported(rig, "evicted by ann");
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_expect_told(rig, "done");
	evict(rig, THEIRS, 0, 0);
	answer_lock(rig, 3, RECORD("8")); /* not ephemeral: no mount looks after it */
	rig_expect_sent(rig, "get " PATH ", delete " PATH " v3");
	rig_answer_error(rig, ENSEMBLE_NONODE); /* it is gone, as wanted */
	rig_expect_told(rig, "done");
}

static void deleted_in_another_version(void **state)
{
	struct rig *rig = *state;

	evict(rig, OTHER(1), 0, 0);
	answer_entry(rig, 3, "");
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_BADVERSION);
	rig_expect_sent(rig, "get /locks/a/" OTHER(1));
	rig_answer_error(rig, ENSEMBLE_NONODE); /* a delete was sent before: success */
	rig_expect_told(rig, "done");
	evict(rig, OTHER(1), 0, 0);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_told(rig, "ENOENT");
}

/* ---- users who may ---- */

static void who_may(void **state)
{
	static const struct {
		const char *znode;
		uid_t uid;
		const char *owner; /* of the lock; NULL: the lock is not read */
		bool may;
	} rows[] = {
		{THEIRS, 0, NULL, true}, {THEIRS, 8, NULL, true},   {THEIRS, 7, "7", true},
		{THEIRS, 7, "8", false}, {OTHER(1), 8, "7", false}, {OTHER(1), 8, "8", true},
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		char data[100];

		evict(rig, rows[i].znode, rows[i].uid, 0);
		rig_forget(rig);
		answer_entry(rig, 3, RECORD("8"));
		if (rows[i].owner) {
			rig_expect_sent(rig, "get /locks/a");
			snprintf(data, sizeof(data),
			         "zklockfs: 1\nuid: %s\ngid: 1\nmode: 755\n"
			         "door_mode: 644\n\n",
			         rows[i].owner);
			answer_lock(rig, 6, data);
		}
		if (!rows[i].may) {
			rig_expect_told(rig, "EPERM");
			continue;
		}
		if (rows[i].owner)
			answer_entry(rig, 3, RECORD("8"));
		if (strcmp(rows[i].znode, THEIRS) == 0)
			answer_entry(rig, 9, "");
		/* The owner must be the same when the mark is written. */
		expect(!strstr(rig->sent, "+ check /locks/a v6") == !rows[i].owner, "row %zu", i);
		rig_answer_error(rig, ENSEMBLE_REFUSED);
		rig_expect_told(rig, "ENOLCK");
	}
}

/* The lock's owner is read again before each write. */
static void owner_changes(void **state)
{
	struct rig *rig = *state;

	evict(rig, THEIRS, 7, 0);
	answer_entry(rig, 3, RECORD("8"));
	answer_lock(rig, 6, LOCK_OF("7"));
	answer_both(rig, RECORD("8"), "");
	rig_answer_error(rig, ENSEMBLE_BADVERSION);
	answer_entry(rig, 3, RECORD("8"));
	assert_string_equal(rig_unanswered(rig), "get /locks/a");
	answer_lock(rig, 7, LOCK_OF("8"));
	rig_expect_told(rig, "EPERM");
}

/* The user in the data of a node that is not ephemeral is not believed. */
static void forged_user(void **state)
{
	struct rig *rig = *state;

	evict(rig, THEIRS, 8, 0);
	rig_forget(rig);
	answer_lock(rig, 3, RECORD("8")); /* not ephemeral */
	rig_expect_sent(rig, "get /locks/a");
}

/* ---- afterwards ---- */

/* Marks the entry; all requests are answered. */
static void mark_it(struct rig *rig)
{
	evict(rig, THEIRS, 0, 0);
	answer_both(rig, RECORD("8"), "");
	rig_answer_version(rig, 4);
	assert_string_equal(rig_unanswered(rig), "");
	rig_forget(rig);
}

/* Time goes on; heartbeats are answered meanwhile. */
static void wait_for(struct rig *rig, int64_t duration_us)
{
	int64_t until_us = rig->now_us + duration_us;

	while (rig->now_us < until_us) {
		int64_t step = until_us - rig->now_us < SECOND ? until_us - rig->now_us : SECOND;

		rig_run(rig, step);
		while (strncmp(rig_unanswered(rig), "set " RIG_NODE, strlen("set " RIG_NODE)) == 0)
			rig_answer_version(rig, 1);
	}
	takers_turn(rig);
}

static bool is_deleted(struct rig *rig)
{
	bool deleted = strstr(rig->sent, "delete " PATH);

	rig_forget(rig);
	return deleted;
}

static void deleted_in_the_end(void **state)
{
	struct rig *rig = *state;

	mark_it(rig);
	wait_for(rig, 40 * SECOND - 1);
	assert_false(is_deleted(rig));
	wait_for(rig, 1);
	assert_true(is_deleted(rig));
	rig_answer_error(rig, ENSEMBLE_UNKNOWN); /* so it is sent once more */
	wait_for(rig, SECOND - 1);
	assert_false(is_deleted(rig));
	wait_for(rig, 1);
	assert_true(is_deleted(rig));
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_expect_reported(rig, "did not delete it in time");
	assert_null(rig->evictions.evictions);
}

/* Its mount may not know of the letter before: its lease may be as new. */
static void counted_from_the_answer(void **state)
{
	struct rig *rig = *state;

	evict(rig, THEIRS, 0, 0);
	answer_both(rig, RECORD("8"), "");
	rig->now_us += SECOND;
	rig_answer_version(rig, 4);
	rig_forget(rig);
	wait_for(rig, 40 * SECOND - 1);
	assert_false(is_deleted(rig));
	wait_for(rig, 1);
	assert_true(is_deleted(rig));
}

/* The next process keeps the time. */
static void goes_on_in_another_process(void **state)
{
	struct rig *rig = *state;
	struct codec codec = {0}, reads = {.loads = true};
	struct records records = {0};

	rig->lc.config.records = &records;
	mark_it(rig);
	assert_int_equal(records.count, 1);
	codec_begin(&codec);
	eviction_save_load(&codec, &rig->lc, records.touched);
	evictions_finish(&rig->lc);
	assert_int_equal(records.count, 0);
	rig->now_us += SECOND;
	codec_read(&reads, codec.data, codec.len);
	eviction_save_load(&reads, &rig->lc, NULL);
	codec_read_all(&reads);
	assert_null(reads.bad);
	wait_for(rig, 39 * SECOND - 1);
	assert_false(is_deleted(rig));
	wait_for(rig, 1);
	assert_true(is_deleted(rig));
	rig_answer_error(rig, ENSEMBLE_OK);
	assert_null(rig->evictions.evictions);
	assert_int_equal(records.count, 0);
	codec_end(&codec);
}

/* The former version has marked an entry, and its mount was not told yet. */
static void not_told_by_a_former_version(void **state)
{
	struct rig *rig = *state;
	struct codec codec = {0}, reads = {.loads = true};

	codec_begin(&codec);
	forge_eviction(&codec, PATH, rig->now_us + SECOND, SECOND);
	codec_read(&reads, codec.data, codec.len);
	eviction_save_load(&reads, &rig->lc, NULL);
	rig_expect_reported(rig, "the record of an eviction cannot be read: " PATH);
	assert_null(rig->evictions.evictions);
	codec_end(&codec);
}

static void how_it_ends(void **state)
{
	static const struct {
		enum ensemble_result result;
		const char *report;
		bool again;
	} rows[] = {
		{ENSEMBLE_NONODE, "", false}, /* the other mount has deleted it */
		{ENSEMBLE_NOAUTH, "cannot be deleted", false},
		{ENSEMBLE_NOTEMPTY, "cannot be deleted", false},
		{ENSEMBLE_REFUSED, "", true},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct rig *rig = takers_begin();

		mark_it(rig);
		wait_for(rig, 40 * SECOND);
		rig_forget(rig);
		rig_answer_error(rig, rows[i].result);
		rig_expect_reported(rig, rows[i].report);
		expect((rig->evictions.evictions != NULL) == rows[i].again, "row %zu", i);
		takers_end(rig);
	}
}

/* The session of the mount that marks the entry may be the longer one. */
static void time_of_the_longer_session(void **state)
{
	struct rig *rig = *state;

	evict(rig, THEIRS, 0, 0);
	answer_both(rig, "host: m1\nsession_timeout: 5000\n", "");
	rig_answer_version(rig, 4);
	rig_forget(rig);
	wait_for(rig, RIG_TIMEOUT_US - 1);
	assert_false(is_deleted(rig));
	wait_for(rig, 1);
	assert_true(is_deleted(rig));
}

/* Without contact the delete is tried every second. */
static void due_without_contact(void **state)
{
	struct rig *rig = *state;

	mark_it(rig);
	wait_for(rig, 40 * SECOND - 10);
	rig_forget(rig);
	rig_disconnect(rig);
	rig_run(rig, SECOND);
	assert_false(is_deleted(rig));
	takers_reconnect(rig);
	rig_forget(rig);
	rig_run(rig, SECOND);
	assert_true(is_deleted(rig));
}

/* This mount has marked the entry before: the time does not begin anew. */
static void evicted_twice(void **state)
{
	struct rig *rig = *state;

	mark_it(rig);
	wait_for(rig, 30 * SECOND);
	evict(rig, THEIRS, 0, 0);
	answer_both(rig, "evict: ann\n" RECORD("8"), "");
	rig_answer_version(rig, 4);
	rig_expect_told(rig, "done");
	rig_forget(rig);
	wait_for(rig, 10 * SECOND - 1);
	assert_false(is_deleted(rig));
	wait_for(rig, 1);
	assert_true(is_deleted(rig));
	rig_answer_error(rig, ENSEMBLE_NONODE);
	assert_null(rig->evictions.evictions);
}

/* Nobody waits for the answer any more, but a marked entry is followed up all the same. */
static void cancelled(void **state)
{
	struct rig *rig = *state;
	struct lc_call *call = evict(rig, THEIRS, 0, 0);

	answer_both(rig, RECORD("8"), "");
	lc_cancel(call);
	rig_forget(rig);
	rig_answer_version(rig, 4);
	rig_expect_told(rig, "");
	assert_non_null(rig->evictions.evictions);
	call = evict(rig, OTHER(1), 0, 0);
	answer_entry(rig, 3, "");
	lc_cancel(call);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_BADVERSION);
	rig_expect_sent(rig, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TAKERS_TEST(marked),
		TAKERS_TEST(changed_meanwhile),
		TAKERS_TEST(marked_already),
		TAKERS_TEST(looks_for_the_mailbox),
		TAKERS_TEST(not_below_too_many),
		TAKERS_TEST(marked_and_gone),
		TAKERS_TEST(no_entry),
		TAKERS_TEST(deleted_at_once),
		TAKERS_TEST(deleted_in_another_version),
		TAKERS_TEST(who_may),
		TAKERS_TEST(owner_changes),
		TAKERS_TEST(forged_user),
		TAKERS_TEST(deleted_in_the_end),
		TAKERS_TEST(counted_from_the_answer),
		TAKERS_TEST(goes_on_in_another_process),
		TAKERS_TEST(not_told_by_a_former_version),
		cmocka_unit_test(how_it_ends),
		TAKERS_TEST(time_of_the_longer_session),
		TAKERS_TEST(due_without_contact),
		TAKERS_TEST(evicted_twice),
		TAKERS_TEST(cancelled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
