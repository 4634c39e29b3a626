/* SPDX-License-Identifier: MIT
 *
 * store.h - the daemon's knowledge in memory that outlives the process: records, the answers that
 * leave at the end of a turn, and the requests that were read in it. A process that dies, at
 * whatever instruction, leaves the whole state of its last commit to each process that has the
 * descriptor.
 *
 *   store_put(), store_drop(), store_answer() ... store_commit() ─► all of it, or nothing
 *
 * Nothing that another daemon has written is believed without a check. One thread of one process
 * changes a store; other processes may look at it at any time. This code uses nothing but memory.
 */
#ifndef FS_STORE_H
#define FS_STORE_H

#include "pure/records.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Kinds are 1 to this. */
#define STORE_KIND_MAX RECORD_KINDS_MAX
/* The most bytes of one record, and of one answer. */
#define STORE_RECORD_BYTES (64 * 1024 * 1024)
/* The most bytes of the requests between two commits, with 8 more for each. */
#define STORE_REQUESTS_BYTES (16 * 1024 * 1024)

struct store;

/* In new memory. 0; or -EFBIG (RLIMIT_FSIZE), -ENOMEM, or another errno, and *ret_call: the call
 * that failed, for people. After fork(2) both processes
 * have the store: one may change it, the other may look at its head. */
int store_create(struct store **ret, const char **ret_call);
/* To go on with the store of another process, which does not change it any more. The store then
 * owns the descriptor. -EINVAL, and why: the descriptor is still the caller's. */
int store_open(int fd, struct store **ret, const char **ret_why);
/* A copy of the last commit, only to be looked at, while another process goes on to write. The
 * descriptor stays the caller's. -EAGAIN: the other process commits too often. */
int store_read(int fd, struct store **ret, const char **ret_why);
void store_close(struct store *store); /* NULL: nothing */
/* The descriptor of its memory, which an exec closes. */
int store_fd(const struct store *store);

/* ---- records ---- */

/* Both count from the commit on. To put the bytes that are there already is no change. Without
 * memory the commit fails. */
void store_put(struct store *store, unsigned kind, uint64_t key, const void *bytes, size_t len);
void store_drop(struct store *store, unsigned kind, uint64_t key);
/* The record, with the changes since the commit. Its bytes are good until the next change or
 * commit. */
bool store_get(const struct store *store, unsigned kind, uint64_t key, struct record_bytes *ret);
/* Something was put, dropped or answered since the commit. */
bool store_is_behind(const struct store *store);
/* The records of a kind, sorted by key, in an array for free(3). Their number, or -ENOMEM. */
ssize_t store_list(const struct store *store, unsigned kind, struct record_bytes **ret);

/* The store as the memory of records. */
extern const struct records_memory store_memory;

/* ---- a turn ---- */

/* An answer that leaves after the commit, behind those before it, with a tag of the caller. -ENOMEM
 * or -EIO: it is not kept, and the next commit fails. */
int store_answer(struct store *store, unsigned tag, const void *bytes, size_t len);
/* One step: the changes and the answers are in the store, and the requests that were read are not
 * in it any more. If there is none of these, nothing happens. -ENOMEM, -ENOSPC, -EIO: the store is
 * spoilt for good, no process goes on with it. */
int store_commit(struct store *store);
/* The answers of the last commit, one by one; `*at` is 0 at first. Good until the next commit. */
bool store_next_answer(const struct store *store, size_t *at, unsigned *ret_tag,
                       const void **ret_bytes, size_t *ret_len);

/* Room for a request, whose first 4 bytes are its length. They are 0 in the room: so a request is
 * known as read though the process died before its read(2) returned. NULL: no memory, or too many
 * requests; a commit makes room. */
void *store_request_room(struct store *store, size_t size);
/* The room was filled with so many bytes. They are kept until the commit. */
void store_request_add(struct store *store, size_t len);
/* Gives, of a store that was opened, the requests read since its last commit, in order; `*at` is 0
 * at first. Good until the next commit. */
bool store_next_request(const struct store *store, size_t *at, const void **ret_bytes,
                        size_t *ret_len);

/* ---- the head ---- */

/* What takes effect at once, and not by a commit. */
struct store_head {
	_Atomic int64_t deadline_us; /* the end of the lease; INT64_MIN at first */
	_Atomic uint64_t serving;    /* the request that is being served; 0: none */
	_Atomic uint64_t spoilt;     /* no process is to go on with it: store_spoil() */
	_Atomic uint64_t elsewhere;  /* the servers that answer are of another ensemble */
};

struct store_head *store_head(const struct store *store);
void store_spoil(struct store *store);
/* Who starts a mount accepts another ensemble: so one that ends there without being told to ends
 * with EXIT_USAGE, after which systemd starts no other. */
#define STORE_ELSEWHERE \
	"it waits at another ensemble, and only an administrator's restart accepts that"

#endif
