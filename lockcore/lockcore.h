/* SPDX-License-Identifier: MIT
 *
 * lockcore.h - the engine behind the files: locks of one ZooKeeper sub-tree.
 *
 * A lock is a persistent node below the root. A taker puts one ephemeral
 * sequential child there, its *entry*, and holds the lock when that entry is
 * first. The engine owns every entry from before its create is sent until
 * ZooKeeper has said that it is gone. The caller owns the taker.
 *
 *            lc_take()
 *               |                      taken(-errno): EAGAIN, ETIMEDOUT, ENOENT,
 *               v      no               ECANCELED, ...; then lc_leave()
 *           [WAITING] -----------------------------------------------.
 *            |  ^  first in the list, lease valid                     |
 *            |  `- session ended: queues again                        |
 *            v  taken(0)                                              |
 *           [HELD] ---- lease over, session ended, entry deleted      |
 *            |             v  lost()                                  |
 *            |          [LOST] for ever; every use says EIO           |
 *            v             v                                          v
 *           lc_leave(): at any moment, once; no callback comes after it.
 *
 * The lease is the time for which a mount may rely on its locks without asking:
 * until its deadline the ensemble cannot have given a lock away (lease.h). The
 * deadline is compared with the clock at each grant and each use, because timers
 * are late after SIGSTOP. RULES.md has all safety rules.
 *
 * One thread. Nothing here waits. No callback runs inside the call that caused
 * it: callbacks run from lc_process(). They may call all functions but
 * lc_process(), lc_send() and lc_destroy(). Times are microseconds of the clock that the
 * caller gives; names that end in _ms are wall clock time since 1970. Errors are
 * negative errno values. No ZooKeeper code and no znode path passes this
 * interface: a lock is named by its path below the root, "build" or
 * "team/deploy", and the root itself is "".
 */
#ifndef LOCKCORE_H
#define LOCKCORE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct records;
struct codec;
struct ensemble;
struct lc;       /* the engine of one mount */
struct lc_taker; /* one taker: one open of a lock file */
struct lc_call;  /* one question asked of the ensemble */

#define LC_NAME_MAX 255          /* bytes of one lock's name */
#define LC_PATH_MAX 1023         /* bytes of a lock's path with the root: ENAMETOOLONG */
#define LC_REASON_MAX 4096       /* bytes of a reason: EFBIG */
#define LC_HOST_MAX 15           /* bytes of the host name that go into an entry */
#define LC_COMMAND_MAX 15        /* bytes of a command's name (comm, TASK_COMM_LEN) */
#define LC_VALUE_MAX (64 * 1024) /* bytes of a lock's value: EFBIG */
#define LC_SLOTS_MAX 10000       /* how many may hold a lock exclusively at a time */

/* Each listing of a lock carries the names of the locks below it. So a lock may have only so
 * many: fewer when a stranger makes one, more when the lock's owner does. No limit for root. */
#define LC_BELOW_MAX 1000
#define LC_BELOW_OWNER_MAX 10000
#define LC_CHILDREN_UNKNOWN INT32_MAX /* more than any limit */

/* The limit of all entry paths and watched paths of one session together. Takers beyond it get
 * ENOLCK. One transaction deletes all entries of a session when it ends. The servers cannot
 * read back a transaction with more than about 2 MiB of paths, and go down (ZOOKEEPER-4306).
 * A client that connects again sends all watched paths in one request. A request of more than
 * 1 MiB (jute.maxbuffer) is refused for ever (ZOOKEEPER-706). Every holder's entry is watched. */
#define LC_ENTRY_BYTES_MAX (1040 * 1000)
/* How much of it may be watches of locks, without those of their holders. */
#define LC_WATCH_BYTES_MAX (768 * 1024)
/* A user other than root may have at most half of each. */
#define LC_USER_BYTES_MAX (LC_ENTRY_BYTES_MAX / 2)
/* Bytes of each that all users but root leave free: root's locks are the host's own. */
#define LC_ROOT_BYTES (LC_ENTRY_BYTES_MAX / 10)

