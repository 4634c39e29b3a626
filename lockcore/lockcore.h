/* SPDX-License-Identifier: MIT
 *
 * lockcore.h - the engine behind the files: locks of one ZooKeeper sub-tree.
 *
 * A lock is a persistent node below the root; whoever wants it puts one
 * ephemeral sequential child there, a taker's *entry*, and holds the lock
 * when that entry is first. The engine owns every entry from before its create
 * is sent until ZooKeeper has said that it is gone; the caller owns the taker.
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
 * A lease is what a mount may rely on without asking: until its deadline the
 * ensemble cannot have given the lock away (lease.h). It is compared with the
 * clock at each grant and each use, since timers are late after SIGSTOP.
 *
 * One thread. Nothing here waits, and no callback runs inside the call that
 * caused it: callbacks run from lc_process(). They may call anything but
 * lc_process() and lc_destroy(). Times are microseconds of the clock handed in
 * unless a name ends in _ms: those are wall clock, since 1970. Errors are
 * negative errno values. No ZooKeeper code and no znode path passes this door:
 * a lock is named by its path below the root, "build" or "team/deploy", and the
 * root itself is "".
 */
#ifndef LOCKCORE_H
#define LOCKCORE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ensemble;
struct lc;       /* the engine of one mount */
struct lc_taker; /* one taker: one open of a door */
struct lc_call;  /* one question asked of the ensemble */

#define LC_NAME_MAX 255          /* bytes of one lock's name */
#define LC_PATH_MAX 1023         /* bytes of a lock's path with the root: ENAMETOOLONG */
#define LC_REASON_MAX 4096       /* bytes of a reason: EFBIG */
#define LC_HOST_MAX 15           /* bytes of the host name that go into an entry */
#define LC_COMMAND_MAX 15        /* bytes of a command's name (comm, TASK_COMM_LEN) */
#define LC_VALUE_MAX (64 * 1024) /* bytes of a lock's value: EFBIG */
#define LC_SLOTS_MAX 10000       /* how many may hold a lock exclusively at a time */

/* Each listing of a lock carries the locks below it. Whoever may make some there may make
 * so many that the lock has no more than this, its owner more; root is not limited. */
#define LC_BELOW_MAX 1000
#define LC_BELOW_OWNER_MAX 10000

/* All entries of one session go with one transaction when it ends; one of more
 * than about 2 MiB of paths cannot be read back by the servers and takes the
 * ensemble down (ZOOKEEPER-4306). All watched paths go into one request when a
 * client connects again; beyond 1 MiB (jute.maxbuffer) it never could
 * (ZOOKEEPER-706), and every holder's entry is watched. So this is the limit of both
 * together; beyond it takers get ENOLCK. */
#define LC_ENTRY_BYTES_MAX (1040 * 1000)
/* Of which the locks' own watches, without their holders', may be so much. */
#define LC_WATCH_BYTES_MAX (768 * 1024)
/* No user but root may have more than half of either. */
#define LC_USER_BYTES_MAX (LC_ENTRY_BYTES_MAX / 2)

/* A question (lc_stat ... lc_confirm) is answered within this time: -EHOSTUNREACH, or -EBUSY if
 * it could not even be asked since the same user has asked for too much else. */
#define LC_CALL_TIMEOUT_US (2 * 1000 * 1000)

/* A session's requests are answered in their order, so what only reads must not be much at a
 * time, or takers would wait behind it. Of the same thing one request is under way, for all
 * who asked before it was sent; of lists (a queue, the locks below) one in all, and after it
 * none for so long for each name that it had; of all else so many in all, and for one user. */
#define LC_LIST_REST_US 3
#define LC_READS_MAX 32
#define LC_ROOT_READS_MAX 24
#define LC_USER_READS_MAX 16
/* Who is told may ask again at once: so many are told in a turn, and then for so long none. */
#define LC_TOLD_MAX 16
#define LC_TOLD_REST_US 1000

#define LC_FOREVER INT64_MAX

