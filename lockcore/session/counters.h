/* SPDX-License-Identifier: MIT
 *
 * counters.h - what has happened so far: numbers that only rise, for measuring (lc_counters).
 * Nothing in the engine depends on them.
 */
#ifndef LOCKCORE_COUNTERS_H
#define LOCKCORE_COUNTERS_H

#include "session/base.h"

/* A taker that asked at that time was told that it holds. */
void count_grant(struct lc *lc, int64_t asked_us);
/* A taker was told that error. */
void count_failure(struct lc *lc, int error);

/* The next process goes on with each of them. */
void counters_save_load(struct codec *codec, struct lc_counters *counters);

#endif