/* A question (lc_stat ... lc_confirm) is answered within this time. Without an answer of the
 * ensemble it fails with -EHOSTUNREACH, or with -EBUSY when it could not even be sent, because the
 * same user has too many others. One that changes something waits for its turn before that, for as
 * long at most. */
#define LC_CALL_TIMEOUT_US (2 * 1000 * 1000)

#define LC_FOREVER INT64_MAX

/* The attributes in a lock's data. */
struct lc_attributes {
	uid_t uid;
	gid_t gid;
	mode_t mode;           /* of the directory, permission bits */
	mode_t lock_file_mode; /* of its lock files, rw bits */
};

enum lc_level { LC_ERROR, LC_WARNING, LC_NOTICE, LC_INFO };

struct lc_config {
	const char *root;           /* "/locks": absolute, not "/", no slash at the end */
	bool make_root;             /* make it when it is absent */
	const char *host;           /* as the other hosts shall see it in the queue */
	const char *clients;        /* one of LC_CLIENTS; NULL: the first */
	int64_t session_timeout_us; /* asked for; the ensemble may grant another */
	int64_t tick_time_us; /* the servers' tickTime, as far as it is known: lc_raise_tick() */
	/* How long before the lease's end the caller begins to stop the processes that lose
	 * a lock. The entry of a lost lock is then deleted only after lc_leave(), or
	 * after a session timeout. 0: no process is stopped, and the entry is deleted at once. */
	int64_t loss_lead_us;
	/* A process that takes a lock again at once may get its own entry again, without asking the
	 * ensemble: rule 43. */
	bool reuse;
	/* So long without a take or a question, and the mount writes no more heartbeats until the
	 * next one, which then waits for five round trips. 0: it writes them always. */
	int64_t rest_us;
	uid_t uid;                    /* the root's owner */
	struct lc_attributes without; /* for locks without attributes: of other clients */

	/* Why no lock can have this name, a sentence, where the caller shows something else under
	 * it. NULL: a lock can. The function may be NULL, too. */
	const char *(*reserved)(const char *name);
	int64_t (*clock_us)(void *ctx); /* goes on while suspended, is not slewed */
	int64_t (*wall_ms)(void *ctx);
	void (*random)(void *ctx, void *ret_bytes, size_t len);
	void (*report)(void *ctx, enum lc_level level, const char *text); /* one line */
	/* True if there was a sign, since the last call, that clock_us may have stood still for
	 * a while. May be NULL. */
	bool (*disrupted)(void *ctx);
	/* Somebody has evicted the taker of that context, and it will be told -ECANCELED or that
	 * its lock is lost. `by`: lc_evictor.name, printable. May be NULL. */
	void (*evicted)(void *ctx, void *taker_ctx, const char *by);
	/* The lease's end has moved; INT64_MIN: there is none. May be NULL. */
	void (*deadline)(void *ctx, int64_t deadline_us);
	void *ctx;
	/* The engine's records, which another process goes on from. NULL: there are none. */
	struct records *records;
};

/* The families of other projects' clients that can share the locks. Each waits for entries with
 * certain names only, so all programs and mounts that use a lock must be of one. */
#define LC_CLIENTS "curator, curator-rw, kazoo, kazoo-rw, ruby"
bool lc_knows_clients(const char *name);
/* Why this cannot be a root, a part of a sentence; NULL: it can. */
const char *lc_check_root(const char *root);
/* 0, or -EINVAL (lc_check_root(), host, clients), -ENOMEM, or what opening the session gives. */
int lc_create(const struct lc_config *config, struct ensemble *ensemble, struct lc **ret_lc);
/* `end_session`: end the session, which deletes the rest of its entries at once; this may block
 * for some seconds. Otherwise they go with the session timeout. */
void lc_destroy(struct lc *lc, bool end_session);

/* The caller's loop calls each once every turn. lc_prepare() fills in the descriptor to poll and
 * returns the longest wait. lc_process() gets the events of poll(2). All requests to the ensemble,
 * from any call, are kept until lc_send(), which comes last: nothing leaves before that. */
