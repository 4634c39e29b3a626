/* SPDX-License-Identifier: MIT
 *
 * lock.h - one lock as this mount sees it: the object, how long it lives, and the queue of
 * locks that want a listing.
 */
#ifndef LOCKCORE_LOCK_H
#define LOCKCORE_LOCK_H

#include "session/watch.h"

struct lc_taker;
struct entry;

struct locks {
	struct lock *by_path;
	struct lock *wanted;  /* want a listing sent */
	struct lock *touched; /* a taker has changed its state: listing.c looks at them */
	struct lock *idle;    /* without takers, kept for what is known of them */
	unsigned idle_count;
	int64_t closed_said_us; /* when it was last reported that an entry may not be read */
};

/* The entry that the first waiter waits for. LEAVER: an entry that we are deleting. LEASE: it is
 * first, but the lease would not do. OTHER: an entry that is watched, or of a holder of ours. */
enum lock_obstacle { OBSTACLE_OTHER, OBSTACLE_LEAVER, OBSTACLE_LEASE };

/* taker.c: the takers of this mount. */
struct lock_takers {
	struct lc_taker *all;      /* in the order of their creates, so of their entries */
	unsigned waiting, holding; /* how many of them do */
	unsigned writing;          /* how many hold exclusively */
};

/* lock_watch.c: the lock's node, as it was seen last. */
struct lock_node {
	struct watch watch;       /* of its data, and of its life */
	struct charge charge;     /* all watched paths of the lock */
	int64_t czxid;            /* 0: not seen yet */
	unsigned slots;           /* how many may hold the lock exclusively; 0: not known */
	int32_t version;          /* of the data that said so */
	struct lc_lock_info info; /* all that was read together with the watch, */
	bool is_entry;            /*   of what is no lock */
};

/* grant/: the first taker that waits, if no taker of ours stands before it whose going would be
 * seen without a watch. */
struct lock_front {
	struct lc_taker *taker; /* or NULL */
	enum lock_obstacle obstacle;
	/* lock_watch.c: */
	struct front_watch *watch; /* of the foreign entry that it waits for, or NULL */
	struct lc_ahead *ahead;    /* that entry as it was read last; NULL: none yet */
};

/* batch.c: creates and deletes of entries. */
struct lock_batch {
	unsigned unsent;     /* creates and deletes */
	unsigned creates;    /*   creates among them */
	bool last_write_ok;  /* the last write was good */
	bool together;       /* a create is under way with others */
	bool overtaken;      /* another client's create came between, the last time that a delete
	                      * and a create went out together */
	bool unresolved;     /* an entry's outcome is unknown: nobody queues before that */
	uint64_t leaving_in; /* the transaction that deletes entries, and the number of the first */
	int64_t leaving;     /*   one of the queue among them; -1: none */
};

/* handoff.c */
struct lock_handoff {
	struct entry *unseen; /* got the lock by hand-off, and was not seen since: entries before
	                       * it are deleted only with the check that it is there */
	bool held_back;       /* that was refused: deletes wait until it was seen */
};

/* grant/reuse.c: one process takes the lock again and again. */
struct lock_repeat {
	int64_t left_us; /* when the last holder left, and who it was */
	pid_t pid;       /* 0: nobody, or one whose next take is not to be repeated */
	uid_t uid;
	int64_t granted_us;     /* when the entry of the last holder was granted first */
	unsigned long spare_in; /* the connection on which it became spare */
};

/* late.c: a create that was given up may yet be done. */
struct lock_late {
	int64_t until_us; /* so long the lock is listed, with takers or without; 0: there is none */
	unsigned asked;   /* nodes that are being asked whose they are, or deleted */
	uint64_t listing; /*   the listing that showed them */
	bool deleted;     /*   one of them was deleted: the lock is listed again */
};

/* listing.c: listings of the queue. */
struct lock_lists {
	uint64_t sent; /* so far */
	unsigned pending;
	bool wanted;
	bool slots_asked; /* takers that will not wait are answered when the slots are known */
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
	struct lock_front front;
	struct lock_batch batch;
	struct lock_handoff handoff;
	struct lock_repeat repeat;
	struct lock_late late;
	struct lock_lists lists;
	struct lock *touched_prev, *touched_next;
	struct lock *idle_prev, *idle_next;
	bool touched;
	bool idle; /* no takers, but watched still */
};

/* The lock of that name, made if need be, in use by the caller. `uid`: the user that asks. 0 or
 * -ENOMEM. */
int lock_get(struct lc *lc, const char *name, uid_t uid, struct lock **ret_lock);
/* The same for a lock of that path that is known here, or NULL. */
struct lock *lock_get_known(struct lc *lc, const char *path, uid_t uid);
/* NULL: not known here. */
struct lock *lock_find(struct lc *lc, const char *path, size_t len);
void lock_use(struct lock *lock);
/* Without uses a lock becomes idle, or is freed. */
void lock_unuse(struct lock *lock);
/* The same for a lock whose watch has fired. */
void lock_free_if_unused(struct lock *lock);
/* There is no room for watches. */
void locks_forget_idle(struct lc *lc);

/* The lock is listed at the end of this turn. */
void lock_want_list(struct lock *lock);
void lock_unwant_list(struct lock *lock);
/* List it again after a while, in any case. */
void lock_recheck(struct lock *lock);
/* A create in it was given up, and may yet be done: the lock is kept, and listed again after a
 * while. */
void lock_expect_late(struct lock *lock);
void lock_expect_none(struct lock *lock);
/* List it again soon: there was no memory, or the ensemble has refused a read. */
void lock_list_later(struct lock *lock);
/* One of its takers has changed its state: a waiter behind it may be first now. */
void lock_touch(struct lock *lock);
void lock_untouch(struct lock *lock);

#endif
