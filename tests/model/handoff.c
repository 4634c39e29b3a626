/* SPDX-License-Identifier: MIT
 *
 * handoff.c - grants without a listing: handoff.c of the engine, and of lock_watch.c what is
 * watched of the entry that the front waits for.
 */
#include "model.h"

/* An entry stands before it that it has to wait for: so it does at the leader, whatever this mount
 * was shown. Those of ours that leave, and the one whose place it takes, are none. `leaver`: it is
 * the holder that leaves. */
static bool is_past_others(int e, bool leaver)
{
	unsigned there = committed(&S);
	int before = 0, shared = 0;

	for (int k = 0; k < config.takers; k++) {
		bool leaves = config.owner[k] == M &&
		              (!is_wanted(k) || (leaver && S.taker[k].state == HELD));
		bool old = S.taker[e].more & A_REPLACES && replaced(e) == k;

		if (!(there & BIT(k)) || S.number[k] >= S.number[e] || leaves || old)
			continue;
		before += !is_shared(k);
		shared += is_shared(k);
	}
	return is_shared(e) ? before > 0 : before >= config.slots || shared > 0;
}

/* Also what the judge remembers. */
static void grant(int e, bool first, enum how how)
{
	struct taker *taker = &S.taker[e];
	bool there = committed(&S) & BIT(e), unseen = how == BY_RELEASE;

	if (!((shown(&S, M) | going) & BIT(e)) && !(unseen && !is_seen(e)))
		S.broken = BROKEN_DEAD_GRANT;
	if (there && is_past_others(e, unseen))
		S.broken = BROKEN_PAST;
	if (taker->more & A_REPLACES && S.taker[replaced(e)].state != HELD)
		S.broken = BROKEN_UPGRADE;
	if (!is_shared(e) && there && config.slots == 1) {
		if (S.number[e] < S.last_token)
			S.broken = BROKEN_TOKEN;
		S.last_token = S.number[e];
	}
	set_state(e, HELD);
	taker->flags |= (uint8_t)((first ? F_FIRST : 0) | (config.slow ? F_RECHECK : 0));
	taker->more &= (uint8_t) ~(A_DEAD_GRANT | A_UNSEEN_GRANT);
	taker->more |= (uint8_t)((there ? 0 : A_DEAD_GRANT) | (unseen ? A_UNSEEN_GRANT : 0));
}

static int find_next(int h)
{
	if ((me()->flags & M_UNRESOLVED && !LEFT_OUT(create_again_before_the_list)) ||
	    !(S.taker[h].flags & F_FIRST) || is_shared(h))
		return -1;
	for (int e = taker_behind(h); e >= 0; e = taker_behind(e)) {
		if (!is_queued(e))
			continue;
		if ((!(S.taker[e].flags & F_ADJACENT) && !LEFT_OUT(hand_off_past_a_remote_entry)) ||
		    (S.taker[e].flags & F_GONE))
			return -1;
		if (is_wanted(e))
			return S.taker[e].state == WAIT && !is_shared(e) ? e : -1;
	}
	return -1;
}

void handoff_watch_next(int h)
{
	int next = find_next(h);

	if (next >= 0 && !(S.taker[h].flags & F_RECHECK))
		entry_watch(next);
}

static bool next_is_unplaced(int h)
{
	for (int e = taker_behind(h); e >= 0; e = taker_behind(e)) {
		if (S.taker[e].state != WAIT || S.taker[e].entry == ABSENT)
			continue;
		return S.taker[e].entry == PRESENT && !is_shared(e) && config.slots == 1 &&
		       !(S.taker[e].flags & F_ADJACENT) && !S.taker[e].ahead;
	}
	return false;
}

void handoff_grant(int e, bool first, enum how how)
{
	grant(e, first, how);
	set_ahead(e, -1, 0);
	handoff_watch_next(e);
	if (next_is_unplaced(e))
		want_list();
}

static void delete_held_back(void)
{
	struct mount *mount = me();

	if (!(mount->flags & M_HELD_BACK))
		return;
	mount->flags &= (uint8_t)~M_HELD_BACK;
	EACH_TAKER(e)
		if (!is_wanted(e) && S.taker[e].entry == PRESENT)
			taker_step(e);
}

void handoff_leave(int e)
{
	int next;

	if (S.taker[e].state != HELD || S.taker[e].entry != PRESENT ||
	    (S.taker[e].flags & F_GONE) || count_holding() > 1 || !may_grant())
		return;
	next = find_next(e);
	if (next < 0)
		return;
	handoff_grant(next, true, BY_RELEASE);
	if (!LEFT_OUT(hand_off_unguarded) && !(LEFT_OUT(watched_is_there) && is_seen(next)))
		me()->unseen = (uint8_t)(next + 1);
	if (!LEFT_OUT(held_back_behind_a_new_one))
		delete_held_back(); /* they guard it, too, and are tried with its check */
}

