/* SPDX-License-Identifier: MIT
 *
 * The session's heartbeats: when they go out, and when a server is given up; and its lease: what an
 * answer proves, and what a doubt of the clock does to it. T is 15 s and tick 2 s, so w = 1.25 s,
 * and a step gives 14.67 s of lease.
 */
#include "rig.h"

#include <errno.h>

#define NODE RIG_NODE
#define FIND "sync " RIG_DIR ", get " RIG_DIR

static int set_up_ready(void **state)
{
	*state = rig_begin_ready();
	return 0;
}

static int set_up(void **state)
{
	*state = rig_begin();
	return 0;
}

static int tear_down(void **state)
{
	rig_finish(*state);
	return 0;
}

/* ---- heartbeats ---- */

static void beats_slowly_when_idle(void **state)
{
	struct rig *rig = *state;

	rig_expect_sent_after(rig, 2500 * MS, "set " NODE " ''"); /* T / 6 */
	rig_answer_version(rig, 1);
	rig_expect_told(rig, "alive, beaten");
	rig_run(rig, 2500 * MS);
	rig_expect_sent(rig, "set " NODE " ''");
}

static void beats_quickly_when_busy(void **state)
{
	struct rig *rig = *state;

	session_set_busy(&rig->lc, true);
	rig_expect_sent_after(rig, 1250 * MS, "set " NODE " ''");
	rig_answer_version(rig, 1);
	session_set_busy(&rig->lc, false);
	rig_expect_sent_after(rig, 2500 * MS, "set " NODE " ''");
}

/* Other writes are steps, too. */
static void beats_after_the_last_write(void **state)
{
	struct rig *rig = *state;

	session_set_busy(&rig->lc, true);
	rig_run(rig, 1250 * MS);
	rig_answer_version(rig, 1);
	rig_forget(rig);
	rig->now_us += 1249 * MS;
	session_wrote(&rig->lc, rig->now_us); /* too early to be a step */
	rig_expect_told(rig, "alive");
	rig_run(rig, MS);
	rig_expect_sent(rig, "set " NODE " ''");
	rig_answer_version(rig, 2);
	rig_forget(rig);
	rig->now_us += 1250 * MS;
	session_wrote(&rig->lc, rig->now_us);
	rig_expect_told(rig, "alive, extended");
	rig_expect_sent_after(rig, 1250 * MS, "set " NODE " ''");
}

static void one_at_a_time(void **state)
{
	struct rig *rig = *state;

	heartbeat_send(&rig->lc);
	rig_expect_sent(rig, "set " NODE " ''");
	heartbeat_send(&rig->lc);
	session_set_busy(&rig->lc, true);
	rig_run(rig, 2 * SECOND);
	rig_expect_sent(rig, "");
	rig_answer_version(rig, 1);
	heartbeat_send(&rig->lc);
	rig_expect_sent(rig, "set " NODE " ''");
}

/* A heartbeat tells the ensemble's wall clock, as exactly as its answer came soon. */
static void tells_the_clock(void **state)
{
	struct rig *rig = *state;
	struct ensemble_stat stat = {.version = 1, .mtime_ms = 50000};

	assert_int_equal(lc_ensemble_ms(&rig->lc, 7777), 7777); /* nothing is known */
	heartbeat_send(&rig->lc);
	rig->now_us += 40 * MS;
	rig_answer(rig, &(struct ensemble_answer){.stat = &stat});
	rig->now_us += 1000 * MS;
	assert_int_equal(lc_ensemble_ms(&rig->lc, 7777), 51000);
	assert_int_equal(lc_ensemble_ms(&rig->lc, 51000), 51000);
	assert_int_equal(lc_ensemble_ms(&rig->lc, 51030), 51030); /* they may agree */
	assert_int_equal(lc_ensemble_ms(&rig->lc, 99999), 51041);
}

