/* SPDX-License-Identifier: MIT
 *
 * kept.h - objects that outlive this process: each has a record in the store (store.h), from which
 * another process can make it anew.
 *
 *   kept_begin() ─► [TOUCHED] ──the turn ends: its record is written──► [CLEAN] ─► kept_end()
 *                       ▲                                                  │
 *                       └──────kept_touch(): it changes, or may have───────┘
 *
 * Code that changes an object must touch it. A touch without a change costs a comparison. A change
 * without a touch is a bug, which the tests look for: keeping_check().
 */
#ifndef FS_KEPT_H
#define FS_KEPT_H

#include "carry.h"

#include <stdbool.h>
#include <stdint.h>

struct face;
struct store;

/* In the order in which they are read: each needs only what stands before it. */
enum kept_kind {
	KEPT_NOT, /* it has no record */
	KEPT_MOUNT,
	KEPT_ENGINE,
	KEPT_NODE,
	KEPT_CONTENT,
	KEPT_REQUEST,
	KEPT_ADVISORY,
	KEPT_TEXT,
	KEPT_LOCKS,
	KEPT_DIR,
	KEPT_HOLD,
	KEPT_HISTORY,
	KEPT_KINDS,
};

/* A part of the object. All 0: it has no record. */
struct kept {
	struct keeping *in;
	uint64_t key; /* its number among those of its kind */
	enum kept_kind kind;
	bool touched;
	struct kept *prev, *next; /* in one of two lists */
};

struct keeping {
	struct store *store; /* NULL: nothing is written */
	struct kept *touched, *clean;
	size_t objects;   /* in both lists */
	uint64_t last;    /* number that was given to an object */
	uint64_t reading; /* the number of the record that is being read; 0: none is */
};

/* Writes or reads the record of an object: carry.h. `kept` is NULL exactly if a record is read: the
 * object is made of it. */
typedef void kept_carry_fn(struct carry *carry, struct face *face, struct kept *kept);

/* A new object. `in`: NULL if it is to have no record. `number`: 0 for the next free one. */
void kept_begin(struct keeping *in, struct kept *kept, enum kept_kind kind, uint64_t number);
void kept_touch(struct kept *kept);
/* The object ends. It may have no record. */
void kept_end(struct kept *kept);

/* Writes the records of all touched objects; `carry_of`: by kind. The caller's *carry is used as a
 * buffer; an error of carry_lack() is left in it. */
void keeping_write(struct keeping *keeping, struct carry *carry, kept_carry_fn *const carry_of[],
                   struct face *face);
/* Goes through the records of all objects and writes none: so that *carry gathers their
 * descriptors. */
void keeping_visit(struct keeping *keeping, struct carry *carry, kept_carry_fn *const carry_of[],
                   struct face *face);
/* How many records there are. */
size_t keeping_count(const struct keeping *keeping, enum kept_kind kind);
/* Makes all objects of one kind from their records. */
void keeping_read(struct keeping *keeping, struct carry *carry, enum kept_kind kind,
                  kept_carry_fn *carry_one, struct face *face);
/* All records were read, and all objects are as the store has them. */
void keeping_read_all(struct keeping *keeping);
/* For tests: aborts if an object is not as its record says, or a record has no object. */
void keeping_check(struct keeping *keeping, struct carry *carry, kept_carry_fn *const carry_of[],
                   struct face *face);

#endif
