/* SPDX-License-Identifier: MIT
 *
 * queue.c - see queue.h.
 */
#include "queue.h"

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

int queue_build(const char *const *names, size_t count, struct queue *ret_queue)
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
	*ret_queue = queue;
	return 0;
}

void queue_finish(struct queue *queue)
{
	free(queue->entries);
	*queue = (struct queue){0};
}

ssize_t queue_blocker(const struct queue *queue, size_t i)
{
	assert(i < queue->count);
	if (queue->entries[i].name.mode == LC_EXCLUSIVE)
		return (ssize_t)i - 1;
	while (i-- > 0)
		if (queue->entries[i].name.mode == LC_EXCLUSIVE)
			return (ssize_t)i;
	return -1;
}
