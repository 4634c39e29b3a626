/* SPDX-License-Identifier: MIT
 *
 * Taking and leaving: how a taker begins, when its time is up, and what becomes of it when the
 * frontend does not want the taker any more.
 */
#include "takers.h"

#include "grant/grant.h"
#include "lock/lock_watch.h"

#include <errno.h>
#include <string.h>

static void never_taken(void *ctx, int err)
{
	(void)ctx;
	(void)err;
	fail();
}

static int refused(struct rig *rig, const struct lc_request *request)
{
	struct lc_taker *taker = NULL;
	int r = lc_take(&rig->lc, request, never_taken, NULL, NULL, &taker);

	assert_null(taker);
	assert_null(rig->locks.by_path);
	return r;
}

static void refused_at_once(void **state)
{
	struct rig *rig = *state;
	struct lc_request request = {.lock = "a", .wait_us = LC_FOREVER, .uid = 5, .command = "sh"};
	char longest[LC_PATH_MAX + 1];

	memset(longest, 'x', sizeof(longest));
	longest[LC_PATH_MAX - strlen("/locks/") + 1] = '\0';
	request.lock = longest;
	assert_int_equal(refused(rig, &request), -ENAMETOOLONG);
	request.lock = "a";
	rig->lc.draining = true;
	assert_int_equal(refused(rig, &request), -ESHUTDOWN);
	rig->lc.draining = false;
	rig->session.state = LC_UNUSABLE;
	assert_int_equal(refused(rig, &request), -ESHUTDOWN);
	rig->session.state = LC_READY;
	rig->quota.entry_bytes = 2000000;
	assert_int_equal(refused(rig, &request), -ENOLCK);
	rig->quota.entry_bytes = 0;
	assert_int_equal(rig->lc.counters.takes, 4);
	/* The longest name that a lock can have. */
	longest[LC_PATH_MAX - strlen("/locks/")] = '\0';
	request.lock = longest;
	request.pid = 1;
	takers_request(rig, &request);
	assert_int_equal(rig->lc.counters.takes, 5);
}

/* Room for entries is made by forgetting locks that nobody uses. */
static void idle_locks_make_room(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	takers_leave(rig, taker);
	takers_answer_error(rig, ENSEMBLE_OK);
	assert_int_equal(rig->locks.idle_count, 1);
	rig->quota.entry_bytes = 1040000;
	assert_int_equal(lc_take(&rig->lc,
	                         &(struct lc_request){.lock = "b", .uid = 5, .command = ""},
	                         never_taken, NULL, NULL, &taker),
	                 -ENOLCK);
	rig->quota.entry_bytes = 0;
	assert_int_equal(rig->locks.idle_count, 0);
}

static void what_is_asked_for(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_request(rig, &(struct lc_request){.lock = "a",
	                                                                  .mode = LC_SHARED,
	                                                                  .wait_us = SECOND,
	                                                                  .pid = 3,
	                                                                  .uid = 8,
	                                                                  .command = "vi\n",
	                                                                  .reason = "x\ty",
	                                                                  .czxid = 77});

	assert_int_equal(taker->entry.mode, LC_SHARED);
	assert_int_equal(taker->entry.data.pid, 3);
	assert_int_equal(taker->entry.data.uid, 8);
	assert_string_equal(taker->entry.data.command, "vi");
	assert_string_equal(taker->entry.data.reason, "x?y");
	assert_int_equal(taker->meant, 77);
	assert_int_equal(taker->asked_us, rig->now_us);
	assert_int_equal(taker->wait_until_us, rig->now_us + SECOND);
	assert_true(taker->hold_until_us == LC_FOREVER);
	assert_false(taker->immediate);
	assert_true(rig->quota.entry_bytes > 0);
	takers_leave(rig, taker);
	taker = takers_request(rig, &(struct lc_request){.lock = "a",
	                                                 .wait_us = LC_FOREVER - 1,
	                                                 .pid = 3,
	                                                 .command = "",
	                                                 .reason = ""});
	assert_null(taker->entry.data.reason);
	assert_true(taker->wait_until_us == LC_FOREVER);
}

