/* SPDX-License-Identifier: MIT
 *
 * Grants without a listing. The tests take away each condition of the rule at the head of
 * handoff.c.
 */
#include "grant/handoff.h"

#include "lock/lock_watch.h"
#include "takers.h"

#include <string.h>

/* A holder, and the next taker of this mount right behind it. */
struct pair {
	struct lc_taker *holder, *next;
	struct lock *lock;
};

static struct pair pair_up(struct rig *rig)
{
	struct pair pair;

	pair.holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");
	pair.next = takers_queue(rig, 2, LC_EXCLUSIVE, 2, "#2-1 #3-2");
	pair.lock = pair.holder->entry.lock;
	assert_true(lock_is_watched(pair.lock));
	return pair;
}

/* ---- in the turn of a release ---- */

static void next_of_ours(void **state)
{
	struct rig *rig = *state;
	struct pair pair = pair_up(rig);

	takers_leave(rig, pair.holder);
	rig_expect_told(rig, "2 taken");
	/* Its watch tells what the own server has heard, which may be late. */
	rig_expect_sent(rig, "check /locks/a/#3-2 + delete /locks/a/#2-1");
	assert_int_equal(rig->lc.counters.hand_offs, 1);
	assert_true(pair.next->entry.place.first);
	assert_ptr_equal(pair.lock->handoff.unseen, &pair.next->entry);
}

/* A leaver of this mount stands in between. */
static void over_a_leaver(void **state)
{
	struct rig *rig = *state;
	struct pair pair = pair_up(rig);
	struct lc_taker *third = takers_queue(rig, 3, LC_EXCLUSIVE, 3, "#2-1 #3-2 #4-3");

	takers_leave(rig, pair.next); /* its delete is under way */
	rig_forget(rig);
	takers_leave(rig, pair.holder);
	rig_expect_told(rig, "3 taken");
	assert_true(third->entry.place.first);
}

enum doubt {
	NONE,
	NOT_ADJACENT,
	GONE,
	NEGATIVE,
	IN_ZONE,
	SHARED,
	MEANS_ANOTHER,
	HOLDER_NOT_FIRST,
	HOLDER_SHARED,
	HOLDER_GONE,
	UNRESOLVED,
	SECOND_HOLDER,
	NOT_WATCHED,
	NO_LEASE,
	DOUBTS,
};

static void cause(enum doubt doubt, struct rig *rig, const struct pair *pair)
{
	switch (doubt) {
	case NOT_ADJACENT:
		pair->next->entry.place.adjacent = false;
		break;
	case GONE:
		pair->next->entry.gone = true;
		break;
	case NEGATIVE:
		pair->next->entry.number = -1;
		break;
	case IN_ZONE:
		pair->next->entry.number = NAME_NUMBER_ZONE;
		break;
	case SHARED:
		pair->next->entry.mode = LC_SHARED;
		break;
	case MEANS_ANOTHER:
		pair->next->meant = 49;
		break;
	case HOLDER_NOT_FIRST:
		pair->holder->entry.place.first = false;
		break;
	case HOLDER_SHARED:
		pair->holder->entry.mode = LC_SHARED;
		break;
	case HOLDER_GONE:
		pair->holder->entry.gone = true;
		break;
	case UNRESOLVED:
		pair->lock->batch.unresolved = true;
		break;
	case SECOND_HOLDER:
		pair->lock->takers.holding++;
		break;
	case NOT_WATCHED:
		watch_fired(&pair->lock->node.watch);
		break;
	case NO_LEASE:
		rig->session.lease.deadline_us = rig->now_us + MS;
		break;
	case NONE:
	case DOUBTS:
		break;
	}
}

static void needs_a_listing(void **state)
{
	(void)state;
	for (size_t doubt = NONE; doubt < DOUBTS; doubt++) {
		struct rig *rig = takers_begin();
		struct pair pair = pair_up(rig);
		enum lc_mode mode = pair.holder->entry.mode;

		cause((enum doubt)doubt, rig, &pair);
		handoff_leave(pair.holder);
		expect((pair.next->state == TAKER_HELD) == (doubt == NONE), "doubt %zu", doubt);
		pair.lock->takers.holding -= doubt == SECOND_HOLDER;
		pair.holder->entry.mode = mode;
		pair.next->entry.mode = LC_EXCLUSIVE;
		pair.next->entry.number = 2;
		takers_end(rig);
	}
}

