/* SPDX-License-Identifier: MIT
 *
 * The lease: which answers are evidence, and the exact microsecond up to which
 * the mount may rely on its session. The numbers are written out, not computed
 * from the code's own constants: for T = 15 s and tick = 2 s,
 *
 *   w = 2 s / 2 + 0.25 s = 1.25 s      0.998 T - g = 14.97 s - 0.3 s = 14.67 s
 */
#include "pure/lease.h"

#include "unit.h"

#define MS INT64_C(1000)
#define S INT64_C(1000000)

#define TICK (2 * S)
#define T (15 * S)
#define W (1250 * MS)
#define GRANT (14670 * MS)

/* Some moment; a clock that starts at 0 would hide a forgotten term. */
#define START (1000 * S + 7)

static struct lease connected(int64_t connect_us)
{
	struct lease lease;

	lease_begin(&lease, TICK, 0);
	lease_connected(&lease, T, connect_us);
	return lease;
}

/* The deadline, found by asking, since the field is the lease's own. */
static void expect_deadline(const struct lease *lease, int64_t deadline_us)
{
	assert_int_equal(lease_left(lease, deadline_us - 1), 1);
	assert_int_equal(lease_left(lease, deadline_us), 0);
	assert_int_equal(lease_left(lease, deadline_us + 1), 0);
}

static void expect_nothing(const struct lease *lease)
{
	assert_int_equal(lease_left(lease, 0), 0);
	assert_int_equal(lease_left(lease, START), 0);
	assert_int_equal(lease_left(lease, INT64_MIN), 0);
	assert_false(lease_fresh(lease, 0));
	assert_false(lease_fresh(lease, START));
}

static void nothing_is_proved_at_first(void **state)
{
	struct lease lease;

	(void)state;
	lease_begin(&lease, TICK, 0);
	expect_nothing(&lease);
}

static void being_connected_proves_nothing(void **state)
{
	struct lease lease = connected(START);

	(void)state;
	expect_nothing(&lease);
	lease_connected(&lease, T, START + S);
	expect_nothing(&lease);
}

static void first_write_proves_the_connection(void **state)
{
	struct lease lease = connected(START);

	(void)state;
	assert_true(lease_answered(&lease, START + 200 * MS, START + 900 * MS));
	/* It counts from before connect(), and not from the sending or the answer. */
	expect_deadline(&lease, START + GRANT);
	assert_int_equal(lease_left(&lease, START), GRANT);
}

static void second_write_proves_it_no_further(void **state)
{
	struct lease lease = connected(START);

	(void)state;
	lease_answered(&lease, START, START);
	assert_false(lease_answered(&lease, START + 1, START + 2));
	assert_false(lease_answered(&lease, START + 10 * S, START + 10 * S));
	expect_deadline(&lease, START + GRANT);
}

static void third_step_counts_from_the_first(void **state)
{
	struct lease lease = connected(START);
	const int64_t first = START + 100 * MS, second = START + 2 * S, third = START + 4 * S;

	(void)state;
	assert_true(lease_answered(&lease, first, first + 50 * MS));
	assert_false(lease_answered(&lease, second, second + 60 * MS));
	expect_deadline(&lease, START + GRANT);
	assert_true(lease_answered(&lease, third, third + 70 * MS));
	expect_deadline(&lease, first + GRANT);
}

static void each_further_step_counts_from_two_before(void **state)
{
	struct lease lease = connected(START);
	int64_t sent[40], now = START;

	(void)state;
	for (int i = 0; i < 40; i++) {
		sent[i] = now;
		now += 30 * MS + i;
		lease_answered(&lease, sent[i], now);
		expect_deadline(&lease, (i < 2 ? START : sent[i - 2]) + GRANT);
		now += W + i % 3;
	}
}

/* One write after a step, sent that long after the step's answer: is it a step? */
static bool is_step(int64_t after_answer_us)
{
	struct lease lease = connected(START);
	const int64_t sent = START + S, answered = START + 2 * S;
	const int64_t next = answered + after_answer_us;
	const int64_t last = answered + 3 * W;

	lease_answered(&lease, sent, answered);
	lease_answered(&lease, next, next + 10);
	return lease_answered(&lease, last, last + 10);
}

