/* SPDX-License-Identifier: MIT
 *
 * loop.h - the one loop of the one thread.
 */
#ifndef FS_LOOP_H
#define FS_LOOP_H

#include "daemon/contact.h"
#include "daemon/reload.h"
#include "request/frontend.h"
#include "setup/covers.h"
#include "setup/options.h"
#include "setup/servers.h"
#include "setup/settings.h"

enum loop_stage {
	LOOP_SERVES,    /* takers and holders */
	LOOP_DRAINS,    /* holders, until they have had time to leave */
	LOOP_FORFEITED, /* all locks are lost; programs have until the grace is over to close */
	LOOP_OVER,
};

struct loop {
	struct frontend *front;
	const struct options *options;
	struct fuse_session *fuse; /* NULL before the mount */
	struct servers servers;
	struct settings settings;
	struct covers covers;
	struct ensemble *ensemble;
	struct reload reload;
	struct mount_records mount_records;
	int signals;    /* a signalfd */
	pid_t detacher; /* takes the mount off the tree; 0: none is at work */
	pid_t asked;    /* loop_ask(): the child; 0: it has ended */
	int answer;     /*   and its answer */
	unsigned terms; /* how often the daemon was told to leave */
	enum loop_stage stage;
	int64_t stage_ends_us; /* when the next stage comes */
	int error;             /* the engine is unusable: lc_why() */
	struct contact contact;
	bool adopts;              /* this program has taken over the mount of another one */
	bool gone;                /* the kernel has ended the connection */
	bool unrecorded;          /* a record could not be written: none is any more */
	struct request *deferred; /* it was read while the clock was in doubt; NULL: none */
	struct request *room;     /* memory for the next request; or NULL */
	bool crowded;             /* the last turn may have left requests unserved */
	bool doubted;             /* the last answer of lc_doubted() */
};

/* False: it is said why. */
bool loop_begin(struct loop *loop);
void loop_finish(struct loop *loop);

/* One turn; `until_us` bounds the wait, INT64_MAX for none. */
void loop_turn(struct loop *loop, int64_t until_us);
/* Runs until nothing is left to serve, or nothing can be served any more: loop->error. False: INIT
 * has never come from the kernel. */
bool loop_serve(struct loop *loop);
/* When loop_serve() has ended: a child answers a question that may block. 0 to 255; -1: the
 * child did not answer in time, or the daemon was told to leave at once. */
int loop_ask(struct loop *loop, int (*question)(void *ctx), void *ctx, int64_t limit_us);
/* When loop_serve() has ended: runs until all entries are deleted, or the time is over. */
void loop_delete_entries(struct loop *loop, int64_t timeout_us);

#endif