int64_t lc_prepare(struct lc *lc, struct pollfd *ret_pollfd);
void lc_process(struct lc *lc, short revents);
void lc_send(struct lc *lc);

/* ---- would it work? ---- */

#define LC_EXAMINE_WRITES 5

struct lc_examination {
	bool done;
	int err;      /* done: 0, or why not, as lc_status.why; -EIO: any other no; -ECONNRESET: the
	          * session was ended */
	char why[64]; /* -EIO: in plain words, or "" */
	char server[64];            /* the last that has accepted the session; "": none has */
	int64_t session_timeout_us; /*   which it grants */
	bool too_short;             /*   and that leaves no lease, which is reported */
	unsigned writes;            /* that were answered, and how long each took */
	int64_t write_us[LC_EXAMINE_WRITES];
};

/* Without an engine, in a session of its own, and without a change. Of the config it takes the
 * root, the times, the clock, and the report. 0 or as lc_create(). For the caller's loop as
 * lc_prepare(). */
struct lc_examine;
int lc_examine(const struct lc_config *config, struct ensemble *ensemble,
               struct lc_examine **ret_examine);
int64_t lc_examine_prepare(struct lc_examine *examine, struct pollfd *ret_pollfd);
const struct lc_examination *lc_examine_process(struct lc_examine *examine, short revents);
void lc_examine_end(struct lc_examine *examine);

/* ---- going on in another process ---- */

/* All that another engine needs to go on in the place of this one: the session with its password,
 * the lease's deadline, each entry and taker, the counters. The caller writes it at the end of each
 * turn, before lc_send(), with all other records (pure/records.h): lc_record(), records_write().
 * Then another process can go on even if this one is killed. Any moment outside lc_process() will
 * do. A question that was under way then may have changed something or not; it does not go on.
 *
 * One engine at a time may be in a session: the other process begins when this one has ended, or
 * by exec(2). If it does not start, this engine goes on. */
enum lc_kind {
	LC_KIND_SESSION = 2, /* 1 is the caller's */
	LC_KIND_COUNTERS,
	LC_KIND_TAKER,
	LC_KIND_EVICTION,
	LC_KINDS_END, /* and so are these; the numbers stand in records, so they stay */
};
/* The session and the counters; their records belong to no objects. */
void lc_record(struct lc *lc);
/* From now on no question begins to change something, or it may again. */
void lc_settle(struct lc *lc, bool settle);
/* No question is under way that changes something. */
bool lc_settled(const struct lc *lc);
/* In place of lc_create(): from config.records. As after a lost connection, nothing is
 * granted or read before a write was answered on the new connection; the recorded deadline stays
 * good for holders. config.deadline is called from inside. `codec`: for reading; codec->checks:
 * only looks whether an engine can go on from the records, and makes none; `ensemble` may be NULL
 * then. -EPROTO: a record is not good, also of another root, or of another clock (of another boot):
 * codec->bad says why, unless there is a codec->give_up(). -EINVAL, -ENOMEM. */
int lc_adopt(const struct lc_config *config, struct ensemble *ensemble, struct codec *codec,
             struct lc **ret_lc);
/* Names a taker from one image to the next. */
uint64_t lc_taker_id(const struct lc_taker *taker);
/* lc_claim() and lc_claimed() stand below, with the takers. */

enum lc_state {
	LC_CONNECTING, /* no session yet */
	LC_READY,      /* connected, and a write was answered on this connection */
	LC_SUSPENDED,  /* contact is lost; the session may still live */
	LC_UNUSABLE,   /* for ever: lc_status() says why */
};

/* Counts since the start: the field, which is the metric with _total behind it, and what it counts.
 * takes = grants + failures + abandoned + takers that are not told yet. */
