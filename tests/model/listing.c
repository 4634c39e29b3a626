/* SPDX-License-Identifier: MIT
 *
 * listing.c - what a listing says: listing.c and admission.c of the engine, for one slot.
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
	int exclusive = -1;

	for (int number = 1; number <= S.numbers; number++)
		for (int e = 0; e < config.takers; e++)
			if (names & BIT(e) && S.number[e] == number)
				queue.entry[queue.count++] = e;
	for (int i = 0; i < queue.count; i++) {
		int e = queue.entry[i];

		queue.owner[i] = is_own(e) ? e : -1;
		queue.blocker[i] = is_shared(e) ? exclusive : i - 1;
		if (!is_shared(e))
			exclusive = i;
	}
	return queue;
}

static void note_ahead(const struct queue *queue)
{
	int writer = -1;

	for (int i = 0; i < queue->count; i++) {
		int blocker = queue->blocker[i];
		bool shared = is_shared(queue->entry[i]), first = blocker == (shared ? writer : 0);
		bool known = blocker >= 0 && queue->owner[blocker] < 0 && (first || !shared);
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

	if (owner < 0) {
		handoff_wait(queue->owner[i], queue->entry[ahead]);
		return;
	}
	entry_watch(queue->owner[i]);
	watch_none();
	if (S.taker[owner].state == LOST)
		entry_watch(owner);
	if (!is_wanted(owner))
		me()->flags |= M_LEAVER;
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

		if (!is_in_list(e))
			continue;
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
		if (is_in_list(e))
			taker_step(e);
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
	admit_waiters(&queue);
	mount->lists--;
}
