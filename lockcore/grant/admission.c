/* SPDX-License-Identifier: MIT */
#include "grant/admission.h"

#include "grant/handoff.h"
#include "lock/lock_watch.h"

#include <errno.h>
#include <stdlib.h>

static bool waits_in_queue(const struct lc_taker *taker)
{
	return taker && taker->state == TAKER_WAITING && taker->entry.state == ENTRY_PRESENT &&
	       taker->entry.wanted;
}

static bool leaves(const struct lc_taker *taker)
{
	return taker && !taker->entry.wanted;
}

/* It began to probe before this listing was sent. */
static bool probes(const struct lc_taker *taker, const struct queue *queue)
{
	return taker->state == TAKER_WAITING && taker->wait == WAIT_PROBING &&
	       queue->listing > taker->entry.lists.probed_at;
}

/* The entries that stand in the way. Those of ours that leave do not: their deletes are on
 * their way. */
struct crowd {
	unsigned all, exclusive;
	unsigned apart;   /* shared or foreign: such an entry fills no slot */
	unsigned waiting; /* of all: those that may not hold */
};

static bool bars(const struct crowd *crowd, enum lc_mode mode, unsigned slots)
{
	return mode == LC_SHARED ? crowd->exclusive > 0
	                         : crowd->all >= slots || (crowd->apart > 0 && crowd->all > 0);
}

/* They might let a taker in: it is judged again when their number is known. */
static void learn_slots(struct lock *lock)
{
	if (lock_is_watched(lock)) {
		lock_want_list(lock); /* it became known while the order was found */
	} else {
		lock->lists.slots_asked = true;
		lock_watch(lock);
	}
}

/* True: it is refused, or will be when the slots are known. */
static bool refuse_immediate(struct lock *lock, const struct queue *queue,
                             const struct crowd *crowd, struct lc_taker *taker)
{
	if (!bars(crowd, taker->entry.mode, queue->slots))
		return false;
	if (queue->slots_known || bars(crowd, taker->entry.mode, LC_SLOTS_MAX))
		taker_fail(taker, -EAGAIN);
	else
		learn_slots(lock);
	return true;
}

/* The same for a taker that does not wait behind so many. */
static bool refuse_crowded(struct lock *lock, const struct queue *queue, const struct crowd *crowd,
                           struct lc_taker *taker)
{
	if (taker->crowd == 0 || crowd->waiting < taker->crowd)
		return false;
	if (!queue->slots_known) {
		learn_slots(lock);
	} else if (taker->entry.state == ENTRY_PRESENT) {
		taker_withdraw(taker);
	} else {
		lock->lc->counters.crowded++;
		taker_fail(taker, -EAGAIN);
	}
	return true;
}

/* An upgrade is not: who bars its way, check_upgrade() says. */
static bool refuse(struct lock *lock, const struct queue *queue, const struct crowd *crowd,
                   struct lc_taker *taker)
{
	if (taker->replaces)
		return false;
	return taker->immediate ? refuse_immediate(lock, queue, crowd, taker)
	                        : refuse_crowded(lock, queue, crowd, taker);
}

/* Nobody comes before its entry any more: a crowd is nothing to it from now on. */
static void answer_queued(struct lock *lock, const struct queue *queue, const struct crowd *crowd,
                          struct lc_taker *taker)
{
	if (!waits_in_queue(taker) || refuse(lock, queue, crowd, taker) || taker->crowd == 0)
		return;
	taker->crowd = 0;
	entry_touch(&taker->entry);
}

/* Takers that will not wait, or not behind many. Where more slots than are known of would help,
 * they are answered when the number is known. */
static void answer_immediate(struct lock *lock, const struct queue *queue, struct lc_taker **owners)
{
	struct lc_taker *taker, *next;
	struct crowd crowd = {0};

	for (size_t i = 0; i < queue->count; i++) {
		const struct entry_name *name = &queue->entries[i].name;

		answer_queued(lock, queue, &crowd, owners[i]);
		if (leaves(owners[i]))
			continue;
		crowd.all++;
		crowd.waiting += queue_blocker(queue, i) >= 0;
		crowd.exclusive += name->mode == LC_EXCLUSIVE;
		crowd.apart += name->mode == LC_SHARED || !name->of_mount;
	}
	DL_FOREACH_SAFE(lock->takers.all, taker, next) {
		if (!probes(taker, queue) || refuse(lock, queue, &crowd, taker))
			continue;
		taker_set_wait(taker, WAIT_QUEUED);
		taker_step(taker);
	}
}

/* An upgrade: the taker does not wait for the shared entry whose place it is to take. An
 * exclusive entry in between waits for that one in turn, so that both would wait for ever. */
static void check_upgrade(struct queue *queue, struct lc_taker **owners, size_t i)
{
	struct lc_taker *taker = owners[i];
	ssize_t blocker = -1;
	bool barred = false, leavers_only = true;

	for (size_t k = 0; k < i; k++) {
		if (owners[k] == taker->replaces)
			continue;
		blocker = (ssize_t)k;
		leavers_only &= leaves(owners[k]);
		barred |= queue->entries[k].name.mode == LC_EXCLUSIVE && !leaves(owners[k]);
	}
	if (barred || (taker->immediate && !leavers_only))
		taker_fail(taker, taker->immediate ? -EAGAIN : -EDEADLK);
	else
		queue->entries[i].blocker = blocker;
}

