/* SPDX-License-Identifier: MIT
 *
 * stored.h - objects that outlive this process: each has a record in the store (store.h), from
 * which another process can make it anew.
 *
 *   stored_begin() ─► [TOUCHED] ──the turn ends: its record is written──► [CLEAN] ─► stored_end()
 *                         ▲                                                  │
 *                         └──────stored_touch(): it changes, or may have─────┘
 *
 * Code that changes an object must touch it. A touch without a change costs a comparison. A change
 * without a touch is a bug, which the tests look for: stored_check().
 */
#ifndef FS_STORED_H
#define FS_STORED_H

#include "store/carry.h"

#include <stdbool.h>
#include <stdint.h>

struct face;
struct store;

/* In the order in which they are read: each needs only those before it. */
enum stored_kind {
	STORED_NOT, /* it has no record */
	STORED_MOUNT,
	STORED_ENGINE,
	STORED_NODE,
	STORED_CONTENT,
	STORED_REQUEST,
	STORED_ADVISORY,
	STORED_TEXT,
	STORED_LOCKS,
	STORED_DIR,
	STORED_HOLD,
	STORED_HISTORY,
	STORED_KINDS,
};

/* A part of the object. All 0: it has no record. */
struct stored {
	struct stored_objects *in;
	uint64_t key; /* its number among those of its kind */
	enum stored_kind kind;
	bool touched;
	struct stored *prev, *next; /* in one of two lists */
};

struct stored_objects {
	struct store *store; /* NULL: nothing is written */
	struct stored *touched, *clean;
	size_t count;     /* in both lists */
	uint64_t last;    /* number that was given to an object */
	uint64_t reading; /* the number of the record that is being read; 0: none is */
};

/* Writes or reads the record of an object: carry.h. `stored` is NULL exactly if a record is read:
 * the object is made of it. */
typedef void stored_carry_fn(struct carry *carry, struct face *face, struct stored *stored);

/* A new object. `in`: NULL if it is to have no record. `number`: 0 for the next free one. */
void stored_begin(struct stored_objects *in, struct stored *stored, enum stored_kind kind,
                  uint64_t number);
void stored_touch(struct stored *stored);
/* The object ends. It may have no record. */
void stored_end(struct stored *stored);

/* Writes the records of all touched objects; `carry_of`: by kind. The caller's *carry is used as a
 * buffer; an error of carry_lack() is left in it. */
void stored_write(struct stored_objects *objects, struct carry *carry,
                  stored_carry_fn *const carry_of[], struct face *face);
/* Goes through the records of all objects of the kinds that `carry_of` has, and writes none: so
 * that *carry gathers their descriptors. */
void stored_visit(struct stored_objects *objects, struct carry *carry,
                  stored_carry_fn *const carry_of[], struct face *face);
/* How many records there are. */
size_t stored_count(const struct stored_objects *objects, enum stored_kind kind);
/* Makes all objects of one kind from their records. */
void stored_read(struct stored_objects *objects, struct carry *carry, enum stored_kind kind,
                 stored_carry_fn *carry_one, struct face *face);
/* All records were read, and all objects are as the store has them. */
void stored_read_all(struct stored_objects *objects);
/* For tests: aborts if an object is not as its record says, or a record has no object. */
void stored_check(struct stored_objects *objects, struct carry *carry,
                  stored_carry_fn *const carry_of[], struct face *face);

#endif
