/* SPDX-License-Identifier: MIT
 *
 * ensemble_zookeeper.h - the port, implemented with the single-threaded ZooKeeper
 * C client.
 */
#ifndef LOCKCORE_ENSEMBLE_ZOOKEEPER_H
#define LOCKCORE_ENSEMBLE_ZOOKEEPER_H

#include "port/ensemble.h"

/* `servers`: "1.2.3.4:2181,[2001:db8::1]:2181", numeric only: the client would
 * resolve names in every turn of the loop, and for ever while disconnected.
 * `digest`: "user:password", which stays the caller's and has to stay there, or NULL. With
 * it, all nodes are made for this user alone; otherwise for everybody.
 * `clock_us` as in struct lc_config. 0 or -errno. */
int ensemble_zookeeper_create(const char *servers, const char *digest,
                              int64_t (*clock_us)(void *ctx), void *ctx,
                              struct ensemble **ret_ensemble);
/* The servers are elsewhere: the next connection goes there, in the same session. One that is good
 * is kept, also to a server that is not in the list any more. Not from a callback. 0 or -ENOMEM. */
int ensemble_zookeeper_move(struct ensemble *ensemble, const char *servers);
/* After close(). */
void ensemble_zookeeper_destroy(struct ensemble *ensemble);

#endif
