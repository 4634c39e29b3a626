/* SPDX-License-Identifier: MIT
 *
 * evict.h - evictions that were begun, and are to be finished: see evict.c.
 */
#ifndef LOCKCORE_EVICT_H
#define LOCKCORE_EVICT_H

#include "call.h"

struct evictions {
	struct eviction *evictions; /* marked entries, which go in the end */
};

void evictions_finish(struct lc *lc);
/* From one process to the next. 0 or -ENOMEM. */
void evictions_save(struct lc *lc, struct state_writer *writer);
int eviction_restore(struct lc *lc, const struct state_record *saved);

#endif
