/* SPDX-License-Identifier: MIT
 *
 * stored.c - see stored.h.
 */
#include "store/stored.h"

#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

void stored_begin(struct stored_objects *in, struct stored *stored, enum stored_kind kind,
                  uint64_t number)
{
	assert(stored->kind == STORED_NOT && kind != STORED_NOT);
	if (!in)
		return;
	if (number == 0)
		number = in->reading ? in->reading : ++in->last;
	if (number > in->last && in->reading)
		in->last = number;
	*stored = (struct stored){.in = in, .key = number, .kind = kind, .touched = true};
	DL_APPEND(in->touched, stored);
	in->count++;
}

void stored_touch(struct stored *stored)
{
	if (stored->kind == STORED_NOT || stored->touched)
		return;
	stored->touched = true;
	DL_DELETE(stored->in->clean, stored);
	DL_APPEND(stored->in->touched, stored);
}

void stored_end(struct stored *stored)
{
	if (stored->kind == STORED_NOT)
		return;
	if (stored->touched)
		DL_DELETE(stored->in->touched, stored);
	else
		DL_DELETE(stored->in->clean, stored);
	stored->in->count--;
	if (stored->in->store)
		store_drop(stored->in->store, stored->kind, stored->key);
	*stored = (struct stored){0};
}

static void write_record(struct carry *carry, stored_carry_fn *const carry_of[], struct face *face,
                         struct stored *stored)
{
	assert(!carry->loads);
	carry_begin(carry);
	carry_of[stored->kind](carry, face, stored);
}

static void make_clean(struct stored_objects *objects, struct stored *stored)
{
	DL_DELETE(objects->touched, stored);
	DL_APPEND(objects->clean, stored);
	stored->touched = false;
}

void stored_write(struct stored_objects *objects, struct carry *carry,
                  stored_carry_fn *const carry_of[], struct face *face)
{
	struct stored *stored, *next;

	DL_FOREACH_SAFE(objects->touched, stored, next) {
		write_record(carry, carry_of, face, stored);
		store_put(objects->store, stored->kind, stored->key, carry->data, carry->len);
		make_clean(objects, stored);
	}
}

void stored_visit(struct stored_objects *objects, struct carry *carry,
                  stored_carry_fn *const carry_of[], struct face *face)
{
	struct stored *lists[] = {objects->touched, objects->clean}, *stored;

	for (size_t i = 0; i < 2; i++)
		DL_FOREACH(lists[i], stored)
			if (carry_of[stored->kind])
				write_record(carry, carry_of, face, stored);
}

size_t stored_count(const struct stored_objects *objects, enum stored_kind kind)
{
	struct store_record *records = NULL;
	ssize_t count = store_list(objects->store, kind, &records);

	free(records);
	return count > 0 ? (size_t)count : 0;
}

void stored_read(struct stored_objects *objects, struct carry *carry, enum stored_kind kind,
                 stored_carry_fn *carry_one, struct face *face)
{
	struct store_record *records = NULL;
	ssize_t count = store_list(objects->store, kind, &records);

	assert(carry->loads);
	if (count < 0)
		carry->refuse(strerror(ENOMEM));
	for (ssize_t i = 0; i < count; i++) {
		objects->reading = records[i].key;
		carry_read(carry, records[i].bytes, records[i].len);
		carry_one(carry, face, NULL);
		carry_read_all(carry);
	}
	objects->reading = 0;
	free(records);
}

void stored_read_all(struct stored_objects *objects)
{
	struct stored *stored, *next;

	DL_FOREACH_SAFE(objects->touched, stored, next)
		make_clean(objects, stored);
}

/* ---- for tests ---- */

static void check_object(const struct stored_objects *objects, const struct carry *carry,
                         const struct stored *stored)
{
	struct store_record record;

	if (store_get(objects->store, stored->kind, stored->key, &record) &&
	    record.len == carry->len && memcmp(record.bytes, carry->data, carry->len) == 0)
		return;
	fprintf(stderr, "an object of kind %d has changed, and was not touched\n", stored->kind);
	abort();
}

void stored_check(struct stored_objects *objects, struct carry *carry,
                  stored_carry_fn *const carry_of[], struct face *face)
{
	size_t counts[STORED_KINDS] = {0};
	struct stored *stored;

	assert(!objects->touched);
	DL_FOREACH(objects->clean, stored) {
		write_record(carry, carry_of, face, stored);
		check_object(objects, carry, stored);
		counts[stored->kind]++;
	}
	for (int kind = 0; kind < STORED_KINDS; kind++)
		if (carry_of[kind] &&
		    stored_count(objects, (enum stored_kind)kind) != counts[kind]) {
			fprintf(stderr, "a record of kind %d has no object\n", kind);
			abort();
		}
}
