/* SPDX-License-Identifier: MIT
 *
 * Listings: when one is sent, how its answer is matched with the entries of this mount, and what
 * the events of watches and the session's news mean to a lock.
 */
#include "grant/grant.h"

#include "lock/lock_watch.h"
#include "takers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void want_list(struct rig *rig, struct lock *lock)
{
	lock_want_list(lock);
	takers_turn(rig);
}

/* ---- sending ---- */

static void one_listing_for_all(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_take(rig, 1, LC_SHARED, LC_FOREVER);

	takers_take(rig, 2, LC_SHARED, LC_FOREVER);
	lock_want_list(taker->entry.lock);
	takers_turn(rig);
	rig_expect_sent(rig, "watch /locks/a, create ephemeral /locks/a/#2-, "
	                     "create ephemeral /locks/a/#3-, children /locks/a");
	assert_int_equal(taker->entry.lock->lists.sent, 1);
	assert_int_equal(taker->entry.lock->lists.pending, 1);
}

/* An entry whose create is unsent would not be in the listing. */
static void not_before_creates(void **state)
{
	struct rig *rig = *state;

	rig->batch.flights = 4; /* as many as may be under way */
	takers_take(rig, 1, LC_EXCLUSIVE, LC_FOREVER);
	takers_turn(rig);
	rig_expect_sent(rig, "watch /locks/a");
	rig->batch.flights = 0;
	takers_turn(rig);
	rig_expect_sent(rig, "create ephemeral /locks/a/#2-, children /locks/a");
}

static void nobody_here(void **state)
{
	struct rig *rig = *state;
	struct lock *lock;

	assert_int_equal(lock_get(&rig->lc, "a", 0, &lock), 0);
	want_list(rig, lock);
	rig_expect_sent(rig, "");
	assert_false(lock->lists.wanted);
	lock_unuse(lock);
}

/* With several slots, any entry that goes may make room. */
static void names_are_watched(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 2, OTHER(1) " #2-2");
	struct lock *lock = taker->entry.lock;

	lock->node.info.slots = 2;
	lock_touch(lock);
	takers_turn(rig);
	rig_expect_sent(rig, "unwatch /locks/a/" OTHER(1) ", children watched /locks/a");
	takers_answer_lists(rig, OTHER(1) " #2-2");
	lock_touch(lock);
	takers_turn(rig);
	want_list(rig, lock);
	rig_expect_sent(rig, "children /locks/a"); /* one watch is enough */
	takers_answer_list(rig, OTHER(1) " #2-2");
	takers_change(rig, "", ENSEMBLE_NAMES);
	rig_expect_sent(rig, "children watched /locks/a");
	lock->node.info.slots = 1;
}

/* ---- the entries of a listing ---- */

static void not_shown(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1"),
			*waiter = takers_queue(rig, 2, LC_EXCLUSIVE, 2, "#2-1 #3-2");

	want_list(rig, holder->entry.lock);
	rig_forget(rig);
	takers_answer_lists(rig, OTHER(5));
	rig_expect_told(rig, "1 lost");
	assert_int_equal(holder->entry.state, ENTRY_ABSENT);
	assert_int_equal(waiter->wait, WAIT_MISSING);
}

/* The outcome of a create is unknown: a listing of the next connection shows it. */
static void unknown_create(void **state)
{
	(void)state;
	for (int shown = 0; shown < 2; shown++) {
		struct rig *rig = takers_begin();
		struct lc_taker *taker = takers_take(rig, 1, LC_EXCLUSIVE, LC_FOREVER);

		takers_turn(rig);
		takers_reconnect(rig);
		assert_int_equal(taker->entry.state, ENTRY_UNKNOWN);
		assert_int_equal(taker->entry.lock->batch.unknown, 1);
		rig_forget(rig);
		takers_take(rig, 2, LC_EXCLUSIVE, LC_FOREVER); /* its create waits for that, too */
		takers_turn(rig);
		rig_expect_sent(rig, "");
		takers_answer_list(rig, shown ? "#2-1" : "");
		if (shown) {
			rig_expect_sent(rig, "get /locks/a/#2-1");
			rig_answer_data(rig, 0, "");
			takers_turn(rig);
		}
		assert_int_equal(taker->entry.state, shown ? ENTRY_PRESENT : ENTRY_CREATING);
		assert_int_equal(taker->entry.lock->batch.unknown, 0);
		assert_non_null(strstr(rig->sent, "create ephemeral /locks/a/#3-"));
		takers_end(rig);
	}
}

