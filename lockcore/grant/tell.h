/* SPDX-License-Identifier: MIT
 *
 * tell.h - telling the frontend what its takers have got, or lost.
 */
#ifndef LOCKCORE_TELL_H
#define LOCKCORE_TELL_H

#include "lock/taker.h"

/* So many results in one turn: a herd of shared takers must not make the turn long. */
#define TOLD_PER_TURN 128

/* Tells those that are due, in order, and counts them off `*left`. A grant is reported to the
 * frontend only while the lease is valid. */
void takers_tell(struct lc *lc, unsigned *left);

#endif