/* The guarding entry is deleted with a check that the next taker's is there, alone if need be.
 * If that is refused, it is deleted when that entry was seen behind the refusal, not before. */
static void guard(void **state)
{
	struct rig *rig = *state;
	struct pair pair = pair_up(rig);

	watch_fired(&pair.next->entry.watch);
	pair.lock->batch.last_write_ok = false; /* no transactions with others */
	takers_leave(rig, pair.holder);
	rig_expect_told(rig, "2 taken");
	rig_expect_sent(rig, "check /locks/a/#3-2 + delete /locks/a/#2-1");
	takers_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_sent(rig, "watch /locks/a/#3-2");
	assert_true(pair.lock->handoff.held_back);
	handoff_release(pair.lock);
	handoff_seen(&pair.holder->entry); /* not the unseen entry */
	takers_turn(rig);
	rig_expect_sent(rig, "");
	takers_answer_watches(rig);
	rig_expect_sent(rig, "delete /locks/a/#2-1");
	assert_false(pair.lock->handoff.held_back);
	assert_null(pair.lock->handoff.unseen);
}

/* The watch is good behind the refusal: the guard itself must be gone, and is deleted alone. */
static void guard_is_gone(void **state)
{
	struct rig *rig = *state;
	struct pair pair = pair_up(rig);

	takers_leave(rig, pair.holder);
	rig_forget(rig);
	takers_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_sent(rig, "delete /locks/a/#2-1");
	assert_null(pair.lock->handoff.unseen);
}

/* A watch that was asked before the grant, and is answered late, is no proof. */
static void old_watch(void **state)
{
	struct rig *rig = *state;
	struct pair pair = pair_up(rig);

	watch_fired(&pair.next->entry.watch);
	entry_watch(&pair.next->entry);
	takers_leave(rig, pair.holder);
	takers_answer_watches(rig);
	assert_ptr_equal(pair.lock->handoff.unseen, &pair.next->entry);
	rig_forget(rig);
	takers_answer_error(rig, ENSEMBLE_OK); /* of the check */
	assert_null(pair.lock->handoff.unseen);
}

/* What the refused delete guarded is handed on once more: it goes with the new check. */
static void guard_of_the_one_behind(void **state)
{
	struct rig *rig = *state;
	struct pair pair = pair_up(rig);
	struct lc_taker *third = takers_queue(rig, 3, LC_EXCLUSIVE, 3, "#2-1 #3-2 #4-3");

	watch_fired(&pair.next->entry.watch);
	takers_leave(rig, pair.holder);
	takers_answer_error(rig, ENSEMBLE_NONODE);
	assert_true(pair.lock->handoff.held_back);
	rig_forget(rig);
	takers_leave(rig, pair.next);
	rig_expect_told(rig, "3 taken");
	rig_expect_sent(rig, "check /locks/a/#4-3 + delete /locks/a/#2-1, "
	                     "check /locks/a/#4-3 + delete /locks/a/#3-2");
	assert_ptr_equal(pair.lock->handoff.unseen, &third->entry);
}

/* ---- preparing the next hand-off ---- */

static void watches_for_the_next(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1"), *next;

	handoff_watch_next(holder);
	rig_expect_sent(rig, ""); /* there is no next taker */
	next = takers_take(rig, 2, LC_EXCLUSIVE, LC_FOREVER);
	takers_turn(rig);
	rig_forget(rig);
	takers_answer_made(rig, next, 2);
	rig_expect_sent(rig, "watch /locks/a"); /* and no more, while the hold may be short */
	takers_answer_list(rig, "#2-1 #3-2");
	takers_answer_watches(rig);
	rig_forget(rig);
	timer_clear(&rig->lc.timers, &holder->recheck);
	watch_fired(&next->entry.watch);
	handoff_watch_next(holder);
	rig_expect_sent(rig, "watch /locks/a/#3-2");
}

