/* SPDX-License-Identifier: MIT
 *
 * listing.c - what a listing says: listing.c and admission.c of the engine, and its pure/queue.c.
 */
#include "model.h"

struct queue {
	int count;
	int entry[TAKERS], owner[TAKERS]; /* owner: the taker, if it is of this mount; or -1 */
	int blocker[TAKERS];
};

static bool is_own(int e)
{
	return config.owner[e] == M && is_in_list(e) && is_queued(e) &&
	       !(S.taker[e].flags & F_GONE);
}

static struct queue make_queue(unsigned names)
{
	struct queue queue = {0};
	int exclusive = -1, apart = -1, slots = config.slots;

	if (LEFT_OUT(one_slot_too_many) && slots > 1)
		slots++;
	for (int number = 1; number <= S.numbers; number++)
		for (int e = 0; e < config.takers; e++)
			if (names & BIT(e) && S.number[e] == number)
				queue.entry[queue.count++] = e;
	for (int i = 0; i < queue.count; i++) {
		int e = queue.entry[i];

		queue.owner[i] = is_own(e) ? e : -1;
		if (is_shared(e))
			queue.blocker[i] = exclusive;
		else if (apart >= 0 && slots > 1)
			queue.blocker[i] = apart;
		else
			queue.blocker[i] = i < slots ? -1 : i - 1;
		if (!is_shared(e))
			exclusive = i;
		else if (!LEFT_OUT(a_slot_beside_readers))
			apart = i;
	}
	return queue;
}

static void note_ahead(const struct queue *queue)
{
	int writer = -1;

	for (int i = 0; i < queue->count; i++) {
		int blocker = queue->blocker[i];
		bool shared = is_shared(queue->entry[i]), first = blocker == (shared ? writer : 0);
		bool known = config.slots == 1 && blocker >= 0 && queue->owner[blocker] < 0 &&
		             (first || !shared);
		unsigned is = 0;

		if (first)
			is = F_AHEAD_FIRST;
		else if (known && queue->owner[blocker - 1] >= 0)
			is = F_AHEAD_AFTER_OURS;
		if (queue->owner[i] >= 0)
			set_ahead(queue->owner[i], known ? queue->entry[blocker] : -1, is);
		if (!shared && writer < 0)
			writer = i;
	}
}

static bool waits_in_queue(int e)
{
	return e >= 0 && S.taker[e].state == WAIT && S.taker[e].entry == PRESENT;
}

static void wait_behind(const struct queue *queue, int i)
{
	int ahead = queue->blocker[i], owner = queue->owner[ahead];

	if (config.slots == 1 && owner < 0) {
		handoff_wait(queue->owner[i], queue->entry[ahead]);
		return;
	}
	entry_watch(queue->owner[i]);
	watch_none();
	if (config.slots > 1) {
		me()->front = (uint8_t)(queue->owner[i] + 1); /* the listing was watched */
		return;
	}
	if (S.taker[owner].state == LOST)
		entry_watch(owner);
	if (!is_wanted(owner))
		me()->flags |= M_LEAVER;
}

/* ---- tries and upgrades ---- */

static bool leaves(int e)
{
	return e >= 0 && !is_wanted(e);
}

/* It began to probe before this listing was sent. */
static bool probes(int e)
{
	return S.taker[e].state == WAIT && S.taker[e].wait == 1;
}

/* The entries that stand in the way. */
struct crowd {
	int all, exclusive, apart;
};

static bool bars(const struct crowd *crowd, int e)
{
	return is_shared(e) ? crowd->exclusive > 0
	                    : crowd->all >= config.slots || (crowd->apart > 0 && crowd->all > 0);
}

/* True: it is refused. */
static bool refuse(const struct crowd *crowd, int e)
{
	if (S.taker[e].more & A_REPLACES && !LEFT_OUT(upgrading_try_barred_by_its_own))
		return false;
	if (!is_try(e) || !bars(crowd, e))
		return false;
	refuse_try(e);
	return true;
}

static void answer_queued(const struct crowd *crowd, int e)
{
	if (waits_in_queue(e) && !LEFT_OUT(try_waits))
		refuse(crowd, e);
}

static void answer_immediate(const struct queue *queue)
{
	struct crowd crowd = {0};

	for (int i = 0; i < queue->count; i++) {
		bool shared = is_shared(queue->entry[i]);

		answer_queued(&crowd, queue->owner[i]);
		if (leaves(queue->owner[i]) && !LEFT_OUT(try_judged_by_own_leavers))
			continue;
		crowd.all++;
		crowd.exclusive += !shared;
		crowd.apart += shared;
	}
	EACH_TAKER(e) {
		if (!probes(e) || refuse(&crowd, e))
			continue;
		S.taker[e].wait = 0;
		taker_step(e);
	}
}