/* ---- answers ---- */

static void lock_is_not_there(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	takers_queue(rig, 2, LC_EXCLUSIVE, 2, "#2-1 #3-2");
	watch_fired(&holder->entry.lock->node.watch);
	takers_take(rig, 3, LC_SHARED, 0);
	want_list(rig, holder->entry.lock);
	rig_forget(rig);
	while (*rig_unanswered(rig) && strncmp(rig_unanswered(rig), "create ", 7) != 0)
		takers_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_told(rig, "1 lost, 2 taken ENOENT");
	/* The try creates its entry: this server may lag behind a lock that was made anew. */
	assert_non_null(strstr(rig->sent, "create ephemeral /locks/a/#4-"));
}

static void not_there_and_unknown(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_take(rig, 1, LC_EXCLUSIVE, LC_FOREVER);

	takers_turn(rig);
	takers_reconnect(rig);
	takers_answer_watches(rig);
	rig_forget(rig);
	takers_answer_error(rig, ENSEMBLE_NONODE);
	assert_int_equal(taker->entry.state, ENTRY_CREATING);
	rig_expect_sent(rig, "create ephemeral /locks/a/#2-, children /locks/a");
}

static void refused(void **state)
{
	static const struct {
		enum ensemble_result result;
		const char *told;
	} rows[] = {{ENSEMBLE_NOAUTH, "2 taken EACCES"},    {ENSEMBLE_REFUSED, "2 taken ENOLCK"},
	            {ENSEMBLE_INVALID, "2 taken ENOLCK"},   {ENSEMBLE_BADVERSION, "2 taken ENOLCK"},
	            {ENSEMBLE_NOTEMPTY, "2 taken ENOLCK"},  {ENSEMBLE_EXISTS, "2 taken ENOLCK"},
	            {ENSEMBLE_NOCHILDREN, "2 taken ENOLCK"}};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct rig *rig = takers_begin();
		struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

		takers_queue(rig, 2, LC_EXCLUSIVE, 2, "#2-1 #3-2");
		want_list(rig, holder->entry.lock);
		timer_clear(&rig->lc.timers, &holder->entry.lock->lists.recheck);
		takers_answer_error(rig, rows[i].result);
		rig_expect_told(rig, rows[i].told);
		assert_true(holder->entry.lock->lists.recheck.armed);
		takers_end(rig);
	}
}

static void refused_and_unknown(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");
	struct lock *lock = holder->entry.lock;

	want_list(rig, lock);
	lock->batch.unknown++;
	takers_answer_error(rig, ENSEMBLE_REFUSED);
	assert_int_equal(lock->lists.recheck.at_us, rig->now_us + SECOND);
	lock->batch.unknown--;
}

/* An entry that is known to be gone becomes absent, though the listing was refused. */
static void refused_and_gone(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 2, OTHER(1) " #2-2");

	loss_of_node(taker);
	takers_turn(rig);
	takers_answer_watches(rig);
	takers_answer_error(rig, ENSEMBLE_REFUSED);
	assert_int_equal(taker->entry.state, ENTRY_ABSENT);
	rig_expect_told(rig, "1 taken ENOLCK");
}

