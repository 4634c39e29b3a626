/* SPDX-License-Identifier: MIT */
#include "pure/next.h"

#include <errno.h>
#include <stddef.h>

/* Entries that stand before another one. */
struct before {
	int count, shared, apart;
	int foreign;     /* of other clients, */
	int others[2];   /*   the last two of them; NEXT_NONE */
	int doubtful;    /*   doubtful ones among them */
	int staying;     /* of own takers that do not leave, */
	int lost;        /*   lost ones among them */
	int last_leaver; /* the last one of an own taker that leaves; NEXT_NONE */
};

/* All of them, and the exclusive ones alone. */
struct ahead {
	struct before all, exclusive;
	unsigned waiting; /* so many of them may not hold */
	bool shown_only;  /* those that the last listing showed */
};

static const struct ahead nobody = {
	.all = {.others = {NEXT_NONE, NEXT_NONE}, .last_leaver = NEXT_NONE},
	.exclusive = {.others = {NEXT_NONE, NEXT_NONE}, .last_leaver = NEXT_NONE},
};

static bool goes(const struct next_taker *taker)
{
	return taker && (taker->state == NEXT_LEAVING || taker->state == NEXT_KEPT);
}

static struct next_taker *taker_at(const struct next_queue *queue, int i)
{
	int taker = queue->entries[i].taker;

	return taker == NEXT_NONE ? NULL : &queue->takers[taker];
}

static void count(struct before *before, const struct next_queue *queue, int i)
{
	const struct next_entry *entry = &queue->entries[i];
	const struct next_taker *taker = taker_at(queue, i);

	before->count++;
	before->shared += entry->shared;
	before->apart += entry->apart;
	if (!taker) {
		before->foreign++;
		before->doubtful += entry->doubtful;
		before->others[0] = before->others[1];
		before->others[1] = i;
	} else if (goes(taker)) {
		before->last_leaver = i;
	} else {
		before->staying++;
		before->lost += taker->state == NEXT_LOST;
	}
}

/* K6: for an upgrade, without the shared hold that it replaces. */
static struct before without_replaced(const struct ahead *ahead, const struct next_queue *queue,
                                      const struct next_taker *taker)
{
	struct before left = ahead->all;
	int place = taker->replaces == NEXT_NONE ? NEXT_NONE : queue->takers[taker->replaces].place;

	if (place == NEXT_NONE || place > taker->place ||
	    queue->takers[taker->replaces].state != NEXT_HOLDING ||
	    (ahead->shown_only && !queue->entries[place].shown))
		return left;
	left.count--;
	left.shared--;
	left.staying--;
	return left;
}

/* Whether those bar the way of a taker; and which: all of them, or the exclusive ones. */
static bool find_bars(const struct next_queue *queue, const struct ahead *ahead,
                      const struct next_taker *taker, unsigned slots, struct before *ret_bars)
{
	struct before all;

	if (taker->shared) {
		*ret_bars = ahead->exclusive;
		return ahead->exclusive.count > 0;
	}
	all = *ret_bars = without_replaced(ahead, queue, taker);
	if (slots > 1 && (unsigned)all.count < slots && all.shared == 0 && all.apart == 0)
		return false;
	return all.count > 0;
}

static bool bars_way(const struct next_queue *queue, const struct ahead *ahead,
                     const struct next_taker *taker, unsigned slots)
{
	struct before ignored;

	return find_bars(queue, ahead, taker, slots, &ignored);
}

static unsigned slots_known(const struct next_queue *queue)
{
	return queue->lock_watched && queue->slots > 0 ? queue->slots : 1;
}

static void add(struct ahead *ahead, const struct next_queue *queue, int i)
{
	const struct next_entry *entry = &queue->entries[i];
	struct next_taker as = {.shared = entry->shared, .replaces = NEXT_NONE};

	ahead->waiting += bars_way(queue, ahead, &as, slots_known(queue));
	count(&ahead->all, queue, i);
	if (!entry->shared)
		count(&ahead->exclusive, queue, i);
}

static void want_list(struct next_queue *queue, enum next_list list)
{
	if (queue->list < list)
		queue->list = list;
}

/* One that was sent after the taker came is under way, or is to be sent. */
static void want_list_since(struct next_queue *queue, const struct next_taker *taker)
{
	if (taker->shown_since || taker->asked_since)
		want_list(queue, NEXT_LIST_ANY);
	else
		want_list(queue, NEXT_LIST_NEW);
}

static void turn_away(struct next_taker *taker, int error)
{
	taker->step = NEXT_REFUSE;
	taker->error = error;
	taker->state = taker->state == NEXT_PROBING ? NEXT_OTHER : NEXT_LEAVING;
}

/* ---- takers that may be refused ---- */

/* Entries that do not leave: all that are known, and those that the last listing showed. */
struct staying {
	struct ahead known, shown;
};

static void add_staying(struct staying *staying, const struct next_queue *queue, int i)
{
	if (goes(taker_at(queue, i)))
		return;
	add(&staying->known, queue, i);
	if (queue->entries[i].shown)
		add(&staying->shown, queue, i);
}