static void steps_are_spaced_from_answer_to_sending(void **state)
{
	static const struct {
		int64_t after_us;
		bool step;
	} rows[] = {
		{-S, false}, /* sent together with the step */
		{-1, false},    {0, false},
		{W - S, false}, /* w after the sending, not after the answer */
		{W - 1, false}, {W, true},
		{W + 1, true},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++)
		expect(is_step(rows[i].after_us) == rows[i].step, "sent %lld us after the answer",
		       (long long)rows[i].after_us);
}

/* A stalled link: heartbeats that were sent at the right distance are answered all at once. Only
 * the first answer proves anything new. */
static void piled_up_answers_are_one_step(void **state)
{
	struct lease lease = connected(START);
	const int64_t first = START + 10 * MS, second = first + 2 * S, stalled = second + 2 * S;
	const int64_t burst = stalled + 8 * S;

	(void)state;
	lease_answered(&lease, first, first + 5 * MS);
	lease_answered(&lease, second, second + 5 * MS);
	assert_true(lease_answered(&lease, stalled, burst));
	expect_deadline(&lease, first + GRANT);
	for (int i = 1; i < 7; i++)
		assert_false(lease_answered(&lease, stalled + i * W, burst));
	expect_deadline(&lease, first + GRANT);

	/* The spacing now counts from the burst. */
	assert_false(lease_answered(&lease, burst + W - 1, burst + W));
	expect_deadline(&lease, first + GRANT);
	assert_true(lease_answered(&lease, burst + W, burst + W));
	expect_deadline(&lease, second + GRANT);
}

/* A write that is no step does not move the point the next one is measured from. */
static void writes_between_do_not_delay_steps(void **state)
{
	struct lease lease = connected(START);
	int64_t first = START + 1, at = first;

	(void)state;
	lease_answered(&lease, first, first);
	for (int step = 1; step < 3; step++) {
		for (int i = 1; i < 10; i++)
			assert_false(lease_answered(&lease, at + i * W / 10, at + i * W / 10));
		at += W;
		assert_int_equal(lease_answered(&lease, at, at), step == 2);
	}
	expect_deadline(&lease, first + GRANT);
}

static void a_new_connection_is_proved_by_its_second_write(void **state)
{
	struct lease lease = connected(START);
	const int64_t again = START + 9 * S;

	(void)state;
	lease_answered(&lease, START, START);
	lease_connected(&lease, T, again);
	expect_deadline(&lease, START + GRANT);
	/* The entries of holders are read behind it. */
	assert_false(lease_answered(&lease, again, again + 1));
	expect_deadline(&lease, START + GRANT);
	/* Too soon after a step to be one, and yet it proves the connection. */
	assert_true(lease_answered(&lease, again + 2, again + 3));
	expect_deadline(&lease, again + GRANT);
	assert_false(lease_answered(&lease, again + 4, again + 5));
	expect_deadline(&lease, again + GRANT);
}

static void connections_without_a_write_do_not_add_up(void **state)
{
	struct lease lease = connected(START);

	(void)state;
	lease_answered(&lease, START, START);
	for (int i = 1; i < 10; i++) {
		lease_connected(&lease, T, START + i * S);
		expect_deadline(&lease, START + GRANT);
	}
	assert_false(lease_answered(&lease, START + 9 * S, START + 10 * S));
	expect_deadline(&lease, START + GRANT);
	assert_true(lease_answered(&lease, START + 10 * S, START + 11 * S));
	expect_deadline(&lease, START + 9 * S + GRANT);
}

static void evidence_never_takes_back(void **state)
{
	struct lease lease = connected(START);
	const int64_t late = START + 30 * S;

	(void)state;
	for (int i = 0; i < 3; i++)
		lease_answered(&lease, late + 2 * i * S, late + 2 * i * S);
	expect_deadline(&lease, late + GRANT);
	/* A connection that was begun long ago, and is accepted only now. */
	lease_connected(&lease, T, late - 5 * S);
	assert_false(lease_answered(&lease, late + 4 * S + 1, late + 4 * S + 2));
	expect_deadline(&lease, late + GRANT);
}

static void deadline_is_exact(void **state)
{
	static const struct {
		int64_t timeout_us, grant_us;
	} rows[] = {
		{15 * S, 14670000},   {5 * S, 4690000},     {40 * S, 39620000},   {10 * S, 9680000},
		{4869 * MS, 4559262}, {6001 * MS, 5688998}, {120 * S, 119460000},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct lease lease;

		lease_begin(&lease, TICK, 0);
		lease_connected(&lease, rows[i].timeout_us, START);
		lease_answered(&lease, START + 1, START + 2);
		expect_deadline(&lease, START + rows[i].grant_us);
	}
}