/* A heartbeat may get no answer although the connection lives. */
static void one_without_answer(void **state)
{
	struct rig *rig = *state;

	heartbeat_send(&rig->lc);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_UNKNOWN);
	rig_expect_sent(rig, "");
	heartbeat_send(&rig->lc);
	rig_expect_sent(rig, "set " NODE " ''");
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_find_nothing(rig);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_UNKNOWN); /* to the create of the directory */
	heartbeat_send(&rig->lc);
	rig_expect_sent(rig, FIND);
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_answer_error(rig, ENSEMBLE_UNKNOWN);
	heartbeat_send(&rig->lc);
	rig_expect_sent(rig, FIND);
}

/* The next server is tried after T / 5, each time. */
static void gives_up_a_server_that_hangs(void **state)
{
	struct rig *rig = *state;

	heartbeat_send(&rig->lc);
	rig_forget(rig);
	rig_expect_sent_after(rig, 3 * SECOND, "drop");
	rig_expect_reported(rig, "server server:2181 does not answer, trying the next");
	rig_run(rig, 3 * SECOND);
	rig_expect_sent(rig, "drop");
}

static void node_removed(void **state)
{
	struct rig *rig = *state;

	heartbeat_send(&rig->lc);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_told(rig, "");
	rig_expect_sent(rig, FIND);
	rig_find_home(rig);
	rig_expect_sent(rig, "create ephemeral " NODE " ''");
	rig_answer_version(rig, 0);
	rig_expect_told(rig, "alive, beaten");
	session_node_lost(&rig->lc);
	rig_expect_sent(rig, FIND);
	rig_find_home(rig);
	rig_expect_sent(rig, "create ephemeral " NODE " ''");
	rig_answer_error(rig, ENSEMBLE_EXISTS);
	rig_expect_sent(rig, "set " NODE " ''");
}

static void root_removed(void **state)
{
	struct rig *rig = *state;

	/* Made at the start, and never again: nobody knows why it is gone. */
	rig->lc.config.make_root = true;
	heartbeat_send(&rig->lc);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_find_nothing(rig);
	rig_expect_sent(rig, "set " NODE " '', " FIND ", create " RIG_DIR " '0000000000000002'");
	rig_answer_error(rig, ENSEMBLE_NONODE);
	rig_expect_reported(rig, "somebody has removed /locks");
	rig_expect_told(rig, "");
	rig_expect_sent(rig, "");
	rig_run(rig, 2500 * MS);
	rig_expect_sent(rig, FIND);
	rig_find_nothing(rig);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_NONODE);
	assert_string_equal(rig->reported, ""); /* once is enough */
	rig_run(rig, SECOND);
	rig_answer_error(rig, ENSEMBLE_OK);
	rig_answer_mark(rig, 700,
	                "00000000000000bb"); /* it is another one: that is seen from here */
	rig_answer_version(rig, 0);
	rig_expect_reported(rig, "/locks is there again");
	heartbeat_send(&rig->lc);
	rig_answer_version(rig, 1);
	assert_string_equal(rig->reported, "");
}

/* ---- the lease ---- */

static int64_t told_deadline_us;

static void deadline(void *ctx, int64_t deadline_us)
{
	(void)ctx;
	told_deadline_us = deadline_us;
}

static void over(void **state)
{
	struct rig *rig = *state;
	int64_t began_us = rig->now_us;

	rig_disconnect(rig);
	rig_forget(rig);
	rig_run(rig, 14670 * MS - 1);
	rig_expect_told(rig, "");
	assert_true(session_lease_is_valid(&rig->lc));
	rig_run(rig, 1);
	assert_int_equal(rig->now_us, began_us + 14670 * MS);
	rig_expect_told(rig, "over");
	assert_false(session_lease_is_valid(&rig->lc));
}

/* The loop was late: a lease that ended before the answer was seen is over. */
static void over_before_the_answer(void **state)
{
	struct rig *rig = *state;

	heartbeat_send(&rig->lc);
	rig->now_us += 20 * SECOND;
	rig_forget(rig);
	rig_answer_version(rig, 1);
	rig_expect_told(rig, "alive, over, beaten");
}

