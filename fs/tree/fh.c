/* SPDX-License-Identifier: MIT
 *
 * fh.c - see fh.h.
 */
#include "tree/fh.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct fh_slot {
	void *file;
	uint32_t generation;
	enum fh_kind kind; /* FH_NONE: free */
};

void fhs_finish(struct fhs *fhs)
{
	free(fhs->slots);
	free(fhs->free);
	*fhs = (struct fhs){0};
}

/* So that there is that slot. False: errno. */
static bool make_room(struct fhs *fhs, uint32_t slot)
{
	uint32_t room = slot < fhs->room ? fhs->room : 2 * slot + 64, *free_slots;
	struct fh_slot *slots;

	if (slot >= FH_MAX) {
		errno = ENFILE;
		return false;
	}
	if (room == fhs->room)
		return true;
	slots = reallocarray(fhs->slots, room, sizeof(slots[0]));
	if (slots)
		fhs->slots = slots;
	free_slots = slots ? reallocarray(fhs->free, room, sizeof(free_slots[0])) : NULL;
	if (!free_slots)
		return false;
	fhs->free = free_slots;
	memset(slots + fhs->room, 0, (room - fhs->room) * sizeof(slots[0]));
	fhs->room = room;
	return true;
}

static uint32_t slot_of_fh(uint64_t fh)
{
	return (uint32_t)fh;
}

static uint32_t generation_of_fh(uint64_t fh)
{
	return (uint32_t)(fh >> 32);
}

uint64_t fh_add(struct fhs *fhs, enum fh_kind kind, void *file)
{
	uint32_t slot = fhs->free_count > 0 ? fhs->free[fhs->free_count - 1] : fhs->count;

	if (!make_room(fhs, slot))
		return 0;
	if (fhs->free_count > 0)
		fhs->free_count--;
	else
		fhs->count++;
	if (++fhs->generation == 0) /* 0 is no file */
		fhs->generation = 1;
	fhs->slots[slot] = (struct fh_slot){
		.file = file,
		.generation = fhs->generation,
		.kind = kind,
	};
	return (uint64_t)fhs->generation << 32 | slot;
}

static struct fh_slot *find_slot(const struct fhs *fhs, uint64_t fh)
{
	struct fh_slot *slot = slot_of_fh(fh) < fhs->count ? &fhs->slots[slot_of_fh(fh)] : NULL;

	return slot && slot->kind != FH_NONE && slot->generation == generation_of_fh(fh) ? slot
	                                                                                 : NULL;
}

void fh_drop(struct fhs *fhs, uint64_t fh)
{
	struct fh_slot *slot = find_slot(fhs, fh);

	if (!slot)
		return;
	*slot = (struct fh_slot){0};
	fhs->free[fhs->free_count++] = slot_of_fh(fh);
}

void *fh_find(const struct fhs *fhs, enum fh_kind kind, uint64_t fh)
{
	const struct fh_slot *slot = find_slot(fhs, fh);

	return slot && slot->kind == kind ? slot->file : NULL;
}

void *fh_next(const struct fhs *fhs, enum fh_kind kind, uint32_t *slot)
{
	while (*slot < fhs->count) {
		const struct fh_slot *at = &fhs->slots[(*slot)++];

		if (at->kind == kind)
			return at->file;
	}
	return NULL;
}

size_t fh_count(const struct fhs *fhs, enum fh_kind kind)
{
	size_t count = 0;

	for (uint32_t i = 0; i < fhs->count; i++)
		count += fhs->slots[i].kind == kind;
	return count;
}

/* ---- over a reload ---- */

void fhs_carry(struct carry *carry, struct fhs *fhs)
{
	CARRY_RANGE(carry, fhs->count, 0, FH_MAX);
	CARRY_U32(carry, fhs->generation);
	if (carry->loads && fhs->count > 0 && !make_room(fhs, fhs->count - 1))
		carry->refuse(strerror(errno));
}

void fh_carry(struct carry *carry, struct fhs *fhs, enum fh_kind kind, void *file, uint64_t *fh)
{
	struct fh_slot *slot;

	CARRY_64(carry, *fh);
	if (!carry->loads)
		return;
	slot = slot_of_fh(*fh) < fhs->count ? &fhs->slots[slot_of_fh(*fh)] : NULL;
	if (!slot || slot->kind != FH_NONE || generation_of_fh(*fh) == 0)
		carry->refuse("the state has two open files with one number");
	*slot = (struct fh_slot){.file = file, .generation = generation_of_fh(*fh), .kind = kind};
}

void fhs_carried(struct carry *carry, struct fhs *fhs)
{
	if (carry->loads)
		for (uint32_t i = fhs->count; i-- > 0;)
			if (fhs->slots[i].kind == FH_NONE)
				fhs->free[fhs->free_count++] = i;
}
