/* SPDX-License-Identifier: MIT */
#include "pure/records.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

void records_kind(struct records *records, unsigned kind, record_save_load_fn *save_load, void *ctx)
{
	assert(kind > 0 && kind <= RECORD_KINDS_MAX);
	records->kinds[kind].save_load = save_load;
	records->kinds[kind].ctx = ctx;
}

void record_begin(struct records *records, struct record *record, unsigned kind, uint64_t key)
{
	assert(record->kind == 0 && kind != 0);
	if (!records)
		return;
	if (key == 0)
		key = records->reading ? records->reading : ++records->last;
	if (key > records->last && records->reading)
		records->last = key;
	*record = (struct record){.records = records, .key = key, .kind = (uint8_t)kind};
	record->touched = !records->reading || !records->as_recorded;
	if (record->touched)
		DL_APPEND(records->touched, record);
	else
		DL_APPEND(records->clean, record);
	records->count++;
}

void record_touch(struct record *record)
{
	if (record->kind == 0 || record->touched)
		return;
	record->touched = true;
	DL_DELETE(record->records->clean, record);
	DL_APPEND(record->records->touched, record);
}

static void drop_record(const struct record *record)
{
	const struct records *records = record->records;

	if (records->store)
		records->memory->drop(records->store, record->kind, record->key);
}

void record_move(struct record *record)
{
	if (record->kind == 0)
		return;
	/* While records are read, one that comes later may have the key that is given here. */
	assert(!record->records->reading);
	drop_record(record);
	record->key = ++record->records->last;
	record_touch(record);
}

void record_end(struct record *record)
{
	struct records *records = record->records;

	if (record->kind == 0)
		return;
	if (record->touched)
		DL_DELETE(records->touched, record);
	else
		DL_DELETE(records->clean, record);
	records->count--;
	drop_record(record);
	*record = (struct record){0};
}

static void write_record(struct records *records, struct codec *codec, struct record *record)
{
	assert(!codec->loads);
	codec_begin(codec);
	codec->kind = record->kind;
	records->kinds[record->kind].save_load(codec, records->kinds[record->kind].ctx, record);
}

static void make_clean(struct records *records, struct record *record)
{
	DL_DELETE(records->touched, record);
	DL_APPEND(records->clean, record);
	record->touched = false;
}

void records_put(struct records *records, unsigned kind, uint64_t key)
{
	records->memory->put(records->store, kind, key, records->codec.data, records->codec.len);
}

void records_write(struct records *records)
{
	struct record *record, *next;

	DL_FOREACH_SAFE(records->touched, record, next) {
		write_record(records, &records->codec, record);
		records_put(records, record->kind, record->key);
		make_clean(records, record);
	}
}

void records_visit(struct records *records, struct codec *codec,
                   bool (*wanted)(struct record *record))
{
	struct record *lists[] = {records->touched, records->clean}, *record;

	for (size_t i = 0; i < 2; i++)
		DL_FOREACH(lists[i], record)
			if (wanted(record))
				write_record(records, codec, record);
}

/* ---- reading ---- */

bool records_find(const struct records *records, struct codec *codec, unsigned kind, uint64_t key)
{
	struct record_bytes found;

	if (!records->memory->get(records->store, kind, key, &found))
		return false;
	codec->kind = kind;
	codec_read(codec, found.bytes, found.len);
	return true;
}

size_t records_count(const struct records *records, unsigned kind)
{
	struct record_bytes *found = NULL;
	ssize_t count = records->memory->list(records->store, kind, &found);

	free(found);
	return count > 0 ? (size_t)count : 0;
}

void records_read(struct records *records, struct codec *codec, unsigned kind)
{
	struct record_bytes *found = NULL;
	ssize_t count = records->memory->list(records->store, kind, &found);

	assert(codec->loads);
	if (count < 0)
		codec_fail(codec, strerror(ENOMEM));
	for (ssize_t i = 0; i < count && !codec->bad && !codec->failed; i++) {
		codec->kind = kind;
		records->reading = found[i].key;
		codec_read(codec, found[i].bytes, found[i].len);
		records->kinds[kind].save_load(codec, records->kinds[kind].ctx, NULL);
		if (!codec->failed)
			codec_read_all(codec);
	}
	records->reading = 0;
	free(found);
}

void records_read_all(struct records *records, unsigned kind)
{
	struct record *record, *next;

	DL_FOREACH_SAFE(records->touched, record, next)
		if (record->kind >= kind)
			make_clean(records, record);
}

void records_finish(struct records *records)
{
	codec_end(&records->codec);
}

/* ---- for tests ---- */

static bool is_as_recorded(struct records *records, struct record *record)
{
	struct record_bytes found;

	write_record(records, &records->codec, record);
	return records->memory->get(records->store, record->kind, record->key, &found) &&
	       found.len == records->codec.len &&
	       memcmp(found.bytes, records->codec.data, found.len) == 0;
}

bool records_check(struct records *records, unsigned *ret_kind, const char **ret_why)
{
	size_t counts[RECORD_KINDS_MAX + 1] = {0};
	struct record *record;

	assert(!records->touched);
	*ret_why = "an object has changed, and was not touched";
	DL_FOREACH(records->clean, record) {
		*ret_kind = record->kind;
		if (!is_as_recorded(records, record))
			return false;
		counts[record->kind]++;
	}
	*ret_why = "a record has no object";
	for (unsigned kind = 1; kind <= RECORD_KINDS_MAX; kind++) {
		*ret_kind = kind;
		if (records->kinds[kind].save_load && records_count(records, kind) != counts[kind])
			return false;
	}
	return true;
}
