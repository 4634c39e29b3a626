/* SPDX-License-Identifier: MIT
 *
 * store.h - what the daemon knows, in memory that outlives it: records, the answers that leave at
 * the end of a turn, and the requests that were read in it. One that dies at any instruction
 * leaves the state of its last commit, whole, to whoever has the descriptor.
 *
 *   store_put(), store_drop(), store_answer() ... store_commit() ─► all of it, or nothing
 *
 * What is read of another daemon is believed in nothing. Only a thread of one process changes a
 * store; processes that only look may do so at any time. Pure but for the memory.
 */
#ifndef FS_STORE_H
#define FS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Kinds are 1 to this. */
#define STORE_KIND_MAX 255
/* Of one record, and of one answer. */
#define STORE_RECORD_BYTES (64 * 1024 * 1024)
/* Of the requests between two commits, with 8 for each. */
#define STORE_REQUESTS_BYTES (16 * 1024 * 1024)

struct store;

struct store_record {
	unsigned kind;
	uint64_t key;
	const void *bytes;
	size_t len;
};

/* In new memory. -EFBIG (RLIMIT_FSIZE), -ENOMEM, or another errno. After fork(2) both have it:
 * one may change it, the other look at its head. */
int store_create(struct store **ret);
/* To go on with what another has left, who changes it no more. The descriptor is the store's then.
 * -EINVAL, and why; the descriptor is the caller's again. */
int store_open(int fd, struct store **ret, const char **ret_why);
/* A copy, to be looked at only: of its last commit, though another goes on. The descriptor stays
 * the caller's. -EAGAIN: the other is too quick. */
int store_read(int fd, struct store **ret, const char **ret_why);
void store_close(struct store *store); /* NULL: nothing */
/* An exec closes it. */
int store_fd(const struct store *store);

/* ---- records ---- */

/* Kept until the commit. The same bytes as are there are no change. Without memory the commit
 * fails. */
void store_put(struct store *store, unsigned kind, uint64_t key, const void *bytes, size_t len);
void store_drop(struct store *store, unsigned kind, uint64_t key);
/* With what is kept until the commit. Bytes are good until the next change or commit. */
bool store_get(const struct store *store, unsigned kind, uint64_t key, struct store_record *ret);
/* Something was changed since the commit, or not: a put may turn out to be none. */
bool store_is_behind(const struct store *store);
/* Those of a kind, sorted by key, in an array for free(3). Their number, or -ENOMEM. */
ssize_t store_list(const struct store *store, unsigned kind, struct store_record **ret);

/* ---- a turn ---- */

/* Bytes that leave after the commit, in this order, with a tag of the caller. -ENOMEM or -EIO: not
 * kept, the caller writes it himself; and the store is spoilt. */
int store_answer(struct store *store, unsigned tag, const struct iovec *iov, int count);
/* Changes, answers, and that the requests read so far are done with, in one step. With nothing of
 * these it does nothing. -ENOMEM, -ENOSPC, -EIO: the store is spoilt for good, nobody goes on
 * with it; answers are still there. */
int store_commit(struct store *store);
/* Those of the last commit; `*at` is 0 at first. Good until the next commit. */
bool store_next_answer(const struct store *store, size_t *at, unsigned *ret_tag,
                       const void **ret_bytes, size_t *ret_len);

/* Room for a request, which begins with its length in 4 bytes that is not 0: these are 0, so that
 * one is known as read even if its reader did not come back from read(2). NULL: no memory, or too
 * many of them; a commit makes room. */
void *store_request_room(struct store *store, size_t size);
/* That room was filled: it is kept until the commit. */
void store_request_add(struct store *store, size_t len);
/* In a store that was opened: those read since its last commit, in order; `*at` is 0 at first.
 * Good until the next commit. */
bool store_next_request(const struct store *store, size_t *at, const void **ret_bytes,
                        size_t *ret_len);

/* ---- its head: at once, not by a commit ---- */

/* Until when the lease is good. INT64_MIN at first. */
void store_set_deadline(struct store *store, int64_t us);
int64_t store_deadline(const struct store *store);
/* Which request is being served; 0: none. */
void store_set_serving(struct store *store, uint64_t unique);
uint64_t store_serving(const struct store *store);
/* Nobody goes on with it. */
void store_spoil(struct store *store);
bool store_spoilt(const struct store *store);

#endif