/* What a lock keeps about itself. */
struct lc_attributes {
	uid_t uid;
	gid_t gid;
	mode_t mode;      /* of the directory, permission bits */
	mode_t door_mode; /* of its doors, rw bits */
};

enum lc_level { LC_ERROR, LC_WARNING, LC_NOTICE, LC_INFO };

struct lc_config {
	const char *root;           /* "/locks": absolute, not "/", no slash at the end */
	bool make_root;             /* make it when it is absent */
	const char *host;           /* as the other hosts shall see it in the queue */
	int64_t session_timeout_us; /* asked for; the ensemble may grant another */
	int64_t tick_time_us;       /* the servers' tickTime, never less than it */
	/* How long before the lease's end the caller begins to stop those who lose a
	 * lock; an entry that is lost is then deleted only after lc_lost_done(), or
	 * after a session timeout. 0: nobody is stopped, and it is deleted at once. */
	int64_t loss_lead_us;
	uid_t uid;                    /* whose the root is */
	struct lc_attributes without; /* of locks that have none: other clients made them */

	int64_t (*clock_us)(void *ctx); /* goes on while suspended, is not slewed */
	int64_t (*wall_ms)(void *ctx);
	void (*random)(void *ctx, void *ret_bytes, size_t len);
	void (*report)(void *ctx, enum lc_level level, const char *text); /* one line */
	/* Whether something was seen, since it was asked last, that tells that clock_us may
	 * have stood still for a while. May be NULL. */
	bool (*disrupted)(void *ctx);
	/* The lease's end has moved; INT64_MIN: there is none. May be NULL. */
	void (*deadline)(void *ctx, int64_t deadline_us);
	void *ctx;
};

/* 0, or -EINVAL (root, host), -ENOMEM, or what opening the session gives. */
int lc_create(const struct lc_config *config, struct ensemble *ensemble, struct lc **ret_lc);
/* `farewell`: end the session, which deletes what is left of its entries at
 * once; may block for some seconds. Otherwise they go with the session timeout. */
void lc_destroy(struct lc *lc, bool farewell);

/* The caller's loop: fill in the descriptor to poll and return the longest wait;
 * then hand in what poll(2) said. Both once every turn. */
int64_t lc_prepare(struct lc *lc, struct pollfd *ret_pollfd);
void lc_process(struct lc *lc, short revents);

enum lc_state {
	LC_CONNECTING, /* no session yet */
	LC_READY,      /* connected, and a write was answered on this connection */
	LC_SUSPENDED,  /* contact is lost; the session may still live */
	LC_UNUSABLE,   /* for good: lc_status() says why */
};

/* What has happened since the start. takes = grants + failures + abandoned + those that
 * are not told yet. */
#define LC_WAIT_BUCKETS 12
#define LC_FAILURES 12

struct lc_counters {
	unsigned long takes;     /* of lc_take() */
	unsigned long grants;    /* told taken(0) */
	unsigned long hand_offs; /* granted by a holder of this mount, without asking */
	unsigned long losses;    /* told lost() */
	unsigned long evictions; /* entries taken away from their takers here */
	unsigned long abandoned; /* left before they were told anything */
	unsigned long doubts;    /* the clock was said to have stood still */
	/* Told, or returned by lc_take(): by errno, in the order of lc_failure_codes. */
	unsigned long failures[LC_FAILURES];
	unsigned long requests; /* sent to the ensemble; a transaction is one */
	/* Grants by how long they waited: at most lc_wait_bounds_us[i], and more than the one
	 * before; the last is for all above. */
	unsigned long waits[LC_WAIT_BUCKETS + 1];
	int64_t waited_us; /* the sum */
};
/* Positive; the last, 0, is for all others. */
extern const int lc_failure_codes[LC_FAILURES];
extern const int64_t lc_wait_bounds_us[LC_WAIT_BUCKETS];

