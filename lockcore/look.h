/* SPDX-License-Identifier: MIT
 *
 * look.h - what a listing tells of an entry. look.c implements lc_stat(), lc_value() and
 * lc_list() of lockcore.h.
 */
#ifndef LOCKCORE_LOOK_H
#define LOCKCORE_LOOK_H

#include "call.h"

void look_fill_entry(const struct queue *queue, size_t i, struct lc_entry *ret_entry);

#endif
