/* SPDX-License-Identifier: MIT
 *
 * taker.h - one taker: the results that the frontend knows, and so whether its entry shall exist.
 *
 *                       grant, told                  lc_leave()
 *      [WAITING] -------------------------> [HELD] ------------------.
 *        ^  |  ^----- lost before it -------- | | lost               |
 *        |  |         was told                | v                    v
 *        |  | refused, evicted, too late   [LOST] -----------> [LEFT] -- freed when the entry
 *        |  '----------> [FAILED] ---------------------------->   ^      is absent and nothing
 *   lc_take()    '------------------------------------------------'      is outstanding
 *
 *   WAITING   has three kinds: QUEUED: its entry exists, or shall. PROBING: it will not wait,
 *             or not behind many, and a listing first says whether it may come. MISSING: its
 *             entry was gone, evicted or with its session; which of the two is not known yet
 *   LOST      the entry is *guarded*: it stays until the taker leaves, or a session timeout is
 *             over; *forfeited*: until the taker leaves;
 *             or is *given up*: it is deleted
 */
#ifndef LOCKCORE_TAKER_H
#define LOCKCORE_TAKER_H

#include "lock/batch.h"
#include "lock/entry_data.h"

/* A lock that is held for longer than this watches its entry, and says there since when it is
 * held. Shorter holds, which are the most, are spared these requests. */
#define LONG_HOLD_US 20000

struct takers {
	struct lc_taker *due;                       /* to be told, in this order */
	struct lc_taker *waiters_changed;           /* to be told so: waiters.c */
	unsigned waiters, holders, losing, leaving; /* as in lc_status */
	unsigned unclaimed;                         /* since lc_adopt() */
	bool missing;                               /* one of the takers is MISSING */
};

enum taker_state { TAKER_WAITING, TAKER_HELD, TAKER_LOST, TAKER_FAILED, TAKER_LEFT };
enum taker_wait { WAIT_QUEUED, WAIT_PROBING, WAIT_MISSING };
enum taker_loss { LOSS_GUARDED, LOSS_FORFEITED, LOSS_GIVEN_UP };

struct lc_taker {
	struct entry entry; /* first: see taker_of() */
	enum taker_state state : 3;
	enum taker_wait wait : 2;            /* WAITING */
	enum taker_loss loss : 2;            /* LOST */
	bool told_taken : 1, told_token : 1; /* lc_taken_fn; lc_give_token() */
	bool immediate : 1;                  /* EAGAIN rather than wait */
	bool spare : 1;                      /* LEFT: its entry waits for the next take */
	unsigned crowd : 20;          /* PROBING: EAGAIN rather than behind so many; 0: any */
	int error;                    /* FAILED: what the frontend is told */
	struct lc_taker *prev, *next; /* in lock->takers */
	struct lc_taker *due_prev, *due_next; /* in takers->due: NULL if it is not there */

	/* What was asked for. */
	int64_t meant;                           /* the czxid of the lock; 0: any of that name */
	uint64_t since;                          /* the last listing that was sent before it came */
	unsigned place;                          /* grant/decide.c: on the slate */
	int64_t asked_us, wait_until_us;         /* when; until when, or LC_FOREVER */
	int64_t hold_until_us;                   /* HELD: when it loses the lock; LC_FOREVER */
	struct lc_taker *replaces, *replaced_by; /* the shared holder whose place it takes; back */
	lc_taken_fn *taken;
	lc_lost_fn *lost;
	void *ctx;

	struct timer limit;   /* WAITING, HELD: its time is up; else: delete it now, or again */
	struct timer recheck; /* HELD: watches the entry, tells since when; else: sends again */
	struct charge charge; /* for its entry */
	lc_waiters_changed_fn *waiters_changed;       /* waiters.c */
	struct lc_taker *changed_prev, *changed_next; /* in takers->waiters_changed, or NULL */
};

static inline struct lc_taker *taker_of(struct entry *entry)
{
	return (struct lc_taker *)entry;
}

static inline struct lc_taker *taker_of_record(struct record *record)
{
	return (struct lc_taker *)((char *)record - offsetof(struct entry, record));
}

/* HELD, and its entry is there as far as is known. */
bool taker_holds_entry(const struct lc_taker *taker);
/* The taker waits, and may be refused for what stands before it. */
bool taker_is_picky(const struct lc_taker *taker);
/* The lock is the one that the taker means, as far as was seen last. */
bool taker_means(const struct lc_taker *taker);

/* ---- what a lock's takers are to each other: these only look ---- */

/* A holder of this mount certainly bars the way of any new taker of that mode. */
bool lock_bars(const struct lock *lock, enum lc_mode mode);

/* ---- changing it ---- */

/* Puts a new taker, WAITING, into the lock's list. It belongs to the lock from here on. */
void taker_enter(struct lc_taker *taker);
/* A taker of the former process, in its state. `due`: the frontend is to be told of it. */
void taker_resume(struct lc_taker *taker, bool due);
/* A waiting taker is to take the place of a shared holder. */
void taker_replace(struct lc_taker *taker, struct lc_taker *old);
/* Does what the entry needs next, if anything: create, delete, or free the taker. */
void taker_step(struct lc_taker *taker);
/* WAITING -> HELD. */
void taker_grant(struct lc_taker *taker);
/* WAITING -> FAILED. */
void taker_fail(struct lc_taker *taker, int error);
/* HELD -> LOST; or WAITING again, if the frontend was not told of the grant. */
void taker_lose(struct lc_taker *taker);
/* LOST: from now on there is a session timeout to stop the processes under the lost lock. */
void taker_guard(struct lc_taker *taker);
/* LOST: no process works under the lost lock any more. */
void taker_give_up(struct lc_taker *taker);
/* Any state -> LEFT. */
void taker_leave(struct lc_taker *taker);
/* HELD -> LEFT, and the entry is deleted only at that time: until then it is *spare*. */
void taker_leave_spare(struct lc_taker *taker, int64_t until_us);
/* LEFT -> HELD by the spare entry. */
void taker_reuse(struct lc_taker *taker);
/* A spare entry is deleted now. Without one nothing is done. */
void taker_drop_spare(struct lc_taker *taker);
/* WAITING: changes the kind of wait. */
void taker_set_wait(struct lc_taker *taker, enum taker_wait wait);
/* WAITING, and its entry is gone: whether it was evicted is not known yet. */
void taker_miss(struct lc_taker *taker);
/* The taker takes no other's place any more, and no other takes its place. */
void taker_part(struct lc_taker *taker);
/* A request could not be sent, or was refused: it is tried again in a second. */
void taker_try_later(struct lc_taker *taker);
/* The frontend is told now, or has nothing to be told any more. */
void taker_not_due(struct lc_taker *taker);
/* Frees the taker when its entry is absent and no answer is outstanding. */
void taker_free_if_done(struct lc_taker *taker);

#endif
