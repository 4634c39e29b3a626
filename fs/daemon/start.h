/* SPDX-License-Identifier: MIT
 *
 * start.h - the way to a session: the loop runs until there is one, or until it is known why not.
 */
#ifndef FS_START_H
#define FS_START_H

#include "daemon/loop.h"

/* Runs until the servers have addresses. 0; -EADDRNOTAVAIL: no server has one, and the time to
 * retry is over, of which a check has none; -ETIMEDOUT; -EINTR: told to leave. It is said why. */
int start_find(struct loop *loop, int64_t until_us);
/* Runs until the session is ready. 0; -ETIMEDOUT; -EINTR; or why the engine is unusable:
 * lc_status(). */
int start_connect(struct loop *loop, int64_t until_us);
/* Then: runs until the server in use has said what settings it has, or the time is over. Returns as
 * start_connect(). */
int start_learn(struct loop *loop, int64_t until_us);
/* Runs until it is known what the servers do instead of giving a session. */
void start_try(struct loop *loop);

#endif