/* More slots than are known would let it in: their number is asked first. */
static bool asks_slots(struct next_queue *queue, const struct ahead *ahead,
                       const struct next_taker *taker)
{
	if (queue->lock_watched || bars_way(queue, ahead, taker, queue->slots_max))
		return false;
	queue->watch_lock = true;
	return true;
}

/* K5. False: nobody bars its way. */
static bool judge_immediate(struct next_queue *queue, const struct staying *staying,
                            struct next_taker *taker)
{
	if (!bars_way(queue, &staying->known, taker, slots_known(queue)))
		return false;
	if (asks_slots(queue, &staying->known, taker))
		return true;
	if (taker->shown_since && bars_way(queue, &staying->shown, taker, slots_known(queue)))
		turn_away(taker, -EAGAIN);
	else
		want_list_since(queue, taker);
	return true;
}

/* The same for a taker that does not wait behind so many. False: there are not so many. */
static bool judge_crowd(struct next_queue *queue, const struct staying *staying,
                        struct next_taker *taker)
{
	if (taker->crowd == 0 || staying->known.waiting < taker->crowd)
		return false;
	if (!queue->lock_watched)
		queue->watch_lock = true;
	else if (staying->shown.waiting >= taker->crowd)
		turn_away(taker, -EAGAIN);
	else
		want_list_since(queue, taker);
	return true;
}

static void judge_probing(struct next_queue *queue, const struct staying *staying,
                          struct next_taker *taker)
{
	bool barred;

	if (!taker->shown_since) {
		want_list_since(queue, taker);
		return;
	}
	barred = taker->immediate ? judge_immediate(queue, staying, taker)
	                          : judge_crowd(queue, staying, taker);
	if (barred)
		return;
	taker->step = NEXT_CREATE;
	taker->state = NEXT_CREATING;
}

/* K6. False: it is no upgrade, or goes on waiting. */
static bool judge_upgrade(struct next_queue *queue, const struct staying *staying,
                          struct next_taker *taker)
{
	int error = taker->immediate ? -EAGAIN : -EDEADLK;

	if (taker->replaces == NEXT_NONE)
		return false;
	if (queue->takers[taker->replaces].state != NEXT_HOLDING)
		turn_away(taker, error);
	else if (staying->known.exclusive.count == 0)
		return false;
	else if (taker->shown_since)
		turn_away(taker, error);
	else
		want_list_since(queue, taker);
	return true;
}

/* Judges a taker that has an entry. */
static void judge_placed(struct next_queue *queue, const struct staying *staying,
                         struct next_taker *taker)
{
	if (!judge_upgrade(queue, staying, taker) && taker->immediate)
		judge_immediate(queue, staying, taker);
}

static bool may_be_refused(const struct next_taker *taker)
{
	return taker->state == NEXT_PROBING ||
	       (taker->state == NEXT_WAITING && (taker->immediate || taker->replaces != NEXT_NONE));
}

static void judge_those_who_do_not_wait(struct next_queue *queue)
{
	struct staying staying = {nobody, nobody};
	bool any = false;

	for (int t = 0; t < queue->taker_count; t++)
		any |= may_be_refused(&queue->takers[t]);
	if (!any)
		return;
	staying.shown.shown_only = true;
	for (int i = 0; i < queue->entry_count; i++) {
		struct next_taker *taker = taker_at(queue, i);

		if (taker && may_be_refused(taker))
			judge_placed(queue, &staying, taker);
		add_staying(&staying, queue, i);
	}
	for (int t = 0; t < queue->taker_count; t++) {
		struct next_taker *taker = &queue->takers[t];

		if (taker->state == NEXT_PROBING)
			judge_probing(queue, &staying, taker);
		else if (taker->place == NEXT_NONE && may_be_refused(taker))
			want_list(queue, NEXT_LIST_ANY); /* unplaced */
	}
}

/* ---- waiters, in order ---- */

static void watch_others(struct next_queue *queue, const struct before *bars)
{
	for (int k = 0; k < 2; k++)
		if (bars->others[k] != NEXT_NONE)
			queue->entries[bars->others[k]].watch =
				!queue->entries[bars->others[k]].doubtful;
}

/* Those before entry i that bar the way of a taker of its mode. */
static void watch_lost(struct next_queue *queue, const struct next_taker *taker, int i)
{
	for (int k = 0; k < i; k++) {
		struct next_taker *own = taker_at(queue, k);

		if (own && own->state == NEXT_LOST && !(taker->shared && queue->entries[k].shared))
			own->watch = true;
	}
}

static void let_in(struct next_taker *taker)
{
	taker->step = NEXT_GRANT;
	taker->state = NEXT_HOLDING;
}

/* K4, where only own leavers bar its way. */
static bool may_be_guarded(const struct next_queue *queue, const struct next_taker *taker,
                           const struct before *bars)
{
	const struct next_taker *guard = taker_at(queue, bars->last_leaver);

	if (taker->replaces != NEXT_NONE || queue->entries[bars->last_leaver].shared ||
	    guard->sent || guard->in_doubt)
		return false;
	return !taker->shared || (queue->unproved == NEXT_NONE && slots_known(queue) == 1);
}

