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
/* From one process to the next. The texts stay the eviction's. */
struct state_record eviction_save(const struct saved *saved);
/* The first one for NULL; NULL after the last. */
struct saved *eviction_next(const struct lc *lc, const struct saved *before);
/* 0 or -ENOMEM. */
int eviction_restore(struct lc *lc, const struct state_record *saved);

#endif
