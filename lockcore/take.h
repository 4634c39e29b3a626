/* SPDX-License-Identifier: MIT
 *
 * take.h - take.c implements lc_take(), lc_leave() and their neighbours of lockcore.h.
 */
#ifndef LOCKCORE_TAKE_H
#define LOCKCORE_TAKE_H

#include "lock/taker.h"

/* A taker of nothing yet. NULL: no memory. */
struct lc_taker *taker_blank(void);

#endif
