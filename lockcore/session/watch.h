/* SPDX-License-Identifier: MIT
 *
 * watch.h - one watch of a node: a get that leaves it, the event that uses it up, and taking
 * back a watch that nobody needs any more.
 *
 *            watch_ask()          answered OK
 *    [IDLE] ------------> [PENDING] ------> [ARMED]
 *     ^  ^                 |    ^             | |
 *     |  '--not answered---'    | event       | | watch_ask(), since a connection has ended
 *     |       OK                |             | v
 *     |                         '-------- [RENEWING] ---answered----> [ARMED]
 *     '---------- event, dropped, session ended ----------'
 *
 * A watch outlives its connection. But events between two connections come late, so only a watch
 * that was answered on this connection is *good*: it proves that the node was there then, and that
 * nothing has happened to it since.
 */
#ifndef LOCKCORE_WATCH_H
#define LOCKCORE_WATCH_H

#include "session/quota.h"
#include "session/session.h"

struct watches {
	struct unwatch *unwatches; /* by path: those to be taken back */
};

enum watch_state {
	WATCH_IDLE,
	WATCH_PENDING, /* asked for */
	WATCH_ARMED,
	WATCH_RENEWING, /* armed on an earlier connection, and asked for again */
};

struct watch {
	enum watch_state state;
	uint32_t connection; /* ARMED: the connection that answered it */
};

/* A get that leaves the watch is about to be sent. Its answer function calls watch_answered(). */
void watch_begin(struct watch *watch);
/* Sends such a get of `path`. */
void watch_ask(struct lc *lc, struct watch *watch, const char *path, ensemble_answer_fn *answer,
               void *ctx);
void watch_answered(struct lc *lc, struct watch *watch, bool good);
/* The event has come, or the watch is worthless. */
void watch_fired(struct watch *watch);
/* The watch is taken back. */
void watch_drop(struct lc *lc, struct watch *watch, const char *path);

static inline bool watch_is_pending(const struct watch *watch)
{
	return watch->state == WATCH_PENDING || watch->state == WATCH_RENEWING;
}

static inline bool watch_is_armed(const struct watch *watch)
{
	return watch->state == WATCH_ARMED || watch->state == WATCH_RENEWING;
}

/* Armed on this connection. */
bool watch_is_good(const struct lc *lc, const struct watch *watch);

/* Takes back what a get that was answered has left at `path`. */
void watches_give_up(struct lc *lc, const char *path);
/* There is contact again. Call it before anything is watched. */
void watches_resume(struct lc *lc);
/* The session has ended, and its watches with it. */
void watches_clear(struct lc *lc);

#endif
