/* SPDX-License-Identifier: MIT
 *
 * next.h - who holds a lock next, and what is to be asked for that: queue_next(). Pure, and without
 * memory of its own. It reads what a mount knows of a lock's queue and of its own takers, and says
 * whom to grant, whom to refuse, what to ask and what to watch.
 *
 * K0. What is known. `entries` has every entry of this life of the lock's node with a number up to
 *     a number `known` that stands or ever will stand: numbers only rise. It may have entries that
 *     are gone; it lacks none. The caller keeps it so:
 *       - a listing (behind an answered write of its connection) replaces it, and `known` becomes
 *         the greatest number ever shown;
 *       - an own create that was answered with known + 1 extends it, if the lock's node is watched
 *         on this connection. With another number the entry is *unplaced*: it is not in `entries`;
 *       - an entry goes out when it is gone for certain: an own delete was answered, a watch of
 *         this connection or a read said so. When the entry of a late writer goes, `entries` and
 *         `known` are cut off at its number;
 *       - another life of the lock's node, or another process: nothing is known.
 * K1. A waiter that is unplaced when its turn comes: the lock is listed.
 * K2. Entries of other clients bar a waiter's way: the last two of them are watched, and the waiter
 *     itself, with all own shared waiters that the same entries bar. An entry is *doubtful* when an
 *     exclusive one behind it is gone: it is gone too, as a rule, and its end was not watched. A
 *     doubtful entry is not watched; the lock is listed. With several slots any of several may go:
 *     the lock is listed, with a watch of the names. Own entries that stay bar the waiter's way:
 *     they will go without being watched, but a lost one is watched, and so is the waiter behind a
 *     shared one. Any other waiter behind own entries is not watched: whether its entry is still
 *     there matters when its turn comes (K3).
 * K3. Nobody bars its way: it holds, if it was *seen* since an entry was last taken out, since the
 *     number of slots was last learned, and since the last decision: what was seen before that may
 *     be gone. If not, it is watched, and the next waiter is judged.
 * K4. Only own leavers bar its way: it holds now, and they guard it, if the last of them is
 *     exclusive, and no delete of that one was sent, nor is in doubt. The holder is *unproved*
 *     until a checked delete was done; or, after one was refused, until a look that was answered
 *     behind the refusal, or a good watch, has shown its entry. Nothing else proves it: a listing
 *     and an earlier look may be older than a refusal that is on its way. next_delete() says how
 *     leavers are deleted meanwhile. An upgrade waits; a shared waiter does if there is an unproved
 *     one, or if there are several slots.
 * K5. A taker that does not wait is refused for what one listing has shown together, one that was
 *     sent after it came. Own entries that leave, or are kept, are in nobody's way. A taker that
 *     does not wait behind a crowd is refused only before it has an entry.
 * K6. The shared hold of an upgrade is not in the upgrade's way. An exclusive entry between the two
 *     waits for that hold: the upgrade is refused.
 * K7. A kept entry becomes a leaver's as soon as another own taker is in the lock.
 */
#ifndef LOCKCORE_NEXT_H
#define LOCKCORE_NEXT_H

#include <stdbool.h>
#include <stdint.h>

#define NEXT_NONE (-1) /* no taker, no entry */

enum next_state {
	NEXT_OTHER,    /* it has nothing to do with the queue (any more) */
	NEXT_PROBING,  /* it has no entry, and makes none before a listing that lets it */
	NEXT_CREATING, /* its create is to be answered */
	NEXT_UNKNOWN,  /* nobody knows whether its create was done */
	NEXT_WAITING,
	NEXT_HOLDING,
	NEXT_LOST,   /* it holds no more; its processes may still be at work */
	NEXT_KEPT,   /* it left; its entry may serve the next take of its process */
	NEXT_LEAVING /* its entry is to be deleted, or is being deleted */
};

/* What a taker is to do. */
enum next_step {
	NEXT_STAY,
	NEXT_CREATE, /* PROBING: make an entry */
	NEXT_GRANT,  /* WAITING: it holds */
	NEXT_REFUSE, /* PROBING, WAITING: it fails with `error` */
	NEXT_LEAVE   /* KEPT: it becomes a leaver */
};

/* A taker of this mount. */
struct next_taker {
	void *caller;          /* the caller's */
	enum next_state state; /* changed as `step` says */
	int64_t number;        /* of its entry, from WAITING on */
	int replaces;   /* an upgrade: the taker whose shared hold it replaces; else NEXT_NONE */
	unsigned crowd; /* PROBING: EAGAIN rather than wait behind so many; 0: any */
	bool shared : 1;
	bool immediate : 1;   /* EAGAIN rather than wait */
	bool seen : 1;        /* as in K3; also: its own watch is good */
	bool shown_since : 1; /* a listing that was sent after it came has been answered, here */
	bool asked_since : 1; /*   or is under way */
	/* LEAVING */
	bool sent : 1;     /* a delete is on its way */
	bool in_doubt : 1; /* a delete may have been done: an unchecked one was once sent, or one
	                    * was on its way when a connection was lost */
	/* Answers. */
	bool watch : 1; /* its own entry is to be watched */
	enum next_step step;
	int error; /* -EAGAIN, -EDEADLK */
	int place; /* its entry in `entries`, or NEXT_NONE */
};

/* An entry of the known queue. */
struct next_entry {
	void *caller; /* the caller's */
	int64_t number;
	int taker; /* whose it is, here; NEXT_NONE: another client's */
	bool shared : 1;
	bool apart : 1;    /* it fills no slot: not of a mount */
	bool shown : 1;    /* by the last listing, with the number of slots as it is known */
	bool doubtful : 1; /* as in K2 */
	bool watch : 1;    /* answer: it is to be watched */
};

/* The listing that is wanted: one under way is enough; or only one that is sent from now on. */
enum next_list { NEXT_LIST_NONE, NEXT_LIST_ANY, NEXT_LIST_NEW };

struct next_queue {
	struct next_entry *entries; /* in the order of their numbers */
	int entry_count;
	struct next_taker *takers;
	int taker_count;
	bool lock_watched;     /* the lock's node is, on this connection: `slots` is right */
	bool children_watched; /* the names in the lock are: any change causes a listing */
	unsigned slots;
	unsigned slots_max; /* as many as a lock can have */
	int unproved;       /* K4's holder, or NEXT_NONE; changed by a grant */
	/* Answers. */
	enum next_list list;
	bool watch_children; /* with that listing */
	bool watch_lock;
};

/* All answers are zero before. What they ask for may have been asked already: then it is not asked
 * again. The caller looks at the lease before it grants (then a grant that it cannot give waits),
 * and refuses those that mean another lock, or stand beside incompatible entries, before it calls.
 * Before a write was answered on a connection nothing is decided. */
void queue_next(struct next_queue *queue);

enum next_delete { NEXT_DELETE_NOT, NEXT_DELETE_SINGLY, NEXT_DELETE_CHECKED };

/* How the entry of that number, of a leaver, is deleted. `unproved`: the number of the unproved
 * holder's entry; -1: there is none. CHECKED: in one transaction with the check that the unproved
 * one's entry is there. `held_back`: that was refused, and the look behind the refusal is not
 * answered. */
enum next_delete next_delete(int64_t number, int64_t unproved, bool held_back);

#endif
