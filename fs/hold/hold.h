/* SPDX-License-Identifier: MIT
 *
 * hold.h - one hold: one taker of the engine, from the request that asks for the lock to the end of
 * the last claim that has the lock by it.
 *
 *         hold_take()
 *              ▼
 *            [NEW] ◄───────────────────────────── hold_adopt(): the same process asks again
 *              │ hold_wait()                              │
 *              ▼                                          │
 *          [WAITING] ──interrupted: EINTR at once──► [LINGERING] ──for too long──► gone
 *           │     │
 *   the lock│     │an error, hold_withdraw(), a family's hold: answered, gone
 *           ▼
 *       [GRANTING] ──kind->granted(): nobody has joined──► gone
 *           │ claim_join()
 *           ▼
 *        [HELD] ──the lock is lost──► [LOST]
 *           │ claim_part() of the last claim:  gone, and the lock is given back (as in LOST);
 *           │ but the least time is not yet over:
 *           ▼
 *        [KEPT] ──then, or when the lock is lost──► gone
 *
 * There are kinds of asking, and of claims:
 *
 *   a lock file          an OPEN asks; the open file is the owner of the one claim
 *   `reentrant`          an OPEN asks; each open file of a family has a claim
 *   `flock`              a FLOCK or SETLK asks; the owner of the claim is the open file or
 *                        the process, so claims may have one open file: flock_claim.h
 *
 * A grant and an interrupt may come at the same time. One thread decides here: the first of them
 * answers the request.
 */
#ifndef FS_HOLD_H
#define FS_HOLD_H

#include "hold/audit.h"
#include "hold/linger.h"
#include "host/process.h"
#include "request/frontend.h"

struct hold;

/* All holds of a mount. */
struct holds {
	unsigned count;       /* holds that wait, linger or are held */
	struct hold *waiting; /* in the order of their requests */
	unsigned seekers;     /* how many of them would join their family's */
	struct hold *held;
	struct hold *admitting; /* families that others may still join, oldest first */
	int64_t admit_until_us; /*   and until when that may go on in this turn */
	uint64_t grants;
	struct ahead_question *questions; /* whether the session of the one ahead has ended */
	struct linger linger;
	struct audit_log audit_log;
};

/* Places in the queue, before and at the head of it; `it` may end. No break. */
#define LINGERING_FOREACH_SAFE(front, it, after)                            \
	for (int state = LINGERS_BEHIND; state <= LINGERS_AT_HEAD; state++) \
		DL_FOREACH_SAFE((front)->holds->linger.lists[state], it, after)

/* A kind of asking, and of claims. */
struct hold_kind {
	/* The lock is held: claim_join(), and answer the request. Or answer an error. If no claim
	 * has joined then, the lock is given back. `ctx` belongs to the kind from now on. */
	void (*granted)(struct hold *hold, struct request *req);
	/* While a request with a lineage waited, the lock was granted to its process or to an
	 * ancestor, by the hold `family`. claim_join() that hold, and answer the request. `ctx`
	 * belongs to the kind from now on, and `waiting` is gone afterwards. */
	void (*found)(struct hold *waiting, struct hold *family, struct request *req);
	/* The granted lock is lost; pollers are woken next. NULL: nothing is to be done. */
	void (*lost)(struct hold *hold);
	/* The hold ends without a grant, and its request is answered: free `ctx`. */
	void (*dropped)(void *ctx);
	/* The record of `ctx` and `where` of a hold that is not granted; what is left to do when
	 * all holds were read, or NULL; and the record of the object that a claim is a part of.
	 * `claim` is NULL if that object is to be made. */
	void (*save_load_ctx)(struct codec *codec, struct hold *hold);
	void (*carried)(struct codec *codec, struct hold *hold);
	struct claim *(*save_load_claim)(struct codec *codec, struct hold *hold,
	                                 struct claim *claim);
};

/* A request for a lock. */
struct hold_request {
	const struct hold_kind *kind;
	struct node *node;     /* the lock file; a reference is taken */
	struct lc_request ask; /* lock_file_request(); hold_take() adds the next two to it */
	struct process caller; /* identified while the request is pending */
	struct hold *replaces; /* or NULL */
	pid_t asker;           /* the process that asks again after EINTR; 0: the caller */
	/* The caller's, if it may join its family's hold; this hold owns it then. NULL: the caller
	 * wants a hold of its own. */
	struct lineage *lineage;
	/* A lingering hold is adopted only by a request of the same process, in the same mode, and
	 * with the same two: the lock file, and 0; or the open file, and the owner of the advisory
	 * lock. */
	const void *where;
	uint64_t owner;
};

enum hold_state {
	HOLD_NEW,
	HOLD_WAITING,   /* a request waits; in front->holds->waiting */
	HOLD_LINGERING, /* no request, but still a place in the queue */
	HOLD_GRANTING,  /* in front->holds->held from now on */
	HOLD_HELD,
	HOLD_LOST,
	HOLD_KEPT, /* no claim has the lock, but the mount keeps it */
	HOLD_GONE,
};

/* An owner that has the lock by a hold. What differs is who that is, and when the lock is given up:
 *
 *   open(2)     the open file    RELEASE
 *   flock(2)    the open file    LOCK_UN, RELEASE      (flock_claim.h)
 *   fcntl(2)    the process      F_UNLCK, FLUSH        (flock_claim.h)
 *
 * It is a part of the owner's object, and has a slot of its own with the guardian. */