/* The numbers do not follow each other: the lock is listed while the holder still holds. */
static void looks_for_the_next(void **state)
{
	struct rig *rig = *state;
	struct pair pair = pair_up(rig);
	struct lc_taker *third = takers_queue(rig, 3, LC_EXCLUSIVE, 9, "#2-1 #3-2 #4-9");

	pair.next->entry.place.first = false;
	third->entry.place.adjacent = false;
	entry_set_ahead(&third->entry, NULL, AHEAD_UNKNOWN);
	lock_unwant_list(pair.lock);
	takers_leave(rig, pair.holder);
	rig_expect_told(rig, "2 taken");
	assert_non_null(strstr(rig->sent, "children /locks/a"));
	takers_answer_error(rig, ENSEMBLE_OK); /* the delete */
	takers_answer_list(rig, "#3-2 " OTHER(5) " #4-9");
	rig_forget(rig);
	assert_string_equal(third->entry.place.ahead, OTHER(5));
}

/* ---- a create in the transaction that deletes the first ---- */

enum flaw {
	NO_FLAW,
	FOLLOWS_NONE,
	ANOTHER_NUMBER,
	FAR_NUMBER,
	HAS_FAILED,
	MEANS_OTHER,
	SOMEBODY_HOLDS,
	IS_UNRESOLVED,
	NO_GRANT,
	FLAWS
};

static void made_first(void **state)
{
	(void)state;
	for (size_t flaw = NO_FLAW; flaw < FLAWS; flaw++) {
		struct rig *rig = takers_begin();
		struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 5, OTHER(4) " #2-5");
		struct lock *lock = taker->entry.lock;

		lock_unwant_list(lock);
		taker->entry.place.follows = flaw == FOLLOWS_NONE ? -1 : 4;
		taker->entry.number = flaw == ANOTHER_NUMBER ? 6 : 5;
		if (flaw == FAR_NUMBER) {
			taker->entry.number = NAME_NUMBER_ZONE;
			taker->entry.place.follows = NAME_NUMBER_ZONE - 1;
		}
		if (flaw == HAS_FAILED)
			taker_fail(taker, -1);
		taker->meant = flaw == MEANS_OTHER ? 49 : 0;
		lock->takers.holding += flaw == SOMEBODY_HOLDS;
		lock->batch.unresolved = flaw == IS_UNRESOLVED;
		if (flaw == NO_GRANT)
			rig->session.lease.deadline_us = rig->now_us + MS;
		handoff_present(&taker->entry, flaw != FLAWS);
		expect((taker->state == TAKER_HELD) == (flaw == NO_FLAW), "flaw %zu", flaw);
		lock->takers.holding -= flaw == SOMEBODY_HOLDS;
		taker->entry.number = 5;
		takers_end(rig);
	}
}

/* The number of the deleted entry may be 0. */
static void made_after_the_very_first(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 1, OTHER(0) " #2-1");

	taker->entry.place.follows = 0;
	handoff_present(&taker->entry, true);
	assert_int_equal(taker->state, TAKER_HELD);
}

/* Another client's create came in between: the next listing must not be left out. */
static void overtaken(void **state)
{
	static const struct {
		int64_t follows;
		bool was, is;
	} rows[] = {
		{4, false, false}, {4, true, false},   {3, false, true}, {3, true, true},
		{0, false, true},  {-1, false, false}, {-1, true, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rig *rig = takers_begin();
		struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 5, OTHER(4) " #2-5");
		struct lock *lock = taker->entry.lock;

		taker->entry.place.follows = rows[i].follows;
		lock->batch.overtaken = rows[i].was;
		handoff_present(&taker->entry, true);
		expect(lock->batch.overtaken == rows[i].is, "row %zu", i);
		takers_end(rig);
	}
}

/* An entry that a listing has found was not made just now, so this alone grants nothing. */
static void found_is_not_made(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 5, OTHER(4) " #2-5");

	taker->entry.place.follows = 4;
	handoff_present(&taker->entry, false);
	assert_int_equal(taker->state, TAKER_WAITING);
}

/* The taker that would have caused a listing has gone since the create was sent. */
static void nobody_listed_for_it(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 5, OTHER(4) " #2-5");
	struct lock *lock = taker->entry.lock;

	taker->entry.lists.created_at = lock->lists.sent;
	lock_unwant_list(lock);
	handoff_present(&taker->entry, true);
	assert_false(lock->lists.wanted); /* the front is watched */
	lock->front.taker = NULL;
	handoff_present(&taker->entry, true);
	assert_true(lock->lists.wanted);
	lock_unwant_list(lock);
	taker->entry.lists.created_at = lock->lists.sent - 1; /* a listing was sent since */
	handoff_present(&taker->entry, true);
	assert_false(lock->lists.wanted);
}

