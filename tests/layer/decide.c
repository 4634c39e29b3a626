/* SPDX-License-Identifier: MIT
 *
 * What is done with the answers of queue_next(). Which answers it gives is tested in unit/next.c.
 */
#include "grant/grant.h"

#include "lock/known.h"

#include "takers.h"

static int64_t deadline_us; /* of the lease, as it was and will be again */

/* An answer shows the entry of a waiter that nobody precedes. The lease is too short to grant, so a
 * heartbeat and then a watch of the entry are sent. */
static struct lc_taker *begin(struct rig *rig)
{
	struct lc_taker *taker = takers_take(rig, 7, LC_EXCLUSIVE, LC_FOREVER);

	takers_turn(rig);
	takers_answer_made(rig, taker, 0);
	deadline_us = rig->session.lease.deadline_us;
	rig->session.lease.deadline_us = rig->now_us + MS;
	takers_answer_list(rig, "#2-0");
	rig_expect_told(rig, "");
	return taker;
}

static void answer_heartbeat(struct rig *rig)
{
	struct ensemble_stat stat = {0};

	rig->session.lease.deadline_us = deadline_us;
	rig_answer(rig, &(struct ensemble_answer){.stat = &stat});
	locks_fresh(&rig->lc);
	takers_turn(rig);
	assert_true(session_may_grant(&rig->lc));
}

/* When the lease has grown, the answer that showed the entry is old. */
static void grant_waits_for_the_lease(void **state)
{
	struct rig *rig = *state;

	begin(rig);
	answer_heartbeat(rig);
	rig_expect_told(rig, "");
	takers_answer_watches(rig);
	rig_expect_told(rig, "7 taken");
}

static void gone_while_it_waits_for_the_lease(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *taker = begin(rig);

	answer_heartbeat(rig);
	takers_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_told(rig, "");
	assert_true(taker->wait == WAIT_MISSING && !known_is_placed(&taker->entry));
}

/* The leaver's entry is deleted only together with the check that the next holder's is there. */
static void release_lets_the_next_one_in(void **state)
{
	struct rig *rig = *state;
	struct lc_taker *holder = takers_queue(rig, 7, LC_EXCLUSIVE, 1, "#2-1");

	takers_queue(rig, 8, LC_EXCLUSIVE, 2, "#2-1 #3-2");
	takers_leave(rig, holder);
	rig_expect_told(rig, "8 taken");
	rig_expect_sent(rig, "check /locks/a/#3-2 + delete /locks/a/#2-1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TAKERS_TEST(grant_waits_for_the_lease),
		TAKERS_TEST(gone_while_it_waits_for_the_lease),
		TAKERS_TEST(release_lets_the_next_one_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