static void three_steps(void **state)
{
	struct rig *rig = *state;
	int64_t began_us = rig->now_us;

	rig->lc.config.deadline = deadline;
	for (int i = 1; i <= 3; i++) {
		rig->now_us = began_us + i * 2 * SECOND;
		session_wrote(&rig->lc, rig->now_us);
		/* The lease counts from two steps back. Before i == 3 that is no more than the
		 * connection gave. */
		rig_expect_told(rig, i == 1 ? "alive" : i == 2 ? "alive" : "alive, extended");
	}
	assert_int_equal(told_deadline_us, began_us + 2 * SECOND + 14670 * MS);
	rig_disconnect(rig);
	rig_forget(rig);
	rig->now_us = told_deadline_us - 1;
	rig_run(rig, 0);
	assert_string_equal(rig->told, "");
	rig_run(rig, 1);
	rig_expect_told(rig, "over");
}

/* The lease is too old for a grant: a heartbeat goes out first. */
static void not_fresh(void **state)
{
	struct rig *rig = *state;

	rig->now_us += 13 * SECOND;
	assert_true(session_lease_is_valid(&rig->lc));
	assert_false(session_may_grant(&rig->lc));
	rig_expect_sent(rig, "set " NODE " ''");
	assert_false(session_may_grant(&rig->lc));
	rig_expect_sent(rig, "");
}

/* The next server grants a shorter timeout, so the lease is shorter, too. */
static void less_is_granted(void **state)
{
	struct rig *rig = *state;

	rig->lc.config.deadline = deadline;
	rig_disconnect(rig);
	rig_accept(rig, RIG_SESSION, 10 * SECOND);
	assert_int_equal(told_deadline_us, rig->now_us + 9680 * MS);
	rig_forget(rig);
	rig_disconnect(rig);
	rig_forget(rig);
	rig_expect_told_after(rig, 9680 * MS, "over");
}

/* ---- renewals ---- */

static bool needs_scout(struct rig *rig)
{
	return rig->port_events->needs_scout(&rig->lc);
}

static void renews(struct rig *rig)
{
	rig->port_events->renews(&rig->lc);
}

static void a_renewal_ends_the_lease(void **state)
{
	struct rig *rig = *state;

	rig->lc.config.deadline = deadline;
	rig_disconnect(rig);
	rig_forget(rig);
	renews(rig);
	assert_int_equal(told_deadline_us, rig->now_us + 4690 * MS);
	rig_expect_told_after(rig, 4690 * MS, "over");
	assert_false(session_lease_is_valid(&rig->lc));
}

/* The loop was late, and so is the answer. */
static void a_late_answer_revives_nothing(void **state)
{
	struct rig *rig = *state;

	rig_disconnect(rig);
	renews(rig);
	rig->now_us += 5 * SECOND;
	rig_forget(rig);
	rig->port_events->connected(&rig->lc, &(struct ensemble_session){.id = RIG_SESSION},
	                            RIG_TIMEOUT_US, rig->now_us - 5 * SECOND);
	rig_expect_told(rig, "over");
	rig_forget(rig);
}

/* The guardian does not act on a doubt before it is certain, and on a renewal at once. */
static void a_renewal_in_doubt(void **state)
{
	struct rig *rig = *state;

	rig->lc.config.deadline = deadline;
	rig_doubt(rig);
	rig_disconnect(rig);
	rig_forget(rig);
	renews(rig);
	assert_int_equal(told_deadline_us, rig->now_us + 4690 * MS);
}

static void a_scout_goes_for_who_holds_or_waits(void **state)
{
	struct rig *rig = *state;

	rig_disconnect(rig);
	assert_false(needs_scout(rig));
	session_set_busy(&rig->lc, true);
	assert_true(needs_scout(rig));
	/* Also when no lease is left: who waits is to have a whole one. */
	rig_run(rig, 60 * SECOND);
	assert_true(needs_scout(rig));
	rig_forget(rig);
}

