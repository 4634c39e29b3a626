/* SPDX-License-Identifier: MIT
 *
 * An entry that serves several takes of one process. The tests take away each condition of the head
 * of reuse.c.
 */
#include "grant/grant.h"
#include "lock/known.h"
#include "takers.h"

#include <stdio.h>
#include <string.h>

#define PID 1
#define IDLE_US 500 /* of an entry, where a create takes longer */

static struct lc_taker *take(struct rig *rig)
{
	return takers_take(rig, PID, LC_EXCLUSIVE, LC_FOREVER);
}

/* A taker whose create takes a millisecond, and that holds. */
static struct lc_taker *hold(struct rig *rig, int number)
{
	struct lc_taker *taker = take(rig);
	char names[20];

	takers_turn(rig);
	takers_run(rig, MS);
	snprintf(names, sizeof(names), "#%d-%d", (int)taker->entry.id.number, number);
	takers_answer_made(rig, taker, number);
	takers_answer_lists(rig, names);
	assert_int_equal(taker->state, TAKER_HELD);
	assert_string_equal(rig_unanswered(rig), "");
	return taker;
}

/* Its delete is answered. */
static void leave(struct rig *rig, struct lc_taker *taker)
{
	takers_leave(rig, taker);
	takers_answer_watches(rig);
	takers_answer_error(rig, ENSEMBLE_OK);
	assert_string_equal(rig_unanswered(rig), "");
}

/* The second hold of a process: its entry may become spare. */
static struct lc_taker *hold_again(struct rig *rig)
{
	struct lc_taker *taker;

	rig->lc.config.reuse = true;
	leave(rig, hold(rig, 1));
	taker = hold(rig, 2);
	assert_true(taker->entry.repeated);
	rig_forget(rig);
	return taker;
}

/* ---- what it is for ---- */

static void asks_nobody(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = hold_again(rig);
	int64_t first_us = taker->entry.lock->repeat.granted_us;

	for (int i = 0; i < 3; i++) {
		takers_leave(rig, taker);
		assert_int_equal(rig->takers.holders, 0);
		assert_int_equal(takers_leaving(rig), 1);
		takers_run(rig, IDLE_US - 1);
		assert_ptr_equal(take(rig), taker);
		takers_turn(rig);
		rig_expect_told(rig, "1 taken");
		assert_true(taker->state == TAKER_HELD && !taker_is_untold(taker));
	}
	rig_expect_sent(rig, "");
	assert_int_equal(rig->lc.counters.reuses, 3);
	assert_int_equal(taker->entry.lock->repeat.granted_us, first_us);
	/* Watched when the first hold would have been. */
	assert_true(taker->recheck.armed);
	assert_int_equal(taker->recheck.at_us, first_us + LONG_HOLD_US);
	/* Eight creates after the first grant it is deleted. */
	takers_run(rig, 7 * MS);
	takers_leave(rig, taker);
	rig_expect_sent(rig, "delete /locks/a/#3-2");
}

/* It is spare for no longer than a create takes, since it is in the way of others' tries. */
static void ends_in_time(void **state)
{
	static const struct {
		int64_t create_us, held_us, spare_us;
	} rows[] = {
		{MS, 0, IDLE_US}, {200, 0, 200}, {MS, 8 * MS - 100, 100}, /* its life ends first */
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct rig *rig = takers_begin();
		struct lc_taker *taker = hold_again(rig);

		rig->entries.create_us = rows[i].create_us;
		takers_run(rig, rows[i].held_us);
		takers_leave(rig, taker);
		takers_run(rig, rows[i].spare_us - 1);
		rig_expect_sent(rig, "");
		takers_run(rig, 1);
		rig_expect_sent(rig, "delete /locks/a/#3-2");
		takers_answer_error(rig, ENSEMBLE_OK);
		assert_null(taker_find(&rig->lc, 3));
		takers_end(rig);
	}
}

/* However slow a create is: not so long that the entry of a holder would be watched. */
static void never_for_long(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = hold_again(rig);

	rig->entries.create_us = SECOND;
	takers_run(rig, LONG_HOLD_US - IDLE_US + 1);
	takers_leave(rig, taker);
	takers_run(rig, IDLE_US - 2);
	rig_expect_sent(rig, "");
	takers_run(rig, 1);
	rig_expect_sent(rig, "delete /locks/a/#3-2");
}

