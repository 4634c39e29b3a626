/* SPDX-License-Identifier: MIT
 *
 * Changing a lock's data: it is read, and written only if it is still the same; what happens when
 * an answer is lost; and the transaction that confirms a hold.
 */
#include "takers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define HEAD(uid) "zklockfs: 1\nuid: " uid "\ngid: 1\nmode: 755\ndoor_mode: 644\n"
#define SENT(uid) "zklockfs: 1|uid: " uid "|gid: 1|mode: 755|door_mode: 644|"

/* Of the change that succeeded last. */
static struct lc_lock_info last;

static void done(void *ctx, int err)
{
	rig_tell(ctx, err < 0 ? "%s" : "done", strerrorname_np(-err));
}

static void changed(void *ctx, int err, const struct lc_lock_info *info)
{
	done(ctx, err);
	if (err == 0)
		last = *info;
}

/* A change that does not come from a holder reads behind a sync. */
static void answer_sync(struct rig *rig)
{
	if (strcmp(rig_unanswered(rig), "sync /locks/a") == 0)
		rig_answer_error(rig, ENSEMBLE_OK);
}

static void answer(struct rig *rig, int32_t version, const char *data)
{
	struct ensemble_stat stat = {.czxid = 50, .version = version};

	answer_sync(rig);
	rig_answer(rig, &(struct ensemble_answer){
				.stat = &stat, .data = data, .data_len = (int)strlen(data)});
}

static void answer_written(struct rig *rig, int64_t czxid)
{
	struct ensemble_stat stat = {.czxid = czxid};

	rig_answer(rig, &(struct ensemble_answer){.stat = &stat});
}

/* ---- attributes and slots ---- */

static struct lc_call *change(struct rig *rig, const struct lc_change *change)
{
	struct lc_call *call;

	assert_int_equal(lc_change(&rig->lc, "a", change, changed, rig, &call), 0);
	return call;
}

static void each_attribute(void **state)
{
	static const struct {
		struct lc_change change;
		const char *sent;
	} rows[] = {
		{{.set_uid = true, .attributes = {.uid = 9}},
	         "zklockfs: 1|uid: 9|gid: 1|mode: 755|door_mode: 644|slots: 2||v"},
		{{.set_gid = true, .attributes = {.gid = 9}},
	         "zklockfs: 1|uid: 7|gid: 9|mode: 755|door_mode: 644|slots: 2||v"},
		{{.set_mode = true, .attributes = {.mode = 0700}},
	         "zklockfs: 1|uid: 7|gid: 1|mode: 700|door_mode: 644|slots: 2||v"},
		{{.set_lock_file_mode = true, .attributes = {.lock_file_mode = 0600}},
	         "zklockfs: 1|uid: 7|gid: 1|mode: 755|door_mode: 600|slots: 2||v"},
		{{.slots = 5}, "zklockfs: 1|uid: 7|gid: 1|mode: 755|door_mode: 644|slots: 5||v"},
	};
	struct rig *rig = *state;
	char sent[200];

	for (size_t i = 0; i < LENGTH(rows); i++) {
		change(rig, &rows[i].change);
		answer(rig, 3, HEAD("7") "slots: 2\n\nv");
		snprintf(sent, sizeof(sent), "sync /locks/a, get /locks/a, set /locks/a v3 '%s'",
		         rows[i].sent);
		rig_expect_sent(rig, sent);
		answer_written(rig, 50);
		rig_expect_told(rig, "done");
		rig_expect_sent(rig, ""); /* whatever becomes of the lock from now on */
		assert_int_equal(last.czxid, 50);
		assert_int_equal(last.slots, i == 4 ? 5 : 2);
		assert_int_equal(last.attributes.uid, i == 0 ? 9 : 7);
		assert_int_equal(last.attributes.mode, i == 2 ? 0700 : 0755);
	}
}

static void too_many_slots(void **state)
{
	struct rig *rig = *state;
	struct lc_call *call;

	assert_int_equal(lc_change(&rig->lc, "a", &(struct lc_change){.slots = LC_SLOTS_MAX + 1},
	                           changed, rig, &call),
	                 -EINVAL);
	change(rig, &(struct lc_change){.slots = LC_SLOTS_MAX});
}

/* Another client was quicker: the data is read again. */
static void another_version(void **state)
{
	struct rig *rig = *state;

	change(rig, &(struct lc_change){.slots = 2});
	answer(rig, 3, "");
	rig_answer_error(rig, ENSEMBLE_BADVERSION);
	rig_forget(rig);
	answer(rig, 4, HEAD("7") "\n");
	rig_expect_sent(rig, "set /locks/a v4 '" SENT("7") "slots: 2||'");
	answer_written(rig, 50);
	rig_expect_told(rig, "done");
}