/* A renewal had ended the lease. Its answer gives the lease back to those who come then, and the
 * end of that is told. */
static void a_lease_that_comes_back_ends(void **state)
{
	struct rig *rig = *state;

	rig_disconnect(rig);
	renews(rig);
	rig_run(rig, 5 * SECOND);
	assert_false(session_lease_is_valid(&rig->lc));
	rig->port_events->connected(&rig->lc, &(struct ensemble_session){.id = RIG_SESSION},
	                            RIG_TIMEOUT_US, rig->now_us - 5 * SECOND);
	assert_true(session_lease_is_valid(&rig->lc));
	rig_disconnect(rig);
	rig_forget(rig);
	rig_expect_told_after(rig, 9670 * MS, "over");
}

/* However long the scout took: the server that gets the renewal has half of the lease, or F/5. */
static void a_renewal_has_its_own_time(void **state)
{
	static const struct {
		int64_t scout_us, time_us;
	} rows[] = {{2900 * MS, 4690 * MS / 2}, {13500 * MS, SECOND}};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct rig *rig;

		set_up_ready(state);
		rig = *state;
		session_set_busy(&rig->lc, true);
		rig_disconnect(rig);
		rig_run(rig, rows[i].scout_us);
		renews(rig);
		rig_forget(rig);
		rig_expect_sent_after(rig, rows[i].time_us, "drop");
		rig_forget(rig);
		tear_down(state);
	}
}

/* A hung server is given up after F/5. */
static void a_late_renewal_makes_impatient(void **state)
{
	struct rig *rig = *state;

	rig_disconnect(rig);
	renews(rig);
	rig_connect(rig, RIG_SESSION);
	rig->in_use = true;
	session_set_busy(&rig->lc, true);
	rig_answer_version(rig, 1);
	rig_expect_reported(rig, "never answered when it was to renew the session");
	rig_answer_version(rig, 2);
	rig_disconnect(rig);
	rig_forget(rig);
	rig_expect_sent_after(rig, SECOND, "drop");
	rig_forget(rig);
}

/* Nobody needs the session: a new one has all of its lease. */
static void leaves_a_session_with_a_late_renewal(void **state)
{
	struct rig *rig = *state;

	rig_disconnect(rig);
	renews(rig);
	rig_connect(rig, RIG_SESSION);
	rig_forget(rig);
	rig->in_use = true;
	rig_answer_version(rig, 1);
	rig_answer_version(rig, 2);
	rig_run(rig, 0);
	rig_expect_sent(rig, "set " NODE " ''");
	heartbeat_send(&rig->lc);
	rig->in_use = false;
	rig_answer_version(rig, 3);
	rig_forget(rig);
	rig_run(rig, 0);
	rig_expect_sent(rig, "close, open 15 s");
	rig_expect_told(rig, "ended");
	assert_false(lease_expects_late_renewal(&rig->session.lease));
}

/* A server grants more than was asked for. The next process asks for the same again, and the
 * session is no longer than that from then on. */
static void no_more_than_was_asked_for(void **state)
{
	struct rig *rig = *state;

	rig->lc.config.deadline = deadline;
	rig_accept(rig, RIG_SESSION, 30 * SECOND);
	rig_find_home(rig);
	rig_answer_version(rig, 0);
	assert_int_equal(told_deadline_us, rig->now_us + 14670 * MS);
	assert_int_equal(rig->session.lease.timeout_us, RIG_TIMEOUT_US);
	rig_forget(rig);
}

/* ---- doubt ---- */

