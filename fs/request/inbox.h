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

/* Beyond that nothing is read ahead: the kernel keeps what comes, in the order of its coming. */
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

/* Whether it may wait for the turn of its user. */
bool inbox_takes(const struct request *request);
bool inbox_is_full(const struct inbox *inbox);
/* False: no memory. */
bool inbox_add(struct request *request);
/* When another process takes over, a request_stays_fn: requests are not served while it is not
 * known whether a lock is still held. Who waits for a lock waits on. */
bool inbox_keep_in_doubt(struct request *request);
/* Serves the request of the user whose turn it is. False: there is none. */
bool inbox_serve(struct frontend *front);
/* A request that is in the inbox is served now: it is interrupted. True: it was there, and is
 * answered. */
bool inbox_serve_now(struct request *request);
/* Before a commit: all requests that wait here are to be in it, and none that was answered. */
void inbox_record(struct frontend *front);
/* The requests are still there: requests_finish(). */
void inbox_finish(struct inbox *inbox);

#endif
