/* SPDX-License-Identifier: MIT
 *
 * Takers that do not wait behind many: who is refused, and that nobody counts a refused one.
 */
#include "takers.h"

#include <string.h>

#define THEIRS(number) "_c_01234567-89ab-cdef-0123-456789abcdef-m1.7-lock-000000000" #number

static struct lc_taker *begin(struct rig *rig, pid_t pid, enum lc_mode mode, unsigned crowd)
{
	struct lc_taker *taker = takers_request(rig, &(struct lc_request){.lock = "a",
	                                                                  .mode = mode,
	                                                                  .wait_us = LC_FOREVER,
	                                                                  .crowd = crowd,
	                                                                  .pid = pid,
	                                                                  .command = "test"});

	takers_turn(rig);
	return taker;
}

/* Holders do not count, nor do slots. Nobody has an entry before it is known that it may wait. */
static void by_a_listing(void **state)
{
	static const struct {
		unsigned crowd, slots;
		enum lc_mode mode;
		const char *names;
		bool refused;
	} rows[] = {
		{1, 1, LC_EXCLUSIVE, "", false},
		{1, 1, LC_EXCLUSIVE, OTHER(1), false},
		{1, 1, LC_EXCLUSIVE, OTHER(1) " " OTHER(2), true},
		{2, 1, LC_EXCLUSIVE, OTHER(1) " " OTHER(2), false},
		{2, 1, LC_EXCLUSIVE, OTHER(1) " " OTHER(2) " " OTHER(3), true},
		{1, 1, LC_EXCLUSIVE, OTHER_SHARED(1) " " OTHER_SHARED(2), false},
		{1, 1, LC_EXCLUSIVE, OTHER_SHARED(1) " " OTHER(2), true},
		{1, 1, LC_SHARED, OTHER_SHARED(1) " " OTHER(2), true},
		{1, 1, LC_SHARED, OTHER(1), false},
		{1, 2, LC_EXCLUSIVE, THEIRS(1) " " THEIRS(2), false},
		{1, 2, LC_EXCLUSIVE, THEIRS(1) " " THEIRS(2) " " THEIRS(3), true},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct rig *rig = takers_begin();

		begin(rig, 1, rows[i].mode, rows[i].crowd);
		rig_expect_sent(rig, "watch /locks/a, sync /locks/a, children /locks/a");
		takers_answer_slots(rig, rows[i].slots);
		takers_answer_list(rig, rows[i].names);
		expect(!!strstr(rig->told, "1 taken EAGAIN") == rows[i].refused, "row %zu: %s", i,
		       rig->told);
		expect(!strstr(rig->sent, "create ephemeral") == rows[i].refused, "row %zu: %s", i,
		       rig->sent);
		expect(rig->lc.counters.crowded == rows[i].refused, "row %zu", i);
		takers_end(rig);
	}
}

/* Two come at once behind a holder of another host, and both have an entry. */
static struct lc_taker *begin_two(struct rig *rig)
{
	struct lc_taker *takers[2];

	for (int i = 0; i < 2; i++)
		takers[i] = begin(rig, 1 + i, LC_EXCLUSIVE, 1);
	takers_answer_lists(rig, OTHER(1));
	takers_answer_made(rig, takers[0], 2);
	takers_answer_made(rig, takers[1], 3);
	rig_forget(rig);
	takers_answer_lists(rig, OTHER(1) " #2-2 #3-3");
	rig_expect_told(rig, "");
	assert_int_equal(takers[0]->crowd, 0); /* it waits for good */
	assert_int_equal(takers[1]->entry.state, ENTRY_DELETING);
	return takers[1];
}

static void answer_delete(struct rig *rig, enum ensemble_result result)
{
	takers_answer_watches(rig);
	assert_int_equal(strncmp(rig_unanswered(rig), "delete ", 7), 0);
	takers_answer_error(rig, result);
}

/* It is told when its entry is gone, and somebody waits still. */
static void by_the_other(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = begin_two(rig);

	answer_delete(rig, ENSEMBLE_OK);
	rig_expect_told(rig, "");
	assert_int_equal(taker->wait, WAIT_PROBING);
	takers_answer_lists(rig, OTHER(1) " #2-2");
	rig_expect_told(rig, "2 taken EAGAIN");
	assert_int_equal(rig->lc.counters.crowded, 1);
}

