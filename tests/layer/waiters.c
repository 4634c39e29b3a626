/* SPDX-License-Identifier: MIT
 *
 * Whether somebody waits behind a holder, and when that may have changed.
 */
#include "ask/waiters.h"

#include "lock/lock_watch.h"
#include "takers.h"

#include <errno.h>
#include <string.h>

static void told(void *ctx, int err, bool waiters)
{
	rig_tell(ctx,
	         err < 0   ? "%s"
	         : waiters ? "a taker waits"
	                   : "nobody waits",
	         strerrorname_np(-err));
}

static struct lc_call *ask(struct rig *rig, struct lc_taker *holder)
{
	struct lc_call *call;

	assert_int_equal(lc_has_waiters(holder, told, rig, &call), 0);
	asking_send(&rig->lc);
	return call;
}

/* Answers listings, and reads of the number of slots, if there are any. */
static void answer_queue(struct rig *rig, const char *names, unsigned slots)
{
	for (int i = 0; i < 3 && rig_unanswered(rig)[0] != '\0'; i++) {
		if (strncmp(rig_unanswered(rig), "children ", 9) == 0)
			takers_answer_list(rig, names);
		else
			takers_answer_slots(rig, slots);
	}
	rig->now_us += SECOND;
	asking_tell(&rig->lc);
}

