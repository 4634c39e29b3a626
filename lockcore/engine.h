/* SPDX-License-Identifier: MIT
 *
 * engine.h - what the engine's files know of each other, and nobody else.
 *
 *   core     the object, what is due, the order of one turn
 *   timer    when something is due
 *   session  connecting, heartbeats, the lease, the end of a session
 *   lock     one lock's takers on this mount: what is watched, when it is listed
 *   judge    what a listing means to them
 *   taker    one taker: take, grant, lose, leave
 *   place    its entry: create, find, delete
 *   entry    what stands in its data, and the watch on it: reason, eviction
 *   batch    creates and deletes of entries, several in one transaction
 *   zone     order by czxid, where the numbers repeat
 *   sweep    entries that belong to nobody
 *   unwatch  watches that nobody needs any more
 *   poke     hearing at once that an entry was marked
 *   authority  who may do what to a lock
 *   share    how much of the session each user's takers use up
 *   tally    what has happened so far, for those who measure
 *   call     questions, and how they live: call.h
 *   asking   what only reads: once for all who ask the same, users in turn: asking.h
 */
#ifndef LOCKCORE_ENGINE_H
#define LOCKCORE_ENGINE_H

#include "ensemble.h"
#include "fair.h"
#include "lease.h"
#include "lockcore.h"
#include "queue.h"

#include <stdarg.h>
/* An element for which there is no memory is not added: its hh.tbl stays NULL. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

/* ---- core.c ---- */

struct timer {
	int64_t at_us;
	void (*fire)(void *ctx);
	void *ctx;
	bool armed;
	uint64_t serial;
	struct timer *child, *next, *before;   /* timer.c; `before`: beside it, or above */
};

/* See poke.c. */
struct pokes {
	char *node;
	bool made;
	bool lost;                   /* it vanished: what it told may not have been read */
	int32_t seen;                /* its version */
	int64_t sent_us;             /* its create */
};

struct session {
	enum lc_state state;
	int why;
	bool open;                   /* the port has a session for us */
	bool connected;
	int64_t id;
	uint64_t half;               /* 64 random bits: our entries' mark in this session */
	struct lease lease;
	int64_t granted_us;          /* T, kept beyond the session's end */
	int64_t away_us;             /* not ready: since when */
	bool beating;                /* a heartbeat or its making is under way */
	bool node_made;
	int32_t node_version;        /* of the heartbeat node: somebody else's write is a poke */
	bool node_unsure;            /* what was written to it last was not answered */
	bool proved;                 /* was ready once: the root is good */
	bool root_gone;              /* somebody has removed it, and that was reported */
	int64_t beat_sent_us;
	struct timer beat;           /* the next heartbeat; or patience with the last one */
	struct timer limit;          /* the lease's deadline */
	struct timer retry;          /* opening failed, or no connection yet */
	char *dir;                   /* ROOT/ROOT_DIR */
	char *node;                  /* ROOT/.zklockfs/<half> */
	struct pokes pokes;
	unsigned long connections, sessions;
};

/* What is to be created and deleted (their takers' znode states tell which), and was not
 * sent yet. */
struct batch {
	struct lc_taker **takers;
	size_t count, room;
	unsigned flights;            /* requests and transactions that are not answered */
	uint64_t parcels;            /* so far */
};

/* How many may hold a lock, as its data said at that version: for those who only look. */
#define LC_KNOWN_SLOTS 64

struct known_slots {
	int64_t czxid, mzxid;
	unsigned slots;
};

/* What only reads: asking.c. Of two of each, the second is for lists. */
struct reads {
	struct subject *subjects;    /* by kind and path: what somebody wants to know */
	struct asker *askers;        /* by user */
	struct fair wanting[2];      /* who is to be asked for */
	struct fair due;             /* to be told */
	unsigned asking[2];          /* how much is under way */
	int64_t rest_until_us;       /* no list before that, */
	int64_t tell_from_us;        /*   and nobody told */
	struct timer rest;
	uint64_t serial;             /* of the last answer */
};