static void check_upgrade(struct queue *queue, int i)
{
	int e = queue->owner[i], blocker = -1;
	bool barred = false, leavers_only = true;

	for (int k = 0; k < i; k++) {
		if (queue->owner[k] == replaced(e) ||
		    (is_shared(queue->entry[k]) && LEFT_OUT(upgrade_past_other_readers)))
			continue;
		blocker = k;
		leavers_only &= leaves(queue->owner[k]);
		barred |=
			(!is_shared(queue->entry[k]) || LEFT_OUT(upgrade_refused_beside_readers)) &&
			!leaves(queue->owner[k]) && !LEFT_OUT(two_upgrades_wait_for_each_other);
	}
	if (barred || (is_try(e) && !leavers_only))
		refuse_upgrade(e);
	else
		queue->blocker[i] = blocker;
}

static void answer_waiters(struct queue *queue)
{
	for (int i = 0; i < queue->count; i++)
		if (waits_in_queue(queue->owner[i]) && S.taker[queue->owner[i]].more & A_REPLACES)
			check_upgrade(queue, i);
	answer_immediate(queue);
}

static void admit_waiters(const struct queue *queue)
{
	struct mount *mount = me();
	int i;

	mount->front = 0;
	mount->flags &= (uint8_t) ~(M_LEAVER | M_LEASE);
	for (i = 0; i < queue->count; i++) {
		if (!waits_in_queue(queue->owner[i]))
			continue;
		if ((queue->blocker[i] >= 0 && !LEFT_OUT(grant_when_not_first)) || !may_grant())
			break;
		handoff_grant(queue->owner[i], i == 0, BY_LISTING);
	}
	if (i == queue->count) {
		watch_none();
	} else if (queue->blocker[i] >= 0) {
		wait_behind(queue, i);
	} else {
		watch_none();
		mount->front = (uint8_t)(queue->owner[i] + 1);
		mount->flags |= M_LEASE;
	}
	if (!(mount->flags & M_HELD_BACK))
		mount->flags &= (uint8_t)~M_TOUCHED;
}

/* It may be the entry whose create was not answered: a read tells. */
static void ask_candidate(int e)
{
	if (S.taker[e].more & A_CANDIDATE)
		return;
	S.taker[e].more |= A_CANDIDATE;
	push(R_CANDIDATE, 0, e, 0);
}

/* The own entries that it shows. */
static unsigned match_shown(const struct queue *queue)
{
	unsigned own = 0;

	for (int i = 0; i < queue->count; i++) {
		int e = queue->entry[i];

		if (queue->owner[i] >= 0) {
			own |= BIT(e);
			if (i > 0 && queue->owner[i - 1] >= 0)
				S.taker[e].flags |= F_ADJACENT;
		} else if (config.owner[e] == M && S.taker[e].entry == UNKNOWN) {
			own |= BIT(e);
			ask_candidate(e);
		}
	}
	return own;
}

static void match_not_shown(unsigned own)
{
	EACH_TAKER(e) {
		struct taker *taker = &S.taker[e];

		if (!(own & BIT(e)) && taker->entry == UNKNOWN && !(taker->more & A_CANDIDATE)) {
			set_absent(e);
			free_if_done(e);
		} else if (!(own & BIT(e)) && taker->entry == PRESENT) {
			loss_by_listing(e);
		} else if (taker->state == HELD && !(taker->flags & F_RECHECK)) {
			entry_watch(e);
		}
	}
}

void step_all(void)
{
	EACH_TAKER(e)
		taker_step(e);
}

void list_is_answered(void)
{
	me()->lists--;
	EACH_TAKER(e)
		if (S.taker[e].wait > 1)
			S.taker[e].wait--;
}

void listed(unsigned names)
{
	struct mount *mount = me();
	struct queue queue = make_queue(names);
	bool was_unresolved = mount->flags & M_UNRESOLVED;

	match_not_shown(match_shown(&queue));
	mount->flags &= (uint8_t)~M_UNRESOLVED;
	if (has_unknown())
		mount->flags |= M_UNRESOLVED;
	if (was_unresolved && !(mount->flags & M_UNRESOLVED))
		step_all();
	queue = make_queue(names);
	note_ahead(&queue);
	if (!(mount->flags & M_UNRESOLVED) || LEFT_OUT(try_judged_while_unresolved))
		answer_waiters(&queue);
	admit_waiters(&queue);
	list_is_answered();
}
