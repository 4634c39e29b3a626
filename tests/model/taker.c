/* SPDX-License-Identifier: MIT
 *
 * taker.c - what a mount knows of its takers and their entries, and what each does next: taker.c,
 * entry.c and loss.c of the engine.
 */
#include "model.h"

int next_taker(int e)
{
	while (++e < config.takers)
		if (config.owner[e] == M)
			return e;
	return -1;
}

struct mount *me(void)
{
	return &S.mount[M];
}

bool is_shared(int e)
{
	return config.shared & BIT(e);
}

bool is_in_list(int e)
{
	int state = S.taker[e].state;

	return state != IDLE && state != DEAD && !(state == LEFT && S.taker[e].entry == ABSENT);
}

bool is_wanted(int e)
{
	int state = S.taker[e].state;

	return state == WAIT || state == HELD || (state == LOST && config.on_lost);
}

bool is_queued(int e)
{
	return S.taker[e].entry == PRESENT || S.taker[e].entry == DELETING;
}

bool is_seen(int e)
{
	return S.taker[e].watch == W_GOOD;
}

int count_takers(int state, bool exclusive)
{
	int count = 0;

	EACH_TAKER(e)
		count += S.taker[e].state == state && !(exclusive && is_shared(e));
	return count;
}

int count_waiting(void)
{
	return count_takers(WAIT, false);
}

int count_holding(void)
{
	return count_takers(HELD, false);
}

void want_list(void)
{
	me()->flags |= M_WANT;
}

void touch(void)
{
	me()->flags |= M_TOUCHED;
}

bool may_grant(void)
{
	struct mount *m = me();

	if (m->link != 2 || (m->more & N_MARKS))
		return false;
	if (m->lease)
		return true;
	if (!(m->more & N_BEATING)) {
		m->more |= N_BEATING;
		push(R_BEAT, 0, 0, 0);
	}
	return false;
}

void entry_watch(int e)
{
	struct taker *t = &S.taker[e];

	if (me()->link != 2 || t->entry != PRESENT || is_seen(e) || t->watch == W_PENDING ||
	    t->watch == W_RENEWING)
		return;
	t->watch = t->watch == W_OLD ? W_RENEWING : W_PENDING;
	push(R_WATCH, 0, (uint8_t)e, 0);
}

static bool is_pending(uint8_t watch)
{
	return watch == W_PENDING || watch == W_RENEWING;
}

void watch_fired(uint8_t *watch)
{
	*watch = is_pending(*watch) ? W_PENDING : W_IDLE;
}

void watch_answered(uint8_t *watch, bool good)
{
	*watch = good ? W_GOOD : *watch == W_RENEWING ? W_OLD : W_IDLE;
}

void set_ahead(int e, int ahead, unsigned is)
{
	S.taker[e].ahead = (uint8_t)(ahead + 1);
	S.taker[e].flags &= (uint8_t) ~(F_AHEAD_FIRST | F_AHEAD_AFTER_OURS);
	if (ahead >= 0)
		S.taker[e].flags |= (uint8_t)is;
}

bool may_be_queued(int e)
{
	const struct taker *taker = &S.taker[e];

	return taker->state == WAIT &&
	       (taker->entry == PRESENT || taker->entry == CREATING || taker->entry == UNKNOWN);
}

bool needs_no_list(void)
{
	struct mount *m = me();

	if (m->front || (m->flags & M_LEAVER))
		return true;
	if (count_holding() == 0)
		return false;
	if (count_takers(HELD, true) > 0 || LEFT_OUT(shared_holders_guard))
		return true;
	EACH_TAKER(e)
		if (may_be_queued(e))
			return !is_shared(e) && S.taker[e].watch != W_IDLE;
	return false;
}