struct lc_status {
	enum lc_state state;
	int why; /* LC_UNUSABLE: -EKEYREJECTED credentials refused, or none
	                              * given and some wanted; -EACCES no right to write the
	                              * root; -ENOENT no root; -ENOTDIR an ephemeral node;
	                              * -ERANGE session too short for the lease (reported) */
	int64_t session;
	int64_t session_timeout_us; /* the smallest granted in this session; 0: none yet */
	int64_t tick_time_us;
	int64_t lease_left_us; /* never below 0 */
	const char *server;
	unsigned holders, waiters; /* of this mount */
	unsigned losing;           /* lost, and not lc_lost_done() yet */
	unsigned leaving;          /* entries that are still to be deleted */
	unsigned entries;          /* that are there, or may be */
	size_t entry_bytes;
	unsigned long connections, sessions; /* so far */
	struct lc_counters counters;
};
void lc_status(struct lc *lc, struct lc_status *ret_status);
bool lc_ready(const struct lc *lc);
/* Looks whether the clock is to be believed (config.disrupted). True: who holds may have
 * lost, and within 2 s it is known. Until then nothing is to be asked of the engine on
 * anybody's behalf: nobody holds, as far as it can tell, and yet nobody has lost. */
bool lc_doubted(struct lc *lc);
/* 0, or why it is unusable, as in lc_status(). */
int lc_why(const struct lc *lc);
/* This mount's host, as it stands in the names of its entries. */
const char *lc_host(const struct lc *lc);
const char *lc_state_name(enum lc_state state);

/* ---- taking ---- */

enum lc_mode { LC_EXCLUSIVE, LC_SHARED };

struct lc_request {
	const char *lock;  /* path below the root */
	int64_t czxid;     /* of the lock that is meant; 0: whichever has its name. ENOENT: it is
	                        * another one */
	enum lc_mode mode; /* LC_SHARED: beside other shared takers */
	/* Shared, held, of the same lock: the new one is to take its place. It does not wait
	 * for that one, and when it holds the caller leaves that one. EDEADLK (EAGAIN if
	 * wait_us is 0): an exclusive entry stands in between, which waits for it. */
	struct lc_taker *instead;
	int64_t wait_us; /* 0: at once or EAGAIN; LC_FOREVER; else ETIMEDOUT */
	pid_t pid;       /* 0: not visible */
	uid_t uid;
	const char *command;
	const char *reason; /* shown from the start; NULL or empty: none. Cut at LC_REASON_MAX */
};

/* Exactly once, unless lc_leave() comes first. 0: held. Besides those above:
 *   EAGAIN, EDEADLK       the ensemble has said that somebody is in the way
 *   ETIMEDOUT             wait_us is over
 *   ENOENT, ECANCELED     the lock, or the entry, was removed
 *   EHOSTUNREACH          of one that does not wait: no answer in time
 *   ESHUTDOWN             lc_drain(), lc_forfeit(), or unusable
 *   ENOLCK                a limit: of entries here, or a quota of the ensemble
 *   EACCES                the ensemble closes the lock to this mount
 *   EPROTO                beside an entry that is deaf (lc_entry) */
typedef void lc_taken_fn(void *ctx, int err);
/* At most once, after taken(0). */
typedef void lc_lost_fn(void *ctx);

/* 0, or at once -ENOMEM, -ENAMETOOLONG, -ESHUTDOWN, -ENOLCK. */
int lc_take(struct lc *lc, const struct lc_request *request, lc_taken_fn *taken, lc_lost_fn *lost,
            void *ctx, struct lc_taker **ret_taker);
/* Who waits already is to take the place of one that shares, as with `instead`. False: not so. */
bool lc_replace(struct lc_taker *taker, struct lc_taker *instead);
/* Stop waiting, give the lock back, or drop what is left of a lost one. */
void lc_leave(struct lc_taker *taker);

/* Those who lost it are gone: its entry may go too. Ignored unless it is lost. */
void lc_lost_done(struct lc_taker *taker);

