/* SPDX-License-Identifier: MIT
 *
 * engine.h - what core.c, take.c and adopt.c do for each other.
 */
#ifndef LOCKCORE_ENGINE_H
#define LOCKCORE_ENGINE_H

#include "session/session.h"

struct lc_taker;

/* take.c: a taker in no lock, with its timers. NULL: no memory. */
struct lc_taker *taker_blank(void);

/* adopt.c: the kinds of the engine's records. */
void adopt_kinds(struct lc *lc);
/* Reads all records. The session is opened, unless the records are only checked. 0, -EPROTO or
 * -ENOMEM; lc_destroy() may follow in either case. */
int adopt_records(struct lc *lc, const struct session_events *events, struct records *records,
                  struct codec *codec);

#endif
