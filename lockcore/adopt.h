/* SPDX-License-Identifier: MIT
 *
 * adopt.h - going on in another process: see adopt.c.
 */
#ifndef LOCKCORE_ADOPT_H
#define LOCKCORE_ADOPT_H

#include "session/session.h"

/* The session of the state, not opened yet. `state` was checked. 0, -EINVAL or -ENOMEM;
 * session_free() follows in either case. */
int adopt_session(struct lc *lc, const struct session_events *events, const void *state,
                  size_t len);
/* All the rest. 0 or -ENOMEM. */
int adopt_rest(struct lc *lc, const void *state, size_t len);

#endif