/* Held at this moment, by the clock. False is for ever, but while lc_doubted(). */
bool lc_holds(struct lc_taker *taker);
/* The fencing token: the czxid of the entry. 0: lc_fetch_token() has to be asked first. */
int64_t lc_token(const struct lc_taker *taker);
/* The node name of its entry; NULL: it has none, or not yet. */
const char *lc_znode(const struct lc_taker *taker);
/* Shown beside the holder. 0, -EFBIG, -EIO: lost; answered from the lease. */
int lc_set_reason(struct lc_taker *taker, const char *text, size_t len);

/* No takers any more: -ESHUTDOWN for new ones and for all that wait. */
void lc_drain(struct lc *lc);
/* The same, and whoever holds has lost it. Their entries stay until they leave, whatever
 * lc_lost_done() says: they may be at work. */
void lc_forfeit(struct lc *lc);
/* Nobody holds, and nothing is left to delete. */
bool lc_idle(const struct lc *lc);

/* ---- looking, making, removing: each answered once, unless cancelled. `uid`: who asks, whose
 * share it uses ---- */

typedef void lc_done_fn(void *ctx, int err);
void lc_cancel(struct lc_call *call);
/* Whether nothing was sent yet that may have been done, so that nobody who cancels and asks
 * again does it twice. */
bool lc_may_cancel(const struct lc_call *call);

struct lc_lock_info {
	int64_t czxid; /* another one after it was removed and made again */
	int64_t ctime_ms, mtime_ms;
	bool has_attributes; /* false: made by another client */
	struct lc_attributes attributes;
	unsigned slots;    /* how many may hold it exclusively at a time; 1 unless written */
	unsigned children; /* entries in its queue and locks below it */
};
typedef void lc_stat_fn(void *ctx, int err, const struct lc_lock_info *info);
/* -ENOENT only after the ensemble has said so twice, a sync in between. */
int lc_stat(struct lc *lc, const char *lock, uid_t uid, lc_stat_fn *done, void *ctx,
            struct lc_call **ret_call);

/* One entry of a queue, from its name alone. */
struct lc_entry {
	const char *znode; /* the node's name, of any length: others may have made it */
	int64_t number;    /* the sequence number */
	unsigned repeat;   /* how many entries before it have the same number */
	enum lc_mode mode;
	bool ours;                  /* a zklockfs mount's, by the shape of the name */
	bool deaf;                  /* of a client that would not wait for ours: takers get EPROTO
	                        * while it stands there */
	bool held;                  /* nobody stands before it that it has to wait for */
	char host[LC_HOST_MAX + 1]; /* "-" when not ours */
	pid_t pid;                  /* 0 when unknown */
};

struct lc_listing {
	uint64_t serial;                /* another answer has another one */
	const struct lc_entry *entries; /* in queue order */
	size_t entry_count;
	const char *const *locks; /* the locks below, sorted */
	size_t lock_count;
};
typedef void lc_list_fn(void *ctx, int err, const struct lc_listing *listing);
int lc_list(struct lc *lc, const char *lock, uid_t uid, lc_list_fn *done, void *ctx,
            struct lc_call **ret_call);

/* One entry with what its taker wrote into it. Missing: -1, 0 or "". */
struct lc_entry_info {
	struct lc_entry entry;
	int64_t token;
	int64_t session;
	int64_t queued_since_ms; /* by the ensemble's clock */
	int64_t held_since_ms;   /* by its host's clock; -1 where it has not held for 20 ms yet */
	int64_t uid;
	char command[LC_COMMAND_MAX + 1];
	char reason[LC_REASON_MAX + 1];
};
typedef void lc_entries_fn(void *ctx, int err, const struct lc_entry_info *infos, size_t count);
/* The entry of that node name, or with NULL all holders; 16 at most. -ENOENT:
 * no such entry or lock. */
int lc_entries(struct lc *lc, const char *lock, uid_t uid, const char *znode, lc_entries_fn *done,
               void *ctx, struct lc_call **ret_call);
/* The same for entries known from a listing, which is not read again: all at once, without
 * those that are gone. */
int lc_known(struct lc *lc, const char *lock, uid_t uid, const struct lc_entry *known, size_t count,
             lc_entries_fn *done, void *ctx, struct lc_call **ret_call);

