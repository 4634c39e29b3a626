/* SPDX-License-Identifier: MIT
 *
 * zone.c - order where the numbers give none. From 2^31 on a server repeats them
 * (NAME_NUMBER_ZONE): the czxid of every entry is read, and they are ordered by it.
 * Slow, one request for each entry, and only there.
 */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

struct zone_item {
	struct zone *zone;
	char *znode;
	int64_t czxid;
	bool gone;
};

struct zone {
	struct lock *lock;
	uint64_t listing;
	unsigned slots;
	bool slots_known;
	size_t count;
	unsigned pending;
	bool failed;       /* something was not answered: list again */
	bool again;        /* another listing came meanwhile */
	struct zone_item items[];
};

static void free_zone(struct zone *zone)
{
	for (size_t i = 0; i < zone->count; i++)
		free(zone->items[i].znode);
	free(zone);
}

static int compare(const void *a, const void *b)
{
	int64_t x = ((const struct queue_entry *)a)->czxid, y = ((const struct queue_entry *)b)->czxid;

	return x < y ? -1 : x > y;
}

/* One of ours is gone since the listing, or was before, and another one has its number, as it
 * repeats, and its whole name. */
static void look_at_own(const struct zone_item *item, const struct entry_name *name)
{
	struct lc_taker *taker = lock_owner(item->zone->lock, item->znode, name);

	if (taker && taker_wants(taker) &&
	    (item->gone || (taker->czxid != 0 && taker->czxid != item->czxid)))
		taker_gone(taker);
}

static bool build(const struct zone *zone, struct queue *ret_queue)
{
	struct queue queue = {.entries = calloc(zone->count + 1, sizeof(*queue.entries)),
	                      .in_zone = true, .listing = zone->listing,
	                      .slots_known = zone->slots_known};
	bool gone = false;

	if (!queue.entries)
		return false;
	for (size_t i = 0; i < zone->count; i++) {
		struct queue_entry *entry = &queue.entries[queue.count];

		gone |= zone->items[i].gone;
		if (!name_parse(zone->items[i].znode, &entry->name))
			continue;
		look_at_own(&zone->items[i], &entry->name);
		if (zone->items[i].gone)
			continue;
		entry->znode = zone->items[i].znode;
		entry->czxid = zone->items[i].czxid;
		queue.count++;
	}
	qsort(queue.entries, queue.count, sizeof(*queue.entries), compare);
	/* What the slots were at one moment does not go with what is there at a later one. */
	if (gone && zone->slots > 1)
		queue.slots_known = false;
	queue_judge(&queue, queue.slots_known ? zone->slots : 1);
	*ret_queue = queue;
	return true;
}

static void finish(struct zone *zone)
{
	struct lock *lock = zone->lock;
	struct queue queue;

	lock->zone = NULL;
	if (zone->again)
		lock_want_list(lock);
	else if (zone->failed)
		lock_look_later(lock);
	if (!zone->failed && !build(zone, &queue)) {
		lock_look_later(lock);
	} else if (!zone->failed) {
		if (zone->slots_known && !queue.slots_known)
			lock_want_list(lock);
		lock_judge(lock, &queue);
		queue_finish(&queue);
	}
	free_zone(zone);
	lock_settle(lock);
}

static void answered(void *ctx, const struct ensemble_answer *answer)
{
	struct zone_item *item = ctx;
	struct zone *zone = item->zone;

	if (answer->result == ENSEMBLE_OK)
		item->czxid = answer->stat->czxid;
	else if (answer->result == ENSEMBLE_NONODE)
		item->gone = true;
	else
		zone->failed = true;
	if (--zone->pending == 0)
		finish(zone);
}

void zone_order(struct lock *lock, const struct queue *queue)
{
	struct zone *zone;

	if (lock->zone) {
		lock->zone->again = true;
		return;
	}
	if (queue->count == 0)
		return;
	zone = calloc(1, sizeof(*zone) + queue->count * sizeof(zone->items[0]));
	if (!zone) {
		lock_look_later(lock);
		return;
	}
	lock->zone = zone;
	zone->lock = lock;
	zone->listing = queue->listing;
	zone->slots = queue->slots;
	zone->slots_known = queue->slots_known;
	zone->count = queue->count;
	zone->pending = 1;   /* this function */
	for (size_t i = 0; i < queue->count; i++) {
		char *path = lc_join(lock->path, queue->entries[i].znode);

		zone->items[i] = (struct zone_item){.zone = zone, .znode = strdup(queue->entries[i].znode)};
		if (!path || !zone->items[i].znode) {
			zone->failed = true;
		} else {
			zone->pending++;
			lc_submit_beside(lock->lc, &(struct ensemble_op){.kind = ENSEMBLE_GET, .path = path}, 1,
			          answered, &zone->items[i]);
		}
		free(path);
	}
	if (--zone->pending == 0)
		finish(zone);
}