static void a_smaller_timeout_takes_back(void **state)
{
	struct lease lease = connected(START);

	(void)state;
	lease_answered(&lease, START, START);
	lease_connected(&lease, 10 * S, START + S);
	assert_int_equal(lease.timeout_us, 10 * S);
	/* 14.97 s - 9.98 s less, at once and before anything is answered. */
	expect_deadline(&lease, START + GRANT - 4990 * MS);
	assert_false(lease_answered(&lease, START + S, START + S + 1));
	assert_true(lease_answered(&lease, START + S + 2, START + S + 3));
	expect_deadline(&lease, START + S + 9680 * MS);
	/* Another server may be more generous: this session's T stays. */
	lease_connected(&lease, 40 * S, START + 2 * S);
	assert_int_equal(lease.timeout_us, 10 * S);
	expect_deadline(&lease, START + S + 9680 * MS);
	assert_false(lease_answered(&lease, START + 2 * S, START + 2 * S + 1));
	assert_true(lease_answered(&lease, START + 2 * S + 2, START + 2 * S + 3));
	expect_deadline(&lease, START + 2 * S + 9680 * MS);
}

static void a_smaller_timeout_with_nothing_proved(void **state)
{
	struct lease lease = connected(START);

	(void)state;
	lease_connected(&lease, 10 * S, START + 1);
	expect_nothing(&lease);
	assert_true(lease_answered(&lease, START + 1, START + 1));
	expect_deadline(&lease, START + 1 + 9680 * MS);
}

static void a_new_session_starts_from_nothing(void **state)
{
	struct lease lease = connected(START);

	(void)state;
	for (int i = 0; i < 3; i++)
		lease_answered(&lease, START + 2 * i * S, START + 2 * i * S);
	lease_begin(&lease, TICK, 0);
	expect_nothing(&lease);
	assert_int_equal(lease.timeout_us, 0);
	/* Neither the old T nor the old steps are left. */
	lease_connected(&lease, 40 * S, START + 10 * S);
	assert_int_equal(lease.timeout_us, 40 * S);
	assert_true(lease_answered(&lease, START + 10 * S, START + 10 * S));
	expect_deadline(&lease, START + 10 * S + 39620 * MS);
	assert_false(lease_answered(&lease, START + 12 * S, START + 12 * S));
}

static void expect_an_eighth(int64_t lead_us)
{
	const int64_t deadline = START + GRANT - lead_us;
	struct lease lease;

	lease_begin(&lease, TICK, lead_us);
	lease_connected(&lease, T, START);
	lease_answered(&lease, START, START);
	assert_true(lease_fresh(&lease, START));
	assert_true(lease_fresh(&lease, deadline - 1875 * MS));
	assert_false(lease_fresh(&lease, deadline - 1875 * MS + 1));
	assert_false(lease_fresh(&lease, deadline - 1));
	assert_false(lease_fresh(&lease, deadline));
	assert_false(lease_fresh(&lease, deadline + 3600 * S));
}

/* An eighth of T must be left before the lead: in the lead, a new holder would be stopped. */
static void fresh_is_an_eighth(void **state)
{
	(void)state;
	expect_an_eighth(0);
	expect_an_eighth(800 * MS);
	expect_an_eighth(2500 * MS);
}

/* A short T, where T/8 = 0.625 s is less than the next step takes: w and 50 ms for its
 * answer. A lock that is granted on less would be lost before that step. */
static void fresh_lasts_until_the_next_step(void **state)
{
	const int64_t deadline = START + 4690 * MS;

	(void)state;
	for (int i = 0; i < 4; i++) {
		const int64_t late = i % 2, lead = i / 2 * 200 * MS;
		const int64_t latest = deadline - lead - 1300 * MS;
		struct lease lease;

		lease_begin(&lease, TICK, lead);
		lease_connected(&lease, 5 * S, START);
		lease_answered(&lease, START, START);
		assert_true(lease_fresh(&lease, START));
		lease_answered(&lease, START + W, START + W);
		assert_true(lease_fresh(&lease, START + W));
		assert_false(lease_answered(&lease, START + 2 * W, latest + late));
		expect_deadline(&lease, deadline);
		assert_int_equal(lease_fresh(&lease, latest + late), !late);
	}
}