#define LC_COUNTERS(COUNTER)                                                                      \
	COUNTER(requests, "Requests sent to the servers; a transaction is one.")                  \
	COUNTER(clock_doubts,                                                                     \
	        "Possible pauses of this machine, each of which put held locks in doubt.")        \
	COUNTER(takes, "Attempts to take a lock.")                                                \
	COUNTER(grants, "Takers that got their lock.")                                            \
	COUNTER(hand_offs, "Grants by a holder on this mount, without a request to the servers.") \
	COUNTER(reuses,                                                                           \
	        "Grants by the entry of the last hold of the same process, without a request.")   \
	COUNTER(losses, "Takers that lost the lock they held.")                                   \
	COUNTER(evictions,                                                                        \
	        "Takers that lost their entry by an eviction or a deletion in ZooKeeper.")        \
	COUNTER(overdue, "Takers that lost the lock at the end of the time that most= allows.")   \
	COUNTER(crowded, "Takers that were refused because as many waited as ahead= says.")       \
	COUNTER(abandoned,                                                                        \
	        "Takers that stopped waiting before they got the lock: interrupted or killed.")

#define LC_WAIT_BUCKETS 12
#define LC_FAILURES 12
struct lc_counters {
#define COUNTER(field, help) unsigned long field;
	LC_COUNTERS(COUNTER)
#undef COUNTER
	/* Errors told, or returned by lc_take(): by errno, in the order of lc_failure_codes. */
	unsigned long failures[LC_FAILURES];
	/* Grants by how long they waited: at most lc_wait_bounds_us[i], and more than the bound
	 * before it. The last one counts all longer waits. */
	unsigned long waits[LC_WAIT_BUCKETS + 1];
	int64_t waited_us; /* the sum of all waits */
};
/* Positive errno values; the last one, 0, counts all others. */
extern const int lc_failure_codes[LC_FAILURES];
extern const int64_t lc_wait_bounds_us[LC_WAIT_BUCKETS];

struct lc_status {
	enum lc_state state;
	int why; /* LC_UNUSABLE: -EKEYREJECTED credentials are refused at the start, or
	                              * wanted and missing; -EACCES no right to write the root;
	                              * -ENOENT no root; -ENOTDIR the root is an ephemeral node;
	                              * -ERANGE session too short for the lease (reported) */
	int64_t session;
	int64_t session_timeout_us; /* the smallest granted in this session; 0: none yet */
	int64_t tick_time_us;       /* that the lease is computed from */
	unsigned resting; /* 1: nobody uses the mount, so it needs no lease; lc_config.rest_us */
	bool leaseless;   /* it has rested, and has no lease since: it can lose nothing */
	int64_t lease_left_us; /* never below 0 */
	int64_t epoch;         /* of the leader that did the last heartbeat */
	int64_t away_us;       /* since when it is not ready, by the caller's clock; -1: it is */
	const char *server;
	bool elsewhere;  /* the last server that answered is of another ensemble: see home.c */
	const char *met; /* why there is no contact, a sentence; "": nothing is known */
	unsigned holders, waiters; /* of this mount */
	unsigned losing;           /* lost, and the entry is not to go yet */
	unsigned leaving;          /* the entry is to be deleted; or lost, and not left */
	unsigned entries;          /* entries that exist, or may exist */
	size_t entry_bytes;
	size_t watch_bytes;                  /* of all watched paths */
	unsigned long connections, sessions; /* so far */
	struct lc_counters counters;
};
void lc_status(struct lc *lc, struct lc_status *ret_status);
bool lc_ready(const struct lc *lc);
/* The engine is not ready because somebody has ended its rest. */
bool lc_woken(const struct lc *lc);
/* The ensemble's wall clock, which is that of times of nodes: as near to the given wall clock of
 * this host as the last answered heartbeat allows. */
int64_t lc_ensemble_ms(struct lc *lc, int64_t wall_ms);
/* What no other ensemble has by chance: zxid, time and data of ROOT/LC_MARK_NODE at its creation
 * (rule 41). */
