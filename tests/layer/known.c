/* SPDX-License-Identifier: MIT
 *
 * The known queue of a lock: what an own create adds to it, and what ends it. Its places and what
 * was seen are tested beside the watches, in lock_watch.c.
 */
#include "lock/known.h"

#include "takers.h"

/* A lock whose queue is known up to number 1, and a taker of it whose create was not sent. */
static struct lc_taker *begin(struct rig *rig)
{
	struct lc_taker *taker;

	takers_queue(rig, 2, LC_EXCLUSIVE, 1, OTHER(0) " #2-1");
	taker = takers_take(rig, 3, LC_EXCLUSIVE, LC_FOREVER);
	assert_int_equal(taker->entry.lock->known.last, 1);
	assert_true(lock_is_watched(taker->entry.lock));
	return taker;
}

enum flaw { NONE, GAP, LOCK_NOT_WATCHED, IN_THE_ZONE, NOTHING_KNOWN, FLAWS };

/* No entry before it can be missing. */
static void own_one_extends_it(void **state)
{
	(void)state;
	for (size_t flaw = NONE; flaw < FLAWS; flaw++) {
		struct rig *rig = takers_begin();
		struct lc_taker *taker = begin(rig);
		struct lock *lock = taker->entry.lock;

		taker->entry.number = flaw == GAP ? 3 : 2;
		if (flaw == LOCK_NOT_WATCHED)
			watch_fired(&lock->node.watch);
		lock->known.in_zone = flaw == IN_THE_ZONE;
		if (flaw == NOTHING_KNOWN)
			known_forget(lock);
		known_made(&taker->entry);
		assert_int_equal(known_is_placed(&taker->entry), flaw == NONE);
		assert_int_equal(lock->known.last, flaw == NONE            ? 2
		                                   : flaw == NOTHING_KNOWN ? -1
		                                                           : 1);
		known_forget(lock);
		takers_end(rig);
	}
}

/* Another client may make a node with any number: the next one that the lock gives does not follow
 * that. */
static void numbers_made_by_hand_do_not_count(void **state)
{
	struct rig *rig = *state;
	struct lock *lock;

	lock = takers_queue(rig, 2, LC_EXCLUSIVE, 1, "#2-1 " MADE_BY_HAND(9))->entry.lock;
	assert_int_equal(lock->known.last, 1);
}

/* Nothing counts as shown by an older listing. */
static void forgotten(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 2, LC_EXCLUSIVE, 1, OTHER(0) " #2-1");
	struct lock *lock = taker->entry.lock;

	assert_true(known_is_placed(&taker->entry) && lock->lists.shown > 0);
	known_forget(lock);
	assert_false(known_is_placed(&taker->entry));
	assert_int_equal(lock->lists.shown, 0);
	assert_int_equal(lock->known.others, 0);
}

/* Whoever held exclusively came after those before it. A shared one says nothing of others. */
static void those_before_an_exclusive_one_are_doubtful(void **state)
{
	struct rig *rig = *state;
	struct lock *lock =
		takers_queue(rig, 2, LC_EXCLUSIVE, 4,
	                     OTHER(0) " " OTHER_SHARED(1) " " OTHER(2) " " OTHER(3) " #2-4")
			->entry.lock;

	known_other_gone(lock, OTHER_SHARED(1));
	assert_false(lock->known.entries->doubtful);
	known_other_gone(lock, OTHER(2));
	assert_true(lock->known.entries->doubtful);
	assert_string_equal(lock->known.entries->next->znode, OTHER(3));
	assert_false(lock->known.entries->next->doubtful);
	takers_turn(rig);
	takers_answer_list(rig, OTHER(3) " #2-4");
	assert_false(lock->known.entries->doubtful);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_one_extends_it),
		TAKERS_TEST(numbers_made_by_hand_do_not_count),
		TAKERS_TEST(forgotten),
		TAKERS_TEST(those_before_an_exclusive_one_are_doubtful),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
