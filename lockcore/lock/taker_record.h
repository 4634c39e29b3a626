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
/* Reads a record into a blank taker, whose callbacks the caller sets. False: the record does not
 * fit, or there is no memory, and the codec says which; the taker is still the caller's. A record
 * that fits, and that no taker can have, fails an assertion. */
bool taker_read(struct codec *codec, struct lc *lc, struct lc_taker *taker);

#endif
