/* SPDX-License-Identifier: MIT
 *
 * taker.h - one taker, and its entry: the ephemeral node in the queue of a lock that stands for it.
 *
 * The taker is what the frontend knows: its state says whether the entry shall exist (`wanted`).
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
 *
 * The entry is what ZooKeeper has said of the node, from before its create is sent until it is
 * certainly gone:
 *
 *              create             OK                delete            OK, NONODE
 *   [ABSENT] ---------> [CREATING] -----> [PRESENT] -------> [DELETING] --------> [ABSENT]
 *      ^  ^                 |  |unanswered   ^  ^                |
 *      |  '--- refused, ----'  v             |  '----------------'  unanswered, refused, not sent
 *      |       not sent    [UNKNOWN] --------'  a listing shows it
 *      '-------------------------'  a listing does not show it
 *
 * From every state it comes to ABSENT when the session ends, and from PRESENT when a listing
 * does not show it, or an event or an answer says that it is gone. So the duty to delete an entry
 * begins before its create is sent, and ends only when it is certainly gone, whether or not anybody
 * waits for it any more.
 *
 * entry.c, entry_data.c and batch.c are about the node, loss.c and taker.c about its taker.
 */
#ifndef LOCKCORE_TAKER_H
#define LOCKCORE_TAKER_H

#include "lock/batch.h"
#include "lock/lock.h"
#include "pure/gate.h"
#include "pure/name.h"
#include "pure/table.h"

#include <string.h>

struct entries {
	struct table by_id;
	unsigned there;    /* entries that are not ABSENT */
	int64_t create_us; /* with reuse: how long a create takes, the mean of some; 0: not known */
	int64_t refused_said_us; /* when it was last reported that the ensemble refuses entries */
	unsigned looks;          /* reads of entries for letters, under way */
	struct gate writers;     /* those whose data is to be written, or is being */
};

enum entry_state { ENTRY_ABSENT, ENTRY_CREATING, ENTRY_UNKNOWN, ENTRY_PRESENT, ENTRY_DELETING };

/* entry_data.c: what stands in it. */
struct entry_data {
	pid_t pid;
	uid_t uid;
	char command[LC_COMMAND_MAX + 1];
	char *reason;            /* or NULL */
	int64_t held_since_ms;   /* -1: its taker does not hold */
	struct data_write *turn; /* it waits to be written, or is being written; or NULL */
	bool told_since : 1;     /* the ensemble knows since when it is held, or will */
	bool dirty : 1;          /* it is to be written */
};

struct entry {
	struct table_link id; /* the second half of its UUID: lc->entries->by_id */
	struct lock *lock;
	struct record record;
	enum entry_state state : 3;
	enum lc_mode mode : 2;
	bool wanted : 1;   /* it shall exist */
	bool sent : 1;     /* DELETING: its delete is on its way */
	bool in_doubt : 1; /* a delete of it may have been done: an unchecked one was sent, or one
	                          * was not answered */
	bool alone : 1;    /* batch.c: its create or delete failed in a transaction */
	bool repeated : 1; /* it may become spare: grant/reuse.c */
	unsigned pending;  /* answers outstanding that name this entry */

	/* The node. */
	char name[NAME_MAX_WHOLE]; /* CREATING, UNKNOWN: without its digits; ABSENT: empty */
	int64_t number;
	int64_t czxid;   /* 0: not known, it was made in a transaction */
	int32_t version; /* of its data */
	struct watch watch;
	int64_t sent_us;          /* batch.c: its last create or delete */
	struct known_entry known; /* its place in the queue */
	uint64_t seen_in;         /* the era of the known queue in which it was seen last */
	uint64_t shown_in;        /* the last listing that showed it, or a node that may be it */
	struct entry_data data;
};

/* A lock that is held for longer than this watches its entry, and says there since when it is
 * held. Shorter holds, which are the most, are spared these requests. */
#define LONG_HOLD_US 20000

struct takers {
	struct lc_taker *due;              /* to be told, in this order */
	struct lc_taker *waiters_changed;  /* to be told so: waiters.c */
	unsigned waiters, holders, losing; /* as in lc_status; the others are leaving */
	bool missing;                      /* one of the takers is MISSING */
};

enum taker_state { TAKER_WAITING, TAKER_HELD, TAKER_LOST, TAKER_FAILED, TAKER_LEFT };
enum taker_wait { WAIT_QUEUED, WAIT_PROBING, WAIT_MISSING };
enum taker_loss { LOSS_GUARDED, LOSS_FORFEITED, LOSS_GIVEN_UP };

