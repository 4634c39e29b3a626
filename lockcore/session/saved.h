/* SPDX-License-Identifier: MIT
 *
 * saved.h - which objects have changed since the caller got their records by lc_save_changes().
 * Code that changes a saved part of an object must touch the object.
 *
 * Keys give the order in which the objects are restored: takers of one lock in the order of their
 * entries. An object that moves to the end gets a new key.
 */
#ifndef LOCKCORE_SAVED_H
#define LOCKCORE_SAVED_H

#include "session/base.h"
#include "pure/state.h"

/* A part of each object that has a record. */
struct saved {
	enum state_kind kind : 8;
	bool gone : 1;   /* the object is; its memory stays until the caller is told, */
	uint16_t offset; /*   which begins so far before this */
	uint64_t key;
	uint64_t given;            /* the key that the caller has for its record; 0: none */
	struct saved *prev, *next; /* in lc->changes->first; NULL: it has not changed */
};

struct changes {
	struct saved *first;
	uint64_t takers, evictions; /* the last keys */
	struct state_writer writer; /* the memory of one record */
	/* As the caller has them; their kind is 0 before that. */
	struct state_record session, counters;
};

/* `key`: 0 for a new object, which counts as changed; or of the record that it was restored from,
 * which the caller has. */
void saved_begin(struct lc *lc, struct saved *saved, enum state_kind kind, uint64_t key);
void saved_touch(struct lc *lc, struct saved *saved);
/* It counts as unchanged again. */
void saved_touched_not(struct lc *lc, struct saved *saved);
/* Its record comes last from now on. */
void saved_move(struct lc *lc, struct saved *saved);
/* The object is gone. Frees its memory, now or when the caller was told that it is gone. */
void saved_free(struct lc *lc, struct saved *saved, void *memory);
/* The caller was told that it is gone. */
void saved_free_remains(struct saved *saved);
void changes_finish(struct lc *lc);

#endif
