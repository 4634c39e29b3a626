/* SPDX-License-Identifier: MIT
 *
 * slots.c - see slots.h.
 */
#include "slots.h"

/* The daemon writes the rest while the word says that it is free, and before it answers the
 * OPEN. During a look slots may be given back and taken anew. */
struct slot_now slots_look(const struct page *page, int slot)
{
	const struct slot *s = &page->slots[slot];
	struct slot_now now;

	do {
		now = (struct slot_now){.word = atomic_load(&s->word)};
		now.pid = s->pid;
		now.uid = s->uid;
		now.start = s->start;
		now.number = s->number;
		now.ino = s->ino;
		atomic_thread_fence(memory_order_acquire);
	} while (atomic_load(&s->word) != now.word);
	return now;
}
