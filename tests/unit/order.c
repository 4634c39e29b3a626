/* SPDX-License-Identifier: MIT
 *
 * order.c - the order in which the guardian looks at processes.
 */
#include "guard/order.h"
#include "unit.h"

static void descendants_are_found(void **state)
{
	/* A parent may have a higher number than its child; 30 and 31 are each other's parent. */
	struct order_process processes[] = {
		{.pid = 2, .parent = 1},   {.pid = 5, .parent = 2},   {.pid = 9, .parent = 12},
		{.pid = 12, .parent = 5},  {.pid = 20, .parent = 9},  {.pid = 21, .parent = 2},
		{.pid = 30, .parent = 31}, {.pid = 31, .parent = 30}, {.pid = 40},
	};
	const bool kin[] = {false, false, true, true, true, false, false, false, false};
	const pid_t losers[] = {5, 77};

	(void)state;
	order_find_kin(processes, LENGTH(processes), losers, LENGTH(losers));
	for (size_t i = 0; i < LENGTH(processes); i++)
		assert_int_equal(processes[i].kin, kin[i] ? ORDER_KIN : ORDER_NO_KIN);
}

static void a_chain_without_end_is_nobodys(void **state)
{
	enum { LONG = 1000 };
	struct order_process processes[LONG];
	const pid_t losers[] = {2};

	(void)state;
	for (int i = 0; i < LONG; i++)
		processes[i] = (struct order_process){.pid = 3 + i, .parent = 2 + i};
	order_find_kin(processes, LONG, losers, 1);
	for (int i = 0; i < LONG; i++)
		assert_int_equal(processes[i].kin, ORDER_KIN);
	for (int i = 0; i < LONG; i++)
		processes[i] = (struct order_process){.pid = 3 + i, .parent = 4 + i};
	order_find_kin(processes, LONG, losers, 1);
	for (int i = 0; i < LONG; i++)
		assert_int_equal(processes[i].kin, ORDER_NO_KIN);
}

static void kin_comes_first_and_users_in_turn(void **state)
{
	struct order_process processes[] = {
		{.pid = 2, .uid = 7, .kin = ORDER_NO_KIN},
		{.pid = 3, .uid = 7, .kin = ORDER_NO_KIN},
		{.pid = 4, .uid = 7, .kin = ORDER_NO_KIN},
		{.pid = 5, .uid = 8, .kin = ORDER_NO_KIN},
		{.pid = 6, .uid = 9, .kin = ORDER_NO_KIN},
		{.pid = 7, .uid = 9, .kin = ORDER_NO_KIN},
		{.pid = 8, .uid = 7, .kin = ORDER_KIN},
		{.pid = 9, .uid = 7, .kin = ORDER_KIN},
		{.pid = 10, .uid = 9, .kin = ORDER_KIN},
	};
	const pid_t wanted[] = {8, 10, 9, 2, 5, 6, 3, 7, 4};

	(void)state;
	order_sort(processes, LENGTH(processes));
	for (size_t i = 0; i < LENGTH(wanted); i++)
		assert_int_equal(processes[i].pid, wanted[i]);
}

static void one_is_found_by_its_number(void **state)
{
	const struct order_process processes[] = {{.pid = 2}, {.pid = 5}, {.pid = 9}};

	(void)state;
	assert_ptr_equal(order_process_of(processes, LENGTH(processes), 5), &processes[1]);
	assert_null(order_process_of(processes, LENGTH(processes), 6));
	assert_null(order_process_of(processes, 0, 5));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descendants_are_found),
		cmocka_unit_test(a_chain_without_end_is_nobodys),
		cmocka_unit_test(kin_comes_first_and_users_in_turn),
		cmocka_unit_test(one_is_found_by_its_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
