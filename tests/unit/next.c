/* SPDX-License-Identifier: MIT
 *
 * Who holds a lock next, and what is asked for that: the sentences K1 to K7 of pure/next.h, each
 * with what would go wrong without it.
 */
#include "pure/next.h"

#include "unit.h"

#include <errno.h>

struct rig {
	struct next_queue queue;
	struct next_entry entries[12];
	struct next_taker takers[12];
};

static struct rig rig_with_slots(unsigned slots)
{
	return (struct rig){.queue = {.lock_watched = true,
	                              .slots = slots,
	                              .slots_max = 16,
	                              .unproved = NEXT_NONE}};
}

/* Another client's entry at the end of the queue: its place. */
static int add_other(struct rig *rig, bool shared)
{
	int i = rig->queue.entry_count++;

	rig->entries[i] = (struct next_entry){.number = 10 * i,
	                                      .taker = NEXT_NONE,
	                                      .shared = shared,
	                                      .apart = shared,
	                                      .shown = true};
	return i;
}

/* A taker of ours without an entry in the known queue. */
static struct next_taker *add_taker(struct rig *rig, enum next_state state, bool shared)
{
	struct next_taker *taker = &rig->takers[rig->queue.taker_count++];

	*taker = (struct next_taker){.state = state,
	                             .number = 10 * rig->queue.entry_count + 5,
	                             .replaces = NEXT_NONE,
	                             .shared = shared};
	return taker;
}

/* One with an entry at the end of the queue. */
static struct next_taker *add_own(struct rig *rig, enum next_state state, bool shared)
{
	int i = add_other(rig, shared);
	struct next_taker *taker = add_taker(rig, state, shared);

	taker->number = rig->entries[i].number;
	rig->entries[i].taker = (int)(taker - rig->takers);
	return taker;
}

static void next(struct rig *rig)
{
	rig->queue.entries = rig->entries;
	rig->queue.takers = rig->takers;
	rig->queue.list = NEXT_LIST_NONE;
	rig->queue.watch_children = rig->queue.watch_lock = false;
	for (int i = 0; i < rig->queue.entry_count; i++)
		rig->entries[i].watch = false;
	for (int t = 0; t < rig->queue.taker_count; t++) {
		rig->takers[t].watch = false;
		rig->takers[t].step = NEXT_STAY;
	}
	queue_next(&rig->queue);
}

/* ---- K1 ---- */

static void unplaced_waiter_is_listed(void **state)
{
	struct rig rig = rig_with_slots(1);
	struct next_taker *waiter = add_taker(&rig, NEXT_WAITING, false);

	(void)state;
	waiter->seen = true;
	next(&rig);
	assert_int_equal(waiter->step, NEXT_STAY);
	assert_int_equal(rig.queue.list, NEXT_LIST_ANY);
}

/* When its turn comes: the one before it has to go first, and is known. */
static void unplaced_waiter_behind_another_one_is_not(void **state)
{
	struct rig rig = rig_with_slots(1);
	struct next_taker *first;

	(void)state;
	add_other(&rig, false);
	first = add_own(&rig, NEXT_WAITING, false);
	add_taker(&rig, NEXT_WAITING, false);
	next(&rig);
	assert_int_equal(rig.queue.list, NEXT_LIST_NONE);
	assert_true(first->watch);

	/* Behind a holder of ours it is the first that waits. */
	first->state = NEXT_HOLDING;
	next(&rig);
	assert_int_equal(rig.queue.list, NEXT_LIST_ANY);
}

/* Nobody may pass it: what stands before it is not known, but it stands before the others. */
static void unplaced_waiter_is_not_passed(void **state)
{
	struct rig rig = rig_with_slots(1);
	struct next_taker *late;

	(void)state;
	add_taker(&rig, NEXT_WAITING, false)->number = -1;
	late = add_own(&rig, NEXT_WAITING, false);
	late->seen = true;
	next(&rig);
	assert_int_equal(late->step, NEXT_STAY);
	assert_int_equal(rig.queue.list, NEXT_LIST_ANY);
}

/* Its outcome is looked for; that hinders nobody else. */
static void unknown_create_is_listed(void **state)
{
	struct rig rig = rig_with_slots(1);
	struct next_taker *waiter = add_own(&rig, NEXT_WAITING, false);

	(void)state;
	waiter->seen = true;
	add_taker(&rig, NEXT_UNKNOWN, false);
	next(&rig);
	assert_int_equal(rig.queue.list, NEXT_LIST_ANY);
	assert_int_equal(waiter->step, NEXT_GRANT);
}

