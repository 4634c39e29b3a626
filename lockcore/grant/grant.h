/* SPDX-License-Identifier: MIT
 *
 * grant.h - what the files of this room do for each other, and for ask/ and core.c: README.md.
 */
#ifndef LOCKCORE_GRANT_H
#define LOCKCORE_GRANT_H

#include "lock/taker.h"
#include "pure/queue.h"

/* ---- decide.c: who holds, who is refused, and what is asked next ---- */

/* Decides once for each lock that was touched, as pure/next.h says. The session is ready. */
void decide_touched(struct lc *lc);
/* Gives back the memory of the slate. */
void decide_finish(struct lc *lc);

/* ---- listing.c: when a lock is listed; what answers, events and the session's news mean ---- */

/* Sends the creates and deletes of this turn, and the listings that are wanted. */
void locks_flush(struct lc *lc);
/* The session is ready again: watches and lists anew what is in use. */
void locks_resume(struct lc *lc);
/* The lease was extended: grants that waited for that are decided again. */
void locks_fresh(struct lc *lc);
void locks_session_ended(struct lc *lc);
/* A watched node has changed. */
void locks_changed(struct lc *lc, const char *path, enum ensemble_change change);

/* ---- order.c: the order of a queue where the numbers give none ---- */

/* From 2^31 on a server repeats numbers (NAME_NUMBER_ZONE): the czxid of every entry is read, and
 * orders them. This costs one request for each entry, and is done only there.
 *
 * order_fn() gets the queue in its true order. The queue is valid during the call. */
typedef void order_fn(struct lock *lock, struct queue *queue);
/* `done` is called later, if at all: where the order cannot be found, the lock is listed again. */
void order_find(struct lock *lock, const struct queue *queue, order_fn *done);

/* ---- reuse.c: an entry that serves several takes of one process, rules 28 and 43 ---- */

/* The process of this request has given the lock back a moment ago. */
bool reuse_is_repeated(const struct lock *lock, const struct lc_request *request);
/* A holder leaves. True: its entry is spare for a moment, and the frontend is done with
 * the taker. */
bool reuse_leave(struct lc_taker *taker);
/* The taker whose spare entry serves this request. NULL: there is none, and an entry that was spare
 * is being deleted. */
struct lc_taker *reuse_take(struct lock *lock, const struct lc_request *request);
/* Another taker wants the lock, or a question is asked about it: the holder's entry will not become
 * spare, and a spare entry is deleted. */
void reuse_end(struct lock *lock);
/* The same for the lock of that path, and the lock in which that path is an entry. */
void reuse_end_at(struct lc *lc, const char *path);

/* ---- tell.c: what the takers have got, or lost ---- */

/* So many results in one turn: a herd of shared takers must not make the turn long. */
#define TOLD_PER_TURN 128

/* Tells the frontend of the takers that are due, in order, and counts them off `*left`. A grant is
 * told only while the lease is valid. */
void takers_tell(struct lc *lc, unsigned *left);

#endif