static void not_answered(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 2, OTHER(1) " #2-2");

	want_list(rig, taker->entry.lock);
	rig_forget(rig);
	takers_answer_error(rig, ENSEMBLE_UNKNOWN); /* though the connection lives */
	rig_expect_sent(rig, "children /locks/a");
	assert_int_equal(taker->entry.lock->lists.pending, 1);
}

/* Another lock has the name by now. */
static void made_anew(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 2, OTHER(1) " #2-2");
	struct lock *lock = taker->entry.lock;

	taker->meant = 50;
	takers_lock.czxid = 60;
	want_list(rig, lock);
	takers_answer_lists(rig, OTHER(1) " #2-2");
	rig_expect_told(rig, "1 taken ENOENT");
	assert_int_equal(lock->node.info.czxid, 60);
}

/* The known number of slots is of another version of the lock's data than the listing. */
static void slots_of_another_version(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 2, OTHER(1) " #2-2");
	struct lock *lock = taker->entry.lock;

	assert_true(lock_is_watched(lock));
	want_list(rig, lock);
	takers_answer_list(rig, OTHER(1) " #2-2");
	assert_true(lock_is_watched(lock));
	takers_lock.version++;
	want_list(rig, lock);
	rig_forget(rig);
	takers_answer_list(rig, OTHER(1) " #2-2");
	assert_false(lock_is_watched(lock)); /* one slot is assumed */
}

/* A holder that has held for a while watches its entry again. */
static void holder_watches_again(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	want_list(rig, holder->entry.lock);
	rig_forget(rig);
	takers_answer_list(rig, "#2-1");
	rig_expect_sent(rig, ""); /* it may be a short hold */
	timer_clear(&rig->lc.timers, &holder->recheck);
	want_list(rig, holder->entry.lock);
	rig_forget(rig);
	takers_answer_list(rig, "#2-1");
	rig_expect_sent(rig, "watch /locks/a/#2-1");
}

static void nobody_is_left(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 2, OTHER(1) " #2-2");
	struct lock *lock = taker->entry.lock;

	takers_leave(rig, taker);
	takers_answer_error(rig, ENSEMBLE_OK);
	takers_answer_error(rig, ENSEMBLE_OK);
	assert_null(lock->others.watches[0]);
	rig_expect_sent(rig, "unwatch /locks/a/" OTHER(1) ", delete /locks/a/#2-2");
	assert_true(lock->idle);
}

/* ---- events ---- */

static void lock_changes(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 2, OTHER(1) " #2-2");
	struct lock *lock = taker->entry.lock;

	takers_change(rig, "", ENSEMBLE_DATA);
	rig_expect_sent(rig, "watch /locks/a");
	takers_answer_watches(rig);
	takers_change(rig, "", ENSEMBLE_NAMES);
	rig_expect_sent(rig, "children /locks/a");
	takers_answer_lists(rig, OTHER(1) " #2-2");
	rig_forget(rig);
	assert_true(lock->batch.last_write_ok);
	takers_change(rig, "", ENSEMBLE_DELETED);
	assert_false(lock->batch.last_write_ok);
	assert_false(lock_is_watched(lock));
	rig_expect_sent(rig, "unwatch /locks/a/" OTHER(1) ", children /locks/a");
}

static void lock_changes_for_holders(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	lock_watch(taker->entry.lock);
	takers_answer_watches(rig);
	rig_forget(rig);
	takers_change(rig, "", ENSEMBLE_NAMES);
	takers_change(rig, "", ENSEMBLE_DATA);
	rig_expect_sent(rig, "");
	assert_false(lock_is_watched(taker->entry.lock));
}

static void idle_lock_changes(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	lock_watch(taker->entry.lock);
	takers_answer_watches(rig);
	takers_leave(rig, taker);
	takers_answer_error(rig, ENSEMBLE_OK);
	assert_non_null(rig->locks.by_path);
	rig_forget(rig);
	takers_change(rig, "", ENSEMBLE_DELETED);
	rig_expect_sent(rig, "");
	assert_null(rig->locks.by_path);
}

