/* SPDX-License-Identifier: MIT
 *
 * tell.h - telling the face what its takers have got, or lost.
 */
#ifndef LOCKCORE_TELL_H
#define LOCKCORE_TELL_H

#include "taker.h"

/* Tells all that are due. A grant is reported to the face only while the lease is valid. */
void takers_tell(struct lc *lc);

#endif