static void doubted(void **state)
{
	struct rig *rig = *state;

	assert_false(lc_doubted(&rig->lc));
	rig_doubt(rig);
	rig_expect_sent(rig, "drop");
	rig_expect_reported(rig, "the clock may have stood still");
	assert_int_equal(rig->lc.counters.clock_doubts, 1);
	assert_false(session_may_grant(&rig->lc));
	rig_disconnect(rig);
	rig_forget(rig);
	/* Servers are tried more quickly. */
	rig_expect_sent_after(rig, 500 * MS, "drop");
	rig_connect(rig, RIG_SESSION);
	rig_expect_sent(rig, "set " NODE " ''");
	rig_answer_version(rig, 1);
	rig_expect_told(rig, "alive, beaten resumed");
	/* The second write goes behind what the layers above have asked for. */
	assert_true(lc_doubted(&rig->lc));
	rig_expect_sent(rig, "set " NODE " ''");
	rig_answer_version(rig, 2);
	assert_false(lc_doubted(&rig->lc));
	assert_true(session_may_grant(&rig->lc));
}

/* The next server is not waited for as long as usual, either. */
static void doubted_without_contact(void **state)
{
	struct rig *rig = *state;

	rig_disconnect(rig);
	rig_forget(rig);
	rig_doubt(rig);
	rig_expect_sent(rig, "drop");
	rig_expect_sent_after(rig, 500 * MS, "drop");
	rig_run(rig, 500 * MS);
	rig_expect_sent(rig, "drop");
}

static void doubt_ends_the_lease(void **state)
{
	struct rig *rig = *state;

	rig->lc.config.deadline = deadline;
	rig_doubt(rig);
	rig_disconnect(rig);
	rig_forget(rig);
	rig_run(rig, 2 * SECOND - 1);
	assert_true(lc_doubted(&rig->lc));
	rig_expect_told(rig, "");
	rig_run(rig, 1);
	rig_expect_told(rig, "over");
	assert_int_equal(told_deadline_us, rig->now_us);
	assert_false(lc_doubted(&rig->lc));
	assert_false(session_lease_is_valid(&rig->lc));
}

/* A write that was sent before the doubt does not end it. */
static void doubt_is_not_ended_by_an_older_write(void **state)
{
	struct rig *rig = *state;
	int64_t before_us = rig->now_us;

	rig_doubt(rig);
	session_wrote(&rig->lc, before_us);
	assert_true(lc_doubted(&rig->lc));
	rig_forget(rig);
}

/* By the clock, the connection began at the moment of the doubt: it proves nothing. */
static void doubt_wants_a_later_connection(void **state)
{
	struct rig *rig = *state;

	rig_doubt(rig);
	rig_disconnect(rig);
	rig_forget(rig);
	rig_connect(rig, RIG_SESSION);
	rig_expect_sent(rig, "drop");
	rig_disconnect(rig);
	rig->now_us++;
	rig_connect(rig, RIG_SESSION);
	rig_expect_sent(rig, "set " NODE " ''");
	rig_answer_version(rig, 1);
	rig_expect_sent(rig, "set " NODE " ''");
	rig_answer_version(rig, 2);
	assert_false(lc_doubted(&rig->lc));
	rig_forget(rig);
}

/* The proof is refused right after the doubt: it is tried again after a second, though the last
 * step was less than a period ago. */
static void doubt_and_a_refusal(void **state)
{
	struct rig *rig = *state;

	rig_doubt_now(rig);
	rig_disconnect(rig);
	rig->now_us += MS;
	rig_connect(rig, RIG_SESSION);
	rig_forget(rig);
	rig_answer_error(rig, ENSEMBLE_REFUSED);
	rig_forget(rig);
	rig_expect_sent_after(rig, SECOND, "set " NODE " ''");
}

/* ---- the servers' limits ---- */

/* A server would grant less, and the session may come to it: the lease counts with that at once, in
 * this session and the next one. A longer limit changes nothing. */
static void sessions_are_limited(void **state)
{
	struct rig *rig = *state;

	rig->lc.config.deadline = deadline;
	lc_limit_session(&rig->lc, 40 * SECOND);
	assert_int_equal(rig->session.lease.timeout_us, 15 * SECOND);
	lc_limit_session(&rig->lc, 9 * SECOND);
	assert_int_equal(rig->session.lease.timeout_us, 9 * SECOND);
	assert_int_equal(told_deadline_us, rig->now_us + 8682 * MS);
	lc_limit_session(&rig->lc, 10 * SECOND);
	rig_disconnect(rig);
	rig_forget(rig);
	rig_expect_told_after(rig, 8682 * MS, "over");
	rig_end_session(rig, false);
	rig_connect(rig, RIG_SESSION + 1);
	assert_int_equal(rig->session.lease.timeout_us, 9 * SECOND);
	rig_forget(rig);
}

