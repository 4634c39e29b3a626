/* SPDX-License-Identifier: MIT
 *
 * linger.h - a place in the queue that stays there though nobody has the file open.
 *
 * A process whose open was interrupted keeps its place for a while: the place *lingers*. SIGCHLD,
 * ^Z, strace and freezers all interrupt an open, and bash, dash, ksh and Python then simply open
 * again: without this they would begin again at the end of the queue. It lingers for LINGER_US
 * while others are before it, and for LINGER_HEAD_US once it has the lock, since then everybody
 * waits. It is given up at once when the process ends, which a pidfd tells.
 *
 * A lock whose lock file has a least time is *kept* until then, even if the process that had it
 * ends.
 */
#ifndef FS_LINGER_H
#define FS_LINGER_H

#include "pure/codec.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define LINGER_US 2000000
#define LINGER_HEAD_US 250000

struct lingering {
	pid_t pid;
	enum lingering_state {
		NOT_LINGERING,
		LINGERS_BEHIND,
		LINGERS_AT_HEAD,
		LINGERS_KEPT,
		LINGERING_STATES
	} state;
	int64_t until_us;
	int pidfd; /* KEPT: none, -1 */
	struct lingering *prev, *next;
};

struct linger {
	int fd; /* for the loop's poll(2): readable when a process went */
	int64_t (*clock_us)(void);
	void (*drop)(struct lingering *lingering); /* its time is up; not active any more */
	struct lingering *lists[LINGERING_STATES]; /* by state, in the order of their ends */
};

/* False: it is said why. */
bool linger_init(struct linger *linger, int64_t (*clock_us)(void),
                 void (*drop)(struct lingering *lingering));
void linger_finish(struct linger *linger);

/* False: the process cannot be watched, or is gone. */
bool linger_begin(struct linger *linger, struct lingering *lingering, pid_t pid);
/* A place that lingers has got the lock: it stands at the head of the queue. */
void linger_at_head(struct linger *linger, struct lingering *lingering);
/* Keeps a lock that was given back, until this time. */
void linger_keep(struct linger *linger, struct lingering *lingering, int64_t until_us);
void linger_end(struct linger *linger, struct lingering *lingering);

/* How long until the next is up; INT64_MAX. */
int64_t linger_wait(const struct linger *linger);
/* Called in every turn. `ready`: the descriptor polled readable. */
void linger_process(struct linger *linger, bool ready);

void linger_save_load(struct codec *codec, struct linger *linger, struct lingering *lingering);

#endif
