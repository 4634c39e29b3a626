/* SPDX-License-Identifier: MIT
 *
 * make.h - a lock that is created when it is asked for, as `mkdir -p -m` would do it.
 */
#ifndef ZKLOCK_MAKE_H
#define ZKLOCK_MAKE_H

#include "mount.h"

#include <stdbool.h>

#define MAKE_SLOTS_MAX 10000u /* zklockfs(5) */
#define MAKE_SLOTS_MS 10000   /* whoever has created a lock has written its slots by then */

struct make {
	bool wanted;
	int mode;       /* of the lock itself, 0 to 0777; -1: 0777 without the umask */
	unsigned slots; /* 0: whatever the lock has */
};

/* Creates the lock, and each directory above it that is missing. 0 if it is there now, also when
 * somebody else has created it; -errno. ENOENT: somebody has removed a part of it meanwhile. */
int make_lock(const struct mount *mount, const char *lock, const struct make *make);
/* Waits for the slots of a lock that another process has just created. 0, -errno, or -EDOM: the
 * lock has another number of slots. */
int make_await_slots(const struct mount *mount, const char *lock, const struct make *make);
/* Why make_lock() has failed, for people. NULL: as for any other call. */
const char *make_explain(int error);

#endif
