/* SPDX-License-Identifier: MIT
 *
 * journal.h - the memory of a store (store.h): a head, requests, and two halves, one of which is
 * good. A half is a row of batches, which are only ever appended, so that it can be read up to
 * the last commit while another appends.
 *
 *   head      commit word: which half is good, up to where
 *   requests  the number of the commit that each follows, its bytes
 *   half 0    batch: journal_batch, items ...
 *   half 1        item: journal_item, its bytes, filled up to 8 each
 *
 * The commit word is stored behind all that it stands for. That is enough: what a dead process
 * has stored is in the memory, in the order of its instructions for all who look later; the
 * release keeps the compiler to that order, and the processor for those who look meanwhile.
 *
 * Memory is populated before it is written, so that where there is none an error is told and no
 * SIGBUS comes. The size is sealed: nobody can cut the file off below a mapping.
 */
#ifndef FS_JOURNAL_H
#define FS_JOURNAL_H

#include "store.h"

#include <stdatomic.h>

/* In a half; so much may be recorded. */
#define JOURNAL_HALF_BYTES ((size_t)(sizeof(void *) < 8 ? 128 : 256) * 1024 * 1024)
/* Instead of a length: the record is gone. */
#define JOURNAL_GONE UINT32_MAX

struct journal_batch {
	uint64_t sum;     /* of what follows */
	uint64_t len;     /* with this head */
	uint64_t number;  /* of the commit */
	uint64_t answers; /* bytes of items at its end, whose kind is 0 and whose key the tag */
};

struct journal_item {
	uint32_t kind, len;
	uint64_t key;
};

struct journal_half {
	unsigned char *bytes;
	size_t len;   /* written */
	size_t batch; /* where the batch begins that is being written */
	size_t room;  /* populated */
};

/* What stands there at once, not by a commit. */
struct journal_head {
	uint64_t magic, version;
	_Alignas(64) _Atomic uint64_t commit;
	_Atomic int64_t deadline_us;
	_Atomic uint64_t serving;
	_Atomic uint64_t spoilt;
};

struct journal {
	int fd;
	struct journal_head *head; /* the memory's beginning */
	struct journal_half halves[2];
	unsigned char *copy;  /* that the good half is of, if it is one */
	unsigned good;        /* half */
	uint64_t number;      /* of the last commit */
	size_t requests;      /* bytes of those that are kept, */
	size_t requests_room; /*   and so many are populated */
};

int journal_create(struct journal *journal);
/* Either returns NULL, or why not. To write on, in the good half; and a copy of it. What it has is
 * not looked at yet. */
const char *journal_open(struct journal *journal, int fd);
const char *journal_copy(struct journal *journal, int fd);
/* What was opened is good: requests come behind those that are there. */
void journal_go_on(struct journal *journal);
/* Of whatever stands there: another value, another commit. */
uint64_t journal_commit_of(int fd);
/* The descriptor of one that was opened stays open if it is left; that of a copy in any case. */
void journal_leave(struct journal *journal);
void journal_close(struct journal *journal);

/* ---- reading ---- */

/* The next batch of the good half, from `*at` on. NULL: there is none, and `*ret_why` there should
 * be one. */
const struct journal_batch *journal_next_batch(struct journal *journal, size_t *at,
                                               const char **ret_why);
/* The next item of a row. False: none ends where the row does. */
bool journal_next_item(const unsigned char *row, size_t len, size_t *at,
                       struct journal_item *ret_item, const unsigned char **ret_bytes);
bool journal_next_request(const struct journal *journal, size_t *at, const void **ret_bytes,
                          size_t *ret_len);

/* ---- writing ---- */

/* What an item needs. */
size_t journal_size(size_t len);
/* 0, -ENOMEM or -ENOSPC; and where it is. */
int journal_begin(struct journal *journal, unsigned half);
int journal_append(struct journal *journal, unsigned half, const struct journal_item *item,
                   const void *bytes, const unsigned char **ret_bytes);
/* Items as they are: a row of them. */
int journal_append_row(struct journal *journal, unsigned half, const void *row, size_t len,
                       const unsigned char **ret_row);
void journal_end(struct journal *journal, unsigned half, size_t answers);
/* The half is the good one, with its last batch; no requests follow yet. */
void journal_commit(struct journal *journal, unsigned half);
/* What the other half has is not needed any more: some of its memory goes at each call. */
void journal_give_back(struct journal *journal);
/* Its first 8 bytes are 0. NULL: no memory, or too many. */
void *journal_request_room(struct journal *journal, size_t size);
void journal_request_add(struct journal *journal, size_t len);

#endif
