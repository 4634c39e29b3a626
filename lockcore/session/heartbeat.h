/* SPDX-License-Identifier: MIT
 *
 * heartbeat.h - what session.c needs of the heartbeats; what others need is in session.h.
 */
#ifndef LOCKCORE_HEARTBEAT_H
#define LOCKCORE_HEARTBEAT_H

#include "session/session_lease.h"

/* The timer: the next heartbeat is due, or the answer of the last one is overdue. */
void heartbeat_timer(void *ctx);
/* Tells where the connection leads, for home_begin(). Nothing is made in the session before that is
 * known. */
void heartbeat_home(struct lc *lc, enum home_answer answer, int err);
/* The letters were read on this connection, or need not be: a heartbeat was answered. */
void heartbeat_go_on(struct lc *lc);
/* Gives the connection up, by a timer: the port cannot be closed from inside its callbacks. */
void heartbeat_retreat(struct lc *lc, enum session_retreat how);

#endif
