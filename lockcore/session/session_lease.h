/* SPDX-License-Identifier: MIT
 *
 * session_lease.h - what heartbeat.c and session.c need of the session's state and lease.
 */
#ifndef LOCKCORE_SESSION_LEASE_H
#define LOCKCORE_SESSION_LEASE_H

#include "session/session.h"

/* The only place that changes the state. */
void session_step(struct session *session, enum lc_state state);
/* The session can never be used again. `why`: -errno. */
void session_cannot_be_used(struct lc *lc, int why);
/* Tells the caller of lc_create() until when holds are good. In doubt it tells when they would
 * end without the doubt. */
void session_tell_deadline(struct lc *lc);
/* In a rest: the mount has no entry, so nothing is lost. */
void session_end_lease(struct lc *lc);
/* The timer of the lease's deadline. */
void session_limit(void *ctx);
/* How long to wait for an answer that does not come. */
int64_t session_answer_timeout(struct lc *lc, int64_t otherwise_us);
/* False: the session is too short for a lease, and can never be used again. A connection that
 * may lead to another ensemble is not judged before a heartbeat has proved where it leads. */
bool session_long_enough(struct lc *lc);
void session_report_short(const struct lc_config *config, int64_t timeout_us, int64_t tick_us);
/* Reports a length that differs from the one asked for, once for each length. Users may rely on
 * what they asked for. */
void session_granted(struct lc *lc);
void session_report_ticks(struct lc *lc);

#endif
