/* SPDX-License-Identifier: MIT
 *
 * lease.c - see lease.h, where every term and its reason stands.
 */
#include "pure/lease.h"

#include <assert.h>

#define SECOND 1000000

/* What a clock of ours that runs 0.2 % slow still grants. */
static int64_t less_drift(int64_t timeout_us)
{
	return timeout_us / 1000 * 998;
}

static int64_t spacing(int64_t tick_us)
{
	return tick_us / 2 + SECOND / 4;
}

void lease_begin(struct lease *lease, int64_t tick_us, int64_t lead_us)
{
	*lease = (struct lease){
		.tick_us = tick_us,
		.lead_us = lead_us,
		.deadline_us = INT64_MIN,
		.connect_us = -1,
		.void_us = INT64_MIN,
		.doubt_us = INT64_MAX,
		.renews_us = INT64_MAX,
		.late_us = INT64_MAX,
	};
}

void lease_again(struct lease *lease)
{
	int64_t void_us = lease->void_us;

	lease_begin(lease, lease->tick_us, lease->lead_us);
	lease->void_us = void_us;
}

void lease_rest(struct lease *lease)
{
	lease->deadline_us = INT64_MIN;
	lease->steps = 0;
}

static bool is_past(int64_t us, int64_t now_us)
{
	return us >= 0 && us <= now_us;
}

static bool is_past_or_none(int64_t us, int64_t now_us)
{
	return us == INT64_MAX || is_past(us, now_us);
}

/* The lease that was read. */
static bool is_possible(const struct lease *lease, int64_t now_us)
{
	for (int i = 0; i < 3; i++)
		if (!is_past(lease->sent_us[i], now_us))
			return false;
	if (lease->deadline_us != INT64_MIN &&
	    (lease->timeout_us == 0 || lease->deadline_us < -now_us - lease->timeout_us ||
	     lease->deadline_us > now_us + lease->timeout_us))
		return false;
	return is_past(lease->answered_us, now_us) && is_past_or_none(lease->renews_us, now_us) &&
	       is_past_or_none(lease->late_us, now_us) &&
	       (lease->void_us == INT64_MIN || is_past(lease->void_us, now_us));
}

void lease_save_load(struct codec *codec, struct lease *lease, int64_t now_us)
{
	CODEC_RANGE(codec, lease->tick_us, 1, TIMEOUT_MAX_US);
	CODEC_RANGE(codec, lease->timeout_us, 0, TIMEOUT_MAX_US);
	CODEC_64(codec, lease->deadline_us);
	for (int i = 0; i < 3; i++)
		CODEC_64(codec, lease->sent_us[i]);
	CODEC_64(codec, lease->answered_us);
	CODEC_RANGE(codec, lease->steps, 0, 3);
	CODEC_64(codec, lease->void_us);
	CODEC_TIME(codec, lease->doubt_us);
	if (codec_has(codec, 6)) {
		CODEC_TIME(codec, lease->renews_us);
		CODEC_TIME(codec, lease->late_us);
	}
	if (codec->loads && !is_possible(lease, now_us))
		codec_refuse(codec, "the state has an impossible lease");
}

void lease_renews(struct lease *lease, int64_t now_us)
{
	if (lease->renews_us < lease->late_us)
		lease->late_us = lease->renews_us;
	lease->renews_us = now_us;
}

/* F */
static int64_t floor_of(const struct lease *lease)
{
	int64_t floor_us = lease->tick_us / 2 * 5;

	if (floor_us < LEASE_FLOOR_US)
		floor_us = LEASE_FLOOR_US;
	return floor_us < lease->timeout_us ? floor_us : lease->timeout_us;
}

static int64_t end_by_renewal(const struct lease *lease, int64_t from_us)
{
	return from_us == INT64_MAX ? INT64_MAX
	                            : from_us + less_drift(floor_of(lease)) - LEASE_GUARD_US;
}

bool lease_needs_scout(const struct lease *lease)
{
	return floor_of(lease) < lease->timeout_us;
}

bool lease_expects_late_renewal(const struct lease *lease)
{
	return lease->late_us != INT64_MAX;
}

void lease_shorten(struct lease *lease, int64_t timeout_us)
{
	if (lease->deadline_us != INT64_MIN)
		lease->deadline_us -= less_drift(lease->timeout_us) - less_drift(timeout_us);
	lease->timeout_us = timeout_us;
}

void lease_connected(struct lease *lease, int64_t timeout_us, int64_t connect_us)
{
	lease->renews_us = INT64_MAX;
	/* Servers may grant different timeouts. */
	if (lease->timeout_us == 0 || timeout_us < lease->timeout_us)
		lease_shorten(lease, timeout_us);
	/* Without a lease nothing was held that could have been evicted. */
	lease->reads_sent = lease->deadline_us == INT64_MIN;
	lease->connect_us = connect_us > lease->void_us ? connect_us : -1;
}