static void numbers_that_follow(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *first = takers_queue(rig, 1, LC_EXCLUSIVE, 5, OTHER(4) " #2-5"),
			*taker = takers_queue(rig, 2, LC_EXCLUSIVE, 6, OTHER(4) " #2-5 #3-6"),
			*last = takers_queue(rig, 3, LC_EXCLUSIVE, 8, OTHER(4) " #2-5 #3-6 #4-8");

	handoff_present(&first->entry, false);
	assert_false(first->entry.place.adjacent);
	taker->entry.place.adjacent = false;
	handoff_present(&taker->entry, false);
	assert_true(taker->entry.place.adjacent);
	handoff_present(&last->entry, false);
	assert_false(last->entry.place.adjacent);
	taker->entry.state = ENTRY_CREATING; /* an entry counts only when it is there */
	last->entry.number = 7;
	handoff_present(&last->entry, false);
	assert_false(last->entry.place.adjacent);
	taker->entry.state = ENTRY_PRESENT;
	handoff_present(&last->entry, false);
	assert_true(last->entry.place.adjacent);
	taker->entry.number = -1; /* the counter has turned negative, and comes to 0 again */
	last->entry.number = 0;
	handoff_present(&last->entry, false);
	assert_false(last->entry.place.adjacent);
	taker->entry.number = 6;
	last->entry.number = 8;
}

/* ---- an entry goes ---- */

static void goes_between_two(void **state)
{
	static const struct {
		bool before, after, both;
	} rows[] = {{true, true, true}, {false, true, false}, {true, false, false}};
	struct rig *rig = *state;
	struct pair pair = pair_up(rig);
	struct lc_taker *third = takers_queue(rig, 3, LC_EXCLUSIVE, 3, "#2-1 #3-2 #4-3");

	for (size_t i = 0; i < LENGTH(rows); i++) {
		pair.next->entry.place.adjacent = rows[i].before;
		third->entry.place.adjacent = rows[i].after;
		handoff_absent(&pair.next->entry);
		expect(third->entry.place.adjacent == rows[i].both, "row %zu", i);
	}
	third->entry.state = ENTRY_CREATING; /* it is not in the queue yet */
	third->entry.place.adjacent = true;
	pair.next->entry.place.adjacent = false;
	handoff_absent(&pair.next->entry);
	assert_true(third->entry.place.adjacent);
	third->entry.state = ENTRY_PRESENT;
}

/* Our holder was the first, and another client's entry stood directly behind it. */
static void others_become_first(void **state)
{
	static const struct {
		bool first;
		enum entry_ahead was, is;
	} rows[] = {{true, AHEAD_AFTER_OURS, AHEAD_FIRST},
	            {false, AHEAD_AFTER_OURS, AHEAD_UNKNOWN},
	            {true, AHEAD_UNKNOWN, AHEAD_UNKNOWN}};
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1"),
			*next = takers_queue(rig, 2, LC_EXCLUSIVE, 5, "#2-1 " OTHER(3) " #3-5");

	for (size_t i = 0; i < LENGTH(rows); i++) {
		entry_set_ahead(&next->entry, OTHER(3), rows[i].was);
		holder->entry.place.first = rows[i].first;
		handoff_absent(&holder->entry);
		expect(next->entry.place.ahead_is == rows[i].is, "row %zu", i);
	}
	entry_set_ahead(&next->entry, OTHER(3), AHEAD_FIRST);
	handoff_absent(&holder->entry);
	assert_int_equal(next->entry.place.ahead_is, AHEAD_FIRST);
}

/* ---- from another client ---- */

static struct lc_taker *behind_another(struct rig *rig)
{
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 2, OTHER(1) " #2-2");

	assert_true(taker->entry.place.ahead_is == AHEAD_FIRST && entry_is_seen(&taker->entry));
	return taker;
}

static void event_is_the_grant(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = behind_another(rig);

	assert_ptr_equal(taker->entry.lock->front.taker, taker);
	takers_change(rig, OTHER(1), ENSEMBLE_DELETED);
	rig_expect_told(rig, "1 taken");
	rig_expect_sent(rig, "");
	assert_true(taker->entry.place.first);
	assert_null(taker->entry.place.ahead);
}

