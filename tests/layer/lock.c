/* SPDX-License-Identifier: MIT
 *
 * A lock as this mount keeps it: how long, what it costs, and when it is listed again.
 */
#include "rig.h"

#include <stdio.h>
#include <string.h>

static int set_up(void **state)
{
	*state = rig_begin_ready();
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	rig_end_session(rig, false);
	assert_null(rig->locks.by_path);
	rig_finish(rig);
	return 0;
}

static struct lock *get(struct rig *rig, const char *name)
{
	struct lock *lock;

	assert_int_equal(lock_get(&rig->lc, name, 5, &lock), 0);
	return lock;
}

static bool is_known(struct rig *rig, const char *path)
{
	return lock_find(&rig->lc, path, strlen(path));
}

static void watched(void *ctx, const struct ensemble_answer *answer)
{
	struct lock *lock = ctx;

	watch_answered(lock->lc, &lock->node.watch, answer->result == ENSEMBLE_OK);
}

static void watch(struct rig *rig, struct lock *lock)
{
	watch_ask(&rig->lc, &lock->node.watch, lock->path, watched, lock);
	rig_answer_data(rig, 0, "");
	rig_forget(rig);
}

static void found_by_path(void **state)
{
	struct rig *rig = *state;
	struct lock *lock = get(rig, "team/a"), *root = get(rig, "");

	assert_string_equal(lock->path, "/locks/team/a");
	assert_string_equal(root->path, "/locks");
	assert_ptr_equal(get(rig, "team/a"), lock);
	assert_ptr_equal(lock_find(&rig->lc, "/locks/team/a/entry", 13), lock);
	assert_false(is_known(rig, "/locks/team"));
	lock_unuse(lock);
	assert_true(is_known(rig, "/locks/team/a"));
	lock_unuse(lock);
	assert_false(is_known(rig, "/locks/team/a"));
	lock_unuse(root);
}

/* The paths of a lock are charged to the user who took it first, until nobody uses it. */
static void charged(void **state)
{
	struct rig *rig = *state;
	struct lock *lock = get(rig, "a");
	/* Its own path and those of three entries. */
	size_t weight = 4 * (strlen("/locks/a") + 4) + 3 * (1 + NAME_PREFIX_MAX + 10), idle;

	assert_int_equal(rig->quota.watch_bytes, weight);
	assert_non_null(rig->quota.users);
	watch(rig, lock);
	lock_unuse(lock); /* idle, and its own node is watched still */
	idle = rig->quota.watch_bytes;
	assert_int_equal(idle, strlen("/locks/a"));
	assert_null(rig->quota.users);
	assert_ptr_equal(get(rig, "a"), lock);
	assert_int_equal(rig->quota.watch_bytes, weight);
	assert_non_null(rig->quota.users);
	lock_unuse(lock);
	locks_forget_idle(&rig->lc);
	rig_expect_sent(rig, "unwatch /locks/a");
	rig_answer_error(rig, ENSEMBLE_OK);
	assert_int_equal(rig->quota.watch_bytes, 0);
}

/* A lock that was watched, or written to with success, is kept: this saves requests. */
static void kept_for_a_while(void **state)
{
	struct rig *rig = *state;
	struct lock *lock = get(rig, "a");

	lock->batch.last_write_ok = true;
	lock->lists.later = true;
	lock_recheck(lock);
	lock_unuse(lock);
	assert_true(is_known(rig, "/locks/a"));
	assert_int_equal(rig->quota.watch_bytes, 0);
	assert_false(lock->lists.recheck.armed);
	assert_false(lock->lists.later);
	lock_free_if_unused(lock);
	assert_int_equal(rig->locks.idle_count, 1);
	lock->batch.last_write_ok = false; /* as if its watch had fired */
	lock_free_if_unused(lock);
	assert_false(is_known(rig, "/locks/a"));
	assert_int_equal(rig->locks.idle_count, 0);
}

/* A lock in use is kept, even if nothing is known of it. */
static void not_freed_in_use(void **state)
{
	struct rig *rig = *state;
	struct lock *lock = get(rig, "a");

	lock_free_if_unused(lock);
	assert_true(is_known(rig, "/locks/a"));
	assert_int_equal(rig->locks.idle_count, 0);
	lock_unuse(lock);
}

static void so_many_idle_ones(void **state)
{
	struct rig *rig = *state;
	char name[16];

	for (int i = 0; i < 257; i++) {
		struct lock *lock;

		snprintf(name, sizeof(name), "%d", i);
		lock = get(rig, name);
		lock->batch.last_write_ok = true;
		lock_unuse(lock);
		assert_true(is_known(rig, "/locks/0") == (i < 256));
	}
	assert_true(is_known(rig, "/locks/1"));
	assert_int_equal(rig->locks.idle_count, 256);
	locks_forget_idle(&rig->lc);
	assert_int_equal(rig->locks.idle_count, 0);
}

/* ---- listings ---- */

static void listed_in_order(void **state)
{
	struct rig *rig = *state;
	struct lock *a = get(rig, "a"), *b = get(rig, "b");

	lock_want_list(b);
	lock_want_list(a);
	lock_want_list(b);
	assert_ptr_equal(rig->locks.wanted, b);
	lock_unwant_list(b);
	lock_unwant_list(b);
	assert_ptr_equal(rig->locks.wanted, a);
	lock_touch(a);
	lock_touch(b);
	lock_touch(a);
	assert_ptr_equal(rig->locks.touched, a);
	lock_untouch(a);
	lock_untouch(a);
	assert_ptr_equal(rig->locks.touched, b);
	lock_touch(a);
	lock_unuse(a); /* the lock leaves both lists */
	assert_null(rig->locks.wanted);
	assert_ptr_equal(rig->locks.touched, b);
	assert_null(b->touched_next);
	lock_unuse(b);
	assert_null(rig->locks.touched);
}

static void listed_again(void **state)
{
	struct rig *rig = *state;
	struct lock *lock = get(rig, "a");

	timer_clear(&rig->lc.timers, &rig->session.beat.timer);
	timer_clear(&rig->lc.timers, &rig->session.limit);
	lock_recheck(lock);
	rig_run(rig, 30 * SECOND);
	lock_recheck(lock); /* the time counts from the first call */
	rig_run(rig, 30 * SECOND - 1);
	assert_false(lock->lists.wanted);
	rig_run(rig, 1);
	assert_true(lock->lists.wanted);
	lock_unwant_list(lock);
	lock_recheck(lock);
	lock_list_later(lock); /* sooner */
	rig_run(rig, SECOND - 1);
	assert_false(lock->lists.wanted);
	rig_run(rig, 1);
	assert_true(lock->lists.wanted);
	lock_recheck(lock);
	lock_unuse(lock);
}

#define LOCK_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOCK_TEST(found_by_path),     LOCK_TEST(charged),
		LOCK_TEST(kept_for_a_while),  LOCK_TEST(not_freed_in_use),
		LOCK_TEST(so_many_idle_ones), LOCK_TEST(listed_in_order),
		LOCK_TEST(listed_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
