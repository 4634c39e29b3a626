/* SPDX-License-Identifier: MIT
 *
 * session.c - answers to reads and heartbeats, events, and the end of a turn: entry.c, listing.c
 * and session.c of the engine.
 */
#include "model.h"

void look(int e)
{
	if (!is_wanted(e) || S.taker[e].entry != PRESENT || is_seen(e))
		return;
	me()->looks++;
	push(R_LOOK, 0, (uint8_t)e, 0);
}

static void marks_read(void)
{
	struct mount *m = me();

	if (!(m->more & N_MARKS))
		return;
	m->more &= (uint8_t)~N_MARKS;
	if (m->flags & M_LEASE)
		want_list();
}

/* Each does what its entry needs, in the order of the list. */
static void resume_all(void)
{
	unsigned list = begin_walk();

	if (LEFT_OUT(not_queued_again_after_a_session) && me()->session == 2)
		return;
	if (!LEFT_OUT(order_reversed_after_a_session)) {
		step_all();
		return;
	}
	for (int i = TAKERS - 1; i >= 0; i--)
		if (list >> 4 * i & 15)
			taker_step((int)(list >> 4 * i & 15) - 1);
}

void become_ready(void)
{
	struct mount *m = me();

	m->link = 2;
	m->more &= (uint8_t)~N_OLD_CONNECTION;
	EACH_TAKER(e)
		if (S.taker[e].state == HELD)
			entry_watch(e);
	m->flags &= (uint8_t)~M_UNRESOLVED;
	if (has_unknown())
		m->flags |= M_UNRESOLVED;
	EACH_TAKER(e)
		want_list();
	resume_all();
	if (m->more & N_MARKS && !LEFT_OUT(granted_before_marks_are_read)) {
		EACH_TAKER(e)
			look(e);
		if (m->looks == 0)
			marks_read();
	} else {
		m->more &= (uint8_t)~N_MARKS;
	}
}

/* What was sent, or connected, before the evictor's time began proves no lease any more when
 * that time is over; and what came later proves none before the mark was read (rules 1 and 21). */
static bool proof_is_old(void)
{
	EACH_TAKER(e)
		if (S.evicted & BIT(e) && (S.taker[e].state == WAIT || S.taker[e].state == HELD))
			return me()->link == 2 || me()->more & N_OLD_CONNECTION;
	return false;
}

void beat_answered(void)
{
	struct mount *m = me();

	m->more &= (uint8_t)~N_BEATING;
	if (!proof_is_old())
		m->lease = 1;
	if (m->late & L_POKED && m->looks == 0 && m->lease)
		m->late |= L_LEASE; /* it counts from two steps back */
	if (m->link == 1)
		become_ready();
	else if (m->flags & M_LEASE)
		want_list();
}

void look_answered(int e, bool there, bool marked)
{
	struct mount *mount = me();

	mount->looks--;
	if (there && marked)
		loss_by_mark(e);
	else if (!there && is_wanted(e))
		want_list();
	if (mount->looks == 0)
		marks_read();
	if (is_in_list(e))
		taker_step(e);
}

void own_watch_answered(int e, bool there, bool marked)
{
	struct taker *t = &S.taker[e];

	if (there && marked)
		loss_by_mark(e);
	watch_answered(&t->watch, there);
	if (there && (me()->flags & M_HELD_BACK || LEFT_OUT(seen_by_an_old_answer)))
		handoff_seen(e); /* asked behind the write that was refused */
	if (!there && is_wanted(e) && t->entry == PRESENT)
		loss_of_node(e);
	else if (!there && is_wanted(e))
		want_list();
	if (is_in_list(e))
		taker_step(e);
}

void front_answered(int e, unsigned tag, bool there)
{
	struct mount *m = me();

	if (m->tag != tag || m->front_watched != e + 1)
		return;
	watch_answered(&m->front_watch, there);
	if (there || LEFT_OUT(not_there_is_no_event))
		return;
	m->flags |= M_FRONT_GONE;
	touch();
}

