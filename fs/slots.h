/* SPDX-License-Identifier: MIT
 *
 * slots.h - the page that the daemon and its guardian share: the lease's deadline, and who
 * holds, a slot each. The daemon writes it, never waiting for anybody; the guardian
 * writes one thing, that a slot's lock is lost.
 */
#ifndef FS_SLOTS_H
#define FS_SLOTS_H

#include "guardian.h"

#include <stdatomic.h>

enum slot_state {
	SLOT_FREE,
	SLOT_HELD,
	SLOT_LOST, /* said by the daemon, or the deadline came; until it is released */
	SLOT_OPEN, /* has the door open and holds nothing */
};

/* State and generation in one word: a slot that was freed and used again meanwhile is
 * another one. */
#define STATE_BITS 2
#define STATE_OF(word) ((enum slot_state)((word) & ((1U << STATE_BITS) - 1)))
#define WITH_STATE(word, state) (((word) & ~((1U << STATE_BITS) - 1)) | (unsigned)(state))
#define NEXT_GENERATION(word, state) \
	((((word) >> STATE_BITS) + 1) << STATE_BITS | (unsigned)(state))

struct slot {
	_Atomic unsigned word;
	pid_t pid;                /* of the opener, 0: not visible */
	uid_t uid;                /* of the taker: those it might signal are stopped */
	uint64_t start;           /* with pid the opener's identity, and so is this: */
	uint64_t number;          /* process_number() of it; 0: the kernel gives none */
	uint64_t ino;             /* of the door's file */
	_Atomic int64_t until_us; /* HELD: when it is LOST if nobody has said so; INT64_MAX */
};

struct page {
	_Atomic int64_t deadline_us; /* INT64_MIN: no lease */
	_Atomic int clean;           /* leave without a look */
	int mount_id;                /* written before the first slot is used */
	char device[32];             /* as mountpoint_identify() says it */
	_Atomic int used;            /* slots beyond this were never used */
	/* Which slots were filled, in turn: those who look things up learn of the new ones. */
	_Atomic unsigned filled;
	_Atomic int recent[GUARDIAN_SLOTS];
	struct slot slots[GUARDIAN_SLOTS];
};

/* A slot as it was at one moment: all of it is of one hold. */
struct slot_now {
	unsigned word;
	pid_t pid;
	uid_t uid;
	uint64_t start, number, ino;
};

struct slot_now slots_look(const struct page *page, int slot);

#endif