static void sessions_are_too_limited(void **state)
{
	struct rig *rig = *state;

	lc_limit_session(&rig->lc, 4 * SECOND);
	rig_expect_reported(rig, "the ensemble grants a session of 4000 ms; with a tick of 2000 "
	                         "ms the lease needs 5000 ms at least");
	rig_expect_told(rig, "unusable ERANGE");
	rig_run(rig, 0);
	rig_forget(rig);
}

/* ---- the servers' ticks ---- */

/* A lease that no step has moved is good with any tick. */
static void ticks_are_longer(void **state)
{
	struct rig *rig = *state;

	lc_raise_tick(&rig->lc, 2 * SECOND);
	lc_raise_tick(&rig->lc, SECOND);
	assert_int_equal(lease_spacing(&rig->session.lease), 1250 * MS);
	lc_raise_tick(&rig->lc, 3 * SECOND);
	assert_string_equal(rig->reported, "");
	rig_expect_sent(rig, "");
	assert_true(session_may_grant(&rig->lc));
	session_set_busy(&rig->lc, true);
	rig_forget(rig);
	rig_expect_sent_after(rig, 1750 * MS, "set " NODE " ''");
}

/* Steps that were too near to each other prove nothing. */
static void ticks_are_longer_than_the_steps(void **state)
{
	struct rig *rig = *state;

	rig->lc.config.deadline = deadline;
	for (int i = 1; i <= 3; i++) {
		rig->now_us += 2 * SECOND;
		session_wrote(&rig->lc, rig->now_us);
	}
	rig_forget(rig);
	lc_raise_tick(&rig->lc, 3 * SECOND);
	rig_expect_reported(rig, "the tickTime of the servers has grown: held locks are in doubt "
	                         "until the ensemble answers again");
	rig_expect_sent(rig, "drop");
	assert_true(lc_doubted(&rig->lc));
	assert_int_equal(rig->lc.counters.clock_doubts, 0);
	rig_disconnect(rig);
	rig_forget(rig);
	rig->now_us++;
	rig_connect(rig, RIG_SESSION);
	rig_expect_sent(rig, "set " NODE " ''");
	rig_answer_version(rig, 1);
	rig_expect_sent(rig, "set " NODE " ''");
	rig_answer_version(rig, 2);
	assert_false(lc_doubted(&rig->lc));
	assert_int_equal(told_deadline_us, rig->now_us + 14670 * MS);
	rig_forget(rig);
}

static void ticks_are_too_long_for_the_session(void **state)
{
	struct rig *rig = *state;

	lc_raise_tick(&rig->lc, 10 * SECOND);
	rig_expect_reported(rig, "the ensemble grants a session of 15000 ms; with a tick of 10000 "
	                         "ms the lease needs 19000 ms at least");
	rig_expect_told(rig, "unusable ERANGE");
	lc_raise_tick(&rig->lc, 20 * SECOND);
	rig_expect_told(rig, "");
}

/* The next process reads the session from its record. */
static void restore(struct rig *rig, struct codec *reads)
{
	const struct session_events *events = rig->session.events;
	struct codec codec = {0};

	session_save_load(&codec, &rig->lc);
	reads->loads = true;
	codec_read(reads, codec.data, codec.len);
	session_finish(&rig->lc, false);
	session_free(&rig->lc);
	rig->session = (struct session){0};
	rig->home = (struct home){0};
	rig_forget(rig);
	assert_int_equal(session_restore(&rig->lc, events, reads), 0);
	codec_end(&codec);
}

