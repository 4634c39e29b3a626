/* SPDX-License-Identifier: MIT
 *
 * The watches of a lock: on its node, for the slots and for its identity, and on the entry that
 * the first waiter waits for.
 */
#include "lock/known.h"
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
	known_forget(lock);
	DL_DELETE(lock->takers.all, &taker);
	lock_unwant_list(lock);
	lock_untouch(lock);
	taker.entry.state = ENTRY_ABSENT;
	rig_free_entry(&taker.entry);
	rig_finish(rig);
	return 0;
}

/* A listing has shown two entries: another client's, and the taker's own. */
static void know(void)
{
	struct queue_entry entries[] = {{.znode = FRONT}, {.znode = taker.entry.name}};
	struct queue queue = {.entries = entries, .count = 2, .made = 10};

	strcpy(taker.entry.name, strrchr(rig_entry_path(&taker.entry, 3), '/') + 1);
	taker.entry.state = ENTRY_PRESENT;
	assert_true(name_parse(FRONT, &entries[0].name));
	assert_true(name_parse(taker.entry.name, &entries[1].name));
	lock->node.info.czxid = 50;
	assert_true(known_listed(lock, &queue));
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

	lock->lists.later = false;
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
	assert_int_equal(lock->node.info.slots, 1);
	assert_int_equal(lock->node.version, 3);
	assert_int_equal(lock->node.info.czxid, 50);
	assert_false(is_list_wanted());
	assert_true(lock_is_watched(lock));
	lock_watch(lock);
	rig_expect_sent(rig, "");
}

/* What was seen and shown, was so with another number of slots. */
static void other_slots(void **state)
{
	struct rig *rig = *state;

	know();
	known_see(&taker.entry);
	assert_true(known_is_seen(&taker.entry) && taker.entry.known.shown);
	lock_watch(lock);
	lock_untouch(lock);
	answer_lock(rig, 50, 3, "zklockfs: 1\nslots: 2\n\n");
	assert_int_equal(lock->node.info.slots, 2);
	assert_false(known_is_seen(&taker.entry) || taker.entry.known.shown);
	assert_true(known_is_placed(&taker.entry) && lock->touched);
}

