/* SPDX-License-Identifier: MIT */
#include "guard/slots.h"

#include <string.h>

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

void slots_lock(const struct page *page, int slot, unsigned word, char ret_lock[SLOT_LOCK_MAX + 1])
{
	memcpy(ret_lock, page->locks[slot], SLOT_LOCK_MAX);
	ret_lock[SLOT_LOCK_MAX] = '\0';
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load(&page->slots[slot].word) >> STATE_BITS != word >> STATE_BITS)
		*ret_lock = '\0';
}

void slots_mark_stopped(struct page *page, int slot, unsigned word, int signal)
{
	atomic_store(&page->stopped[slot], (uint64_t)(word >> STATE_BITS) << 32 | (unsigned)signal);
}

int slots_stopped(const struct page *page, int slot)
{
	uint64_t stopped = atomic_load(&page->stopped[slot]);
	unsigned word = atomic_load(&page->slots[slot].word);

	return stopped >> 32 == word >> STATE_BITS ? (int)(uint32_t)stopped : 0;
}
