/* SPDX-License-Identifier: MIT
 *
 * notes.h - records whose memory can be looked into: those of an engine that another one is to go
 * on from. What is put and dropped counts from notes_commit() on; a process that dies has
 * discarded the rest.
 */
#ifndef WORLD_NOTES_H
#define WORLD_NOTES_H

#include "lockcore.h"
#include "pure/records.h"

struct note {
	struct {
		uint64_t kind, key;
	} id;
	void *bytes; /* committed; NULL: none */
	size_t len;
	void *new_bytes; /* if `changed`; NULL: dropped */
	size_t new_len;
	bool changed;
	struct note *prev, *next;
};

struct notes {
	struct records records;
	struct note *notes;
};

/* Of the array that notes give to records.c, which frees it. */
extern void *(*notes_calloc)(size_t count, size_t size);

void notes_begin(struct notes *notes);
void notes_finish(struct notes *notes);
/* As at the end of a turn: all that has changed is recorded. False, and why: the records are not
 * those of the engine's objects. */
bool notes_record(struct notes *notes, struct lc *lc, unsigned *ret_kind, const char **ret_why);
void notes_commit(struct notes *notes);
void notes_discard(struct notes *notes);
/* Changes a record, which is committed. NULL: drops it. */
void notes_set(struct notes *notes, unsigned kind, uint64_t key, const void *bytes, size_t len);
/* The same with the record that was written to *codec, which ends. */
void notes_put(struct notes *notes, unsigned kind, uint64_t key, struct codec *codec);
/* The committed one; NULL: none has that key. */
struct note *notes_find(const struct notes *notes, unsigned kind, uint64_t key);

#endif
