/* SPDX-License-Identifier: MIT
 *
 * world.c - what happens without a fault: takers come and go, the ensemble works.
 */
#include "model.h"

#include "check.h"

void done(enum action action, int first, int second)
{
	if (S.broken == BROKEN_FULL) {
		check_drop();
		return;
	}
	trim_log();
	if (!S.broken)
		normal_form();
	check_next(&S,
	           (unsigned)action << 16 | (unsigned)(first + 1) << 8 | (unsigned)(second + 1));
}

static void act_commit(const struct state *s, int m)
{
	struct request r;
	struct change change = {0};
	unsigned there = committed(s);
	bool ok = true;
	int at = 0;

	/* The leader does not wait for reads that were sent before a write. */
	if (count_former(&s->mount[m]) == 0)
		for (int n = count_committed(s, m); at < s->mount[m].requests; at++)
			if (s->mount[m].request[at].kind <= R_BEAT && n-- == 0)
				break;
	if (at >= s->mount[m].requests || !s->mount[m].session)
		return;
	r = s->mount[m].request[at];
	S = *s;
	M = m;
	if (r.kind == R_WRITE) {
		ok = (r.deletes & ~there) == 0 &&
		     (!(r.check & ~FORMER) || there & BIT((r.check & ~FORMER) - 1));
		if (ok) {
			change.deleted = r.deletes;
			change.made = r.entry;
		}
	}
	change.by = (uint8_t)((r.check & FORMER ? 0 : m + 1) | (ok ? 0 : REFUSED));
	if (!append(change))
		return;
	if (r.check & FORMER)
		pop(&S.mount[m], 0);
	done(COMMIT, m, -1);
}

static void answer(struct request request, bool there, bool marked)
{
	int e = request.entry;

	switch (request.kind) {
	case R_WATCH:
		own_watch_answered(e, there, marked);
		break;
	case R_FRONT:
		front_answered(e, request.check, there);
		break;
	case R_LOOK:
		look_answered(e, there, marked);
		break;
	case R_CANDIDATE:
		candidate_answered(e, there, marked);
		break;
	default:
		break;
	}
}

static void act_serve(const struct state *s, int m)
{
	int at = count_former(&s->mount[m]);
	struct request request;
	unsigned present, marks;

	if (s->mount[m].requests <= at || s->mount[m].link == 0 ||
	    s->mount[m].request[at].kind <= R_BEAT)
		return;
	S = *s;
	M = m;
	request = pop(&S.mount[m], at);
	view(&S, S.mount[m].applied, &present, &marks);
	if ((request.kind == R_WATCH || request.kind == R_FRONT) && present & BIT(request.entry))
		S.mount[m].watches |= (uint8_t)BIT(request.entry);
	if (request.kind == R_LIST)
		S.mount[m].names |= request.check;
	if (request.kind == R_LIST)
		listed(present);
	else
		answer(request, present & BIT(request.entry), marks & BIT(request.entry));
	end_turn();
	done(SERVE, m, -1);
}

/* The events of one transaction, in this order or the other. */
static void tell_deleted(unsigned deleted, bool reversed)
{
	struct mount *mount = me();

	going = deleted;
	for (int i = 0; i < config.takers; i++) {
		int e = reversed ? config.takers - 1 - i : i;

		if (!(deleted & mount->watches & BIT(e)))
			continue;
		mount->watches &= (uint8_t)~BIT(e);
		entry_changed(e, true);
	}
	going = 0;
}

static void tell_marked(int e)
{
	struct mount *mount = me();

	if (mount->watches & BIT(e)) {
		mount->watches &= (uint8_t)~BIT(e);
		entry_changed(e, false);
	}
	if (config.owner[e] == M && mount->link == 2) { /* the poke */
		mount->late |= L_POKED;
		look(e);
	}
}

static void apply(struct change change, bool reversed)
{
	struct request request;

	me()->applied++;
	tell_deleted(change.deleted, reversed);
	if ((change.deleted || change.made) && me()->names) {
		me()->names = 0;
		names_changed();
	}
	if (change.marked)
		tell_marked(change.marked - 1);
	if ((change.by & ~REFUSED) == M + 1) {
		request = pop(me(), 0);
		if (request.kind == R_BEAT)
			beat_answered();
		else
			write_answered(request, !(change.by & REFUSED));
	}
	end_turn();
}

static void act_apply(const struct state *s, int m)
{
	const struct mount *mount = &s->mount[m];
	struct change change = s->log[mount->applied < LOG_MAX ? mount->applied : 0];

	if (mount->link == 0 || mount->applied >= s->logged)
		return;
	if ((change.by & ~REFUSED) == m + 1 && mount->request[0].kind > R_BEAT)
		return; /* reads that were sent before it come first */
	for (int reversed = 0; reversed < 1 + (__builtin_popcount(change.deleted) > 1);
	     reversed++) {
		S = *s;
		M = m;
		apply(change, reversed);
		done(reversed ? APPLY_REVERSED : APPLY, m, -1);
	}
}

/* Those of a mount begin in the order of their numbers. */
static bool may_begin(const struct state *s, int e)
{
	if (e >= config.users || s->taker[e].state != IDLE ||
	    (!s->mount[config.owner[e]].session && !config.again))
		return false;
	return e == 0 || config.owner[e - 1] != config.owner[e] || s->taker[e - 1].state != IDLE;
}

static void act_begin(const struct state *s, int e)
{
	if (!may_begin(s, e))
		return;
	S = *s;
	M = config.owner[e];
	take(e);
	end_turn();
	done(BEGIN, e, -1);
}

static void act_leave(const struct state *s, int e)
{
	int st = s->taker[e].state;

	if (!(st == HELD || st == LOST || (st == WAIT && config.waiters_leave)))
		return;
	S = *s;
	M = config.owner[e];
	leave(e);
	end_turn();
	done(LEAVE, e, -1);
}

/* A release and the next take of the mount, met in one turn: rule 19. */
static void act_retake(const struct state *s, int e, int k)
{
	if (s->taker[e].state != HELD || config.owner[e] != config.owner[k] || !may_begin(s, k))
		return;
	S = *s;
	M = config.owner[e];
	leave(e);
	take(k);
	end_turn();
	done(RETAKE, e, k);
}

static void act_slow(const struct state *s, int e)
{
	if (!(s->taker[e].flags & F_RECHECK))
		return;
	S = *s;
	M = config.owner[e];
	S.taker[e].flags &= (uint8_t)~F_RECHECK;
	entry_watch(e);
	handoff_watch_next(e);
	end_turn();
	done(SLOW, e, -1);
}

void expand(const void *state)
{
	const struct state *s = state;

	for (int m = 0; m < config.mounts; m++) {
		act_commit(s, m);
		act_serve(s, m);
		act_apply(s, m);
	}
	for (int e = 0; e < config.takers; e++) {
		act_begin(s, e);
		act_leave(s, e);
		act_slow(s, e);
		for (int next = 0; next < config.takers; next++)
			act_retake(s, e, next);
	}
	expand_faults(s);
}