/* The first hold of a process is followed by no moment in which others wait for nobody. */
static void not_the_first(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker;

	rig->lc.config.reuse = true;
	taker = hold(rig, 1);
	assert_false(taker->entry.repeated);
	rig_forget(rig);
	takers_leave(rig, taker);
	rig_expect_sent(rig, "delete /locks/a/#2-1");
	takers_answer_error(rig, ENSEMBLE_OK);
	takers_run(rig, IDLE_US); /* that is not at once */
	assert_false(hold(rig, 2)->entry.repeated);
}

/* ---- which entry becomes spare ---- */

enum flaw {
	NONE,
	NOT_REPEATED,
	SHARED,
	REASON,
	TOLD_TOKEN,
	TOLD_SINCE,
	DIRTY,
	NO_PID,
	NOT_FIRST,
	ANSWER_AWAITED,
	SLOTS,
	UNRESOLVED,
	UNSEEN,
	NOT_TOLD,
	NO_LEASE,
	OFF,
	FLAWS,
};

static void flaw_of_entry(enum flaw flaw, struct lc_taker *taker)
{
	struct entry *entry = &taker->entry;

	entry->repeated &= flaw != NOT_REPEATED;
	entry->data.told_since |= flaw == TOLD_SINCE;
	entry->data.dirty |= flaw == DIRTY;
	if (flaw == NOT_FIRST)
		known_forget(entry->lock);
	entry->pending += flaw == ANSWER_AWAITED;
	taker->told_token |= flaw == TOLD_TOKEN;
	if (flaw == NOT_TOLD)
		taker_set_due(taker, /* due = */ true);
	if (flaw == SHARED)
		entry->mode = LC_SHARED;
	if (flaw == NO_PID)
		entry->data.pid = 0;
	if (flaw == REASON)
		entry->data.reason = strdup("why");
}

static void flaw_of_rest(enum flaw flaw, struct rig *rig, struct lc_taker *taker)
{
	struct lock *lock = taker->entry.lock;

	lock->batch.unknown += flaw == UNRESOLVED;
	if (flaw == SLOTS)
		lock->node.info.slots = 2;
	if (flaw == UNSEEN)
		lock->grant.unproved = &taker->entry;
	if (flaw == NO_LEASE)
		rig->session.lease.deadline_us = rig->now_us + MS;
	rig->lc.config.reuse &= flaw != OFF;
}

static void only_a_plain_one(void **state)
{
	(void)state;
	for (size_t flaw = NONE; flaw < FLAWS; flaw++) {
		struct rig *rig = takers_begin();
		struct lc_taker *taker = hold_again(rig);

		flaw_of_entry((enum flaw)flaw, taker);
		flaw_of_rest((enum flaw)flaw, rig, taker);
		expect(reuse_leave(taker) == (flaw == NONE), "flaw %zu", flaw);
		if (flaw == NONE) {
			takers_disown(taker);
			taker_drop_spare(taker);
		}
		taker->entry.pending -= flaw == ANSWER_AWAITED;
		taker->entry.lock->batch.unknown = 0;
		taker->entry.lock->grant.unproved = NULL;
		taker->entry.mode = LC_EXCLUSIVE;
		takers_end(rig);
	}
}

static void not_beside_a_waiter(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = hold_again(rig);

	takers_queue(rig, 2, LC_EXCLUSIVE, 3, "#3-2 #4-3");
	takers_leave(rig, taker);
	rig_expect_told(rig, "2 taken");
	rig_expect_sent(rig, "check /locks/a/#4-3 + delete /locks/a/#3-2");
}

/* ---- whom it serves ---- */

static void serves_only_its_process(void **state)
{
	static const struct lc_request same = {
		.lock = "a", .wait_us = LC_FOREVER, .pid = PID, .uid = 5, .command = "sh"};
	struct lc_request requests[8];
	const char *sent = "delete /locks/a/#3-2";

	(void)state;
	for (size_t i = 0; i < LENGTH(requests); i++)
		requests[i] = same;
	requests[1].pid = 2;
	requests[2].uid = 6;
	requests[3].command = "perl";
	requests[4].mode = LC_SHARED;
	requests[5].reason = "why";
	requests[6].czxid = 49;
	requests[7].czxid = 50; /* that of the lock */
	for (size_t i = 0; i < LENGTH(requests); i++) {
		struct rig *rig = takers_begin();
		struct lc_taker *taker = hold_again(rig);
		bool serves = i == 0 || i == 7;

		takers_leave(rig, taker);
		expect((takers_request(rig, &requests[i]) == taker) == serves, "request %zu", i);
		takers_turn(rig);
		rig_expect_told(rig, serves ? "1 taken" : i == 6 ? "1 taken ENOENT" : "");
		expect((strncmp(rig_unanswered(rig), sent, strlen(sent)) == 0) != serves,
		       "request %zu: %s", i, rig_unanswered(rig));
		takers_end(rig);
	}
}