/* ---- K2 ---- */

static void last_two_others_are_watched(void **state)
{
	struct rig rig = rig_with_slots(1);
	struct next_taker *waiter, *behind;

	(void)state;
	for (int i = 0; i < 3; i++)
		add_other(&rig, i == 1);
	waiter = add_own(&rig, NEXT_WAITING, false);
	add_other(&rig, false);
	behind = add_own(&rig, NEXT_WAITING, false);
	waiter->seen = behind->seen = true;
	next(&rig);
	for (int i = 0; i < 6; i++)
		assert_int_equal(rig.entries[i].watch, i == 1 || i == 2);
	assert_true(waiter->watch);
	assert_false(behind->watch);
	assert_int_equal(waiter->step, NEXT_STAY);
	assert_int_equal(rig.queue.list, NEXT_LIST_NONE);
	assert_false(rig.queue.watch_lock);
}

/* A doubtful one may be gone: the listing tells that of all of them at once. */
static void doubtful_ones_are_listed(void **state)
{
	struct rig rig = rig_with_slots(1);

	(void)state;
	for (int i = 0; i < 3; i++)
		add_other(&rig, false);
	add_own(&rig, NEXT_WAITING, false)->seen = true;
	rig.entries[0].doubtful = rig.entries[1].doubtful = true;
	next(&rig);
	for (int i = 0; i < 4; i++)
		assert_int_equal(rig.entries[i].watch, i == 2);
	assert_int_equal(rig.queue.list, NEXT_LIST_ANY);
	rig.entries[0].doubtful = rig.entries[1].doubtful = false;
	next(&rig);
	assert_true(rig.entries[1].watch);
	assert_int_equal(rig.queue.list, NEXT_LIST_NONE);
}

/* The exclusive ones bar a shared waiter; those that the same ones bar are let in together. */
static void shared_waiters_are_watched_together(void **state)
{
	struct rig rig = rig_with_slots(1);
	struct next_taker *first, *second, *third, *last;

	(void)state;
	add_other(&rig, false);
	add_other(&rig, true);
	first = add_own(&rig, NEXT_WAITING, true);
	add_other(&rig, true);
	second = add_own(&rig, NEXT_WAITING, true);
	third = add_own(&rig, NEXT_WAITING, false);
	last = add_own(&rig, NEXT_WAITING, true);
	next(&rig);
	assert_true(rig.entries[0].watch);
	assert_false(rig.entries[1].watch);
	assert_true(first->watch);
	assert_true(second->watch);
	assert_false(third->watch);
	assert_false(last->watch);
}

static void in_several_slots_the_names_are_watched(void **state)
{
	struct rig rig = rig_with_slots(2);
	struct next_taker *waiter;

	(void)state;
	add_other(&rig, false);
	add_other(&rig, false);
	waiter = add_own(&rig, NEXT_WAITING, false);
	waiter->seen = true;
	next(&rig);
	assert_int_equal(waiter->step, NEXT_STAY);
	assert_int_equal(rig.queue.list, NEXT_LIST_ANY);
	assert_true(rig.queue.watch_children);
	assert_false(rig.entries[1].watch);

	rig.queue.children_watched = true;
	next(&rig);
	assert_int_equal(rig.queue.list, NEXT_LIST_NONE);

	/* An entry that fills no slot keeps all behind it out. */
	rig.queue.slots = 3;
	rig.entries[0].apart = true;
	next(&rig);
	assert_int_equal(waiter->step, NEXT_STAY);
	rig.entries[0].apart = false;
	next(&rig);
	assert_int_equal(waiter->step, NEXT_GRANT);
}

static void slots_are_asked_where_they_would_help(void **state)
{
	struct rig rig = rig_with_slots(2);
	struct next_taker *waiter;

	(void)state;
	add_other(&rig, false);
	waiter = add_own(&rig, NEXT_WAITING, false);
	waiter->seen = true;
	rig.queue.lock_watched = false;
	next(&rig);
	assert_int_equal(waiter->step, NEXT_STAY);
	assert_true(rig.queue.watch_lock);
	rig.entries[0].apart = true;
	next(&rig);
	assert_false(rig.queue.watch_lock);
}