/* Its watch was of another connection: what was seen on this one may be older. */
static void event_of_another_connection(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = behind_another(rig);

	lock_front_fired(taker->entry.lock);
	takers_change(rig, OTHER(1), ENSEMBLE_DELETED);
	rig_expect_told(rig, "");
	assert_int_equal(taker->state, TAKER_WAITING);
}

enum hitch {
	NO_HITCH,
	TWO_SLOTS,
	UNWATCHED,
	UNSEEN,
	NOT_FIRST,
	ANOTHER_NODE,
	NO_LONGER_WAITS,
	LEASE_IS_SHORT,
	HITCHES
};

static void event_is_no_grant(void **state)
{
	(void)state;
	for (size_t hitch = NO_HITCH; hitch < HITCHES; hitch++) {
		struct rig *rig = takers_begin();
		struct lc_taker *taker;
		bool granted;

		taker = behind_another(rig);
		if (hitch == TWO_SLOTS)
			taker->entry.lock->node.slots = 2;
		if (hitch == UNWATCHED)
			watch_fired(&taker->entry.lock->node.watch);
		if (hitch == UNSEEN)
			watch_fired(&taker->entry.watch);
		if (hitch == NOT_FIRST)
			taker->entry.place.ahead_is = AHEAD_UNKNOWN;
		if (hitch == NO_LONGER_WAITS)
			taker_fail(taker, -1);
		if (hitch == LEASE_IS_SHORT)
			rig->session.lease.deadline_us = rig->now_us + MS;
		granted = handoff_by_event(taker->entry.lock,
		                           hitch == ANOTHER_NODE ? OTHER(9) : OTHER(1));
		expect(granted == (hitch == NO_HITCH), "hitch %zu", hitch);
		expect((taker->state == TAKER_HELD) == granted, "hitch %zu", hitch);
		takers_end(rig);
	}
}

/* All shared takers that wait for this entry alone are granted. */
static void shared_takers(void **state)
{
	struct rig *rig = *state;

	takers_queue(rig, 1, LC_SHARED, 2, OTHER(1) " #2-2");
	takers_queue(rig, 2, LC_SHARED, 3, OTHER(1) " #2-2 #3-3");
	lock_want_list(rig->locks.by_path);
	takers_turn(rig);
	takers_answer_list(rig, OTHER(1) " #2-2 #3-3");
	takers_answer_watches(rig);
	rig_forget(rig);
	takers_change(rig, OTHER(1), ENSEMBLE_DELETED);
	rig_expect_told(rig, "1 taken, 2 taken");
	assert_false(entry_next(&rig->lc, NULL)->place.first);
}

static void lines_up(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = behind_another(rig);
	struct lock *lock = taker->entry.lock;

	lock->front.taker = NULL;
	assert_true(handoff_line_up(lock));
	assert_ptr_equal(lock->front.taker, taker);
	lock->front.taker = NULL;
	entry_set_ahead(&taker->entry, NULL, AHEAD_UNKNOWN);
	assert_false(handoff_line_up(lock));
	entry_set_ahead(&taker->entry, OTHER(1), AHEAD_FIRST);
	taker->entry.state = ENTRY_ABSENT; /* its entry is still to come */
	assert_false(handoff_line_up(lock));
	taker->entry.state = ENTRY_PRESENT;
	taker_fail(taker, -1);
	assert_false(handoff_line_up(lock));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TAKERS_TEST(next_of_ours),
		TAKERS_TEST(over_a_leaver),
		cmocka_unit_test(needs_a_listing),
		TAKERS_TEST(guard),
		TAKERS_TEST(guard_is_gone),
		TAKERS_TEST(old_watch),
		TAKERS_TEST(guard_of_the_one_behind),
		TAKERS_TEST(watches_for_the_next),
		TAKERS_TEST(looks_for_the_next),
		cmocka_unit_test(made_first),
		TAKERS_TEST(made_after_the_very_first),
		cmocka_unit_test(overtaken),
		TAKERS_TEST(found_is_not_made),
		TAKERS_TEST(nobody_listed_for_it),
		TAKERS_TEST(numbers_that_follow),
		TAKERS_TEST(goes_between_two),
		TAKERS_TEST(others_become_first),
		TAKERS_TEST(event_is_the_grant),
		TAKERS_TEST(event_of_another_connection),
		cmocka_unit_test(event_is_no_grant),
		TAKERS_TEST(shared_takers),
		TAKERS_TEST(lines_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