/* -EEXIST, -ENOENT (no parent), -EACCES, -EINVAL (lc_check_name), -EDQUOT (LC_BELOW_MAX; those
 * who ask at the same moment may all be within it). */
int lc_mkdir(struct lc *lc, const char *lock, const struct lc_attributes *attributes,
             lc_done_fn *done, void *ctx, struct lc_call **ret_call);
/* `by`: who asks: root, or the owner of the lock or of the one above, as they are now, else
 * -EPERM. -EBUSY: held or waited for, or the root of a mount; -ENOTEMPTY: locks below. */
int lc_rmdir(struct lc *lc, const char *lock, uid_t by, lc_done_fn *done, void *ctx,
             struct lc_call **ret_call);
/* Change what a lock keeps about itself, by compare-and-set on its data. -EPERM: the
 * data is another client's and is left alone, or who asks may not. -ENOENT: also if it was
 * removed and made again meanwhile, and the change may have met the new one: that is reported. */
struct lc_change {
	uid_t by;      /* who asks: root, or the lock's owner at this moment */
	int64_t czxid; /* of the lock that is meant; 0: whichever has its name */
	bool set_uid, set_gid, set_mode, set_door_mode;
	struct lc_attributes attributes; /* what is set */
	unsigned slots;                  /* 1 to LC_SLOTS_MAX; 0: as it is */
};
int lc_change(struct lc *lc, const char *lock, const struct lc_change *change, lc_done_fn *done,
              void *ctx, struct lc_call **ret_call);

/* The text that stays with a lock from holder to holder. */
typedef void lc_value_fn(void *ctx, int err, const char *value, size_t len);
int lc_value(struct lc *lc, const char *lock, uid_t uid, lc_value_fn *done, void *ctx,
             struct lc_call **ret_call);
/* By its exclusive holder, in one transaction with the check that its entry is still
 * there: -EIO if not. `append`: behind what is there. -EFBIG, -EPERM as above. */
int lc_set_value(struct lc_taker *holder, const char *value, size_t len, bool append,
                 lc_done_fn *done, void *ctx, struct lc_call **ret_call);

/* Take an entry away from its taker: one of another client at once; one of a mount
 * is marked, and its mount tells the taker (ECANCELED, or it loses the lock), stops who
 * has to be stopped and deletes it. After a session timeout it is deleted here, also
 * where its mount has forfeited, and somebody may be at work. Root may, the lock's owner, and
 * the user who took an entry of a mount, as they are at this moment: -EPERM. -ENOENT: it is
 * gone. */
struct lc_evictor {
	uid_t uid;
	const char *name; /* for the logs */
	int64_t token;    /* of the entry that is meant; 0: whichever has that name */
};
int lc_evict(struct lc *lc, const char *lock, const char *znode, const struct lc_evictor *by,
             lc_done_fn *done, void *ctx, struct lc_call **ret_call);

/* fsync: 0 only if the entry was there during the call, else -EIO. */
int lc_confirm(struct lc_taker *taker, lc_done_fn *done, void *ctx, struct lc_call **ret_call);

/* Whether somebody waits behind it, time to yield: `err` 1 for yes, 0 for no, or as of
 * every question. */
int lc_waited_for(struct lc_taker *taker, lc_done_fn *done, void *ctx, struct lc_call **ret_call);
/* Tell, once, from lc_process(), when the answer of lc_waited_for() may have changed;
 * NULL: do not. To be set before asking. */
typedef void lc_stirred_fn(void *ctx);
void lc_attend(struct lc_taker *taker, lc_stirred_fn *stirred);

/* Then lc_token() knows it. -EIO: not held. */
int lc_fetch_token(struct lc_taker *taker, lc_done_fn *done, void *ctx, struct lc_call **ret_call);

/* A name a lock can have: 0, -EINVAL, -ENAMETOOLONG. `ret_why`: a sentence. */
int lc_check_name(const char *name, const char **ret_why);

#endif