static void who_may(void **state)
{
	static const struct {
		struct lc_change change;
		const char *data, *told; /* "": it is written */
	} rows[] = {
		{{.by = 7, .slots = 2}, HEAD("7") "\n", ""},
		{{.by = 8, .slots = 2}, HEAD("7") "\n", "EPERM"},
		{{.by = 7, .set_uid = true, .attributes = {.uid = 8}}, HEAD("7") "\n", "EPERM"},
		{{.by = 7, .set_uid = true, .attributes = {.uid = 7}}, HEAD("7") "\n", ""},
		{{.slots = 2, .czxid = 50}, HEAD("7") "\n", ""},
		{{.slots = 2, .czxid = 49}, HEAD("7") "\n", "ENOENT"},
		/* Another client's data is left alone; a change that changes nothing succeeds. */
		{{.slots = 2}, "foreign", "EPERM"},
		{{.set_mode = true, .attributes = {.mode = 0700}}, "foreign", "EPERM"},
		{{.set_mode = true, .attributes = {.mode = 0755}}, "foreign", "done"},
		{{.set_lock_file_mode = true, .attributes = {.lock_file_mode = 0600}},
	         "foreign",
	         "EPERM"},
		{{.set_gid = true, .attributes = {.gid = 9}}, "foreign", "EPERM"},
		{{.set_uid = true, .attributes = {.uid = 9}}, "foreign", "EPERM"},
	};
	struct rig *rig = *state;

	rig->lc.config.without = (struct lc_attributes){.mode = 0755, .lock_file_mode = 0644};
	for (size_t i = 0; i < LENGTH(rows); i++) {
		change(rig, &rows[i].change);
		rig_forget(rig);
		answer(rig, 3, rows[i].data);
		if (rows[i].told[0] == '\0') {
			expect(strstr(rig->sent, "set /locks/a v3"), "row %zu", i);
			answer_written(rig, 50);
			rig_expect_told(rig, "done");
		} else {
			rig_expect_sent(rig, "");
			rig_expect_told(rig, rows[i].told);
		}
	}
}

static void an_entry_is_no_lock(void **state)
{
	struct rig *rig = *state;

	change(rig, &(struct lc_change){.slots = 2});
	answer_sync(rig);
	rig_answer_data(rig, 3, ""); /* a node of this session */
	rig_expect_told(rig, "ENOENT");
}

/* The lock was removed and made again between read and write: the version does not show it. */
static void went_to_another_lock(void **state)
{
	struct rig *rig = *state;

	change(rig, &(struct lc_change){.slots = 2});
	answer(rig, 0, "");
	answer_written(rig, 60);
	rig_expect_told(rig, "ENOENT");
	rig_expect_reported(rig, "was removed and made again");
}

/* The question is asked again: a change may be done twice. But the first write may have been
 * done. */
static void answer_was_lost(void **state)
{
	struct rig *rig = *state;

	change(rig, &(struct lc_change){.slots = 2});
	answer(rig, 3, "");
	takers_reconnect(rig);
	rig_expect_told(rig, "");
	answer_sync(rig);
	assert_string_equal(rig_unanswered(rig), "get /locks/a");
	answer(rig, 4, "");
	rig_answer_error(rig, ENSEMBLE_REFUSED);
	rig_expect_told(rig, "EHOSTUNREACH"); /* and no error that means: not done */
	change(rig, &(struct lc_change){.slots = 2});
	answer(rig, 3, "");
	rig_answer_error(rig, ENSEMBLE_REFUSED);
	rig_expect_told(rig, "ENOLCK");
}

/* ---- a value ---- */

static struct lc_taker *hold(struct rig *rig)
{
	return takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");
}

static struct lc_call *set_value(struct rig *rig, struct lc_taker *holder, const char *value,
                                 bool append)
{
	struct lc_call *call;

	assert_int_equal(lc_set_value(holder, value, strlen(value), append, done, rig, &call), 0);
	return call;
}

static void value_is_written(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = hold(rig);

	set_value(rig, holder, "new", false);
	answer(rig, 3, HEAD("7") "slots: 2\n\nold");
	rig_expect_sent(rig, "get /locks/a, check /locks/a/#2-1 + set /locks/a v3 '" SENT(
				     "7") "slots: 2||new'");
	answer_written(rig, 50);
	rig_expect_told(rig, "done");
	set_value(rig, holder, "er", true);
	answer(rig, 4, "zklockfs: 1\nuid: odd\n\nnew");
	rig_expect_sent(rig, "get /locks/a, check /locks/a/#2-1 + set /locks/a v4 "
	                     "'zklockfs: 1|uid: odd||newer'");
	answer_written(rig, 99); /* the czxid is not compared */
	rig_expect_told(rig, "done");
}

