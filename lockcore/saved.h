/* SPDX-License-Identifier: MIT
 *
 * saved.h - which objects have changed since the caller has got their records by
 * lc_save_changes(): whoever changes what is saved of an object touches it.
 *
 * Keys give the order in which the objects are restored: takers of one lock in the order of their
 * entries. An object that moves to the end gets a new key.
 */
#ifndef LOCKCORE_SAVED_H
#define LOCKCORE_SAVED_H

#include "base.h"
#include "state.h"

/* Of each object that has a record. */
struct saved {
	enum state_kind kind;
	uint64_t key;
	uint64_t given;            /* under this key its record was given; 0: it was not */
	void *remains;             /* the object is gone: memory to be freed when that was told */
	struct saved *prev, *next; /* in lc->changes->first; NULL: it has not changed */
};

struct changes {
	struct saved *first;
	uint64_t takers, evictions; /* the last keys */
	struct state_writer writer; /* the memory of one record */
	/* As they were given; the kind is 0 before that. */
	struct state_record session, counters;
};

/* A new object, which has changed. `key`: of the record that it was restored from; 0: none. */
void saved_begin(struct lc *lc, struct saved *saved, enum state_kind kind, uint64_t key);
/* It has changed. */
void saved_touch(struct lc *lc, struct saved *saved);
void saved_touched_not(struct lc *lc, struct saved *saved);
/* Its record comes last from now on. */
void saved_move(struct lc *lc, struct saved *saved);
/* It is gone: frees the memory that it is in, now or when that was told. */
void saved_free(struct lc *lc, struct saved *saved, void *memory);
void changes_finish(struct lc *lc);

#endif