#define LC_MARK_NODE ".zklockfs"
struct lc_mark {
	int64_t czxid; /* 0: there is none */
	int64_t ctime_ms;
	uint64_t number; /* 64 random bits, its data; 0: it has other data */
};
struct lc_mark lc_mark_of(int64_t czxid, int64_t ctime_ms, const void *data, size_t len);
/* Does this engine know its ensemble; is that its mark? */
bool lc_knows_mark(const struct lc *lc);
bool lc_is_mark(const struct lc *lc, const struct lc_mark *mark);
/* lc_raise_tick() and lc_limit_session() are for what a server says that has shown the mark.
 *
 * A server has a longer tickTime than was known, or the same. If the lease was computed with a
 * shorter one, held locks are in doubt for a moment; if no lease is possible with it, the engine
 * is LC_UNUSABLE. */
void lc_raise_tick(struct lc *lc, int64_t tick_us);
/* A server grants no longer sessions than that. So the session may be so short at any time: the
 * lease counts with no more, which may end it; if no lease is possible, the engine is
 * LC_UNUSABLE. */
void lc_limit_session(struct lc *lc, int64_t timeout_us);
/* Checks whether the clock can be believed (config.disrupted). True: holders may have lost their
 * locks, and this will be known within 2 s. Until then the caller makes no calls for users: the
 * engine can neither say that a taker holds nor that it has lost. */
bool lc_doubted(struct lc *lc);
/* 0, or the reason why it is unusable, as in lc_status(). */
int lc_why(const struct lc *lc);
/* This mount's host, as in the names of its entries. */
const char *lc_host(const struct lc *lc);
const char *lc_state_name(enum lc_state state);

/* ---- taking ---- */

enum lc_mode { LC_EXCLUSIVE, LC_SHARED };

#define LC_CROWD_MAX ((1u << 20) - 1) /* of lc_request.crowd */

struct lc_request {
	const char *lock;  /* path below the root */
	int64_t czxid;     /* of the lock that is meant; 0: any lock of this name. ENOENT: the name
	                        * belongs to another lock now */
	enum lc_mode mode; /* LC_SHARED: beside other shared takers */
	/* A shared holder of the same lock, which the new taker is to replace. The new taker does
	 * not wait for it, and when the new one holds, the caller leaves the old one. EDEADLK
	 * (EAGAIN if wait_us is 0): an exclusive entry in between waits for the old one. */
	struct lc_taker *replaces;
	int64_t wait_us; /* 0: at once, or EAGAIN; LC_FOREVER; else ETIMEDOUT after it */
	/* EAGAIN if so many wait when it comes; 0: any number may. Takers that come at one moment
	 * do not count each other. Nothing to a taker that does not wait, or replaces another
	 * one. */
	unsigned crowd;
	pid_t pid; /* 0: not visible */
	uid_t uid;
	const char *command;
	const char *reason; /* shown while it waits, too; NULL or "": none. Cut at LC_REASON_MAX */
};

/* Called exactly once, unless lc_leave() comes first. 0: held. Errors:
 *   EAGAIN, EDEADLK       the ensemble has shown another entry in the way; or a crowd
 *   ETIMEDOUT             wait_us is over, and somebody else has the lock
 *   ENOENT, ECANCELED     the lock, or the entry, was removed
 *   EHOSTUNREACH          wait_us is over, or it is 0, and there was no answer in time
 *   ESHUTDOWN             lc_drain(), lc_forfeit(), or unusable
 *   ENOLCK                a limit: of entries here, or a quota of the ensemble
 *   EACCES                the ensemble denies this mount the lock
 *   EPROTO                the queue has an entry that is incompatible (lc_entry) */
typedef void lc_taken_fn(void *ctx, int err);
/* Called at most once, after taken(0). */
typedef void lc_lost_fn(void *ctx);

/* 0, or at once -ENOMEM, -ENAMETOOLONG, -ESHUTDOWN, -ENOLCK. */
int lc_take(struct lc *lc, const struct lc_request *request, lc_taken_fn *taken, lc_lost_fn *lost,
            void *ctx, struct lc_taker **ret_taker);
