/* SPDX-License-Identifier: MIT
 *
 * hold_record.h - what is recorded of a hold and of its claims, and how another process makes them
 * anew from that.
 */
#ifndef FS_HOLD_RECORD_H
#define FS_HOLD_RECORD_H

#include "hold/hold.h"

/* A hold that waits does so until its request is served again: hold_resume(). */
void hold_record_save_load(struct codec *codec, struct frontend *front, struct record *record);
/* Then its record has no descriptor. */
bool hold_record_waits(struct record *record);
/* All are read: those that need others find them. */
void holds_loaded(struct codec *codec, struct frontend *front);

#endif