/* Nobody waits any more: it does. */
static void not_any_more(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = begin_two(rig);

	answer_delete(rig, ENSEMBLE_OK);
	takers_answer_lists(rig, "#2-2");
	rig_expect_told(rig, "1 taken");
	assert_int_equal(taker->entry.state, ENTRY_CREATING);
	assert_int_equal(taker->crowd, 1);
}

/* Other takers may have been let in past it: that entry never waits again. */
static void never_again_with_that_entry(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = begin_two(rig);

	answer_delete(rig, ENSEMBLE_REFUSED);
	assert_int_equal(taker->entry.state, ENTRY_PRESENT);
	takers_leave(rig, taker->prev);
	answer_delete(rig, ENSEMBLE_OK);
	lock_want_list(taker->entry.lock);
	takers_turn(rig);
	takers_answer_lists(rig, "#3-3");
	rig_expect_told(rig, "");
	rig_forget(rig);
	takers_run(rig, RETRY_US);
	assert_non_null(strstr(rig->sent, "delete /locks/a/#3-3"));
	assert_int_equal(taker->state, TAKER_WAITING);
}

/* The delete's answer is lost: a listing without the entry takes nothing from it. */
static void unknown(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = begin_two(rig);

	rig_forget(rig);
	answer_delete(rig, ENSEMBLE_UNKNOWN);
	assert_int_equal(taker->entry.state, ENTRY_DELETING); /* at once again */
	answer_delete(rig, ENSEMBLE_REFUSED);
	lock_want_list(taker->entry.lock);
	takers_turn(rig);
	takers_answer_list(rig, OTHER(1) " #2-2");
	assert_int_equal(taker->entry.state, ENTRY_ABSENT);
	rig_expect_reported(rig, "cannot be deleted");
	takers_answer_lists(rig, OTHER(1) " #2-2");
	rig_expect_told(rig, "2 taken EAGAIN");
}

/* Its time goes on while it is withdrawn. */
static void too_late(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker;

	takers_queue(rig, 3, LC_EXCLUSIVE, 1, "#2-1");
	taker = takers_request(
		rig,
		&(struct lc_request){
			.lock = "a", .wait_us = 500000, .crowd = 1, .pid = 1, .command = "test"});
	takers_turn(rig);
	takers_answer_lists(rig, "#2-1");
	takers_answer_made(rig, taker, 3);
	takers_answer_lists(rig, "#2-1 " OTHER(2) " #3-3");
	answer_delete(rig, ENSEMBLE_REFUSED);
	takers_run(rig, 500000);
	rig_expect_told(rig, "1 taken ETIMEDOUT");
}

/* Somebody of ours waits already, but only a listing can show how many wait before it. */
static void listed_again(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker;

	takers_queue(rig, 2, LC_EXCLUSIVE, 1, "#2-1");
	takers_queue(rig, 3, LC_EXCLUSIVE, 2, "#2-1 #3-2");
	taker = begin(rig, 1, LC_EXCLUSIVE, 2);
	takers_answer_watches(rig);
	rig_forget(rig);
	takers_answer_list(rig, "#2-1 #3-2");
	rig_expect_sent(rig, "create ephemeral /locks/a/#4-");
	takers_answer_made(rig, taker, 3);
	rig_expect_sent(rig, "children /locks/a");
}

/* Waiters of this mount stand before it. */
static void behind_our_own(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker;

	takers_queue(rig, 2, LC_EXCLUSIVE, 1, "#2-1");
	takers_queue(rig, 3, LC_EXCLUSIVE, 2, "#2-1 #3-2");
	takers_queue(rig, 4, LC_EXCLUSIVE, 3, "#2-1 #3-2 #4-3");
	taker = begin(rig, 1, LC_EXCLUSIVE, 3);
	takers_answer_lists(rig, "#2-1 #3-2 #4-3");
	takers_answer_made(rig, taker, 5);
	takers_answer_lists(rig, "#2-1 #3-2 #4-3 " OTHER(4) " #5-5");
	assert_int_equal(taker->entry.state, ENTRY_DELETING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_a_listing), TAKERS_TEST(by_the_other),
		TAKERS_TEST(not_any_more),      TAKERS_TEST(never_again_with_that_entry),
		TAKERS_TEST(unknown),           TAKERS_TEST(too_late),
		TAKERS_TEST(listed_again),      TAKERS_TEST(behind_our_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
