/* SPDX-License-Identifier: MIT
 *
 * ensemble.h - the port: everything the engine wants of a ZooKeeper ensemble.
 *
 * One session at a time, one thread, no waiting: a submitted operation is
 * answered later, from process(). ensemble_zookeeper.c implements the port
 * with the ZooKeeper C client; the tests implement it in memory, with every
 * fault a network and a server can have.
 *
 *   submit() ──► kept ──flush()──► sent ──process()──► answered
 *                  `──────── the connection ends ────────^
 *
 * What an implementation promises:
 *  - every submit() is answered exactly once, never from inside submit() or flush();
 *  - nothing leaves before flush(): the caller records the turn first. If the
 *    process dies before that, no request of the turn was sent;
 *  - the answers of one connection come in the order of submission, and what
 *    they report happened in that order (ZooKeeper's FIFO client order);
 *  - a change event of a watched node comes before any answer that already
 *    shows the change;
 *  - when a connection ends, all that is outstanding, kept or sent, is answered
 *    UNKNOWN after disconnected() and before the next connected(), and nothing
 *    of it is ever sent. So is a request that comes while there is no
 *    connection; where there is no session it is answered GONE. A watch outlives
 *    the connection and dies with the session;
 *  - no path or data handed to a callback is valid after it returns.
 */
#ifndef LOCKCORE_ENSEMBLE_H
#define LOCKCORE_ENSEMBLE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Operations per transaction, and bytes of their paths and data together. */
#define ENSEMBLE_OPS_MAX 128
#define ENSEMBLE_BYTES_MAX (64 * 1024)

enum ensemble_result {
	ENSEMBLE_OK,
	ENSEMBLE_NONODE,   /* the node, or the parent of a create, is not there */
	ENSEMBLE_EXISTS,   /* create: the node is there already */
	ENSEMBLE_NOTEMPTY, /* delete: the node has children */
	ENSEMBLE_BADVERSION,
	ENSEMBLE_NOCHILDREN, /* create: the parent is ephemeral */
	ENSEMBLE_NOAUTH,
	ENSEMBLE_INVALID, /* a path or argument ZooKeeper does not take */
	ENSEMBLE_REFUSED, /* any other definite no: a quota, ... */
	ENSEMBLE_UNKNOWN, /* may have happened, may not. A write answered OK on the next
	                   * connection ends this, unless the request lay in a server that
	                   * stood still: it may be done late, while the session lives */
	ENSEMBLE_GONE,    /* the session was left, or there is none */
};

enum ensemble_kind {
	ENSEMBLE_CREATE, /* -> path, stat (stat not in a transaction) */
	ENSEMBLE_DELETE,
	ENSEMBLE_SET,
	ENSEMBLE_CHECK,    /* only in a transaction: the node is there */
	ENSEMBLE_GET,      /* -> data, stat; with watch: one change event.
	                        * NONODE leaves no watch behind */
	ENSEMBLE_CHILDREN, /* -> names, stat; with watch: one change event, as for GET */
	ENSEMBLE_UNWATCH,  /* no watch of GET on this node any more, at the server either; a
	                    * watch of CHILDREN stays */
	ENSEMBLE_SYNC,     /* later reads see all that was written before it */
};

#define ENSEMBLE_ANY_VERSION (-1)

struct ensemble_op {
	enum ensemble_kind kind;
	const char *path;
	const void *data; /* CREATE, SET */
	int data_len;
	int version;    /* DELETE, SET, CHECK; or ENSEMBLE_ANY_VERSION */
	bool ephemeral; /* CREATE */
	bool sequence;  /* CREATE: the server appends %010d */
	bool watch;     /* GET, CHILDREN */
};

/* The common ones. */

static inline struct ensemble_op ensemble_get(const char *path)
{
	return (struct ensemble_op){.kind = ENSEMBLE_GET, .path = path};
}

/* A get that leaves a watch. */
static inline struct ensemble_op ensemble_watch(const char *path)
{
	return (struct ensemble_op){.kind = ENSEMBLE_GET, .path = path, .watch = true};
}

static inline struct ensemble_op ensemble_unwatch(const char *path)
{
	return (struct ensemble_op){.kind = ENSEMBLE_UNWATCH, .path = path};
}

static inline struct ensemble_op ensemble_sync(const char *path)
{
	return (struct ensemble_op){.kind = ENSEMBLE_SYNC, .path = path};
}

static inline struct ensemble_op ensemble_children(const char *path, bool watch)
{
	return (struct ensemble_op){.kind = ENSEMBLE_CHILDREN, .path = path, .watch = watch};
}

static inline struct ensemble_op ensemble_check(const char *path, int version)
{
	return (struct ensemble_op){.kind = ENSEMBLE_CHECK, .path = path, .version = version};
}

static inline struct ensemble_op ensemble_delete(const char *path, int version)
{
	return (struct ensemble_op){.kind = ENSEMBLE_DELETE, .path = path, .version = version};
}

static inline struct ensemble_op ensemble_set(const char *path, const void *data, size_t len,
                                              int version)
{
	return (struct ensemble_op){.kind = ENSEMBLE_SET,
	                            .path = path,
	                            .data = data,
	                            .data_len = (int)len,
	                            .version = version};
}

static inline struct ensemble_op ensemble_create(const char *path, const void *data, size_t len)
{
	return (struct ensemble_op){
		.kind = ENSEMBLE_CREATE, .path = path, .data = data, .data_len = (int)len};
}

