/* SPDX-License-Identifier: MIT
 *
 * engine.h - the engine (lockcore.h) of this daemon, and its port.
 */
#ifndef FS_ENGINE_H
#define FS_ENGINE_H

#include "daemon/loop.h"

struct lc_config engine_config(const struct options *options, struct loop *loop);
int engine_port(const struct options *options, const char *addresses,
                struct ensemble **ret_ensemble);
/* `codec`: for the records of another engine; NULL: there are none. 0 or -errno, which is said. */
int engine_begin(const struct options *options, struct loop *loop, struct codec *codec);

#endif
