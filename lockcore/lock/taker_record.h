/* SPDX-License-Identifier: MIT
 *
 * taker_record.h - what is recorded of a taker and its entry, and how another process makes them
 * from that: as when a connection was lost. A grant that the frontend was not told of did not
 * happen.
 */
#ifndef LOCKCORE_TAKER_RECORD_H
#define LOCKCORE_TAKER_RECORD_H

#include "lock/taker.h"

void taker_write(struct codec *codec, struct lc_taker *taker);
/* Into a blank taker. False: it cannot be, which codec->bad says, or there is no memory; it is
 * still the caller's. The caller sets its callbacks. */
bool taker_read(struct codec *codec, struct lc *lc, struct lc_taker *taker);

#endif