static void who_waits(void **state)
{
	static const struct {
		enum lc_mode mode; /* of the holder */
		const char *names;
		unsigned slots;
		const char *told;
	} rows[] = {
		{LC_EXCLUSIVE, "#2-1", 1, "nobody waits"},
		{LC_EXCLUSIVE, "#2-1 " OTHER(2), 1, "a taker waits"},
		{LC_EXCLUSIVE, "#2-1 " OTHER_SHARED(2), 1, "a taker waits"},
		{LC_SHARED, "#2-1 " OTHER_SHARED(2), 1, "nobody waits"},
		{LC_SHARED, "#2-1 " OTHER(2), 1, "a taker waits"},
		/* The last entry does not wait for this holder, but for the writer before it. */
		{LC_SHARED, "#2-1 " OTHER(2) " " OTHER_SHARED(3), 1, "a taker waits"},
		{LC_EXCLUSIVE, OTHER(0) " #2-1", 2, "nobody waits"},
		/* A number near its largest value gives no order: the entry may stand behind. */
		{LC_EXCLUSIVE, "#2-1 x-lock-2147483647", 1, "a taker waits"},
		{LC_SHARED, "#2-1 x-rlock-2147483647", 1, "nobody waits"},
		{LC_SHARED, "#2-1 x-lock-2147483647", 1, "a taker waits"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct rig *rig = takers_begin();
		struct lc_taker *holder = takers_queue(rig, 1, rows[i].mode, 1, "#2-1");

		ask(rig, holder);
		rig_expect_sent(rig, "children /locks/a");
		answer_queue(rig, rows[i].names, rows[i].slots);
		if (strcmp(rig->told, rows[i].told) != 0)
			fail_msg("row %zu: %s", i, rig->told);
		expect(!holder->entry.lock->lists.wanted, "row %zu: it is listed again", i);
		takers_end(rig);
	}
}

/* An entry of ours that is being deleted does not wait. */
static void leavers_do_not_count(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1"),
			*leaver = takers_queue(rig, 2, LC_EXCLUSIVE, 2, "#2-1 #3-2");

	ask(rig, holder);
	answer_queue(rig, "#2-1 #3-2", 1);
	rig_expect_told(rig, "a taker waits");
	takers_leave(rig, leaver);
	ask(rig, holder);
	takers_answer_error(rig, ENSEMBLE_REFUSED); /* the leaver's delete */
	answer_queue(rig, "#2-1 #3-2", 1);
	rig_expect_told(rig, "nobody waits");
}

/* The listing shows the entry of a leaver, which is gone when the holder is told of it. */
static void leaver_has_gone(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1"),
			*leaver = takers_queue(rig, 2, LC_EXCLUSIVE, 2, "#2-1 #3-2");

	ask(rig, holder);
	answer_queue(rig, "#2-1 #3-2", 1);
	rig_expect_told(rig, "a taker waits");
	ask(rig, holder);
	takers_leave(rig, leaver);
	takers_answer_list(rig, "#2-1 #3-2");
	takers_answer_error(rig, ENSEMBLE_OK); /* the leaver's delete */
	rig->now_us += SECOND;
	asking_tell(&rig->lc);
	rig_expect_told(rig, "nobody waits");
}

/* Only the first of two holders has a waiter behind it. */
static void two_holders(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *first = takers_queue(rig, 1, LC_SHARED, 1, "#2-1"),
			*second = takers_queue(rig, 2, LC_SHARED, 3, "#2-1 #3-3");

	rig->now_us += SECOND;
	ask(rig, first);
	answer_queue(rig, "#2-1 " OTHER(2) " #3-3", 1);
	rig_expect_told(rig, "a taker waits");
	ask(rig, second);
	answer_queue(rig, "#2-1 " OTHER(2) " #3-3", 1);
	rig_expect_told(rig, "nobody waits");
}

static void does_not_hold(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");
	struct lc_call *call;

	ask(rig, holder);
	rig_answer_error(rig, ENSEMBLE_NOAUTH);
	asking_tell(&rig->lc);
	rig_expect_told(rig, "EACCES");
	rig->now_us += SECOND;
	ask(rig, holder);
	taker_lose(holder);
	answer_queue(rig, "#2-1", 1);
	assert_non_null(strstr(rig->told, "EIO"));
	assert_int_equal(lc_has_waiters(holder, told, rig, &call), -EIO);
}

/* The holder's own entry is not there: a listing will decide whether the lock is lost. */
static void is_not_shown(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	ask(rig, holder);
	answer_queue(rig, OTHER(3), 1);
	rig_expect_told(rig, "nobody waits");
	assert_true(holder->entry.lock->lists.wanted);
}

/* ---- when it may have changed ---- */

static void changed(void *ctx)
{
	(void)ctx;
	fail();
}

static struct rig *changed_rig;

static void note_change(void *ctx)
{
	(void)ctx;
	rig_tell(changed_rig, "changed");
}

static void watched(void **state)
{
	struct rig *rig = changed_rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	watch_fired(&holder->entry.lock->node.watch);
	lc_watch_waiters(holder, note_change);
	rig_expect_sent(rig, "watch /locks/a"); /* its slots may change */
	takers_answer_watches(rig);
	ask(rig, holder);
	rig_expect_sent(rig, "children watched /locks/a");
	answer_queue(rig, "#2-1", 1);
	rig_forget(rig);
	lock_note_waiters(holder->entry.lock);
	lock_note_waiters(holder->entry.lock);
	rig_expect_told(rig, ""); /* not told from inside */
	waiters_tell(&rig->lc);
	rig_expect_told(rig, "changed");
	assert_null(holder->waiters_changed); /* told once; it can be set again */
	lock_note_waiters(holder->entry.lock);
	waiters_tell(&rig->lc);
	rig_expect_told(rig, "");
}

static void not_watched_any_more(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	lc_watch_waiters(holder, changed);
	lock_note_waiters(holder->entry.lock);
	assert_non_null(rig->takers.waiters_changed);
	lc_watch_waiters(holder, changed); /* the change is still to be told */
	assert_non_null(rig->takers.waiters_changed);
	lc_watch_waiters(holder, NULL);
	assert_null(rig->takers.waiters_changed);
	waiters_tell(&rig->lc);
	lc_watch_waiters(holder, NULL);
	ask(rig, holder);
	takers_answer_watches(rig);
	assert_string_equal(rig_unanswered(rig), "children /locks/a");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_waits),  TAKERS_TEST(leavers_do_not_count),
		TAKERS_TEST(leaver_has_gone), TAKERS_TEST(two_holders),
		TAKERS_TEST(does_not_hold),   TAKERS_TEST(is_not_shown),
		TAKERS_TEST(watched),         TAKERS_TEST(not_watched_any_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
