/* SPDX-License-Identifier: MIT
 *
 * faults.c - what else happens: connections, processes, leases and sessions end, operators delete
 * entries, evictors mark them and delete them in the end.
 */
#include "model.h"

#include <string.h>

/* Its outcome is unknown. */
static void write_lost(struct request request)
{
	struct mount *mount = me();

	if (request.entry && (request.deletes || request.check))
		mount->more &= (uint8_t)~N_TOGETHER;
	for (int e = 0; e < config.takers; e++) {
		if (!(request.deletes & BIT(e)))
			continue;
		mount->flags &= (uint8_t)~M_WRITE_OK;
		S.taker[e].entry = PRESENT;
		if (!LEFT_OUT(delete_dropped_when_unknown))
			continue;
		set_absent(e);
		free_if_done(e);
	}
	if (request.entry) {
		S.taker[request.entry - 1].entry = UNKNOWN;
		mount->flags |= M_UNRESOLVED | M_WANT;
		mount->flags &= (uint8_t)~M_WRITE_OK;
	}
}

static void request_lost(struct request request)
{
	struct mount *mount = me();
	int e = request.entry;

	switch (request.kind) {
	case R_WRITE:
		write_lost(request);
		return;
	case R_WATCH:
		watch_answered(&S.taker[e].watch, false);
		break;
	case R_FRONT:
		if (mount->tag == request.check && mount->front_watched == e + 1)
			watch_answered(&mount->front_watch, false);
		break;
	case R_LIST:
		list_is_answered();
		break;
	case R_CANDIDATE:
		S.taker[e].more &= (uint8_t)~A_CANDIDATE;
		break;
	default:
		return;
	}
	want_list();
}

/* All requests are answered that they are unknown; writes that the leader does not have yet may
 * still come to it. */
static void requests_lost(int happened)
{
	struct mount *mount = me();
	struct mount before = *mount;

	memset(mount->request, 0, sizeof(mount->request));
	mount->requests = 0;
	for (int i = 0; i < before.requests; i++) {
		struct request request = before.request[i];

		if (request.kind == R_WRITE && request.check & FORMER) {
			mount->request[mount->requests++] = request;
			continue;
		}
		request_lost(request);
		if (request.kind <= R_BEAT && happened-- > 0)
			continue;
		if (request.kind == R_WRITE) {
			request.check |= FORMER;
			mount->request[mount->requests++] = request;
		}
	}
}

static void forget_answers(int m)
{
	for (int i = 0; i < S.logged; i++)
		if ((S.log[i].by & ~REFUSED) == m + 1)
			S.log[i].by = 0;
}

/* What was not sent stays unsent. */
static void batch_clear(void)
{
	struct mount *mount = me();
	unsigned unsent = mount->unsent;

	mount->unsent = 0;
	EACH_TAKER(e) {
		if (!(unsent & BIT(e)))
			continue;
		mount->flags &= (uint8_t)~M_WRITE_OK;
		if (S.taker[e].entry == CREATING)
			set_absent(e);
		else
			S.taker[e].entry = PRESENT;
		if (is_in_list(e))
			taker_step(e);
	}
}

static void lose_connection(const struct state *s, int m)
{
	struct mount *mount = &S.mount[m];

	S = *s;
	M = m;
	mount->link = mount->names = 0;
	EACH_TAKER(e)
		if (S.taker[e].watch == W_GOOD)
			S.taker[e].watch = W_OLD;
	if (mount->front_watch == W_GOOD)
		mount->front_watch = W_OLD;
	requests_lost(count_committed(s, m));
	forget_answers(m);
	mount->looks = 0;
	mount->more &= (uint8_t)~N_BEATING;
	batch_clear();
}

static void act_cut(const struct state *s, int m)
{
	if (s->cuts == 0 || s->mount[m].link == 0)
		return;
	lose_connection(s, m);
	S.cuts--;
	done(CUT, m, -1);
}

/* Another process goes on, by the record of this one: rules 38 and 40. Its client has seen nothing,
 * so its server may be one that lags. */