static void distances(void **state)
{
	static const struct {
		int64_t tick_us, timeout_us, spacing_us, holding_us, idle_us, answer_timeout_us;
	} rows[] = {
		{2 * S, 15 * S, 1250 * MS, 1250 * MS, 2500 * MS, 3 * S},
		{2 * S, 40 * S, 1250 * MS, 1250 * MS, 6666666, 8 * S},
		/* T/6 is less than w: heartbeats closer than w would be no steps. */
		{2 * S, 6 * S, 1250 * MS, 1250 * MS, 1250 * MS, 1200 * MS},
		{2 * S, 7500 * MS, 1250 * MS, 1250 * MS, 1250 * MS, 1500 * MS},
		{2 * S, 7506 * MS, 1250 * MS, 1250 * MS, 1251 * MS, 1501200},
		{500 * MS, 6 * S, 500 * MS, 500 * MS, S, 1200 * MS},
		{3 * S, 30 * S, 1750 * MS, 1750 * MS, 5 * S, 6 * S},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct lease lease;

		lease_begin(&lease, rows[i].tick_us, 0);
		lease_connected(&lease, rows[i].timeout_us, START);
		assert_int_equal(lease_spacing(&lease), rows[i].spacing_us);
		assert_int_equal(lease_heartbeat(&lease, true), rows[i].holding_us);
		assert_int_equal(lease_heartbeat(&lease, false), rows[i].idle_us);
		assert_int_equal(lease_answer_timeout(&lease), rows[i].answer_timeout_us);
	}
}

static void which_timeouts_are_possible(void **state)
{
	static const struct {
		int64_t timeout_us, tick_us, lead_us;
		bool possible;
	} rows[] = {
		{15 * S, 2 * S, 0, true},
		{4 * S, 2 * S, 0, false},
		{5 * S, 2 * S, 0, true},
		/* 0.998 T - 4.25 s against T/8, a millisecond to each side. */
		{4868 * MS, 2 * S, 0, false},
		{4869 * MS, 2 * S, 0, true},
		{0, 2 * S, 0, false},
		{S, 2 * S, 0, false},
		{2 * S, 100 * MS, 0, true},
		{S, 100 * MS, 0, false},
		{15 * S, 7 * S, 0, true},
		{15 * S, 8 * S, 0, false},
		{3600 * S, 2 * S, 0, true},
		/* With a lead: losers are stopped before the deadline. */
		{15 * S, 2 * S, 2500 * MS, true},
		{7731 * MS, 2 * S, 2500 * MS, false},
		{7732 * MS, 2 * S, 2500 * MS, true},
		{5 * S, 2 * S, 800 * MS, false},
		{6 * S, 2 * S, 800 * MS, true},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++)
		expect(lease_possible(rows[i].timeout_us, rows[i].tick_us, rows[i].lead_us) ==
		               rows[i].possible,
		       "T = %lld us, tick = %lld us, lead = %lld us", (long long)rows[i].timeout_us,
		       (long long)rows[i].tick_us, (long long)rows[i].lead_us);
}

static void smallest_timeout(void **state)
{
	static const struct {
		int64_t tick_us, lead_us, timeout_us;
	} rows[] = {
		{100 * MS, 0, 2 * S},      {S, 0, 4 * S},       {2 * S, 0, 5 * S},
		{3 * S, 0, 7 * S},         {10 * S, 0, 19 * S}, {2 * S, 800 * MS, 6 * S},
		{2 * S, 2500 * MS, 8 * S},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const int64_t tick = rows[i].tick_us, lead = rows[i].lead_us;
		const int64_t timeout = rows[i].timeout_us;

		assert_int_equal(lease_smallest_timeout(tick, lead), timeout);
		assert_true(lease_possible(timeout, tick, lead));
		assert_false(lease_possible(timeout - S, tick, lead));
	}
}

/* Rule 4 of lockcore/RULES.md for the default values: heartbeats at the pace that
 * lease_heartbeat() keeps while somebody holds, with 50 ms for each answer. */
static void twelve_seconds_of_silence(void **state)
{
	struct lease lease = connected(START);
	int64_t sent = START, answered = START;

	(void)state;
	for (int i = 0; i < 10; i++) {
		answered = sent + 50 * MS;
		lease_answered(&lease, sent, answered);
		if (i >= 2) {
			assert_int_equal(lease_left(&lease, answered), 12020 * MS);
			/* The worst moment: right before the next answer. */
			assert_int_equal(lease_left(&lease, answered + W + 50 * MS), 10720 * MS);
			assert_true(lease_fresh(&lease, answered + W + 50 * MS));
		}
		sent = answered + lease_heartbeat(&lease, true);
	}
}

