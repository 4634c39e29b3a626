/* SPDX-License-Identifier: MIT
 *
 * How much of a session takers and watches may use: all together, and each user.
 */
#include "rig.h"

#define HALF LC_USER_BYTES_MAX

static int set_up(void **state)
{
	*state = rig_begin();
	return 0;
}

static int tear_down(void **state)
{
	rig_finish(*state);
	return 0;
}

static void half_for_each_user(void **state)
{
	struct rig *rig = *state;
	struct lc *lc = &rig->lc;
	struct charge first, second;

	assert_true(quota_has_room(lc, 5, LC_ENTRY_BYTES_MAX - LC_ROOT_BYTES)); /* the user has no
	                                                                           entries yet */
	quota_charge_entry(lc, &first, 5, HALF - 10);
	assert_true(quota_has_room(lc, 5, 10));
	assert_false(quota_has_room(lc, 5, 11));
	rig_expect_reported(rig, "requests of uid 5 are refused: this user has too many");
	assert_true(quota_has_room(lc, 6, 11));
	quota_charge_entry(lc, &second, 5, 10);
	assert_false(quota_has_room(lc, 5, 1));
	quota_return_entry(lc, &first);
	assert_true(quota_has_room(lc, 5, HALF - 10));
	assert_false(quota_has_room(lc, 5, HALF - 9));
	quota_return_entry(lc, &second);
	assert_int_equal(rig->quota.entry_bytes, 0);
	assert_null(rig->quota.users);
}

/* They have one share; also of what was charged before the range went. */
static void uids_of_one_user(void **state)
{
	static const struct per_user_range range = {100000, 165535, 5};
	struct rig *rig = *state;
	struct lc *lc = &rig->lc;
	struct charge entry, watches = {0};

	per_user_ranges(&range, 1);
	quota_charge_entry(lc, &entry, 100001, HALF - 10);
	quota_charge_watches(lc, &watches, 100002);
	assert_true(quota_has_room(lc, 100003, 10));
	assert_false(quota_has_room(lc, 100003, 11));
	assert_false(quota_has_room(lc, 5, 11));
	assert_true(quota_has_room(lc, 99999, 11));
	per_user_ranges(NULL, 0);
	assert_true(quota_has_room(lc, 100003, 11));
	quota_return_entry(lc, &entry);
	quota_return_watches(lc, &watches);
	assert_int_equal(rig->quota.entry_bytes, 0);
	assert_null(rig->quota.users);
}

static void all_for_root(void **state)
{
	struct rig *rig = *state;
	struct charge charge;

	quota_charge_entry(&rig->lc, &charge, 0, LC_ENTRY_BYTES_MAX - 10);
	assert_true(quota_has_room(&rig->lc, 0, 10));
	assert_false(quota_has_room(&rig->lc, 0, 11));
	assert_false(quota_is_full(&rig->lc, 0, 10));
	assert_true(quota_is_full(&rig->lc, 0, 11));
	quota_return_entry(&rig->lc, &charge);
}

/* The others' entries do not use it up, nor do root's own count against them. */
static void a_part_for_root(void **state)
{
	struct rig *rig = *state;
	struct lc *lc = &rig->lc;
	struct charge root, other;

	quota_charge_entry(lc, &root, 0, LC_ROOT_BYTES);
	quota_charge_entry(lc, &other, 5, HALF);
	assert_true(quota_has_room(lc, 6, HALF - LC_ROOT_BYTES));
	assert_false(quota_has_room(lc, 6, HALF - LC_ROOT_BYTES + 1));
	rig_expect_reported(rig, "requests of uid 6 are refused: all users together have");
	quota_return_entry(lc, &root);
	assert_false(quota_has_room(lc, 6, HALF - LC_ROOT_BYTES + 1));
	assert_true(quota_has_room(lc, 0, HALF));
	quota_return_entry(lc, &other);
}

/* Watched paths use the same room, and have a limit of their own. */
static void watches(void **state)
{
	struct rig *rig = *state;
	struct lc *lc = &rig->lc;
	struct charge lock = {0}, entry;

	quota_set_watched(lc, &lock, LC_WATCH_BYTES_MAX);
	assert_false(quota_is_full(lc, 0, 1));
	quota_set_watched(lc, &lock, LC_WATCH_BYTES_MAX + 1);
	assert_true(quota_is_full(lc, 0, 1));
	quota_set_watched(lc, &lock, 100);
	quota_charge_entry(lc, &entry, 0, LC_ENTRY_BYTES_MAX - 200);
	assert_false(quota_is_full(lc, 0, 100));
	assert_true(quota_is_full(lc, 0, 101));
	quota_set_watched(lc, &lock, 0);
	assert_false(quota_is_full(lc, 0, 200));
	quota_return_entry(lc, &entry);
}

/* A lock counts for the user who took it first, while it has takers. */
static void watches_of_a_user(void **state)
{
	struct rig *rig = *state;
	struct lc *lc = &rig->lc;
	struct charge one = {0}, two = {0}, entry;

	quota_set_watched(lc, &one, LC_WATCH_BYTES_MAX / 2);
	quota_charge_watches(lc, &one, 5);
	quota_charge_entry(lc, &entry, 5, 1);
	assert_true(quota_has_room(lc, 5, 1));
	quota_set_watched(lc, &two, 1);
	quota_charge_watches(lc, &two, 5);
	assert_false(quota_has_room(lc, 5, 1));
	assert_true(quota_has_room(lc, 6, 1));
	assert_true(quota_has_room(lc, 0, 1));
	quota_return_watches(lc, &two);
	quota_return_watches(lc, &two); /* it is not charged any more */
	assert_true(quota_has_room(lc, 5, 1));
	quota_return_entry(lc, &entry);
	assert_non_null(rig->quota.users);
	quota_return_watches(lc, &one);
	assert_null(rig->quota.users);
	quota_set_watched(lc, &one, 0);
	quota_set_watched(lc, &two, 0);
}

/* A refused user may ask again at once, so not every refusal is reported. */
static void reported_now_and_then(void **state)
{
	struct rig *rig = *state;
	struct charge charge;

	quota_charge_entry(&rig->lc, &charge, 5, HALF);
	assert_false(quota_has_room(&rig->lc, 5, 1));
	rig_expect_reported(rig, "with entries of 520000 bytes");
	assert_false(quota_has_room(&rig->lc, 5, 1));
	assert_string_equal(rig->reported, "");
	rig->now_us += 10 * SECOND;
	assert_false(quota_has_room(&rig->lc, 5, 1));
	rig_expect_reported(rig, "are refused");
	quota_return_entry(&rig->lc, &charge);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(half_for_each_user, set_up, tear_down),
		cmocka_unit_test_setup_teardown(uids_of_one_user, set_up, tear_down),
		cmocka_unit_test_setup_teardown(all_for_root, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_part_for_root, set_up, tear_down),
		cmocka_unit_test_setup_teardown(watches, set_up, tear_down),
		cmocka_unit_test_setup_teardown(watches_of_a_user, set_up, tear_down),
		cmocka_unit_test_setup_teardown(reported_now_and_then, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