/* ---- at once or not at all ---- */

static void free_at_once(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_take(rig, 1, LC_EXCLUSIVE, 0);

	takers_turn(rig);
	rig_expect_sent(rig, "watch /locks/a, children /locks/a"); /* before the entry is created */
	takers_lock.made = 1;
	takers_answer_list(rig, "");
	rig_expect_sent(rig, "create ephemeral /locks/a/#2-");
	takers_answer_made(rig, taker, 1);
	rig_expect_told(rig, "1 taken");
}

/* A listing that was sent before the try began does not decide it. */
static void older_listing(void **state)
{
	struct rig *rig = *state;

	takers_queue(rig, 1, LC_SHARED, 1, "#2-1");
	lock_want_list(rig->locks.by_path);
	takers_turn(rig);
	takers_take(rig, 2, LC_SHARED, 0);
	takers_turn(rig);
	takers_answer_list(rig, OTHER(0) " #2-1");
	rig_expect_told(rig, "");
	takers_answer_list(rig, OTHER(0) " #2-1");
	rig_expect_told(rig, "2 taken EAGAIN");
}

/* The mount's own taker holds the lock: the try is refused without a request. */
static void known_to_be_held(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	lock_watch(holder->entry.lock);
	takers_answer_watches(rig);
	rig_forget(rig);
	takers_take(rig, 2, LC_EXCLUSIVE, 0);
	takers_turn(rig);
	rig_expect_told(rig, "2 taken EAGAIN");
	rig_expect_sent(rig, "");
	rig->session.lease.deadline_us = rig->now_us; /* the holder may have lost the lock */
	takers_take(rig, 3, LC_EXCLUSIVE, 0);
	assert_int_equal(rig->takers.waiters, 1);
}

/* Another lock has the name by now. */
static void meant_another_lock(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");
	struct lc_request request = {
		.lock = "a", .wait_us = LC_FOREVER, .pid = 2, .command = "", .czxid = 49};

	watch_fired(&holder->entry.lock->node.watch);
	takers_request(rig, &request); /* not refused: the lock is not watched */
	takers_turn(rig);
	rig_expect_told(rig, "");
	takers_answer_watches(rig);
	takers_answer_error(rig, ENSEMBLE_REFUSED);
	takers_answer_error(rig, ENSEMBLE_REFUSED);
	takers_answer_watches(rig);
	rig_forget(rig);
	request.pid = 3;
	takers_request(rig, &request);
	takers_turn(rig);
	rig_expect_told(rig, "3 taken ENOENT");
	rig_expect_sent(rig, "");
}

static void time_is_up(void **state)
{
	static const struct {
		int64_t wait_us, after_us;
		const char *told;
	} rows[] = {
		{SECOND, SECOND, "2 taken ETIMEDOUT"},
		{3 * SECOND, 3 * SECOND, "2 taken EHOSTUNREACH"}, /* its entry is not made */
		{0, 2 * SECOND, "2 taken EHOSTUNREACH"},
	};
	struct rig *rig = *state;

	takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");
	watch_fired(&rig->locks.by_path->node.watch);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct lc_taker *taker = takers_take(rig, 2, LC_EXCLUSIVE, rows[i].wait_us);

		rig_run(rig, rows[i].after_us - 1);
		takers_turn(rig);
		rig_expect_told(rig, "");
		rig_run(rig, 1);
		takers_turn(rig);
		rig_expect_told(rig, rows[i].told);
		takers_leave(rig, taker);
	}
}

