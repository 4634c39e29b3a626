/* SPDX-License-Identifier: MIT
 *
 * take.h - several locks at once, one after the other in the order of their names. Since
 * everybody who comes by here does so in that order, no two wait for each other.
 *
 * The lock files of all are opened before any lock is waited for. So a missing lock is reported at
 * once, and not after ten minutes.
 */
#ifndef ZKLOCK_TAKE_H
#define ZKLOCK_TAKE_H

#include "make.h"
#include "mount.h"

#include <stdint.h>

#define STATUS_LOST 74 /* EX_IOERR */

#define TOKEN_MAX 24
#define REASON_MAX 4096
#define TAKE_AHEAD_MAX 1048575u /* zklockfs(5) */

struct lock {
	char *name; /* below the mount */
	int place;  /* on the command line, from 1 */
	int fd;     /* the lock file; close-on-exec */
	bool held;
	bool unmade; /* it was not there, and could not be created */
	char token[TOKEN_MAX];
};

struct take {
	const struct mount *mount;
	struct lock *locks;
	size_t count;
	const char *reason;  /* NULL: none is written */
	const char *command; /* the name that others see */
	int64_t limit_ms;    /* for all together; -1 none */
	int64_t least_ms;    /* the mount keeps them for so long, even if nobody has them open; 0 */
	unsigned ahead;      /* refused where so many wait; 0: not */
	bool shared;
	bool reentrant;
	bool verbose;
	bool quiet;  /* not a word when somebody else has them */
	int failure; /* status then; any number, 0 too */
	struct make make;
};

/* Sorts the locks, and drops those that are named twice. */
void take_sort(struct take *take);
/* Takes all, which are sorted. False: none is held, stderr
 * says why, and that is the status to end with. While it waits, signals do what they did
 * before: by default they end the process, which gives everything back. */
bool take_all(struct take *take, int *ret_status);
/* A question about a lock that is held could not be asked, or not be answered so far, which says
 * nothing of the lock. The question is asked again after a moment, for so long at most. */
#define TAKE_ASK_MS 60000
bool take_is_no_answer(int error);
void take_pause(void);
/* Gives back what is held, also if others have copies of the descriptors. */
void take_release(struct take *take);

#endif
