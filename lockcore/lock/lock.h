/* SPDX-License-Identifier: MIT
 *
 * lock.h - one lock as this mount sees it: the object, how long it lives, and the queue of
 * locks that want a listing.
 */
#ifndef LOCKCORE_LOCK_H
#define LOCKCORE_LOCK_H

#include "pure/next.h"
#include "session/watch.h"

struct lc_taker;
struct entry;

/* grant/decide.c: what is known of one lock at a time; the memory stays for the next one. */
struct slate {
	struct next_queue queue;
	int entry_room, taker_room;
};

struct locks {
	struct lock *by_path;
	struct lock *wanted;  /* want a listing sent */
	struct lock *touched; /* something has changed: grant/decide.c looks at them */
	struct lock *idle;    /* have no takers, and are kept for what is known of them */
	unsigned idle_count;
	int64_t closed_said_us; /* when it was last reported that an entry may not be read */
	struct slate slate;
};

/* taker.c: the takers of this mount. */
struct lock_takers {
	struct lc_taker *all;      /* in the order of their creates, so of their entries */
	unsigned waiting, holding; /* how many of them wait, or hold */
	unsigned writing;          /* how many hold exclusively */
	bool picky;                /* one of them may be refused for what stands before it */
};

/* lock_watch.c: the lock's node, as it was seen last. */
struct lock_node {
	struct watch watch;   /* of its data, and of its life */
	struct charge charge; /* all watched paths of the lock */
	/* What was read together with the watch. A listing tells the czxid, too; 0: not seen yet.
	 * Slots 0: not known. */
	struct lc_lock_info info;
	int32_t version; /* of the data */
	bool is_entry;   /* the node is an entry, and no lock */
};

/* An entry of the known queue. */
struct known_entry {
	struct known_entry *prev, *next; /* `prev` is NULL: it is not in the queue */
	struct entry *own;               /* NULL: another client's */
	const char *znode;
	int64_t number;
	bool shared : 1;
	bool apart : 1;       /* it fills no slot: not of a mount */
	bool late_writer : 1; /* when it goes, a reader may have come behind it: rule 25 */
	bool shown : 1;       /* by the last listing, with the number of slots as it is known */
	bool doubtful : 1;    /* an exclusive entry behind it is gone: K2 of pure/next.h */
};

/* known.c: what is known of the queue. */
struct lock_known {
	struct known_entry *entries;
	unsigned others; /* how many of them are other clients' */
	int64_t last;    /* all up to this number are in it; -1: nothing is known */
	uint64_t era;    /* grows when what was seen says nothing any more */
	bool in_zone;    /* the numbers are no order: NAME_NUMBER_ZONE */
	bool overtaken;  /* another client's create came before our last one */
	int64_t met_us;  /* when another client's entry was noticed last; 0: never */
};

/* lock_watch.c: the entries of other clients that are watched. */
#define OTHERS_WATCHED 2
struct lock_others {
	struct other_watch *watches[OTHERS_WATCHED]; /* or NULL */
	struct lc_ahead *ahead;                      /* the entry that has gone last; NULL: none */
};

/* batch.c: creates and deletes of entries. */
struct lock_batch {
	unsigned unsent;     /* creates and deletes */
	unsigned creates;    /*   creates among them */
	bool last_write_ok;  /* the last write was good */
	bool together;       /* a create is under way with others */
	unsigned unknown;    /* entries that are UNKNOWN: no create is sent */
	uint64_t checked_in; /* the transaction that has the check of the unproved entry */
};

/* grant/decide.c: who holds. */
struct lock_grant {
	struct entry *unproved; /* got the lock while own leavers stood before it, and was not seen
	                         * since: they are deleted only with the check that it is there */
	bool held_back;         /* such a delete was refused: deletes wait until it was seen */
	bool lease_awaited;     /* a grant waits for more lease */
};

