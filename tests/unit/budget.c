/* SPDX-License-Identifier: MIT
 *
 * The memory that each user has; and equal contents, which are kept once for each user.
 */
#include "host/budget.h"
#include "tree/content.h"

#include "unit.h"

#include <errno.h>
#include <string.h>

#define ALICE 1001
#define BOB 1002

static void what_a_user_has(void **state)
{
	struct budget budget = {.what = "things"};
	char *mine = budget_alloc(&budget, ALICE, 1000), *his = budget_alloc(&budget, BOB, 0);

	(void)state;
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(mine[i], 0);
	assert_int_equal(budget.bytes, 1000 + 2 * BUDGET_OBJECT);
	assert_int_equal(budget_add(mine, 24), 0);
	assert_int_equal(budget.bytes, 1024 + 2 * BUDGET_OBJECT);
	budget_free(mine);
	assert_int_equal(budget.bytes, BUDGET_OBJECT);
	budget_free(his);
	budget_free(NULL);
	assert_int_equal(budget.bytes, 0);
	assert_null(budget.users);
}

static void what_a_user_may_have(void **state)
{
	struct budget budget = {.what = "things"};
	void *mine = budget_alloc(&budget, ALICE, BUDGET_USER_BYTES - 2 * BUDGET_OBJECT), *last,
	     *his;

	(void)state;
	assert_non_null(mine);
	last = budget_alloc(&budget, ALICE, 0);
	assert_non_null(last); /* to the last byte */
	errno = 0;
	assert_null(budget_alloc(&budget, ALICE, 0));
	assert_int_equal(errno, ENFILE);
	assert_int_equal(budget_add(last, 1), -ENFILE);
	his = budget_alloc(&budget, BOB, 1000);
	assert_non_null(his); /* Bob has his own share */
	budget_free(last);
	last = budget_alloc(&budget, ALICE, 0);
	assert_non_null(last);
	assert_null(budget_alloc(&budget, BOB, SIZE_MAX - BUDGET_OBJECT));
	budget_free(mine);
	budget_free(last);
	budget_free(his);
	assert_int_equal(budget.bytes, 0);
	assert_null(budget.users);
}

static void what_all_may_have(void **state)
{
	enum { MANY = BUDGET_BYTES / BUDGET_USER_BYTES };
	struct budget budget = {.what = "things"};
	void *roots = budget_alloc(&budget, 0, 3 * BUDGET_USER_BYTES - BUDGET_OBJECT),
	     *users[MANY - 3];

	(void)state;
	assert_non_null(roots);
	for (int i = 0; i < MANY - 3; i++) {
		users[i] = budget_alloc(&budget, (uid_t)(ALICE + i),
		                        BUDGET_USER_BYTES - BUDGET_OBJECT);
		assert_non_null(users[i]);
	}
	assert_null(budget_alloc(&budget, ALICE + MANY, 0));
	assert_int_equal(errno, ENFILE);
	assert_null(budget_alloc(&budget, 0, 0));
	for (int i = 0; i < MANY - 3; i++)
		budget_free(users[i]);
	budget_free(roots);
	assert_int_equal(budget.bytes, 0);
	assert_null(budget.users);
}

static void a_part_is_roots_alone(void **state)
{
	enum { MANY = (BUDGET_BYTES - BUDGET_ROOT_BYTES) / BUDGET_USER_BYTES };
	struct budget budget = {.what = "things"};
	void *users[MANY], *roots, *restored;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		users[i] = budget_alloc(&budget, (uid_t)(ALICE + i),
		                        BUDGET_USER_BYTES - BUDGET_OBJECT);
		assert_non_null(users[i]);
	}
	assert_null(budget_alloc(&budget, ALICE + MANY, 0));
	assert_int_equal(errno, ENFILE);
	roots = budget_alloc(&budget, 0, BUDGET_ROOT_BYTES - BUDGET_OBJECT);
	assert_non_null(roots);
	/* Another limit, or another share, than that of the process before. */
	budget.restores = true;
	restored = budget_alloc(&budget, ALICE, 1000);
	assert_non_null(restored);
	budget_free(restored);
	for (int i = 0; i < MANY; i++)
		budget_free(users[i]);
	budget_free(roots);
	assert_int_equal(budget.bytes, 0);
}

/* They have one share, and each has what is his or hers; also when the range goes in between. */
static void uids_of_one_user(void **state)
{
	static const struct per_user_range range = {100000, 165535, ALICE};
	struct budget budget = {.what = "things"};
	void *mine, *other;

	(void)state;
	per_user_ranges(&range, 1);
	mine = budget_alloc(&budget, 100001, BUDGET_USER_BYTES - 2 * BUDGET_OBJECT);
	other = budget_alloc(&budget, 165535, 0);
	assert_non_null(mine);
	assert_non_null(other);
	assert_int_equal(budget_uid(mine), 100001);
	assert_int_equal(budget_uid(other), 165535);
	assert_null(budget_alloc(&budget, 100002, 0));
	assert_null(budget_alloc(&budget, ALICE, 0));
	per_user_ranges(NULL, 0);
	budget_free(mine);
	budget_free(other);
	assert_int_equal(budget.bytes, 0);
	assert_null(budget.users);
}

static void the_same_is_there_once(void **state)
{
	struct budget budget = {.what = "things"};
	struct contents contents = {.budget = &budget};
	struct node node = {.ino = 7}, other = {.ino = 8};
	char text[] = "v42";
	const struct content *a = content_get(&contents, &node, ALICE, text, 3), *b, *c, *d, *e, *f;

	(void)state;
	assert_ptr_equal(content_get(&contents, &node, ALICE, "v42", 3), a);
	b = content_get(&contents, &node, BOB, "v42", 3);
	c = content_get(&contents, &other, ALICE, "v42", 3);
	d = content_get(&contents, &node, ALICE, "v43", 3);
	e = content_get(&contents, &node, ALICE, "v4", 2);
	f = content_get(&contents, &node, ALICE, NULL, 0);
	assert_true(b != a && c != a && d != a && e != d && f != e);
	/* The contents are as they were. */
	text[0] = 'x';
	assert_int_equal(a->len, 3);
	assert_memory_equal(a->data, "v42", 4);
	assert_memory_equal(d->data, "v43", 4);
	assert_int_equal(f->len, 0);
	/* The latest content is shared, whatever has become of the others. */
	content_drop(d);
	content_drop(a);
	content_drop(a);
	assert_ptr_equal(content_get(&contents, &node, ALICE, "", 0), f);
	content_drop(f);
	content_drop(f);
	content_drop(b);
	content_drop(c);
	content_drop(e);
	content_drop(NULL);
	assert_null(contents.latest);
	assert_int_equal(budget.bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_user_has),   cmocka_unit_test(what_a_user_may_have),
		cmocka_unit_test(what_all_may_have), cmocka_unit_test(a_part_is_roots_alone),
		cmocka_unit_test(uids_of_one_user),  cmocka_unit_test(the_same_is_there_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
