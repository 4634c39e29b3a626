/* SPDX-License-Identifier: MIT
 *
 * hold_carry.h - what is recorded of a hold and of its claims, and how another process makes them
 * anew from that.
 */
#ifndef FS_HOLD_CARRY_H
#define FS_HOLD_CARRY_H

#include "hold/hold.h"

/* A hold that waits does so until its request is served again: hold_resume(). */
void hold_stored_carry(struct carry *carry, struct frontend *front, struct stored *stored);
/* Then its record has no descriptor. */
bool hold_stored_waits(struct stored *stored);
/* All are read: those that need others find them. */
void holds_carried(struct carry *carry, struct frontend *front);

#endif
