/* SPDX-License-Identifier: MIT
 *
 * The watches of a lock: on its node, for the slots and for its identity, and on the entry that
 * the first waiter waits for.
 */
#include "lock/lock_watch.h"

#include "rig.h"

#include <stdio.h>
#include <string.h>

#define FRONT "x-lock-0000000001"
#define OTHER "y-lock-0000000002"

static struct lc_taker taker; /* its entry keeps the lock */
static struct lock *lock;

static int set_up(void **state)
{
	struct rig *rig = rig_begin_ready();

	taker = (struct lc_taker){0};
	rig_make_entry(rig, &taker.entry, "a", 7, LC_EXCLUSIVE);
	lock = taker.entry.lock;
	DL_APPEND(lock->takers.all, &taker);
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	rig_end_session(rig, false);
	lock_watches_gone(lock);
	assert_null(rig->watches.unwatches); /* no watch is to be taken back */
	assert_int_equal(lock->uses, 1);
	entry_set_ahead(&taker.entry, NULL, AHEAD_UNKNOWN);
	DL_DELETE(lock->takers.all, &taker);
	lock_unwant_list(lock);
	lock_untouch(lock);
	rig_free_entry(&taker.entry);
	rig_finish(rig);
	return 0;
}

static void answer_lock(struct rig *rig, int64_t czxid, int32_t version, const char *data)
{
	struct ensemble_stat stat = {.czxid = czxid, .version = version};

	rig_answer(rig, &(struct ensemble_answer){
				.stat = &stat, .data = data, .data_len = (int)strlen(data)});
}

static bool is_list_wanted(void)
{
	bool wanted = lock->lists.wanted;

	lock_unwant_list(lock);
	return wanted;
}

static bool is_listed_later(struct rig *rig)
{
	bool later = lock->lists.recheck.armed;

	timer_clear(&rig->lc.timers, &lock->lists.recheck);
	return later;
}

/* ---- its own node ---- */

static void one_slot(void **state)
{
	struct rig *rig = *state;

	lock_watch(lock);
	lock_watch(lock);
	rig_expect_sent(rig, "watch /locks/a");
	answer_lock(rig, 50, 3, "");
	assert_int_equal(lock->node.slots, 1);
	assert_int_equal(lock->node.version, 3);
	assert_int_equal(lock->node.czxid, 50);
	assert_false(is_list_wanted());
	assert_true(lock_is_watched(lock));
	lock_watch(lock);
	rig_expect_sent(rig, "");
}

/* The last listing was judged for another number of slots: the lock is listed again. */
static void several_slots(void **state)
{
	struct rig *rig = *state;

	lock_watch(lock);
	answer_lock(rig, 50, 3, "zklockfs: 1\nslots: 2\n\n");
	assert_int_equal(lock->node.slots, 2);
	assert_true(is_list_wanted());
	watch_fired(&lock->node.watch);
	lock_watch(lock);
	answer_lock(rig, 50, 4, ""); /* fewer slots now */
	assert_int_equal(lock->node.slots, 1);
	assert_true(is_list_wanted());
	watch_fired(&lock->node.watch);
	lock->lists.slots_asked = true; /* a try waits for the number of slots */
	lock_watch(lock);
	answer_lock(rig, 50, 4, "");
	assert_true(is_list_wanted());
	assert_false(lock->lists.slots_asked);
}

/* Another lock has the name: all that is remembered of the old one is void. */
static void made_anew(void **state)
{
	struct rig *rig = *state;

	lock_watch(lock);
	answer_lock(rig, 50, 3, "");
	taker.entry.place.first = taker.entry.place.adjacent = true;
	entry_set_ahead(&taker.entry, FRONT, AHEAD_FIRST);
	lock_see_czxid(lock, 50);
	assert_true(taker.entry.place.first && taker.entry.place.adjacent &&
	            taker.entry.place.ahead);
	assert_int_equal(lock->node.slots, 1);
	lock_see_czxid(lock, 60);
	assert_false(taker.entry.place.first || taker.entry.place.adjacent ||
	             taker.entry.place.ahead);
	assert_int_equal(lock->node.slots, 0);
	assert_false(lock_is_watched(lock));
	assert_int_equal(lock->node.czxid, 60);
}

static void cannot_be_watched(void **state)
{
	static const struct {
		enum ensemble_result result;
		bool lists, later;
	} rows[] = {
		{ENSEMBLE_NONODE, true, false},
		{ENSEMBLE_UNKNOWN, false, false}, /* the next connection watches again */
		{ENSEMBLE_GONE, false, false},
		{ENSEMBLE_NOAUTH, false, true},
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		lock_watch(lock);
		rig_answer_error(rig, rows[i].result);
		expect(is_list_wanted() == rows[i].lists, "row %zu", i);
		expect(is_listed_later(rig) == rows[i].later, "row %zu", i);
		assert_false(lock_is_watched(lock));
	}
	rig_disconnect(rig);
	rig_forget(rig);
	lock_watch(lock);
	rig_expect_sent(rig, "");
}

/* ---- the entry that the front waits for ---- */