struct claim {
	struct hold *hold;         /* NULL: none */
	struct open_file *file;    /* the lock file that it opened, or that it locked */
	pid_t pid;                 /* the process that opened or locked, */
	int life;                  /*   and its pidfd of process_watch() */
	uid_t uid;                 /* of the process; other users may not signal it */
	int slot;                  /* the guardian's; -1: not guarded */
	struct claim *prev, *next; /* in hold->claims */
};

/* All may read these fields. Only hold.c and hold_record.c write them. */
struct hold {
	const struct hold_kind *kind;
	void *ctx; /* the kind's, of the request */
	struct frontend *front;
	struct node *node;
	struct lc_taker *taker; /* NULL: the engine is gone */
	pid_t asker;
	const void *where;
	uint64_t owner;
	struct lineage *lineage;
	struct audit audit; /* which process asked first, as which user, and how */
	struct record record;
	struct claim *claims;   /* in the order of joining; NULL: not granted, or KEPT */
	uint64_t serial;        /* granted: its number among all grants of this mount */
	int64_t most_until_us;  /* granted: the lock is lost then; LC_FOREVER: never */
	int64_t least_until_us; /* granted: it is not given back before; INT64_MIN: at once */
	/* Only these two read and write the fields below. */
	enum hold_state state;                /* changed by hold_step() alone */
	int answer;                           /* LINGERING: the engine's, meanwhile; 0: the lock */
	struct request *req;                  /* WAITING: the request */
	int64_t since_us;                     /* when it came */
	struct lingering lingering;           /* LINGERING, KEPT */
	uint64_t compared;                    /* WAITING: no family up to this grant is its own */
	struct hold *prev, *next;             /* in front->holds->waiting or front->holds->held */
	struct hold *admit_prev, *admit_next; /* in front->holds->admitting */
};

/* The hold that lingers since the last request of this process. The caller changes `ctx` for the
 * new request, then calls hold_wait(). NULL: there is none. Lingering holds of the process for the
 * same lock that do not fit are gone; if the new request does not wait, all of them are. */
struct hold *hold_adopt(struct frontend *front, const struct hold_request *request);
/* 0: hold_wait() must follow. On an error, as of lc_take(), the caller still owns `ctx` and the
 * lineage. */
int hold_take(struct frontend *front, const struct hold_request *request, void *ctx,
              struct hold **ret_hold);
/* The request waits; kind->granted() or an error answers it, maybe at once. The hold may be gone
 * when this returns. */
void hold_wait(struct hold *hold, struct request *req);
/* After a reload: a hold waits for this request already, and waits on. The handler is not to look
 * at the request again: by now it could refuse it. */
bool hold_resume(struct request *req);
/* Ends the hold before it is granted. Returns its request, which must be answered at once; NULL if
 * the hold lingered. */
struct request *hold_withdraw(struct hold *hold);

/* The exclusive hold, not lost, of the nearest living ancestor that has one on this mount, if its
 * user might signal the process. NULL: there is none. */
struct hold *hold_of_family(struct frontend *front, const char *lock,
                            const struct lineage *lineage);

/* The taker with this context was evicted: lc_config.evicted. */
void hold_evicted(void *ctx, void *taker_ctx, const char *by);

/* ---- all of a mount ---- */

/* False: it is said why. */
bool holds_init(struct frontend *front);
/* Ends the lingering holds of a process for a lock: it asks in another way now. */
void holds_drop(struct frontend *front, pid_t pid, const char *lock);
/* Ends all lingering and all kept holds, when the mount ends. */
void holds_drop_all(struct frontend *front);
/* Ends the lingering holds for an open file of the flock file, which is closed: those of one owner,
 * or all if it is NULL. */
void holds_drop_where(struct frontend *front, const void *where, const uint64_t *owner);
/* How many locks are lost and have an open file still; and one of them, or NULL. */
unsigned holds_lost(const struct frontend *front, const struct hold **ret_first);
/* Ends all holds that wait. The claims part next, and give their locks back unless the engine is
 * gone already. */
void holds_end(struct frontend *front);

/* How long until holds_process() has something to do. The loop calls both in every turn. */
int64_t holds_wait(const struct frontend *front);
void holds_process(struct frontend *front, bool process_gone, bool guardian_spoke);

/* ---- claims ---- */

/* One more claim on a hold, by that open file of a lock file. 0; or an error of guardian_hold():
 * its process could not be stopped if the lock were lost. To be called while its request is
 * pending. */
int claim_join(struct claim *claim, struct hold *hold, struct open_file *file,
               const struct process *caller, uid_t uid);
/* Takes the lock from the owner of the claim. With the last claim the hold ends, or is KEPT. */
void claim_part(struct claim *claim);
/* The claim has the lock by another hold from now on, and keeps its slot with the guardian. */
void claim_move(struct claim *claim, struct hold *to);
/* Wakes the pollers of all claims on the hold, as lc_waiters_changed_fn. */
void hold_wake_pollers(void *hold);

/* ---- for hold_record.c ---- */

/* Changes the state, and moves the hold to the lists of that state. */
void hold_step(struct hold *hold, enum hold_state to);
/* The hold is not given back before the lock file's least time, counted from now, is over. */
void hold_keep(struct hold *hold, const struct lock_file *lock_file);
/* Ends the hold: its taker leaves the queue, or gives the lock back. */
void hold_free(struct hold *hold);
bool hold_is_granted(const struct hold *hold);
struct hold *hold_of_lingering(struct lingering *lingering);
/* After a reload: finds its taker in the engine, by its number. False: there is none. */
bool hold_find_taker(struct hold *hold, uint64_t taker_id);

#endif
