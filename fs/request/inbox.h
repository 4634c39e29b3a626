/* SPDX-License-Identifier: MIT
 *
 * inbox.h - requests that were read and are served later. When the kernel has more requests than
 * one turn serves, all of them are read, and users take turns from then on: otherwise a user with
 * a thousand threads makes everybody else wait for a thousand requests.
 *
 * A request that gives something back (FLUSH, RELEASE, FORGET) never comes here: what the process
 * asks for afterwards must not overtake it.
 */
#ifndef FS_INBOX_H
#define FS_INBOX_H

#include "pure/gate.h"

#include <stdbool.h>
#include <stddef.h>

/* With so many requests in the inbox no more are read ahead: the kernel keeps the rest, in
 * order. */
#define INBOX_REQUESTS_MAX 8192
#define INBOX_BYTES_MAX (4 * 1024 * 1024)

struct frontend;
struct request;

struct inbox {
	struct gate users;
	struct deferred *fresh;   /* those that have no record yet */
	struct deferred *settled; /* answered, and the record is still there */
	size_t count, bytes;
};

static inline bool inbox_is_empty(const struct inbox *inbox)
{
	return inbox->count == 0;
}

/* Whether the request may wait for the turn of its user. */
bool inbox_takes(const struct request *request);
bool inbox_is_full(const struct inbox *inbox);
/* False: no memory. */
bool inbox_add(struct request *request);
/* A request_stays_fn for a process that takes over: while lc_doubted() is true, the request
 * stays in the inbox. A request that waits for a lock waits on. */
bool inbox_keep_in_doubt(struct request *request);
/* Serves the request of the user whose turn it is. False: there is none. */
bool inbox_serve(struct frontend *front);
/* Serves a request of the inbox at once, since it is interrupted. True: the request was in the
 * inbox, and is answered. */
bool inbox_serve_now(struct request *request);
/* Before a commit: records all requests that wait in the inbox, and drops the records of
 * answered ones. */
void inbox_record(struct frontend *front);
/* Empties the inbox. requests_finish() frees the requests. */
void inbox_finish(struct inbox *inbox);

#endif