struct lc {
	struct lc_config config;
	char *root;
	char host[LC_HOST_MAX + 1];
	struct ensemble *ensemble;
	struct session session;
	struct timer *timers;        /* the next one that is due: timer.c */
	uint64_t timers_set;
	struct lock *locks;          /* by path: those with takers here */
	struct lc_taker *takers;     /* by id: all there are */
	struct lc_taker *due;        /* to be told, in this order */
	struct lock *wanted;         /* those that want a listing sent */
	struct lock *idle;           /* without takers, kept for what is known of them */
	unsigned idle_count;
	struct lc_call *calls;
	struct reads reads;
	struct known_slots known_slots[LC_KNOWN_SLOTS];   /* by czxid */
	struct orphan *orphans;      /* by path */
	struct unwatch *unwatches;   /* by path */
	struct eviction *evictions;
	struct poke *pokes;          /* under way to other mounts */
	struct lc_taker *stirred;    /* to be told that somebody came or went behind them */
	struct share *shares;        /* by user */
	struct batch batch;
	bool missing;                /* one of the takers is */
	size_t entry_bytes, watch_bytes;
	int64_t full_said_us;        /* when it was last reported that there is no room, */
	int64_t refused_said_us;     /*   and that the ensemble refuses entries */
	bool draining, dying;
	bool stalled;                /* a question was not answered in time, nor any since */
	unsigned holders, waiters;
	struct lc_counters counters;
};

/* Stands in each root, with a node of each mount in it. */
#define ROOT_DIR ".zklockfs"