static void front(void **state)
{
	struct rig *rig = *state;

	assert_false(lock_front_is(lock, FRONT));
	lock_watch_front(lock, FRONT);
	lock_watch_front(lock, FRONT);
	rig_expect_sent(rig, "watch /locks/a/" FRONT);
	assert_true(lock_front_is(lock, FRONT));
	assert_false(lock_front_is(lock, OTHER));
	assert_false(lock_front_is_watched(lock));
	rig_answer_data(rig, 0, "");
	assert_true(lock_front_is_watched(lock));
	assert_int_equal(lock->uses, 2);
	lock_front_fired(lock);
	assert_false(lock_front_is_watched(lock));
	lock_watch_front(lock, FRONT);
	rig_expect_sent(rig, "watch /locks/a/" FRONT);
	rig_answer_data(rig, 0, "");
	lock_watch_none(lock);
	lock_watch_none(lock);
	rig_expect_sent(rig, "unwatch /locks/a/" FRONT);
	assert_int_equal(lock->uses, 1);
}

/* Armed on the former connection: it would be no proof. */
static void front_on_another_connection(void **state)
{
	struct rig *rig = *state;

	lock_watch_front(lock, FRONT);
	rig_answer_data(rig, 0, "");
	rig_reconnect(rig);
	rig_forget(rig);
	assert_false(lock_front_is_watched(lock));
	lock_watch_front(lock, FRONT);
	lock_watch_front(lock, FRONT);
	rig_expect_sent(rig, "watch /locks/a/" FRONT);
	rig_answer_data(rig, 0, "");
	assert_true(lock_front_is_watched(lock));
	lock_watch_front(lock, FRONT);
	rig_expect_sent(rig, "");
	lock_watch_none(lock);
	rig_answer_error(rig, ENSEMBLE_OK);
}

static void another_front(void **state)
{
	struct rig *rig = *state;

	lock_watch_front(lock, FRONT);
	rig_answer_data(rig, 0, "");
	rig_forget(rig);
	lock_watch_front(lock, OTHER);
	rig_expect_sent(rig, "unwatch /locks/a/" FRONT ", watch /locks/a/" OTHER);
	/* This front is given up before its watch is answered. */
	lock_watch_front(lock, FRONT);
	rig_expect_sent(rig, "watch /locks/a/" FRONT);
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_answer_data(rig, 0, "");
	rig_expect_sent(rig, "unwatch /locks/a/" OTHER);
	rig_answer_data(rig, 0, "");
	assert_true(lock_front_is_watched(lock));
}

/* The same front is watched again before the first answer: that watch is not taken back. */
static void the_same_front_again(void **state)
{
	struct rig *rig = *state;

	lock_watch_front(lock, FRONT);
	lock_watch_none(lock);
	lock_watch_front(lock, FRONT);
	rig_forget(rig);
	rig_answer_data(rig, 0, "");
	rig_expect_sent(rig, "");
	rig_answer_data(rig, 0, "");
	assert_true(lock_front_is_watched(lock));
	assert_int_equal(lock->uses, 2);
}

static void front_is_gone(void **state)
{
	struct rig *rig = *state;

	lock_watch_front(lock, FRONT);
	assert_null(lock_front_gone(lock));
	rig_answer_error(rig, ENSEMBLE_NONODE);
	assert_string_equal(lock_front_gone(lock), FRONT);
	assert_true(lock->touched);
	assert_false(is_list_wanted());
	lock_watch_none(lock);
	assert_null(lock_front_gone(lock));
}

/* The lock is charged for names as long as those of zklockfs. A longer one is not watched. */
static void a_long_name(void **state)
{
	char znode[NAME_MAX_WHOLE + 1], path[NAME_MAX_WHOLE + 20];
	struct rig *rig = *state;

	memset(znode, 'x', NAME_MAX_WHOLE);
	strcpy(znode + NAME_MAX_WHOLE - 10, "0000000001");
	timer_clear(&rig->lc.timers, &lock->lists.recheck);
	lock_watch_front(lock, FRONT);
	rig_answer_data(rig, 0, "");
	rig_forget(rig);
	lock_watch_front(lock, znode);
	rig_expect_sent(rig, "unwatch /locks/a/" FRONT);
	rig_answer_data(rig, 0, "");
	assert_false(lock_front_is(lock, FRONT));
	assert_false(lock_front_is(lock, znode));
	assert_true(is_listed_later(rig));
	lock_watch_front(lock, znode + 1);
	snprintf(path, sizeof(path), "watch /locks/a/%s", znode + 1);
	rig_expect_sent(rig, path);
	rig_answer_data(rig, 0, "");
	assert_true(lock_front_is_watched(lock));
}

static void front_is_not_answered(void **state)
{
	static const struct {
		enum ensemble_result result;
		bool lists, later;
	} rows[] = {
		{ENSEMBLE_UNKNOWN, true, false},
		{ENSEMBLE_GONE, false, false},
		{ENSEMBLE_NOAUTH, false, true},
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < LENGTH(rows); i++) {
		lock_watch_front(lock, FRONT);
		rig_answer_error(rig, rows[i].result);
		expect(is_list_wanted() == rows[i].lists, "row %zu", i);
		expect(is_listed_later(rig) == rows[i].later, "row %zu", i);
		assert_null(lock_front_gone(lock));
	}
}

#define LOCK_WATCH_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOCK_WATCH_TEST(one_slot),
		LOCK_WATCH_TEST(several_slots),
		LOCK_WATCH_TEST(made_anew),
		LOCK_WATCH_TEST(cannot_be_watched),
		LOCK_WATCH_TEST(front),
		LOCK_WATCH_TEST(front_on_another_connection),
		LOCK_WATCH_TEST(another_front),
		LOCK_WATCH_TEST(the_same_front_again),
		LOCK_WATCH_TEST(front_is_gone),
		LOCK_WATCH_TEST(a_long_name),
		LOCK_WATCH_TEST(front_is_not_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