static void value_is_too_long(void **state)
{
	static char value[LC_VALUE_MAX + 1];
	struct rig *rig = *state;
	struct lc_taker *holder = hold(rig);
	struct lc_call *call;

	memset(value, 'x', sizeof(value));
	assert_int_equal(lc_set_value(holder, value, sizeof(value), false, done, rig, &call),
	                 -EFBIG);
	assert_int_equal(lc_set_value(holder, value, LC_VALUE_MAX - 2, true, done, rig, &call), 0);
	answer(rig, 3, HEAD("7") "\nold");
	rig_expect_told(rig, "EFBIG");
}

static void value_of_a_lost_lock(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = hold(rig);
	struct lc_call *call;

	set_value(rig, holder, "new", false);
	answer(rig, 3, "foreign");
	rig_expect_told(rig, "EPERM");
	set_value(rig, holder, "new", false);
	answer(rig, 3, "");
	rig_answer_error(rig, ENSEMBLE_NONODE); /* the entry or the lock is gone */
	rig_expect_told(rig, "EIO");
	assert_true(holder->entry.lock->lists.wanted);
	set_value(rig, holder, "new", false);
	taker_lose(holder);
	rig_forget(rig);
	answer(rig, 3, "");
	rig_expect_told(rig, "EIO");
	assert_null(strstr(rig->sent, "set"));
	assert_int_equal(lc_set_value(holder, "", 0, false, done, rig, &call), -EIO);
}

/* The answer to the write was lost: the present value shows whether it was written. */
static void fate_of_a_value(void **state)
{
	static const struct {
		int32_t version;
		const char *data, *told; /* "": it is written again */
	} rows[] = {
		{3, HEAD("7") "\nold", ""},
		{4, HEAD("7") "\noldnew", "done"},
		{4, HEAD("8") "\nold", ""}, /* another client has changed the uid */
		{4, HEAD("7") "\nother", "EHOSTUNREACH"},
		{4, HEAD("7") "\nxxx", "EHOSTUNREACH"},
		{4, HEAD("7") "\noldxxx", "EHOSTUNREACH"},
	};
	struct rig *rig = *state;
	struct lc_taker *holder = hold(rig);

	for (size_t i = 0; i < LENGTH(rows); i++) {
		set_value(rig, holder, "new", true);
		answer(rig, 3, HEAD("7") "\nold");
		rig_answer_error(rig, ENSEMBLE_UNKNOWN);
		calls_resume(&rig->lc);
		rig_forget(rig);
		answer(rig, rows[i].version, rows[i].data);
		if (rows[i].told[0] != '\0') {
			rig_expect_told(rig, rows[i].told);
			rig_expect_sent(rig, "");
			continue;
		}
		expect(strstr(rig->sent, "oldnew'"), "row %zu", i);
		/* The first write was not done, and this one is refused: no doubt is left. */
		rig_answer_error(rig, ENSEMBLE_REFUSED);
		rig_expect_told(rig, "ENOLCK");
	}
}

/* A question that cannot be asked yet. */
static struct lc_call *confirm_later(struct rig *rig, struct lc_taker *holder)
{
	struct lc_call *call;

	rig_disconnect(rig);
	assert_int_equal(lc_confirm(holder, done, rig, &call), 0);
	return call;
}

/* Nobody waits for the answer any more: it only frees the question. */
static void cancelled(void **state)
{
	struct rig *rig = *state;
	struct lc_call *call = change(rig, &(struct lc_change){.slots = 2});

	assert_true(lc_may_cancel(call));
	answer(rig, 3, "");
	assert_false(lc_may_cancel(call));
	lc_cancel(call);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_BADVERSION);
	rig_expect_sent(rig, "");
	rig_expect_told(rig, "");
}

/* The taker stays until the answer has come. */
static void holder_leaves_meanwhile(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = hold(rig);
	struct lc_call *call = set_value(rig, holder, "new", false);

	assert_int_equal(holder->entry.pending, 1);
	answer(rig, 3, "");
	takers_leave(rig, holder);
	lc_cancel(call);
	assert_int_equal(holder->entry.pending, 2); /* of the write and of the entry's delete */
	rig_answer_error(rig, ENSEMBLE_UNKNOWN);
	assert_int_equal(holder->entry.pending, 1);
	rig_answer_error(rig, ENSEMBLE_OK);
	assert_int_equal(rig->entries.by_id.count, 0);
}

