/* SPDX-License-Identifier: MIT
 *
 * request.h - one request of the kernel, from its reading to its answer.
 *
 *   request_new()
 *        ▼
 *     [READ] ──in doubt, or not its user's turn (inbox.h): kept, and served later──┐
 *        │ request_serve()                                                         │
 *        ▼                                                                         │
 *    [SERVED] ◄────────────────────────────────────────────────────────────────────┘
 *        │    ╲ reply_*(), or libfuse answers by itself
 *        │     ╲──────────────────────────────────► [ANSWERED] ──request_drop()──► gone
 *        │ an object waits for it: parked.h, a hold
 *        ▼
 *     [WAITS], kept ──reply_*()──► gone
 *
 * A request that is kept has a record: its bytes. A daemon that takes over serves these bytes
 * again. The request keeps its number, so the kernel can interrupt it as before, and takes its
 * answer.
 */
#ifndef FS_REQUEST_H
#define FS_REQUEST_H

#define FUSE_USE_VERSION 314

#include "pure/table.h"
#include "store/record_kinds.h"

#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <sys/types.h>

struct frontend;

enum request_state { REQUEST_READ, REQUEST_SERVED, REQUEST_WAITS, REQUEST_ANSWERED };

struct request {
	struct table_link unique;
	struct frontend *front;
	fuse_req_t fuse; /* libfuse's object, from the call of the handler to the answer */
	struct deferred *deferred; /* READ: its place in the inbox; NULL: it is not there */
	void *owner;               /* WAITS: the object that waits; also after a reload */
	void (*interrupted)(void *owner);
	struct traced *traced; /* trace.h; or NULL */
	enum request_state state;
	bool kept;  /* the table of pending requests has it */
	bool begun; /* the ensemble may have made the change that it asks for */
	uint32_t len;
	struct record record;     /* its key rises with each request */
	struct fuse_in_header in; /* the body of the request follows, up to `len` bytes */
};

struct pending {
	struct fuse_session *fuse;
	int libfuse;          /* a socket: what libfuse says by itself is read here */
	struct table kept;    /* requests, by their numbers */
	struct request *now;  /* the request that is being served */
	struct request *init; /* the first request: what this kernel can do */
	bool out_of_memory;   /* there was no memory to keep a request */
};

/* A pair of sockets: what libfuse writes to one end, in place of the kernel's device, is read at
 * the other one. The end for libfuse; -1: errno. */
int requests_begin(struct frontend *front);

/* Allocates room for a request of so many bytes. NULL: no memory. */
struct request *request_alloc(size_t len);
/* A request of these bytes, which are copied: into `room`, or, if that is NULL, new memory. NULL:
 * no memory. */
struct request *request_new(struct frontend *front, const void *bytes, size_t len,
                            struct request *room);
/* Serves the request. True: it was answered, and request_drop() must follow. */
bool request_serve(struct request *request);
/* Serves the request, then frees it if it was answered, and keeps it otherwise. */
void request_take(struct request *request);
/* request_find() finds the request from now on. False: no memory, or another request has its
 * number. */
bool request_list(struct request *request);
void request_record(struct request *request);
/* request_list() and request_record(): the request is served later. */
void request_keep(struct request *request);
void request_drop(struct request *request);
/* NULL: no request of that number is kept. */
struct request *request_find(const struct frontend *front, uint64_t unique);

/* ---- for handlers ---- */

/* The request that libfuse calls a handler for. */
struct request *request_of(fuse_req_t fuse);
/* The kernel has interrupted it already. */
bool request_is_interrupted(const struct request *request);
/* `owner` waits for it, and is told when it is interrupted: maybe at once. */
void request_wait(struct request *request, void (*interrupted)(void *owner), void *owner);
/* Notes that the ensemble may have made the change that the request asks for. */
void request_begun(struct request *request);
/* Answers the request; handlers use reply.h. `error`: 0 or -errno. The request may be gone then. */
void request_answer(struct request *request, int error, const void *body, size_t len);
/* Ends a request that has its answer, 0 or -errno; or to which the kernel wants none, as FORGET. */
void request_end(struct request *request, int error);

/* ---- over a reload ---- */

/* Save and load a request that is kept, and INIT. */
record_save_load_fn request_record_save_load; /* of struct frontend */
void init_save_load(struct codec *codec, struct frontend *front);
/* This object waits for the request of that number, which is returned. NULL: there is no such
 * request, or another object waits for it. */
struct request *request_give(struct frontend *front, uint64_t unique, void *owner);
/* True: the request stays, and another part of the frontend serves it later. */
typedef bool request_stays_fn(struct request *request);
/* Serves INIT again: true if libfuse answers it; and all requests that wait. After a crash a
 * request that had begun to change something is answered EIO: nothing tells whether it was done. */
bool requests_serve_init(struct frontend *front);
void requests_replay(struct frontend *front, bool crashed, request_stays_fn *stays);
/* Serves the requests that were read since the store's last commit. False: no memory. */
bool requests_replay_read(struct frontend *front, request_stays_fn *stays);
void requests_finish(struct frontend *front);

#endif
