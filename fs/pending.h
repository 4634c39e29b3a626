/* SPDX-License-Identifier: MIT
 *
 * pending.h - requests of the kernel that are not answered yet, as the bytes that they were. A
 * daemon that takes over serves these bytes again: a request keeps its number then, so it can be
 * interrupted as before, and the kernel takes its answer.
 *
 * A copy is made only of a request that waits: most are answered at once. Answers are seen where
 * they go to the kernel, so that none can be overlooked.
 */
#ifndef FS_PENDING_H
#define FS_PENDING_H

#include "kept.h"
#include "table.h"

#include <sys/types.h>

struct face;
struct fuse_buf;
struct fuse_session;

struct pending {
	struct table waiting;     /* by their numbers */
	struct request *greeting; /* the first one: what this kernel can do */
	const void *now;          /* the request that is being served, */
	bool answered;            /*   and was */
	bool begun;               /*   and has asked for a change */
	void *owner;              /*   and who waits for it, if it is served again */
	uint64_t put_off;         /* one that is served later; 0: none */
	bool replays;             /* it was greeted long ago */
	bool lacks;               /* no memory for one of them */
};

/* From now on answers are seen. 0, or -errno. */
int pending_begin(struct face *face, struct fuse_session *fuse);
void pending_finish(struct face *face);
/* A request that was read; or that is served later, when it comes again. */
void pending_serve(struct face *face, struct fuse_session *fuse, const struct fuse_buf *buffer);
void pending_put_off(struct face *face, const struct fuse_buf *buffer);
/* What the request of that number asks for may be done from now on. */
void pending_begun(struct face *face, uint64_t unique);

/* Of the request that is being served: its number, and of a POLL the number of who polls. */
uint64_t pending_unique(const struct face *face);
uint64_t pending_poller(const struct face *face);
/* Whoever polls is to ask again; 0 is nobody. */
void pending_wake_poller(struct face *face, uint64_t poller);

/* A request that waits; and the greeting. */
void request_kept_carry(struct carry *carry, struct face *face, struct kept *kept);
void greeting_carry(struct carry *carry, struct face *face);
/* Whoever waits for that request. False: there is none of that number, or it is another's. */
bool pending_give(struct face *face, uint64_t unique, void *owner);
/* Of the request that is being served again; NULL: of nobody. */
void *pending_owner(const struct face *face);
/* Greets as the kernel once did, and serves what waits again. After a crash nobody knows whether
 * what had begun was done: it is answered EIO. */
void pending_greet(struct face *face, struct fuse_session *fuse);
void pending_replay(struct face *face, struct fuse_session *fuse, bool crashed);
/* And those that were read since the store's last commit. */
void pending_replay_read(struct face *face, struct fuse_session *fuse);

#endif
