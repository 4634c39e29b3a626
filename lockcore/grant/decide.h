/* SPDX-License-Identifier: MIT
 *
 * decide.h - who holds, who is refused, and what is asked next: done once for each lock of which
 * anything has changed in a turn. The rules are those of pure/next.h.
 */
#ifndef LOCKCORE_DECIDE_H
#define LOCKCORE_DECIDE_H

#include "lock/taker.h"

/* Decides for all locks that were touched. The session is ready. */
void decide_touched(struct lc *lc);
/* Gives back the memory of the slate. */
void decide_finish(struct lc *lc);

#endif
