/* SPDX-License-Identifier: MIT */
#include "lock/known.h"

#include <stdlib.h>
#include <string.h>

static void take_out(struct lock *lock, struct known_entry *known)
{
	DL_DELETE(lock->known.entries, known);
	known->prev = NULL;
	if (known->own)
		return;
	lock->known.others--;
	free(known);
}

/* Takes out all entries from this one on: no listing has shown what stands there. */
static void cut_off(struct lock *lock, struct known_entry *from)
{
	lock->lists.shown = 0;
	while (from) {
		struct known_entry *next = from->next;

		take_out(lock, from);
		from = next;
	}
}

void known_forget(struct lock *lock)
{
	cut_off(lock, lock->known.entries);
	lock->known.last = -1;
	lock->known.era++;
	lock->known.in_zone = false;
	lock_touch(lock);
}

void known_other_slots(struct lock *lock)
{
	struct known_entry *known;

	DL_FOREACH(lock->known.entries, known)
		known->shown = false;
	lock->known.era++;
	lock_touch(lock);
}

/* The exclusive entry of another client is gone: it may have held, so those before it are gone as
 * well. */
static void doubt_those_before(const struct lock *lock, const struct known_entry *last)
{
	struct known_entry *known;

	for (known = lock->known.entries; known != last; known = known->next)
		known->doubtful = true;
}

/* The entry is gone. What was seen before that may be gone since then, without an event: it was not
 * watched. */
static void remove_known(struct lock *lock, struct known_entry *known)
{
	struct known_entry *next = known->next;
	bool reader_follows = known->late_writer;
	int64_t number = known->number;

	if (lock->known.in_zone) {
		known_forget(lock);
		return;
	}
	if (!known->own && !known->shared)
		doubt_those_before(lock, known);
	take_out(lock, known);
	lock->known.era++;
	lock_touch(lock);
	if (!reader_follows)
		return;
	cut_off(lock, next);
	lock->known.last = number;
}

void known_gone(struct entry *entry)
{
	if (known_is_placed(entry))
		remove_known(entry->lock, &entry->known);
	lock_touch(entry->lock);
}

/* NULL: there is none. */
static struct known_entry *find_stranger(const struct lock *lock, const char *znode)
{
	struct known_entry *known;

	DL_FOREACH(lock->known.entries, known)
		if (!known->own && strcmp(known->znode, znode) == 0)
			return known;
	return NULL;
}

void known_other_gone(struct lock *lock, const char *znode)
{
	struct known_entry *known = find_stranger(lock, znode);

	if (known)
		remove_known(lock, known);
	lock_touch(lock);
}

/* ---- made ---- */

static struct known_entry *begin_own(struct entry *entry)
{
	entry->known = (struct known_entry){
		.own = entry,
		.znode = entry->name,
		.number = entry->number,
		.shared = entry->mode == LC_SHARED,
	};
	return &entry->known;
}

/* No entry before this one is missing from the queue: all up to the number before are known. */
static bool comes_next(const struct entry *entry)
{
	const struct lock_known *known = &entry->lock->known;

	return known->last >= 0 && entry->number == known->last + 1 &&
	       entry->number < NAME_NUMBER_ZONE && !known->in_zone && lock_is_watched(entry->lock);
}

/* Puts the entry behind all with smaller numbers. A node that was made by hand may have a greater
 * number. */
static void insert(struct lock *lock, struct known_entry *known)
{
	struct known_entry *after = lock->known.entries;

	if (after && after->prev->number < known->number)
		after = NULL; /* the last one stands before it */
	while (after && after->number < known->number)
		after = after->next;
	if (after)
		DL_PREPEND_ELEM(lock->known.entries, after, known);
	else
		DL_APPEND(lock->known.entries, known);
}

void known_made(struct entry *entry)
{
	struct lock *lock = entry->lock;
	bool placed = comes_next(entry);

	known_see(entry);
	lock->known.overtaken = lock->known.last >= 0 && !placed;
	if (lock->known.overtaken)
		known_meet(lock);
	if (!placed)
		return;
	insert(lock, begin_own(entry));
	lock->known.last = entry->number;
}

/* ---- shown ---- */

static struct known_entry *begin_other(const struct lock *lock, const struct queue_entry *shown)
{
	size_t len = strlen(shown->znode) + 1;
	struct known_entry *known = malloc(sizeof(*known) + len);

	if (!known)
		return NULL;
	*known = (struct known_entry){
		.znode = memcpy(known + 1, shown->znode, len),
		.number = shown->name.number,
		.shared = shown->name.mode == LC_SHARED,
		.apart = !shown->name.of_mount,
	};
	known->late_writer = lock->lc->clients->late_readers && known->apart && !known->shared;
	return known;
}

bool known_listed(struct lock *lock, const struct queue *queue)
{
	known_forget(lock);
	if (queue->incompatible)
		return true; /* no taker is let in, so no place needs to be known */
	for (size_t i = 0; i < queue->count; i++) {
		const struct queue_entry *shown = &queue->entries[i];
		struct entry *own = entry_of_node(lock, shown->znode, &shown->name);
		struct known_entry *known = own ? begin_own(own) : begin_other(lock, shown);

		if (!known) {
			known_forget(lock);
			return false;
		}
		known->shown = true;
		DL_APPEND(lock->known.entries, known);
		if (!own)
			lock->known.others++;
		else if (!queue->in_zone) /* there one read has shown it, before others were read */
			known_see(own);
	}
	if (lock->known.others > 0)
		known_meet(lock);
	lock->known.last = queue->made - 1;
	lock->known.in_zone = queue->in_zone;
	return true;
}
