/* SPDX-License-Identifier: MIT
 *
 * world.h - a ZooKeeper ensemble in memory, in virtual time.
 *
 *   client ==conn==> server ==link==> leader: proposes, logs, commits
 *          <=======         <=======
 *
 * Every arrow is a FIFO with a delay of its own that can be stalled. A server's
 * tree is a prefix of the one log; reads and watches are served from there, a
 * write is answered when the client's server has applied it. The leader ends
 * sessions: the touch of a follower's client reaches the leader with the next
 * half tick's ping, a forwarded write does not touch, the earliest end is later
 * than touch + T and falls on a tick, an election gives all sessions a full T.
 *
 * The log has two heads: the last proposal (proposing decides the outcome; some
 * of the last proposals may be lost in an election) and the last commit.
 */
#ifndef WORLD_WORLD_H
#define WORLD_WORLD_H

#include "agenda.h"
#include "rng.h"
#include "tree.h"

#define WORLD_SERVERS_MAX 3
#define WORLD_SYNC_TICKS 5 /* syncLimit: a server that is cut off goes on for about so long */

struct world;
struct conn;

struct world_config {
	int servers;
	int64_t tick_us;
	/* The limits of each server for the timeout of a session; 0: 2 ticks, 20 ticks. */
	int64_t timeout_min_us[WORLD_SERVERS_MAX], timeout_max_us[WORLD_SERVERS_MAX];
	/* timeout_max_us of a server that starts again is between these; 0: it stays. */
	int64_t limit_least_us, limit_most_us;
	bool balanced;        /* all servers have one address */
	bool takes_old_mail;  /* a server that stood still reads what clients had sent to it, also
	                       * on connections that they have closed meanwhile */
	int64_t delay_max_us; /* one way between client and server, without a fault */
	int64_t commit_max_us;
	unsigned snap_per_mille;     /* requests after which the connection soon breaks or stalls */
	unsigned lose_touch_ppm;     /* touches that a follower loses on the way to the leader */
	unsigned refuse_session_ppm; /* handshakes in which the credentials are refused */
};

/* A client's request, on its way or done. */
struct request {
	struct ensemble_op *ops;
	int count;
	int64_t serial; /* the client's number of this request */
	struct conn *conn;
	struct request *next;         /* in the server's queue for this connection */
	struct request *waits_behind; /* in the server's backlog */
	uint64_t link_generation;     /* when it came there */
	bool ready;                   /* waits for nothing any more */
	int64_t wait_applied;         /* SYNC: ready when so many are applied; -1: not known yet */
	struct letter *letter;        /* the answer, when ready */
};

enum letter_kind {
	LETTER_ACCEPTED, /* session, timeout_us */
	LETTER_EXPIRED,
	LETTER_REFUSED, /* the credentials are refused */
	LETTER_CLOSED,
	LETTER_ANSWER,
	LETTER_CHANGED,
	LETTER_PONG,
};

/* One packet to a client. */
struct letter {
	enum letter_kind kind;
	int64_t serial, zxid;
	int64_t session, timeout_us;
	enum ensemble_result result;
	const char *path;
	const void *data;
	int data_len;
	const char **paths; /* of the nodes that a transaction has created */
	int path_count;
	const char **names;
	int name_count;
	bool has_stat;
	enum ensemble_change change;
	struct ensemble_stat stat;
	struct letter *next;
};

struct transaction {
	int64_t zxid, wall_ms;
	struct change *changes;
	int count;
	int server; /* its client waits for the answer; -1: none does */
	struct request *request;
	struct conn *newborn; /* createSession: for this one */
	int64_t closes;       /* closeSession: of this one */
	bool behind;          /* a write of a later connection of the session came before it */
	bool outside;         /* made by world_do(): no election loses it */
};

struct session {
	int64_t id;
	int64_t timeout_us; /* as created */
	int64_t expiry_us;
	int64_t alarm_us;     /* session_expires() is called then */
	int owner;            /* server, or -1 */
	uint64_t conn_serial; /* the latest connection of which a write was taken */
	bool closed;
	struct session *next;
};

/* UP: from client to server, or from server to leader. */
enum direction { UP, DOWN };

struct link {
	struct parcel *first, *last;
	int64_t last_arrival_us, stalled_until_us;
};

struct server {
	int index;
	bool down; /* takes no connections, applies nothing */
	bool cut;  /* cut off from the other servers */
	int64_t hung_until_us;
	int64_t backlog_until_us; /* it passes no write on before that */
	struct request *backlog;
	struct tree tree;
	int64_t applied; /* so many transactions of the log */
	struct link link[2];
	uint64_t link_generation;
	struct {
		int64_t session, timeout_us;
	} touches[1024]; /* also of scouts, of daemons that die again and again */
	int touch_count;
};

