/* SPDX-License-Identifier: MIT
 *
 * records.h - what outlives this process. Each object that must survive a reload or a crash has a
 * record in memory that the next process gets (fs/store/), from which it is made anew.
 *
 *   object --record_begin()--> [TOUCHED] --records_write(): its record written--> [CLEAN] --.
 *                                  ^                                                  |     |
 *                                  '------record_touch(): it changes, or may have-----'     |
 *                                                  the record is dropped <--record_end()----'
 *
 * Each kind of object has one function that names the fields of its record (codec.h): it writes
 * the record of an object, and it makes an object from a record. Both parts use the same records,
 * and each has kinds of its own: lockcore.h, fs/store/record_kinds.h.
 *
 * Code that changes an object must touch it. A touch without a change costs a comparison. A change
 * without a touch is a bug, which the tests look for: records_check().
 */
#ifndef LOCKCORE_RECORDS_H
#define LOCKCORE_RECORDS_H

#include "pure/codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Kinds are 1 to this. */
#define RECORD_KINDS_MAX 32

struct records;
struct store; /* the memory of the records: fs/store/, or a test's */

struct record_bytes {
	unsigned kind;
	uint64_t key;
	const void *bytes;
	size_t len;
};

struct records_memory {
	/* Both count from the next commit of the memory on. A lack of memory spoils that. */
	void (*put)(struct store *store, unsigned kind, uint64_t key, const void *bytes,
	            size_t len);
	void (*drop)(struct store *store, unsigned kind, uint64_t key);
	/* The record, with the changes since the commit; good until the next change. */
	bool (*get)(const struct store *store, unsigned kind, uint64_t key,
	            struct record_bytes *ret);
	/* The records of a kind, sorted by key, in an array for free(3). How many, or -ENOMEM. */
	ssize_t (*list)(const struct store *store, unsigned kind, struct record_bytes **ret);
};

/* A part of each object. All 0: it has no record. */
struct record {
	struct records *records;
	uint64_t key; /* of its record, among those of its kind: they are read in this order */
	uint8_t kind;
	bool touched;
	struct record *prev, *next; /* in one of two lists */
};

/* The object of that type whose part `record` is; NULL: none. */
#define RECORD_IN(part, type) ((part) ? (type *)((char *)(part)-offsetof(type, record)) : NULL)

/* Writes the record of an object. If codec->loads, makes an object from its record; `record` is
 * NULL then. */
typedef void record_save_load_fn(struct codec *codec, void *ctx, struct record *record);

struct records {
	const struct records_memory *memory;
	struct store *store; /* NULL: nothing is written */
	struct {
		record_save_load_fn *save_load; /* NULL: its records belong to no objects */
		void *ctx;
	} kinds[RECORD_KINDS_MAX + 1];
	struct record *touched, *clean;
	size_t count;       /* in both lists */
	uint64_t last;      /* key that was given to an object */
	uint64_t reading;   /* the key of the record that is being read; 0: none is */
	bool as_recorded;   /* an object that is read begins CLEAN */
	struct codec codec; /* the record that is written */
};

/* The function of a kind. */
void records_kind(struct records *records, unsigned kind, record_save_load_fn *save_load,
                  void *ctx);

/* A new object. `records`: NULL if it is to have no record. `key`: 0 for that of the record which
 * is being read, or the next free one. */
void record_begin(struct records *records, struct record *record, unsigned kind, uint64_t key);
void record_touch(struct record *record);
/* Its record comes last from now on. Not while records are read. */
void record_move(struct record *record);
/* The object ends, or needs no record any more. It may have none. */
void record_end(struct record *record);

/* Writes the records of all touched objects. An error is left in records->codec.failed. */
void records_write(struct records *records);
/* Writes what records->codec has as a record that belongs to no object. */
void records_put(struct records *records, unsigned kind, uint64_t key);
/* Begins to read a record. False: there is none. */
bool records_find(const struct records *records, struct codec *codec, unsigned kind, uint64_t key);
/* Makes all objects of a kind from their records, until one is not good. */
void records_read(struct records *records, struct codec *codec, unsigned kind);
/* All records were read, and the objects of this kind and of those behind it are as their records
 * say. */
void records_read_all(struct records *records, unsigned kind);
/* How many records there are. */
size_t records_count(const struct records *records, unsigned kind);
/* Goes through the records of all objects that are wanted, and writes none: so that *codec gathers
 * their descriptors. */
void records_visit(struct records *records, struct codec *codec,
                   bool (*wanted)(struct record *record));
/* Tests ask this: false, and why, if an object is not as its record says, or a record has none. */
bool records_check(struct records *records, unsigned *ret_kind, const char **ret_why);
void records_finish(struct records *records);

#endif