static void own_entries_in_the_way_will_go(void **state)
{
	struct rig rig = rig_with_slots(1);
	struct next_taker *holder, *waiter;

	(void)state;
	holder = add_own(&rig, NEXT_HOLDING, false);
	waiter = add_own(&rig, NEXT_WAITING, false);
	waiter->seen = true;
	next(&rig);
	assert_int_equal(waiter->step, NEXT_STAY);
	assert_false(holder->watch);
	assert_false(waiter->watch);

	holder->state = NEXT_LOST; /* its entry may be deleted by an evictor, or late */
	next(&rig);
	assert_int_equal(waiter->step, NEXT_STAY);
	assert_true(holder->watch);
	assert_false(waiter->watch);

	holder->state =
		NEXT_HOLDING; /* when the waiter's entry is deleted, those behind it are free */
	holder->shared = rig.entries[0].shared = true;
	next(&rig);
	assert_true(waiter->watch);
}

/* ---- K3 ---- */

static void seen_waiter_holds(void **state)
{
	struct rig rig = rig_with_slots(1);
	struct next_taker *first = add_own(&rig, NEXT_WAITING, true);
	struct next_taker *second = add_own(&rig, NEXT_WAITING, true);
	struct next_taker *third = add_own(&rig, NEXT_WAITING, false);

	(void)state;
	second->seen = third->seen = true;
	next(&rig);
	assert_int_equal(first->step, NEXT_STAY);
	assert_true(first->watch);
	assert_int_equal(second->step, NEXT_GRANT); /* it does not depend on the first */
	assert_int_equal(third->step, NEXT_STAY);
	first->seen = true;
	next(&rig);
	assert_int_equal(first->step, NEXT_GRANT);
	assert_int_equal(third->step, NEXT_STAY);
}

/* ---- K4 ---- */

static void leaver_guards_the_next(void **state)
{
	struct rig rig = rig_with_slots(1);
	struct next_taker *leaver, *waiter;

	(void)state;
	add_own(&rig, NEXT_LEAVING, false)->sent = true;
	leaver = add_own(&rig, NEXT_LEAVING, false);
	waiter = add_own(&rig, NEXT_WAITING, false);
	next(&rig);
	assert_int_equal(waiter->step, NEXT_GRANT);
	assert_int_equal(rig.queue.unproved, 2);

	waiter->state = NEXT_WAITING;
	leaver->sent = true;
	next(&rig);
	assert_int_equal(waiter->step, NEXT_STAY);
	leaver->sent = false;
	leaver->in_doubt = true;
	next(&rig);
	assert_int_equal(waiter->step, NEXT_STAY);
	leaver->in_doubt = false;
	rig.entries[1].shared = true; /* another client's reader passes it */
	next(&rig);
	assert_int_equal(waiter->step, NEXT_STAY);
	rig.entries[1].shared = false;
	leaver->state = NEXT_HOLDING;
	next(&rig);
	assert_int_equal(waiter->step, NEXT_STAY);
}

static void another_clients_entry_is_no_guard(void **state)
{
	struct rig rig = rig_with_slots(1);
	struct next_taker *waiter;

	(void)state;
	add_own(&rig, NEXT_LEAVING, false);
	add_other(&rig, false);
	waiter = add_own(&rig, NEXT_WAITING, false);
	waiter->seen = true;
	next(&rig);
	assert_int_equal(waiter->step, NEXT_STAY);
	assert_true(rig.entries[1].watch);
}

static void shared_ones_are_guarded_one_at_a_time(void **state)
{
	struct rig rig = rig_with_slots(1);
	struct next_taker *first, *second;

	(void)state;
	add_own(&rig, NEXT_LEAVING, false);
	first = add_own(&rig, NEXT_WAITING, true);
	second = add_own(&rig, NEXT_WAITING, true);
	next(&rig);
	assert_int_equal(first->step, NEXT_GRANT);
	assert_int_equal(second->step, NEXT_STAY);
	assert_int_equal(rig.queue.unproved, 1);
	next(&rig);
	assert_int_equal(second->step, NEXT_STAY);
	rig.queue.unproved = NEXT_NONE;
	next(&rig);
	assert_int_equal(second->step, NEXT_GRANT);
}

/* A slot that will be free is not yet one: there may be fewer before the leaver is gone. */
static void with_slots_all_before_must_leave(void **state)
{
	struct rig rig = rig_with_slots(2);
	struct next_taker *holder, *waiter;

	(void)state;
	holder = add_own(&rig, NEXT_HOLDING, false);
	add_own(&rig, NEXT_LEAVING, false);
	waiter = add_own(&rig, NEXT_WAITING, false);
	waiter->seen = true;
	next(&rig);
	assert_int_equal(waiter->step, NEXT_STAY);
	holder->state = NEXT_LEAVING;
	next(&rig);
	assert_int_equal(waiter->step, NEXT_GRANT);
	assert_int_equal(rig.queue.unproved, 2);
}