static void own_entry_changes(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	entry_watch(&taker->entry);
	takers_answer_watches(rig);
	rig_forget(rig);
	takers_change(rig, "#2-1", ENSEMBLE_DATA);
	rig_expect_sent(rig, "watch /locks/a/#2-1");
	takers_answer_watches(rig);
	takers_change(rig, "#2-1", ENSEMBLE_DELETED);
	rig_expect_told(rig, "1 lost");
	assert_int_equal(taker->entry.state, ENTRY_ABSENT);
	rig_expect_sent(rig, "children /locks/a");
}

/* An event of a watch that is not set any more tells nothing for certain. */
static void own_entry_is_not_watched(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	takers_change(rig, "#2-1", ENSEMBLE_DELETED);
	assert_int_equal(taker->entry.state, ENTRY_PRESENT);
	rig_expect_told(rig, "");
	rig_expect_sent(rig, "children /locks/a");
}

static void nobody_wants_the_entry(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	entry_watch(&taker->entry);
	takers_answer_watches(rig);
	takers_leave(rig, taker);
	rig_forget(rig);
	takers_change(rig, "#2-1", ENSEMBLE_DELETED);
	rig_expect_sent(rig, "");
	assert_int_equal(taker->entry.state, ENTRY_DELETING);
}

/* ---- the session's news ---- */

static void contact_again(void **state)
{
	struct rig *rig = *state;

	takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");
	takers_leave(rig, takers_queue(rig, 2, LC_SHARED, 2, "#2-1 #3-2"));
	takers_answer_error(rig, ENSEMBLE_OK);
	takers_take(rig, 3, LC_SHARED, LC_FOREVER);
	rig_disconnect(rig);
	takers_turn(rig);
	rig_forget(rig);
	takers_reconnect(rig);
	assert_non_null(strstr(rig->sent, "children /locks/a"));
	assert_non_null(strstr(rig->sent, "create ephemeral /locks/a/#4-"));
}

/* All that was known of the locks is void. */
static void session_ends(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1"),
			*waiter = takers_queue(rig, 2, LC_EXCLUSIVE, 2, "#2-1 #3-2");
	struct lock *lock = holder->entry.lock;

	lock->grant.unproved = &waiter->entry;
	lock->lists.later = true;
	lock->batch.last_write_ok = lock->batch.together = true;
	lock_recheck(lock);
	rig->takers.missing = true;
	rig_end_session(rig, false);
	assert_false(rig->takers.missing);
	assert_null(lock->grant.unproved);
	assert_null(lock->known.entries);
	assert_false(lock->lists.later || lock->batch.last_write_ok || lock->batch.together);
	assert_false(lock->lists.recheck.armed);
	assert_false(lock_is_watched(lock));
	takers_turn(rig);
	rig_expect_told(rig, "1 lost");
	assert_int_equal(waiter->entry.state, ENTRY_ABSENT);
	rig_forget(rig);
	rig_connect(rig, RIG_SESSION + 1);
	rig_find_home(rig);
	rig_answer_version(rig, 0);
	takers_turn(rig);
	assert_non_null(strstr(rig->sent, "create ephemeral /locks/a/"));
}

/* The number of slots may be another one. Behind a shared entry that lets nobody in, and yet the
 * lock's node is watched. */
static void lock_changes_behind_a_shared_one(void **state)
{
	struct rig *rig = *state;

	takers_queue(rig, 2, LC_EXCLUSIVE, 1, OTHER_SHARED(0) " #2-1");
	takers_change(rig, "", ENSEMBLE_DATA);
	rig_expect_sent(rig, "watch /locks/a");
}

