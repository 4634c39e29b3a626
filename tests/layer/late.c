/* SPDX-License-Identifier: MIT
 *
 * Entries that come late: which nodes are asked whose they are, which are deleted, and how long
 * the lock is looked at.
 */
#include "grant/grant.h"

#include "takers.h"

#include <stdio.h>
#include <string.h>

/* A node of this session's half; "9" is nobody's UUID. */
#define LATE "#9-4"
#define MINUTE (60 * SECOND)

static void list(struct rig *rig, struct lock *lock, const char *names)
{
	lock_want_list(lock);
	takers_turn(rig);
	takers_answer_list(rig, names);
}

static void answer_owner(struct rig *rig, int64_t session)
{
	struct ensemble_stat stat = {.czxid = 104, .ephemeral_owner = session, .version = 2};

	rig_answer(rig, &(struct ensemble_answer){.stat = &stat, .data = ""});
	takers_turn(rig);
}

/* The create of a taker is given up, and the listing behind the barrier does not show it. */
static struct lc_taker *take_and_give_up(struct rig *rig, bool leaves)
{
	struct lc_taker *taker = takers_take(rig, 1, LC_EXCLUSIVE, LC_FOREVER);

	takers_turn(rig);
	takers_reconnect(rig);
	if (leaves)
		takers_leave(rig, taker);
	takers_answer_list(rig, "");
	rig_forget(rig);
	return leaves ? NULL : taker;
}

/* ---- whose it is ---- */

static void of_this_session(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 5, "#2-5");

	list(rig, taker->entry.lock, LATE " #2-5");
	rig_expect_sent(rig, "children /locks/a, get /locks/a/#9-4");
	answer_owner(rig, RIG_SESSION);
	rig_expect_sent(rig, "delete /locks/a/#9-4 v2");
	takers_answer_error(rig, ENSEMBLE_OK);
	rig_expect_reported(rig, "lock-0000000004: its create was given up, and was done late");
	assert_int_equal(taker->entry.state, ENTRY_PRESENT);
}

/* Anybody may make nodes that look so. */
static void of_another(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 5, "#2-5");

	list(rig, taker->entry.lock, OTHER(1) " " LATE " #2-5");
	rig_expect_sent(rig, "children /locks/a, get /locks/a/#9-4");
	answer_owner(rig, RIG_SESSION + 1);
	list(rig, taker->entry.lock, OTHER(1) " " LATE " #2-5");
	takers_answer_error(rig, ENSEMBLE_NOAUTH);
	list(rig, taker->entry.lock, OTHER(1) " " LATE " #2-5");
	takers_answer_error(rig, ENSEMBLE_NONODE);
	assert_null(strstr(rig->sent, "delete"));
	assert_int_equal(taker->entry.lock->late.until_us, 0);
	assert_int_equal(taker->entry.lock->late.asked, 0);
}

/* A second entry of a taker, which has another one. */
static void of_a_taker_with_another(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 5, "#2-5");

	list(rig, taker->entry.lock, "#2-5 #2-7");
	rig_expect_sent(rig, "children /locks/a, get /locks/a/#2-7");
	answer_owner(rig, RIG_SESSION);
	rig_expect_sent(rig, "delete /locks/a/#2-7 v2");
	takers_answer_error(rig, ENSEMBLE_OK);
}

/* A taker whose entry is gone for good gets no other name. */
static void of_one_that_has_lost_the_lock(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 5, "#2-5");

	list(rig, taker->entry.lock, "");
	rig_expect_told(rig, "1 lost");
	assert_int_equal(taker->entry.state, ENTRY_ABSENT);
	list(rig, taker->entry.lock, "#2-7");
	assert_string_equal(rig_unanswered(rig), "get /locks/a/#2-7");
	takers_answer_error(rig, ENSEMBLE_NONODE);
}

/* It may be the node that the taker's create makes. */
static void of_one_that_awaits_a_name(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_take(rig, 1, LC_EXCLUSIVE, LC_FOREVER);
	struct lock *lock = taker->entry.lock;
	static const enum entry_state states[] = {ENTRY_ABSENT, ENTRY_CREATING, ENTRY_UNKNOWN};

	takers_turn(rig);
	takers_answer_made(rig, taker, 5);
	takers_answer_list(rig, "#2-5");
	takers_answer_watches(rig);
	taker->state = TAKER_WAITING;
	for (size_t i = 0; i < LENGTH(states); i++) {
		struct entry_name name;

		assert_true(name_parse(strrchr(rig_entry_path(&taker->entry, 7), '/') + 1, &name));
		taker->entry.state = states[i];
		late_found(lock, strrchr(rig_entry_path(&taker->entry, 7), '/') + 1, &name, 9);
		assert_string_equal(rig_unanswered(rig), "");
	}
	taker->entry.state = ENTRY_PRESENT;
	taker->state = TAKER_HELD;
}

