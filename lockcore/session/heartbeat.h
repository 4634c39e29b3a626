/* SPDX-License-Identifier: MIT
 *
 * heartbeat.h - what session.c needs of the heartbeats; what others need is in session.h.
 */
#ifndef LOCKCORE_HEARTBEAT_H
#define LOCKCORE_HEARTBEAT_H

#include "session/session_lease.h"

/* Sends one, unless one is under way. */
void heartbeat_send(struct lc *lc);
/* The timer: the next one is due, or the answer of the last one is overdue. */
void heartbeat_timer(void *ctx);
/* home_begin(): what the connection leads to. Before that is known, nothing is made in a
 * session. */
void heartbeat_home(struct lc *lc, enum home_answer answer, int err);
/* The letters were read on this connection, or need not be: a heartbeat was answered. */
void heartbeat_go_on(struct lc *lc);
/* From a callback of the port, which cannot be closed in there. */
void heartbeat_retreat(struct lc *lc, enum session_retreat how);

#endif
