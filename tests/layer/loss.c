/* SPDX-License-Identifier: MIT
 *
 * A taker loses its place or its lock, without leaving: its state, and the result for the frontend.
 */
#include "lock/taker.h"

#include "takers.h"

#include <stdio.h>
#include <string.h>

enum condition { WAITS, HOLDS, IS_GRANTED, HAS_LOST, HAS_LEFT };

/* A taker in that condition; its entry is there. */
static struct lc_taker *make_taker(struct rig *rig, enum condition condition)
{
	struct lc_taker *taker;
	char name[40];

	rig->lc.config.loss_lead_us = SECOND; /* the entry of a lost lock stays */
	if (condition == WAITS)
		return takers_queue(rig, 1, LC_EXCLUSIVE, 2, OTHER(1) " #2-2");
	taker = takers_take(rig, 1, LC_EXCLUSIVE, LC_FOREVER);
	takers_turn(rig);
	takers_answer_made(rig, taker, 2);
	if (condition == IS_GRANTED) {
		taker_grant(taker);
		rig_forget(rig);
		return taker;
	}
	snprintf(name, sizeof(name), "#%d-2", (int)taker->entry.id.number);
	takers_answer_list(rig, name);
	if (condition == HAS_LOST)
		taker_lose(taker);
	if (condition == HAS_LEFT) {
		takers_disown(taker);
		lc_leave(taker);
	}
	takers_turn(rig);
	rig_forget(rig);
	return taker;
}

static void with_the_lock(void **state)
{
	static const char *const told[] = {"1 taken ENOENT", "1 lost", "1 taken ENOENT", "", ""};

	(void)state;
	for (size_t i = WAITS; i <= HAS_LOST; i++) {
		struct rig *rig = takers_begin();
		struct lc_taker *taker = make_taker(rig, (enum condition)i);

		loss_of_lock(taker);
		assert_int_equal(taker->entry.state, ENTRY_ABSENT);
		assert_int_equal(rig->lc.counters.evictions, 0);
		takers_turn(rig);
		rig_expect_told(rig, told[i]);
		takers_end(rig);
	}
}

/* A holder loses its lock at once; for a waiter a listing decides. */
static void node_is_gone(void **state)
{
	static const struct {
		enum condition condition;
		const char *told;
		bool evicted;
		enum taker_state state;
	} rows[] = {
		{WAITS, "", false, TAKER_WAITING},
		{HOLDS, "1 lost", true, TAKER_LOST},
		{IS_GRANTED, "", false, TAKER_WAITING},
		{HAS_LOST, "", false, TAKER_LOST},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct rig *rig = takers_begin();
		struct lc_taker *taker = make_taker(rig, rows[i].condition);

		loss_of_node(taker);
		assert_true(taker->entry.state == ENTRY_ABSENT && taker->entry.lock->lists.wanted);
		assert_int_equal(taker->state, rows[i].state);
		assert_int_equal(rig->lc.counters.evictions, rows[i].evicted);
		rig_expect_reported(rig, "is gone");
		takers_turn(rig);
		rig_expect_told(rig, rows[i].told);
		takers_end(rig);
	}
}

static void not_listed(void **state)
{
	static const struct {
		enum condition condition;
		const char *told;
		enum taker_state state;
		bool missing;
		unsigned evictions;
	} rows[] = {
		/* The entry was deleted, or went with its session: a write will show which. */
		{WAITS, "", TAKER_WAITING, true, 0},
		{IS_GRANTED, "", TAKER_WAITING, true, 0},
		{HOLDS, "1 lost", TAKER_LOST, false, 1},
		{HAS_LOST, "", TAKER_LOST, false, 0},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct rig *rig = takers_begin();
		struct lc_taker *taker = make_taker(rig, rows[i].condition);

		loss_by_listing(taker);
		rig_expect_reported(rig, "is gone");
		assert_int_equal(taker->entry.state, ENTRY_ABSENT);
		assert_int_equal(taker->state, rows[i].state);
		assert_int_equal(taker->wait == WAIT_MISSING, rows[i].missing);
		assert_int_equal(rig->lc.counters.evictions, rows[i].evictions);
		takers_turn(rig);
		rig_expect_told(rig, rows[i].told);
		takers_end(rig);
	}
}

