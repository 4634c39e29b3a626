/* SPDX-License-Identifier: MIT
 *
 * taker.c - what a mount knows of its takers and their entries, and what each does next: taker.c,
 * entry.c and loss.c of the engine.
 */
#include "model.h"

struct mount *me(void)
{
	return &S.mount[M];
}

/* ---- the list of the mount ---- */

unsigned begin_walk(void)
{
	unsigned list = 0;

	for (int e = 0; e < config.takers; e++)
		if (config.owner[e] == M && S.taker[e].place)
			list |= (unsigned)(e + 1) << 4 * (S.taker[e].place - 1);
	return list;
}

int walk(int *left)
{
	int e = (*left & 15) - 1;

	*left = (int)((unsigned)*left >> 4);
	return e;
}

static int taker_at(int place)
{
	return (int)(begin_walk() >> 4 * (place - 1) & 15) - 1;
}

int taker_behind(int e)
{
	return S.taker[e].place < TAKERS ? taker_at(S.taker[e].place + 1) : -1;
}

int taker_before(int e)
{
	return S.taker[e].place > 1 ? taker_at(S.taker[e].place - 1) : -1;
}

static void unlist(int e)
{
	EACH_TAKER(other)
		if (S.taker[other].place > S.taker[e].place)
			S.taker[other].place--;
	S.taker[e].place = 0;
}

static void list_at_the_end(int e)
{
	int last = 0;

	EACH_TAKER(other)
		last = S.taker[other].place;
	S.taker[e].place = (uint8_t)(last + 1);
}

bool is_in_list(int e)
{
	return S.taker[e].place;
}

/* ---- what it is ---- */

static bool is_of(unsigned mask, int e)
{
	return mask & BIT(e % config.users);
}

bool is_shared(int e)
{
	return is_of(config.shared, e);
}

bool is_try(int e)
{
	return is_of(config.tries, e);
}

bool is_upgrade(int e)
{
	return is_of(config.upgrades, e);
}

int replaced(int e)
{
	int old = e % config.users, again;

	do
		old--;
	while (!(config.shared & BIT(old)));
	again = old + config.users;
	return again < config.takers && S.taker[again].state != IDLE ? again : old;
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
	if (count_holding() == 0 ||
	    (config.slots != 1 && !LEFT_OUT(holder_causes_a_list_with_slots)))
		return false;
	if (count_takers(HELD, true) > 0 || LEFT_OUT(shared_holders_guard))
		return true;
	EACH_TAKER(e)
		if (may_be_queued(e))
			return !is_shared(e) &&
			       (!(S.taker[e].more & A_REPLACES) ||
			        LEFT_OUT(upgrade_is_an_obstacle_like_any)) &&
			       S.taker[e].watch != W_IDLE;
	return false;
}

bool needs_list(int e)
{
	return (S.taker[e].more & A_REPLACES && !LEFT_OUT(upgrade_is_not_listed)) || is_try(e) ||
	       !needs_no_list();
}

static bool lock_bars(int e)
{
	if (config.slots != 1)
		return false;
	return is_shared(e) ? count_takers(HELD, true) > 0 : count_holding() > 0 || me()->front;
}

void set_state(int e, int st)
{
	struct taker *t = &S.taker[e];
	struct mount *m = me();
	int old = t->state;

	t->state = (uint8_t)st;
	t->wait = 0;
	t->more &= (uint8_t)~A_FREE;
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

static void list_last(int e)
{
	unlist(e);
	list_at_the_end(e);
}

static void replace(int e)
{
	S.taker[e].more |= A_REPLACES;
	if (S.taker[e].entry == ABSENT)
		list_last(e);
}

/* It is not to take another one's place, nor another one its. */
static void part(int e)
{
	S.taker[e].more &= (uint8_t)~A_REPLACES;
	EACH_TAKER(other)
		if (S.taker[other].more & A_REPLACES && replaced(other) == e)
			S.taker[other].more &= (uint8_t)~A_REPLACES;
}

static void taker_lose(int e)
{
	if (!LEFT_OUT(upgrade_of_a_lost_hold))
		part(e); /* its guarded entry bars the way of the one that replaces it, too */
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

	if (S.taker[e].state != LEFT || S.taker[e].entry != ABSENT || !is_in_list(e))
		return;
	S.taker[e].flags = 0;
	S.taker[e].follows = 0;
	unlist(e);
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
	list_last(e);
	if (needs_list(e))
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
	part(e);
	taker_leave(e);
}

static void taker_probe(int e)
{
	S.taker[e].wait = (uint8_t)(1 + me()->lists); /* an older one says nothing */
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
		else if (!ready || t->state != WAIT)
			return;
		else if (t->wait)
			want_list();
		else if ((!(me()->flags & M_UNRESOLVED) || LEFT_OUT(create_again_before_the_list)))
			create_entry(e);
	} else if (t->entry == PRESENT) {
		if (ready && !is_wanted(e) && !(t->flags & F_GONE))
			delete_entry(e);
	}
}

