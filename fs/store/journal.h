/* SPDX-License-Identifier: MIT
 *
 * journal.h - the memory of a store (store.h): a head, requests, and two halves, one of which is
 * good. A half is a row of batches. Batches are only appended, so that one process can read up to
 * the last commit while another process appends.
 *
 *   head      commit word: which half is good, and its length
 *   requests  each with the number of the commit that it follows, and its bytes
 *   half 0    batch: journal_batch, items ...
 *   half 1        item: journal_item, its bytes, filled up to a multiple of 8
 *
 * The commit word is stored after all bytes that belong to the commit. That is enough: the stores
 * of a dead process are in the memory, in the order of its instructions. The release makes the
 * compiler keep that order, and the processor too, for processes that read meanwhile.
 *
 * Memory is populated before it is written to: so a lack of memory is an error, and no SIGBUS. The
 * size is sealed: no process can make the file shorter than a mapping of it.
 */
#ifndef FS_JOURNAL_H
#define FS_JOURNAL_H

#include "store/store.h"

/* The bytes of a half: no store has more records than fit in it. */
#define JOURNAL_HALF_BYTES ((size_t)(sizeof(void *) < 8 ? 128 : 256) * 1024 * 1024)
/* The kind of an answer; the key is its tag. */
#define JOURNAL_ANSWER 0
/* Instead of a length: the record is gone. */
#define JOURNAL_GONE UINT32_MAX

struct journal_batch {
	uint64_t sum;    /* of what follows */
	uint64_t len;    /* with this head */
	uint64_t number; /* of the commit */
};

struct journal_item {
	uint32_t kind, len;
	uint64_t key;
};

struct journal_half {
	unsigned char *bytes;
	size_t len;   /* written */
	size_t batch; /* the beginning of the batch that is being written; `len`: none is */
	size_t room;  /* populated */
};

struct journal_head {
	uint64_t magic, version;
	_Alignas(64) _Atomic uint64_t commit;
	struct store_head of_store;
};

struct journal {
	int fd;
	struct journal_head *head; /* the memory's beginning */
	struct journal_half halves[2];
	unsigned char *copy;  /* journal_copy(): the good half; NULL */
	unsigned good;        /* half */
	uint64_t number;      /* of the last commit */
	size_t requests;      /* bytes of the requests that are kept, */
	size_t requests_room; /*   and so many bytes are populated for them */
};

/* 0; or -errno, and *ret_call: what failed. */
int journal_create(struct journal *journal, const char **ret_call);
/* To go on writing in the good half; or with a copy of it, only to read. NULL, or why not. The
 * batches are not looked at yet. */
const char *journal_open(struct journal *journal, int fd);
const char *journal_copy(struct journal *journal, int fd);
/* The opened journal was read and is good: new requests come behind those that are there. */
void journal_go_on(struct journal *journal);
/* The commit word, unchecked: if it differs, there was another commit. */
uint64_t journal_commit_of(int fd);
/* Both unmap it. Only journal_close() closes the descriptor, unless it is of a copy. */
void journal_leave(struct journal *journal);
void journal_close(struct journal *journal);

/* ---- reading ---- */

/* The next batch of the good half, from `*at` on. NULL: there is none; if one should be there,
 * `*ret_why` says what is wrong. */
const struct journal_batch *journal_next_batch(struct journal *journal, size_t *at,
                                               const char **ret_why);
/* The next item of a batch; `*at` is 0 at first. False: no whole item is left. */
bool journal_next_item(const struct journal_batch *batch, size_t *at, struct journal_item *ret_item,
                       const unsigned char **ret_bytes);
bool journal_next_request(const struct journal *journal, size_t *at, const void **ret_bytes,
                          size_t *ret_len);

/* ---- writing ---- */

/* The bytes of an item with so many bytes of data. */
size_t journal_size(size_t len);
/* A half gets one more item, whose data is at `*ret_bytes` then; the first begins a batch. 0,
 * -ENOMEM or -ENOSPC. */
int journal_append(struct journal *journal, unsigned half, const struct journal_item *item,
                   const void *bytes, const unsigned char **ret_bytes);
/* A batch of the good half has begun. */
bool journal_is_behind(const struct journal *journal);
/* The batch ends, which may be empty. As journal_append(). */
int journal_end(struct journal *journal, unsigned half, const struct journal_batch **ret_batch);
/* This half is the good one now, up to its last batch. The requests are wiped out. */
void journal_commit(struct journal *journal, unsigned half);
/* The other half is not needed any more. Each call gives back some of its memory. */
void journal_give_back(struct journal *journal);
/* Room for a request. Its first 8 bytes are 0. NULL: no memory, or too many requests. */
void *journal_request_room(struct journal *journal, size_t size);
void journal_request_add(struct journal *journal, size_t len);

#endif
