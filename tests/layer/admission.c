/* SPDX-License-Identifier: MIT
 *
 * The meaning of a listing for the takers of this mount: which takers are refused, which may hold,
 * and for which entry the first of the others waits.
 */
#include "grant/admission.h"

#include "lock/lock_watch.h"
#include "takers.h"

#include <stdio.h>
#include <string.h>

#define THEIRS(number) "_c_01234567-89ab-cdef-0123-456789abcdef-m1.7-lock-000000000" #number
#define INCOMPATIBLE(number) "x__lock__000000000" #number

/* A taker whose entry has that number; a listing is under way. */
static struct lc_taker *queue_one(struct rig *rig, pid_t pid, enum lc_mode mode, int number)
{
	struct lc_taker *taker = takers_take(rig, pid, mode, LC_FOREVER);

	takers_turn(rig);
	takers_answer_made(rig, taker, number);
	lock_want_list(taker->entry.lock);
	takers_turn(rig);
	takers_answer_watches(rig);
	return taker;
}

/* The lock gets that many slots, and the engine has read the number. */
static void set_slots(struct rig *rig, struct lock *lock, unsigned slots)
{
	takers_answer_watches(rig);
	watch_fired(&lock->node.watch);
	lock_watch(lock);
	takers_lock.version++;
	takers_answer_slots(rig, slots);
}

/* ---- takers that may hold ---- */

static void first_of_all(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = queue_one(rig, 1, LC_EXCLUSIVE, 2);

	takers_answer_lists(rig, "locks-below " OTHER(3) " #2-2");
	rig_expect_told(rig, "1 taken");
	assert_true(taker->entry.place.first);
	assert_null(taker->entry.lock->front.taker);
}

static void shared_ones_together(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *takers[3];

	for (int i = 0; i < 3; i++)
		takers[i] = takers_take(rig, i + 1, i < 2 ? LC_SHARED : LC_EXCLUSIVE, LC_FOREVER);
	takers_turn(rig);
	takers_answer_made(rig, takers[0], 1);
	takers_answer_made(rig, takers[1], 3);
	takers_answer_made(rig, takers[2], 4);
	takers_answer_lists(rig, "#2-1 " OTHER_SHARED(2) " #3-3 #4-4");
	rig_expect_told(rig, "1 taken, 2 taken");
	assert_true(takers[0]->entry.place.first);
	assert_false(takers[1]->entry.place.first);
	assert_int_equal(takers[2]->state, TAKER_WAITING);
}

static void without_a_lease(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = queue_one(rig, 1, LC_EXCLUSIVE, 1);
	struct lock *lock = taker->entry.lock;

	rig->session.lease.deadline_us = rig->now_us + MS;
	takers_answer_lists(rig, "#2-1");
	rig_expect_told(rig, "");
	assert_ptr_equal(lock->front.taker, taker);
	assert_int_equal(lock->front.obstacle, OBSTACLE_LEASE);
	assert_non_null(strstr(rig->sent, "set " RIG_NODE));
}

/* A taker waits behind another client's entry, and the lock is being listed again. */
static struct lock *list_behind_another(struct rig *rig)
{
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 2, OTHER(1) " #2-2");

	lock_want_list(taker->entry.lock);
	takers_turn(rig);
	rig_forget(rig);
	return taker->entry.lock;
}

/* The entry that it waited for is gone: the watch of that is given up. */
static void without_a_lease_any_more(void **state)
{
	struct rig *rig = *state;
	struct lock *lock = list_behind_another(rig);

	rig->session.lease.deadline_us = rig->now_us + MS;
	takers_answer_list(rig, "#2-2");
	rig_expect_told(rig, "");
	assert_non_null(strstr(rig->sent, "unwatch /locks/a/" OTHER(1)));
	assert_false(lock_front_is(lock, OTHER(1)));
	assert_int_equal(lock->front.obstacle, OBSTACLE_LEASE);
}

/* ---- takers that wait, and for which entry ---- */

static void behind_another_client(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = queue_one(rig, 1, LC_EXCLUSIVE, 2);

	rig_forget(rig);
	takers_answer_lists(rig, OTHER(1) " #2-2");
	rig_expect_told(rig, "");
	assert_ptr_equal(taker->entry.lock->front.taker, taker);
	rig_expect_sent(rig, "watch /locks/a, watch /locks/a/#2-2, watch /locks/a/" OTHER(1));
	assert_true(taker->entry.lock->lists.recheck.armed);
}