static void evicted(void *ctx, void *taker_ctx, const char *by)
{
	assert_non_null(taker_ctx);
	rig_tell(ctx, "by %s", by);
}

static void marked(void **state)
{
	static const struct {
		enum condition condition;
		const char *told;
		unsigned evictions;
	} rows[] = {
		{WAITS, "by ann, 1 taken ECANCELED", 1},
		{IS_GRANTED, "by ann, 1 taken ECANCELED", 1},
		{HOLDS, "by ann, 1 lost", 1},
		{HAS_LOST, "", 0},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct rig *rig = takers_begin();
		struct lc_taker *taker;

		rig->lc.config.evicted = i == 0 ? NULL : evicted;
		taker = make_taker(rig, rows[i].condition);
		loss_by_mark(taker, "ann");
		assert_int_equal(strstr(rig->reported, "evicted by ann") != NULL,
		                 rows[i].evictions > 0);
		assert_int_equal(rig->lc.counters.evictions, rows[i].evictions);
		takers_turn(rig);
		rig_expect_told(rig, i == 0 ? "1 taken ECANCELED" : rows[i].told);
		takers_end(rig);
	}
}

static void held_long_enough(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = make_taker(rig, HOLDS);

	loss_by_limit(taker);
	assert_int_equal(rig->lc.counters.overdue, 1);
	assert_int_equal(rig->lc.counters.evictions, 0);
	takers_turn(rig);
	rig_expect_told(rig, "1 lost");
}

/* Waiters queue again in the next session, in their old order. */
static void with_the_session(void **state)
{
	static const struct {
		enum condition condition;
		enum taker_wait before, after;
		const char *told;
	} rows[] = {
		{WAITS, WAIT_MISSING, WAIT_QUEUED, ""}, /* its entry went with the session */
		{WAITS, WAIT_PROBING, WAIT_PROBING, ""},
		{HOLDS, WAIT_QUEUED, WAIT_QUEUED, "1 lost"},
		{IS_GRANTED, WAIT_QUEUED, WAIT_QUEUED, ""},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct rig *rig = takers_begin();
		struct lc_taker *taker = make_taker(rig, rows[i].condition);

		if (rows[i].before != WAIT_QUEUED)
			taker->wait = rows[i].before;
		rig_end_session(rig, false);
		assert_int_equal(taker->entry.state, ENTRY_ABSENT);
		assert_int_equal(taker->wait, rows[i].after);
		takers_turn(rig);
		rig_expect_told(rig, rows[i].told);
		takers_end(rig);
	}
}

static void nobody_waits_for_its_delete(void **state)
{
	struct rig *rig = *state;

	make_taker(rig, HAS_LEFT);
	rig_end_session(rig, false);
	assert_int_equal(rig->entries.by_id.count, 0);
}

static void with_the_lease(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = make_taker(rig, HOLDS),
			*waiter = takers_queue(rig, 2, LC_EXCLUSIVE, 3, "#2-2 #3-3");

	loss_of_lease(&rig->lc);
	assert_int_equal(holder->state, TAKER_LOST);
	assert_int_equal(waiter->state, TAKER_WAITING);
	loss_of_lease(&rig->lc); /* no effect again */
	takers_turn(rig);
	rig_expect_told(rig, "1 lost");
}

