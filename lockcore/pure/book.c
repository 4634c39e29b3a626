/* SPDX-License-Identifier: MIT */
#include "pure/book.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

void book_kind(struct book *book, unsigned kind, book_carry_fn *carry, void *ctx)
{
	assert(kind > 0 && kind <= BOOK_KINDS);
	book->kinds[kind].carry = carry;
	book->kinds[kind].ctx = ctx;
}

void stored_begin(struct book *book, struct stored *stored, unsigned kind, uint64_t key)
{
	assert(stored->kind == 0 && kind != 0);
	if (!book)
		return;
	if (key == 0)
		key = book->reading ? book->reading : ++book->last;
	if (key > book->last && book->reading)
		book->last = key;
	*stored = (struct stored){.book = book, .key = key, .kind = (uint8_t)kind};
	stored->touched = !book->reading || !book->as_recorded;
	if (stored->touched)
		DL_APPEND(book->touched, stored);
	else
		DL_APPEND(book->clean, stored);
	book->count++;
}

void stored_touch(struct stored *stored)
{
	if (stored->kind == 0 || stored->touched)
		return;
	stored->touched = true;
	DL_DELETE(stored->book->clean, stored);
	DL_APPEND(stored->book->touched, stored);
}

static void drop_record(const struct stored *stored)
{
	const struct book *book = stored->book;

	if (book->store)
		book->memory->drop(book->store, stored->kind, stored->key);
}

void stored_move(struct stored *stored)
{
	if (stored->kind == 0)
		return;
	assert(!stored->book->reading); /* the next record may have the next key */
	drop_record(stored);
	stored->key = ++stored->book->last;
	stored_touch(stored);
}

void stored_end(struct stored *stored)
{
	struct book *book = stored->book;

	if (stored->kind == 0)
		return;
	if (stored->touched)
		DL_DELETE(book->touched, stored);
	else
		DL_DELETE(book->clean, stored);
	book->count--;
	drop_record(stored);
	*stored = (struct stored){0};
}

static void write_record(struct book *book, struct carry *carry, struct stored *stored)
{
	assert(!carry->loads);
	carry_begin(carry);
	carry->kind = stored->kind;
	book->kinds[stored->kind].carry(carry, book->kinds[stored->kind].ctx, stored);
}

static void make_clean(struct book *book, struct stored *stored)
{
	DL_DELETE(book->touched, stored);
	DL_APPEND(book->clean, stored);
	stored->touched = false;
}

void book_put(struct book *book, unsigned kind, uint64_t key)
{
	book->memory->put(book->store, kind, key, book->carry.data, book->carry.len);
}

void book_write(struct book *book)
{
	struct stored *stored, *next;

	DL_FOREACH_SAFE(book->touched, stored, next) {
		write_record(book, &book->carry, stored);
		book_put(book, stored->kind, stored->key);
		make_clean(book, stored);
	}
}

void book_visit(struct book *book, struct carry *carry, bool (*wanted)(struct stored *stored))
{
	struct stored *lists[] = {book->touched, book->clean}, *stored;

	for (size_t i = 0; i < 2; i++)
		DL_FOREACH(lists[i], stored)
			if (wanted(stored))
				write_record(book, carry, stored);
}

/* ---- reading ---- */

bool book_find(const struct book *book, struct carry *carry, unsigned kind, uint64_t key)
{
	struct book_record record;

	if (!book->memory->get(book->store, kind, key, &record))
		return false;
	carry->kind = kind;
	carry_read(carry, record.bytes, record.len);
	return true;
}

size_t book_count(const struct book *book, unsigned kind)
{
	struct book_record *records = NULL;
	ssize_t count = book->memory->list(book->store, kind, &records);

	free(records);
	return count > 0 ? (size_t)count : 0;
}

void book_read(struct book *book, struct carry *carry, unsigned kind)
{
	struct book_record *records = NULL;
	ssize_t count = book->memory->list(book->store, kind, &records);

	assert(carry->loads);
	if (count < 0)
		carry_fail(carry, strerror(ENOMEM));
	for (ssize_t i = 0; i < count && !carry->bad && !carry->failed; i++) {
		carry->kind = kind;
		book->reading = records[i].key;
		carry_read(carry, records[i].bytes, records[i].len);
		book->kinds[kind].carry(carry, book->kinds[kind].ctx, NULL);
		if (!carry->failed)
			carry_read_all(carry);
	}
	book->reading = 0;
	free(records);
}

void book_read_all(struct book *book, unsigned kind)
{
	struct stored *stored, *next;

	DL_FOREACH_SAFE(book->touched, stored, next)
		if (stored->kind >= kind)
			make_clean(book, stored);
}

void book_finish(struct book *book)
{
	carry_end(&book->carry);
}

/* ---- for tests ---- */

static bool is_as_recorded(struct book *book, struct stored *stored)
{
	struct book_record record;

	write_record(book, &book->carry, stored);
	return book->memory->get(book->store, stored->kind, stored->key, &record) &&
	       record.len == book->carry.len &&
	       memcmp(record.bytes, book->carry.data, record.len) == 0;
}

bool book_check(struct book *book, unsigned *ret_kind, const char **ret_why)
{
	size_t counts[BOOK_KINDS + 1] = {0};
	struct stored *stored;

	assert(!book->touched);
	*ret_why = "an object has changed, and was not touched";
	DL_FOREACH(book->clean, stored) {
		*ret_kind = stored->kind;
		if (!is_as_recorded(book, stored))
			return false;
		counts[stored->kind]++;
	}
	*ret_why = "a record has no object";
	for (unsigned kind = 1; kind <= BOOK_KINDS; kind++) {
		*ret_kind = kind;
		if (book->kinds[kind].carry && book_count(book, kind) != counts[kind])
			return false;
	}
	return true;
}
