/* SPDX-License-Identifier: MIT
 *
 * session.h - contact with the ensemble: the session, its heartbeats, its lease. See session.c
 * for its states.
 */
#ifndef LOCKCORE_SESSION_H
#define LOCKCORE_SESSION_H

#include "pure/lease.h"
#include "session/base.h"
#include "session/home.h"

/* Callbacks of the session, to the layers above it. */
struct session_events {
	/* A heartbeat was answered OK. `resumed`: it was the first one on this connection, and
	 * the session is ready again. */
	void (*beaten)(struct lc *lc, bool resumed);
	/* Somebody may have evicted the takers that these letters name, or anybody: `all`. Their
	 * entries are asked for at once, then session_letters_done(). Perhaps the session is not
	 * ready yet: the write that proves the connection comes behind. */
	void (*letters)(struct lc *lc, const void *letters, size_t len, bool all);
	/* A write was answered OK, so the session lives. */
	void (*alive)(struct lc *lc);
	/* A grant may be possible that was not before: the lease was extended while the session is
	 * ready. */
	void (*extended)(struct lc *lc);
	/* The lease is over: nobody holds any more. */
	void (*over)(struct lc *lc);
	/* Contact is lost; unsent requests are not sent any more. */
	void (*disconnected)(struct lc *lc);
	/* The session has ended, and all its ephemeral nodes and watches with it. */
	void (*ended)(struct lc *lc);
	/* The session can never be used again. */
	void (*unusable)(struct lc *lc);
	/* Asks whether no taker has or wants an entry in the session, and no question is under
	 * way. */
	bool (*unused)(const struct lc *lc);
	/* A watched node has changed. */
	void (*changed)(struct lc *lc, const char *path, enum ensemble_change change);
};

/* OPEN: the port has a session for us, and looks for a server. */
enum session_link { LINK_CLOSED, LINK_OPEN, LINK_CONNECTED };
/* The connection is given up. REST: the same session is tried again, after a pause. LEAVE: the
 * session is of no use, and forgotten; a new one begins after a pause, with ANEW at once. */
enum session_retreat { RETREAT_NONE, RETREAT_REST, RETREAT_LEAVE, RETREAT_ANEW };

/* heartbeat.c: the small node of this session's own that the heartbeats write to. */
struct session_node {
	char *path; /* ROOT/.zklockfs/<half> */
	bool made;
	int64_t refused_said_us;
};

/* heartbeat.c */
struct session_beat {
	struct timer timer; /* when the next heartbeat is due, or the last one's answer */
	bool under_way;     /* a heartbeat, or the making of its node */
	int64_t sent_us;
	/* When the last answered heartbeat was done, by the ensemble's wall clock (0: never),
	 * and between which readings of the mount's clock. */
	int64_t clock_ms, clock_from_us, clock_to_us;
	int64_t epoch; /* of the leader that did it */
};

/* mailbox.c */
struct session_mailbox {
	void (*opened)(struct lc *lc); /* all letters are read, or need not be: heartbeat_go_on() */
	char *path;                    /* ROOT/.zklockfs/<half>-pokes */
	bool there;                    /* it was read on this connection, and is watched */
	bool asked;                    /* a request to make or read it is under way */
	bool is_new;     /* not read since it was made: entries may be marked without a letter */
	int32_t version; /* as it was read, */
	size_t len;      /*   with so much in it that is to be removed */
};

/* inquiry.c, after a server has said that the session is over. AGAIN: another server is to be
 * asked. LIVES, OVER: the answer. */
enum inquiry { INQUIRY_NONE, INQUIRY_ASKS, INQUIRY_AGAIN, INQUIRY_LIVES, INQUIRY_OVER };

struct session {
	const struct session_events *events;
	enum lc_state state;
	int why; /* UNUSABLE: -errno */
	enum session_link link;
	bool busy; /* somebody holds or waits: the pace of the heartbeats */
	/* READY: the mount is not used, and no heartbeats are written. Else it is used again, and
	 * the session is proved anew. */
	bool resting;
	int64_t used_us; /* the last take or question, or end of a hold or wait */
	int64_t id;
	char password[ENSEMBLE_PASSWORD];
	uint64_t half; /* 64 random bits: they mark the entries of this session */
	struct lease lease;
	struct session_node node;
	struct session_beat beat;
	struct session_mailbox mailbox;
	int64_t granted_us; /* T, kept beyond the session's end */
	int64_t limit_us;   /* the least that a server is known to grant at most */
	int64_t away_us;    /* not ready: since when */
	enum session_retreat retreat;
	enum inquiry inquiry;
	int64_t pause_us;  /* of the last retreat; 0: there was contact since */
	int64_t opened_us; /* when the port began to look for a server */
	int64_t fault_said_us;
	struct timer limit; /* the lease's deadline */
	struct timer retry; /* opening failed, or no connection yet */
	unsigned long connections, sessions;
};

/* Opens the session. 0 or -ENOMEM; session_free() follows in either case. */
int session_begin(struct lc *lc, const struct session_events *events);
/* In place of session_begin(): goes on in the session of another process, as after a lost
 * connection. session_reopen() opens it. */
int session_restore(struct lc *lc, const struct session_events *events, struct codec *codec);
void session_reopen(struct lc *lc);
/* The session's part of the record. */
void session_save_load(struct codec *codec, struct lc *lc);
/* Closes the session. ended() is called from inside. */
void session_finish(struct lc *lc, bool end_session);
void session_free(struct lc *lc);

/* The session is ready, and its lease is not in doubt. Questions wait for both: the answers of
 * some depend on whether a taker holds, and in doubt that is not known. */
bool session_may_ask(struct lc *lc);
/* The session is ready, and the lease is good enough for a grant. Otherwise extended() follows. */
bool session_may_grant(struct lc *lc);
/* Sends the write that proves the connection. */
void session_prove(struct lc *lc);
/* Reads the mailbox, unless this connection watches it already, and makes it where it is
 * missing. A heartbeat was answered before. A session that is not ready becomes ready after
 * that. */
void session_read_mailbox(struct lc *lc);
/* The entries of all letters were read, on this connection. */
void session_letters_done(struct lc *lc);
/* The lease has not ended. It may be in doubt. */
bool session_lease_is_valid(struct lc *lc);
/* Sends a heartbeat, unless one is under way: alive() follows, or the session's end. */
void heartbeat_send(struct lc *lc);
/* A write that was sent at that time was answered OK. */
void session_wrote(struct lc *lc, int64_t sent_us);
/* A user is about to take or to ask. A session that rests is proved anew. */
void session_use(struct lc *lc);
/* Tells the session whether anybody holds or waits. */
void session_set_busy(struct lc *lc, bool busy);
/* The heartbeats' node is gone. It is made again at once. */
void session_node_lost(struct lc *lc);

#endif
