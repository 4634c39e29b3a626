/* SPDX-License-Identifier: MIT
 *
 * order.h - the order of a queue where the numbers give none. From 2^31 on a server repeats
 * them (NAME_NUMBER_ZONE): the czxid of every entry is read, and orders them. This costs one
 * request for each entry, and is done only there.
 */
#ifndef LOCKCORE_ORDER_H
#define LOCKCORE_ORDER_H

#include "pure/queue.h"
#include "lock/taker.h"

/* Gets the queue in its true order. The queue is valid during the call. */
typedef void order_fn(struct lock *lock, struct queue *queue);
/* `done` is called later, if at all: where the order cannot be found, the lock is listed again. */
void order_find(struct lock *lock, const struct queue *queue, order_fn *done);

#endif