static bool extend(struct lease *lease, int64_t from_us)
{
	int64_t deadline = from_us + less_drift(lease->timeout_us) - LEASE_GUARD_US;

	if (deadline <= lease->deadline_us && lease->doubt_us == INT64_MAX)
		return false;
	lease->deadline_us = deadline;
	lease->doubt_us = INT64_MAX;
	return true;
}

bool lease_answered(struct lease *lease, int64_t sent_us, int64_t now_us)
{
	bool moved = false;

	assert(lease->timeout_us > 0 && sent_us <= now_us);
	if (sent_us <= lease->void_us)
		return false;
	if (lease_expects_late_renewal(lease) && sent_us > lease->late_us) {
		lease->late_us = sent_us;
		moved = true;
	}
	if (!lease->reads_sent) {
		lease->reads_sent = lease->connect_us >= 0 || !lease_doubted(lease, now_us);
		return moved;
	}
	if (lease->connect_us >= 0) {
		assert(lease->connect_us <= sent_us);
		moved |= extend(lease, lease->connect_us);
		lease->connect_us = -1;
	}
	if (lease->steps > 0 && sent_us - lease->answered_us < lease_spacing(lease))
		return moved;
	lease->sent_us[2] = lease->sent_us[1];
	lease->sent_us[1] = lease->sent_us[0];
	lease->sent_us[0] = sent_us;
	lease->answered_us = now_us;
	if (lease->steps < 3)
		lease->steps++;
	if (lease->steps == 3)
		moved |= extend(lease, lease->sent_us[2]);
	return moved;
}

void lease_doubt(struct lease *lease, int64_t now_us)
{
	if (lease_left(lease, now_us) > 0 && !lease_doubted(lease, now_us))
		lease->doubt_us = now_us + LEASE_DOUBT_US;
	lease->void_us = now_us;
	lease->connect_us = -1;
	lease->steps = 0;
	lease->reads_sent = false;
}

bool lease_raise_tick(struct lease *lease, int64_t tick_us, int64_t now_us)
{
	/* With fewer steps it rests on the connection, which proves it whatever the tick is. */
	bool rested = lease->steps == 3;

	assert(tick_us > lease->tick_us);
	lease->tick_us = tick_us;
	lease->steps = 0;
	if (rested)
		lease_doubt(lease, now_us);
	return rested;
}

bool lease_doubted(const struct lease *lease, int64_t now_us)
{
	return lease->doubt_us != INT64_MAX && lease_left(lease, now_us) > 0;
}

int64_t lease_certain_end(const struct lease *lease)
{
	int64_t end = lease->deadline_us, answered = end_by_renewal(lease, lease->renews_us),
		late = end_by_renewal(lease, lease->late_us);

	if (answered < end)
		end = answered;
	return late < end ? late : end;
}

int64_t lease_end(const struct lease *lease)
{
	int64_t end = lease_certain_end(lease);

	return end < lease->doubt_us ? end : lease->doubt_us;
}

int64_t lease_left(const struct lease *lease, int64_t now_us)
{
	int64_t end = lease_end(lease);

	return now_us < end ? end - now_us : 0;
}

/* The longest lease that this session can give, if drift and guard (lease.h) are left out. */
static int64_t longest_lease(const struct lease *lease)
{
	return lease_expects_late_renewal(lease) ? floor_of(lease) : lease->timeout_us;
}

bool lease_fresh(const struct lease *lease, int64_t now_us)
{
	int64_t left = lease_left(lease, now_us) - lease->lead_us;
	int64_t next_answer = lease->answered_us + lease_spacing(lease) + LEASE_ANSWER_US;

	return lease->doubt_us == INT64_MAX && left > 0 && left >= longest_lease(lease) / 8 &&
	       lease_end(lease) - lease->lead_us >= next_answer;
}

int64_t lease_spacing(const struct lease *lease)
{
	return spacing(lease->tick_us);
}

int64_t lease_heartbeat(const struct lease *lease, bool busy)
{
	int64_t idle = lease->timeout_us / 6, w = lease_spacing(lease);

	return busy || idle < w ? w : idle;
}

int64_t lease_answer_timeout(const struct lease *lease)
{
	return longest_lease(lease) / 5;
}

bool lease_possible(int64_t timeout_us, int64_t tick_us, int64_t lead_us)
{
	/* The worst moment: three distances between steps, each with its answer, have
	 * passed since the step that the deadline counts from. */
	int64_t left = less_drift(timeout_us) - 3 * (spacing(tick_us) + LEASE_ANSWER_US) -
	               LEASE_ANSWER_US - LEASE_GUARD_US;

	return left - lead_us >= timeout_us / 8;
}

int64_t lease_smallest_timeout(int64_t tick_us, int64_t lead_us)
{
	int64_t timeout = SECOND;

	while (!lease_possible(timeout, tick_us, lead_us))
		timeout += SECOND;
	return timeout;
}
