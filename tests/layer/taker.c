/* SPDX-License-Identifier: MIT
 *
 * One taker: its states, the meaning of each state for its entry and for the lock, and the results
 * for the frontend.
 */
#include "takers.h"

#include "forged.h"
#include "lock/lock_watch.h"
#include "lock/taker.h"

#include <errno.h>
#include <string.h>

/* Thousands of takers may wait on one mount. Data that only few takers need has an allocation of
 * its own, which is made when it is needed. */
_Static_assert(sizeof(void *) != 8 || sizeof(struct lc_taker) <= 600, "a taker has grown");

/* A taker that holds; the frontend was told so. */
static struct lc_taker *hold(struct rig *rig, pid_t pid, enum lc_mode mode, int number,
                             const char *names)
{
	struct lc_taker *taker = takers_queue(rig, pid, mode, number, names);

	assert_int_equal(taker->state, TAKER_HELD);
	assert_false(taker_is_untold(taker));
	return taker;
}

/* ---- its entry ---- */

/* The listing is sent right behind the create. */
static void entry_comes_and_goes(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_take(rig, 1, LC_EXCLUSIVE, LC_FOREVER);

	assert_int_equal(rig->takers.waiters, 1);
	assert_int_equal(taker->entry.lock->takers.waiting, 1);
	assert_true(rig->session.busy);
	assert_int_equal(rig->entries.there, 1); /* being created */
	takers_turn(rig);
	rig_expect_sent(rig, "watch /locks/a, create ephemeral /locks/a/#2-, children /locks/a");
	takers_answer_made(rig, taker, 1);
	rig_expect_told(rig, "");
	takers_answer_list(rig, "#2-1");
	rig_expect_told(rig, "1 taken");
	assert_int_equal(rig->takers.waiters, 0);
	assert_int_equal(taker->entry.lock->takers.waiting, 0);
	assert_int_equal(rig->takers.holders, 1);
	assert_true(rig->session.busy && taker_holds_entry(taker));
	assert_int_equal(taker->entry.lock->takers.writing, 1);
	takers_leave(rig, taker);
	rig_expect_sent(rig, "delete /locks/a/#2-1");
	assert_false(rig->session.busy || taker_holds_entry(taker));
	assert_int_equal(rig->takers.holders, 0);
	assert_int_equal(taker->entry.lock->takers.writing, 0);
	assert_int_equal(takers_leaving(rig), 1);
	assert_int_equal(rig->entries.there, 1);
	takers_answer_error(rig, ENSEMBLE_OK);
	assert_int_equal(takers_leaving(rig), 0);
	assert_int_equal(rig->entries.there, 0);
	assert_int_equal(rig->entries.by_id.count, 0);
	rig_expect_told(rig, "");
}

/* A shared holder does not count as a writer. */
static void shared_holder(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = hold(rig, 1, LC_SHARED, 1, "#2-1");

	assert_int_equal(taker->entry.lock->takers.holding, 1);
	assert_int_equal(taker->entry.lock->takers.writing, 0);
	takers_leave(rig, taker);
	assert_int_equal(rig->locks.by_path->takers.holding, 0);
	takers_answer_error(rig, ENSEMBLE_OK);
}

