/* SPDX-License-Identifier: MIT
 *
 * agenda.c - a binary heap ordered by time, then by serial.
 */
#include "agenda.h"

#include <stdlib.h>
#include <string.h>

static bool earlier(const struct agenda_item *a, const struct agenda_item *b)
{
	return a->when_us != b->when_us ? a->when_us < b->when_us : a->serial < b->serial;
}

void agenda_init(struct agenda *agenda, int64_t now_us)
{
	*agenda = (struct agenda){.now_us = now_us};
}

void agenda_finish(struct agenda *agenda)
{
	free(agenda->heap);
	*agenda = (struct agenda){0};
}

void agenda_at(struct agenda *agenda, int64_t when_us, agenda_fn *fn, void *ctx, uint64_t arg)
{
	struct agenda_item item = {when_us > agenda->now_us ? when_us : agenda->now_us,
	                           agenda->serial++, fn, ctx, arg};
	size_t i = agenda->count++;

	if (agenda->count > agenda->room) {
		agenda->room = agenda->room ? agenda->room * 2 : 256;
		agenda->heap = realloc(agenda->heap, agenda->room * sizeof(*agenda->heap));
		if (!agenda->heap)
			abort();
	}
	for (; i > 0 && earlier(&item, &agenda->heap[(i - 1) / 2]); i = (i - 1) / 2)
		agenda->heap[i] = agenda->heap[(i - 1) / 2];
	agenda->heap[i] = item;
}

void agenda_in(struct agenda *agenda, int64_t delay_us, agenda_fn *fn, void *ctx, uint64_t arg)
{
	agenda_at(agenda, agenda->now_us + delay_us, fn, ctx, arg);
}

static struct agenda_item take_first(struct agenda *agenda)
{
	struct agenda_item first = agenda->heap[0];
	struct agenda_item last = agenda->heap[--agenda->count];
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= agenda->count)
			break;
		if (child + 1 < agenda->count &&
		    earlier(&agenda->heap[child + 1], &agenda->heap[child]))
			child++;
		if (!earlier(&agenda->heap[child], &last))
			break;
		agenda->heap[i] = agenda->heap[child];
		i = child;
	}
	agenda->heap[i] = last;
	return first;
}

bool agenda_step(struct agenda *agenda)
{
	struct agenda_item item;

	if (!agenda->count)
		return false;
	item = take_first(agenda);
	agenda->now_us = item.when_us;
	item.fn(item.ctx, item.arg);
	return true;
}
