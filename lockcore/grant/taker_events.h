/* SPDX-License-Identifier: MIT
 *
 * taker_events.h - what each event of an entry means to its taker. entry.c knows no takers: core.c
 * hands it this table.
 */
#ifndef LOCKCORE_TAKER_EVENTS_H
#define LOCKCORE_TAKER_EVENTS_H

#include "lock/entry.h"

extern const struct entry_events taker_entry_events;

#endif