static void act_reload(const struct state *s, int m)
{
	if (s->reloads == 0 || !s->mount[m].session)
		return;
	for (int pos = 0; pos <= s->mount[m].applied; pos++) {
		struct mount *mt = &S.mount[m];

		lose_connection(s, m);
		S.reloads--;
		mt->applied = (uint8_t)pos;
		mt->watches = mt->front = mt->front_watched = mt->front_watch = 0;
		if (LEFT_OUT(guard_of_a_hand_off_forgotten))
			mt->unseen = 0;
		mt->flags &= M_UNRESOLVED;
		mt->more &= (uint8_t)~N_OVERTAKEN;
		EACH_TAKER(e) {
			S.taker[e].watch = W_IDLE;
			S.taker[e].flags &=
				LEFT_OUT(place_kept_over_a_reload) ? 0xff : F_GONE | F_RECHECK;
			if (!LEFT_OUT(place_kept_over_a_reload))
				S.taker[e].ahead = 0;
		}
		done(RELOAD, m, pos);
	}
}

static void act_connect(const struct state *s, int m)
{
	unsigned there, marks;

	if (s->mount[m].link != 0 || !s->mount[m].session)
		return;
	S = *s;
	M = m;
	S.mount[m].link = 1;
	view(&S, S.logged, &there, &marks);
	S.mount[m].late =
		(uint8_t)((S.mount[m].late & L_LEASE) | ((marks & config.of_mount[m]) != 0));
	if (config.marks || LEFT_OUT(granted_before_marks_are_read))
		S.mount[m].more |= N_MARKS;
	there = shown(&S, m);
	for (int e = 0; e < config.takers; e++)
		if (S.mount[m].watches & BIT(e) && !(there & BIT(e))) {
			S.mount[m].watches &= (uint8_t)~BIT(e);
			entry_changed(e, true);
		}
	if (LEFT_OUT(barrier_left_out)) {
		become_ready();
		end_turn();
	} else {
		S.mount[m].more |= N_BEATING;
		push(R_BEAT, 0, 0, 0);
	}
	done(CONNECT, m, -1);
}

static void act_drop(const struct state *s, int m)
{
	if (s->mount[m].requests == 0 || !(s->mount[m].request[0].check & FORMER))
		return;
	S = *s;
	M = m;
	while (count_former(&S.mount[m]) > 0)
		pop(&S.mount[m], 0);
	done(DROP, m, -1);
}

/* Without a connection it sees nothing, and may connect to a server that is further. */
static void act_skip(const struct state *s, int m)
{
	if (s->mount[m].link != 0 || !s->mount[m].session || s->mount[m].applied >= s->logged)
		return;
	S = *s;
	S.mount[m].applied++;
	done(SKIP, m, -1);
}

static void act_lease_end(const struct state *s, int m)
{
	if (s->ends == 0 || !s->mount[m].lease || !s->mount[m].session)
		return;
	S = *s;
	M = m;
	S.ends--;
	S.mount[m].lease = 0;
	S.mount[m].late &= (uint8_t)~L_LEASE;
	loss_of_lease();
	end_turn();
	done(LEASE_END, m, -1);
}

/* No more of it. */
static void mount_ends(int m)
{
	memset(&S.mount[m], 0, sizeof(S.mount[m]));
	S.mount[m].applied = S.logged;
	for (int e = 0; e < config.takers; e++)
		if (config.owner[e] == m)
			S.taker[e] = (struct taker){
				.state = LEFT_OUT(lost_holds_on) && S.taker[e].state == HELD
			                         ? HELD
			                         : DEAD};
}

/* The mount hears of it when it connects: act_again(). */
static void act_expire(const struct state *s, int m)
{
	struct mount *mount = &S.mount[m];

	if (s->mount[m].lease || !s->mount[m].session)
		return;
	lose_connection(s, m);
	if (!append((struct change){.deleted = (uint8_t)(committed(&S) & config.of_mount[m])}))
		return;
	if (!config.again || s->mount[m].session == 2) {
		mount_ends(m);
	} else {
		memset(mount->request, 0, sizeof(mount->request));
		mount->requests = mount->watches = mount->session = mount->late = 0;
		mount->more &= (uint8_t) ~(N_MARKS | N_OLD_CONNECTION);
		mount->applied = S.logged;
	}
	done(EXPIRE, m, -1);
}

