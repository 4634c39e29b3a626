/* SPDX-License-Identifier: MIT
 *
 * adopt.h - going on in another process: see adopt.c.
 */
#ifndef LOCKCORE_ADOPT_H
#define LOCKCORE_ADOPT_H

#include "session/session.h"

/* The kinds of the engine's records. */
void adopt_kinds(struct lc *lc);
/* Reads all records. The session is opened, unless the records are only checked. 0, -EPROTO or
 * -ENOMEM; lc_destroy() may follow in either case. */
int adopt_records(struct lc *lc, const struct session_events *events, struct records *records,
                  struct codec *codec);

#endif
