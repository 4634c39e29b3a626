/* SPDX-License-Identifier: MIT
 *
 * listing.h - listings of locks: when one is sent, and how its answer is matched with the
 * takers here; and what the session's news and the events of watches mean to the locks.
 */
#ifndef LOCKCORE_LISTING_H
#define LOCKCORE_LISTING_H

#include "lock/taker.h"

/* Sends the creates and deletes of this turn, and the listings that are wanted. */
void locks_flush(struct lc *lc);
/* The session is ready again: watches and lists anew what is in use. */
void locks_resume(struct lc *lc);
/* The lease was extended: grants that waited for that are decided again. */
void locks_fresh(struct lc *lc);
void locks_session_ended(struct lc *lc);
/* A watched node has changed. */
void locks_changed(struct lc *lc, const char *path, enum ensemble_change change);

#endif
