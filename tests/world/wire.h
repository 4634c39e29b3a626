/* SPDX-License-Identifier: MIT
 *
 * wire.h - the port (ensemble.h) on the world, in the place of the ZooKeeper C client.
 *
 * It connects to one server after the other, and holds the greeting of an old session back until
 * a scout, which is a new session, was granted there, or nothing is lost without an answer. It
 * pings when idle for T/3, gives a server up that was silent for 2/3 T, tells the servers its
 * watches again, and answers all outstanding requests of a lost connection with UNKNOWN, whether
 * they were done or not. It never sends a request twice, nor one that came before the connection.
 */
#ifndef WORLD_WIRE_H
#define WORLD_WIRE_H

#include "world.h"

enum wire_state {
	WIRE_CLOSED,   /* open() was not called, or close() was */
	WIRE_RESTING,  /* between two attempts */
	WIRE_HELD,     /* the greeting of an old session is held back */
	WIRE_TOLD,     /* it leaves with the next process() */
	WIRE_GREETING, /* connecting, or the handshake is not answered */
	WIRE_CONNECTED,
	WIRE_ENDED, /* waits for close() */
};

struct pending;

struct wire {
	struct ensemble ensemble; /* first */
	struct world *world;
	struct rng rng;
	int64_t (*clock_us)(void *ctx);
	/* process() has something to do. */
	void (*wake)(void *ctx);
	/* Injected: the client's process is stopped. */
	void (*freeze)(void *ctx, int64_t duration_us);
	/* Evidence for a lease, before the engine is told: a connection, and a write answered OK;
	 * and that a session is about to be renewed. All may be NULL. */
	void (*renews)(void *ctx);
	void (*joined)(void *ctx, int64_t timeout_us, int64_t connect_us);
	void (*wrote)(void *ctx, int64_t sent_us, enum ensemble_kind kind, const char *path);
	/* Injected: the greeting of an old session is on its way. May be NULL. */
	void (*greets)(void *ctx);
	void *ctx;

	enum wire_state state;
	const struct ensemble_events *events;
	void *events_ctx;
	struct conn *conn;
	struct conn *scout; /* HELD */
	int64_t scout_us;   /* none goes before that */
	int64_t session, timeout_us, last_zxid;
	int64_t connect_us, retry_us, heard_us, sent_us;
	int cursor;
	uint64_t conn_count, scout_count;
	bool drop_asked, told_connected;
	bool refused; /* the ensemble has refused the credentials */
	bool inside;  /* in process(): submit() may be called, process() may not */
	struct pending *pending, *doomed, *swallowed;
	struct pending *kept;      /* the first of `pending` that is not sent, or NULL */
	enum ensemble_result fate; /* of a request that comes without a connection */
	int64_t serial;
	struct watches data_watches, child_watches;
	char server_name[32];
	bool again;               /* injected: the next connection leads to the same server */
	int64_t dark_until_us;    /* injected: the host has no network; world time */
	int64_t late_greeting_us; /* injected: how long the next handshake takes */
	char *late;               /* MUTATE_late_write */
	int64_t connected_at_us;  /* world time */
	unsigned long write_answers;
	int64_t write_answered_us; /* world time of the last write answered OK */
	bool evidence;             /* the engine is just being told of such an answer */
	bool joining;              /* the engine is just being told of a connection */
	bool proved;               /* there was such an answer on this connection */
};

void wire_init(struct wire *wire, struct world *world, struct rng rng,
               int64_t (*clock_us)(void *ctx), void (*wake)(void *ctx), void *ctx);
void wire_finish(struct wire *wire);
/* A create of an entry is not answered yet. */
bool wire_creates(const struct wire *wire);
/* Nothing passes any more between this host and a server, on no connection, until then. */
void wire_darken(struct wire *wire, int64_t until_us);
/* The time, in the world, until which this client may notice a fault. */
int64_t wire_trouble(const struct wire *wire);

#endif