static void leavers_before_an_unproved_holder(void **state)
{
	(void)state;
	assert_int_equal(next_delete(5, -1, false), NEXT_DELETE_SINGLY);
	assert_int_equal(next_delete(5, 7, false), NEXT_DELETE_CHECKED);
	assert_int_equal(next_delete(5, 7, true), NEXT_DELETE_NOT);
	assert_int_equal(next_delete(9, 7, false), NEXT_DELETE_SINGLY);
	assert_int_equal(next_delete(5, -1, true), NEXT_DELETE_SINGLY);
}

/* ---- K5 ---- */

static void try_is_refused_by_what_was_shown_since(void **state)
{
	struct rig rig = rig_with_slots(1);
	struct next_taker *try;

	(void)state;
	add_other(&rig, false);
	try = add_taker(&rig, NEXT_PROBING, false);
	try->immediate = true;
	next(&rig);
	assert_int_equal(try->step, NEXT_STAY);
	assert_int_equal(rig.queue.list, NEXT_LIST_NEW);

	try->asked_since = true;
	next(&rig);
	assert_int_equal(rig.queue.list, NEXT_LIST_ANY);

	try->shown_since = true;
	rig.entries[0].shown = false;
	next(&rig);
	assert_int_equal(try->step, NEXT_STAY);
	assert_int_equal(rig.queue.list, NEXT_LIST_ANY);

	rig.entries[0].shown = true;
	next(&rig);
	assert_int_equal(try->step, NEXT_REFUSE);
	assert_int_equal(try->error, -EAGAIN);
}

static void try_that_nobody_bars_makes_an_entry(void **state)
{
	struct rig rig = rig_with_slots(1);
	struct next_taker *try;

	(void)state;
	add_own(&rig, NEXT_LEAVING, false);
	try = add_taker(&rig, NEXT_PROBING, false);
	try->immediate = try->shown_since = true;
	next(&rig);
	assert_int_equal(try->step, NEXT_CREATE);
}

static void try_with_an_entry_is_judged_too(void **state)
{
	struct rig rig = rig_with_slots(1);
	struct next_taker *first, *try;

	(void)state;
	add_other(&rig, false);
	first = add_own(&rig, NEXT_WAITING, false);
	try = add_own(&rig, NEXT_WAITING, false);
	try->immediate = try->shown_since = true;
	next(&rig);
	assert_int_equal(try->step, NEXT_REFUSE);
	assert_int_equal(try->state, NEXT_LEAVING);
	assert_int_equal(first->step, NEXT_STAY);
}

static void try_asks_for_slots_that_would_let_it_in(void **state)
{
	struct rig rig = rig_with_slots(1);
	struct next_taker *try;

	(void)state;
	add_other(&rig, false);
	try = add_taker(&rig, NEXT_PROBING, false);
	try->immediate = try->shown_since = true;
	rig.queue.lock_watched = false;
	next(&rig);
	assert_int_equal(try->step, NEXT_STAY);
	assert_true(rig.queue.watch_lock);
}

static void crowd_is_counted(void **state)
{
	struct rig rig = rig_with_slots(1);
	struct next_taker *probes;

	(void)state;
	add_other(&rig, false); /* it may hold, so it does not wait */
	add_other(&rig, false);
	add_own(&rig, NEXT_WAITING, false)->crowd = 1; /* it has an entry: it waits on */
	probes = add_taker(&rig, NEXT_PROBING, false);
	probes->crowd = 3;
	probes->shown_since = true;
	next(&rig);
	assert_int_equal(rig.queue.takers[0].step, NEXT_STAY);
	assert_int_equal(probes->step, NEXT_CREATE);

	probes->state = NEXT_PROBING;
	probes->crowd = 2;
	rig.queue.entries[1].shown = false; /* with another number of slots */
	next(&rig);
	assert_int_equal(probes->step, NEXT_STAY);
	assert_int_equal(rig.queue.list, NEXT_LIST_ANY);

	rig.queue.entries[1].shown = true;
	next(&rig);
	assert_int_equal(rig.queue.takers[0].step, NEXT_STAY);
	assert_int_equal(probes->step, NEXT_REFUSE);
	assert_int_equal(probes->error, -EAGAIN);
}

/* ---- K6 ---- */