void handoff_release(void)
{
	if (!me()->unseen && !LEFT_OUT(leaver_kept_for_ever))
		delete_held_back();
}

void handoff_seen(int e)
{
	if (me()->unseen != e + 1)
		return;
	me()->unseen = 0;
	handoff_release();
}

static bool is_next(int e, int ahead)
{
	return S.taker[e].state == WAIT && S.taker[e].ahead == ahead + 1 &&
	       (S.taker[e].flags & F_AHEAD_FIRST || LEFT_OUT(event_of_one_that_was_not_first));
}

void watch_none(void)
{
	struct mount *m = me();

	if (!m->front_watched)
		return;
	m->front_watched = m->front_watch = 0;
	m->tag ^= 1;
	m->flags &= (uint8_t)~M_FRONT_GONE;
}

void watch_front(int ahead)
{
	struct mount *m = me();

	if (m->front_watched != ahead + 1) {
		watch_none();
		m->front_watched = (uint8_t)(ahead + 1);
		m->front_watch = W_IDLE;
	}
	if (m->front_watch != W_IDLE)
		return;
	m->front_watch = W_PENDING;
	push(R_FRONT, 0, (uint8_t)ahead, m->tag);
}

void handoff_wait(int front, int ahead)
{
	me()->front = (uint8_t)(front + 1);
	entry_watch(front);
	EACH_TAKER(e)
		if (is_next(e, ahead))
			entry_watch(e);
	watch_front(ahead);
}

bool handoff_line_up(void)
{
	EACH_TAKER(e) {
		if (S.taker[e].state != WAIT || S.taker[e].entry == ABSENT)
			continue;
		if (!S.taker[e].ahead)
			return false;
		handoff_wait(e, S.taker[e].ahead - 1);
		return true;
	}
	return false;
}

bool handoff_by_event(int ahead)
{
	bool granted = false;

	if (config.slots != 1)
		return false;
	EACH_TAKER(e) {
		if (!is_next(e, ahead) || (!is_seen(e) && !LEFT_OUT(event_grants_what_is_gone)) ||
		    !may_grant())
			continue;
		handoff_grant(e, !is_shared(e), BY_EVENT);
		granted = true;
	}
	return granted;
}

static int find_before(int e)
{
	for (int k = taker_before(e); k >= 0; k = taker_before(k))
		if (S.taker[k].entry == PRESENT)
			return k;
	return -1;
}

void handoff_present(int e, bool made)
{
	struct taker *t = &S.taker[e];
	int before = find_before(e);

	t->flags &= (uint8_t)~F_ADJACENT;
	if (before >= 0 && S.number[before] + 1 == S.number[e])
		t->flags |= F_ADJACENT;
	if (t->flags & F_ADJACENT && S.taker[before].state == HELD)
		handoff_watch_next(before);
	if (!made)
		return;
	me()->more &= (uint8_t) ~(t->follows ? N_OVERTAKEN : 0);
	if (t->follows && S.number[e] != t->follows + 1)
		me()->more |= N_OVERTAKEN;
	if (t->follows &&
	    (S.number[e] == t->follows + 1 ||
	     LEFT_OUT(release_and_take_over_the_head_of_another)) &&
	    t->state == WAIT && count_holding() == 0 && !(me()->flags & M_UNRESOLVED) &&
	    may_grant()) {
		handoff_grant(e, true, BY_CREATE);
	} else if (t->state == WAIT && needs_list(e) && !(t->flags & F_LISTED_SINCE)) {
		want_list();
	}
}

void handoff_absent(int e)
{
	for (int k = taker_behind(e); k >= 0; k = taker_behind(k)) {
		if (!is_queued(k))
			continue;
		if (!(S.taker[e].flags & F_ADJACENT) && !LEFT_OUT(chain_forgotten_when_one_goes))
			S.taker[k].flags &= (uint8_t)~F_ADJACENT;
		if (!(S.taker[k].flags & F_AHEAD_AFTER_OURS))
			return;
		S.taker[k].flags &= (uint8_t)~F_AHEAD_AFTER_OURS;
		if (S.taker[e].flags & F_FIRST || LEFT_OUT(any_of_ours_makes_the_next_first))
			S.taker[k].flags |= F_AHEAD_FIRST;
		return;
	}
}
