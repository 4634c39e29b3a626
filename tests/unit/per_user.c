/* SPDX-License-Identifier: MIT
 *
 * The table with one element for each user.
 */
#include "pure/per_user.h"

#include "unit.h"

struct usage {
	struct per_user user;
	int used;
};

static void one_for_each_user(void **state)
{
	struct per_user *table = NULL;
	struct usage *usages[100];

	(void)state;
	assert_null(per_user_find(table, 0));
	for (uid_t uid = 0; uid < 100; uid++) {
		usages[uid] = per_user_get(&table, uid, sizeof(struct usage));
		assert_non_null(usages[uid]);
		assert_int_equal(usages[uid]->user.uid, uid);
		assert_int_equal(usages[uid]->used, 0);
		usages[uid]->used = (int)uid;
	}
	for (uid_t uid = 0; uid < 100; uid++) {
		assert_ptr_equal(per_user_get(&table, uid, sizeof(struct usage)), usages[uid]);
		assert_ptr_equal(per_user_find(table, uid), usages[uid]);
		assert_int_equal(usages[uid]->used, uid);
	}
	assert_null(per_user_find(table, 100));
	for (uid_t uid = 0; uid < 100; uid++) {
		per_user_drop(&table, &usages[uid]->user);
		assert_null(per_user_find(table, uid));
		assert_true(uid == 99 || per_user_find(table, 99));
	}
	assert_null(table);
}

static void one_for_a_range(void **state)
{
	static const struct per_user_range ranges[] = {{10, 19, 1}, {20, 20, 20}, {30, 39, 1}};
	static const struct {
		uid_t uid, share;
	} cases[] = {{0, 0},   {1, 1},   {9, 9},   {10, 1}, {15, 1}, {19, 1},
	             {20, 20}, {21, 21}, {29, 29}, {30, 1}, {39, 1}, {40, 40}};
	struct per_user *table = NULL, *before = per_user_get(&table, 15, sizeof(*before)), *user;

	(void)state;
	per_user_ranges(ranges, LENGTH(ranges));
	for (size_t i = 0; i < LENGTH(cases); i++)
		assert_int_equal(per_user_share(cases[i].uid), cases[i].share);
	user = per_user_get(&table, 15, sizeof(*user));
	assert_int_equal(user->uid, 1);
	assert_ptr_equal(per_user_get(&table, 39, sizeof(*user)), user);
	assert_ptr_equal(per_user_get(&table, 1, sizeof(*user)), user);
	assert_ptr_equal(per_user_find(table, 1), user);
	/* What was there before the range is found as it was. */
	assert_ptr_equal(per_user_find(table, 15), before);
	per_user_ranges(NULL, 0);
	assert_ptr_equal(per_user_get(&table, 15, sizeof(*user)), before);
	per_user_drop(&table, before);
	per_user_drop(&table, user);
	assert_null(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_for_each_user),
		cmocka_unit_test(one_for_a_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