/* Connected and proved at START, and in doubt since `doubt_us`. */
static struct lease doubted(int64_t doubt_us)
{
	struct lease lease = connected(START);

	lease_answered(&lease, START, START);
	lease_doubt(&lease, doubt_us);
	return lease;
}

static void a_doubt_lasts_for_two_seconds(void **state)
{
	const int64_t since = START + 3 * S;
	struct lease lease = doubted(since);

	(void)state;
	assert_true(lease_doubted(&lease, since));
	assert_false(lease_fresh(&lease, since));
	expect_deadline(&lease, since + 2 * S);
	assert_true(lease_doubted(&lease, since + 2 * S - 1));
	assert_false(lease_doubted(&lease, since + 2 * S));
	/* Another reason for doubt does not make it longer. */
	lease_doubt(&lease, since + S);
	expect_deadline(&lease, since + 2 * S);
	lease_doubt(&lease, since + 3 * S);
	expect_deadline(&lease, since + 2 * S);
}

static void the_deadline_counts_in_doubt(void **state)
{
	struct lease lease = doubted(START + GRANT - S);

	(void)state;
	expect_deadline(&lease, START + GRANT);
	assert_false(lease_doubted(&lease, START + GRANT));
}

static void an_older_write_does_not_end_a_doubt(void **state)
{
	const int64_t since = START + 3 * S;
	struct lease lease = doubted(since);

	(void)state;
	assert_false(lease_answered(&lease, since - 1, since + 1));
	assert_false(lease_answered(&lease, since, since + 2));
	/* Sent after the doubt, but on the older connection: only a first step. */
	assert_false(lease_answered(&lease, since + 1, since + 3));
	assert_true(lease_doubted(&lease, since + 3));
	expect_deadline(&lease, since + 2 * S);
}

static void an_older_connection_does_not_end_a_doubt(void **state)
{
	const int64_t since = START + 3 * S;
	struct lease lease = doubted(since);

	(void)state;
	lease_connected(&lease, T, since);
	assert_false(lease_answered(&lease, since + 1, since + 2));
	assert_true(lease_doubted(&lease, since + 2));
	/* A connection that was accepted before the doubt, and is not proved yet. */
	lease = doubted(since);
	lease_connected(&lease, T, since + 1);
	lease_doubt(&lease, since + 2);
	assert_false(lease_answered(&lease, since + 3, since + 4));
	assert_false(lease_answered(&lease, since + 5, since + 6));
	assert_true(lease_doubted(&lease, since + 6));
}

static void a_new_connection_ends_a_doubt(void **state)
{
	const int64_t since = START + 3 * S;
	struct lease lease = doubted(since);

	(void)state;
	lease_connected(&lease, T, since + 1);
	assert_true(lease_doubted(&lease, since + 2));
	assert_false(lease_answered(&lease, since + 2, since + 3));
	assert_true(lease_doubted(&lease, since + 3));
	assert_true(lease_answered(&lease, since + 4, since + 5));
	assert_false(lease_doubted(&lease, since + 5));
	assert_true(lease_fresh(&lease, since + 5));
	expect_deadline(&lease, since + 1 + GRANT);
}

/* Two writes on one connection, and after the last doubt. */
static void both_writes_are_of_one_connection(void **state)
{
	const int64_t since = START + 3 * S;
	struct lease lease = doubted(since);

	(void)state;
	lease_connected(&lease, T, since + 1);
	assert_false(lease_answered(&lease, since + 2, since + 3));
	lease_connected(&lease, T, since + 4);
	assert_false(lease_answered(&lease, since + 5, since + 6));
	assert_true(lease_answered(&lease, since + 7, since + 8));
	expect_deadline(&lease, since + 4 + GRANT);
	lease = doubted(since);
	lease_connected(&lease, T, since + 1);
	assert_false(lease_answered(&lease, since + 2, since + 3));
	lease_doubt(&lease, since + 4);
	lease_connected(&lease, T, since + 5);
	assert_false(lease_answered(&lease, since + 6, since + 7));
	assert_true(lease_doubted(&lease, since + 7));
}