/* The options of the next process say so. */
static void ticks_are_longer_for_the_next_process(void **state)
{
	struct rig *rig = *state;
	struct codec reads = {0};

	for (int i = 1; i <= 3; i++) {
		rig->now_us += 2 * SECOND;
		session_wrote(&rig->lc, rig->now_us);
	}
	rig->lc.config.tick_time_us = 3 * SECOND;
	restore(rig, &reads);
	assert_null(reads.bad);
	session_reopen(&rig->lc);
	rig_expect_reported(rig, "the tickTime of the servers has grown");
	assert_int_equal(lease_spacing(&rig->session.lease), 1750 * MS);
	assert_true(lc_doubted(&rig->lc));
	rig_expect_told_after(rig, 2 * SECOND, "over");
	rig_forget(rig);
}

/* What the process before asked for does not matter, but what the session has. */
static void a_session_is_as_long_as_it_was(void **state)
{
	struct rig *rig = *state;
	struct codec as_long = {0}, shorter = {0}, after_a_crash = {.crashed = true};

	rig->lc.config.session_timeout_us = 30 * SECOND;
	restore(rig, &as_long);
	rig->lc.config.session_timeout_us = 15 * SECOND;
	restore(rig, &as_long);
	assert_null(as_long.bad);
	rig->lc.config.session_timeout_us = 15 * SECOND - MS;
	restore(rig, &shorter);
	assert_string_equal(shorter.bad, "a session_timeout of 14999 ms needs a restart: the locks "
	                                 "rest on a session of 15000 ms");
	restore(rig, &after_a_crash);
	assert_null(after_a_crash.bad);
}

/* They are known before there is a session. */
static void ticks_are_longer_from_the_start(void **state)
{
	struct rig *rig = *state;

	lc_raise_tick(&rig->lc, 4 * SECOND);
	assert_string_equal(rig->reported, "");
	rig_accept(rig, RIG_SESSION, 8 * SECOND);
	assert_non_null(strstr(rig->reported, "the ensemble grants a session of 8000 ms, and "
	                                      "15000 ms were asked for"));
	rig_expect_reported(rig, "the ensemble grants a session of 8000 ms; with a tick of 4000 ms "
	                         "the lease needs 9000 ms at least");
	rig_expect_told(rig, "unusable ERANGE");
	rig_forget(rig);
}

#define READY(test) cmocka_unit_test_setup_teardown(test, set_up_ready, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		READY(beats_slowly_when_idle),
		READY(beats_quickly_when_busy),
		READY(beats_after_the_last_write),
		READY(one_at_a_time),
		READY(tells_the_clock),
		READY(one_without_answer),
		READY(gives_up_a_server_that_hangs),
		READY(node_removed),
		READY(root_removed),
		READY(over),
		READY(over_before_the_answer),
		READY(three_steps),
		READY(not_fresh),
		READY(less_is_granted),
		READY(a_renewal_ends_the_lease),
		READY(a_late_answer_revives_nothing),
		READY(a_renewal_in_doubt),
		READY(a_scout_goes_for_who_holds_or_waits),
		READY(a_lease_that_comes_back_ends),
		cmocka_unit_test(a_renewal_has_its_own_time),
		READY(a_late_renewal_makes_impatient),
		READY(leaves_a_session_with_a_late_renewal),
		cmocka_unit_test_setup_teardown(no_more_than_was_asked_for, set_up, tear_down),
		READY(ticks_are_longer),
		READY(ticks_are_longer_than_the_steps),
		READY(ticks_are_too_long_for_the_session),
		READY(sessions_are_limited),
		READY(sessions_are_too_limited),
		READY(ticks_are_longer_for_the_next_process),
		READY(a_session_is_as_long_as_it_was),
		cmocka_unit_test_setup_teardown(ticks_are_longer_from_the_start, set_up, tear_down),
		READY(doubted),
		READY(doubted_without_contact),
		READY(doubt_ends_the_lease),
		READY(doubt_wants_a_later_connection),
		READY(doubt_is_not_ended_by_an_older_write),
		READY(doubt_and_a_refusal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