/* Another lock has the name: all that is remembered of the old one is void. */
static void made_anew(void **state)
{
	struct rig *rig = *state;

	lock_watch(lock);
	answer_lock(rig, 50, 3, "");
	know();
	lock_see_czxid(lock, 50);
	assert_true(known_is_placed(&taker.entry));
	assert_int_equal(lock->node.info.slots, 1);
	lock_see_czxid(lock, 60);
	assert_false(known_is_placed(&taker.entry));
	assert_int_equal(lock->known.last, -1);
	assert_int_equal(lock->node.info.slots, 0);
	assert_false(lock_is_watched(lock));
	assert_int_equal(lock->node.info.czxid, 60);
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

/* ---- entries of other clients ---- */

static void watch(const char *first, const char *second)
{
	lock_watch_others(lock, (const char *const[OTHERS_WATCHED]){first, second});
}

static void others(void **state)
{
	struct rig *rig = *state;

	watch(FRONT, OTHER);
	watch(OTHER, FRONT);
	rig_expect_sent(rig, "watch /locks/a/" FRONT ", watch /locks/a/" OTHER);
	rig_answer_data(rig, 0, "");
	rig_answer_data(rig, 0, "");
	watch(FRONT, OTHER);
	rig_expect_sent(rig, "");
	assert_int_equal(lock->uses, 3);
	watch(OTHER, NULL);
	rig_expect_sent(rig, "unwatch /locks/a/" FRONT);
	rig_answer_error(rig, ENSEMBLE_OK);
	lock_untouch(lock);
	lock_other_changed(lock, OTHER, ENSEMBLE_DATA);
	assert_true(lock->touched);
	rig_expect_sent(rig, "");
	watch(OTHER, NULL); /* at the end of the turn */
	rig_expect_sent(rig, "watch /locks/a/" OTHER);
	rig_answer_data(rig, 0, "");
	lock_watch_none(lock);
	lock_watch_none(lock);
	rig_expect_sent(rig, "unwatch /locks/a/" OTHER);
	assert_int_equal(lock->uses, 1);
}

/* Armed on the former connection: its event proves nothing. */
static void on_another_connection(void **state)
{
	struct rig *rig = *state;

	know();
	watch(FRONT, NULL);
	rig_answer_data(rig, 0, "");
	rig_reconnect(rig);
	rig_forget(rig);
	lock_other_changed(lock, FRONT, ENSEMBLE_DELETED);
	assert_int_equal(lock->known.others, 1);
	watch(FRONT, NULL);
	rig_expect_sent(rig, "watch /locks/a/" FRONT);
	rig_answer_data(rig, 0, "");
	lock_other_changed(lock, FRONT, ENSEMBLE_DELETED);
	assert_int_equal(lock->known.others, 0);
	assert_int_equal(lock->uses, 1);
}

/* Its event comes while it is being asked again. */
static void deleted_while_it_is_asked(void **state)
{
	struct rig *rig = *state;

	know();
	watch(FRONT, NULL);
	lock_other_changed(lock, FRONT, ENSEMBLE_DELETED);
	assert_int_equal(lock->known.others, 1);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	assert_int_equal(lock->known.others, 0);
	assert_int_equal(lock->uses, 1);
}

/* One is given up before its watch is answered; the other one is waited for again. */
static void given_up(void **state)
{
	struct rig *rig = *state;

	watch(FRONT, OTHER);
	lock_watch_none(lock);
	watch(OTHER, NULL);
	rig_forget(rig);
	rig_answer_data(rig, 0, "");
	rig_expect_sent(rig, "unwatch /locks/a/" FRONT);
	rig_answer_data(rig, 0, "");
	rig_expect_sent(rig, "");
	rig_answer_data(rig, 0, "");
	rig_answer_error(rig, ENSEMBLE_OK);
	assert_int_equal(lock->uses, 2);
}

/* What was seen before that says nothing any more. */
static void other_was_not_there(void **state)
{
	struct rig *rig = *state;

	know();
	known_see(&taker.entry);
	watch(FRONT, NULL);
	lock_untouch(lock);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	assert_true(lock->touched && known_is_first(&taker.entry));
	assert_false(known_is_seen(&taker.entry) || is_list_wanted());
}

/* The lock is charged for names as long as those of zklockfs. A longer one is not watched. */
static void a_long_name(void **state)
{
	char znode[NAME_MAX_WHOLE + 1], path[NAME_MAX_WHOLE + 20];
	struct rig *rig = *state;

	memset(znode, 'x', NAME_MAX_WHOLE);
	strcpy(znode + NAME_MAX_WHOLE - 10, "0000000001");
	timer_clear(&rig->lc.timers, &lock->lists.recheck);
	watch(znode, NULL);
	rig_expect_sent(rig, "");
	assert_true(lock->lists.later && is_listed_later(rig));
	watch(znode + 1, NULL);
	snprintf(path, sizeof(path), "watch /locks/a/%s", znode + 1);
	rig_expect_sent(rig, path);
	rig_answer_data(rig, 0, "");
}

static void other_is_not_answered(void **state)
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

	know();
	for (size_t i = 0; i < LENGTH(rows); i++) {
		watch(FRONT, NULL);
		rig_answer_error(rig, rows[i].result);
		expect(is_list_wanted() == rows[i].lists, "row %zu", i);
		expect(is_listed_later(rig) == rows[i].later, "row %zu", i);
		assert_int_equal(lock->known.others, 1);
	}
}

#define LOCK_WATCH_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOCK_WATCH_TEST(one_slot),
		LOCK_WATCH_TEST(other_slots),
		LOCK_WATCH_TEST(made_anew),
		LOCK_WATCH_TEST(cannot_be_watched),
		LOCK_WATCH_TEST(others),
		LOCK_WATCH_TEST(on_another_connection),
		LOCK_WATCH_TEST(deleted_while_it_is_asked),
		LOCK_WATCH_TEST(given_up),
		LOCK_WATCH_TEST(other_was_not_there),
		LOCK_WATCH_TEST(a_long_name),
		LOCK_WATCH_TEST(other_is_not_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