/* It is told that its session has ended, and begins another one, at a server that knows of that. */
static void act_again(const struct state *s, int m)
{
	struct mount *mount = &S.mount[m];

	if (s->mount[m].session || !config.again)
		return;
	S = *s;
	M = m;
	mount->front = mount->unseen = 0;
	mount->flags &= (uint8_t) ~(M_LEAVER | M_LEASE | M_UNRESOLVED | M_WRITE_OK);
	mount->more &= (uint8_t)~N_TOGETHER;
	watch_none();
	EACH_TAKER(e)
		loss_of_session(e);
	mount->session = 2;
	mount->link = 1;
	mount->more |= N_BEATING;
	push(R_BEAT, 0, 0, 0);
	done(AGAIN, m, -1);
}

static void act_opdel(const struct state *s, int e)
{
	unsigned there = committed(s);

	if (s->deletes == 0 || !(there & BIT(e)))
		return;
	S = *s;
	S.deletes--;
	if (!append((struct change){.deleted = (uint8_t)BIT(e)}))
		return;
	S.taker[e].more |= A_DELETED;
	done(DELETE, e, -1);
}

static void act_pair(const struct state *s, int e, int k)
{
	unsigned there = committed(s);

	if (s->pairs == 0 || !(there & BIT(e)) || !(there & BIT(k)))
		return;
	S = *s;
	S.pairs--;
	if (!append((struct change){.deleted = (uint8_t)(BIT(e) | BIT(k))}))
		return;
	S.taker[e].more |= A_DELETED;
	S.taker[k].more |= A_DELETED;
	done(PAIR, e, k);
}

static void act_mark(const struct state *s, int e)
{
	unsigned there, marks;

	view(s, s->logged, &there, &marks);
	if (s->marks == 0 || !(there & BIT(e)) || marks & BIT(e))
		return;
	S = *s;
	S.marks--;
	if (!append((struct change){.marked = (uint8_t)(e + 1)}))
		return;
	done(MARK, e, -1);
}

static void act_evict(const struct state *s, int e)
{
	unsigned there, marks;
	int st = s->taker[e].state;

	view(s, s->logged, &there, &marks);
	if (!(marks & BIT(e)) || !(there & BIT(e)))
		return;
	/* A session timeout since the answered poke: so the mount has no lease, or one from after
	 * the poke. */
	if (s->mount[config.owner[e]].lease && !(s->mount[config.owner[e]].late & L_LEASE) &&
	    (st == WAIT || st == HELD))
		return;
	S = *s;
	if (!append((struct change){.deleted = (uint8_t)BIT(e)}))
		return;
	if (st == WAIT || st == HELD)
		S.evicted |= (uint8_t)BIT(e);
	if (S.mount[config.owner[e]].link == 1)
		S.mount[config.owner[e]].more |= N_OLD_CONNECTION;
	done(EVICT, e, -1);
}

/* Heartbeats go on; they make a difference only here. */
static void act_beat(const struct state *s, int m)
{
	const struct mount *mount = &s->mount[m];

	if (mount->link != 2 || mount->more & N_BEATING || mount->requests > 0)
		return;
	if (mount->lease && (mount->late & (L_LEASE | L_POKED)) != L_POKED)
		return;
	S = *s;
	M = m;
	S.mount[m].more |= N_BEATING;
	push(R_BEAT, 0, 0, 0);
	done(BEAT, m, -1);
}

static void expand_operators(const struct state *s)
{
	for (int e = 0; e < config.takers; e++) {
		act_opdel(s, e);
		act_mark(s, e);
		act_evict(s, e);
		for (int other = e + 1; other < config.takers; other++)
			act_pair(s, e, other);
	}
}

void expand_faults(const struct state *s)
{
	for (int m = 0; m < config.mounts; m++) {
		act_cut(s, m);
		act_reload(s, m);
		act_connect(s, m);
		act_drop(s, m);
		act_skip(s, m);
		act_lease_end(s, m);
		act_expire(s, m);
		act_again(s, m);
		act_beat(s, m);
	}
	expand_operators(s);
}