/* While the owner is asked, a taker begins to make an entry with that UUID. */
static void awaits_a_name_since(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 5, "#2-5");

	list(rig, taker->entry.lock, "#2-5 #2-7");
	rig_forget(rig);
	taker->entry.state = ENTRY_UNKNOWN;
	taker->entry.shown_in = 0;
	answer_owner(rig, RIG_SESSION);
	rig_expect_sent(rig, "");
	assert_true(taker->entry.lock->late.until_us > 0);
	taker->entry.state = ENTRY_PRESENT;
}

/* ---- nodes that may be what a create without an answer has made ---- */

/* The listing behind the barrier shows these nodes. They are being read. */
static struct lc_taker *take_and_see(struct rig *rig, const char *names)
{
	struct lc_taker *taker = takers_take(rig, 1, LC_EXCLUSIVE, LC_FOREVER);

	takers_turn(rig);
	takers_reconnect(rig);
	assert_int_equal(taker->entry.state, ENTRY_UNKNOWN);
	takers_answer_list(rig, names);
	rig_forget(rig);
	return taker;
}

/* The create is given up, and sent again. */
static void expect_again(struct rig *rig, const struct lc_taker *taker)
{
	assert_non_null(strstr(rig_unanswered(rig), "create ephemeral /locks/a/#2-"));
	assert_int_equal(taker->entry.state, ENTRY_CREATING);
	assert_true(taker->entry.lock->late.until_us > 0);
}

static void found_among_copies(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = take_and_see(rig, "#2-4 #2-5 #2-6");

	answer_owner(rig, RIG_SESSION + 1);
	answer_owner(rig, RIG_SESSION);
	assert_int_equal(taker->entry.state, ENTRY_PRESENT);
	assert_int_equal(taker->entry.number, 5);
	assert_string_equal(rig_unanswered(rig), "get /locks/a/#2-6");
	answer_owner(rig, RIG_SESSION + 1);
	assert_non_null(strstr(rig->sent, "children /locks/a"));
}

static void found_by_a_leaver(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = take_and_see(rig, "#2-5");

	takers_leave(rig, taker);
	answer_owner(rig, RIG_SESSION);
	assert_non_null(strstr(rig_unanswered(rig), "delete /locks/a/#2-5"));
}

static void only_copies(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = take_and_see(rig, "#2-4 #2-5 #2-6");

	answer_owner(rig, RIG_SESSION + 1);
	takers_answer_error(rig, ENSEMBLE_NONODE);
	assert_int_equal(taker->entry.state, ENTRY_UNKNOWN);
	takers_answer_error(rig, ENSEMBLE_NOAUTH);
	expect_again(rig, taker);
}

/* One of the nodes could not be read: the entry may still be there. */
static void one_without_an_answer(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = take_and_see(rig, "#2-4 #2-5");

	takers_answer_error(rig, ENSEMBLE_UNKNOWN);
	takers_answer_error(rig, ENSEMBLE_NONODE);
	assert_int_equal(taker->entry.state, ENTRY_UNKNOWN);
	assert_string_equal(rig_unanswered(rig), "children /locks/a");
	takers_answer_list(rig, "#2-4");
	answer_owner(rig, RIG_SESSION + 1);
	expect_again(rig, taker);
}

/* A read that is refused says nothing, and the lock is listed in a second. */
static void one_refused(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = take_and_see(rig, "#2-4 #2-5");
	struct timer *recheck = &taker->entry.lock->lists.recheck;

	takers_answer_error(rig, ENSEMBLE_REFUSED);
	takers_answer_error(rig, ENSEMBLE_NONODE);
	assert_int_equal(taker->entry.state, ENTRY_UNKNOWN);
	assert_string_equal(rig_unanswered(rig), "");
	assert_true(recheck->armed && recheck->at_us <= rig->now_us + SECOND);
	timer_clear(&rig->lc.timers, recheck);
	recheck->fire(taker->entry.lock);
	takers_turn(rig);
	takers_answer_list(rig, "#2-4");
	takers_answer_error(rig, ENSEMBLE_NOAUTH);
	expect_again(rig, taker);
}

