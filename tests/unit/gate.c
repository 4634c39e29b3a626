/* SPDX-License-Identifier: MIT
 *
 * At most so many at once, so many of one user, and users take turns.
 */
#include "pure/gate.h"
#include "unit.h"

#define MANY 100
#define ALL 16
#define OF_ROOT 12
#define OF_USER 4
#define OF_OTHERS (ALL - ALL / GATE_ROOT_PART)

static const struct gate_limits limits = {.all = ALL, .of_root = OF_ROOT, .of_user = OF_USER};

static struct gate_item *next(struct gate *gate)
{
	return gate_next(gate, &limits);
}

static void join(struct gate *gate, struct gate_item *item, uid_t uid)
{
	*item = (struct gate_item){0};
	assert_true(gate_join(gate, uid, item));
}

static void leave_all(struct gate *gate, struct gate_item *array, int count)
{
	for (int i = 0; i < count; i++)
		gate_leave(gate, &array[i]);
}

static void assert_empty(const struct gate *gate)
{
	assert_null(gate->users);
	assert_null(gate->lines);
	assert_int_equal(gate->going, 0);
}

static void a_user_has_a_share(void **state)
{
	struct gate gate = {0};
	struct gate_item first[MANY], second;

	(void)state;
	for (int i = 0; i < MANY; i++)
		join(&gate, &first[i], 1);
	for (int i = 0; i < OF_USER; i++)
		assert_ptr_equal(next(&gate), &first[i]);
	assert_null(next(&gate));
	join(&gate, &second, 2);
	assert_ptr_equal(next(&gate), &second);
	assert_null(next(&gate));
	gate_leave(&gate, &second);
	assert_null(next(&gate));
	gate_leave(&gate, &first[0]);
	gate_leave(&gate, &first[OF_USER]); /* it waits no more */
	assert_ptr_equal(next(&gate), &first[OF_USER + 1]);
	assert_null(next(&gate));
	leave_all(&gate, first, MANY);
	gate_leave(&gate, &first[0]); /* nothing: it is out */
	assert_empty(&gate);
}

static void users_take_turns(void **state)
{
	enum { USERS = OF_OTHERS, FULL = OF_OTHERS / OF_USER };
	struct gate gate = {0};
	struct gate_item of[USERS][MANY];

	(void)state;
	for (int user = 0; user < USERS; user++)
		for (int i = 0; i < MANY; i++)
			join(&gate, &of[user][i], (uid_t)user + 1);
	for (int user = 0; user < USERS; user++)
		assert_ptr_equal(next(&gate), &of[user][0]);
	assert_int_equal(gate.going, OF_OTHERS);
	assert_null(next(&gate));
	for (int i = 0; i < OF_USER; i++)
		gate_leave(&gate, &of[FULL + i][0]);
	for (int i = 0; i < OF_USER; i++)
		assert_ptr_equal(next(&gate), &of[i][1]);
	assert_null(next(&gate));
	leave_all(&gate, of[0], USERS * MANY);
	assert_empty(&gate);
}

static void root_has_a_share_of_its_own(void **state)
{
	struct gate gate = {0};
	struct gate_item of[MANY];

	(void)state;
	for (int i = 0; i < MANY; i++)
		join(&gate, &of[i], 0);
	for (int i = 0; i < OF_ROOT; i++)
		assert_ptr_equal(next(&gate), &of[i]);
	assert_null(next(&gate));
	leave_all(&gate, of, MANY);
	assert_empty(&gate);
}

static void a_part_is_for_root_alone(void **state)
{
	struct gate gate = {0};
	struct gate_item others[MANY], roots[MANY];

	(void)state;
	for (int i = 0; i < MANY; i++)
		join(&gate, &others[i], (uid_t)(i + 1));
	for (int i = 0; i < OF_OTHERS; i++)
		assert_ptr_equal(next(&gate), &others[i]);
	assert_null(next(&gate));
	for (int i = 0; i < MANY; i++)
		join(&gate, &roots[i], 0);
	for (int i = 0; i < ALL - OF_OTHERS; i++)
		assert_ptr_equal(next(&gate), &roots[i]);
	assert_null(next(&gate));
	leave_all(&gate, others, MANY);
	leave_all(&gate, roots, MANY);
	assert_empty(&gate);
}

static void root_takes_no_share_of_others(void **state)
{
	struct gate gate = {0};
	struct gate_item others[MANY], root;

	(void)state;
	join(&gate, &root, 0);
	assert_ptr_equal(next(&gate), &root);
	for (int i = 0; i < MANY; i++)
		join(&gate, &others[i], (uid_t)(i + 1));
	for (int i = 0; i < OF_OTHERS; i++)
		assert_ptr_equal(next(&gate), &others[i]);
	assert_null(next(&gate));
	leave_all(&gate, others, MANY);
	gate_leave(&gate, &root);
	assert_empty(&gate);
}

/* However many others wait. */
static void root_has_every_second_turn(void **state)
{
	struct gate gate = {0};
	struct gate_item others[MANY], roots[3];

	(void)state;
	for (int i = 0; i < MANY; i++)
		join(&gate, &others[i], (uid_t)(i + 1));
	for (int i = 0; i < 3; i++)
		join(&gate, &roots[i], 0);
	for (int i = 0; i < 3; i++) {
		assert_ptr_equal(gate_next(&gate, &gate_one), &roots[i]);
		gate_leave(&gate, &roots[i]);
		assert_ptr_equal(gate_next(&gate, &gate_one), &others[i]);
		gate_leave(&gate, &others[i]);
	}
	assert_ptr_equal(gate_next(&gate, &gate_one), &others[3]);
	leave_all(&gate, others, MANY);
	assert_empty(&gate);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_has_a_share),
		cmocka_unit_test(users_take_turns),
		cmocka_unit_test(root_has_a_share_of_its_own),
		cmocka_unit_test(a_part_is_for_root_alone),
		cmocka_unit_test(root_takes_no_share_of_others),
		cmocka_unit_test(root_has_every_second_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
