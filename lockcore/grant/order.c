/* SPDX-License-Identifier: MIT */
#include "grant/grant.h"

#include <stdlib.h>
#include <string.h>

struct order_item {
	struct order *order;
	char *znode;
	int64_t czxid;
	bool gone;
};

struct order {
	struct lock *lock;
	order_fn *done;
	int64_t made;
	uint64_t listing;
	size_t count;
	unsigned pending;
	bool failed; /* a czxid was not read: the lock is listed again */
	bool again;  /* another listing wants its order, too: the lock is listed again */
	struct order_item items[];
};

static void free_order(struct order *order)
{
	for (size_t i = 0; i < order->count; i++)
		free(order->items[i].znode);
	free(order);
}

static int compare_czxids(const void *a, const void *b)
{
	int64_t x = ((const struct order_item *)a)->czxid,
		y = ((const struct order_item *)b)->czxid;

	return x < y ? -1 : x > y;
}

/* An own entry may be gone since the listing. Or it was gone before, and another node has its
 * number, since numbers repeat, and so its whole name. */
static void check_own(const struct order_item *item, const struct entry_name *name)
{
	struct entry *entry = entry_of_node(item->order->lock, item->znode, name);

	if (entry && entry->wanted &&
	    (item->gone || (entry->czxid != 0 && entry->czxid != item->czxid)))
		loss_of_node(taker_of(entry));
}

static bool build_queue(struct order *order, struct queue *ret_queue)
{
	struct queue queue = {.entries = calloc(order->count + 1, sizeof(*queue.entries)),
	                      .in_zone = true,
	                      .made = order->made,
	                      .listing = order->listing};

	if (!queue.entries)
		return false;
	qsort(order->items, order->count, sizeof(order->items[0]), compare_czxids);
	for (size_t i = 0; i < order->count; i++) {
		struct queue_entry *entry = &queue.entries[queue.count];

		if (!name_parse(order->items[i].znode, &entry->name))
			continue;
		check_own(&order->items[i], &entry->name);
		if (order->items[i].gone)
			continue;
		entry->znode = order->items[i].znode;
		queue.count++;
	}
	*ret_queue = queue;
	return true;
}

static void finish_order(struct order *order)
{
	struct lock *lock = order->lock;
	struct queue queue;

	lock->lists.order = NULL;
	if (order->again)
		lock_want_list(lock);
	else if (order->failed)
		lock_list_later(lock);
	if (!order->failed && !build_queue(order, &queue)) {
		lock_list_later(lock);
	} else if (!order->failed) {
		order->done(lock, &queue);
		queue_finish(&queue);
	}
	free_order(order);
	lock_unuse(lock);
}

static void fail(const struct order_item *item, enum ensemble_result why)
{
	struct lock *lock = item->order->lock;

	item->order->failed = true;
	if (why == ENSEMBLE_NOAUTH && lc_may_say_again(lock->lc, &lock->lc->locks->closed_said_us))
		lc_report(
			lock->lc, LC_WARNING,
			"%s/%s: this mount may not read it, so the order of the queue is not known "
			"and nobody is granted the lock",
			lock->path, item->znode);
}

static void czxid_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct order_item *item = ctx;
	struct order *order = item->order;

	if (answer->result == ENSEMBLE_OK)
		item->czxid = answer->stat->czxid;
	else if (answer->result == ENSEMBLE_NONODE)
		item->gone = true;
	else
		fail(item, answer->result);
	if (--order->pending == 0)
		finish_order(order);
}

void order_find(struct lock *lock, const struct queue *queue, order_fn *done)
{
	struct order *order;

	if (lock->lists.order) {
		lock->lists.order->again = true;
		return;
	}
	if (queue->count == 0)
		return;
	order = calloc(1, sizeof(*order) + queue->count * sizeof(order->items[0]));
	if (!order) {
		lock_list_later(lock);
		return;
	}
	lock_use(lock);
	lock->lists.order = order;
	order->lock = lock;
	order->done = done;
	order->made = queue->made;
	order->listing = queue->listing;
	order->count = queue->count;
	order->pending = 1; /* order_find() itself, until all reads are sent */
	for (size_t i = 0; i < queue->count; i++) {
		char *path = path_join(lock->path, queue->entries[i].znode);

		order->items[i] = (struct order_item){.order = order,
		                                      .znode = strdup(queue->entries[i].znode)};
		if (!path || !order->items[i].znode) {
			order->failed = true;
		} else {
			order->pending++;
			lc_submit(lock->lc, ensemble_get(path), czxid_answered, &order->items[i]);
		}
		free(path);
	}
	if (--order->pending == 0)
		finish_order(order);
}
