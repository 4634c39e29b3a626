/* SPDX-License-Identifier: MIT
 *
 * lock_info.h - what the data of a lock tells, and a listing of an entry. lock_info.c implements
 * lc_stat(), lc_value() and lc_list() of lockcore.h.
 */
#ifndef LOCKCORE_LOCK_INFO_H
#define LOCKCORE_LOCK_INFO_H

#include "ask/call.h"

/* What a lock's data says, and its Stat. */
void lock_info_read_data(struct lc_lock_info *info, const char *data, size_t len);
void lock_info_read_stat(struct lc_lock_info *info, const struct ensemble_stat *stat);
void lock_info_fill_entry(const struct queue *queue, size_t i, struct lc_entry *ret_entry);

#endif
