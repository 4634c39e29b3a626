/* SPDX-License-Identifier: MIT
 *
 * zookeeper_port.h - what the files of the port over libzookeeper_st share; no other file includes
 * this. The client's pitfalls: see the head of ensemble_zookeeper.c.
 *
 *   zookeeper_answer.c     each request is answered once, in order, and never from inside
 *   zookeeper_request.c    requests, as the client wants and answers them
 *   zookeeper_renewal.c    the request that takes the session to a server leaves in time
 *   ensemble_zookeeper.c   the session, and a turn of the loop
 */
#ifndef LOCKCORE_ZOOKEEPER_PORT_H
#define LOCKCORE_ZOOKEEPER_PORT_H

#include "port/ensemble.h"
#include "port/scout.h"

#include <netdb.h>
#include <utlist.h>
#include <zookeeper/zookeeper.h>

/* Answers that are owed for requests for which there was no memory. All that an engine can
 * ask for in one turn has room; pages that were never needed are no memory. */
#define RESERVE 32768

/* Events that came where no callback may run. */
struct later {
	struct later *prev, *next;
	struct zookeeper_request
		*request;           /* it belongs to; NULL: disconnected, or of the reserve */
	ensemble_answer_fn *answer; /* NULL: disconnected() */
	void *ctx;
	enum ensemble_result result;
};

/* In one piece of memory, with all that it points to. */
struct zookeeper_request {
	struct zookeeper *zk;
	ensemble_answer_fn *answer; /* NULL: answered already */
	void *ctx;
	struct zookeeper_request *prev, *next; /* not answered; or in `rejected` */
	bool rejected;                         /* by the client, which may still call back */
	enum ensemble_result refused;          /* by the client, for good; OK: it is not */
	bool in_later;                         /* its answer waits in `later` */
	bool over; /* the client does not have it: not yet, or it has said its last word on it */
	struct later later;
	int64_t sent_us;
	/* The parts of a transaction, as the client wants them. */
	zoo_op_t *parts;
	zoo_op_result_t *results;
	const char **paths; /* of its creates, when it is answered */
	int count;
	struct ensemble_op ops[];
};

/* REFUSED: no server will ever take this client. */
enum ending { END_NONE, END_OVER, END_REFUSED };

/* Who we are to the ensemble. */
struct zookeeper_user {
	const char *digest; /* "user:password", or NULL */
	char *id;           /* of that user, as ACLs have it */
	struct ACL mine;
	struct ACL_vector acl; /* of all nodes that are made */
};

/* zookeeper_answer.c: where there was no memory. */
struct zookeeper_reserve {
	unsigned used, owed;
	struct later later[RESERVE];
};

/* zookeeper_renewal.c */
enum renewal_state { RENEWAL_NONE, RENEWAL_HELD, RENEWAL_SCOUTED, RENEWAL_TOLD };

struct renewal {
	enum renewal_state state;
	struct scout scout;
	int64_t scout_us;   /* no scout is sent before that time */
	int64_t refused_us; /* scouts are turned away since; 0: the last one was not */
	int64_t connect_us; /* the clock before the connection was begun, or the renewal left */
};

struct zookeeper {
	struct ensemble base;
	struct zookeeper_user user;
	char *servers; /* as the client wants them */
	bool moved;    /*   but it does not have them yet */
	int64_t (*clock_us)(void *ctx);
	void *clock_ctx;
	zhandle_t *handle;
	watcher_fn watcher; /* the one for all */
	const struct ensemble_events *events;
	void *ctx;
	struct zookeeper_request *requests, *kept, *rejected; /* kept: the first that is not sent */
	enum ensemble_result fate; /* of a request that comes without a connection */
	struct later *later;
	struct later disconnected; /* one at a time: connected() comes in between */
	bool in_process;           /* answers are given there alone */
	bool connected;            /* as told by connected() and disconnected() */
	enum ending end;           /* of the session: to be told when the client has returned */
	bool cut;                  /* the connection is given up: the client has to notice */
	const char *given_up;      /* what the server did to deserve that; NULL: nothing */
	bool dropped;              /* by drop(): the client has not noticed yet */
	int fd;                    /* of this turn's poll(2), or -1 */
	bool nudging;              /* a nudge is outstanding */
	int64_t nudged_us;
	bool check; /* interest failed: let process() find out why */
	struct renewal renewal;
	char server[NI_MAXHOST + NI_MAXSERV];
	struct zookeeper_reserve reserve;
};

/* ---- zookeeper_answer.c ---- */

/* The session has ended: a refusal is remembered. */
void answer_note_end(struct zookeeper *zk, enum ending end);

/* The request is answered as soon as callbacks may run. */
void answer_later(struct zookeeper_request *request, enum ensemble_result result);
/* The same where there was no memory for a request. */
void answer_later_bare(struct zookeeper *zk, ensemble_answer_fn *answer, void *ctx);
/* Gives the answers that were deferred, and those that are asked for meanwhile. */
void answer_run_later(struct zookeeper *zk);
/* Whether a callback may run right here; what was deferred goes first then. */
bool answer_may_call(struct zookeeper *zk);
/* The client has said its last word on it, which is the answer unless it has one. */
void answer_finish(struct zookeeper_request *request, const struct ensemble_answer *answer);
void answer_end(struct zookeeper_request *request);
/* Requests that the client has refused for good are answered when all before them are. */
void answer_refused(struct zookeeper *zk);
/* All that is outstanding, kept or sent, as soon as callbacks may run; the client may still call
 * back for it. */
void answer_all_later(struct zookeeper *zk, enum ensemble_result result);
/* Contact is lost, which is told, and nothing that is outstanding will be answered. */
void answer_lose_connection(struct zookeeper *zk);
/* The state after every call of the client: it may have closed its socket. */
void answer_look(struct zookeeper *zk);
/* Gives the connection up: an answer is owed that will never come in its turn. */
void answer_cut(struct zookeeper *zk);

/* ---- zookeeper_renewal.c ---- */

/* A connection has been begun. */
void renewal_begin(struct zookeeper *zk);
/* Nothing is held back any more. */
void renewal_end(struct zookeeper *zk);
/* Before zookeeper_process(), which is not to be called now if this is true. */
bool renewal_waits(struct zookeeper *zk);
/* A server has closed the connection instead of accepting the session: that is told, unless drop()
 * has closed it. */
void renewal_turned_away(struct zookeeper *zk);
/* What to poll while the request is held back, and for how long at most. */
int64_t renewal_poll(const struct zookeeper *zk, struct pollfd *ret_pollfd);

/* ---- zookeeper_request.c ---- */

/* Members of struct ensemble_port. */
void request_submit(struct ensemble *ensemble, const struct ensemble_op *ops, int count,
                    ensemble_answer_fn *answer, void *ctx);
void request_flush(struct ensemble *ensemble);

#endif
