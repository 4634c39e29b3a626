/* SPDX-License-Identifier: MIT
 *
 * book.h - what outlives this process. Each object that must survive a reload or a crash has a
 * record in memory that the next process gets (fs/store/), from which it is made anew.
 *
 *   object --stored_begin()--> [TOUCHED] --book_write(): its record is written--> [CLEAN] --.
 *                                  ^                                                  |     |
 *                                  '------stored_touch(): it changes, or may have-----'     |
 *                                                  the record is dropped <--stored_end()----'
 *
 * Each kind of object has one function that names the fields of its record (carry.h): it writes
 * the record of an object, and it makes an object from a record. Both parts use the same book, and
 * each has kinds of its own: lockcore.h, fs/store/stored.h.
 *
 * Code that changes an object must touch it. A touch without a change costs a comparison. A change
 * without a touch is a bug, which the tests look for: book_check().
 */
#ifndef LOCKCORE_BOOK_H
#define LOCKCORE_BOOK_H

#include "pure/carry.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Kinds are 1 to this. */
#define BOOK_KINDS 32

struct book;
struct store; /* the memory of the records: fs/store/, or a test's */

struct book_record {
	unsigned kind;
	uint64_t key;
	const void *bytes;
	size_t len;
};

struct book_memory {
	/* Both count from the next commit of the memory on. A lack of memory spoils that. */
	void (*put)(struct store *store, unsigned kind, uint64_t key, const void *bytes,
	            size_t len);
	void (*drop)(struct store *store, unsigned kind, uint64_t key);
	/* The record, with the changes since the commit; good until the next change. */
	bool (*get)(const struct store *store, unsigned kind, uint64_t key,
	            struct book_record *ret);
	/* The records of a kind, sorted by key, in an array for free(3). How many, or -ENOMEM. */
	ssize_t (*list)(const struct store *store, unsigned kind, struct book_record **ret);
};

/* A part of each object. All 0: it has no record. */
struct stored {
	struct book *book;
	uint64_t key; /* of its record, among those of its kind: they are read in this order */
	uint8_t kind;
	bool touched;
	struct stored *prev, *next; /* in one of the book's two lists */
};

/* The object of that type whose part `stored` is; NULL: none. */
#define STORED_IN(part, type) ((part) ? (type *)((char *)(part)-offsetof(type, stored)) : NULL)

/* Writes the record of an object. If carry->loads, makes an object from its record; `stored` is
 * NULL then. */
typedef void book_carry_fn(struct carry *carry, void *ctx, struct stored *stored);

struct book {
	const struct book_memory *memory;
	struct store *store; /* NULL: nothing is written */
	struct {
		book_carry_fn *carry; /* NULL: its records belong to no objects */
		void *ctx;
	} kinds[BOOK_KINDS + 1];
	struct stored *touched, *clean;
	size_t count;       /* in both lists */
	uint64_t last;      /* key that was given to an object */
	uint64_t reading;   /* the key of the record that is being read; 0: none is */
	bool as_recorded;   /* an object that is read begins CLEAN */
	struct carry carry; /* the record that is written */
};

/* The function of a kind. */
void book_kind(struct book *book, unsigned kind, book_carry_fn *carry, void *ctx);

/* A new object. `book`: NULL if it is to have no record. `key`: 0 for that of the record which is
 * being read, or the next free one. */
void stored_begin(struct book *book, struct stored *stored, unsigned kind, uint64_t key);
void stored_touch(struct stored *stored);
/* Its record comes last from now on. Not while records are read. */
void stored_move(struct stored *stored);
/* The object ends, or needs no record any more. It may have none. */
void stored_end(struct stored *stored);

/* Writes the records of all touched objects. An error is left in book->carry.failed. */
void book_write(struct book *book);
/* Writes what book->carry has as a record that belongs to no object. */
void book_put(struct book *book, unsigned kind, uint64_t key);
/* Begins to read a record. False: there is none. */
bool book_find(const struct book *book, struct carry *carry, unsigned kind, uint64_t key);
/* Makes all objects of a kind from their records, until one is not good. */
void book_read(struct book *book, struct carry *carry, unsigned kind);
/* All records were read, and the objects of this kind and of those behind it are as their records
 * say. */
void book_read_all(struct book *book, unsigned kind);
/* How many records there are. */
size_t book_count(const struct book *book, unsigned kind);
/* Goes through the records of all objects that are wanted, and writes none: so that *carry gathers
 * their descriptors. */
void book_visit(struct book *book, struct carry *carry, bool (*wanted)(struct stored *stored));
/* For tests: false, and why, if an object is not as its record says, or a record has no object. */
bool book_check(struct book *book, unsigned *ret_kind, const char **ret_why);
void book_finish(struct book *book);

#endif