/* A holder and a waiter together, too, make the session busy. */
static void holder_and_waiter(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = hold(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	takers_queue(rig, 2, LC_EXCLUSIVE, 2, "#2-1 #3-2");
	assert_int_equal(rig->takers.holders, 1);
	assert_int_equal(rig->takers.waiters, 1);
	assert_true(rig->session.busy && lc_holds(holder));
}

/* Without contact nothing is sent. All of it is sent when there is contact again. */
static void without_contact(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker;

	rig_disconnect(rig);
	rig_forget(rig);
	taker = takers_take(rig, 1, LC_EXCLUSIVE, LC_FOREVER);
	takers_turn(rig);
	rig_expect_sent(rig, "");
	assert_int_equal(taker->entry.state, ENTRY_ABSENT);
	takers_reconnect(rig);
	rig_expect_sent(rig, "set " RIG_NODE " '', set " RIG_NODE
	                     " '', watch /locks/a, create ephemeral /locks/a/#2-, "
	                     "children /locks/a");
}

/* The taker leaves before its create is answered: the entry is deleted after the answer. */
static void leaves_before_it_is_there(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_take(rig, 1, LC_EXCLUSIVE, LC_FOREVER);

	takers_turn(rig);
	rig_forget(rig);
	takers_leave(rig, taker);
	rig_expect_sent(rig, "");
	takers_answer_made(rig, taker, 1);
	rig_expect_sent(rig, "delete /locks/a/#2-1");
	takers_answer_list(rig, "#2-1");
	rig_expect_told(rig, "");
	takers_answer_error(rig, ENSEMBLE_OK);
	assert_int_equal(rig->entries.by_id.count, 0);
}

/* A refused delete is sent again, each time after a second. */
static void delete_is_refused(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = hold(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	takers_leave(rig, taker);
	rig_forget(rig);
	for (int i = 0; i < 2; i++) {
		takers_answer_error(rig, ENSEMBLE_REFUSED);
		takers_run(rig, SECOND - 1);
		rig_expect_sent(rig, "");
		takers_run(rig, 1);
		rig_expect_sent(rig, "delete /locks/a/#2-1");
	}
	takers_answer_error(rig, ENSEMBLE_NONODE);
	assert_int_equal(rig->entries.by_id.count, 0);
}

/* The lock was handed on, and the delete of the leaver's entry was refused: it guards the lock
 * until the next taker's entry was seen. */
static void held_back(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *leaver = hold(rig, 1, LC_EXCLUSIVE, 1, "#2-1"),
			*next = takers_queue(rig, 2, LC_EXCLUSIVE, 2, "#2-1 #3-2");
	struct lock *lock = leaver->entry.lock;

	next->entry.watch.state = WATCH_IDLE;
	lock->grant.unproved = &next->entry;
	lock->grant.held_back = true;
	takers_disown(leaver);
	taker_leave(leaver);
	assert_true(lock->grant.held_back);
	rig_expect_sent(rig, "watch /locks/a/#3-2");
	assert_int_equal(leaver->entry.state, ENTRY_PRESENT);
	lock->grant.unproved = NULL;
	leaver->entry.in_doubt = true; /* or it would guard the next one */
	takers_turn(rig);
	rig_expect_sent(rig, "delete /locks/a/#2-1");
}

/* ---- states ---- */

static void fails(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *first = hold(rig, 1, LC_EXCLUSIVE, 1, "#2-1"),
			*taker = takers_queue(rig, 2, LC_EXCLUSIVE, 2, "#2-1 #3-2");

	taker_fail(taker, -ETIMEDOUT);
	rig_expect_told(rig, ""); /* not from inside */
	assert_int_equal(rig->takers.waiters, 0);
	takers_turn(rig);
	rig_expect_told(rig, "2 taken ETIMEDOUT");
	takers_turn(rig);
	rig_expect_told(rig, "");
	assert_false(taker->entry.wanted);
	takers_leave(rig, taker);
	rig_expect_told(rig, "");
	assert_int_equal(first->state, TAKER_HELD);
}

/* The frontend was not told of the grant, so the grant did not happen. */
static void loses_what_was_not_told(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_take(rig, 1, LC_EXCLUSIVE, 60 * SECOND);

	takers_turn(rig);
	takers_answer_made(rig, taker, 1);
	taker_grant(taker);
	assert_false(taker->limit.armed);
	assert_true(taker->recheck.armed);
	assert_true(taker->entry.data.held_since_ms >= 0);
	taker_lose(taker);
	assert_int_equal(taker->state, TAKER_WAITING);
	assert_int_equal(taker->entry.data.held_since_ms, -1);
	assert_int_equal(taker->limit.at_us, rig->now_us + 60 * SECOND);
	assert_true(taker->limit.armed);
	assert_false(taker->recheck.armed);
	assert_true(taker->entry.lock->touched);
	takers_answer_list(rig, "");
	rig_expect_told(rig, "");
}

/* The entry of a lost lock stays or is deleted. */
static void loses_its_lock(void **state)
{
	static const struct {
		int64_t lead_us;
		bool forfeits;
		enum taker_loss loss;
		const char *sent;
		bool goes; /* one session timeout later */
	} rows[] = {
		{0, false, LOSS_GIVEN_UP, "delete /locks/a/#2-1", false},
		{SECOND, false, LOSS_GUARDED, "", true},
		{SECOND, true, LOSS_FORFEITED, "", false},
		{0, true, LOSS_FORFEITED, "", false},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct rig *rig = takers_begin();
		struct lc_taker *taker = hold(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

		rig->lc.config.loss_lead_us = rows[i].lead_us;
		if (rows[i].forfeits)
			taker->loss = LOSS_FORFEITED;
		taker_lose(taker);
		assert_int_equal(taker->loss, rows[i].loss);
		takers_turn(rig);
		rig_expect_told(rig, "1 lost");
		rig_expect_sent(rig, rows[i].sent);
		assert_int_equal(taker->entry.wanted, rows[i].loss != LOSS_GIVEN_UP);
		assert_int_equal(rig->takers.losing, rows[i].loss != LOSS_GIVEN_UP);
		assert_int_equal(takers_leaving(rig), rows[i].loss == LOSS_GIVEN_UP);
		assert_int_equal(taker->limit.armed, rows[i].loss != LOSS_GIVEN_UP);
		if (taker->limit.armed)
			assert_int_equal(taker->limit.at_us, rig->now_us + RIG_TIMEOUT_US);
		taker_give_up(taker);
		assert_int_equal(taker->loss, rows[i].goes ? LOSS_GIVEN_UP : rows[i].loss);
		assert_int_equal(rig->takers.losing, taker->loss != LOSS_GIVEN_UP);
		assert_int_equal(takers_leaving(rig), taker->loss == LOSS_GIVEN_UP);
		takers_turn(rig);
		rig_expect_sent(rig, rows[i].goes ? "delete /locks/a/#2-1" : "");
		takers_end(rig);
	}
}

/* The entry of a lost lock is given up: its waiters are looked at. */
static void waiters_behind_a_lost_lock(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = hold(rig, 1, LC_EXCLUSIVE, 1, "#2-1");
	struct lock *lock = taker->entry.lock;

	takers_queue(rig, 2, LC_EXCLUSIVE, 2, "#2-1 #3-2");
	rig->lc.config.loss_lead_us = SECOND;
	taker_lose(taker);
	lock_untouch(lock);
	taker_give_up(taker);
	assert_true(lock->touched);
}

static void nobody_behind_a_lost_lock(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = hold(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	rig->lc.config.loss_lead_us = SECOND;
	taker_lose(taker);
	taker_give_up(taker);
	assert_false(taker->entry.lock->lists.wanted);
	taker_give_up(taker); /* no effect again */
	takers_turn(rig);
	rig_expect_sent(rig, "delete /locks/a/#2-1");
}

static void replaces(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *old = hold(rig, 1, LC_SHARED, 1, "#2-1"),
			*taker = takers_take(rig, 2, LC_EXCLUSIVE, LC_FOREVER);

	taker_replace(taker, old);
	assert_ptr_equal(taker->replaces, old);
	assert_ptr_equal(old->replaced_by, taker);
	taker_part(old);
	assert_null(taker->replaces);
	assert_null(old->replaced_by);
	taker_replace(taker, old);
	taker_fail(taker, -EDEADLK);
	assert_null(old->replaced_by);
	taker_part(taker);
	taker = takers_take(rig, 3, LC_EXCLUSIVE, LC_FOREVER);
	taker_replace(taker, old);
	taker_lose(old); /* the old entry is in the way like any other */
	assert_null(taker->replaces);
}

/* The entry is gone. A listing shows whether the lock is, and a write whether the session is. */
static void misses_its_entry(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker;

	hold(rig, 1, LC_EXCLUSIVE, 1, "#2-1");
	taker = takers_queue(rig, 2, LC_EXCLUSIVE, 2, "#2-1 #3-2");
	loss_of_node(taker);
	assert_int_equal(taker->wait, WAIT_MISSING);
	takers_turn(rig);
	rig_expect_sent(rig, "children /locks/a");
	takers_answer_list(rig, "#2-1");
	assert_true(rig->takers.missing);
	rig_expect_sent(rig, "set " RIG_NODE " ''");
	taker_step(taker); /* the entry is not made again */
	assert_int_equal(taker->entry.state, ENTRY_ABSENT);
	rig_answer_version(rig, 1);
	takers_turn(rig);
	rig_expect_told(rig, "2 taken ECANCELED");
}

/* A waiter has the time limit that the frontend has set; a holder has no such limit. */
static void limits(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_take(rig, 1, LC_EXCLUSIVE, 3 * SECOND);

	assert_int_equal(taker->limit.at_us, rig->now_us + 3 * SECOND);
	takers_turn(rig);
	takers_answer_made(rig, taker, 1);
	takers_answer_list(rig, "#2-1");
	assert_false(taker->limit.armed);
	assert_int_equal(taker->recheck.at_us, rig->now_us + 20 * MS);
	taker = takers_take(rig, 2, LC_EXCLUSIVE, LC_FOREVER);
	assert_false(taker->limit.armed);
}

static void tries_later(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = hold(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	taker_try_later(taker);
	assert_int_equal(taker->recheck.at_us, rig->now_us + SECOND);
	assert_false(taker->limit.armed);
	taker->entry.wanted = false;
	taker_try_later(taker);
	assert_int_equal(taker->limit.at_us, rig->now_us + SECOND);
	taker->entry.wanted = true;
	timer_clear(&rig->lc.timers, &taker->limit);
}

/* ---- what the takers of a lock mean for each other ---- */

static void bars(void **state)
{
	static const struct {
		unsigned slots, holding, writing;
		bool exclusive, shared;
	} rows[] = {
		{1, 0, 0, false, false},
		{1, 1, 1, true, true},
		{1, 1, 0, true, false},
		{2, 1, 1, false, false},
	};
	struct rig *rig = *state;
	struct lc_taker *taker = hold(rig, 1, LC_EXCLUSIVE, 1, "#2-1");
	struct lock *lock = taker->entry.lock;

	watch_fired(&lock->node.watch);
	assert_false(lock_bars(lock, LC_EXCLUSIVE)); /* not watched: it may be another lock */
	lock_watch(lock);
	takers_answer_watches(rig);
	assert_true(lock_bars(lock, LC_EXCLUSIVE));
	for (size_t i = 0; i < LENGTH(rows); i++) {
		lock->node.info.slots = rows[i].slots;
		lock->takers.holding = rows[i].holding;
		lock->takers.writing = rows[i].writing;
		expect(lock_bars(lock, LC_EXCLUSIVE) == rows[i].exclusive, "row %zu", i);
		expect(lock_bars(lock, LC_SHARED) == rows[i].shared, "row %zu", i);
	}
	lock->node.info.slots = lock->takers.holding = lock->takers.writing = 1;
}

/* An entry behind a holder of this mount is created without a listing. */
static void created_behind_a_holder(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = hold(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	lock_watch(holder->entry.lock);
	takers_answer_watches(rig);
	rig_forget(rig);
	timer_clear(&rig->lc.timers, &holder->entry.lock->lists.recheck);
	takers_take(rig, 2, LC_EXCLUSIVE, LC_FOREVER);
	takers_turn(rig);
	rig_expect_sent(rig, "create ephemeral /locks/a/#3-");
	assert_true(holder->entry.lock->lists.recheck.armed);
}

/* Takers stand in the order of their creates, whichever taker has asked first. */
static void order_of_creates(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *first = takers_take(rig, 1, LC_SHARED, 0),
			*second = takers_take(rig, 2, LC_SHARED, LC_FOREVER);
	struct lock *lock = first->entry.lock;

	takers_turn(rig);
	assert_ptr_equal(lock->takers.all, first); /* its listing comes before its create */
	takers_answer_made(rig, second, 1);
	takers_answer_list(rig, "#3-1");
	assert_ptr_equal(lock->takers.all, second);
	takers_answer_made(rig, first, 2);
	rig_expect_told(rig, "2 taken, 1 taken");
}

/* ---- from one process to the next ---- */

/* Its texts are good until the next one. */
static struct forged_taker saved(struct lc_taker *taker)
{
	static char texts[1024];
	struct forged_taker read = {0};
	struct codec codec = {0}, reads = {.loads = true};

	taker_write(&codec, taker);
	assert_true(codec.len <= sizeof(texts));
	codec_read(&reads, memcpy(texts, codec.data, codec.len), codec.len);
	forge_taker(&reads, &read);
	codec_read_all(&reads);
	assert_null(reads.bad);
	codec_end(&codec);
	return read;
}

/* A grant that the frontend was not told of is saved as if it had not happened. */
static void saves(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_take(rig, 1, LC_EXCLUSIVE, 60 * SECOND);
	int64_t limit_us = rig->now_us + 60 * SECOND;
	struct forged_taker image;

	takers_turn(rig);
	takers_answer_made(rig, taker, 1);
	taker->entry.data.uid = 1000;
	image = saved(taker);
	assert_int_equal(image.uid, 1000);
	assert_string_equal(image.command, "sh");
	quota_return_watches(&rig->lc, &taker->entry.lock->node.charge);
	quota_charge_watches(&rig->lc, &taker->entry.lock->node.charge, 1001);
	assert_int_equal(saved(taker).watches_uid, 1001);
	assert_int_equal(image.state, TAKER_WAITING);
	assert_int_equal(image.limit_us, limit_us);
	taker_grant(taker);
	taker->entry.lock->grant.unproved = &taker->entry;
	image = saved(taker);
	assert_int_equal(image.state, TAKER_WAITING);
	assert_int_equal(image.flags & (FORGED_DUE | FORGED_UNSEEN), 0);
	assert_int_equal(image.held_since_ms, -1);
	assert_int_equal(image.limit_us, limit_us);
	assert_true(image.recheck_us == LC_FOREVER);
	takers_turn(rig);
	image = saved(taker);
	assert_int_equal(image.state, TAKER_HELD);
	assert_true(image.flags & FORGED_UNSEEN);
	assert_true(image.held_since_ms > 0);
	assert_true(image.limit_us == LC_FOREVER);
	assert_int_equal(image.recheck_us, rig->now_us + 20 * MS);
	assert_true(image.hold_until_us == LC_FOREVER);
	taker->entry.lock->grant.unproved = NULL;
	takers_answer_list(rig, "#2-1");
	taker->hold_until_us = LC_FOREVER / 4 + 1; /* after the last possible time: never */
	assert_true(saved(taker).hold_until_us == LC_FOREVER);
	taker->hold_until_us = LC_FOREVER / 4;
	assert_int_equal(saved(taker).hold_until_us, LC_FOREVER / 4);
	rig->lc.config.loss_lead_us = SECOND;
	taker_lose(taker);
	image = saved(taker);
	assert_int_equal(image.state, TAKER_LOST);
	assert_int_equal(image.loss, LOSS_GUARDED);
	assert_true(image.flags & FORGED_DUE);
	taker->loss = LOSS_FORFEITED;
	assert_int_equal(saved(taker).loss, LOSS_FORFEITED);
	taker->loss = LOSS_GIVEN_UP;
	assert_int_equal(saved(taker).loss, LOSS_GIVEN_UP);
	taker->loss = LOSS_GUARDED;
}

static void saves_those_that_wait(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_take(rig, 1, LC_EXCLUSIVE, 0);
	struct forged_taker image = saved(taker);

	assert_int_equal(image.wait, WAIT_PROBING);
	assert_true(image.flags & FORGED_IMMEDIATE);
	taker->wait = WAIT_MISSING;
	assert_int_equal(saved(taker).wait, WAIT_MISSING);
	taker->wait = WAIT_QUEUED;
	assert_int_equal(saved(taker).wait, WAIT_QUEUED);
	taker_fail(taker, -EAGAIN);
	image = saved(taker);
	assert_int_equal(image.state, TAKER_FAILED);
	assert_int_equal(image.error, -EAGAIN);
	assert_true(image.flags & FORGED_DUE);
	taker_set_due(taker, false);
	image = saved(taker);
	assert_false(image.flags & FORGED_DUE);
}

/* ---- freeing it ---- */

static void freed_when_nothing_is_left(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = hold(rig, 1, LC_EXCLUSIVE, 1, "#2-1");

	taker->entry.pending++; /* an answer is outstanding */
	takers_leave(rig, taker);
	takers_answer_error(rig, ENSEMBLE_OK);
	assert_int_equal(taker->entry.state, ENTRY_ABSENT);
	assert_int_equal(rig->entries.by_id.count, 1);
	assert_true(rig->quota.entry_bytes > 0);
	taker->entry.pending--;
	taker_free_if_done(taker);
	assert_int_equal(rig->entries.by_id.count, 0);
	assert_int_equal(rig->quota.entry_bytes, 0);
}

/* It leaves before it is told its result. */
static void freed_before_it_is_told(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_take(rig, 1, LC_EXCLUSIVE, 0);

	taker_fail(taker, -EAGAIN);
	assert_ptr_equal(rig->takers.due, taker);
	takers_disown(taker);
	taker_leave(taker);
	assert_null(rig->takers.due);
	assert_int_equal(rig->entries.by_id.count, 0);
	takers_turn(rig);
	rig_expect_told(rig, "");
}

/* ---- its create is refused ---- */

static void create_is_refused(void **state)
{
	static const struct {
		enum ensemble_result why;
		const char *told;
	} rows[] = {
		{ENSEMBLE_NONODE, "1 taken ENOENT"},     {ENSEMBLE_NOCHILDREN, "1 taken ENOENT"},
		{ENSEMBLE_NOAUTH, "1 taken EACCES"},     {ENSEMBLE_REFUSED, "1 taken ENOLCK"},
		{ENSEMBLE_BADVERSION, "1 taken ENOLCK"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct rig *rig = takers_begin();

		takers_take(rig, 1, LC_EXCLUSIVE, LC_FOREVER);
		takers_turn(rig);
		takers_answer_watches(rig);
		takers_answer_error(rig, rows[i].why);
		rig_expect_told(rig, rows[i].told);
		takers_end(rig);
	}
}

/* The taker was told another error before. */
static void taker_has_failed_already(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = takers_take(rig, 1, LC_EXCLUSIVE, LC_FOREVER);

	takers_turn(rig);
	taker_fail(taker, -ETIMEDOUT);
	takers_answer_watches(rig);
	takers_answer_error(rig, ENSEMBLE_NOAUTH);
	rig_expect_told(rig, "1 taken ETIMEDOUT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TAKERS_TEST(entry_comes_and_goes),
		TAKERS_TEST(shared_holder),
		TAKERS_TEST(holder_and_waiter),
		TAKERS_TEST(without_contact),
		TAKERS_TEST(leaves_before_it_is_there),
		TAKERS_TEST(delete_is_refused),

		TAKERS_TEST(held_back),
		TAKERS_TEST(fails),
		TAKERS_TEST(loses_what_was_not_told),
		cmocka_unit_test(loses_its_lock),
		TAKERS_TEST(waiters_behind_a_lost_lock),
		TAKERS_TEST(nobody_behind_a_lost_lock),
		TAKERS_TEST(replaces),
		TAKERS_TEST(misses_its_entry),
		TAKERS_TEST(limits),
		TAKERS_TEST(tries_later),
		TAKERS_TEST(bars),
		TAKERS_TEST(created_behind_a_holder),
		TAKERS_TEST(order_of_creates),
		TAKERS_TEST(saves),
		TAKERS_TEST(saves_those_that_wait),
		TAKERS_TEST(freed_when_nothing_is_left),
		TAKERS_TEST(freed_before_it_is_told),
		cmocka_unit_test(create_is_refused),
		TAKERS_TEST(taker_has_failed_already),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
