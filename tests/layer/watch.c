/* SPDX-License-Identifier: MIT
 *
 * One watch: it is asked for, is armed, is good on its own connection only, and is taken back.
 */
#include "rig.h"

#define PATH "/locks/build"

static struct watch one;

static int set_up(void **state)
{
	one = (struct watch){0};
	*state = rig_begin_ready();
	return 0;
}

static int tear_down(void **state)
{
	rig_finish(*state);
	return 0;
}

static void answered(void *ctx, const struct ensemble_answer *answer)
{
	watch_answered(ctx, &one, answer->result == ENSEMBLE_OK);
}

static void ask(struct rig *rig)
{
	watch_ask(&rig->lc, &one, PATH, answered, &rig->lc);
	rig_expect_sent(rig, "watch " PATH);
}

static void expect_state(struct rig *rig, bool pending, bool armed, bool good)
{
	assert_int_equal(watch_is_pending(&one), pending);
	assert_int_equal(watch_is_armed(&one), armed);
	assert_int_equal(watch_is_good(&rig->lc, &one), good);
}

static void armed(void **state)
{
	struct rig *rig = *state;

	expect_state(rig, false, false, false);
	ask(rig);
	expect_state(rig, true, false, false);
	rig_answer_data(rig, 0, "");
	expect_state(rig, false, true, true);
	watch_fired(&one);
	expect_state(rig, false, false, false);
}

static void not_there(void **state)
{
	struct rig *rig = *state;

	ask(rig);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	expect_state(rig, false, false, false);
}

static void watch_of_an_older_connection(struct rig *rig)
{
	ask(rig);
	rig_answer_data(rig, 0, "");
	rig_reconnect(rig);
	rig_forget(rig);
}

/* Events between two connections come late, so a watch of an older connection is not good. */
static void of_an_older_connection(void **state)
{
	struct rig *rig = *state;

	watch_of_an_older_connection(rig);
	expect_state(rig, false, true, false);
	ask(rig);
	expect_state(rig, true, true, false);
	rig_answer_data(rig, 0, "");
	expect_state(rig, false, true, true);
}

/* The older watch is still there, though the request for the new one was not answered. */
static void not_renewed(void **state)
{
	struct rig *rig = *state;

	watch_of_an_older_connection(rig);
	ask(rig);
	rig_answer_error(rig, ENSEMBLE_UNKNOWN);
	expect_state(rig, false, true, false);
}

/* The event of the older watch does not use up the watch that is being asked for. */
static void fired_while_it_is_renewed(void **state)
{
	struct rig *rig = *state;

	watch_of_an_older_connection(rig);
	ask(rig);
	watch_fired(&one);
	expect_state(rig, true, false, false);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	expect_state(rig, false, false, false);
}

/* ---- taking back ---- */

static void dropped(void **state)
{
	struct rig *rig = *state;

	ask(rig);
	rig_answer_data(rig, 0, "");
	watch_drop(&rig->lc, &one, PATH);
	expect_state(rig, false, false, false);
	rig_expect_sent(rig, "unwatch " PATH);
	watches_resume(&rig->lc); /* the request is under way already */
	rig_expect_sent(rig, "");
	rig_answer_error(rig, ENSEMBLE_OK);
	watch_drop(&rig->lc, &one, PATH); /* there is nothing to take back */
	rig_expect_sent(rig, "");
}

/* The watch may still be set: the answer function of the request will take it back. */
static void dropped_while_pending(void **state)
{
	struct rig *rig = *state;

	ask(rig);
	watch_drop(&rig->lc, &one, PATH);
	rig_expect_sent(rig, "");
	expect_state(rig, true, false, false);
	rig_answer_error(rig, ENSEMBLE_NONODE);
}

/* The client sends the path with each new connection until its watch is taken back. The path counts
 * while no request to take it back is under way. */
static void counts_until_it_is_taken_back(void **state)
{
	struct rig *rig = *state;

	watches_give_up(&rig->lc, PATH);
	watches_give_up(&rig->lc, "/locks/x");
	watches_give_up(&rig->lc, PATH); /* once is enough */
	rig_expect_sent(rig, "unwatch " PATH ", unwatch /locks/x");
	assert_int_equal(rig->quota.watch_bytes, 0);
	rig_answer_error(rig, ENSEMBLE_UNKNOWN);
	rig_answer_error(rig, ENSEMBLE_REFUSED);
	assert_int_equal(rig->quota.watch_bytes, 0);
	rig_expect_sent(rig, "unwatch " PATH);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_sent(rig, "");
	assert_null(rig->watches.unwatches);
}

static void taken_back_on_the_next_connection(void **state)
{
	struct rig *rig = *state;

	watches_give_up(&rig->lc, PATH);
	rig_disconnect(rig);
	assert_int_equal(rig->quota.watch_bytes, strlen(PATH));
	rig_forget(rig);
	watches_give_up(&rig->lc, "/locks/away");
	rig_expect_sent(rig, "");
	assert_int_equal(rig->quota.watch_bytes, strlen(PATH) + strlen("/locks/away"));
	rig_connect(rig, RIG_SESSION);
	rig_forget(rig);
	while (!lc_ready(&rig->lc))
		rig_answer_version(rig, 1);
	rig_expect_sent(rig, "unwatch " PATH ", unwatch /locks/away, set " RIG_NODE " ''");
	assert_int_equal(rig->quota.watch_bytes, 0);
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_answer_error(rig, ENSEMBLE_OK);
	assert_null(rig->watches.unwatches);
}

/* Watches die with the session. */
static void gone_with_the_session(void **state)
{
	struct rig *rig = *state;

	watches_give_up(&rig->lc, PATH);
	rig_disconnect(rig);
	watches_give_up(&rig->lc, "/locks/away");
	rig_end_session(rig, false);
	assert_null(rig->watches.unwatches);
	assert_int_equal(rig->quota.watch_bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(armed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(not_there, set_up, tear_down),
		cmocka_unit_test_setup_teardown(of_an_older_connection, set_up, tear_down),
		cmocka_unit_test_setup_teardown(not_renewed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(fired_while_it_is_renewed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(dropped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(dropped_while_pending, set_up, tear_down),
		cmocka_unit_test_setup_teardown(counts_until_it_is_taken_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(taken_back_on_the_next_connection, set_up,
	                                        tear_down),
		cmocka_unit_test_setup_teardown(gone_with_the_session, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
