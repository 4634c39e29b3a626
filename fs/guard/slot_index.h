/* SPDX-License-Identifier: MIT
 *
 * slot_index.h - slots by process and lock file, and by lock file alone, for the guardian and the
 * children it looks with. An entry says where to look, and nothing more: the slot itself tells.
 */
#ifndef FS_SLOT_INDEX_H
#define FS_SLOT_INDEX_H

#include "guard/slots.h"

#define SLOT_INDEX_BUCKETS GUARDIAN_SLOTS
/* Slots are indexed again when they are taken anew; after so many all of it is. */
#define SLOT_INDEX_ENTRIES (4 * GUARDIAN_SLOTS)

struct slot_entry {
	int slot;
	int next_of_opener, next_of_ino; /* -1: none */
};

struct slot_index {
	const struct page *page;
	unsigned filled; /* of the page, as far as it is indexed */
	int count;
	int by_opener[SLOT_INDEX_BUCKETS], by_ino[SLOT_INDEX_BUCKETS];
	struct slot_entry entries[SLOT_INDEX_ENTRIES];
};

void slot_index_build(struct slot_index *index, const struct page *page);
/* The slots that were filled since. */
void slot_index_follow(struct slot_index *index);
/* The first entry that may be of it, and then its next_of_...: others are among them, and
 * the same slot twice. */
int slot_index_of_opener(const struct slot_index *index, pid_t pid, uint64_t ino);
int slot_index_of_ino(const struct slot_index *index, uint64_t ino);

#endif
