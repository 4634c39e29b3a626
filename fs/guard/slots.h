/* SPDX-License-Identifier: MIT
 *
 * slots.h - the page that the daemon and its guardian share: the lease's deadline, and who
 * holds, a slot each. The daemon writes it, never waiting for anybody; the guardian
 * writes one thing, that a slot's lock is lost.
 */
#ifndef FS_SLOTS_H
#define FS_SLOTS_H

#include "guard/guardian.h"

#include <stdatomic.h>

enum slot_state {
	SLOT_FREE,
	SLOT_HELD,
	SLOT_LOST, /* said by the daemon, or the deadline came; until it is released */
	SLOT_OPEN, /* has the lock file open and holds nothing */
};

/* State and generation in one word: a slot that was freed and used again meanwhile is
 * another one. */
#define STATE_BITS 2
#define STATE_OF(word) ((enum slot_state)((word) & ((1U << STATE_BITS) - 1)))
#define WITH_STATE(word, state) (((word) & ~((1U << STATE_BITS) - 1)) | (unsigned)(state))
#define NEXT_GENERATION(word, state) \
	((((word) >> STATE_BITS) + 1) << STATE_BITS | (unsigned)(state))

/* So much of a lock's path is kept; the rest of a longer one is left out. */
#define SLOT_LOCK_MAX 255

struct slot {
	_Atomic unsigned word;
	pid_t pid;                /* of the opener, 0: not visible */
	uid_t uid;                /* of the taker: those it might signal are stopped */
	uint64_t start;           /* with pid the opener's identity, and so is this: */
	uint64_t number;          /* process_number() of it; 0: the kernel gives none */
	uint64_t ino;             /* of the lock file */
	_Atomic int64_t until_us; /* HELD: when it is LOST if nobody has said so; INT64_MAX */
};

struct page {
	_Atomic int64_t deadline_us; /* INT64_MIN: no lease */
	_Atomic int clean;           /* leave without a look */
	int mount_id;                /* written before the first slot is used */
	char device[32];             /* as mountpoint_identify() says it */
	_Atomic int used;            /* slots beyond this were never used */
	_Atomic unsigned filled;     /* how often a slot was filled so far */
	/* The slots that have changed, in turn: for the guardian of a version that this daemon took
	 * over from. */
	_Atomic int recent[GUARDIAN_SLOTS];
	struct slot slots[GUARDIAN_SLOTS];
	_Atomic unsigned long terms, kills; /* processes that were sent SIGTERM, SIGKILL */
	_Atomic unsigned long spared;       /* and that were to be, and may not */
	_Atomic unsigned long looks_ended;  /* children that looked, and that somebody has killed */
	/* By slot: slots_mark_stopped(), slots_lock(). */
	_Atomic uint64_t stopped[GUARDIAN_SLOTS];
	char locks[GUARDIAN_SLOTS][SLOT_LOCK_MAX + 1];
};

/* A slot as it was at one moment: all of it is of one hold. */
struct slot_now {
	unsigned word;
	pid_t pid;
	uid_t uid;
	uint64_t start, number, ino;
};

struct slot_now slots_look(const struct page *page, int slot);
/* The lock of that hold; "" if the slot is another one's by now. */
void slots_lock(const struct page *page, int slot, unsigned word, char ret_lock[SLOT_LOCK_MAX + 1]);
/* A process is about to be sent the signal, since the hold with that word has lost its lock. */
void slots_mark_stopped(struct page *page, int slot, unsigned word, int signal);
/* The last such signal for the present hold, or 0. */
int slots_stopped(const struct page *page, int slot);

#endif
