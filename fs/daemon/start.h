/* SPDX-License-Identifier: MIT
 *
 * start.h - the way to a session: the engine (lockcore.h) of this daemon with its port, and the
 * loop, which runs until there is a session, or until it is known why not.
 */
#ifndef FS_START_H
#define FS_START_H

#include "daemon/loop.h"

struct lc_config engine_config(const struct options *options, struct loop *loop);
int engine_port(const struct options *options, const char *addresses,
                struct ensemble **ret_ensemble);
/* `codec`: for the records of another engine; NULL: there are none. 0 or -errno, which is said. */
int engine_begin(const struct options *options, struct loop *loop, struct codec *codec);

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
