/* SPDX-License-Identifier: MIT
 *
 * admission.h - what a listing of a lock means to its takers here: which of them are refused,
 * which may hold, and what the first of the others waits for.
 */
#ifndef LOCKCORE_ADMISSION_H
#define LOCKCORE_ADMISSION_H

#include "pure/queue.h"
#include "lock/taker.h"

/* `queue` is in its true order, and was judged. */
void admit(struct lock *lock, struct queue *queue);

#endif
