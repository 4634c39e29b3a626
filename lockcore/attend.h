/* SPDX-License-Identifier: MIT
 *
 * attend.h - whether somebody waits behind a holder, and when that may have changed: time to
 * yield. attend.c implements lc_waited_for() and lc_attend() of lockcore.h.
 */
#ifndef LOCKCORE_ATTEND_H
#define LOCKCORE_ATTEND_H

#include "call.h"

/* The children of a node have changed. */
void attend_changed(struct lc *lc, const char *path);
/* Tells all that are due. */
void attend_tell(struct lc *lc);

#endif
