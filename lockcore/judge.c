/* SPDX-License-Identifier: MIT
 *
 * judge.c - what a listing of a lock means to its takers here: whose entries are in it, who
 * of those that will not wait is refused, who may hold, and what the first of the others
 * waits for.
 */
#include "engine.h"

#include <errno.h>
#include <stdlib.h>

/* With the UUID of one whose create was not answered it may be that one's. */
static void match_stranger(struct lock *lock, const struct queue_entry *entry, uint64_t number,
                           size_t *strangers)
{
	struct lc_taker *taker = lock_named(lock, &entry->name);

	if (taker && taker->znode == ZNODE_UNKNOWN && taker_made_as(taker, entry->znode)) {
		taker->listed = number;
		taker_found(taker, entry);
	} else if (entry->name.ours && entry->name.session_half == lock->lc->session.half) {
		if (*strangers == lock->swept && sweep(lock, entry))
			lock->swept++;
		++*strangers;
	}
}

void lock_match(struct lock *lock, const struct queue *queue, uint64_t number)
{
	struct lc_taker *taker, *next, *before = NULL;
	bool unresolved = false;
	size_t strangers = 0;

	for (size_t i = 0; i < queue->count; i++, before = taker) {
		const struct queue_entry *entry = &queue->entries[i];

		taker = lock_owner(lock, entry->znode, &entry->name);
		if (!taker) {
			match_stranger(lock, entry, number, &strangers);
			continue;
		}
		taker->listed = number;
		if (before && taker_in_queue(before) && !queue->in_zone)
			taker->adjacent = true;
	}
	if (lock->swept >= strangers)
		lock->swept = 0;   /* that was all: from the beginning, next time */
	DL_FOREACH_SAFE(lock->takers, taker, next) {
		/* The listing was sent on a connection that was proved by a write:
		 * what is not in it was never made, or is deleted. */
		if (taker->listed != number && taker->znode == ZNODE_UNKNOWN && !taker->pending)
			taker_not_found(taker);
		else if (taker->listed != number && taker->znode == ZNODE_PRESENT)
			taker_vanished(taker);
		else if (taker->state == TAKER_HELD && !taker->settle.armed)
			taker_watch_self(taker);
	}
	DL_FOREACH(lock->takers, taker)
		unresolved |= taker->znode == ZNODE_UNKNOWN;
	if (lock->unresolved && !unresolved) {
		lock->unresolved = false;
		DL_FOREACH_SAFE(lock->takers, taker, next)
			taker_step(taker);
	}
	lock->unresolved = unresolved;
}

static bool waits_in_queue(const struct lc_taker *taker)
{
	return taker && taker->state == TAKER_WAITING && taker->znode == ZNODE_PRESENT;
}

static bool leaves(const struct lc_taker *taker)
{
	return taker && !taker_wants(taker);
}

/* Began to ask before this listing was sent. */
static bool asks(const struct lc_taker *taker, const struct queue *queue)
{
	return taker->state == TAKER_WAITING && taker->probing && queue->listing > taker->created_at;
}

/* Who stands in the way, own leavers aside: their deletes are on their way. */
struct crowd {
	unsigned all, exclusive;
	unsigned apart;        /* shared or foreign: those that fill no slot */
};

static bool bars(const struct crowd *crowd, enum lc_mode mode, unsigned slots)
{
	return mode == LC_SHARED ? crowd->exclusive > 0
	                         : crowd->all >= slots || (crowd->apart > 0 && crowd->all > 0);
}

/* True: it is told, or will be. */
static bool refuse_immediate(struct lock *lock, const struct queue *queue, const struct crowd *crowd,
                             struct lc_taker *taker)
{
	if (!bars(crowd, taker->mode, queue->slots))
		return false;
	if (queue->slots_known || bars(crowd, taker->mode, LC_SLOTS_MAX)) {
		taker_fail(taker, -EAGAIN);
	} else {
		lock->doubtful = true;
		lock_watch_data(lock);
	}
	return true;
}

/* Those that will not wait. Where more slots than are known of would help, they are
 * judged when the number is known. */
static void judge_immediate(struct lock *lock, const struct queue *queue, struct lc_taker **owners)
{
	struct lc_taker *taker, *next;
	struct crowd crowd = {0};

	for (size_t i = 0; i < queue->count; i++) {
		const struct entry_name *name = &queue->entries[i].name;

		if (waits_in_queue(owners[i]) && owners[i]->immediate && !owners[i]->instead)
			refuse_immediate(lock, queue, &crowd, owners[i]);
		if (leaves(owners[i]))
			continue;
		crowd.all++;
		crowd.exclusive += name->mode == LC_EXCLUSIVE;
		crowd.apart += name->mode == LC_SHARED || !name->ours;
	}
	DL_FOREACH_SAFE(lock->takers, taker, next) {
		if (!asks(taker, queue) || refuse_immediate(lock, queue, &crowd, taker))
			continue;
		taker->probing = false;
		taker_step(taker);
	}
}