/* The entry goes before the question ends: the taker is kept for the question alone. */
static void entry_goes_first(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = hold(rig);
	struct lc_call *call = confirm_later(rig, holder);

	takers_disown(holder);
	lc_leave(holder);
	rig_end_session(rig, false);
	assert_int_equal(rig->entries.by_id.count, 1);
	lc_cancel(call);
	assert_int_equal(rig->entries.by_id.count, 0);
}

/* ---- confirming ---- */

static struct lc_call *confirm(struct rig *rig, struct lc_taker *holder)
{
	struct lc_call *call;

	assert_int_equal(lc_confirm(holder, done, rig, &call), 0);
	return call;
}

#define CONFIRMS "check /locks/a/#2-1 + set " RIG_NODE " ''"

static void confirmed(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = hold(rig);
	struct lc_call *call = confirm(rig, holder);

	rig_expect_sent(rig, "watch /locks/a/#2-1, " CONFIRMS);
	assert_true(lc_may_cancel(call)); /* it writes no more than a heartbeat */
	takers_answer_watches(rig);
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_expect_told(rig, "done");
}

static void not_confirmed(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = hold(rig);
	struct lc_call *call;

	confirm(rig, holder);
	takers_answer_watches(rig);
	taker_lose(holder);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_told(rig, "EIO");
	assert_int_equal(lc_confirm(holder, done, rig, &call), -EIO);
}

/* The lock was lost while the question was under way: an answer OK is not enough. */
static void confirmed_and_lost(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = hold(rig);

	confirm(rig, holder);
	takers_answer_watches(rig);
	taker_lose(holder);
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_expect_told(rig, "EIO");
}

/* The entry or the heartbeats' node is gone: a listing and a heartbeat show which. */
static void one_of_them_is_gone(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = hold(rig);

	confirm(rig, holder);
	takers_answer_watches(rig);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	assert_true(holder->entry.lock->lists.wanted);
	rig_expect_sent(rig, "sync " RIG_DIR ", get " RIG_DIR);
	rig_find_home(rig);
	rig_expect_sent(rig, "create ephemeral " RIG_NODE " ''");
	rig_expect_told(rig, "");
	calls_resume(&rig->lc);
	assert_non_null(strstr(rig->sent, "check /locks/a/#2-1"));
	rig_answer_version(rig, 0);
	rig_answer_error(rig, ENSEMBLE_UNKNOWN);
}

/* By a quota, for example. A heartbeat finds out what is taken. */
static void refused_confirmation(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = hold(rig);

	confirm(rig, holder);
	takers_answer_watches(rig);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_REFUSED);
	rig_expect_sent(rig, "set " RIG_NODE " ''");
	rig_expect_told(rig, "");
	rig_answer_version(rig, 1);
	rig_forget(rig);
	calls_resume(&rig->lc);
	rig_expect_sent(rig, "check /locks/a/#2-1 + set " RIG_NODE " ''");
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_expect_told(rig, "done");
}

static void entry_is_not_there(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = hold(rig);

	entry_set_state(&holder->entry, ENTRY_DELETING);
	confirm(rig, holder);
	entry_set_state(&holder->entry, ENTRY_PRESENT);
	rig_expect_sent(rig, "");
	rig_expect_told(rig, "");
	rig_run(rig, 0);
	rig_expect_told(rig, "EIO");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TAKERS_TEST(each_attribute),
		TAKERS_TEST(too_many_slots),
		TAKERS_TEST(another_version),
		TAKERS_TEST(who_may),
		TAKERS_TEST(an_entry_is_no_lock),
		TAKERS_TEST(went_to_another_lock),
		TAKERS_TEST(answer_was_lost),
		TAKERS_TEST(value_is_written),
		TAKERS_TEST(value_is_too_long),
		TAKERS_TEST(value_of_a_lost_lock),
		TAKERS_TEST(fate_of_a_value),
		TAKERS_TEST(cancelled),
		TAKERS_TEST(holder_leaves_meanwhile),
		TAKERS_TEST(entry_goes_first),
		TAKERS_TEST(confirmed),
		TAKERS_TEST(not_confirmed),
		TAKERS_TEST(confirmed_and_lost),
		TAKERS_TEST(one_of_them_is_gone),
		TAKERS_TEST(refused_confirmation),
		TAKERS_TEST(entry_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