/* When our own holder goes, a listing follows: no watch of the holder's entry is needed. */
static void behind_one_of_ours(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1"),
			*taker = queue_one(rig, 2, LC_EXCLUSIVE, 2);
	struct lock *lock = holder->entry.lock;

	takers_answer_lists(rig, "#2-1 #3-2");
	assert_null(lock->front.taker);
	assert_int_equal(lock->front.obstacle, OBSTACLE_OTHER);
	assert_true(entry_is_seen(&taker->entry));
	assert_true(lock_is_watched(lock));
	assert_int_equal(holder->entry.watch.state, WATCH_IDLE);
}

/* The delete of the leaver's entry was refused, so the entry is still in the way. */
static void behind_a_leaver(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *leaver = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1"),
			*taker = takers_queue(rig, 2, LC_SHARED, 2, "#2-1 #3-2");
	struct lock *lock = taker->entry.lock;

	takers_leave(rig, leaver);
	takers_answer_error(rig, ENSEMBLE_REFUSED);
	assert_int_equal(lock->front.obstacle, OBSTACLE_OTHER);
	takers_answer_lists(rig, "#2-1 #3-2");
	assert_int_equal(lock->front.obstacle, OBSTACLE_LEAVER);
	assert_null(lock->front.taker);
	rig_expect_told(rig, "");
}

static void behind_a_lost_lock(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *loser = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	rig->lc.config.loss_lead_us = SECOND;
	taker_lose(loser);
	queue_one(rig, 2, LC_EXCLUSIVE, 2);
	takers_answer_lists(rig, "#2-1 #3-2");
	assert_true(entry_is_seen(&loser->entry)); /* watched: another client may delete it */
	assert_int_equal(loser->entry.lock->front.obstacle, OBSTACLE_OTHER);
}

static void with_several_slots(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = queue_one(rig, 1, LC_EXCLUSIVE, 3);
	struct lock *lock = taker->entry.lock;

	takers_answer_lists(rig, THEIRS(1) " " THEIRS(2) " #2-3");
	set_slots(rig, lock, 2);
	rig_forget(rig);
	takers_answer_lists(rig, THEIRS(1) " " THEIRS(2) " #2-3");
	assert_ptr_equal(lock->front.taker, taker);
	assert_false(lock_front_is(lock, THEIRS(2))); /* any entry ahead may go first */
	rig_expect_told(rig, "");
	lock_want_list(lock);
	takers_turn(rig);
	assert_non_null(strstr(rig->sent, "children watched /locks/a"));
	takers_answer_lists(rig, THEIRS(2) " #2-3");
	rig_expect_told(rig, "1 taken");
}

/* ---- the entry ahead of ours ---- */

static void ahead(void **state)
{
	static const struct {
		const char *names;
		enum lc_mode mode;
		const char *znode;
		enum entry_ahead is;
	} rows[] = {
		{OTHER(4) " #3-5", LC_EXCLUSIVE, OTHER(4), AHEAD_FIRST},
		{OTHER(3) " " OTHER(4) " #3-5", LC_EXCLUSIVE, OTHER(4), AHEAD_UNKNOWN},
		{"#2-1 " OTHER(4) " #3-5", LC_EXCLUSIVE, OTHER(4), AHEAD_AFTER_OURS},
		{"#2-1 #3-5", LC_EXCLUSIVE, NULL, AHEAD_UNKNOWN},
		{"#3-5", LC_EXCLUSIVE, NULL, AHEAD_UNKNOWN},
		{OTHER(4) " #3-5", LC_SHARED, OTHER(4), AHEAD_FIRST},
		{OTHER(2) " " OTHER_SHARED(4) " #3-5", LC_SHARED, OTHER(2), AHEAD_FIRST},
		{OTHER(2) " " OTHER(4) " #3-5", LC_SHARED, NULL, AHEAD_UNKNOWN},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct rig *rig = takers_begin();
		struct lc_taker *holder, *taker;

		holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");
		taker = queue_one(rig, 2, rows[i].mode, 5);
		(void)holder;
		takers_answer_lists(rig, rows[i].names);
		if (rows[i].znode)
			expect(taker->entry.place.ahead &&
			               strcmp(taker->entry.place.ahead, rows[i].znode) == 0,
			       "row %zu", i);
		else
			expect(!taker->entry.place.ahead, "row %zu", i);
		expect(taker->entry.place.ahead_is == rows[i].is, "row %zu", i);
		takers_end(rig);
	}
}