/* Who is to take the place of a shared one does not wait for that one. An exclusive one in
 * between waits for it in turn, so that both would wait for ever. */
static void judge_upgrade(struct queue *queue, struct lc_taker **owners, size_t i)
{
	struct lc_taker *taker = owners[i];
	ssize_t blocker = -1;
	bool barred = false, leavers_only = true;

	for (size_t k = 0; k < i; k++) {
		if (owners[k] == taker->instead)
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

/* The first that waits, and so all behind it. What it waits for is watched, or is ours. */
static void wait_behind(struct lock *lock, const struct queue *queue, struct lc_taker **owners, size_t i)
{
	ssize_t blocker = queue_blocker(queue, i);

	lock_watch_data(lock);
	taker_watch_self(owners[i]);
	if (queue->slots == 1 && owners[blocker]) {
		/* Its going will cause a listing. A holder watches itself, one that was lost at once
		 * does not yet. */
		if (owners[blocker]->state == TAKER_LOST)
			taker_watch_self(owners[blocker]);
		lock_watch_none(lock);
		lock->behind_leaver = leaves(owners[blocker]);
		return;
	}
	lock->front = owners[i];
	if (queue->slots == 1)
		lock_watch_entry(lock, queue->entries[blocker].znode);
	else
		lock_watch_none(lock);   /* any of several may go: the listing was watched */
}

/* The order may have taken some time to find out (zone.c): that lock may be gone since. */
static bool may_have(struct lc_taker *taker)
{
	if (!taker_means(taker))
		lock_want_list(taker->lock);
	return taker_means(taker) && session_may_grant(taker->lc);
}

static void judge_waiters(struct lock *lock, const struct queue *queue, struct lc_taker **owners)
{
	struct lc *lc = lock->lc;
	size_t i;

	lock->front = NULL;
	lock->wants_lease = lock->behind_leaver = false;
	timer_clear(lc, &lock->recheck);
	if (lock->waiting > 0 || lock->holding > 0 || lock->unresolved)
		lock_recheck(lock);
	lock->judging = true;
	for (i = 0; i < queue->count; i++) {
		if (!waits_in_queue(owners[i]))
			continue;
		if (queue_blocker(queue, i) >= 0 || !may_have(owners[i]))
			break;
		taker_grant(owners[i], i == 0);
	}
	lock->judging = false;
	if (i == queue->count) {
		lock_watch_none(lock);
	} else if (queue_blocker(queue, i) >= 0) {
		wait_behind(lock, queue, owners, i);
	} else {
		lock_watch_none(lock);
		lock->front = owners[i];
		lock->wants_lease = true;
	}
}

/* Where entries stand whose clients would not wait for ours, excluding each other
 * cannot be promised: nobody is let in until they are gone. */
static void refuse_beside_deaf(struct lock *lock, const struct queue *queue, struct lc_taker **owners)
{
	const struct queue_entry *deaf = NULL;
	struct lc_taker *taker, *next;

	for (size_t i = 0; i < queue->count && !deaf; i++)
		if (queue->entries[i].name.deaf)
			deaf = &queue->entries[i];
	if (!deaf || lock->waiting == 0)
		return;
	lc_report(lock->lc, LC_ERROR, "%s: %s is of a client that does not wait for our entries; "
	          "it is not taken beside that", lock->path, deaf->znode);
	for (size_t i = 0; i < queue->count; i++)
		if (waits_in_queue(owners[i]))
			taker_fail(owners[i], -EPROTO);
	DL_FOREACH_SAFE(lock->takers, taker, next)
		if (asks(taker, queue))
			taker_fail(taker, -EPROTO);
}

void lock_judge(struct lock *lock, struct queue *queue)
{
	struct lc_taker **owners = calloc(queue->count + 1, sizeof(*owners));

	if (!owners) {
		lock_look_later(lock);
		return;
	}
	for (size_t i = 0; i < queue->count; i++)
		owners[i] = lock_owner(lock, queue->entries[i].znode, &queue->entries[i].name);
	refuse_beside_deaf(lock, queue, owners);
	/* Whose entries are ours, and on their way out, is not known before. */
	if (!lock->unresolved) {
		for (size_t i = 0; i < queue->count; i++)
			if (waits_in_queue(owners[i]) && owners[i]->instead)
				judge_upgrade(queue, owners, i);
		judge_immediate(lock, queue, owners);
	}
	judge_waiters(lock, queue, owners);
	free(owners);
}