/* A waiting taker shall replace a shared holder, as with `replaces`. False: it cannot. */
bool lc_replace(struct lc_taker *taker, struct lc_taker *old);
/* Stop waiting, give the lock back, or drop the rest of a lost one. */
void lc_leave(struct lc_taker *taker);

/* A holder loses the lock at that time, if it still has it then. */
void lc_limit(struct lc_taker *taker, int64_t until_us);
/* Held at this moment, by the clock. After false it is never held again, except when lc_doubted()
 * is the reason. */
bool lc_holds(struct lc_taker *taker);
/* The fencing token: the czxid of the entry. 0: call lc_fetch_token() first. */
int64_t lc_give_token(struct lc_taker *taker);
/* The same to look at only. 0: it is not known, or the next hold may get it (lc_config.reuse). */
int64_t lc_token(const struct lc_taker *taker);
/* The node name of its entry. NULL: it has no entry, or not yet. */
const char *lc_znode(const struct lc_taker *taker);
/* The text that others see beside the holder. 0, -EFBIG, or -EIO: lost, by the lease. */
int lc_set_reason(struct lc_taker *taker, const char *text, size_t len);
/* The present reason; "" for none. */
const char *lc_reason(const struct lc_taker *taker);

/* After lc_adopt(), before the first lc_process(): the frontend takes its takers over. Callbacks
 * (taken, lost) that the saved engine has made are not repeated; those that were due are made.
 * lc_watch_waiters() and lc_call are not saved. NULL: there is none of that id, or it has left, or
 * it was claimed already. */
struct lc_taker *lc_claim(struct lc *lc, uint64_t id, lc_taken_fn *taken, lc_lost_fn *lost,
                          void *ctx);
/* The takers that nobody has claimed are left (lc_leave): their entries are deleted. */
void lc_claimed(struct lc *lc);

/* Take no more takers: -ESHUTDOWN for new ones and for all that wait. */
void lc_drain(struct lc *lc);
/* The same, and all holders lose their locks. Their entries stay until they leave, however
 * long that takes: the holders may be at work. */
void lc_forfeit(struct lc *lc);
/* True: there is no holder, and no entry is left to delete. */
bool lc_idle(const struct lc *lc);

/* ---- looking, making, removing: each answered once, unless cancelled. `uid`: the user who asks;
 * the question counts against this user's share ---- */

typedef void lc_done_fn(void *ctx, int err);
void lc_cancel(struct lc_call *call);
/* True while nothing was sent that changes something. Then cancelling and asking again does not
 * do it twice. */
bool lc_may_cancel(const struct lc_call *call);

struct lc_lock_info {
	int64_t czxid; /* differs after the lock was removed and made again */
	int64_t ctime_ms, mtime_ms;
	bool has_attributes; /* false: made by another client */
	struct lc_attributes attributes;
	unsigned slots;    /* how many may hold it exclusively at a time; 1 by default */
	unsigned children; /* entries in its queue and locks below it; LC_CHILDREN_UNKNOWN */
};
typedef void lc_stat_fn(void *ctx, int err, const struct lc_lock_info *info);
/* -ENOENT only after the ensemble has said so twice, with a sync in between. */
int lc_stat(struct lc *lc, const char *lock, uid_t uid, lc_stat_fn *done, void *ctx,
            struct lc_call **ret_call);
/* The same of a name that the caller does not know yet: -ENOENT takes one round trip. */
int lc_seek(struct lc *lc, const char *lock, uid_t uid, lc_stat_fn *done, void *ctx,
            struct lc_call **ret_call);
/* The same at once, without a question; `children` is LC_CHILDREN_UNKNOWN. True: takers of this
 * mount have used the lock, and the server in use has told of no change since it was read. */
bool lc_recall(struct lc *lc, const char *lock, struct lc_lock_info *ret_info);