/* In a family with late readers the going of a writer of others says nothing. */
static void ahead_of_a_reader(void **state)
{
	static const char ours[] = "_c_01234567-89ab-cdef-0123-456789abcdef-m1.7__WRIT__0000000004";
	static const struct {
		const char *clients, *name;
		enum lc_mode mode;
		bool known;
	} rows[] = {
		{"curator-rw", "x__WRIT__0000000004", LC_EXCLUSIVE, false},
		{"curator-rw", "x__WRIT__0000000004", LC_SHARED, false},
		{"curator-rw", "x__READ__0000000004", LC_EXCLUSIVE, true},
		{"curator-rw", ours, LC_EXCLUSIVE, true},
		{"kazoo", "x__lock__0000000004", LC_EXCLUSIVE, true},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct rig *rig = takers_begin();
		struct lc_taker *taker;
		char names[200];

		rig->lc.clients = clients_find(rows[i].clients);
		taker = queue_one(rig, 2, rows[i].mode, 5);
		snprintf(names, sizeof(names), "%s #2-5", rows[i].name);
		takers_answer_lists(rig, names);
		expect(!!taker->entry.place.ahead == rows[i].known, "row %zu", i);
		expect(taker->entry.place.ahead_is == (rows[i].known ? AHEAD_FIRST : AHEAD_UNKNOWN),
		       "row %zu", i);
		assert_int_equal(taker->state, TAKER_WAITING);
		takers_end(rig);
	}
}

/* ---- at once or not at all ---- */

static void begin_try(struct rig *rig, pid_t pid, enum lc_mode mode)
{
	takers_take(rig, pid, mode, 0);
	takers_turn(rig);
}

static void tries(void **state)
{
	static const struct {
		const char *names;
		enum lc_mode mode;
		bool refused;
	} rows[] = {
		{"", LC_EXCLUSIVE, false},
		{OTHER(1), LC_EXCLUSIVE, true},
		{OTHER_SHARED(1), LC_EXCLUSIVE, true},
		{OTHER(1), LC_SHARED, true},
		{OTHER_SHARED(1), LC_SHARED, false},
		{OTHER_SHARED(1) " " OTHER(2), LC_SHARED, true},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct rig *rig = takers_begin();

		begin_try(rig, 1, rows[i].mode);
		takers_answer_watches(rig);
		takers_answer_list(rig, rows[i].names);
		takers_answer_watches(rig);
		if (rig->told[0] == '\0' && rows[i].refused)
			takers_answer_list(rig, rows[i].names);
		rig_expect_told(rig, rows[i].refused ? "1 taken EAGAIN" : "");
		takers_end(rig);
	}
}

/* More slots might make room: a try is refused only when the number of slots is known. */
static void tries_where_slots_are_unknown(void **state)
{
	(void)state;
	for (unsigned slots = 1; slots <= 2; slots++) {
		struct rig *rig = takers_begin();

		begin_try(rig, 1, LC_EXCLUSIVE);
		takers_answer_list(rig, THEIRS(1));
		rig_expect_told(rig, "");
		rig_expect_sent(rig, "children /locks/a, watch /locks/a");
		takers_answer_slots(rig, slots);
		rig_expect_sent(rig,
		                slots == 1 ? "children /locks/a" : "children watched /locks/a");
		takers_answer_list(rig, THEIRS(1));
		rig_expect_told(rig, slots == 1 ? "1 taken EAGAIN" : "");
		if (slots == 2)
			assert_non_null(strstr(rig->sent, "create ephemeral"));
		takers_end(rig);
	}
}

static void answer_order(struct rig *rig)
{
	const struct ensemble_stat stat = {.czxid = 5};

	rig_answer(rig, &(struct ensemble_answer){.stat = &stat});
	takers_turn(rig);
}

/* The number of slots becomes known between a listing and the order of its entries. */
static void tries_while_the_order_is_found(void **state)
{
	static const char names[] = "_c_01234567-89ab-cdef-0123-456789abcdef-m1.7-lock-2147483646";
	struct rig *rig = *state;

	begin_try(rig, 1, LC_EXCLUSIVE);
	takers_change(rig, "", ENSEMBLE_DATA);
	rig_expect_sent(rig, "children /locks/a, watch /locks/a");
	takers_answer_list(rig, names);
	takers_answer_slots(rig, 1);
	answer_order(rig);
	rig_expect_told(rig, "");
	rig_expect_sent(
		rig, "get /locks/a/_c_01234567-89ab-cdef-0123-456789abcdef-m1.7-lock-2147483646, "
		     "children /locks/a");
	takers_answer_list(rig, names);
	answer_order(rig);
	rig_expect_told(rig, "1 taken EAGAIN");
}