/* Whoever means the lock that had this name before is told so at once, not when its turn comes. */
static void another_lock_was_meant(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_request(rig, &(struct lc_request){.lock = "a",
	                                                                  .wait_us = LC_FOREVER,
	                                                                  .czxid = 40,
	                                                                  .pid = 7,
	                                                                  .command = "sh"});

	takers_turn(rig);
	rig_answer_error(rig, ENSEMBLE_UNKNOWN); /* the watch of the lock's node */
	takers_answer_made(rig, taker, 1);
	takers_answer_list(rig, OTHER(0) " #2-1");
	rig_expect_told(rig, "7 taken ENOENT");
}

/* Where numbers repeat, another node may have the whole name of an entry that is gone. */
static void another_of_its_name(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_take(rig, 7, LC_EXCLUSIVE, LC_FOREVER);
	struct ensemble_stat stat = {.czxid = 1, .ephemeral_owner = RIG_SESSION};

	takers_turn(rig);
	takers_answer_made(rig, taker, 2147483000);
	takers_answer_list(rig, "#2-2147483000");
	rig_answer(rig, &(struct ensemble_answer){.stat = &stat});
	takers_turn(rig);
	rig_expect_told(rig, "");
	assert_int_equal(taker->wait, WAIT_MISSING);
}

/* Where numbers repeat, the entries are read one after the other: an entry that was read first may
 * be gone when the last one was. So its watch shows that it is there. */
static void watched_where_numbers_repeat(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_take(rig, 7, LC_EXCLUSIVE, LC_FOREVER);
	struct ensemble_stat stat = {.czxid = 100 + 2147483000, .ephemeral_owner = RIG_SESSION};

	takers_turn(rig);
	takers_answer_made(rig, taker, 2147483000);
	takers_answer_list(rig, "#2-2147483000");
	rig_answer(rig, &(struct ensemble_answer){.stat = &stat});
	takers_turn(rig);
	rig_expect_told(rig, "");
	takers_answer_watches(rig);
	rig_expect_told(rig, "7 taken");
}

/* Something else was refused while a listing was under way: that is tried in a second all the
 * same. */
static void refused_while_it_is_listed(void **state)
{
	struct rig *rig = *state;
	struct lock *lock = takers_queue(rig, 2, LC_EXCLUSIVE, 1, OTHER(0) " #2-1")->entry.lock;

	want_list(rig, lock);
	lock_list_later(lock);
	takers_answer_list(rig, OTHER(0) " #2-1");
	rig_forget(rig);
	takers_run(rig, SECOND);
	rig_expect_sent(rig, "children /locks/a");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TAKERS_TEST(one_listing_for_all),
		TAKERS_TEST(not_before_creates),
		TAKERS_TEST(nobody_here),
		TAKERS_TEST(names_are_watched),
		TAKERS_TEST(not_shown),
		cmocka_unit_test(unknown_create),
		TAKERS_TEST(lock_is_not_there),
		TAKERS_TEST(not_there_and_unknown),
		cmocka_unit_test(refused),
		TAKERS_TEST(refused_and_unknown),
		TAKERS_TEST(refused_and_gone),
		TAKERS_TEST(not_answered),
		TAKERS_TEST(made_anew),
		TAKERS_TEST(slots_of_another_version),
		TAKERS_TEST(holder_watches_again),
		TAKERS_TEST(nobody_is_left),
		TAKERS_TEST(lock_changes),
		TAKERS_TEST(lock_changes_for_holders),
		TAKERS_TEST(idle_lock_changes),
		TAKERS_TEST(own_entry_changes),
		TAKERS_TEST(own_entry_is_not_watched),
		TAKERS_TEST(nobody_wants_the_entry),
		TAKERS_TEST(contact_again),
		TAKERS_TEST(session_ends),
		TAKERS_TEST(lock_changes_behind_a_shared_one),
		TAKERS_TEST(another_lock_was_meant),
		TAKERS_TEST(another_of_its_name),
		TAKERS_TEST(watched_where_numbers_repeat),
		TAKERS_TEST(refused_while_it_is_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
