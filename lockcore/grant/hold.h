/* SPDX-License-Identifier: MIT
 *
 * hold.h - hold.c implements lc_holds(), lc_token(), lc_znode() and lc_set_reason() of
 * lockcore.h.
 */
#ifndef LOCKCORE_HOLD_H
#define LOCKCORE_HOLD_H

#include "lock/taker.h"

/* Holds now, by the clock, and its entry is there as far as is known. */
bool taker_has_lock(struct lc_taker *taker);

#endif
