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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(one_for_each_user)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
