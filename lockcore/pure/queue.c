/* SPDX-License-Identifier: MIT */
#include "pure/queue.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* By number. Equal numbers exist only where the counter has stuck, and there
 * the number decides nothing; the name keeps the order at least the same for
 * all who look. */
static int compare(const void *a, const void *b)
{
	const struct queue_entry *x = a, *y = b;

	if (x->name.number != y->name.number)
		return x->name.number < y->name.number ? -1 : 1;
	return strcmp(x->znode, y->znode);
}

/* The first child whose client does not wait for our entries. Curator's semaphore keeps its entries
 * below two children, and does not look at ours. Where numbers repeat, no other client knows the
 * order. */
static void note_incompatible(struct queue *queue, const struct clients *clients,
                              const char *const *names, size_t count)
{
	const char *leases = NULL;
	bool locks = false;

	for (size_t i = queue->count; i-- > 0;) {
		struct queue_entry *entry = &queue->entries[i];
		bool repeats = queue->in_zone && !entry->name.of_mount;
		bool at_home = entry->name.home & clients->bit;

		entry->incompatible = repeats || !at_home;
		if (!entry->incompatible)
			continue;
		queue->incompatible = entry->znode;
		queue->client = entry->name.client;
		if (at_home)
			queue->client = "numbers repeat from 2147483647 on: make the lock anew";
		else if (entry->name.of_mount)
			queue->client = "zklockfs with other clients=";
	}
	if (queue->incompatible)
		return;
	for (size_t i = 0; i < count; i++) {
		locks |= strcmp(names[i], "locks") == 0;
		if (strcmp(names[i], "leases") == 0)
			leases = names[i];
	}
	if (locks && leases) {
		queue->incompatible = leases;
		queue->client = "Curator's InterProcessSemaphoreV2 or SemaphoreMutex";
	}
}

int queue_build(const struct clients *clients, const char *const *names, size_t count,
                struct queue *ret_queue)
{
	struct queue queue = {.entries = calloc(count ? count : 1, sizeof(*queue.entries))};

	if (!queue.entries)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct queue_entry *entry = &queue.entries[queue.count];

		if (!name_parse(names[i], &entry->name))
			continue;
		entry->znode = names[i];
		if (entry->name.number < 0 || entry->name.number >= NAME_NUMBER_ZONE)
			queue.in_zone = true;
		queue.count++;
	}
	qsort(queue.entries, queue.count, sizeof(*queue.entries), compare);
	note_incompatible(&queue, clients, names, count);
	queue_judge(&queue, 1);
	*ret_queue = queue;
	return 0;
}

void queue_finish(struct queue *queue)
{
	free(queue->entries);
	*queue = (struct queue){0};
}

void queue_judge(struct queue *queue, unsigned slots)
{
	ssize_t exclusive = -1, apart = -1; /* the last exclusive; the last that fills no slot */

	assert(slots >= 1);
	for (size_t i = 0; i < queue->count; i++) {
		struct queue_entry *entry = &queue->entries[i];
		bool shared = entry->name.mode == LC_SHARED;

		if (shared)
			entry->blocker = exclusive;
		else if (apart >= 0 && slots > 1)
			entry->blocker = apart;
		else
			entry->blocker = i < slots ? -1 : (ssize_t)i - 1;
		if (!shared)
			exclusive = (ssize_t)i;
		if (shared || !entry->name.of_mount)
			apart = (ssize_t)i;
	}
}

ssize_t queue_find(const struct queue *queue, const char *znode)
{
	struct queue_entry key = {.znode = znode};
	const struct queue_entry *found = NULL;

	if (name_parse(znode, &key.name) && queue->count > 0)
		found = bsearch(&key, queue->entries, queue->count, sizeof(key), compare);
	return found ? found - queue->entries : -1;
}
