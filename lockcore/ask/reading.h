/* SPDX-License-Identifier: MIT
 *
 * reading.h - one answer for all readers that asked the same: a node's data, or a lock's names
 * as a queue. It is made once, and lives until the last reader was told.
 */
#ifndef LOCKCORE_READING_H
#define LOCKCORE_READING_H

#include "session/base.h"
#include "pure/queue.h"

/* The number of slots of a lock, as its data said at that version: for readers. */
#define LC_KNOWN_SLOTS 64

struct known_slots {
	int64_t czxid, mzxid;
	unsigned slots;
};

struct readings {
	struct known_slots known_slots[LC_KNOWN_SLOTS]; /* by czxid */
	uint64_t serial;                                /* of the last answer */
};

enum reading_kind {
	READING_LOCK,  /* a lock's data; that it is not there is said after a sync only */
	READING_ENTRY, /* an entry's data */
	READING_QUEUE, /* a lock's names, judged by how many may hold it; a sync as above */
};

struct reading {
	unsigned references;
	uint64_t serial; /* no other has it */
	int error;       /* then nothing else is said */
	struct ensemble_stat stat;
	char *data; /* LOCK, ENTRY; a byte 0 behind it */
	size_t data_len;
	char *text;         /* QUEUE: the memory of the names, */
	const char **names; /*   all of them, */
	size_t name_count;
	struct queue queue; /*   the entries among them */
	/* Made for the first reader that wants it: */
	struct lc_entry *entries; /* lock_info.c: these and the locks below */
	const char **locks;
	size_t lock_count;
	bool weighed; /* waiters.c: the last entries that wait, or -1 */
	ssize_t last, last_exclusive;
};

/* 0, -ENOMEM, or for a queue -EAGAIN: the lock's data has to be read first. */
int reading_make(struct lc *lc, enum reading_kind kind, const struct ensemble_answer *answer,
                 struct reading **ret_reading);
/* An error, and nothing else; also where there is no memory for it. */
struct reading *reading_fail(int error);
void reading_drop(struct reading *reading);

/* Remembers the number of slots that a lock's data has told. */
void reading_learn_slots(struct lc *lc, const struct ensemble_stat *stat, const void *data,
                         size_t len);

#endif
