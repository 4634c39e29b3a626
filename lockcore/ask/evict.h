/* SPDX-License-Identifier: MIT
 *
 * evict.h - evictions that were begun, and are to be finished: see evict.c.
 */
#ifndef LOCKCORE_EVICT_H
#define LOCKCORE_EVICT_H

#include "ask/call.h"

struct evictions {
	struct eviction *evictions; /* marked entries, which go in the end */
};

void evictions_finish(struct lc *lc);
/* Its record. `ctx`: the engine. */
void eviction_save_load(struct codec *codec, void *ctx, struct record *record);

#endif
