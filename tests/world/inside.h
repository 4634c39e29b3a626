/* SPDX-License-Identifier: MIT
 *
 * inside.h - functions that only the files of the world use.
 *
 *   world     the log; the leader's work on a write
 *   sessions  touches and ends
 *   link      packets between a server and the leader
 *   quorum    elections, and failures of servers
 *   conn      packets between a client and a server
 */
#ifndef WORLD_INSIDE_H
#define WORLD_INSIDE_H

#include "world.h"

static inline int64_t world_now_us(const struct world *world)
{
	return world->agenda->now_us;
}

/* ---- world.c ---- */

struct transaction *log_transaction(struct world *world);
void log_propose(struct world *world, struct transaction *transaction);
void log_commit(struct world *world, int64_t upto);
void log_apply(struct world *world, struct server *server, int64_t upto);
/* Proposals were taken back: builds the proposed tree again. */
void log_rebuild(struct world *world);
void leader_request(struct world *world, struct request *request);
void world_forward(struct world *world, struct request *request);

/* ---- sessions.c ---- */

struct session *world_session(const struct world *world, int64_t id);
struct session *world_session_begin(struct world *world, int64_t timeout_us);
void world_session_touch(struct world *world, struct session *session, int64_t timeout_us);
void log_propose_close(struct world *world, struct session *session);
void session_expires(void *ctx, uint64_t id);
void session_set_alarm(struct world *world, struct session *session, int64_t when_us);
void leader_validate(struct world *world, struct conn *conn);
void leader_ticks(void *ctx, uint64_t reign);
void send_touches(struct world *world, struct server *server);
void world_validate(struct world *world, struct conn *conn);
void world_touch(struct world *world, struct conn *conn);

/* ---- link.c ---- */

struct parcel *parcel_new(struct world *world);
void link_send(struct world *world, int index, enum direction direction, struct parcel *parcel);
void link_reset(struct server *server);

/* ---- quorum.c ---- */

void lead(void *ctx, uint64_t reign);

/* ---- conn.c ---- */

void conn_close_there(struct conn *conn);
void conn_applied(struct world *world, int server, const struct transaction *transaction);
void conn_pump(struct conn *conn);
void conn_validated(struct conn *conn, bool valid);
void conn_send(struct conn *conn, struct letter *letter);

#endif