/* Then it is known that the lock is not free only where this mount has it. */
static void time_is_up_in_an_outage(void **state)
{
	static const struct {
		bool queued, here;
		int64_t wait_us;
		const char *told;
	} rows[] = {
		{true, true, 3 * SECOND, "2 taken ETIMEDOUT"},
		{true, false, SECOND, "2 taken ETIMEDOUT"}, /* it was so a moment ago */
		{true, false, 2 * SECOND, "2 taken EHOSTUNREACH"},
		{false, true, 3 * SECOND, "2 taken ETIMEDOUT"},
		{false, false, 100 * MS, "2 taken EHOSTUNREACH"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct rig *rig = takers_begin();
		struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");
		struct lc_taker *waiter = NULL;

		if (rows[i].queued)
			waiter = takers_queue(rig, 2, LC_EXCLUSIVE, 2, "#2-1 #3-2");
		rig_disconnect(rig);
		if (!rows[i].here)
			takers_leave(rig, holder);
		if (!waiter)
			waiter = takers_take(rig, 2, LC_EXCLUSIVE, rows[i].wait_us);
		else
			timer_set(&rig->lc.timers, &waiter->limit, rig->now_us + rows[i].wait_us);
		rig_forget(rig);
		rig_run(rig, rows[i].wait_us - 1);
		takers_turn(rig);
		rig_expect_told(rig, "");
		rig_run(rig, 1);
		takers_turn(rig);
		rig_expect_told(rig, rows[i].told);
		takers_end(rig);
	}
}

/* A try lasts for a third of the session timeout, and for two seconds at most. */
static void patience_of_a_short_session(void **state)
{
	struct rig *rig = *state;

	rig->lc.config.session_timeout_us = 3 * SECOND;
	assert_int_equal(takers_take(rig, 1, LC_EXCLUSIVE, 0)->wait_until_us, rig->now_us + SECOND);
	rig->lc.config.session_timeout_us = 15 * SECOND;
	assert_int_equal(takers_take(rig, 2, LC_EXCLUSIVE, 0)->wait_until_us,
	                 rig->now_us + 2 * SECOND);
}

/* ---- holding for a while ---- */

static void long_hold(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	timer_clear(&rig->lc.timers, &holder->entry.lock->lists.recheck);
	takers_run(rig, 20 * MS - 1);
	rig_expect_sent(rig, "");
	takers_run(rig, 1);
	rig_expect_sent(rig, "set /locks/a/#2-1 v0 'host: m0|pid: 1|uid: 5|command: sh|"
	                     "session_timeout: 15000|held_since: 1000000|', watch /locks/a/#2-1");
	assert_true(holder->entry.lock->lists.recheck.armed);
}

static void held_too_long(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	lc_limit(holder, rig->now_us + 10 * MS);
	rig_run(rig, 10 * MS - 1);
	takers_turn(rig);
	rig_expect_told(rig, "");
	rig_run(rig, 1);
	takers_turn(rig);
	rig_expect_told(rig, "1 lost");
	assert_int_equal(rig->lc.counters.overdue, 1);
}

/* The frontend never says that the processes are stopped: the entry is deleted after a session
 * timeout all the same. */
static void guarded_for_a_session_timeout(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	rig->lc.config.loss_lead_us = SECOND;
	taker_lose(holder);
	takers_turn(rig);
	timer_clear(&rig->lc.timers, &rig->session.beat.timer);
	timer_clear(&rig->lc.timers, &rig->session.limit);
	timer_clear(&rig->lc.timers, &holder->entry.lock->lists.recheck);
	rig_forget(rig);
	rig_run(rig, RIG_TIMEOUT_US - 1);
	takers_turn(rig);
	rig_expect_sent(rig, "");
	rig_run(rig, 1);
	takers_turn(rig);
	rig_expect_sent(rig, "delete /locks/a/#2-1");
}

/* ---- replacing ---- */

static void asks_to_replace(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *old = takers_queue(rig, 1, LC_SHARED, 1, "#2-1"), *taker;

	taker = takers_request(rig, &(struct lc_request){.lock = "a",
	                                                 .mode = LC_EXCLUSIVE,
	                                                 .wait_us = 0,
	                                                 .pid = 2,
	                                                 .command = "",
	                                                 .replaces = old});
	assert_ptr_equal(taker->replaces, old);
	assert_int_equal(taker->wait, WAIT_QUEUED); /* its entry is made at once */
	takers_turn(rig);
	rig_expect_sent(rig, "create ephemeral /locks/a/#3-");
	takers_answer_made(rig, taker, 2);
	rig_expect_told(rig, "2 taken");
}

static void may_not_replace(void **state)
{
	struct records records = {0};
	struct rig *rig = *state;
	struct lc_taker *old = takers_queue(rig, 1, LC_SHARED, 1, "#2-1"),
			*shared = takers_take(rig, 2, LC_SHARED, LC_FOREVER),
			*taker = takers_take(rig, 3, LC_EXCLUSIVE, LC_FOREVER),
			*other = takers_request(rig, &(struct lc_request){.lock = "b",
	                                                                  .wait_us = SECOND,
	                                                                  .pid = 4,
	                                                                  .command = ""});

	assert_false(lc_replace(shared, old));
	assert_false(lc_replace(other, old));
	assert_false(lc_replace(taker, shared));
	lock_untouch(old->entry.lock);
	record_begin(&records, &taker->entry.record, LC_KIND_TAKER, 0);
	records_read_all(&records, LC_KIND_TAKER);
	assert_true(lc_replace(taker, old));
	assert_true(old->entry.lock->touched);
	assert_true(taker->entry.record.touched); /* it is to be recorded again */
	record_end(&taker->entry.record);
	assert_false(lc_replace(taker, old));
	assert_false(lc_replace(takers_take(rig, 5, LC_EXCLUSIVE, LC_FOREVER), old));
	taker_part(old);
	taker_fail(taker, -ETIMEDOUT);
	assert_false(lc_replace(taker, old));
	taker_lose(old);
	assert_false(lc_replace(takers_take(rig, 6, LC_EXCLUSIVE, LC_FOREVER), old));
}

/* A taker is recorded behind the one that it is to replace, as the next process wants it. */
static void replaces_one_that_came_later(void **state)
{
	struct records records = {0};
	struct rig *rig = *state;
	struct lc_taker *taker = takers_queue(rig, 1, LC_EXCLUSIVE, 2, OTHER(1) " #2-2"),
			*old = takers_take(rig, 2, LC_SHARED, LC_FOREVER);
	struct lock *lock = taker->entry.lock;

	record_begin(&records, &taker->entry.record, LC_KIND_TAKER, 0);
	record_begin(&records, &old->entry.record, LC_KIND_TAKER, 0);
	takers_turn(rig);
	takers_answer_made(rig, old, 3);
	lock_want_list(lock);
	takers_turn(rig);
	takers_answer_list(rig, "#3-3"); /* somebody has deleted the taker's entry */
	rig_expect_told(rig, "2 taken");
	assert_int_equal(taker->wait, WAIT_MISSING);
	assert_true(taker->entry.record.key < old->entry.record.key);
	assert_true(lc_replace(taker, old));
	assert_true(taker->entry.record.key > old->entry.record.key);
	assert_ptr_equal(lock->takers.all, old);
	record_end(&taker->entry.record);
	record_end(&old->entry.record);
}

/* ---- leaving ---- */

static void leaves(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *old = takers_queue(rig, 1, LC_SHARED, 1, "#2-1"),
			*taker = takers_take(rig, 2, LC_EXCLUSIVE, LC_FOREVER);

	taker_replace(taker, old);
	takers_leave(rig, taker);
	assert_null(old->replaced_by);
	assert_int_equal(rig->lc.counters.abandoned, 1);
	taker = takers_take(rig, 2, LC_EXCLUSIVE, LC_FOREVER);
	taker_fail(taker, -ETIMEDOUT);
	takers_disown(taker);
	lc_leave(taker); /* before it was told */
	takers_turn(rig);
	rig_expect_told(rig, "");
	assert_int_equal(rig->lc.counters.abandoned, 2);
	taker_lose(old);
	takers_leave(rig, old);
	assert_int_equal(rig->lc.counters.abandoned, 2);
}

static void leaves_what_it_holds(void **state)
{
	struct rig *rig = *state;

	takers_leave(rig, takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1"));
	assert_int_equal(rig->lc.counters.abandoned, 0);
	rig_expect_sent(rig, "delete /locks/a/#2-1");
}

/* A herd does not make the turn long: the others are told in the next one. */
static void told_in_several_turns(void **state)
{
	struct rig *rig = *state;
	unsigned left = 2;

	for (pid_t pid = 1; pid <= 3; pid++)
		takers_take(rig, pid, LC_SHARED, LC_FOREVER);
	lc_drain(&rig->lc);
	takers_tell(&rig->lc, &left);
	assert_int_equal(left, 0);
	rig_forget(rig);
	takers_tell(&rig->lc, &left);
	rig_expect_told(rig, "");
	left = 2;
	takers_tell(&rig->lc, &left);
	assert_int_equal(left, 1);
	assert_null(rig->takers.due);
	rig_expect_told(rig, "2 taken ESHUTDOWN"); /* in the order of a table */
}

static void drains(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1"),
			*waiter = takers_queue(rig, 2, LC_EXCLUSIVE, 2, "#2-1 #3-2");

	assert_false(lc_idle(&rig->lc));
	lc_drain(&rig->lc);
	takers_turn(rig);
	rig_expect_told(rig, "2 taken ESHUTDOWN");
	assert_int_equal(holder->state, TAKER_HELD);
	takers_leave(rig, waiter);
	takers_leave(rig, holder);
	assert_false(lc_idle(&rig->lc)); /* an entry is left */
	while (rig->entries.by_id.count > 0)
		takers_answer_error(rig, ENSEMBLE_OK);
	assert_true(lc_idle(&rig->lc));
}

/* Entries stay until the holders leave, however long that takes. */
static void forfeits(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	takers_queue(rig, 2, LC_EXCLUSIVE, 2, "#2-1 #3-2");
	lc_forfeit(&rig->lc);
	assert_int_equal(holder->loss, LOSS_FORFEITED);
	assert_true(rig->lc.draining);
	takers_turn(rig);
	rig_expect_told(rig, "1 lost, 2 taken ESHUTDOWN");
	rig_expect_sent(rig, "delete /locks/a/#3-2");
	takers_leave(rig, holder);
	rig_expect_sent(rig, "delete /locks/a/#2-1");
}

/* The frontend was not told yet that the taker holds. */
static void forfeits_what_was_not_told(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_take(rig, 1, LC_EXCLUSIVE, LC_FOREVER);

	takers_turn(rig);
	takers_answer_made(rig, taker, 1);
	taker_grant(taker);
	lc_forfeit(&rig->lc);
	takers_turn(rig);
	rig_expect_told(rig, "1 taken ESHUTDOWN");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TAKERS_TEST(refused_at_once),
		TAKERS_TEST(idle_locks_make_room),
		TAKERS_TEST(what_is_asked_for),
		TAKERS_TEST(free_at_once),
		TAKERS_TEST(older_listing),
		TAKERS_TEST(known_to_be_held),
		TAKERS_TEST(meant_another_lock),
		TAKERS_TEST(time_is_up),
		cmocka_unit_test(time_is_up_in_an_outage),
		TAKERS_TEST(patience_of_a_short_session),
		TAKERS_TEST(long_hold),

		TAKERS_TEST(held_too_long),
		TAKERS_TEST(guarded_for_a_session_timeout),
		TAKERS_TEST(asks_to_replace),
		TAKERS_TEST(may_not_replace),
		TAKERS_TEST(replaces_one_that_came_later),
		TAKERS_TEST(leaves),
		TAKERS_TEST(leaves_what_it_holds),
		TAKERS_TEST(told_in_several_turns),
		TAKERS_TEST(drains),
		TAKERS_TEST(forfeits),
		TAKERS_TEST(forfeits_what_was_not_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
