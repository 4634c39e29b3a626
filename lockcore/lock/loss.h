/* SPDX-License-Identifier: MIT
 *
 * loss.h - a taker loses its place, or its lock: its entry was marked, or deleted by others, or
 * went with its lock or with the session; or the lease is over.
 */
#ifndef LOCKCORE_LOSS_H
#define LOCKCORE_LOSS_H

#include "lock/taker.h"

/* The entry went with its lock. */
void loss_of_lock(struct lc_taker *taker);
/* The entry is gone for certain, though a listing may still show its name. A holder has lost
 * the lock now; for the others a listing will draw the consequences. */
void loss_of_node(struct lc_taker *taker);
/* A listing does not show the entry: it is gone, and this mount has not deleted it. */
void loss_by_listing(struct lc_taker *taker);
/* An evictor has marked the entry. */
void loss_by_mark(struct lc_taker *taker, const char *by);
/* Letters are there: reads the entries that they name, or all entries. */
void loss_by_letters(struct lc *lc, const void *letters, size_t len, bool all);
/* The taker has held for as long as it may. */
void loss_by_limit(struct lc_taker *taker);
void loss_of_session(struct lc_taker *taker);
/* The lease is over: all holders lose their locks. */
void loss_of_lease(struct lc *lc);
/* The session lives, so the takers that are missing were evicted. */
void loss_of_missing(struct lc *lc);

#endif
