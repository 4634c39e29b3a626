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
/* Whether this is the record of a hold that waits: it has no descriptor. */
bool hold_record_waits(struct record *record);
/* Called when all holds are loaded: those that refer to others find them. */
void holds_loaded(struct codec *codec, struct frontend *front);

/* The mount has another guardian, or none: it is told of all who hold, and of all open files of
 * `flock`. A process that it has no room for is not stopped, and the log says so. */
void holds_guard(struct frontend *front);

#endif