struct world {
	struct agenda *agenda;
	struct rng rng;
	struct world_config config;
	struct arena arena;
	struct server servers[WORLD_SERVERS_MAX];
	int leader;     /* -1: none */
	uint64_t reign; /* changes whenever a leader is deposed */
	bool electing;
	struct tree proposed, committed;
	struct transaction **log;
	int64_t log_count, log_room, committed_count;
	int64_t last_commit_us;
	int64_t epoch, counter;
	struct session *sessions;
	int64_t session_count;
	struct conn *conns;
	uint64_t conn_count;
	/* Injected: called before the committed tree has the transaction. */
	void (*committing)(void *ctx, const struct transaction *transaction);
	void *committing_ctx;
	/* Injected: called when the leader has carried out the renewal of a session. */
	void (*renewed)(void *ctx, const struct conn *conn);
	void *renewed_ctx;
	uint64_t changes; /* counts the changes of both heads of the log */
	unsigned long transactions, transaction_ops; /* of more than two operations, so far */
	unsigned refuse_next;                        /* injected: so many writes are refused */
	enum ensemble_result list_error; /* injected: the error of all listings; OK: none */
	int64_t calm_since_us;           /* last time that the leader failed or was elected */
};

void world_init(struct world *world, struct agenda *agenda, struct rng rng,
                const struct world_config *config);
void world_finish(struct world *world);
int64_t world_wall_ms(const struct world *world);

#define OP(...) (&(struct ensemble_op){__VA_ARGS__})

/* A write from outside, made at the leader: by a foreign client or an operator. */
enum ensemble_result world_do(struct world *world, int64_t session, const struct ensemble_op *ops,
                              int count, const char **ret_path);
/* A session that needs no touches. Bits of its id tell it from the mounts' sessions;
 * WORLD_FORGES: its client chooses the names of its nodes as it likes. */
#define WORLD_FOREIGN (INT64_C(1) << 61)
#define WORLD_FORGES (INT64_C(1) << 60)
/* `bits`: more of its id. */
int64_t world_foreign_session(struct world *world, int64_t bits);
/* A session that lasts, with the id that the next session of a mount would get. */
int64_t world_twin_session(struct world *world);
void world_close_session(struct world *world, int64_t id);
bool world_session_alive(const struct world *world, int64_t id);
/* Before the run: the number of the next sequential child of this node. */
void world_set_counter(struct world *world, const char *path, int32_t counter);

/* ---- faults ---- */

void world_hang(struct world *world, int server, int64_t duration_us);
/* Writes wait in this server's queue for so long, while it reads and passes on greetings. */
void world_backlog(struct world *world, int server, int64_t duration_us);
void world_crash(struct world *world, int server, int64_t duration_us);
void world_cut(struct world *world, int server, int64_t duration_us);
void world_stall_link(struct world *world, int server, enum direction direction,
                      int64_t duration_us);
void world_elect(struct world *world);
/* The time until which clients of this server may notice a fault; a past one: there is none. */
int64_t world_trouble(const struct world *world, int server);

/* ---- connections (conn.c) ---- */

typedef void conn_arrived_fn(void *ctx);

/* Watches of one kind: of nodes' data, or of their children's names. */
struct watches {
	const char **paths;
	int count, room;
};

struct conn {
	struct world *world;
	uint64_t serial;
	int server;
	int64_t session, timeout_us;
	int64_t last_zxid; /* of the client, at the handshake */
	bool open_here;    /* as the client sees it */
	bool open_there;   /* as the server sees it */
	bool accepted;
	bool broken; /* the client gets nothing more than the close */
	struct conn_queue {
		struct parcel *first, *last;
		int64_t last_arrival_us, stalled_until_us;
	} way[2];
	int deliver_left; /* after conn_abandon(): so many more packets arrive; -1: all */
	struct request *first, *last; /* at the server */
	struct watches data_watches, child_watches;
	struct letter *inbox, *inbox_last;
	conn_arrived_fn *arrived;
	void *ctx;
	struct conn *next;
};

/* Session 0: a new one. */
struct conn *conn_open(struct world *world, int server, int64_t session, int64_t timeout_us,
                       int64_t last_zxid, conn_arrived_fn *arrived, void *ctx);
/* The ops are copied. */
void conn_request(struct conn *conn, const struct ensemble_op *ops, int count, int64_t serial);
void conn_ping(struct conn *conn);
void conn_set_watches(struct conn *conn, const struct watches *data, const struct watches *child,
                      int64_t zxid);
/* The next packet that has arrived, or NULL. */
struct letter *conn_receive(struct conn *conn);
/* The client gives up. The first `deliver` packets under way to the server arrive; -1: all. */
void conn_abandon(struct conn *conn, int deliver);
/* The packets under way to the client are lost, and the client gets a close. */
void conn_break(struct conn *conn, int deliver_up);
void conn_stall(struct conn *conn, enum direction direction, int64_t until_us);
int conn_under_way(const struct conn *conn, enum direction direction);

enum parcel_kind {
	/* client to server */
	PARCEL_HELLO,
	PARCEL_REQUEST,
	PARCEL_PING,
	PARCEL_WATCHES,
	/* server to client */
	PARCEL_LETTER,
	/* server to leader */
	PARCEL_FORWARD,
	PARCEL_VALIDATE,
	PARCEL_TOUCHES,
	/* leader to server */
	PARCEL_COMMIT,
	PARCEL_TICK,
	PARCEL_VALIDATED,
	PARCEL_SYNCED,
};

struct parcel {
	enum parcel_kind kind;
	struct conn *conn;
	struct request *request;
	struct letter *letter;
	struct watches data_watches, child_watches;
	int64_t zxid;
	int64_t applied; /* COMMIT, SYNCED */
	bool valid;
	struct {
		int64_t session, timeout_us;
	} * touches;
	int touch_count;
	struct parcel *next;
};

#endif