/* grant/reuse.c: one process takes the lock again and again. */
struct lock_repeat {
	int64_t left_us; /* when the last holder left, and who it was */
	pid_t pid;       /* 0: no holder, or one whose entry is not to serve again */
	uid_t uid;
	int64_t granted_us; /* when the entry of the last holder was granted first */
};

/* late.c: a create was not answered. When it was given up, it may yet be done. */
struct lock_late {
	int64_t until_us; /* until then the lock is listed; 0: no create was given up */
	unsigned asked;   /* nodes whose owners are being read, or that are being deleted */
	uint64_t listing; /*   the listing that showed them */
	bool untold;      /*   the owner of one of them could not be read */
	bool again;       /*   the lock is listed again behind them */
};

/* listing.c: listings of the queue. */
struct lock_lists {
	uint64_t sent; /* so far */
	unsigned pending;
	uint64_t shown;    /* the last one that this connection has answered; 0: none */
	uint64_t watching; /* the one that has left a watch of the names; 0: none */
	bool wanted;
	bool names_wanted;        /* with a watch of the names */
	bool later;               /* not before the timer fires: a read was refused */
	struct lock *prev, *next; /* in locks->wanted */
	struct timer recheck;
	struct order *order; /* the czxids of the entries are being read: order.c */
};

struct lock {
	struct lc *lc;
	char *path; /* of the znode */
	UT_hash_handle hh;
	unsigned uses; /* takers and requests that keep it */
	struct lock_takers takers;
	struct lock_node node;
	struct lock_known known;
	struct lock_others others;
	struct lock_batch batch;
	struct lock_grant grant;
	struct lock_repeat repeat;
	struct lock_late late;
	struct lock_lists lists;
	struct lock *touched_prev, *touched_next;
	struct lock *idle_prev, *idle_next;
	bool touched;
	bool idle; /* it has no takers, and is kept for what is known of it */
};

/* The lock of that name, made if need be, in use by the caller. `uid`: the user that asks. 0 or
 * -ENOMEM. */
int lock_get(struct lc *lc, const char *name, uid_t uid, struct lock **ret_lock);
/* The same for a lock of that path that is known here, or NULL. */
struct lock *lock_get_known(struct lc *lc, const char *path, uid_t uid);
/* The lock of that path, or NULL: it is not known here. */
struct lock *lock_find(struct lc *lc, const char *path, size_t len);
void lock_use(struct lock *lock);
/* Ends a use. Without uses a lock becomes idle, or is freed. */
void lock_unuse(struct lock *lock);
/* Frees a lock without uses, or leaves it idle: its watch has fired. */
void lock_free_if_unused(struct lock *lock);
/* Frees all idle locks: the watches of others need their room. */
void locks_forget_idle(struct lc *lc);

/* The lock is listed at the end of this turn. */
void lock_want_list(struct lock *lock);
void lock_unwant_list(struct lock *lock);
/* Lists the lock again after 60 s, in any case. */
void lock_recheck(struct lock *lock);
/* A create in it was given up, and may yet be done: the lock is kept, and listed again after a
 * while. */
void lock_expect_late(struct lock *lock);
void lock_expect_none(struct lock *lock);
/* Lists the lock again in a second, and for a waiter not before: there was no memory, the ensemble
 * has refused a read, or an entry cannot be watched. */
void lock_list_later(struct lock *lock);

/* The lock's own node is watched, on this connection: it has not been removed and made again,
 * and its number of slots is known. */
static inline bool lock_is_watched(const struct lock *lock)
{
	return watch_is_good(lock->lc, &lock->node.watch);
}

/* What is known of the lock, or one of its takers, has changed: who holds is decided at the end of
 * the turn. */
static inline void lock_touch(struct lock *lock)
{
	if (lock->touched)
		return;
	lock->touched = true;
	DL_APPEND2(lock->lc->locks->touched, lock, touched_prev, touched_next);
}

static inline void lock_untouch(struct lock *lock)
{
	if (!lock->touched)
		return;
	lock->touched = false;
	DL_DELETE2(lock->lc->locks->touched, lock, touched_prev, touched_next);
}

#endif
