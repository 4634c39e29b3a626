/* SPDX-License-Identifier: MIT
 *
 * The life of a question: when it is asked, when it is asked again, and how it ends. The kind of
 * question is made up for this test.
 */
#include "rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PATH "/locks/a"

enum way {
	GETS,
	SETS,
	CHECKS,
	DELETES,
	BEATS, /* writes the heartbeats' node alone */
	READS, /* by a reader */
};

static enum way way;

static int set_up(void **state)
{
	struct rig *rig = rig_begin_ready();

	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	calls_finish(&rig->lc);
	rig_end_session(rig, false);
	assert_null(rig->calls.calls);
	asking_finish(&rig->lc);
	rig_finish(rig);
	return 0;
}

static void done(void *ctx, int err)
{
	rig_tell(ctx, err < 0 ? "done %s" : "done", strerrorname_np(-err));
}

static void finished(struct lc_call *call)
{
	rig_tell(call->ctx, "finished");
}

static void was_read(struct reader *reader, struct reading *reading)
{
	struct lc_call *call = call_of(reader);

	if (reading->error < 0)
		call_fail(call, reading->error);
	else
		call_end(call, 0, NULL);
}

static void ask(struct lc_call *call)
{
	struct ensemble_op ops[] = {ensemble_check(call->path, 3), ensemble_delete(call->path, 3)};
	struct ensemble_op set = ensemble_set(call->path, "x", 1, 3);
	struct ensemble_op beat = ensemble_set(call->lc->session->node.path, "x", 1, 3);

	switch (way) {
	case GETS:
		call_get(call, call->path, call_done, 0);
		break;
	case SETS:
		call_send(call, &set, 1, call_done, 0);
		break;
	case BEATS:
		call_send(call, &beat, 1, call_done, 0);
		break;
	case CHECKS:
		call_send(call, ops, 1, call_done, MEANT(ENSEMBLE_NONODE));
		break;
	case DELETES:
		call_send(call, ops, 2, call_done, MEANT(ENSEMBLE_NONODE));
		break;
	case READS:
		call_read(call, READING_LOCK, call->path, was_read);
		break;
	}
}

static struct lc_call *begin_call(struct rig *rig, enum way which, bool repeatable)
{
	struct lc_call *call = call_new(struct lc_call, .ask = ask, .tell = call_tell_done,
	                                .finish = finished, .repeatable = repeatable, .uid = 5,
	                                .path = strdup(PATH), .listener.done = done, .ctx = rig),
		       *begun = NULL;

	way = which;
	assert_non_null(call);
	assert_int_equal(call_begin(call, &rig->lc, &begun), 0);
	assert_ptr_equal(begun, call);
	return call;
}

static struct lc_call *begin(struct rig *rig, enum way which)
{
	return begin_call(rig, which, false);
}

/* ---- answers ---- */

static void answered(void **state)
{
	struct rig *rig = *state;

	begin(rig, GETS);
	rig_expect_sent(rig, "get " PATH);
	rig_answer_data(rig, 0, "");
	rig_expect_told(rig, "done, finished");
	assert_null(rig->calls.calls);
	begin(rig, SETS);
	rig_expect_sent(rig, "set " PATH " v3 'x'");
	rig_answer_version(rig, 4);
	rig_expect_told(rig, "alive, done, finished");
}

static void a_write_is_a_step(void **state)
{
	struct rig *rig = *state;

	for (int i = 0; i < 3; i++) {
		rig->now_us += 2 * SECOND;
		begin(rig, SETS);
		rig_answer_version(rig, 4);
	}
	expect(strstr(rig->told, "alive, extended, done"), "the lease is not extended: %s",
	       rig->told);
	rig_forget(rig);
	for (int i = 0; i < 3; i++) {
		rig->now_us += 2 * SECOND;
		begin(rig, GETS);
		rig_answer_data(rig, 4, "");
	}
	rig_expect_told(rig, "done, finished, done, finished, done, finished");
}

static void refused(void **state)
{
	struct rig *rig = *state;

	begin(rig, GETS);
	rig_answer_error(rig, ENSEMBLE_NOAUTH);
	rig_expect_told(rig, "done EACCES, finished");
	begin(rig, SETS);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_told(rig, "done ENOENT, finished");
}

/* A follower may lag behind: a question that only reads is asked again after a sync, once. */
static void not_there_after_a_sync(void **state)
{
	struct rig *rig = *state;

	begin(rig, GETS);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_sent(rig, "sync " PATH ", get " PATH);
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_expect_told(rig, "");
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_told(rig, "done ENOENT, finished");
	rig_expect_sent(rig, "");
}