/* The first taker that waits, and so all behind it. What it waits for is watched, or is ours. */
static void wait_behind(struct lock *lock, const struct queue *queue, struct lc_taker **owners,
                        size_t i)
{
	ssize_t blocker = queue_blocker(queue, i);

	if (queue->slots == 1 && !owners[blocker]) {
		handoff_wait(lock, owners[i], queue->entries[blocker].znode);
		return;
	}
	lock_watch(lock);
	entry_watch(&owners[i]->entry);
	lock_watch_none(lock);
	if (queue->slots == 1) {
		/* Its going will cause a listing. The entry of a holder is watched already; that of
		 * a taker that lost the lock at once is not yet. */
		if (owners[blocker]->state == TAKER_LOST)
			entry_watch(&owners[blocker]->entry);
		if (leaves(owners[blocker]))
			lock->front.obstacle = OBSTACLE_LEAVER;
	} else {
		lock->front.taker = owners[i]; /* any of several may go: the listing was watched */
	}
}

/* A writer that also reads: when its entry goes, there may be another one before ours. */
static bool leaves_a_reader(const struct lc *lc, const struct entry_name *name)
{
	return lc->clients->late_readers && !name->of_mount && name->mode == LC_EXCLUSIVE;
}

/* Of each own entry, for handoff.c: the one foreign entry whose end may let it hold, and whether it
 * then does. owners[blocker - 1]: our own entry stands right before that one. */
static void note_ahead(struct lc *lc, const struct queue *queue, struct lc_taker **owners)
{
	ssize_t writer = -1; /* the first exclusive one */

	for (size_t i = 0; i < queue->count; i++) {
		ssize_t blocker = queue_blocker(queue, i);
		bool shared = queue->entries[i].name.mode == LC_SHARED;
		bool first = blocker == (shared ? writer : 0);
		bool known = !queue->in_zone && queue->slots == 1 && blocker >= 0 &&
		             !owners[blocker] && (first || !shared) &&
		             !leaves_a_reader(lc, &queue->entries[blocker].name);
		enum entry_ahead is = AHEAD_UNKNOWN;

		if (first)
			is = AHEAD_FIRST;
		else if (known && owners[blocker - 1])
			is = AHEAD_AFTER_OURS;
		if (owners[i])
			entry_set_ahead(&owners[i]->entry,
			                known ? queue->entries[blocker].znode : NULL, is);
		if (!shared && writer < 0)
			writer = (ssize_t)i;
	}
}

/* To find the order may have taken some time (order.c): the lock may be another one since. */
static bool may_hold(struct lc_taker *taker)
{
	if (!taker_means(taker))
		lock_want_list(taker->entry.lock);
	return taker_means(taker) && session_may_grant(taker->entry.lock->lc);
}

static void admit_waiters(struct lock *lock, const struct queue *queue, struct lc_taker **owners)
{
	size_t i;

	lock->front.taker = NULL;
	lock->front.obstacle = OBSTACLE_OTHER;
	timer_clear(&lock->lc->timers, &lock->lists.recheck);
	if (lock->takers.waiting > 0 || lock->takers.holding > 0 || lock->batch.unresolved)
		lock_recheck(lock);
	for (i = 0; i < queue->count; i++) {
		if (!waits_in_queue(owners[i]))
			continue;
		if (queue_blocker(queue, i) >= 0 || !may_hold(owners[i]))
			break;
		handoff_grant(owners[i], i == 0);
	}
	if (i == queue->count) {
		lock_watch_none(lock);
	} else if (queue_blocker(queue, i) >= 0) {
		wait_behind(lock, queue, owners, i);
	} else {
		lock_watch_none(lock);
		lock->front.taker = owners[i];
		lock->front.obstacle = OBSTACLE_LEASE;
	}
	if (!lock->handoff.held_back)
		lock_untouch(lock); /* nobody waits unguarded now */
}

/* The client of an *incompatible* child would not wait for our entries. Beside such an entry nobody
 * can be promised to be alone: nobody is let in until it is gone. */
static void refuse_beside_incompatible(struct lock *lock, const struct queue *queue,
                                       struct lc_taker **owners)
{
	struct lc_taker *taker, *next;

	if (!queue->incompatible || lock->takers.waiting == 0)
		return;
	lc_report(lock->lc, LC_ERROR,
	          "%s: %s is of a client that ignores our locks (%s): requests are refused",
	          lock->path, queue->incompatible, queue->client);
	for (size_t i = 0; i < queue->count; i++)
		if (waits_in_queue(owners[i]))
			taker_fail(owners[i], -EPROTO);
	DL_FOREACH_SAFE(lock->takers.all, taker, next)
		if (probes(taker, queue))
			taker_fail(taker, -EPROTO);
}

void admit(struct lock *lock, struct queue *queue)
{
	struct lc_taker **owners = calloc(queue->count + 1, sizeof(*owners));

	if (!owners) {
		lock_list_later(lock);
		return;
	}
	for (size_t i = 0; i < queue->count; i++)
		owners[i] = taker_of(
			entry_of_node(lock, queue->entries[i].znode, &queue->entries[i].name));
	refuse_beside_incompatible(lock, queue, owners);
	note_ahead(lock->lc, queue, owners);
	/* Before that it is not known which entries are ours, and on their way out. */
	if (!lock->batch.unresolved) {
		for (size_t i = 0; i < queue->count; i++)
			if (waits_in_queue(owners[i]) && owners[i]->replaces)
				check_upgrade(queue, owners, i);
		answer_immediate(lock, queue, owners);
	}
	admit_waiters(lock, queue, owners);
	free(owners);
}
