/* SPDX-License-Identifier: MIT
 *
 * kept.c - see kept.h.
 */
#include "kept.h"

#include "store.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

void kept_begin(struct keeping *in, struct kept *kept, enum kept_kind kind, uint64_t number)
{
	assert(kept->kind == KEPT_NOT && kind != KEPT_NOT);
	if (!in)
		return;
	if (number == 0)
		number = in->reading ? in->reading : ++in->last;
	if (number > in->last && in->reading)
		in->last = number;
	*kept = (struct kept){.in = in, .key = number, .kind = kind, .touched = true};
	DL_APPEND(in->touched, kept);
	in->objects++;
}

void kept_touch(struct kept *kept)
{
	if (kept->kind == KEPT_NOT || kept->touched)
		return;
	kept->touched = true;
	DL_DELETE(kept->in->clean, kept);
	DL_APPEND(kept->in->touched, kept);
}

void kept_end(struct kept *kept)
{
	if (kept->kind == KEPT_NOT)
		return;
	if (kept->touched)
		DL_DELETE(kept->in->touched, kept);
	else
		DL_DELETE(kept->in->clean, kept);
	kept->in->objects--;
	if (kept->in->store)
		store_drop(kept->in->store, kept->kind, kept->key);
	*kept = (struct kept){0};
}

static void write_record(struct carry *carry, kept_carry_fn *const carry_of[], struct face *face,
                         struct kept *kept)
{
	assert(!carry->loads);
	carry_begin(carry);
	carry_of[kept->kind](carry, face, kept);
}

static void make_clean(struct keeping *keeping, struct kept *kept)
{
	DL_DELETE(keeping->touched, kept);
	DL_APPEND(keeping->clean, kept);
	kept->touched = false;
}

void keeping_write(struct keeping *keeping, struct carry *carry, kept_carry_fn *const carry_of[],
                   struct face *face)
{
	struct kept *kept, *next;

	DL_FOREACH_SAFE(keeping->touched, kept, next) {
		write_record(carry, carry_of, face, kept);
		store_put(keeping->store, kept->kind, kept->key, carry->data, carry->len);
		make_clean(keeping, kept);
	}
}

void keeping_visit(struct keeping *keeping, struct carry *carry, kept_carry_fn *const carry_of[],
                   struct face *face)
{
	struct kept *lists[] = {keeping->touched, keeping->clean}, *kept;

	for (size_t i = 0; i < 2; i++)
		DL_FOREACH(lists[i], kept)
			write_record(carry, carry_of, face, kept);
}

size_t keeping_count(const struct keeping *keeping, enum kept_kind kind)
{
	struct store_record *records = NULL;
	ssize_t count = store_list(keeping->store, kind, &records);

	free(records);
	return count > 0 ? (size_t)count : 0;
}

void keeping_read(struct keeping *keeping, struct carry *carry, enum kept_kind kind,
                  kept_carry_fn *carry_one, struct face *face)
{
	struct store_record *records = NULL;
	ssize_t count = store_list(keeping->store, kind, &records);

	assert(carry->loads);
	if (count < 0)
		carry->refuse(strerror(ENOMEM));
	for (ssize_t i = 0; i < count; i++) {
		keeping->reading = records[i].key;
		carry_read(carry, records[i].bytes, records[i].len);
		carry_one(carry, face, NULL);
		carry_read_all(carry);
	}
	keeping->reading = 0;
	free(records);
}

void keeping_read_all(struct keeping *keeping)
{
	struct kept *kept, *next;

	DL_FOREACH_SAFE(keeping->touched, kept, next)
		make_clean(keeping, kept);
}

/* ---- for tests ---- */

static void check_object(const struct keeping *keeping, const struct carry *carry,
                         const struct kept *kept)
{
	struct store_record record;

	if (store_get(keeping->store, kept->kind, kept->key, &record) && record.len == carry->len &&
	    memcmp(record.bytes, carry->data, carry->len) == 0)
		return;
	fprintf(stderr, "an object of kind %d has changed, and was not touched\n", kept->kind);
	abort();
}

void keeping_check(struct keeping *keeping, struct carry *carry, kept_carry_fn *const carry_of[],
                   struct face *face)
{
	size_t counts[KEPT_KINDS] = {0};
	struct kept *kept;

	assert(!keeping->touched);
	DL_FOREACH(keeping->clean, kept) {
		write_record(carry, carry_of, face, kept);
		check_object(keeping, carry, kept);
		counts[kept->kind]++;
	}
	for (int kind = 0; kind < KEPT_KINDS; kind++)
		if (carry_of[kind] &&
		    keeping_count(keeping, (enum kept_kind)kind) != counts[kind]) {
			fprintf(stderr, "a record of kind %d has no object\n", kind);
			abort();
		}
}
