/* SPDX-License-Identifier: MIT */
#include "notes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

void *(*notes_calloc)(size_t count, size_t size) = calloc;

struct note *notes_find(const struct notes *notes, unsigned kind, uint64_t key)
{
	struct note *note;

	DL_FOREACH(notes->notes, note)
		if (note->id.kind == kind && note->id.key == key)
			return note;
	return NULL;
}

static void forget(struct notes *notes, struct note *note)
{
	DL_DELETE(notes->notes, note);
	free(note->bytes);
	free(note->new_bytes);
	free(note);
}

static struct note *find_or_make(struct notes *notes, unsigned kind, uint64_t key)
{
	struct note *note = notes_find(notes, kind, key), *after = NULL, *other;

	if (note)
		return note;
	note = calloc(1, sizeof(*note));
	if (!note)
		abort();
	note->id.kind = kind;
	note->id.key = key;
	DL_FOREACH(notes->notes, other)
		if (other->id.kind < kind || (other->id.kind == kind && other->id.key < key))
			after = other;
	if (after)
		DL_APPEND_ELEM(notes->notes, after, note);
	else
		DL_PREPEND(notes->notes, note);
	return note;
}

static void change(struct note *note, const void *bytes, size_t len)
{
	free(note->new_bytes);
	note->new_bytes = bytes ? malloc(len + 1) : NULL;
	if (bytes && !note->new_bytes)
		abort();
	if (len > 0)
		memcpy(note->new_bytes, bytes, len);
	note->new_len = len;
	note->changed = true;
}

static void put(struct store *store, unsigned kind, uint64_t key, const void *bytes, size_t len)
{
	change(find_or_make((struct notes *)store, kind, key), bytes, len);
}

static void drop(struct store *store, unsigned kind, uint64_t key)
{
	struct note *note = notes_find((const struct notes *)store, kind, key);

	if (note)
		change(note, NULL, 0);
}

static bool fill(const struct note *note, struct record_bytes *ret)
{
	*ret = (struct record_bytes){
		.kind = (unsigned)note->id.kind,
		.key = note->id.key,
		.bytes = note->changed ? note->new_bytes : note->bytes,
		.len = note->changed ? note->new_len : note->len,
	};
	return ret->bytes;
}

static bool get(const struct store *store, unsigned kind, uint64_t key, struct record_bytes *ret)
{
	const struct note *note = notes_find((const struct notes *)store, kind, key);

	return note && fill(note, ret);
}

static ssize_t list(const struct store *store, unsigned kind, struct record_bytes **ret)
{
	const struct notes *notes = (const struct notes *)store;
	const struct note *note;
	size_t count = 0;

	DL_FOREACH(notes->notes, note)
		count++;
	*ret = notes_calloc(count + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	count = 0;
	DL_FOREACH(notes->notes, note)
		if (note->id.kind == kind && fill(note, &(*ret)[count]))
			count++;
	return (ssize_t)count;
}

void notes_begin(struct notes *notes)
{
	static const struct records_memory memory = {put, drop, get, list};

	*notes = (struct notes){.records = {.memory = &memory, .store = (struct store *)notes}};
}

void notes_finish(struct notes *notes)
{
	struct note *note, *next;

	DL_FOREACH_SAFE(notes->notes, note, next)
		forget(notes, note);
	records_finish(&notes->records);
}

void notes_commit(struct notes *notes)
{
	struct note *note, *next;

	DL_FOREACH_SAFE(notes->notes, note, next) {
		if (!note->changed)
			continue;
		free(note->bytes);
		note->bytes = note->new_bytes;
		note->len = note->new_len;
		note->new_bytes = NULL;
		note->changed = false;
		if (!note->bytes)
			forget(notes, note);
	}
}

void notes_discard(struct notes *notes)
{
	struct note *note, *next;

	DL_FOREACH_SAFE(notes->notes, note, next) {
		free(note->new_bytes);
		note->new_bytes = NULL;
		note->changed = false;
		if (!note->bytes)
			forget(notes, note);
	}
}

bool notes_record(struct notes *notes, struct lc *lc, unsigned *ret_kind, const char **ret_why)
{
	bool good;

	lc_record(lc);
	records_write(&notes->records);
	good = records_check(&notes->records, ret_kind, ret_why);
	if (notes->records.codec.failed)
		notes_discard(notes);
	else
		notes_commit(notes);
	return good;
}

void notes_set(struct notes *notes, unsigned kind, uint64_t key, const void *bytes, size_t len)
{
	change(find_or_make(notes, kind, key), bytes, len);
	notes_commit(notes);
}

void notes_put(struct notes *notes, unsigned kind, uint64_t key, struct codec *codec)
{
	notes_set(notes, kind, key, codec->data, codec->len);
	codec_end(codec);
}
