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
 *           │ hold_join()
 *           ▼
 *        [HELD] ──the lock is lost──► [LOST]
 *           │ hold_part() of the last holder: gone, and the lock is given back (as in LOST)
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

struct hold;

/* One who has the lock by a hold; part of what the face keeps of it. Each has a slot of
 * its own with the guardian. */
struct holder {
	struct hold *hold;                   /* NULL: none */
	void (*wake)(struct holder *holder); /* who polls it: the lock is lost, or what
	                                        * hold_attend() tells. It may not part here */
	pid_t pid;                           /* who opened or locked: with its start, the process */
	uint64_t start;                      /* 0: not known */
	int life;                            /* and as family_watch() tells it from a later one */
	uid_t uid;                           /* whose he is, who might signal him */
	int slot;                            /* the guardian's; -1: not guarded */
	bool attends;
	struct holder *prev, *next; /* in hold->holders */
};

/* Where the kinds of asking differ. */
struct hold_kind {
	/* What a wait is answered when the kernel would not let it last longer. EINTR
	 * keeps the place; where a program would see an EINTR without a signal as an
	 * unknown error (SETLK) it has to be another one, and the place is given up. */
	int too_long;
	/* The lock is held, and the request is to be answered: hold_join() and answer, and
	 * if nobody is there to hear it (-ENOENT) hold_part() at once, since no RELEASE will
	 * come; or answer an error. If nobody has joined then the lock is given back. From
	 * here on `ctx` is the kind's own. */
	void (*granted)(struct hold *hold, fuse_req_t req);
	/* Of those who told their lineage: while this one waited, the lock was granted to its
	 * process or one it descends from. hold_join() that hold and answer the request.
	 * `ctx` is the kind's own again; `waiting` is gone afterwards. */
	void (*found)(struct hold *waiting, struct hold *family, fuse_req_t req);
	/* The granted lock is lost; the holders are woken next. NULL: nothing is to be done. */
	void (*lost)(struct hold *hold);
	/* The hold ends and was not granted, its request is answered: free `ctx`. */
	void (*dropped)(void *ctx);
};

/* What is asked for, and by whom. */
struct hold_request {
	const struct hold_kind *kind;
	struct node *node; /* the door; a reference is taken */
	enum lc_mode mode;
	int64_t czxid, wait_us; /* as of lc_request */
	struct hold *instead;   /* as of lc_request; NULL */
	struct person person;   /* identified while the request is pending */
	pid_t asker;            /* who would come back after an interrupt; 0: that person */
	uid_t uid;
	const char *reason;      /* as of lc_request; NULL */
	struct lineage *lineage; /* of the person, if its family's hold would do; the hold
	                               * takes it. NULL: only one of its own will */
	/* An interrupted place is for the same process with the same two, in the same mode:
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
	HOLD_GONE,
};

/* To be read by all, written by hold.c. */
struct hold {
	const struct hold_kind *kind;
	void *ctx; /* the kind's, for what it asked */
	struct face *face;
	struct node *node;
	struct lc_taker *taker; /* NULL: the engine is gone */
	enum lc_mode mode;
	struct person person; /* who asked first */
	uid_t uid;
	pid_t asker;
	const void *where;
	uint64_t owner;
	struct lineage *lineage;
	struct holder *holders; /* in the order in which they joined; NULL: not granted */
	/* Nobody else's: */
	enum hold_state state;      /* changed by hold_step() alone */
	fuse_req_t req;             /* WAITING: the request */
	int64_t since_us;           /* WAITING: since when */
	struct lingering lingering; /* LINGERING: its `drop` finds the hold by it */
	int answer;                 /* LINGERING: of the engine meanwhile; 0: the lock */
	uint64_t serial;            /* granted: which grant of this mount */
	uint64_t compared;          /* WAITING: with the families of all grants up to this one */
	struct hold *prev, *next;   /* in face->waiting or face->held */
	struct hold *admit_prev, *admit_next; /* in face->admitting */
};

/* A place that this asker left here by an interrupt: change `ctx` as the new request
 * wants it, then hold_wait(). NULL: none; what the same process left elsewhere at this
 * lock is given up, as is everything if it does not want to wait now. */
struct hold *hold_adopt(struct face *face, const struct hold_request *request);
/* 0: hold_wait() is to follow; or an error at once (lc_take), and `ctx` and the lineage
 * stay the caller's. */
int hold_take(struct face *face, const struct hold_request *request, void *ctx,
              struct hold **ret_hold);
/* Takes the request: it is answered with granted() or an error, maybe at once. The hold
 * may be gone when this returns. */
void hold_wait(struct hold *hold, fuse_req_t req);
/* What was asked for is had by another way, or not to be had: gone. The request, which
 * the caller answers at once, or NULL: it was interrupted before. */
fuse_req_t hold_withdraw(struct hold *hold);

/* One more has the lock by it, as the opener of that door's file: 0, or as of
 * guardian_hold(): it could not be stopped, should the lock get lost. While its request is
 * pending. */
int hold_join(struct hold *hold, struct holder *holder, void (*wake)(struct holder *holder),
              const struct person *person, uid_t uid, const struct node *door);
/* It has not any more; with the last one the hold is gone. */
void hold_part(struct holder *holder);
/* It has the lock by that hold instead, and keeps its slot. */
void hold_move(struct holder *holder, struct hold *to);
/* Wake it, once, when it may have changed whether somebody waits behind the lock. */
void hold_attend(struct holder *holder);
/* The lock as the nearest of them, living, has it for itself alone: an exclusive hold of
 * this mount, not lost, whose user might signal the process. NULL: none has. */
struct hold *hold_of_family(struct face *face, const char *lock, const struct lineage *lineage);

/* ---- all of a mount ---- */

int holds_init(struct face *face);
/* Give up the interrupted places of that process (0: of all) at that lock (NULL: at
 * all): it comes back by another way. */
void holds_drop(struct face *face, pid_t pid, const char *lock);
/* And those left at one place, which ends: an open file of the flock door. `owner`: only
 * those of it, NULL for all. */
void holds_drop_where(struct face *face, const void *where, const uint64_t *owner);
/* Nobody waits any more. `leave`: every descriptor is closed, and the holders, which part
 * next, give their locks back. Otherwise the engine is gone already, and the guardian
 * still looks after them. */
void holds_end(struct face *face, bool leave);

/* For the loop: how long until one has waited or lingered long enough, and what is to
 * be done then. */
int64_t holds_wait(const struct face *face);
void holds_process(struct face *face, bool process_gone, bool guardian_spoke);

#endif
