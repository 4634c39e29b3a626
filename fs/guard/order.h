/* SPDX-License-Identifier: MIT
 *
 * order.h - the order in which processes are scanned: first the descendants of losers, since these
 * most probably have a lost lock file open; and among these, as among all others, one process of
 * each user in turn, so that no user waits for all the processes of another. Pure.
 */
#ifndef FS_ORDER_H
#define FS_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum order_kin { ORDER_OPEN, ORDER_NO_KIN, ORDER_KIN };

/* A process, as it was when it was looked at. */
struct order_process {
	pid_t pid, parent; /* parent 0: not known, and neither is uid */
	uid_t uid;
	enum order_kin kin; /* zeroed, before order_find_kin() */
	uint32_t turn;      /* of its user; zeroed, before order_sort() */
};

/* Marks the processes that descend from one of `of`. `processes` and `of` are sorted by pid. */
void order_find_kin(struct order_process *processes, size_t count, const pid_t *of,
                    size_t of_count);
/* NULL: there is none of that number. `processes` is sorted by pid. */
const struct order_process *order_process_of(const struct order_process *processes, size_t count,
                                             pid_t pid);
/* By kin and turn. */
void order_sort(struct order_process *processes, size_t count);

#endif