static void older_steps_do_not_count_after_a_doubt(void **state)
{
	const int64_t since = START + 6 * S;
	struct lease lease = connected(START);

	(void)state;
	for (int i = 0; i < 3; i++)
		lease_answered(&lease, START + 2 * i * S, START + 2 * i * S);
	lease_doubt(&lease, since);
	/* A write that was under way does not count, either. */
	assert_false(lease_answered(&lease, since - 1, since + 1));
	/* Nor does the first one behind which entries are read. */
	for (int i = 1; i <= 3; i++)
		assert_false(lease_answered(&lease, since + 2 * i * S, since + 2 * i * S));
	assert_int_equal(lease_left(&lease, since + 6 * S), 0);
	/* Three steps from after the doubt count. */
	assert_true(lease_answered(&lease, since + 8 * S, since + 8 * S));
	expect_deadline(&lease, since + 4 * S + GRANT);
}

/* It is answered when the doubt is over. */
static void an_older_write_is_no_step(void **state)
{
	const int64_t since = START + 3 * S;
	struct lease lease = doubted(since);

	(void)state;
	for (int i = 1; i <= 4; i++) {
		const int64_t at = since + 2 * i * S;

		assert_false(lease_answered(&lease, i == 1 ? since - 1 : at, at));
	}
	assert_true(lease_answered(&lease, since + 10 * S, since + 10 * S));
	expect_deadline(&lease, since + 6 * S + GRANT);
}

static void a_doubt_without_a_lease(void **state)
{
	struct lease lease = connected(START);

	(void)state;
	lease_doubt(&lease, START + 5);
	assert_false(lease_doubted(&lease, START + 5));
	expect_nothing(&lease);
	/* The next session may have been begun before the doubt, too. */
	lease_again(&lease);
	lease_connected(&lease, T, START + 4);
	assert_false(lease_answered(&lease, START + 6, START + 7));
	expect_nothing(&lease);
	lease_connected(&lease, T, START + 8);
	assert_true(lease_answered(&lease, START + 9, START + 10));
	expect_deadline(&lease, START + 8 + GRANT);
}

/* The ticks are of 3 s: w is 1.75 s, and steps by the other w are no evidence. The lease rests on
 * the connection, which the longer ticks do not touch. */
static void a_longer_tick_wants_new_steps(void **state)
{
	struct lease lease = connected(START);

	(void)state;
	assert_true(lease_answered(&lease, START, START));
	assert_false(lease_answered(&lease, START + W, START + W));
	assert_false(lease_raise_tick(&lease, 3 * S, START + W + 1));
	assert_int_equal(lease.doubt_us, INT64_MAX);
	expect_deadline(&lease, START + GRANT);
	assert_int_equal(lease_spacing(&lease), 1750 * MS);
	assert_false(lease_answered(&lease, START + 2 * S, START + 2 * S));
	assert_false(lease_answered(&lease, START + 3 * S, START + 3 * S));
	assert_false(lease_answered(&lease, START + 4 * S, START + 4 * S));
	assert_true(lease_answered(&lease, START + 6 * S, START + 6 * S));
	expect_deadline(&lease, START + 2 * S + GRANT);
}

/* It rests on steps that were too near to each other. */
static void a_longer_tick_after_three_steps_is_a_doubt(void **state)
{
	struct lease lease = connected(START);
	int64_t now = START + 3 * W;

	(void)state;
	for (int64_t at = START; at <= START + 3 * W; at += W)
		(void)lease_answered(&lease, at, at);
	expect_deadline(&lease, START + W + GRANT);
	assert_true(lease_raise_tick(&lease, 3 * S, now));
	assert_true(lease_doubted(&lease, now));
	expect_deadline(&lease, now + 2 * S);
	lease_connected(&lease, T, now + 1);
	assert_false(lease_answered(&lease, now + 2, now + 2));
	assert_true(lease_answered(&lease, now + 3, now + 3));
	assert_false(lease_doubted(&lease, now + 3));
	expect_deadline(&lease, now + 1 + GRANT);
}

/* ---- renewals ---- */

/* 0.998 F - g for F = 5 s */
#define FLOOR (4690 * MS)

static struct lease proved(void)
{
	struct lease lease = connected(START);

	lease_answered(&lease, START, START);
	return lease;
}