/* A taker that will not wait, of another process: the lock is free for it. */
static void another_tries(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = hold_again(rig);

	takers_leave(rig, taker);
	takers_take(rig, 2, LC_EXCLUSIVE, 0);
	takers_turn(rig);
	rig_expect_sent(rig, "delete /locks/a/#3-2, children /locks/a");
}

static void gone_while_spare(struct rig *rig, struct lc_taker *taker, size_t how)
{
	switch (how) {
	case 0: /* its watch tells */
		entry_watch(&taker->entry);
		takers_answer_watches(rig);
		takers_change(rig, "#3-2", ENSEMBLE_DELETED);
		return;
	case 1:
		loss_by_mark(taker, "root");
		return;
	case 2: /* it may have been evicted meanwhile */
		takers_reconnect(rig);
		return;
	case 3:
		rig->session.lease.deadline_us = rig->now_us + MS;
		return;
	case 4:
		taker->entry.pending++;
		return;
	case 5: /* somebody has written to it */
		takers_change(rig, "#3-2", ENSEMBLE_DATA);
		return;
	case 6: /* who came first holds first */
		takers_take(rig, PID + 1, LC_EXCLUSIVE, LC_FOREVER);
		return;
	default:
		return;
	}
}

static void not_when_in_doubt(void **state)
{
	(void)state;
	for (size_t how = 0; how <= 6; how++) {
		struct rig *rig = takers_begin();
		struct lc_taker *taker = hold_again(rig);

		takers_leave(rig, taker);
		gone_while_spare(rig, taker, how);
		expect(take(rig) != taker, "doubt %zu", how);
		taker->entry.pending -= how == 4;
		assert_int_equal(rig->lc.counters.reuses, 0);
		takers_end(rig);
	}
}

/* ---- who comes ends it ---- */

static void others_come(void **state)
{
	(void)state;
	for (size_t while_held = 0; while_held < 2; while_held++)
		for (size_t how = 0; how < 3; how++) {
			struct rig *rig = takers_begin();
			struct lc_taker *taker = hold_again(rig);

			if (!while_held)
				takers_leave(rig, taker);
			if (how == 0)
				takers_change(rig, "", ENSEMBLE_NAMES);
			else
				reuse_end_at(&rig->lc, how == 1 ? "/locks/a" : "/locks/a/x");
			if (while_held)
				takers_leave(rig, taker);
			else
				takers_turn(rig);
			rig_expect_sent(rig, "delete /locks/a/#3-2");
			takers_end(rig);
		}
}

static void stat_told(void *ctx, int err, const struct lc_lock_info *info)
{
	(void)ctx;
	(void)err;
	(void)info;
}

/* So that `rmdir` right behind the last hold finds no entry. */
static void somebody_asks(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = hold_again(rig);
	struct lc_call *call;

	takers_leave(rig, taker);
	assert_int_equal(lc_stat(&rig->lc, "a", 5, stat_told, rig, &call), 0);
	takers_turn(rig);
	rig_expect_sent(rig, "delete /locks/a/#3-2");
	lc_cancel(call);
}

static void entries_told(void *ctx, int err, const struct lc_entry_info *infos, size_t count)
{
	rig_tell(ctx, "%d: %zu, token %d", err, count, (int)infos[0].token);
}

/* Somebody asked before this hold, and is told its token. */
static void token_is_shown(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = hold_again(rig);
	struct lc_entry known = {.znode = taker->entry.name, .of_mount = true};
	struct ensemble_stat stat = {.czxid = 102, .ephemeral_owner = rig->session.id};
	struct lc_call *call;

	assert_int_equal(lc_entries(&rig->lc, "a", 5, NULL, &known, 1, entries_told, rig, &call),
	                 0);
	taker->entry.repeated = true;
	asking_send(&rig->lc);
	rig_answer(rig, &(struct ensemble_answer){.stat = &stat, .data = ""});
	asking_tell(&rig->lc);
	rig_expect_told(rig, "0: 1, token 102");
	assert_false(taker->entry.repeated);
}

/* The listing of its own take shows somebody behind it. */
static void somebody_is_there(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker;

	rig->lc.config.reuse = true;
	leave(rig, hold(rig, 1));
	taker = take(rig);
	takers_turn(rig);
	takers_answer_made(rig, taker, 2);
	takers_answer_list(rig, "#3-2 " OTHER(3));
	assert_int_equal(taker->state, TAKER_HELD);
	assert_false(taker->entry.repeated);
}

