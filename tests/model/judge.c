/* SPDX-License-Identifier: MIT
 *
 * judge.c - what must never be, and what must not be when nothing is under way.
 */
#include "model.h"

/* Its entry was deleted by hand, and its mount cannot know yet. So another one may hold beside it:
 * an operator has made it so. A hand-off on the mount is guarded by the leaver's entry, unless that
 * was deleted, too. */
static bool is_excused(const struct state *s, int e)
{
	const struct taker *taker = &s->taker[e];
	int m = config.owner[e];

	if (committed(s) & BIT(e) || !(taker->more & A_DELETED) || taker->flags & F_GONE)
		return false;
	if (!(taker->more & A_DEAD_GRANT))
		return true;
	if (!(taker->more & A_UNSEEN_GRANT)) /* it is watched when it has held for 20 ms */
		return shown(s, m) & BIT(e) || s->mount[m].link != 2 || taker->flags & F_RECHECK ||
		       taker->watch == W_PENDING || taker->watch == W_RENEWING;
	for (int guard = 0; guard < config.takers; guard++)
		if (config.owner[guard] == m && s->taker[guard].state == LEFT &&
		    s->taker[guard].more & A_DELETED)
			return true;
	return false;
}

/* An exclusive one holds beside a shared one, or there are more of them than slots. */
static bool too_many_hold(const struct state *s)
{
	int exclusive = 0, shared = 0;

	for (int e = 0; e < config.takers; e++) {
		if (s->taker[e].state != HELD || is_excused(s, e))
			continue;
		exclusive += !is_shared(e);
		shared += is_shared(e);
	}
	return exclusive > config.slots || (exclusive > 0 && shared > 0);
}

static bool holds_both(const struct state *s)
{
	for (int e = 0; e < config.takers; e++)
		if (s->taker[e].state == HELD && s->taker[e].more & A_REPLACES)
			return true;
	return false;
}

static bool evicted_holds(const struct state *s)
{
	for (int e = 0; e < config.takers; e++)
		if (s->evicted & BIT(e) && s->taker[e].state == HELD)
			return true;
	return false;
}

/* Nothing is under way. */
static bool is_quiet(const struct state *s)
{
	for (int m = 0; m < config.mounts; m++) {
		const struct mount *mount = &s->mount[m];

		if (!mount->session && config.again)
			return false;
		if (mount->session &&
		    (mount->link != 2 || mount->requests > 0 || mount->applied != s->logged ||
		     mount->unsent || !mount->lease || mount->more & N_MARKS))
			return false;
	}
	for (int e = 0; e < config.takers; e++)
		if (s->taker[e].flags & F_RECHECK)
			return false; /* in 20 ms there is more to do */
	return true;
}

static bool is_first_of_mount(const struct state *s, int e)
{
	for (int before = 0; before < config.takers; before++) {
		int state = s->taker[before].state;

		if (config.owner[before] == config.owner[e] &&
		    s->taker[before].place < s->taker[e].place &&
		    (state == WAIT || state == HELD || state == LOST))
			return false;
	}
	return true;
}

static const char *judge_taker(const struct state *s, int e)
{
	const struct taker *taker = &s->taker[e];
	bool there = committed(s) & BIT(e);

	if (((taker->state == LEFT && taker->entry == ABSENT) || taker->state == DEAD) && there)
		return "an entry has no taker";
	if (taker->state == LEFT && taker->entry != ABSENT)
		return "the entry of one who left remains";
	if (taker->state == HELD && !there)
		return "a holder without an entry was not told";
	/* One behind others of its mount is not watched: it hears of it when it is next. */
	if (taker->state == WAIT && (taker->entry == ABSENT || !there) && is_first_of_mount(s, e))
		return "a waiter has no entry";
	if (taker->state == WAIT && is_try(e))
		return "one waits who does not want to";
	return NULL;
}

static bool somebody_waits_for_nothing(const struct state *s)
{
	unsigned there = committed(s);
	int before = 0, shared_before = 0;

	for (int number = 1; number <= s->numbers; number++)
		for (int e = 0; e < config.takers; e++) {
			if (s->number[e] != number || !(there & BIT(e)))
				continue;
			if (s->taker[e].state == WAIT &&
			    (is_shared(e) ? before == shared_before
			                  : shared_before == 0 && before < config.slots))
				return true;
			before++;
			shared_before += is_shared(e);
		}
	return false;
}

/* Nobody can go on by himself: a holder that waits for an upgrade does not leave before. */
static bool all_wait(const struct state *s)
{
	unsigned waits = 0;

	for (int e = 0; e < config.takers; e++) {
		if (s->taker[e].state != WAIT)
			continue;
		waits |= BIT(e);
		if (s->taker[e].more & A_REPLACES)
			waits |= BIT(replaced(e));
	}
	for (int e = 0; e < config.takers; e++)
		if ((s->taker[e].state == HELD || s->taker[e].state == LOST) && !(waits & BIT(e)))
			return false;
	return waits;
}

static const char *judge_quiet(const struct state *s)
{
	const char *wrong = NULL;

	for (int e = 0; e < config.takers && !wrong; e++)
		wrong = judge_taker(s, e);
	if (!wrong && somebody_waits_for_nothing(s))
		wrong = "somebody waits for a free lock";
	return !wrong && all_wait(s) ? "all wait for each other" : wrong;
}

const char *judge(const void *state)
{
	const struct state *s = state;

	switch (s->broken) {
	case BROKEN_DEAD_GRANT:
		return "granted, and its own server has shown that its entry is gone";
	case BROKEN_TOKEN:
		return "a token does not rise";
	case BROKEN_TWO:
		return "a taker has two entries";
	case BROKEN_TRY:
		return "a try is refused, and nobody is in its way";
	case BROKEN_CAUSE:
		return "a place or a lock is lost without a cause";
	case BROKEN_UPGRADE:
		return "an upgrade without a shared hold, or refused without a reason";
	case BROKEN_PAST:
		return "granted past an entry";
	case BROKEN_HOPELESS:
		return "a try makes an entry, and somebody was in its way all the time";
	case BROKEN_ORDER:
		return "one who came later queues first";
	default:
		break;
	}
	if (too_many_hold(s))
		return "two hold";
	if (holds_both(s))
		return "an upgrade holds both";
	if (evicted_holds(s))
		return "an evicted one holds";
	return is_quiet(s) ? judge_quiet(s) : NULL;
}
