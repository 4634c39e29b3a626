/* SPDX-License-Identifier: MIT */
#include "guard/slot_index.h"

#include <string.h>

static unsigned bucket_of(uint64_t key)
{
	return (unsigned)((key * 0x9E3779B97F4A7C15ULL) >> 40) % SLOT_INDEX_BUCKETS;
}

static unsigned opener_bucket(pid_t pid, uint64_t ino)
{
	return bucket_of(ino ^ (uint64_t)pid << 32);
}

static void add(struct slot_index *index, int slot)
{
	struct slot_now now = slots_look(index->page, slot);
	unsigned opener = opener_bucket(now.pid, now.ino), ino = bucket_of(now.ino);

	if (STATE_OF(now.word) == SLOT_FREE)
		return;
	index->entries[index->count] = (struct slot_entry){
		.slot = slot,
		.next_of_opener = index->by_opener[opener],
		.next_of_ino = index->by_ino[ino],
	};
	index->by_opener[opener] = index->by_ino[ino] = index->count++;
}

void slot_index_build(struct slot_index *index, const struct page *page)
{
	int used = atomic_load(&page->used);

	index->page = page;
	index->filled = atomic_load(&page->filled);
	index->count = 0;
	memset(index->by_opener, -1, sizeof(index->by_opener));
	memset(index->by_ino, -1, sizeof(index->by_ino));
	for (int i = 0; i < used; i++)
		add(index, i);
}

void slot_index_follow(struct slot_index *index)
{
	unsigned filled = atomic_load(&index->page->filled), more = filled - index->filled;

	/* Half of them: the daemon goes on writing over the oldest. */
	if (more > GUARDIAN_SLOTS / 2 || index->count + (int)more > SLOT_INDEX_ENTRIES) {
		slot_index_build(index, index->page);
		return;
	}
	for (; index->filled != filled; index->filled++)
		add(index, atomic_load(&index->page->recent[index->filled % GUARDIAN_SLOTS]));
}

int slot_index_of_opener(const struct slot_index *index, pid_t pid, uint64_t ino)
{
	return index->by_opener[opener_bucket(pid, ino)];
}

int slot_index_of_ino(const struct slot_index *index, uint64_t ino)
{
	return index->by_ino[bucket_of(ino)];
}