/* The session lives: the missing takers were evicted, and no others. */
static void of_the_missing(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = make_taker(rig, HOLDS),
			*waiter = takers_queue(rig, 2, LC_EXCLUSIVE, 3, "#2-2 #3-3"),
			*missing = takers_queue(rig, 3, LC_EXCLUSIVE, 4, "#2-2 #3-3 #4-4");

	loss_of_missing(&rig->lc);
	takers_turn(rig);
	rig_expect_told(rig, "");
	loss_by_listing(missing);
	rig->takers.missing = true;
	loss_of_missing(&rig->lc);
	assert_false(rig->takers.missing);
	assert_int_equal(rig->lc.counters.evictions, 1);
	takers_turn(rig);
	rig_expect_told(rig, "3 taken ECANCELED");
	assert_int_equal(holder->state, TAKER_HELD);
	assert_int_equal(waiter->state, TAKER_WAITING);
}

/* There is contact again, and the mailbox has a letter for the holder: its entry is read before the
 * write that proves the connection. */
static void come_back(struct rig *rig)
{
	rig->has_letters = true;
	rig_connect(rig, RIG_SESSION);
	rig_forget(rig);
	rig_answer_version(rig, 1);
	rig_expect_sent(rig, "watch " RIG_NODE "-pokes");
	assert_false(lc_ready(&rig->lc));
	rig_answer_data(rig, 1, "0000000000000002\n");
	takers_turn(rig);
	rig_expect_sent(rig, "get /locks/a/#2-2, set " RIG_NODE
	                     " '', watch /locks/a, children /locks/a");
}

/* While the machine stood still the taker was evicted, and the session lives: nobody is told that
 * the lock is held before the entry was read. */
static void evicted_while_standing_still(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = make_taker(rig, HOLDS);

	rig_doubt(rig);
	rig_disconnect(rig);
	rig_forget(rig);
	rig->now_us++;
	come_back(rig);
	assert_false(lc_holds(taker));
	rig_answer_data(rig, 1, "evict: root\n");
	assert_true(lc_doubted(&rig->lc));
	takers_turn(rig);
	rig_expect_told(rig, "1 lost");
	rig_answer_version(rig, 2);
	assert_false(lc_doubted(&rig->lc));
	assert_false(lc_holds(taker));
}

/* The machine stands still between the loss and its report. The entry stays for a session timeout
 * from the report on, so that the processes can be stopped. */
static void guarded_since_the_report(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker;

	rig->lc.config.loss_lead_us = SECOND;
	taker = make_taker(rig, HOLDS);
	taker_lose(taker);
	rig->now_us += rig->lc.session->granted_us;
	takers_turn(rig);
	rig_expect_told(rig, "1 lost");
	assert_true(taker->limit.armed);
	assert_int_equal(taker->limit.at_us, rig->now_us + rig->lc.session->granted_us);
	assert_int_equal(taker->entry.state, ENTRY_PRESENT);
}

/* While the connection was lost the taker was evicted, and the session lives: the lease grows only
 * after the entry was read. */
static void evicted_while_away(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = make_taker(rig, HOLDS);
	int64_t end_us = lease_end(&rig->lc.session->lease);

	rig_disconnect(rig);
	rig_forget(rig);
	rig->now_us += SECOND;
	come_back(rig);
	assert_true(lc_holds(taker));
	assert_int_equal(lease_end(&rig->lc.session->lease), end_us);
	rig_answer_data(rig, 1, "evict: root\n");
	assert_int_equal(lease_end(&rig->lc.session->lease), end_us);
	takers_turn(rig);
	rig_expect_told(rig, "1 lost");
	rig_answer_version(rig, 2);
	assert_int_equal(lease_end(&rig->lc.session->lease), end_us + SECOND);
	assert_false(lc_holds(taker));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(with_the_lock),
		cmocka_unit_test(node_is_gone),
		cmocka_unit_test(not_listed),
		cmocka_unit_test(marked),
		TAKERS_TEST(held_long_enough),
		cmocka_unit_test(with_the_session),
		TAKERS_TEST(nobody_waits_for_its_delete),
		TAKERS_TEST(evicted_while_standing_still),
		TAKERS_TEST(evicted_while_away),
		TAKERS_TEST(guarded_since_the_report),
		TAKERS_TEST(with_the_lease),
		TAKERS_TEST(of_the_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