static void upgrade_passes_its_shared_hold(void **state)
{
	struct rig rig = rig_with_slots(1);
	struct next_taker *upgrade;

	(void)state;
	add_own(&rig, NEXT_HOLDING, true);
	upgrade = add_own(&rig, NEXT_WAITING, false);
	upgrade->seen = true;
	upgrade->replaces = 0;
	next(&rig);
	assert_int_equal(upgrade->step, NEXT_GRANT);

	upgrade->state = NEXT_WAITING;
	rig.takers[0].state = NEXT_LOST;
	next(&rig);
	assert_int_equal(upgrade->step, NEXT_REFUSE);
}

static void upgrade_waits_for_readers(void **state)
{
	struct rig rig = rig_with_slots(1);
	struct next_taker *upgrade;

	(void)state;
	add_own(&rig, NEXT_HOLDING, true);
	add_other(&rig, true);
	upgrade = add_own(&rig, NEXT_WAITING, false);
	upgrade->seen = true;
	upgrade->replaces = 0;
	next(&rig);
	assert_int_equal(upgrade->step, NEXT_STAY);
	assert_true(rig.entries[1].watch);
	assert_true(upgrade->watch);
}

static void upgrade_that_is_waited_for_is_refused(void **state)
{
	struct rig rig = rig_with_slots(1);
	struct next_taker *upgrade;

	(void)state;
	add_own(&rig, NEXT_HOLDING, true);
	add_other(&rig, false);
	upgrade = add_own(&rig, NEXT_WAITING, false);
	upgrade->seen = true;
	upgrade->replaces = 0;
	next(&rig);
	assert_int_equal(upgrade->step, NEXT_STAY);
	assert_int_equal(rig.queue.list, NEXT_LIST_NEW);
	upgrade->shown_since = true;
	next(&rig);
	assert_int_equal(upgrade->step, NEXT_REFUSE);
	assert_int_equal(upgrade->error, -EDEADLK);
}

static void upgrade_is_not_guarded(void **state)
{
	struct rig rig = rig_with_slots(1);
	struct next_taker *upgrade;

	(void)state;
	add_own(&rig, NEXT_HOLDING, true);
	add_own(&rig, NEXT_LEAVING, false);
	upgrade = add_own(&rig, NEXT_WAITING, false);
	upgrade->replaces = 0;
	next(&rig);
	assert_int_equal(upgrade->step, NEXT_STAY);
}

/* ---- K7 ---- */

static void kept_entry_ends_beside_another_taker(void **state)
{
	struct rig rig = rig_with_slots(1);
	struct next_taker *kept = add_own(&rig, NEXT_KEPT, false);

	(void)state;
	next(&rig);
	assert_int_equal(kept->step, NEXT_STAY);
	add_taker(&rig, NEXT_CREATING, false);
	next(&rig);
	assert_int_equal(kept->step, NEXT_LEAVE);
	assert_int_equal(kept->state, NEXT_LEAVING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unplaced_waiter_is_listed),
		cmocka_unit_test(unplaced_waiter_behind_another_one_is_not),
		cmocka_unit_test(unplaced_waiter_is_not_passed),
		cmocka_unit_test(unknown_create_is_listed),
		cmocka_unit_test(last_two_others_are_watched),
		cmocka_unit_test(doubtful_ones_are_listed),
		cmocka_unit_test(shared_waiters_are_watched_together),
		cmocka_unit_test(in_several_slots_the_names_are_watched),
		cmocka_unit_test(slots_are_asked_where_they_would_help),
		cmocka_unit_test(own_entries_in_the_way_will_go),
		cmocka_unit_test(seen_waiter_holds),
		cmocka_unit_test(leaver_guards_the_next),
		cmocka_unit_test(another_clients_entry_is_no_guard),
		cmocka_unit_test(shared_ones_are_guarded_one_at_a_time),
		cmocka_unit_test(with_slots_all_before_must_leave),
		cmocka_unit_test(leavers_before_an_unproved_holder),
		cmocka_unit_test(try_is_refused_by_what_was_shown_since),
		cmocka_unit_test(try_that_nobody_bars_makes_an_entry),
		cmocka_unit_test(try_with_an_entry_is_judged_too),
		cmocka_unit_test(try_asks_for_slots_that_would_let_it_in),
		cmocka_unit_test(crowd_is_counted),
		cmocka_unit_test(upgrade_passes_its_shared_hold),
		cmocka_unit_test(upgrade_waits_for_readers),
		cmocka_unit_test(upgrade_that_is_waited_for_is_refused),
		cmocka_unit_test(upgrade_is_not_guarded),
		cmocka_unit_test(kept_entry_ends_beside_another_taker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
