/* SPDX-License-Identifier: MIT
 *
 * hold.h - one hold: one taker of the engine, from the request that asks for the lock to
 * the last holder that has the lock by it.
 *
 *         hold_take()
 *              ▼
 *            [NEW] ◄───────────────────────────── hold_adopt(): the same process asks again
 *              │ hold_wait()                              │
 *              ▼                                          │
 *          [WAITING] ──interrupted: EINTR at once──► [LINGERING] ──for too long──► gone
 *           │     │
 *   the lock│     │an error, too long, hold_withdraw(), a family's hold: answered, gone
 *           ▼
 *       [GRANTING] ──kind->granted(): nobody has joined──► gone
 *           │ holder_join()
 *           ▼
 *        [HELD] ──the lock is lost──► [LOST]
 *           │ holder_part() of the last holder: gone, and the lock is given back (as in LOST);
 *           │ but before the door's least time is over:
 *           ▼
 *        [KEPT] ──then, or when the lock is lost──► gone
 *
 * What was asked for differs, and so does the holder:
 *
 *   a door               an OPEN asks; the open file is the one holder
 *   a reentrant door     an OPEN asks; the open files of a family are the holders
 *   the flock door       a SETLK asks; the owner of the advisory lock is the holder,
 *                        and one open file may have several owners
 *
 * Grant or interrupt: what answers the request came first. This is decided here, in one
 * thread.
 */
#ifndef FS_HOLD_H
#define FS_HOLD_H

#include "face.h"
#include "family.h"
#include "story.h"

struct hold;
struct holder;

/* Where the kinds of asking differ. */
struct hold_kind {
	/* The errno of a request that must not wait longer, for the kernel's sake. After EINTR
	 * the hold lingers. A program that gets EINTR from SETLK without a signal takes it for
	 * an unknown error: there it is another errno, and the hold is gone. */
	int too_long;
	/* The lock is held: holder_join(), and answer the request. Or answer an error. If nobody
	 * has joined, the lock is given back. `ctx` belongs to the kind from now on. */
	void (*granted)(struct hold *hold, fuse_req_t req);
	/* Of requests with a lineage: while this one waited, the lock was granted to its process
	 * or to an ancestor. holder_join() that hold, and answer the request. `ctx` belongs to the
	 * kind from now on, and `waiting` is gone afterwards. */
	void (*found)(struct hold *waiting, struct hold *family, fuse_req_t req);
	/* The granted lock is lost; the holders are woken next. NULL: nothing is to be done. */
	void (*lost)(struct hold *hold);
	/* A holder is to be polled again: the lock is lost, or as of holder_watch_waiters(). It
	 * must not part. */
	void (*wake)(struct holder *holder);
	/* The hold ends and was not granted, its request is answered: free `ctx`. */
	void (*dropped)(void *ctx);
	/* Over a reload: `ctx` and `where` of a hold that was not granted; what is left to do of it
	 * when all holds are there, or NULL; and what a holder of this kind is a part of. NULL: it
	 * is to be made. */
	void (*carry_ctx)(struct carry *carry, struct hold *hold);
	void (*carried)(struct carry *carry, struct hold *hold);
	struct holder *(*carry_holder)(struct carry *carry, struct hold *hold,
	                               struct holder *holder);
};

/* What is asked for, and by which process. */
struct hold_request {
	const struct hold_kind *kind;
	struct node *node; /* the door; a reference is taken */
	enum lc_mode mode;
	int64_t czxid, wait_us; /* as of lc_request */
	struct hold *replaces;  /* as of lc_request; NULL */
	struct caller caller;   /* identified while the request is pending */
	pid_t asker;            /* the process that would ask again after EINTR; 0: the caller */
	uid_t uid;
	const char *reason;      /* as of lc_request; NULL */
	struct lineage *lineage; /* of the caller, if its family's hold would do; the hold
	                               * takes it. NULL: only one of its own will */
	/* A hold that lingers is for the same process, in the same mode, and with the same two:
	 * the door, and 0; or the open file, and the owner of the advisory lock. */
	const void *where;
	uint64_t owner;
};

enum hold_state {
	HOLD_NEW,
	HOLD_WAITING,   /* a request is parked, in face->waiting */
	HOLD_LINGERING, /* no request, but its place in the queue */
	HOLD_GRANTING,  /* in face->held from now on */
	HOLD_HELD,
	HOLD_LOST,
	HOLD_KEPT, /* no holder, but the lock */
	HOLD_GONE,
};