static inline struct ensemble_op ensemble_create_ephemeral(const char *path, const void *data,
                                                           size_t len)
{
	struct ensemble_op op = ensemble_create(path, data, len);

	op.ephemeral = true;
	return op;
}

struct ensemble_stat {
	int64_t czxid;
	int64_t mzxid;
	int64_t ctime_ms; /* wall clock of the leader, since 1970 */
	int64_t mtime_ms;
	int64_t ephemeral_owner;
	int32_t version;
	int32_t children;
	int64_t made; /* children, so far: the next number that it gives */
};

struct ensemble_answer {
	enum ensemble_result result;
	const char *path;         /* CREATE */
	const char *const *paths; /* a transaction: of its creates, at their places */
	const void *data;         /* GET */
	int data_len;
	const char *const *names; /* CHILDREN, in no order */
	int name_count;
	const struct ensemble_stat *stat; /* CREATE, GET, CHILDREN, SET; when OK */
	const char *why;                  /* REFUSED: in plain words, or NULL */
};

/* Nobody knows whether it was done. When a connection is lost, disconnected() has come before. */
static inline bool ensemble_unanswered(const struct ensemble_answer *answer)
{
	return answer->result == ENSEMBLE_UNKNOWN || answer->result == ENSEMBLE_GONE;
}

enum ensemble_change {
	ENSEMBLE_DATA,    /* a watch of GET: other data */
	ENSEMBLE_NAMES,   /* a watch of CHILDREN: one more, or one less */
	ENSEMBLE_DELETED, /* both: the node is gone */
};

/* What another process needs to go on in a session. */
#define ENSEMBLE_PASSWORD 16
struct ensemble_session {
	int64_t id;
	char password[ENSEMBLE_PASSWORD];
};

typedef void ensemble_answer_fn(void *ctx, const struct ensemble_answer *answer);

/* Called from process() and never from inside another call of the port. */
struct ensemble_events {
	/* A server has accepted the session, and grants `timeout_us` now. `connect_us`: a clock
	 * reading from before the connection was begun. */
	void (*connected)(void *ctx, const struct ensemble_session *session, int64_t timeout_us,
	                  int64_t connect_us);
	void (*disconnected)(void *ctx);
	/* Asked before a connection takes a session to a server: whether the server has to be
	 * known to answer before that. */
	bool (*needs_scout)(void *ctx);
	/* The session is about to be taken to a server: from the next process() on the server may
	 * renew it, with a timeout of its own choice, which connected() tells. It comes before
	 * each connected() of a session that is not new. Both are NULL where nothing rests on a
	 * lease. */
	void (*renews)(void *ctx);
	/* A server has taken the connection, and closed it instead of accepting the session. NULL:
	 * the next server is tried, whatever that means. */
	void (*turned_away)(void *ctx, const char *server);
	/* A server says that the session is over, or does not accept the credentials (`refused`).
	 * It may be of another ensemble, and the session may live on: what was outstanding is
	 * answered UNKNOWN. The port has closed it. The owner may open() a new one from here, or
	 * later go on in this one. */
	void (*ended)(void *ctx, bool refused);
	/* A watched node was changed; the watch is used up. NULL: nothing is watched. */
	void (*changed)(void *ctx, const char *path, enum ensemble_change change);
};

struct ensemble;

struct ensemble_port {
	/* Begin a session, or go on in one that another process has left: nobody else may be
	 * in it. If it is over, ended() follows, as always. `session`: NULL for a new one. 0 or
	 * -errno; returns at once, connected() follows. */
	int (*open)(struct ensemble *ensemble, int64_t timeout_us,
	            const struct ensemble_session *session, const struct ensemble_events *events,
	            void *ctx);
	/* End it, if there is one; what is outstanding is answered GONE before this returns. Not
	 * from a callback. `end_session`: tell the server, so that the ephemeral nodes go at once
	 * instead of after the session timeout; may block, only for exit. */
	void (*close)(struct ensemble *ensemble, bool end_session);
	/* Without a connection: let the session be, for a while. open() goes on in it, with
	 * a client that has seen nothing. What is asked meanwhile is answered UNKNOWN. */
	void (*rest)(struct ensemble *ensemble);
	/* Give this server up and go to the next one. */
	void (*drop)(struct ensemble *ensemble);
	/* One operation, or several that happen all or not at all. It is kept until flush(). */
	void (*submit)(struct ensemble *ensemble, const struct ensemble_op *ops, int count,
	               ensemble_answer_fn *answer, void *ctx);
	/* Sends all that is kept, in the order of submission. Not from a callback. */
	void (*flush)(struct ensemble *ensemble);
	/* What the caller polls, asked anew before every call of poll(2): fd -1 when
	 * there is no socket; returns how long to wait at most. */
	int64_t (*prepare)(struct ensemble *ensemble, struct pollfd *ret_pollfd);
	void (*process)(struct ensemble *ensemble, short revents);
	/* "host:port" of the server in use, or "-". */
	const char *(*server)(struct ensemble *ensemble);
	/* In disconnected(): what the server does, if it was given up for that; or NULL. */
	const char *(*given_up)(struct ensemble *ensemble);
};

/* An implementation embeds this as its first member. */
struct ensemble {
	const struct ensemble_port *port;
};

#endif