/* A question without an answer is asked again, unless its write must not be done twice. */
static void not_answered(void **state)
{
	struct rig *rig = *state;

	begin(rig, GETS);
	rig_disconnect(rig);
	rig_expect_told(rig, "disconnected");
	rig_connect(rig, RIG_SESSION);
	rig_answer_version(rig, 1);
	rig_prove(rig);
	rig_forget(rig);
	calls_resume(&rig->lc);
	rig_expect_sent(rig, "get " PATH);
	calls_resume(&rig->lc); /* the question is under way already */
	rig_expect_sent(rig, "");
	rig_answer_data(rig, 0, "");
	rig_expect_told(rig, "done, finished");
	begin(rig, SETS);
	rig_disconnect(rig);
	rig_expect_told(rig, "disconnected, done EHOSTUNREACH, finished");
	rig_connect(rig, RIG_SESSION);
	rig_answer_version(rig, 2);
	rig_prove(rig);
	begin_call(rig, SETS, true);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_GONE);
	rig_expect_told(rig, "");
	calls_resume(&rig->lc);
	rig_expect_sent(rig, "set " PATH " v3 'x'");
	rig_answer_version(rig, 4);
	rig_expect_told(rig, "alive, done, finished");
}

/* In doubt it is not known whether a taker holds, and an answer may depend on it. */
static void asked_behind_a_doubt(void **state)
{
	struct rig *rig = *state;

	begin(rig, GETS);
	rig_doubt(rig);
	rig_disconnect(rig);
	rig->now_us++;
	rig_connect(rig, RIG_SESSION);
	while (!lc_ready(&rig->lc))
		rig_answer_version(rig, 1);
	rig_forget(rig);
	calls_resume(&rig->lc);
	rig_expect_sent(rig, "");
	rig_prove(rig);
	calls_resume(&rig->lc);
	rig_expect_sent(rig, "get " PATH);
	rig_forget(rig);
	rig_answer_data(rig, 0, "");
	rig_expect_told(rig, "done, finished");
}

/* ---- contact ---- */

static void asked_when_there_is_contact(void **state)
{
	struct rig *rig = *state;

	rig_disconnect(rig);
	rig_forget(rig);
	begin(rig, GETS);
	rig_expect_sent(rig, "");
	rig_connect(rig, RIG_SESSION);
	rig_answer_version(rig, 1);
	rig_forget(rig);
	calls_resume(&rig->lc);
	rig_expect_sent(rig, "get " PATH);
}

static void never_again(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct rig *rig = rig_begin();

		(void)state;
		if (i == 0) {
			rig_end_session(rig, true); /* credentials */
		} else {
			rig_connect(rig, RIG_SESSION);
			rig_find_home(rig);
			rig_answer_error(rig, ENSEMBLE_NOAUTH);
		}
		rig_forget(rig);
		begin(rig, GETS);
		rig_expect_told(rig, ""); /* never from inside the call */
		rig_run(rig, 0);
		assert_null(strstr(rig->sent, "get"));
		expect(strstr(rig->told,
		              i == 0 ? "done ESHUTDOWN, finished" : "done EACCES, finished"),
		       "row %d: %s", i, rig->told);
		asking_finish(&rig->lc);
		rig_finish(rig);
	}
}

/* ---- time ---- */

/* After that, questions wait for a shorter time, until the ensemble answers any of them. */
static void time_is_up(void **state)
{
	struct rig *rig = *state;

	begin(rig, GETS);
	rig_expect_told_after(rig, LC_CALL_TIMEOUT_US, "done EHOSTUNREACH");
	begin(rig, GETS);
	rig_expect_told_after(rig, 20 * MS, "done EHOSTUNREACH");
	rig_answer_data(rig, 0, ""); /* nobody waits for it any more */
	rig_expect_told(rig, "finished");
	rig_answer_data(rig, 0, "");
	rig_forget(rig);
	begin(rig, GETS);
	rig_run(rig, LC_CALL_TIMEOUT_US - 1);
	rig_expect_told(rig, "");
}

/* Without contact all questions share one time limit, and no question fails at once. */
static void time_without_contact(void **state)
{
	struct rig *rig = *state;

	rig_disconnect(rig);
	rig_run(rig, 500 * MS);
	rig_forget(rig);
	begin(rig, GETS);
	rig_expect_told_after(rig, LC_CALL_TIMEOUT_US - 500 * MS, "done EHOSTUNREACH, finished");
	begin(rig, GETS);
	rig_expect_told_after(rig, 20 * MS, "done EHOSTUNREACH, finished");
	/* A question that was not sent shows nothing about the ensemble. */
	assert_false(rig->reads.silent);
}