/* Our own entries that are being deleted are not in the way. */
static void tries_after_a_leaver(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *leaver = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	takers_leave(rig, leaver);
	begin_try(rig, 2, LC_EXCLUSIVE);
	rig_forget(rig);
	rig_expect_told(rig, "");
	while (strncmp(rig_unanswered(rig), "delete ", 7) == 0)
		takers_answer_error(rig, ENSEMBLE_REFUSED); /* the entry is still there */
	takers_answer_list(rig, "#2-1");
	rig_expect_told(rig, "");
	assert_non_null(strstr(rig->sent, "create ephemeral /locks/a/#3-"));
}

/* The entry of the try is there, and another client's entry before it. */
static void tried_and_came_too_late(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_take(rig, 1, LC_EXCLUSIVE, 0);

	takers_turn(rig);
	takers_answer_list(rig, "");
	takers_answer_made(rig, taker, 2);
	rig_forget(rig);
	takers_answer_list(rig, OTHER(1) " #2-2");
	takers_answer_watches(rig);
	while (rig->told[0] == '\0')
		takers_answer_list(rig, OTHER(1) " #2-2");
	rig_expect_told(rig, "1 taken EAGAIN");
	assert_non_null(strstr(rig->sent, "delete /locks/a/#2-2"));
}

/* The outcome of a create is unknown: no try is refused for an entry that may be ours. */
static void nobody_is_refused_while_unresolved(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_SHARED, 1, "#2-1");

	begin_try(rig, 2, LC_EXCLUSIVE);
	holder->entry.lock->batch.unresolved = true;
	rig_forget(rig);
	{
		struct lc_taker *unknown = takers_take(rig, 3, LC_SHARED, LC_FOREVER);

		unknown->entry.state = ENTRY_UNKNOWN;
		strcpy(unknown->entry.name, "nothing-like-it");
		unknown->entry.pending++;
		takers_answer_list(rig, "#2-1");
		rig_expect_told(rig, "");
		unknown->entry.pending--;
	}
}

/* ---- upgrades ---- */