struct lc_taker {
	struct entry entry; /* first: see taker_of() */
	enum taker_state state : 3;
	enum taker_wait wait : 2;     /* WAITING */
	enum taker_loss loss : 2;     /* LOST */
	bool told_token : 1;          /* lc_give_token() */
	bool immediate : 1;           /* EAGAIN rather than wait */
	bool spare : 1;               /* LEFT: its entry waits for the next take */
	unsigned crowd : 20;          /* PROBING: EAGAIN rather than behind so many; 0: any */
	int error;                    /* FAILED: what the frontend is told */
	struct lc_taker *prev, *next; /* in lock->takers */
	struct lc_taker *due_prev, *due_next; /* in takers->due: NULL if it is not there */

	/* What was asked for. */
	int64_t meant;                           /* the czxid of the lock; 0: any of that name */
	uint64_t since;                          /* the last listing that was sent before it came */
	int place;                               /* grant/decide.c: on the slate */
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

/* NULL: no taker's entry has that id. */
static inline struct lc_taker *taker_find(const struct lc *lc, uint64_t id)
{
	return (struct lc_taker *)table_find(&lc->entries->by_id, id);
}

/* All takers, in an order that means nothing. One is not to be freed before the next was asked
 * for. NULL: the first; there are no more. */
static inline struct lc_taker *taker_next(const struct lc *lc, const struct lc_taker *taker)
{
	return (struct lc_taker *)table_next(&lc->entries->by_id, taker ? &taker->entry.id : NULL);
}

#define TAKERS_FOREACH_SAFE(lc, taker, next)                                                    \
	for ((taker) = taker_next(lc, NULL); (taker) && ((next) = taker_next(lc, taker), true); \
	     (taker) = (next))

/* ---- the entry ---- */

/* 0 or -ENOMEM. The entry frees its reason. */
int entry_init(struct lc *lc, struct entry *entry, struct lock *lock);
void entry_finish(struct entry *entry);

/* Enters an entry that was read from its record, with its id, name, number and state. 0 or
 * -ENOMEM. */
int entry_resume(struct lc *lc, struct entry *entry, struct lock *lock);

/* A field of the entry has changed that is recorded. */
static inline void entry_touch(struct entry *entry)
{
	record_touch(&entry->record);
}

/* The entry is in the queue. */
static inline bool entry_is_queued(const struct entry *entry)
{
	return entry->state == ENTRY_PRESENT || entry->state == ENTRY_DELETING;
}

/* Its watch is good: it was there on this connection. */
static inline bool entry_is_seen(const struct entry *entry)
{
	return watch_is_good(entry->lock->lc, &entry->watch);
}

/* The entry with the UUID of a node of the lock: the node is this entry, or a copy that another
 * client has made. NULL: none. */
static inline struct entry *entry_named(struct lock *lock, const struct entry_name *name)
{
	struct lc_taker *taker = NULL;

	if (name->of_mount && name->session_half == lock->lc->session->half)
		taker = taker_find(lock->lc, name->taker_half);
	return taker && taker->entry.lock == lock ? &taker->entry : NULL;
}

/* The entry that a node of the lock is, by its full name. Another client may make nodes with an
 * entry's UUID and, once the entry is gone, with its whole name. NULL: none. */
static inline struct entry *entry_of_node(struct lock *lock, const char *znode,
                                          const struct entry_name *name)
{
	struct entry *entry = entry_named(lock, name);

	if (entry && entry_is_queued(entry) && strcmp(entry->name, znode) == 0)
		return entry;
	return NULL;
}

/* malloced */
static inline char *entry_path(const struct entry *entry)
{
	return path_join(entry->lock->path, entry->name);
}

/* ---- making and deleting: batch.c sends ---- */

/* ABSENT -> CREATING. */
void entry_begin(struct entry *entry);
void entry_created(struct entry *entry, const struct ensemble_answer *answer);
void entry_deleted(struct entry *entry, const struct ensemble_answer *answer);
/* The create or delete was not sent, or has certainly not happened. */
void entry_unsent(struct entry *entry);
/* taker.c sets PRESENT <-> DELETING, before anything is sent. */
void entry_set_state(struct entry *entry, enum entry_state state);
/* The entry is gone: deleted, or with its lock or session. */
void entry_set_absent(struct entry *entry);
/* UNKNOWN: the node is the entry, as the good answer of a get says. Or no node is; lock_step()
 * follows when no outcome is unknown, so that creates keep their order. */
void entry_found(struct entry *entry, const char *znode, const struct ensemble_answer *answer);
void entry_not_found(struct entry *entry);

/* ---- what stands in it: entry_data.c ---- */

size_t entry_format(const struct entry *entry, char *ret_data); /* NODE_DATA_ENTRY_MAX */
/* Takes over what the good answer of a get tells, a mark among it. False: the node is another
 * client's, made under the name of this one when this one was gone. */
bool entry_read(struct entry *entry, const struct ensemble_answer *answer);
/* Watches the entry, unless its watch is good. False: no memory: it is tried later. */
bool entry_watch(struct entry *entry);
/* Reads the entry, to find a mark, unless a good watch would report one. False: no memory. */
bool entry_look(struct entry *entry);
/* Writes the data, if it is dirty and may be written now. */
void entry_write(struct entry *entry);
/* Writes since when the lock is held, unless the entry says so already. */
void entry_write_since(struct entry *entry);
void entry_data_finish(struct entry *entry);

/* ---- the taker ---- */

/* HELD, and the frontend was not told of the grant yet. */
static inline bool taker_is_untold(const struct lc_taker *taker)
{
	return taker->state == TAKER_HELD && taker->due_prev;
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

/* Somebody may wait behind the lock's holders who did not: those that want to are told. */
void lock_note_waiters(struct lock *lock);

/* ---- changing it ---- */

/* Puts a new taker, WAITING, into the lock's list. It belongs to the lock from here on. */
void taker_enter(struct lc_taker *taker);
/* A taker of the former process, in its state. `due`: the frontend is to be told of it. */
void taker_resume(struct lc_taker *taker, bool due);
/* A waiting taker is to take the place of a shared holder. */
void taker_replace(struct lc_taker *taker, struct lc_taker *old);
/* Does what the entry needs next, if anything: create, delete, or free the taker. */
void taker_step(struct lc_taker *taker);
/* The same for all takers of the lock. */
void lock_step(struct lock *lock);
/* WAITING -> HELD; LEFT, by taker_reuse(). */
void taker_grant(struct lc_taker *taker);
/* WAITING -> FAILED. */
void taker_fail(struct lc_taker *taker, int error);
/* All that are WAITING. */
void takers_fail(struct lc *lc, int error);
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
/* The create was refused for good, and the entry is absent. */
void taker_not_made(struct lc_taker *taker, enum ensemble_result why);
/* The ensemble has said that the unproved holder's entry is there, behind its grant. */
void taker_proved(struct lc_taker *taker);
/* Deletes that were held back are tried again. */
void lock_delete_held_back(struct lock *lock);
/* The taker takes no other's place any more, and no other takes its place. */
void taker_part(struct lc_taker *taker);
/* A request could not be sent, or was refused: it is tried again in a second. */
void taker_try_later(struct lc_taker *taker);
/* The frontend is to be told of the taker. False: it is told now, or has nothing to be told any
 * more. */
void taker_set_due(struct lc_taker *taker, bool due);
/* Frees the taker when its entry is absent and no answer is outstanding. */
void taker_free_if_done(struct lc_taker *taker);

/* ---- losing its place, or its lock: loss.c ---- */

/* The entry went with its lock. */
void loss_of_lock(struct lc_taker *taker);
/* An answer or an event says that the entry is gone. taker_step() follows. */
void loss_of_node(struct lc_taker *taker);
/* A listing does not show the entry: it is gone, and this mount has not deleted it. taker_step()
 * follows. */
void loss_by_listing(struct lc_taker *taker);
/* An evictor has marked the entry. */
void loss_by_mark(struct lc_taker *taker, const char *by);
/* Letters are there: reads the entries that they name, or all entries. */
void loss_by_letters(struct lc *lc, const void *letters, size_t len, bool all);
/* The taker has held for as long as it may. */
void loss_by_limit(struct lc_taker *taker);
void loss_of_session(struct lc_taker *taker);
/* The lease is over: all holders lose their locks. */
void loss_of_lease(struct lc *lc);
/* The session lives, so the takers that are missing were evicted. */
void loss_of_missing(struct lc *lc);

/* ---- nodes that a create without an answer may have made: late.c ---- */

/* Listing number `number` shows a node that is no taker's entry. If its name has this session's
 * half, the ensemble is asked whose it is. A node of this session is the entry of the taker whose
 * create was not answered, or it is deleted. */
void late_found(struct lock *lock, const char *znode, const struct entry_name *name,
                uint64_t number);

/* ---- what another process goes on from: taker_record.c ---- */

void taker_write(struct codec *codec, struct lc_taker *taker);
/* Reads a record into a blank taker, whose callbacks the caller sets. False: the record does not
 * fit, or there is no memory, and the codec says which; the taker is still the caller's. A record
 * that fits, and that no taker can have, fails an assertion. */
bool taker_read(struct codec *codec, struct lc *lc, struct lc_taker *taker);

#endif