void candidate_answered(int e, bool there, bool marked)
{
	struct taker *t = &S.taker[e];

	t->more &= (uint8_t)~A_CANDIDATE;
	if (there && t->entry == UNKNOWN) {
		t->entry = PRESENT;
		handoff_present(e, false);
	}
	want_list();
	if (t->entry == UNKNOWN)
		set_absent(e);
	if (is_in_list(e))
		taker_step(e);
	if (there && marked)
		loss_by_mark(e);
}

/* ---- events ---- */

static void front_changed(int e, bool deleted)
{
	struct mount *mount = me();
	bool watched = mount->front_watch == W_GOOD || LEFT_OUT(reconnect_taken_as_deletion);

	watch_fired(&mount->front_watch);
	if (LEFT_OUT(event_ignored))
		return;
	if (deleted && watched && handoff_by_event(e))
		watch_none();
	else if (deleted || mount->link != 2)
		want_list();
	else
		watch_front(e);
	if (!deleted && mount->front && !(S.taker[mount->front - 1].flags & F_AHEAD_FIRST))
		want_list();
}

void entry_changed(int e, bool deleted)
{
	struct taker *taker = &S.taker[e];
	bool armed = taker->watch == W_GOOD || taker->watch == W_OLD || taker->watch == W_RENEWING;

	if (me()->front_watched == e + 1)
		front_changed(e, deleted);
	if (config.owner[e] != M || !is_in_list(e) || !is_queued(e) || taker->flags & F_GONE ||
	    !is_wanted(e))
		return;
	watch_fired(&taker->watch);
	if (!deleted) {
		entry_watch(e);
		return;
	}
	if (armed)
		loss_of_node(e);
	want_list();
}

void names_changed(void)
{
	if (config.slots > 1 && count_waiting() > 0)
		want_list();
}

/* ---- the end of a turn ---- */

static bool has_takers(void)
{
	return begin_walk() != 0;
}

/* The entries of all holders were read before the second write: rule 2. */
static bool holders_are_seen(void)
{
	EACH_TAKER(e)
		if (S.taker[e].state == HELD && !is_seen(e))
			return false;
	return true;
}

static void look_at_touched(void)
{
	struct mount *mount = me();

	for (int i = 0; mount->flags & M_TOUCHED && i < 10; i++) {
		mount->flags &= (uint8_t)~M_TOUCHED;
		handoff_release();
		if (mount->flags & M_FRONT_GONE && mount->front_watched) {
			if (!handoff_by_event(mount->front_watched - 1))
				want_list();
			watch_none();
		}
		if (count_waiting() > 0 && !(mount->flags & M_WANT) && !needs_no_list() &&
		    !handoff_line_up())
			want_list();
	}
	if (!has_takers())
		watch_none();
}

static void send_list(void)
{
	me()->lists++;
	EACH_TAKER(e)
		if (S.taker[e].entry == CREATING || S.taker[e].entry == PRESENT)
			S.taker[e].flags |= F_LISTED_SINCE;
	push(R_LIST, 0, 0,
	     config.slots > 1 && count_waiting() > 0 && !LEFT_OUT(only_the_next_one_is_watched));
}

static void flush(void)
{
	struct mount *mount = me();

	if (mount->link != 2)
		return;
	if (mount->late & L_CONNECTED && mount->lease && holders_are_seen())
		mount->late |= L_LEASE;
	look_at_touched();
	if (mount->unsent)
		send_batch();
	if (!(mount->flags & M_WANT) || mount->unsent)
		return; /* a listing would not show those entries */
	mount->flags &= (uint8_t)~M_WANT;
	if (has_takers())
		send_list();
}

void end_turn(void)
{
	tell();
	flush();
	if (tell())
		flush();
	note_free();
}