/* The next listing shows another node while the first is read: a third listing decides. */
static void shown_by_the_next_listing(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_take(rig, 1, LC_EXCLUSIVE, LC_FOREVER);

	takers_turn(rig);
	takers_reconnect(rig);
	lock_want_list(taker->entry.lock);
	takers_turn(rig);
	takers_answer_list(rig, "#2-4");
	takers_answer_list(rig, "#2-4 #2-5");
	assert_string_equal(rig_unanswered(rig), "get /locks/a/#2-4");
	answer_owner(rig, RIG_SESSION + 1);
	assert_int_equal(taker->entry.state, ENTRY_UNKNOWN);
	assert_string_equal(rig_unanswered(rig), "children /locks/a");
	takers_answer_list(rig, "#2-4 #2-5");
	answer_owner(rig, RIG_SESSION + 1);
	answer_owner(rig, RIG_SESSION);
	assert_int_equal(taker->entry.number, 5);
}

/* Nodes that nobody waits for do not keep the taker from the one that is its own. */
static void behind_many_copies(void **state)
{
	struct rig *rig = *state;
	char names[8 * 71] = "";
	struct lc_taker *taker;

	for (int i = 6; i < 6 + 70; i++)
		sprintf(names + strlen(names), "#9-%d ", i);
	strcat(names, "#2-80");
	taker = take_and_see(rig, names);
	for (int i = 0; i < 64; i++)
		answer_owner(rig, RIG_SESSION + 1);
	assert_string_equal(rig_unanswered(rig), "get /locks/a/#2-80");
	answer_owner(rig, RIG_SESSION);
	assert_int_equal(taker->entry.number, 80);
}

/* ---- what is not known yet ---- */

/* Answers that leave it open: the lock is looked at again. */
static void not_told(void **state)
{
	static const enum ensemble_result results[] = {ENSEMBLE_UNKNOWN, ENSEMBLE_REFUSED};

	(void)state;
	for (size_t i = 0; i < 2 * LENGTH(results); i++) {
		struct rig *rig = takers_begin();
		struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 5, "#2-5");

		list(rig, taker->entry.lock, LATE " #2-5");
		if (i % 2 > 0)
			answer_owner(rig, RIG_SESSION);
		takers_answer_error(rig, results[i / 2]);
		assert_int_equal(taker->entry.lock->late.asked, 0);
		assert_int_equal(taker->entry.lock->late.until_us, rig->now_us + MINUTE);
		takers_end(rig);
	}
}

/* While those of one listing are asked, those of the next one are not. */
static void one_listing_at_a_time(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 5, "#2-5");

	lock_want_list(taker->entry.lock);
	takers_turn(rig);
	list(rig, taker->entry.lock, LATE " #2-5 #9-6");
	rig_forget(rig);
	assert_string_equal(rig_unanswered(rig), "children /locks/a");
	takers_answer_list(rig, LATE " #2-5 #9-6");
	rig_expect_sent(rig, "");
	answer_owner(rig, RIG_SESSION + 1);
	answer_owner(rig, RIG_SESSION + 1);
	list(rig, taker->entry.lock, "#2-5 #9-6");
	assert_string_equal(rig_unanswered(rig), "get /locks/a/#9-6");
	takers_answer_error(rig, ENSEMBLE_NONODE);
}

/* Not so many are asked at a time that a heartbeat would wait for long: the rest after those. */
static void many_come(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 5, "#2-5");
	char names[8 * 70] = "#2-5";

	for (int i = 6; i < 6 + 70; i++)
		sprintf(names + strlen(names), " #9-%d", i);
	list(rig, taker->entry.lock, names);
	for (int i = 0; i < 64; i++)
		answer_owner(rig, RIG_SESSION);
	rig_forget(rig);
	for (int i = 0; i < 63; i++)
		takers_answer_error(rig, ENSEMBLE_OK);
	rig_expect_sent(rig, "");
	takers_answer_error(rig, ENSEMBLE_OK);
	rig_expect_sent(rig, "children /locks/a");
	takers_answer_list(rig, "#2-5 #9-70 #9-71 #9-72 #9-73 #9-74 #9-75");
	for (int i = 0; i < 6; i++)
		answer_owner(rig, RIG_SESSION + 1);
	rig_forget(rig);
	assert_string_equal(rig_unanswered(rig), "");
}