static void a_renewal_counts_until_it_is_answered(void **state)
{
	struct lease lease = proved();

	(void)state;
	lease_renews(&lease, START + 3 * S);
	expect_deadline(&lease, START + 3 * S + FLOOR);
	assert_int_equal(lease_certain_end(&lease), START + 3 * S + FLOOR);
	assert_false(lease_expects_late_renewal(&lease));
	lease_connected(&lease, T, START + 3 * S);
	expect_deadline(&lease, START + GRANT);
	/* It never makes a lease longer. */
	lease_renews(&lease, START + 12 * S);
	expect_deadline(&lease, START + GRANT);
}

static void a_renewal_that_was_given_up_counts_for_ever(void **state)
{
	struct lease lease = proved();

	(void)state;
	lease_renews(&lease, START + 3 * S);
	lease_renews(&lease, START + 5 * S);
	lease_renews(&lease, START + 6 * S);
	expect_deadline(&lease, START + 3 * S + FLOOR);
	assert_true(lease_expects_late_renewal(&lease));
	lease_connected(&lease, T, START + 6 * S);
	expect_deadline(&lease, START + 3 * S + FLOOR);
	/* Any answered write of a later moment shows that it was not carried out before that. */
	assert_true(lease_answered(&lease, START + 7 * S, START + 7 * S + 1));
	expect_deadline(&lease, START + 7 * S + FLOOR);
	assert_true(lease_answered(&lease, START + 7 * S + 2, START + 7 * S + 3));
	expect_deadline(&lease, START + 7 * S + 2 + FLOOR);
	assert_false(lease_answered(&lease, START + 7 * S + 1, START + 7 * S + 4));
	expect_deadline(&lease, START + 7 * S + 2 + FLOOR);
	/* The next connection, and its answer, do not end it; a new session does. */
	lease_renews(&lease, START + 8 * S);
	expect_deadline(&lease, START + 7 * S + 2 + FLOOR);
	lease_connected(&lease, T, START + 8 * S);
	lease_answered(&lease, START + 9 * S, START + 9 * S);
	expect_deadline(&lease, START + 9 * S + FLOOR);
	lease_again(&lease);
	assert_false(lease_expects_late_renewal(&lease));
	lease_connected(&lease, T, START + 10 * S);
	lease_answered(&lease, START + 10 * S, START + 10 * S);
	expect_deadline(&lease, START + 10 * S + GRANT);
}

/* One that left before the first write was answered. */
static void a_renewal_without_a_lease_counts(void **state)
{
	struct lease lease = connected(START);

	(void)state;
	lease_renews(&lease, START + S);
	lease_renews(&lease, START + 2 * S);
	expect_nothing(&lease);
	lease_connected(&lease, T, START + 2 * S);
	lease_answered(&lease, START + 3 * S, START + 3 * S);
	expect_deadline(&lease, START + 3 * S + FLOOR);
}

/* F is the larger of 5 s and 5/2 tick, at most T. */
static void the_shortest_session_of_any_server(void **state)
{
	static const struct {
		int64_t tick_us, timeout_us, left_us;
	} rows[] = {
		{2 * S, 15 * S, 4690 * MS},
		{500 * MS, 15 * S, 4690 * MS},
		{4 * S, 40 * S, 9680 * MS},
		{2 * S, 4 * S, 3692 * MS},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct lease lease;

		lease_begin(&lease, rows[i].tick_us, 0);
		lease_connected(&lease, rows[i].timeout_us, START);
		lease_answered(&lease, START, START);
		lease_renews(&lease, START);
		expect_deadline(&lease, START + rows[i].left_us);
	}
}

/* Where any server grants no less than T, a renewal that is given up costs nothing. */
static void who_needs_a_scout(void **state)
{
	struct lease lease = connected(START);

	(void)state;
	assert_true(lease_needs_scout(&lease));
	lease_connected(&lease, 5 * S + 1, START);
	assert_true(lease_needs_scout(&lease));
	lease_connected(&lease, 5 * S, START);
	assert_false(lease_needs_scout(&lease));
}

/* A server that hangs is given up in time for the lease that is left. */
static void answers_are_awaited_for_a_fifth_of_it(void **state)
{
	struct lease lease = proved();

	(void)state;
	assert_int_equal(lease_answer_timeout(&lease), 3 * S);
	lease_renews(&lease, START);
	assert_int_equal(lease_answer_timeout(&lease), 3 * S);
	lease_renews(&lease, START);
	assert_int_equal(lease_answer_timeout(&lease), S);
}

