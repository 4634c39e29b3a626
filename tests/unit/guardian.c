/* SPDX-License-Identifier: MIT
 *
 * A guardian that was told no deadline takes nobody for a loser. Losers by their own time show that
 * it has looked.
 */
#include "guard/guardian.h"

#include "host/clock.h"
#include "unit.h"

#include <poll.h>
#include <unistd.h>

#define MANY_LOOKS 60000

static int hold_until(struct guardian *guardian, int64_t until_us)
{
	const struct guarded who = {
		.uid = getuid(),
		.process = {.pid = 0},
		.lock = "build",
		.ino = 1,
		.until_us = until_us,
	};
	int slot = guardian_hold(guardian, &who);

	assert_true(slot >= 0);
	return slot;
}

static void await_loss(const struct guardian *guardian, int slot)
{
	for (int i = 0; i < MANY_LOOKS && !guardian_has_lost(guardian, slot); i++)
		(void)poll(NULL, 0, 1);
	assert_true(guardian_has_lost(guardian, slot));
}

static void without_a_deadline(void **state)
{
	struct guardian *guardian;
	int holder;

	(void)state;
	assert_true(guardian_start(ON_LOST_KILL, &guardian));
	if (guardian_fd(guardian) < 0) {
		guardian_end(guardian, true);
		skip(); /* nobody can be stopped here */
	}
	guardian_mounted(guardian, 1, "0:0");
	holder = hold_until(guardian, INT64_MAX);
	/* Two: the second one is seen by a look that began after the first one. */
	await_loss(guardian, hold_until(guardian, 0));
	await_loss(guardian, hold_until(guardian, 0));
	assert_false(guardian_has_lost(guardian, holder));
	guardian_deadline(guardian, clock_now_us() + 60 * 1000000LL);
	await_loss(guardian, hold_until(guardian, 0));
	assert_false(guardian_has_lost(guardian, holder));
	guardian_deadline(guardian, clock_now_us());
	await_loss(guardian, holder);
	assert_false(guardian_leaves(guardian));
	guardian_end(guardian, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_deadline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