/* One entry of a queue, from its name alone. */
struct lc_entry {
	const char *znode; /* the node's name, of any length: another client may have made it */
	int64_t number;    /* the sequence number */
	unsigned repeat;   /* how many entries before it have the same number */
	enum lc_mode mode;
	bool of_mount;      /* of any mount, by the form of the name */
	const char *client; /* whose names have this form: "kazoo", "Curator's read-write lock";
	                     * "-": unknown; not to be freed */
	bool incompatible;  /* of a client that would not wait for our entries: takers get EPROTO
	                     * while it is in the queue */
	bool held;          /* it need not wait for any entry before it */
	char host[LC_HOST_MAX + 1]; /* "-" unless of_mount */
	pid_t pid;                  /* 0 when unknown */
};

struct lc_listing {
	uint64_t serial;                /* differs between answers */
	const struct lc_entry *entries; /* in queue order */
	size_t entry_count;
	const char *const *locks; /* the locks below, sorted */
	size_t lock_count;
};
typedef void lc_list_fn(void *ctx, int err, const struct lc_listing *listing);
int lc_list(struct lc *lc, const char *lock, uid_t uid, lc_list_fn *done, void *ctx,
            struct lc_call **ret_call);

/* One entry with the data that its taker wrote. Missing values: -1, 0 or "". */
struct lc_entry_info {
	struct lc_entry entry;
	int64_t token;
	int64_t session;
	int64_t queued_since_ms; /* by the ensemble's clock */
	int64_t held_since_ms;   /* by its host's clock; -1 until it has held for 20 ms */
	int64_t uid;
	char command[LC_COMMAND_MAX + 1];
	char reason[LC_REASON_MAX + 1]; /* of another client's: the first line of its data */
};
typedef void lc_entries_fn(void *ctx, int err, const struct lc_entry_info *infos, size_t count);
/* The entry with this node name, or, for NULL, all holders; at most 16. -ENOENT: no such entry or
 * lock. With `known`, entries from a listing: these, but for those that are gone, and the queue is
 * not listed again. */
int lc_entries(struct lc *lc, const char *lock, uid_t uid, const char *znode,
               const struct lc_entry *known, size_t count, lc_entries_fn *done, void *ctx,
               struct lc_call **ret_call);

/* When the session of that entry of a mount was renewed last, by the ensemble's clock. -ENOENT: the
 * session has ended; -EINVAL: it is no entry of a mount. `renewed_ms`: -1 with an error. */
typedef void lc_renewed_fn(void *ctx, int err, int64_t renewed_ms);
int lc_renewed(struct lc *lc, const char *lock, uid_t uid, const char *znode, lc_renewed_fn *done,
               void *ctx, struct lc_call **ret_call);
/* The entry of another mount that the lock's first waiter here has waited for, as it was read then.
 * To be asked once at each grant, for it is forgotten then; the caller frees it. NULL: there was
 * none, or it is not known. */
struct lc_ahead {
	char host[LC_HOST_MAX + 1];
	pid_t pid;
	char command[LC_COMMAND_MAX + 1];
	const char *znode, *reason; /* in the same block */
};
struct lc_ahead *lc_take_ahead(struct lc_taker *taker);

/* -EEXIST, -ENOENT (no parent), -EACCES, -EINVAL (lc_check_name), -EDQUOT (LC_BELOW_MAX; several
 * calls at the same moment may all be within the limit). `above`: the lock above as it was read a
 * moment ago; NULL: it is read. `made` is told of the lock as it was made, though it may be gone by
 * now. */
int lc_mkdir(struct lc *lc, const char *lock, const struct lc_attributes *attributes,
             const struct lc_lock_info *above, lc_stat_fn *made, void *ctx,
             struct lc_call **ret_call);
/* `by`: the user who asks. -EPERM unless this is root, or the owner at this moment of the lock or
 * of the one above. -EBUSY: held or waited for, or the root of a mount. -ENOTEMPTY: there are
 * locks below. `seen`: the lock as it was read a moment ago, no entry; NULL: it is read. */
int lc_rmdir(struct lc *lc, const char *lock, uid_t by, const struct lc_lock_info *seen,
             lc_done_fn *done, void *ctx, struct lc_call **ret_call);
