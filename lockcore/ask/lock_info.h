/* SPDX-License-Identifier: MIT
 *
 * lock_info.h - what a listing tells of an entry. lock_info.c implements lc_stat(), lc_recall(),
 * lc_value(), lc_list() and lc_has_waiters() of lockcore.h.
 */
#ifndef LOCKCORE_LOCK_INFO_H
#define LOCKCORE_LOCK_INFO_H

#include "ask/call.h"

void lock_info_fill_entry(const struct queue *queue, size_t i, struct lc_entry *ret_entry);

#endif
