/* SPDX-License-Identifier: MIT
 *
 * loop.h - the one loop of the one thread.
 */
#ifndef FS_LOOP_H
#define FS_LOOP_H

#include "face.h"

struct loop {
	struct face *face;
	struct fuse_session *fuse;   /* NULL before the mount */
	const char *mountpoint;
	int signals;                 /* a signalfd */
	pid_t detacher;              /* takes the mount off the tree; 0: none is at work */
	unsigned terms;              /* how often we were told to leave */
	int64_t drain_us;            /* how long holders are served then */
	int64_t patience_us;         /* until when they are, or INT64_MAX */
	bool forfeited;              /* that time is over, and they have lost what they held */
	bool over;                   /* and the time to close it, too */
	bool gone;                   /* the kernel's side has ended */
};

int loop_begin(struct loop *loop);
void loop_finish(struct loop *loop);

/* Until the session is ready. 0; -ETIMEDOUT; -EINTR: told to leave; else why the
 * engine is unusable (lc_status). */
int loop_connect(struct loop *loop, int64_t timeout_us);
/* Until nothing is left to serve. `serving` is called once, when the kernel has
 * greeted; false: it never did. */
bool loop_serve(struct loop *loop, void (*serving)(void));
/* Afterwards: entries that are still to be deleted, for a time at most. */
void loop_settle(struct loop *loop, int64_t timeout_us);

#endif
