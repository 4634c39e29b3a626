/* SPDX-License-Identifier: MIT
 *
 * A session that nobody uses: it writes no heartbeats, its lease ends, and who comes next has it
 * proved anew. T is 15 s, so a heartbeat is due after 2.5 s, and a step gives 14.67 s of lease.
 */
#include "rig.h"

#include "ask/asking.h"

#define NODE RIG_NODE
#define REST (60 * SECOND)
#define BEAT "set " NODE " ''"

static int64_t told_deadline_us;

static void deadline(void *ctx, int64_t deadline_us)
{
	(void)ctx;
	told_deadline_us = deadline_us;
}

static void stat_done(void *ctx, int err, const struct lc_lock_info *info)
{
	(void)ctx;
	(void)err;
	(void)info;
}

static int set_up(void **state)
{
	struct rig *rig = rig_begin_ready();

	rig->lc.config.deadline = deadline;
	rig->lc.config.rest_us = REST;
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	rig_finish(*state);
	return 0;
}

/* Answers each heartbeat for some time, and tells how many there were. */
static int beats_within(struct rig *rig, int64_t duration_us)
{
	int64_t until_us = rig->now_us + duration_us;
	int beats = 0;

	for (; rig->now_us < until_us; rig_run(rig, 10 * MS)) {
		for (; *rig_unanswered(rig); beats++)
			rig_answer_version(rig, 1);
		rig_forget(rig);
	}
	return beats;
}

/* The session rests, and its lease has ended. */
static void fall_asleep(struct rig *rig)
{
	assert_true(beats_within(rig, REST) > 20);
	assert_int_equal(beats_within(rig, 20 * SECOND), 0);
	assert_true(rig->session.resting);
	assert_int_equal(told_deadline_us, INT64_MIN);
}

static void writes_nothing(void **state)
{
	struct rig *rig = *state;

	assert_true(beats_within(rig, REST) > 20);
	assert_true(rig->session.resting && session_lease_is_valid(&rig->lc));
	assert_true(told_deadline_us > rig->now_us);
	rig_run(rig, 3600 * SECOND);
	rig_expect_sent(rig, "");
	rig_expect_told(rig, "over");
	assert_true(lc_ready(&rig->lc));
	assert_int_equal(told_deadline_us, INT64_MIN);
	assert_int_equal(rig->session.lease.deadline_us, INT64_MIN);
}

/* Not while somebody has an entry, or asks. */
static void is_in_use(void **state)
{
	struct rig *rig = *state;

	rig->in_use = true;
	assert_true(beats_within(rig, 10 * REST) > 200);
	rig->in_use = false;
	(void)beats_within(rig, 3 * SECOND);
	assert_int_equal(beats_within(rig, 10 * REST), 0);
}

/* The time counts from the last use on. */
static void was_used(void **state)
{
	struct rig *rig = *state;

	(void)beats_within(rig, REST - SECOND);
	session_use(&rig->lc);
	rig_expect_sent(rig, "");
	assert_true(beats_within(rig, REST - SECOND) > 20);
	session_use(&rig->lc);
	rig->in_use = true;
	session_set_busy(&rig->lc, true);
	(void)beats_within(rig, 2 * REST);
	rig->in_use = false;
	session_set_busy(&rig->lc, false);
	assert_true(beats_within(rig, REST) > 20);
	assert_int_equal(beats_within(rig, REST), 0);
}

static void never_rests(void **state)
{
	struct rig *rig = *state;

	rig->lc.config.rest_us = 0;
	assert_true(beats_within(rig, 10 * REST) > 200);
}

/* Only a new connection proves the session, and does so before anything is sent on it. The first
 * write gives the lease, since nobody has had an entry. The log says nothing of it. */
static void is_proved_anew(void **state)
{
	struct rig *rig = *state;
	int64_t began_us;

	fall_asleep(rig);
	rig->in_use = true;
	session_use(&rig->lc);
	session_set_busy(&rig->lc, true);
	rig_expect_sent(rig, "drop");
	assert_false(lc_ready(&rig->lc) || session_may_ask(&rig->lc));
	assert_true(lc_woken(&rig->lc));
	session_use(&rig->lc); /* once is enough */
	rig_expect_sent(rig, "");
	rig_disconnect(rig);
	assert_string_equal(rig->reported, "");
	assert_false(rig->port_events->needs_scout(&rig->lc));
	began_us = rig->now_us;
	rig_connect(rig, RIG_SESSION);
	rig_expect_sent(rig, BEAT);
	rig->has_letters = true;
	rig_forget(rig);
	rig_answer_version(rig, 2);
	rig_expect_told(rig, "alive, over, beaten resumed");
	rig_expect_sent(rig, "");
	assert_int_equal(told_deadline_us, began_us + 14670 * MS);
	assert_true(session_may_grant(&rig->lc));
	assert_true(rig->port_events->needs_scout(&rig->lc));
	assert_in_range(beats_within(rig, 3 * REST), 100, 150);
}