/* The ensemble answers a heartbeat: so it answers questions again, too. */
static void answers_heartbeats(void **state)
{
	struct rig *rig = *state;

	begin(rig, GETS);
	rig_run(rig, LC_CALL_TIMEOUT_US);
	assert_true(rig->reads.silent);
	rig_forget(rig);
	begin(rig, GETS); /* has its whole time as well */
	rig_run(rig, 10 * MS);
	calls_resume(&rig->lc);
	assert_false(rig->reads.silent);
	begin(rig, GETS);
	rig_expect_told_after(rig, LC_CALL_TIMEOUT_US - 10 * MS, "done EHOSTUNREACH");
	rig_run(rig, 10 * MS);
	rig_expect_told(rig, "done EHOSTUNREACH");
}

/* A question asks again and again until its time is up. The last answer is not owed for long. */
static void asks_again_at_the_end(void **state)
{
	struct rig *rig = *state;
	struct lc_call *call = begin(rig, GETS);

	rig_run(rig, LC_CALL_TIMEOUT_US - MS);
	call->sent_us = rig->now_us;
	rig_run(rig, MS);
	rig_expect_told(rig, "done EHOSTUNREACH");
	assert_false(rig->reads.silent);
}

/* The session has ended: the time limit counts from the moment when contact was lost. */
static void time_without_a_session(void **state)
{
	struct rig *rig = *state;

	rig->now_us += 5 * SECOND;
	rig_end_session(rig, false);
	rig_forget(rig);
	begin(rig, GETS);
	rig_expect_told_after(rig, LC_CALL_TIMEOUT_US, "done EHOSTUNREACH, finished");
	rig_connect(rig, RIG_SESSION + 1);
	rig_find_home(rig);
	rig_answer_version(rig, 0);
	rig_disconnect(rig);
	rig->now_us += 1500 * MS;
	rig_end_session(rig, false);
	rig_forget(rig);
	begin(rig, GETS);
	rig_run(rig, 500 * MS);
	rig_expect_told(rig, "done EHOSTUNREACH, finished");
}

static void fails_from_the_timers(void **state)
{
	struct rig *rig = *state;
	struct lc_call *call = begin(rig, GETS);

	call_fail_soon(call, -EFBIG);
	rig_expect_told(rig, "");
	rig_run(rig, 0);
	rig_expect_told(rig, "done EFBIG");
	assert_false(rig->reads.silent);
	rig_answer_data(rig, 0, "");
	rig_expect_told(rig, "finished");
}

static void no_path(void **state)
{
	struct rig *rig = *state;
	struct lc_call *call = call_new(struct lc_call, .ask = ask, .tell = call_tell_done,
	                                .finish = finished, .listener.done = done, .ctx = rig),
		       *begun = NULL;

	assert_int_equal(call_begin(call, &rig->lc, &begun), -ENOMEM);
	assert_null(begun);
	rig_expect_told(rig, "finished");
	assert_null(rig->calls.calls);
}

/* ---- cancelling ---- */

static void cancelled(void **state)
{
	struct rig *rig = *state;
	struct lc_call *call = begin(rig, GETS);

	assert_true(lc_may_cancel(call));
	lc_cancel(call);
	rig_expect_told(rig, ""); /* its answer is outstanding */
	assert_null(rig->calls.calls);
	rig_run(rig, MS);
	rig_answer_data(rig, 0, "");
	rig_expect_told(rig, "finished");
	call = begin(rig, SETS);
	assert_false(lc_may_cancel(call));
	lc_cancel(call);
	rig_answer_version(rig, 4);
	rig_expect_told(rig, "alive, finished"); /* the write is evidence all the same */
	call = begin(rig, BEATS);
	assert_true(lc_may_cancel(call));
	lc_cancel(call);
	rig_answer_version(rig, 4);
	rig_expect_told(rig, "alive, finished");
}

static void any_part_of_a_transaction_writes(void **state)
{
	struct rig *rig = *state;

	assert_true(lc_may_cancel(begin(rig, CHECKS)));
	assert_false(lc_may_cancel(begin(rig, DELETES)));
	rig_expect_sent(rig, "check " PATH " v3, check " PATH " v3 + delete " PATH " v3");
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_answer_error(rig, ENSEMBLE_REFUSED);
	rig_expect_told(rig, "alive, done, finished, done ENOLCK, finished");
}

/* Results that are no errors to the stage. */
static void meant(void **state)
{
	struct rig *rig = *state;

	begin(rig, DELETES);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_told(rig, "done, finished");
}

/* What was read is out of date when it is written. */
static void begins_anew(void **state)
{
	struct rig *rig = *state;

	begin(rig, SETS);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_BADVERSION);
	rig_expect_sent(rig, "set " PATH " v3 'x'");
	rig_answer_version(rig, 4);
	rig_expect_told(rig, "alive, done, finished");
}

/* ---- by a reader ---- */