static void upgrades(void **state)
{
	static const struct {
		const char *names;
		int64_t wait_us;
		const char *told;
	} rows[] = {
		{"#2-1 #3-5", LC_FOREVER, "2 taken"},
		{"#2-1 " OTHER_SHARED(3) " #3-5", LC_FOREVER, ""},
		{"#2-1 " OTHER(3) " #3-5", LC_FOREVER, "2 taken EDEADLK"},
		{"#2-1 " OTHER(3) " #3-5", 0, "2 taken EAGAIN"},
		{"#2-1 " OTHER_SHARED(3) " #3-5", 0, "2 taken EAGAIN"},
		{"#2-1 #3-5", 0, "2 taken"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct rig *rig = takers_begin();
		struct lc_taker *old, *taker;

		old = takers_queue(rig, 1, LC_SHARED, 1, "#2-1");
		taker = takers_request(rig, &(struct lc_request){.lock = "a",
		                                                 .wait_us = rows[i].wait_us,
		                                                 .pid = 2,
		                                                 .command = "",
		                                                 .replaces = old});
		takers_turn(rig);
		takers_answer_made(rig, taker, 5);
		takers_answer_lists(rig, rows[i].names);
		rig_expect_told(rig, rows[i].told);
		takers_end(rig);
	}
}

/* A try is to replace a holder that got the lock while it probed: it queues, as any upgrade. */
static void upgrade_of_one_that_probes(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *old = takers_take(rig, 1, LC_SHARED, LC_FOREVER), *taker;

	takers_turn(rig);
	takers_answer_made(rig, old, 1);
	taker = takers_take(rig, 2, LC_EXCLUSIVE, 0);
	takers_turn(rig);
	takers_answer_list(rig, "#2-1");
	rig_expect_told(rig, "1 taken");
	assert_int_equal(taker->wait, WAIT_PROBING);
	assert_true(lc_replace(taker, old));
	takers_answer_list(rig, "#2-1");
	rig_expect_told(rig, "");
	takers_answer_made(rig, taker, 2);
	takers_answer_lists(rig, "#2-1 #3-2");
	rig_expect_told(rig, "2 taken");
}

/* The upgrade waits for the last of the other clients' shared entries. */
static void upgrade_waits(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *old = takers_queue(rig, 1, LC_SHARED, 1, "#2-1"),
			*taker = takers_request(rig, &(struct lc_request){.lock = "a",
	                                                                  .wait_us = LC_FOREVER,
	                                                                  .pid = 2,
	                                                                  .command = "",
	                                                                  .replaces = old});

	takers_turn(rig);
	takers_answer_made(rig, taker, 5);
	takers_answer_lists(rig, "#2-1 " OTHER_SHARED(3) " " OTHER_SHARED(4) " #3-5");
	assert_true(lock_front_is(old->entry.lock, OTHER_SHARED(4)));
	assert_int_equal(taker->state, TAKER_WAITING);
}

/* ---- beside a client that would not wait for us ---- */

static void beside_incompatible(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = queue_one(rig, 1, LC_EXCLUSIVE, 5);

	begin_try(rig, 2, LC_EXCLUSIVE);
	rig_forget(rig);
	takers_answer_lists(rig, INCOMPATIBLE(6) " #2-5");
	rig_expect_told(rig, "1 taken EPROTO, 2 taken EPROTO");
	rig_expect_reported(rig, "ignores our locks");
	takers_leave(rig, taker);
}

/* A holder goes on holding, and nothing is reported. */
/* Where numbers repeat the order is not asked for first: it does not matter. */
static void beside_incompatible_in_the_zone(void **state)
{
	struct rig *rig = *state;

	begin_try(rig, 1, LC_SHARED);
	rig_forget(rig);
	takers_answer_list(rig, "x__rlock__2147483647");
	rig_expect_told(rig, "1 taken EPROTO");
}

static void holder_beside_incompatible(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	lock_want_list(holder->entry.lock);
	takers_turn(rig);
	takers_answer_lists(rig, "#2-1 " INCOMPATIBLE(6));
	rig_expect_told(rig, "");
	assert_string_equal(rig->reported, "");
}

/* ---- and afterwards ---- */

static void nobody_waits(void **state)
{
	struct rig *rig = *state;
	struct lock *lock = list_behind_another(rig);

	takers_answer_lists(rig, "#2-2");
	rig_expect_told(rig, "1 taken");
	rig_expect_sent(rig, "unwatch /locks/a/" OTHER(1));
	assert_null(lock->front.taker);
	assert_true(lock->lists.recheck.armed);
}

/* A listing shows this taker's entry alone. */
static void admit_one(const struct lc_taker *taker)
{
	char name[NAME_MAX_WHOLE];
	const char *names[] = {name};
	struct queue queue;

	snprintf(name, sizeof(name), "%s", taker->entry.name);
	assert_int_equal(queue_build(&clients_all[0], names, 1, &queue), 0);
	admit(taker->entry.lock, &queue);
	queue_finish(&queue);
}

/* Nobody waits unguarded then. But what is held back is looked at in the turn. */
static void looked_at_in_the_turn(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");
	struct lock *lock = holder->entry.lock;

	for (int held_back = 0; held_back <= 1; held_back++) {
		lock->handoff.held_back = held_back;
		lock_touch(lock);
		admit_one(holder);
		assert_int_equal(lock->touched, held_back);
	}
	takers_turn(rig);
	assert_false(lock->handoff.held_back);
}

/* The lock was made anew while the order was read: the taker of the old lock may not hold. */
static void means_the_former_lock(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 2, OTHER(1) " #2-2");
	struct lock *lock = taker->entry.lock;

	taker->meant = 49;
	lock_unwant_list(lock);
	admit_one(taker);
	assert_int_equal(taker->state, TAKER_WAITING);
	assert_true(lock->lists.wanted);
	taker->meant = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TAKERS_TEST(first_of_all),
		TAKERS_TEST(shared_ones_together),
		TAKERS_TEST(without_a_lease),
		TAKERS_TEST(without_a_lease_any_more),
		TAKERS_TEST(behind_another_client),
		TAKERS_TEST(behind_one_of_ours),
		TAKERS_TEST(behind_a_leaver),
		TAKERS_TEST(behind_a_lost_lock),
		TAKERS_TEST(with_several_slots),
		cmocka_unit_test(ahead),
		cmocka_unit_test(ahead_of_a_reader),
		cmocka_unit_test(tries),
		cmocka_unit_test(tries_where_slots_are_unknown),
		TAKERS_TEST(tries_while_the_order_is_found),
		TAKERS_TEST(tries_after_a_leaver),
		TAKERS_TEST(tried_and_came_too_late),
		TAKERS_TEST(nobody_is_refused_while_unresolved),
		cmocka_unit_test(upgrades),
		TAKERS_TEST(upgrade_of_one_that_probes),
		TAKERS_TEST(upgrade_waits),
		TAKERS_TEST(beside_incompatible),
		TAKERS_TEST(beside_incompatible_in_the_zone),
		TAKERS_TEST(holder_beside_incompatible),
		TAKERS_TEST(nobody_waits),
		TAKERS_TEST(looked_at_in_the_turn),
		TAKERS_TEST(means_the_former_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