/* Its lease has not ended. It is worth too little: it counts from steps that lie far apart. */
static void has_a_lease(void **state)
{
	struct rig *rig = *state;

	(void)beats_within(rig, REST);
	assert_true(session_may_grant(&rig->lc));
	session_use(&rig->lc);
	rig_expect_sent(rig, "drop");
	assert_int_equal(told_deadline_us, INT64_MIN);
	assert_false(session_lease_is_valid(&rig->lc));
	rig_disconnect(rig);
	rig_forget(rig);
	rig_connect(rig, RIG_SESSION);
	rig_answer_version(rig, 2);
	assert_int_equal(told_deadline_us, rig->now_us + 14670 * MS);
	assert_true(session_may_grant(&rig->lc));
	rig_forget(rig);
}

/* A connection that is lost is made anew, and then it rests again. */
static void loses_its_connection(void **state)
{
	struct rig *rig = *state;

	fall_asleep(rig);
	rig_disconnect(rig);
	rig_expect_reported(rig, "connection lost, lease left: 0 ms");
	assert_false(lc_woken(&rig->lc));
	rig_connect(rig, RIG_SESSION);
	rig_answer_version(rig, 2);
	rig_expect_reported(rig, "resumed");
	assert_int_equal(beats_within(rig, REST), 0);
	assert_true(rig->session.resting);
}

/* The lease that ends without contact is a lease as any: the guard of rule 2 stays. */
static void ends_without_contact(void **state)
{
	struct rig *rig = *state;

	(void)beats_within(rig, REST);
	rig_disconnect(rig);
	rig_run(rig, 20 * SECOND);
	assert_true(rig->session.lease.deadline_us != INT64_MIN);
	rig_forget(rig);
}

/* The session ends while it rests: the next one is as any. */
static void loses_its_session(void **state)
{
	struct rig *rig = *state;

	fall_asleep(rig);
	rig_end_session(rig, false);
	assert_false(rig->session.resting || lc_woken(&rig->lc));
	rig_connect(rig, RIG_SESSION + 1);
	rig_find_home(rig);
	rig_answer_version(rig, 0);
	assert_true(session_may_grant(&rig->lc));
	rig_forget(rig);
}

/* Its renewal was given up, and would shorten each lease. Nobody has an entry there. */
static void is_left_with_a_late_renewal(void **state)
{
	struct rig *rig = *state;

	fall_asleep(rig);
	rig->in_use = true;
	session_use(&rig->lc);
	session_set_busy(&rig->lc, true);
	rig_disconnect(rig);
	rig->port_events->renews(&rig->lc);
	rig_connect(rig, RIG_SESSION);
	rig_answer_version(rig, 2);
	rig_forget(rig);
	rig_run(rig, 0);
	rig_expect_sent(rig, "close, open 15 s");
	rig_expect_told(rig, "ended");
	rig_connect(rig, RIG_SESSION + 1);
	rig_find_home(rig);
	rig_answer_version(rig, 0);
	assert_true(session_may_grant(&rig->lc));
	rig_forget(rig);
}

/* A question of a user, too, is asked behind the proof. */
static void is_asked(void **state)
{
	struct rig *rig = *state;
	struct lc_call *call;

	fall_asleep(rig);
	assert_int_equal(lc_stat(&rig->lc, "build", 5, stat_done, rig, &call), 0);
	asking_send(&rig->lc);
	rig_expect_sent(rig, "drop");
	lc_cancel(call);
}

/* Other writes may move the lease, which ends, too. */
static void writes_by_itself(void **state)
{
	struct rig *rig = *state;

	fall_asleep(rig);
	for (int i = 0; i < 3; i++) {
		session_wrote(&rig->lc, rig->now_us);
		rig->now_us += 2 * SECOND;
	}
	assert_true(told_deadline_us > rig->now_us);
	rig_expect_sent(rig, "");
	assert_int_equal(beats_within(rig, 20 * SECOND), 0);
	assert_int_equal(told_deadline_us, INT64_MIN);
}

static void a_refused_beat_is_sent_again(void **state)
{
	struct rig *rig = *state;

	fall_asleep(rig);
	session_wrote(&rig->lc, rig->now_us); /* e.g. an eviction's delete */
	rig_run(rig, 100 * MS);
	session_use(&rig->lc);
	rig->in_use = true;
	session_set_busy(&rig->lc, true);
	rig_disconnect(rig);
	rig_forget(rig);
	rig_connect(rig, RIG_SESSION);
	rig_expect_sent(rig, BEAT);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_REFUSED);
	rig_forget(rig);
	rig_run(rig, 2 * SECOND);
	rig_expect_sent(rig, BEAT);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(writes_nothing),
		TEST(is_in_use),
		TEST(was_used),
		TEST(never_rests),
		TEST(is_proved_anew),
		TEST(has_a_lease),
		TEST(loses_its_connection),
		TEST(ends_without_contact),
		TEST(loses_its_session),
		TEST(is_left_with_a_late_renewal),
		TEST(is_asked),
		TEST(writes_by_itself),
		TEST(a_refused_beat_is_sent_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
