/* SPDX-License-Identifier: MIT
 *
 * pending.h - requests of the kernel that are not answered yet, as bytes. A daemon that takes over
 * serves these bytes again: the request keeps its number, so the kernel can interrupt it as before,
 * and takes its answer.
 *
 * Only a request that waits is copied: most requests are answered at once. All answers pass through
 * one function here, so that none is overlooked.
 */
#ifndef FS_PENDING_H
#define FS_PENDING_H

#include "store/stored.h"
#include "pure/table.h"

#include <sys/types.h>

struct frontend;
struct fuse_buf;
struct fuse_session;

/* A request that is not answered yet.
 *
 *   read ──► served at once ──not answered──► waits: parked.h, or a hold ──► answered
 *    │                                          ▲
 *    └──► deferred: inbox.h ──its user's turn: served in the same way
 */
struct request {
	struct table_link unique;
	union {
		struct deferred *deferred; /* it waits for its user's turn; NULL: it does not */
		void *owner;               /* after a reload: the object that waits for it */
	};
	bool begun; /* the ensemble may have done what it asks for */
	uint32_t len;
	struct stored stored; /* its key rises with each request */
	_Alignas(uint64_t) unsigned char bytes[];
};

struct pending {
	struct table waiting; /* requests, by their numbers */
	struct request *init; /* the first request: what this kernel can do */
	const void *now;      /* the request that is being served, */
	bool answered;        /*   whether it was answered, */
	bool begun;           /*   and has asked the ensemble for a change; */
	void *owner;          /*   if it is served again: the object that waits for it */
	uint64_t deferred;    /* the request that is served later; 0: none */
	bool replays;         /* INIT is served again: its answer is left out */
	bool out_of_memory;   /* there was no memory for a request */
};

/* From now on what libfuse writes to its descriptor, which is no device, comes here, to leave by
 * front->answers.fd. */
void pending_follow(struct frontend *front, struct fuse_session *fuse);
void pending_finish(struct frontend *front);
/* Serves a request that was read; or keeps it, to be served later. */
void pending_serve(struct frontend *front, struct fuse_session *fuse,
                   const struct fuse_buf *buffer);
void pending_defer(struct frontend *front, const struct fuse_buf *buffer);
/* A copy of the request, to be served later. It has no record before pending_record(). NULL: no
 * memory. */
struct request *pending_copy(struct frontend *front, const struct fuse_buf *buffer);
/* Serves the copy. True: it was answered, and pending_drop() is to come. */
bool pending_serve_copy(struct frontend *front, struct fuse_session *fuse, struct request *request);
void pending_record(struct frontend *front, struct request *request);
void pending_drop(struct frontend *front, struct request *request);
/* NULL: no request of that number waits. */
struct request *pending_find(const struct frontend *front, uint64_t unique);
/* From now on the ensemble may have done what the request that is being served asks for. */
void pending_begun(struct frontend *front);

/* Of the request that is being served: its number; and of a POLL, the number of the poller. */
uint64_t pending_unique(const struct frontend *front);
uint64_t pending_poller(const struct frontend *front);
/* This poller is to poll again. 0: there is none. */
void pending_wake_poller(struct frontend *front, uint64_t poller);
/* The same for the pollers of all open files. */
void pending_wake_all(struct frontend *front);

/* Records of a request that waits, and of INIT. */
void request_stored_carry(struct carry *carry, struct frontend *front, struct stored *stored);
void init_carry(struct carry *carry, struct frontend *front);
/* This object waits for the request of that number. False: there is no such request, or another
 * object waits for it. */
bool pending_give(struct frontend *front, uint64_t unique, void *owner);
/* The object that waits for the request that is being served again; NULL: none. */
void *pending_owner(const struct frontend *front);
/* True: somebody else serves that request later. `known`: its copy, with a record; or NULL. */
typedef bool pending_stays_fn(struct frontend *front, const struct fuse_buf *buffer,
                              struct request *known);
/* Serves INIT again: true if this libfuse's answers come here; and all requests that wait. After a
 * crash a request that had begun to change something is answered EIO: nothing tells whether it was
 * done. */
bool pending_serve_init(struct frontend *front, struct fuse_session *fuse);
void pending_replay(struct frontend *front, struct fuse_session *fuse, bool crashed,
                    pending_stays_fn *stays);
/* Serves the requests that were read since the store's last commit. */
void pending_replay_read(struct frontend *front, struct fuse_session *fuse,
                         pending_stays_fn *stays);

#endif