/* A renewal that the last process has sent was given up with it. */
static void a_renewal_of_the_process_before(void **state)
{
	struct lease lease = proved(), next;
	struct codec codec = {0}, read = {.loads = true};

	(void)state;
	lease_renews(&lease, START + S);
	lease_renews(&lease, START + 2 * S);
	lease.late_us = START + 3 * S;
	codec_begin(&codec);
	lease_save_load(&codec, &lease, INT64_MAX);
	codec_read(&read, codec.data, codec.len);
	lease_begin(&next, TICK, 0);
	lease_save_load(&read, &next, START + 4 * S);
	assert_null(read.bad);
	expect_deadline(&next, START + 2 * S + FLOOR);
	lease_renews(&next, START + 4 * S);
	lease_connected(&next, T, START + 4 * S);
	expect_deadline(&next, START + 2 * S + FLOOR);
	codec_end(&codec);
}

/* Locks are granted all the same, also with the lead of `term`. */
static void fresh_though_a_renewal_was_given_up(void **state)
{
	struct lease lease;

	(void)state;
	lease_begin(&lease, TICK, 2500 * MS);
	lease_connected(&lease, T, START);
	lease_renews(&lease, START);
	lease_renews(&lease, START);
	lease_connected(&lease, T, START);
	lease_answered(&lease, START + S, START + S + 100 * MS);
	assert_true(lease_fresh(&lease, START + S + 100 * MS));
	/* F/8 = 0.625 s must be left before the lead. */
	assert_true(lease_fresh(&lease, START + S + FLOOR - 2500 * MS - 625 * MS));
	assert_false(lease_fresh(&lease, START + S + FLOOR - 2500 * MS - 625 * MS + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_proved_at_first),
		cmocka_unit_test(being_connected_proves_nothing),
		cmocka_unit_test(first_write_proves_the_connection),
		cmocka_unit_test(second_write_proves_it_no_further),
		cmocka_unit_test(third_step_counts_from_the_first),
		cmocka_unit_test(each_further_step_counts_from_two_before),
		cmocka_unit_test(steps_are_spaced_from_answer_to_sending),
		cmocka_unit_test(piled_up_answers_are_one_step),
		cmocka_unit_test(writes_between_do_not_delay_steps),
		cmocka_unit_test(a_new_connection_is_proved_by_its_second_write),
		cmocka_unit_test(connections_without_a_write_do_not_add_up),
		cmocka_unit_test(evidence_never_takes_back),
		cmocka_unit_test(deadline_is_exact),
		cmocka_unit_test(a_smaller_timeout_takes_back),
		cmocka_unit_test(a_smaller_timeout_with_nothing_proved),
		cmocka_unit_test(a_new_session_starts_from_nothing),
		cmocka_unit_test(fresh_is_an_eighth),
		cmocka_unit_test(fresh_lasts_until_the_next_step),
		cmocka_unit_test(distances),
		cmocka_unit_test(which_timeouts_are_possible),
		cmocka_unit_test(smallest_timeout),
		cmocka_unit_test(twelve_seconds_of_silence),
		cmocka_unit_test(a_doubt_lasts_for_two_seconds),
		cmocka_unit_test(the_deadline_counts_in_doubt),
		cmocka_unit_test(an_older_write_does_not_end_a_doubt),
		cmocka_unit_test(an_older_connection_does_not_end_a_doubt),
		cmocka_unit_test(a_new_connection_ends_a_doubt),
		cmocka_unit_test(both_writes_are_of_one_connection),
		cmocka_unit_test(older_steps_do_not_count_after_a_doubt),
		cmocka_unit_test(an_older_write_is_no_step),
		cmocka_unit_test(a_doubt_without_a_lease),
		cmocka_unit_test(a_longer_tick_wants_new_steps),
		cmocka_unit_test(a_longer_tick_after_three_steps_is_a_doubt),
		cmocka_unit_test(a_renewal_counts_until_it_is_answered),
		cmocka_unit_test(a_renewal_that_was_given_up_counts_for_ever),
		cmocka_unit_test(a_renewal_without_a_lease_counts),
		cmocka_unit_test(the_shortest_session_of_any_server),
		cmocka_unit_test(who_needs_a_scout),
		cmocka_unit_test(answers_are_awaited_for_a_fifth_of_it),
		cmocka_unit_test(a_renewal_of_the_process_before),
		cmocka_unit_test(fresh_though_a_renewal_was_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