/* Change the attributes or slots of a lock, by compare-and-set on its data. -EPERM: the user may
 * not, or the data is another client's and is left alone. -ENOENT: also if the lock was removed
 * and made again meanwhile; if the change went to the new lock, that is reported. `changed` is told
 * of the lock as it was after the change. */
struct lc_change {
	uid_t by;      /* the user: root, or the lock's owner at this moment */
	int64_t czxid; /* of the lock that is meant; 0: any of this name */
	bool set_uid, set_gid, set_mode, set_lock_file_mode;
	struct lc_attributes attributes; /* the new values */
	unsigned slots;                  /* 1 to LC_SLOTS_MAX; 0: no change */
};
int lc_change(struct lc *lc, const char *lock, const struct lc_change *change, lc_stat_fn *changed,
              void *ctx, struct lc_call **ret_call);

/* The text that stays with a lock from holder to holder. */
typedef void lc_value_fn(void *ctx, int err, const char *value, size_t len);
int lc_value(struct lc *lc, const char *lock, uid_t uid, lc_value_fn *done, void *ctx,
             struct lc_call **ret_call);
/* Written by the exclusive holder, in one transaction with the check that its entry still exists:
 * -EIO if not. `append`: behind the present text. -EFBIG, -EPERM as above. */
int lc_set_value(struct lc_taker *holder, const char *value, size_t len, bool append,
                 lc_done_fn *done, void *ctx, struct lc_call **ret_call);

/* Take an entry away from its taker. An entry of another client is deleted at once. An entry of a
 * mount is marked: its mount tells the taker (ECANCELED, or it loses the lock), stops the
 * processes that must be stopped, and deletes the entry. If the entry still exists after a
 * session timeout, it is deleted here, also when its mount has forfeited and a process may be at
 * work. -EPERM unless the user is, at this moment, root, the lock's owner, or, for an entry of a
 * mount, the user who took it. -ENOENT: it is gone. */
struct lc_evictor {
	uid_t uid;
	const char *name; /* for the logs */
	int64_t token;    /* of the entry that is meant; 0: any of this name */
};
int lc_evict(struct lc *lc, const char *lock, const char *znode, const struct lc_evictor *by,
             lc_done_fn *done, void *ctx, struct lc_call **ret_call);

/* What fsync(2) asks: 0 only if the entry was there at some moment during the call, else -EIO. */
int lc_confirm(struct lc_taker *taker, lc_done_fn *done, void *ctx, struct lc_call **ret_call);

/* Does another taker wait behind this holder? `waiters` counts if `err` is 0. */
typedef void lc_waiters_fn(void *ctx, int err, bool waiters);
int lc_has_waiters(struct lc_taker *taker, lc_waiters_fn *done, void *ctx,
                   struct lc_call **ret_call);
/* Call `changed` once, from lc_process(), when the answer of lc_has_waiters() may have changed.
 * NULL: do not. Set it before you ask. */
typedef void lc_waiters_changed_fn(void *ctx);
void lc_watch_waiters(struct lc_taker *taker, lc_waiters_changed_fn *changed);

/* After it lc_give_token() knows the token. -EIO: not held. */
int lc_fetch_token(struct lc_taker *taker, lc_done_fn *done, void *ctx, struct lc_call **ret_call);

/* Can a lock have this name? 0, -EINVAL, -ENAMETOOLONG. `ret_why`: the reason, a sentence. */
int lc_check_name(const struct lc *lc, const char *name, const char **ret_why);

/* ---- texts that others have chosen ---- */

/* Each looks at the one character of UTF-8 that begins there, and returns its length, or 0.
 *
 * Harmful: terminals obey it, readers take it for the end of a line, or it turns the direction of
 * what follows, so that a text seems to be where it is not. */
size_t lc_text_harmful(const char *text, size_t len);
/* A character, and not harmful. */
size_t lc_text_shown(const char *text, size_t len);
/* A blank for some program: Unicode's White_Space, without control characters of ASCII. */
size_t lc_text_blank(const char *text, size_t len);

#endif
