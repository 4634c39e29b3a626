/* SPDX-License-Identifier: MIT
 *
 * loop.h - the one loop of the one thread.
 */
#ifndef FS_LOOP_H
#define FS_LOOP_H

#include "face.h"
#include "options.h"
#include "reload.h"
#include "servers.h"

enum loop_stage {
	LOOP_SERVES,    /* takers and holders */
	LOOP_DRAINS,    /* holders, until the patience is over */
	LOOP_FORFEITED, /* nobody holds any more; doors are to be closed until the grace is over */
	LOOP_OVER,
};

struct loop {
	struct face *face;
	const struct options *options;
	struct fuse_session *fuse; /* NULL before the mount */
	struct servers servers;
	struct ensemble *ensemble;
	struct reload reload;
	struct ledger ledger;
	int signals;    /* a signalfd */
	pid_t detacher; /* takes the mount off the tree; 0: none is at work */
	pid_t asked;    /* loop_ask(): the child; 0: it has ended */
	int answer;     /*   and what it said */
	unsigned terms; /* how often we were told to leave */
	enum loop_stage stage;
	int64_t patience_us;            /* when the next stage comes */
	int error;                      /* the engine is unusable: lc_why() */
	bool contact;                   /* as it was said last, */
	unsigned long sessions, losses; /* and so many there had been */
	bool gone;                      /* the kernel's side has ended */
	bool unrecorded;                /* no memory for the ledger, once */
	struct fuse_buf put_off; /* a request that is read and not served yet; size 0: none */
	bool doubted;            /* the clock was, when that was asked last */
};

int loop_begin(struct loop *loop);
void loop_finish(struct loop *loop);

/* Until the servers have addresses. 0; -EADDRNOTAVAIL: none has one, and `retry_until_us` is over;
 * -ETIMEDOUT; -EINTR: told to leave. */
int loop_find(struct loop *loop, int64_t retry_until_us, int64_t until_us);
/* Until the session is ready. 0; -ETIMEDOUT; -EINTR; else why the engine is unusable
 * (lc_status). */
int loop_connect(struct loop *loop, int64_t until_us);
/* Until nothing is left to serve, or nothing can be served any more: loop->error.
 * `serving` is called once, with the loop, when the kernel has greeted; false: it never did. */
bool loop_serve(struct loop *loop, void (*serving)(void *ctx));
/* Afterwards: a question that may wait, answered by a child: 0 to 255; or -1, if it did not
 * answer in time, or we were told to leave now. */
int loop_ask(struct loop *loop, int (*question)(void *ctx), void *ctx, int64_t limit_us);
/* Afterwards: entries that are still to be deleted, for a time at most. */
void loop_delete_entries(struct loop *loop, int64_t timeout_us);

#endif