/* ---- take and leave ---- */

void taker_enter(int e)
{
	S.taker[e].state = WAIT;
	list_at_the_end(e);
}

void take(int e)
{
	taker_enter(e);
	if (is_upgrade(e) && S.taker[replaced(e)].state == HELD) {
		replace(e);
		taker_step(e);
	} else if (is_try(e) && lock_bars(e) && me()->lease) {
		refuse_try(e);
	} else {
		if (is_try(e) && !LEFT_OUT(try_does_not_list_first))
			taker_probe(e);
		taker_step(e);
	}
}

void leave(int e)
{
	part(e);
	handoff_leave(e);
	taker_leave(e);
}

/* These entries are in its way; those of ours that leave are not, nor the one that it replaces.
 * `by_exclusive`: only those. */
static bool is_barred(int e, unsigned entries, bool by_exclusive)
{
	int exclusive = 0, shared = 0;

	for (int k = 0; k < config.takers; k++) {
		bool old = S.taker[e].more & A_REPLACES && replaced(e) == k;
		bool leaves = config.owner[k] == M && !is_wanted(k);

		if (!(entries & BIT(k)) || k == e || old || leaves)
			continue;
		exclusive += !is_shared(k);
		shared += is_shared(k);
	}
	return by_exclusive ? exclusive > 0 : exclusive >= config.slots || shared > 0;
}

/* The entries that the mount was shown, or that are its own. */
static unsigned known(void)
{
	unsigned entries = shown(&S, M) & ~config.of_mount[M];

	EACH_TAKER(e)
		entries |= S.taker[e].entry != ABSENT ? BIT(e) : 0;
	return entries;
}

void refuse_try(int e)
{
	if (!is_barred(e, known(), is_shared(e)))
		S.broken = BROKEN_TRY;
	taker_fail(e);
}

void refuse_upgrade(int e)
{
	if (S.taker[replaced(e)].state != HELD || !is_barred(e, known(), !is_try(e)))
		S.broken = BROKEN_UPGRADE;
	taker_fail(e);
}

/* For the judge: only then may it make an entry. */
void note_free(void)
{
	EACH_TAKER(e)
		if (S.taker[e].state == WAIT && is_try(e) &&
		    !is_barred(e, shown(&S, M), is_shared(e)))
			S.taker[e].more |= A_FREE;
}

/* A holder is told, and the one whose place it has taken leaves. Who waits may replace a shared
 * one of the same owner: let_replace() in fs/hold/flock_claim.c. */
bool tell(void)
{
	bool any = false;

	EACH_TAKER(e) {
		struct taker *taker = &S.taker[e];

		if (!is_upgrade(e) || S.taker[replaced(e)].state != HELD)
			continue;
		if (taker->state == HELD && taker->more & A_REPLACES) {
			leave(replaced(e));
			any = true;
		} else if (taker->state == WAIT && !(taker->more & A_REPLACES)) {
			replace(e);
			if (!LEFT_OUT(replaces_later_and_is_not_looked_at))
				want_list();
			any = true;
		}
	}
	return any;
}

/* ---- losses ---- */

/* It waits or holds: then somebody has deleted its entry. */
static void has_cause(int e)
{
	bool has_place = S.taker[e].state == WAIT || S.taker[e].state == HELD;

	if (has_place && !(S.taker[e].more & A_DELETED) && !(S.evicted & BIT(e)))
		S.broken = BROKEN_CAUSE;
}

/* A waiter goes on under another index, since a server that lags may show its former entry. */
void loss_of_session(int e)
{
	struct taker *taker = &S.taker[e];

	if (LEFT_OUT(entries_kept_over_a_session) && taker->state == WAIT)
		return;
	if (taker->entry != ABSENT)
		set_absent(e);
	if (taker->state == HELD && !LEFT_OUT(lost_holds_on))
		taker_lose(e);
	free_if_done(e);
	if (taker->state != WAIT || !(taker->more & A_MADE))
		return;
	S.taker[e + config.users] = (struct taker){
		.state = WAIT,
		.place = taker->place,
		.wait = (uint8_t) !!taker->wait,
		.more = taker->more & A_FREE,
	};
	*taker = (struct taker){.state = DEAD};
}

void loss_of_node(int e)
{
	struct taker *t = &S.taker[e];

	if (t->flags & F_GONE)
		return;
	has_cause(e);
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
	has_cause(e);
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