/* An entry of another client was noticed, in each of three ways: for a second no entry is kept. */
static void others_were_here(void **state)
{
	(void)state;
	for (size_t how = 0; how < 3; how++) {
		struct rig *rig = takers_begin();
		struct lc_taker *taker = hold_again(rig);
		int next = 3;

		if (how == 0)
			takers_change(rig, "", ENSEMBLE_NAMES);
		else
			reuse_end(taker->entry.lock);
		leave(rig, taker);
		if (how == 1) { /* a listing shows it */
			taker = take(rig);
			takers_turn(rig);
			takers_answer_made(rig, taker, next++);
			takers_answer_list(rig, "#4-3 " OTHER(4));
			leave(rig, taker);
			next++;
		} else if (how == 2) { /* a number is missing */
			leave(rig, hold(rig, ++next));
			next++;
		}
		taker = hold(rig, next++);
		expect(!taker->entry.repeated, "how %zu, at once", how);
		leave(rig, taker);
		takers_run(rig, SECOND);
		leave(rig, hold(rig, next++));
		expect(hold(rig, next)->entry.repeated, "how %zu, after a second", how);
		rig_forget(rig);
		takers_end(rig);
	}
}

/* What fires the watch is the own delete. */
static void nobody_was_here(void **state)
{
	struct rig *rig = *state;

	takers_leave(rig, hold_again(rig));
	takers_run(rig, IDLE_US);
	rig_expect_sent(rig, "delete /locks/a/#3-2");
	takers_change(rig, "", ENSEMBLE_NAMES);
	takers_answer_error(rig, ENSEMBLE_OK);
	leave(rig, hold(rig, 3));
	assert_true(hold(rig, 4)->entry.repeated);
}

/* ---- tokens ---- */

static void one_token_one_hold(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = hold_again(rig);

	assert_int_equal(lc_token(taker), 0); /* it may be the next hold's */
	takers_leave(rig, taker);
	assert_ptr_equal(take(rig), taker);
	takers_turn(rig);
	assert_int_equal(lc_give_token(taker), 102);
	assert_int_equal(lc_token(taker), 102);
	rig_forget(rig);
	takers_leave(rig, taker);
	rig_expect_sent(rig, "delete /locks/a/#3-2");
	takers_answer_error(rig, ENSEMBLE_OK);
	/* A program that reads its token each time pays for nothing else. */
	assert_false(hold(rig, 3)->entry.repeated);
}

/* ---- nothing is left from the last hold ---- */

static void limits_are_its_own(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = hold_again(rig);

	lc_limit(taker, rig->now_us + MS);
	takers_leave(rig, taker);
	takers_run(rig, IDLE_US - 1);
	assert_ptr_equal(take(rig), taker);
	takers_run(rig, 2 * MS);
	rig_expect_told(rig, "1 taken");
	assert_true(lc_holds(taker));
	assert_int_equal(taker->hold_until_us, LC_FOREVER);
}

/* The lease ends before it is told: then it has waited all the time. */
static void not_told_in_time(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = hold_again(rig);

	takers_leave(rig, taker);
	assert_ptr_equal(takers_take(rig, PID, LC_EXCLUSIVE, 5 * MS), taker);
	rig->session.lease.deadline_us = rig->now_us;
	takers_turn(rig);
	rig_expect_told(rig, "");
	assert_int_equal(taker->state, TAKER_WAITING);
	takers_run(rig, 5 * MS);
	rig_expect_told(rig, "1 taken ETIMEDOUT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TAKERS_TEST(asks_nobody),
		cmocka_unit_test(ends_in_time),
		TAKERS_TEST(never_for_long),
		TAKERS_TEST(not_the_first),
		cmocka_unit_test(only_a_plain_one),
		TAKERS_TEST(not_beside_a_waiter),
		cmocka_unit_test(serves_only_its_process),
		TAKERS_TEST(another_tries),
		cmocka_unit_test(not_when_in_doubt),
		cmocka_unit_test(others_come),
		TAKERS_TEST(somebody_asks),
		TAKERS_TEST(token_is_shown),
		TAKERS_TEST(somebody_is_there),
		cmocka_unit_test(others_were_here),
		TAKERS_TEST(nobody_was_here),
		TAKERS_TEST(one_token_one_hold),
		TAKERS_TEST(limits_are_its_own),
		TAKERS_TEST(not_told_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
