/* SPDX-License-Identifier: MIT
 *
 * adopt.h - going on in another process: see adopt.c.
 */
#ifndef LOCKCORE_ADOPT_H
#define LOCKCORE_ADOPT_H

#include "session/session.h"

/* The kinds of the engine's records. */
void adopt_kinds(struct lc *lc);
/* The recorded session, not opened yet. 0, -EPROTO or -ENOMEM; session_free() follows in either
 * case. */
int adopt_session(struct lc *lc, const struct session_events *events, struct records *records,
                  struct codec *codec);
/* All the rest; the session is opened, unless the records are only checked. 0, -EPROTO, -ENOMEM. */
int adopt_rest(struct lc *lc, struct records *records, struct codec *codec);

#endif