static void session_ends(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 5, "#2-5");

	list(rig, taker->entry.lock, LATE " #2-5");
	takers_answer_error(rig, ENSEMBLE_GONE);
	assert_int_equal(taker->entry.lock->late.until_us, 0);
}

/* ---- how long it is looked at ---- */

static void recheck(struct rig *rig, struct lock *lock)
{
	assert_true(lock->lists.recheck.armed);
	timer_clear(&rig->lc.timers, &lock->lists.recheck);
	lock->lists.recheck.fire(lock);
	takers_turn(rig);
}

/* Nobody takes the lock any more: it is kept, listed once more after a minute, and forgotten. */
static void without_takers(void **state)
{
	struct rig *rig = *state;
	struct lock *lock;

	take_and_give_up(rig, true);
	lock = lock_find(&rig->lc, "/locks/a", 8);
	assert_non_null(lock);
	assert_null(lock->takers.all);
	assert_int_equal(lock->late.until_us, rig->now_us + MINUTE);
	assert_int_equal(lock->lists.recheck.at_us, rig->now_us + MINUTE);
	rig->now_us += MINUTE;
	recheck(rig, lock);
	rig_expect_sent(rig, "children /locks/a");
	takers_answer_list(rig, LATE);
	rig_expect_sent(rig, "get /locks/a/#9-4");
	answer_owner(rig, RIG_SESSION);
	takers_answer_error(rig, ENSEMBLE_OK);
	/* More may come of the same server. */
	rig_expect_sent(rig, "delete /locks/a/#9-4 v2, children /locks/a");
	takers_answer_list(rig, "");
	rig->now_us += MINUTE;
	recheck(rig, lock);
	takers_answer_list(rig, "");
	assert_true(lock->idle);
}

/* An earlier listing does not end it, nor one without an answer. */
static void not_too_early(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = take_and_give_up(rig, false);
	struct lock *lock = taker->entry.lock;

	assert_int_equal(taker->entry.state, ENTRY_CREATING);
	takers_answer_made(rig, taker, 3);
	takers_answer_list(rig, "#2-3");
	takers_answer_watches(rig);
	takers_leave(rig, taker);
	takers_answer_error(rig, ENSEMBLE_OK);
	assert_null(lock->takers.all);
	assert_true(lock->lists.recheck.armed);
	recheck(rig, lock);
	takers_answer_list(rig, "");
	assert_true(lock->late.until_us > 0);
	rig->now_us += MINUTE;
	recheck(rig, lock);
	takers_reconnect(rig); /* the listing goes out again */
	takers_answer_watches(rig);
	assert_true(lock->late.until_us > 0);
	takers_answer_error(rig, ENSEMBLE_NOAUTH);
	assert_true(lock->late.until_us > 0);
	recheck(rig, lock);
	takers_answer_error(rig, ENSEMBLE_NONODE);
	assert_true(lock->idle);
}

/* What was not created is not awaited; in the next session all names are others. */
static void not_without_reason(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 5, "#2-5");

	assert_int_equal(taker->entry.lock->late.until_us, 0);
	takers_reconnect(rig);
	takers_answer_watches(rig);
	takers_answer_lists(rig, "#2-5");
	assert_int_equal(taker->entry.lock->late.until_us, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TAKERS_TEST(of_this_session),
		TAKERS_TEST(of_another),
		TAKERS_TEST(of_a_taker_with_another),
		TAKERS_TEST(of_one_that_has_lost_the_lock),
		TAKERS_TEST(of_one_that_awaits_a_name),
		TAKERS_TEST(awaits_a_name_since),
		TAKERS_TEST(found_among_copies),
		TAKERS_TEST(found_by_a_leaver),
		TAKERS_TEST(only_copies),
		TAKERS_TEST(one_without_an_answer),
		TAKERS_TEST(one_refused),
		TAKERS_TEST(shown_by_the_next_listing),
		TAKERS_TEST(behind_many_copies),
		cmocka_unit_test(not_told),
		TAKERS_TEST(one_listing_at_a_time),
		TAKERS_TEST(many_come),
		TAKERS_TEST(session_ends),
		TAKERS_TEST(without_takers),
		TAKERS_TEST(not_too_early),
		TAKERS_TEST(not_without_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