void set_state(int e, int st)
{
	struct taker *t = &S.taker[e];
	struct mount *m = me();
	int old = t->state;

	t->state = (uint8_t)st;
	if (!(st == LEFT && old == HELD))
		t->flags &= (uint8_t)~F_FIRST;
	t->flags &= (uint8_t)~F_RECHECK;
	if (m->front == e + 1) {
		m->front = 0;
		if (LEFT_OUT(front_leaves_in_silence))
			return;
	}
	if (m->unseen == e + 1)
		m->unseen = 0;
	if (count_waiting() == 0)
		m->flags &= (uint8_t) ~(M_LEAVER | M_LEASE);
	touch();
}

static void taker_lose(int e)
{
	set_state(e, LOST);
	taker_step(e);
}

void taker_leave(int e)
{
	set_state(e, LEFT);
	taker_step(e);
}

void set_absent(int e)
{
	struct taker *t = &S.taker[e];

	handoff_absent(e);
	t->entry = ABSENT;
	t->flags &= (uint8_t) ~(F_ADJACENT | F_FIRST | F_GONE | F_ALONE);
	set_ahead(e, -1, 0);
	watch_fired(&t->watch);
}

void free_if_done(int e)
{
	bool any = false;

	if (S.taker[e].state != LEFT || S.taker[e].entry != ABSENT)
		return;
	S.taker[e].flags = 0;
	S.taker[e].follows = 0;
	if (me()->lists == 0)
		touch();
	EACH_TAKER(other)
		any |= is_in_list(other);
	if (!any) {
		touch();
		me()->flags &= (uint8_t) ~(M_UNRESOLVED | M_LEAVER | M_LEASE); /* become_idle() */
	}
}

static void create_entry(int e)
{
	S.taker[e].entry = CREATING;
	S.taker[e].flags &= (uint8_t)~F_LISTED_SINCE;
	me()->unsent |= (uint8_t)BIT(e);
	if (!needs_no_list())
		want_list();
}

static void delete_entry(int e)
{
	struct mount *mount = me();

	/* It guards the lock for the taker that got it by hand-off: handoff.c goes on. */
	if (mount->unseen && mount->flags & M_HELD_BACK) {
		if (!LEFT_OUT(held_back_is_not_asked))
			entry_watch(mount->unseen - 1);
		return;
	}
	S.taker[e].entry = DELETING;
	mount->unsent |= (uint8_t)BIT(e);
}

static void taker_fail(int e)
{
	taker_leave(e);
}

void taker_step(int e)
{
	struct taker *t = &S.taker[e];
	bool ready = me()->link == 2;

	if (t->entry == ABSENT) {
		if (!is_wanted(e))
			free_if_done(e);
		else if (t->state == WAIT && t->more & A_MADE &&
		         !LEFT_OUT(create_again_before_the_list))
			taker_fail(e); /* it would queue again */
		else if (ready && t->state == WAIT &&
		         (!(me()->flags & M_UNRESOLVED) || LEFT_OUT(create_again_before_the_list)))
			create_entry(e);
	} else if (t->entry == PRESENT) {
		if (ready && !is_wanted(e) && !(t->flags & F_GONE))
			delete_entry(e);
	}
}

void loss_of_node(int e)
{
	struct taker *t = &S.taker[e];

	if (t->flags & F_GONE)
		return;
	t->flags |= F_GONE;
	want_list();
	if (t->state == HELD)
		taker_lose(e);
}

void loss_by_mark(int e)
{
	if (S.taker[e].state == WAIT)
		taker_fail(e);
	else if (S.taker[e].state == HELD)
		taker_lose(e);
}

void loss_by_listing(int e)
{
	set_absent(e);
	if (S.taker[e].state == WAIT)
		taker_fail(e);
	else if (S.taker[e].state == HELD)
		taker_lose(e);
	else
		free_if_done(e);
}

void loss_of_lease(void)
{
	EACH_TAKER(e)
		if (S.taker[e].state == HELD && !LEFT_OUT(lost_holds_on))
			taker_lose(e);
}

bool has_unknown(void)
{
	EACH_TAKER(e)
		if (S.taker[e].entry == UNKNOWN)
			return true;
	return false;
}