static void read_by_a_reader(void **state)
{
	struct rig *rig = *state;

	begin(rig, READS);
	rig_expect_sent(rig, "");
	asking_send(&rig->lc);
	rig_expect_sent(rig, "get " PATH);
	rig_reconnect(rig);
	rig_forget(rig);
	calls_resume(&rig->lc); /* readers ask again by themselves */
	rig_expect_sent(rig, "");
	asking_send(&rig->lc);
	rig_expect_sent(rig, "get " PATH);
	rig_answer_data(rig, 0, "");
	asking_tell(&rig->lc);
	rig_expect_told(rig, "done, finished");
}

static void cancelled_while_it_is_read(void **state)
{
	struct rig *rig = *state;

	lc_cancel(begin(rig, READS));
	rig_expect_told(rig, "finished");
	asking_send(&rig->lc);
	rig_expect_sent(rig, "");
}

/* The answer has come, and is told in a moment: the time limit does not fail the question. */
static void answered_just_in_time(void **state)
{
	struct rig *rig = *state;
	struct lc_call *call = begin(rig, READS);

	asking_send(&rig->lc);
	rig_run(rig, MS);
	rig_answer_data(rig, 0, "");
	rig_forget(rig);
	rig->now_us += LC_CALL_TIMEOUT_US;
	timers_run(&rig->lc.timers, rig->now_us);
	assert_null(strstr(rig->told, "done"));
	assert_true(call->limit.armed);
	asking_tell(&rig->lc);
	expect(strstr(rig->told, "done, finished"), "%s", rig->told);
}

/* The ensemble answers, but the question's turn has not come: -EBUSY. */
static void could_not_be_asked(void **state)
{
	struct rig *rig = *state;

	rig->session.beat.timer.fire = NULL; /* no heartbeats in this test */
	timer_clear(&rig->lc.timers, &rig->session.beat.timer);
	timer_clear(&rig->lc.timers, &rig->session.limit);
	begin(rig, READS);
	rig_run(rig, LC_CALL_TIMEOUT_US);
	rig_expect_told(rig, "done EBUSY, finished");
	/* This question was asked, and the ensemble does not answer. */
	begin(rig, READS);
	rig_run(rig, LC_CALL_TIMEOUT_US / 4);
	asking_send(&rig->lc);
	rig_run(rig, LC_CALL_TIMEOUT_US * 3 / 4);
	rig_expect_told(rig, "done EHOSTUNREACH, finished");
	assert_true(rig->reads.silent);
	/* The ensemble answers nobody now, so the next question fails with the same error. */
	begin(rig, READS);
	rig_run(rig, 20 * MS);
	rig_expect_told(rig, "done EHOSTUNREACH, finished");
	rig_answer_data(rig, 0, "");
	assert_false(rig->reads.silent);
	/* A question whose read was answered, and which now writes, does not get EBUSY. */
	reader_cancel(&begin(rig, READS)->reader);
	rig_run(rig, LC_CALL_TIMEOUT_US);
	rig_expect_told(rig, "done EHOSTUNREACH, finished");
	assert_false(rig->reads.silent);
	/* Nor does a question that fails for another reason. */
	call_fail_soon(begin(rig, READS), -EFBIG);
	rig_run(rig, 0);
	rig_expect_told(rig, "done EFBIG, finished");
	/* Nor does a question without contact. */
	rig_disconnect(rig);
	rig_run(rig, MS);
	rig_forget(rig);
	begin(rig, READS);
	rig_run(rig, LC_CALL_TIMEOUT_US - MS);
	rig_expect_told(rig, "done EHOSTUNREACH, finished");
	assert_false(rig->reads.silent);
}

#define CALL_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CALL_TEST(answered),
		CALL_TEST(a_write_is_a_step),
		CALL_TEST(refused),
		CALL_TEST(not_there_after_a_sync),
		CALL_TEST(not_answered),
		CALL_TEST(asked_behind_a_doubt),
		CALL_TEST(asked_when_there_is_contact),
		cmocka_unit_test(never_again),
		CALL_TEST(time_is_up),
		CALL_TEST(time_without_contact),
		CALL_TEST(answers_heartbeats),
		CALL_TEST(asks_again_at_the_end),
		CALL_TEST(time_without_a_session),
		CALL_TEST(fails_from_the_timers),
		CALL_TEST(no_path),
		CALL_TEST(cancelled),
		CALL_TEST(any_part_of_a_transaction_writes),
		CALL_TEST(meant),
		CALL_TEST(begins_anew),
		CALL_TEST(read_by_a_reader),
		CALL_TEST(cancelled_while_it_is_read),
		CALL_TEST(answered_just_in_time),
		CALL_TEST(could_not_be_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