/* To be read by all, written by hold.c, holder.c and hold_carry.c. */
struct hold {
	const struct hold_kind *kind;
	void *ctx; /* the kind's, for what it asked */
	struct face *face;
	struct node *node;
	struct lc_taker *taker; /* NULL: the engine is gone */
	enum lc_mode mode;
	struct caller caller; /* that asked first */
	uid_t uid;
	pid_t asker;
	const void *where;
	uint64_t owner;
	struct lineage *lineage;
	struct story story;
	struct kept kept;
	struct holder *holders; /* in the order in which they joined; NULL: not granted, or KEPT */
	uint64_t serial;        /* granted: which grant of this mount */
	int64_t most_until_us;  /* granted: it is lost then; LC_FOREVER */
	int64_t least_until_us; /* granted: not given back before; INT64_MIN */
	/* Read by these three alone: */
	enum hold_state state;      /* changed by hold_step() alone */
	fuse_req_t req;             /* WAITING: the request */
	uint64_t unique;            /*   and its number */
	int64_t since_us;           /* WAITING: since when */
	struct lingering lingering; /* LINGERING, KEPT: its `drop` finds the hold by it */
	int answer;                 /* LINGERING: of the engine meanwhile; 0: the lock */
	uint64_t compared;          /* WAITING: with the families of all grants up to this one */
	struct hold *prev, *next;   /* in face->waiting or face->held */
	struct hold *admit_prev, *admit_next; /* in face->admitting */
};

/* The hold that lingers since the last request of this process: change `ctx` as the new request
 * wants it, then hold_wait(). NULL: there is none. Holds of the process for the same lock that do
 * not fit, or all if the new request does not wait, are gone. */
struct hold *hold_adopt(struct face *face, const struct hold_request *request);
/* 0: hold_wait() must follow. On an error, as of lc_take(), `ctx` and the lineage still belong
 * to the calling function. */
int hold_take(struct face *face, const struct hold_request *request, void *ctx,
              struct hold **ret_hold);
/* Takes the request, which granted() or an error answers, maybe at once. The hold may be gone when
 * this returns. */
void hold_wait(struct hold *hold, fuse_req_t req);
/* The hold that has waited for this request since before a reload, and goes on; NULL: none. */
struct hold *hold_resume(struct face *face, fuse_req_t req);
/* The hold is not needed any more: it is gone. Returns the request, which must be answered at once,
 * or NULL if the hold lingered. */
fuse_req_t hold_withdraw(struct hold *hold);

/* The kind has changed what it keeps of the hold, or of one of its holders. */
void hold_changed(struct hold *hold);

/* Somebody has evicted the taker whose context in the engine this is: as of lc_config. */
void hold_evicted(void *taker_ctx, const char *by);

/* ---- all of a mount ---- */

int holds_init(struct face *face);
/* End the holds that linger of that process (0: of all) for that lock (NULL: for all): the process
 * asks in another way now. */
void holds_drop(struct face *face, pid_t pid, const char *lock);
/* End the holds that are kept: the mount goes. */
void holds_drop_kept(struct face *face);
/* End the holds that linger for an open file of the flock door, which is closed: those of one
 * owner, or all if it is NULL. */
void holds_drop_where(struct face *face, const void *where, const uint64_t *owner);
/* No request waits any more. `leave`: every descriptor is closed; the holders part next and give
 * their locks back. Otherwise the engine is gone already, and the guardian goes on looking after
 * the holders. */
void holds_end(struct face *face, bool leave);

/* For the loop: how long until holds_process() has something to do. It is called in every turn. */
int64_t holds_wait(const struct face *face);
void holds_process(struct face *face, bool process_gone, bool guardian_spoke);

/* ---- for holder.c and hold_carry.c ---- */

/* The lists that a hold stands in follow from its state. */
void hold_step(struct hold *hold, enum hold_state to);
/* Leaves the queue, or gives the lock back. */
void hold_free(struct hold *hold);
bool hold_is_granted(const struct hold *hold);
struct hold *hold_of_lingering(struct lingering *lingering);
/* Over a reload: its taker in the engine, by its number. False: there is none. */
bool hold_claim(struct hold *hold, uint64_t taker_id);

#endif