static void grant_guarded(struct next_queue *queue, int i, const struct before *bars)
{
	struct next_taker *guard = taker_at(queue, bars->last_leaver);

	if (guard->state == NEXT_KEPT) {
		guard->step = NEXT_LEAVE;
		guard->state = NEXT_LEAVING;
	}
	let_in(taker_at(queue, i));
	queue->unproved = queue->entries[i].taker;
}

static void wait_for(struct next_queue *queue, int i, const struct before *bars)
{
	struct next_taker *taker = taker_at(queue, i);

	if (slots_known(queue) > 1) {
		queue->watch_children = true;
		if (!queue->children_watched)
			want_list(queue, NEXT_LIST_ANY);
		return;
	}
	if (bars->foreign > 0 || bars->shared > 0)
		taker->watch = true;
	watch_others(queue, bars);
	if (bars->doubtful > 0)
		want_list(queue, NEXT_LIST_ANY);
	if (bars->foreign == 0 && bars->lost > 0)
		watch_lost(queue, taker, i);
}

/* The waiter whose entry is the i-th. False: it waits, and so do all behind it. */
static bool judge_waiter(struct next_queue *queue, const struct ahead *ahead, int i)
{
	struct next_taker *taker = taker_at(queue, i);
	struct before bar;

	if (!find_bars(queue, ahead, taker, slots_known(queue), &bar)) {
		if (taker->seen)
			let_in(taker);
		else
			taker->watch = true;
		return true;
	}
	asks_slots(queue, ahead, taker);
	if (bar.foreign > 0 || bar.staying > 0) {
		wait_for(queue, i, &bar);
		return false;
	}
	if (!may_be_guarded(queue, taker, &bar))
		return false; /* the answers of their deletes tell */
	grant_guarded(queue, i, &bar);
	return true;
}

/* Own shared waiters that wait for the same as the i-th. */
static void watch_like(struct next_queue *queue, int i)
{
	for (; i < queue->entry_count && queue->entries[i].shared; i++) {
		struct next_taker *taker = taker_at(queue, i);

		if (taker && taker->state == NEXT_WAITING)
			taker->watch = true;
	}
}

/* The lowest number of an unplaced waiter; INT64_MAX: none. */
static int64_t first_unplaced(const struct next_queue *queue)
{
	int64_t first = INT64_MAX;

	for (int t = 0; t < queue->taker_count; t++) {
		const struct next_taker *taker = &queue->takers[t];

		if (taker->state == NEXT_WAITING && taker->place == NEXT_NONE &&
		    taker->number < first)
			first = taker->number;
	}
	return first;
}

static void judge_waiters(struct next_queue *queue)
{
	int64_t unplaced = first_unplaced(queue);
	struct ahead ahead = nobody;

	for (int i = 0; i < queue->entry_count; i++) {
		const struct next_taker *taker = taker_at(queue, i);

		if (taker && taker->state == NEXT_WAITING) {
			if (queue->entries[i].number > unplaced)
				break; /* K1 */
			if (!judge_waiter(queue, &ahead, i)) {
				if (taker->shared && taker->watch)
					watch_like(queue, i);
				return;
			}
		}
		add(&ahead, queue, i);
	}
	if (unplaced != INT64_MAX)
		want_list(queue, NEXT_LIST_ANY);
}

/* ---- all of it ---- */

static void find_places(struct next_queue *queue)
{
	for (int t = 0; t < queue->taker_count; t++)
		queue->takers[t].place = NEXT_NONE;
	for (int i = 0; i < queue->entry_count; i++)
		if (queue->entries[i].taker != NEXT_NONE)
			queue->takers[queue->entries[i].taker].place = i;
}

/* K7. */
static void end_kept(struct next_queue *queue)
{
	int busy = 0;

	for (int t = 0; t < queue->taker_count; t++)
		busy += queue->takers[t].state != NEXT_OTHER;
	for (int t = 0; t < queue->taker_count && busy > 1; t++) {
		if (queue->takers[t].state != NEXT_KEPT)
			continue;
		queue->takers[t].step = NEXT_LEAVE;
		queue->takers[t].state = NEXT_LEAVING;
	}
}

void queue_next(struct next_queue *queue)
{
	find_places(queue);
	end_kept(queue);
	for (int t = 0; t < queue->taker_count; t++)
		if (queue->takers[t].state == NEXT_UNKNOWN)
			want_list(queue, NEXT_LIST_ANY);
	judge_those_who_do_not_wait(queue);
	judge_waiters(queue);
}

enum next_delete next_delete(int64_t number, int64_t unproved, bool held_back)
{
	if (unproved < 0)
		return NEXT_DELETE_SINGLY;
	if (held_back)
		return NEXT_DELETE_NOT;
	return number < unproved ? NEXT_DELETE_CHECKED : NEXT_DELETE_SINGLY;
}
