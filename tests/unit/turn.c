/* SPDX-License-Identifier: MIT
 *
 * turn.c - which requests may write now.
 */
#include "request/turn.h"
#include "unit.h"

#define MANY 100
#define NOW 1000

static void ask(struct turns *turns, struct turn *turn, uid_t uid, int64_t now_us)
{
	assert_int_equal(turn_ask(turns, turn, uid, now_us), 0);
}

static void end_all(struct turns *turns, struct turn *array, int count)
{
	for (int i = 0; i < count; i++)
		turn_end(turns, &array[i]);
	assert_null(turns->users);
	assert_null(turns->lines);
	assert_int_equal(turns->going, 0);
}

static void a_user_has_a_share(void **state)
{
	struct turns turns = {0};
	struct turn first[MANY] = {0}, second = {0};

	(void)state;
	for (int i = 0; i < MANY; i++)
		ask(&turns, &first[i], 1, NOW);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(first[i].state, i < TURNS_OF_USER ? TURN_GOES : TURN_WAITS);
	ask(&turns, &second, 2, NOW);
	assert_int_equal(second.state, TURN_GOES);
	assert_null(turns_next(&turns));
	turn_end(&turns, &second);
	assert_null(turns_next(&turns));
	turn_end(&turns, &first[0]);
	assert_int_equal(turns_wait(&turns, NOW), 0);
	assert_ptr_equal(turns_next(&turns), &first[TURNS_OF_USER]);
	assert_null(turns_next(&turns));
	end_all(&turns, first, MANY);
}

static void users_take_turns(void **state)
{
	enum { USERS = TURNS_OF_ALL, FULL = TURNS_OF_ALL / TURNS_OF_USER };
	struct turns turns = {0};
	struct turn of[USERS][MANY] = {0};

	(void)state;
	for (int user = 0; user < USERS; user++)
		for (int i = 0; i < MANY; i++)
			ask(&turns, &of[user][i], (uid_t)user + 1, NOW);
	assert_int_equal(turns.going, TURNS_OF_ALL);
	assert_null(turns_next(&turns));
	/* The first user is in front, once; then come the users who have none yet. */
	for (int i = 0; i < TURNS_OF_USER; i++)
		turn_end(&turns, &of[0][i]);
	assert_ptr_equal(turns_next(&turns), &of[0][TURNS_OF_USER]);
	for (int i = 0; i < TURNS_OF_USER - 1; i++)
		assert_ptr_equal(turns_next(&turns), &of[FULL + i][0]);
	assert_null(turns_next(&turns));
	for (int user = 1; user < USERS; user++)
		for (int i = 0; i < MANY; i++)
			turn_end(&turns, &of[user][i]);
	end_all(&turns, of[0], MANY);
}

static void root_has_the_limit_of_all_only(void **state)
{
	struct turns turns = {0};
	struct turn of[MANY] = {0};

	(void)state;
	for (int i = 0; i < MANY; i++)
		ask(&turns, &of[i], 0, NOW);
	assert_int_equal(turns.going, TURNS_OF_ALL);
	end_all(&turns, of, MANY);
}

static void nothing_waits_for_ever(void **state)
{
	struct turns turns = {0};
	struct turn of[TURNS_OF_USER + 2] = {0};

	(void)state;
	assert_int_equal(turns_wait(&turns, NOW), INT64_MAX);
	for (int i = 0; i < TURNS_OF_USER + 2; i++)
		ask(&turns, &of[i], 1, NOW + i);
	assert_int_equal(turns_wait(&turns, NOW + TURNS_OF_USER), TURN_WAITS_US);
	assert_null(turns_late(&turns, NOW + TURNS_OF_USER + TURN_WAITS_US - 1));
	assert_ptr_equal(turns_late(&turns, NOW + TURNS_OF_USER + TURN_WAITS_US),
	                 &of[TURNS_OF_USER]);
	turn_end(&turns, &of[TURNS_OF_USER]);
	assert_null(turns_late(&turns, NOW + TURNS_OF_USER + TURN_WAITS_US));
	assert_ptr_equal(turns_late(&turns, INT64_MAX), &of[TURNS_OF_USER + 1]);
	end_all(&turns, of, TURNS_OF_USER + 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_has_a_share),
		cmocka_unit_test(users_take_turns),
		cmocka_unit_test(root_has_the_limit_of_all_only),
		cmocka_unit_test(nothing_waits_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
