/* SPDX-License-Identifier: MIT
 *
 * waiters.h - whether a holder has waiters behind it, and when that may have changed: time to
 * yield. waiters.c implements lc_watch_waiters() of lockcore.h.
 */
#ifndef LOCKCORE_WAITERS_H
#define LOCKCORE_WAITERS_H

#include "ask/call.h"

/* Whether somebody waits behind the holder, in a queue of its lock. */
bool waiters_behind(const struct lc_taker *holder, const struct queue *queue);
/* Tells all that are due. */
void waiters_tell(struct lc *lc);

#endif