int64_t lc_now(struct lc *lc);
uint64_t lc_random(struct lc *lc);
void lc_report(struct lc *lc, enum lc_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Whether to say so again: who is refused may ask again at once, and must not fill the log. */
bool lc_is_due(struct lc *lc, int64_t *said_us);
void lc_submit(struct lc *lc, const struct ensemble_op *ops, int count, ensemble_answer_fn *answer,
               void *ctx);
/* Not in the order of what was asked for before: reads, heartbeats. */
void lc_submit_beside(struct lc *lc, const struct ensemble_op *ops, int count,
                      ensemble_answer_fn *answer, void *ctx);
void lc_ignore(void *ctx, const struct ensemble_answer *answer);
/* ROOT/lock, malloced. */
char *lc_path(struct lc *lc, const char *lock);
char *lc_join(const char *directory, const char *name);

/* ---- timer.c ---- */

void timer_set(struct lc *lc, struct timer *timer, int64_t at_us);
void timer_clear(struct lc *lc, struct timer *timer);
void timers_run(struct lc *lc);                   /* those that are due */

/* ---- session.c ---- */

int session_begin(struct lc *lc);
void session_finish(struct lc *lc, bool farewell);
bool session_ready(const struct lc *lc);
/* Contact is good, and the lease will do for a grant; otherwise a heartbeat is
 * on its way, and locks_fresh() follows. */
bool session_may_grant(struct lc *lc);
/* Not over; it may be in doubt. */
bool session_lease_valid(struct lc *lc);
/* Looks whether there is reason to doubt the clock. True: nothing is good now, neither a
 * grant nor a hold; it will be again, or lost, within LEASE_DOUBT_US. */
bool session_doubted(struct lc *lc);
/* Does it live? session_wrote() follows, or its end. */
void session_check(struct lc *lc);
/* A write sent then was answered OK. */
void session_wrote(struct lc *lc, int64_t sent_us);
/* The first taker came or the last went: the pace of heartbeats changes. */
void session_pace(struct lc *lc);
void session_node_lost(struct lc *lc);
/* The heartbeat node was written in a transaction: `false`: that was not answered. */
void session_node_written(struct lc *lc, bool certain);
/* What is to stand in it: the host, and which version of the node that will be if nobody else
 * writes to it. Returns the length. */
#define SESSION_DATA_MAX (LC_HOST_MAX + 16)
size_t session_node_data(const struct lc *lc, char ret_data[SESSION_DATA_MAX]);

/* ---- lock.c ---- */

struct lock {
	struct lc *lc;
	char *path;                  /* of the znode */
	UT_hash_handle hh;
	struct lc_taker *takers;     /* in the order of their creates, so of their entries */
	unsigned waiting, holding;   /* how many of them do */
	unsigned writing;            /* how many hold exclusively */
	struct lc_taker *front;      /* the first that waits, if nobody of ours stands before it
	                              * whose going would be seen without a watch */
	struct lc_taker *unproved;   /* got the lock by hand-off; that its entry is there is being
	                              * asked, and no entry before it is deleted until then */
	bool held_back;              /* deletes wait for that */
	uint64_t list_sent;          /* listings of this lock so far */
	unsigned lists_pending;
	bool want_list;              /* stands in lc->wanted */
	struct lock *wanted_prev, *wanted_next;
	bool unresolved;             /* an entry's outcome is unknown: nobody queues before that */
	bool wants_lease;            /* somebody is first, but the lease would not do */
	bool behind_leaver;          /* the first that waits is behind an entry we are deleting */
	char *watched;               /* the foreign entry the front waits for */
	unsigned watches_pending;
	bool watch_armed;
	int64_t czxid;               /* of the lock as last seen; 0: not yet */
	unsigned slots;              /* how many may hold it exclusively; 0: not known */
	int32_t version;             /* of the data that said so */
	bool data_pending, data_armed;   /* the watch on that data, and on the lock's life */
	unsigned long data_connection;   /* the connection that answered it */
	bool proven;                 /* the last write to it was good */
	unsigned kept, kept_creates; /* in the batch; the first counts deletes too */
	bool together;               /* a create of it is under way with others */
	uint64_t leaving_in;         /* the parcel that deletes entries of it, and the number of */
	int64_t leaving;             /*   the one among them that was first; -1: none */
	bool doubtful;               /* who does not wait is to be judged when the slots are known */
	bool judging;                /* a listing: grants find who is next themselves */
	size_t watch_bytes;          /* its share of lc->watch_bytes */
	uid_t uid;                   /* whose share that is, too, */
	bool shared;                 /*   if it is */
	struct zone *zone;           /* its entries' czxids are being read */
	size_t swept;                /* sweep() has asked for so many of its entries, and goes on there */
	struct timer recheck;
	struct lock *idle_prev, *idle_next;
	bool idle;                   /* in lc->idle: no takers, but watched still */
};

/* `uid`: who asks for it. */
int lock_get(struct lc *lc, const char *lock, uid_t uid, struct lock **ret_lock);
void locks_forget_idle(struct lc *lc);   /* there is no room for watches */
void lock_settle(struct lock *lock);     /* frees it when nothing is left of it */
void lock_want_list(struct lock *lock);
void lock_unwant_list(struct lock *lock);
/* Look again after a while, whatever comes. */
void lock_recheck(struct lock *lock);
/* No memory now. */
void lock_look_later(struct lock *lock);
/* What the first of those that wait here waits for will be noticed: a watch tells, or it is
 * one of ours, and a listing follows when it goes. So nobody needs one now. */
bool lock_guarded(const struct lock *lock);
/* One of ours bars the way of any new taker of that mode, for certain. */
bool lock_bars(const struct lock *lock, enum lc_mode mode);
/* The lock itself is watched, on this connection: it has not been removed and made again,
 * and its number of slots is known. */
bool lock_watched(const struct lock *lock);
/* The foreign entry that the front waits for; or none any more. */
void lock_watch_entry(struct lock *lock, const char *znode);
void lock_watch_none(struct lock *lock);
/* The taker of ours whose UUID an entry bears: it, or a copy that somebody has made. */
struct lc_taker *lock_named(struct lock *lock, const struct entry_name *name);
/* The taker of ours that an entry belongs to: by its full name, once that is known. */
struct lc_taker *lock_owner(struct lock *lock, const char *znode, const struct entry_name *name);
void lock_watch_data(struct lock *lock);
/* Who follows a holder with nobody else's entry in between; NULL: only a listing can
 * tell. */
struct lc_taker *lock_next(struct lock *lock, struct lc_taker *holder);
/* The unproved one is proved, or gone: what waited for it goes on. */
void lock_proved(struct lock *lock, struct lc_taker *taker);
void locks_flush(struct lc *lc);         /* send the listings wanted */
void locks_resume(struct lc *lc);        /* contact again: bring everything up to date */
void locks_fresh(struct lc *lc);         /* the lease was extended */
void locks_lease_over(struct lc *lc);
void locks_session_ended(struct lc *lc);
void locks_changed(struct lc *lc, const char *path, enum ensemble_change change);

/* ---- judge.c ---- */

/* Who of ours is in it; who should be and is not. */
void lock_match(struct lock *lock, const struct queue *queue, uint64_t number);
/* Acts on a queue in its true order. */
void lock_judge(struct lock *lock, struct queue *queue);

/* ---- unwatch.c ---- */

/* What is watched at that path, by a get that was answered, is not needed any more. */
void watch_given_up(struct lc *lc, const char *path);
void unwatches_resume(struct lc *lc);    /* contact again, before anything is watched */
void unwatches_clear(struct lc *lc);     /* the session has ended, and its watches with it */

/* ---- zone.c, sweep.c ---- */

/* Reads the czxids, then lock_judge(). */
void zone_order(struct lock *lock, const struct queue *queue);
/* An entry with our mark and no taker. False: there is no room to ask for it now. */
bool sweep(struct lock *lock, const struct queue_entry *entry);

/* ---- taker.c ---- */

/* What the face has been told. */
enum taker_state {
	TAKER_WAITING,     /* nothing yet; the entry shall exist */
	TAKER_HELD,        /* taken(0) is due or was told; the entry shall exist */
	TAKER_LOST,        /* held, and lost; the entry shall go once lost_done */
	TAKER_FAILED,      /* taken(-errno) is due or was told; the entry shall go */
	TAKER_LEFT,        /* the face is done with it; the entry shall go */
};

/* What is known of the entry. The two are brought together by taker_step(). */
enum znode_state {
	ZNODE_ABSENT,      /* not there: never sent, deleted, or gone with its session */
	ZNODE_CREATING,    /* the create is under way */
	ZNODE_UNKNOWN,     /* the create was not answered: it may be there */
	ZNODE_PRESENT,
	ZNODE_DELETING,    /* the delete is under way */
};

struct lc_taker {
	struct lc *lc;
	struct lock *lock;
	enum taker_state state;
	enum znode_state znode;
	uint64_t id;                 /* the second half of its entries' UUIDs */
	UT_hash_handle hh;           /* in lc->takers */
	struct lc_taker *prev, *next;         /* in lock->takers */
	struct lc_taker *due_prev, *due_next; /* in lc->due */
	bool due, told_taken;
	bool missing;                /* waits, and its entry was gone: it was evicted, or the session
	                              * has ended, and that is not told yet */
	bool lost_done;              /* nobody works under the lost lock any more */
	bool forfeited;              /* its entry stays until it leaves */
	int error;                   /* TAKER_FAILED: what to tell */
	int64_t meant;               /* the czxid of the lock that it wants; 0: any of that name */
	bool immediate;              /* EAGAIN rather than wait */
	bool probing;                /* immediate, and the lock is not known to be free: list first */
	unsigned pending;            /* answers outstanding that name this taker */
	char *name;                  /* of the entry; while CREATING or UNKNOWN without its digits */
	bool gone;                   /* taker_gone() */
	unsigned claims;             /* UNKNOWN: entries that may be it, and are being asked, */
	uint64_t claimed;            /*   since which listing; */
	bool claim_lost;             /*   one of them could not be */
	int64_t number;
	int64_t czxid;               /* 0: not known yet, it was made in a transaction */
	int32_t version;             /* of its data */
	struct lc_taker *instead;    /* shared and held: this one is to take its place */
	struct lc_taker *heir;       /* and the way back */
	int64_t sent_us;             /* of the last create or delete */
	uint64_t created_at;         /* lock->list_sent when its create was sent: every later
	                              * listing of this connection shows the entry. While
	                              * probing: when it began to ask */
	uint64_t listed;             /* the last listing that showed it */
	bool first;                  /* held: nobody stood before it, so that the one behind it comes
	                              * next; not so for one of several slots */
	bool alone;                  /* its create or delete failed in a transaction */
	int64_t follows;             /* made in the transaction that deletes the entry of this number,
	                              * which was first; -1: not so */
	bool adjacent;               /* no other's entry stands, or will ever stand, between this
	                              * entry and the one of ours before it */
	bool watch_pending, watch_armed;      /* on its own entry */
	unsigned long watch_connection;       /* the connection that answered it */
	struct timer limit;          /* waiting: its time is up; leaving: delete again */
	struct timer settle;         /* holding: arm the watch, and tell since when */
	int64_t held_since_ms;
	char *reason;
	bool data_dirty, data_pending;        /* what stands in its entry is to be written */
	bool told_since;             /* and says, or will, since when it holds */
	int64_t data_sent_us;
	pid_t pid;
	uid_t uid;
	enum lc_mode mode;
	char command[LC_COMMAND_MAX + 1];
	int64_t asked_us;            /* when it was taken */
	int64_t limit_us;            /* when its time is up; LC_FOREVER */
	size_t bytes;                /* its weight in lc->entry_bytes */
	bool shared;                 /* and in its user's share */
	lc_taken_fn *taken;
	lc_lost_fn *lost;
	lc_stirred_fn *stirred;      /* somebody attends */
	bool stir_due;
	struct lc_taker *stir_prev, *stir_next;   /* in lc->stirred */
	void *ctx;
};

bool taker_wants(const struct lc_taker *taker);   /* its entry shall exist */
bool taker_in_queue(const struct lc_taker *taker);   /* its entry stands there */
bool taker_owns(const struct lc_taker *taker, const char *znode);
bool taker_made_as(const struct lc_taker *taker, const char *znode);   /* UNKNOWN: that may be it */
bool taker_queues(const struct lc_taker *taker);  /* waits, and its entry is there or may be */
void taker_settle(struct lc_taker *taker);        /* frees it when nothing is left of it */
/* `first`: nobody stands before it. */
void taker_grant(struct lc_taker *taker, bool first);
void taker_lose(struct lc_taker *taker);
/* The lock is the one that it wants, as far as was seen last. */
bool taker_means(const struct lc_taker *taker);
/* Who comes next behind a holder is watched, to be handed the lock. */
void taker_watch_next(struct lc_taker *holder);
void taker_fail(struct lc_taker *taker, int error);
/* The entry went with its lock. */
void taker_removed(struct lc_taker *taker);
/* The entry is gone, for certain, whatever a listing shows: that will draw the consequences,
 * but who holds has lost it now. */
void taker_gone(struct lc_taker *taker);
/* The entry is gone, by nobody's hand here. */
void taker_vanished(struct lc_taker *taker);
/* The session lives, so those that are missing were evicted. */
void takers_missed(struct lc *lc);
/* Somebody has marked it. */
void taker_evicted(struct lc_taker *taker, const char *by);
void taker_session_ended(struct lc_taker *taker);
void takers_tell(struct lc *lc);                  /* runs what is due */

/* ---- place.c ---- */

void taker_step(struct lc_taker *taker);          /* the next thing to do, if any */
void taker_created(struct lc_taker *taker, const struct ensemble_answer *answer);
void taker_deleted(struct lc_taker *taker, const struct ensemble_answer *answer);
/* Its create or delete was not sent, or has certainly not happened. */
void taker_unsent(struct lc_taker *taker);
/* A create of unknown outcome: a listing shows one that may be it; or none. */
void taker_found(struct lc_taker *taker, const struct queue_entry *entry);
void taker_not_found(struct lc_taker *taker);
/* Its entry is gone. */
void taker_absent(struct lc_taker *taker);
char *taker_path(const struct lc_taker *taker);   /* of its entry, malloced */

/* ---- share.c ---- */

bool share_has_room(struct lc *lc, uid_t uid, size_t bytes);
/* There is no room for so much more; idle locks may make some. */
bool share_is_full(const struct lc *lc, size_t bytes);
void share_take(struct lc_taker *taker);      /* taker->bytes of taker->uid */
void share_return(struct lc_taker *taker);
void share_take_lock(struct lock *lock, uid_t uid);   /* lock->watch_bytes, as long as it has takers */
void share_return_lock(struct lock *lock);

/* ---- entry.c ---- */

/* Its entry was seen, with a watch, on this connection. */
bool taker_proved(const struct lc_taker *taker);
void taker_watch_self(struct lc_taker *taker);
void entry_write(struct lc_taker *taker);
void entry_write_since(struct lc_taker *taker);
size_t entry_format(const struct lc_taker *taker, char *ret_data);   /* RECORD_ENTRY_MAX */
/* The good answer of a get: what it tells, a mark among it. False: it is another's, who has
 * made it under the name of this one when this one was gone. */
bool entry_read(struct lc_taker *taker, const struct ensemble_answer *answer);
/* For a mark that no watch tells of; and all of them. */
void taker_look(struct lc_taker *taker);
void takers_look(struct lc *lc);

/* ---- batch.c ---- */

/* The taker's create or delete. False: no memory. */
bool batch_add(struct lc_taker *taker);
void batch_flush(struct lc *lc);                  /* unless much is under way */
void batch_send(struct lc *lc);
void batch_clear(struct lc *lc);                  /* contact is lost: nothing was sent */

/* ---- tally.c ---- */

void tally_granted(struct lc_taker *taker);       /* told so */
void tally_failed(struct lc *lc, int error);      /* told so */

/* ---- asking.c ---- */

void asking_begin(struct lc *lc);
void asking_send(struct lc *lc);                  /* what may be asked now */
void asking_tell(struct lc *lc);                  /* some of those that are answered */
int64_t asking_wait(struct lc *lc);               /* until somebody is to be told */
void asking_finish(struct lc *lc);                /* nobody asks any more */

/* ---- call.c, evict.c, attend.c ---- */

void calls_resume(struct lc *lc);                 /* ask again what was not answered */
void calls_finish(struct lc *lc);
void evictions_finish(struct lc *lc);             /* those that were answered, and are still to act */
/* The children of a node have changed. */
void attend_changed(struct lc *lc, const char *path);
void attend_tell(struct lc *lc);                  /* runs what is due */

#endif
