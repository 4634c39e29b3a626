/* SPDX-License-Identifier: MIT
 *
 * entry.h - one entry: an ephemeral node of this mount in the queue of a lock, from before its
 * create is sent until it is certainly gone; its data; the watch on it.
 *
 * The layers above decide whether an entry shall exist (`wanted`), and when it is created and
 * deleted (batch.h). This one knows what ZooKeeper has said of it:
 *
 *              create             OK                delete            OK, NONODE
 *   [ABSENT] ---------> [CREATING] -----> [PRESENT] -------> [DELETING] --------> [ABSENT]
 *      ^  ^                 |  |unanswered   ^  ^                |
 *      |  '--- refused, ----'  v             |  '----------------'  unanswered, refused, not sent
 *      |       not sent    [UNKNOWN] --------'  a listing shows it
 *      '-------------------------'  a listing does not show it
 *
 * From every state it comes to ABSENT when the session ends, and from PRESENT when a listing
 * does not show it. So the duty to delete an entry begins before its create is sent, and ends
 * only when it is certainly gone, whether or not anybody waits for it any more.
 */
#ifndef LOCKCORE_ENTRY_H
#define LOCKCORE_ENTRY_H

#include "lock/lock.h"
#include "pure/gate.h"
#include "pure/name.h"
#include "pure/table.h"

/* Callbacks of an entry, to the layer above. Any of them may change the states of takers; none of
 * them frees an entry but `changed`, which comes last. */
struct entry_events {
	/* The entry is there. `made`: its create was answered OK just now. */
	void (*present)(struct entry *entry, bool made);
	/* The create was refused for good: the entry is absent. */
	void (*not_made)(struct entry *entry, enum ensemble_result why);
	/* The entry is about to become absent: its place is still known. */
	void (*absent)(struct entry *entry);
	/* The ensemble has shown the entry since its taker was granted the lock behind own leavers:
	 * grant/decide.c. */
	void (*seen)(struct entry *entry);
	/* The entry is gone for certain, and this mount has not deleted it. A listing may still
	 * show its name. */
	void (*gone)(struct entry *entry);
	/* An evictor has marked the entry: its taker is to give it up. */
	void (*marked)(struct entry *entry, const char *by);
	/* A request could not be sent, or was refused: the taker is to try again in a second. */
	void (*later)(struct entry *entry);
	/* An answer has changed something of the entry: its taker is to do the next step. */
	void (*changed)(struct entry *entry);
};

struct entries {
	const struct entry_events *events;
	struct table by_id;
	unsigned there;    /* entries that are not ABSENT */
	int64_t create_us; /* with reuse: how long a create takes, the mean of some; 0: not known */
	int64_t refused_said_us; /* when it was last reported that the ensemble refuses entries */
	unsigned looks;          /* reads of entries for letters, under way */
	struct gate writers;     /* those whose data is to be written, or is being */
};

enum entry_state { ENTRY_ABSENT, ENTRY_CREATING, ENTRY_UNKNOWN, ENTRY_PRESENT, ENTRY_DELETING };

/* listing.c, by the numbers of the lock's listings: lock->lists.sent. */
struct entry_lists {
	uint64_t asked; /* UNKNOWN, with candidates: since which listing */
	uint64_t last;  /* that showed it */
};

/* entry_data.c: what stands in it. */
struct entry_data {
	pid_t pid;
	uid_t uid;
	char command[LC_COMMAND_MAX + 1];
	char *reason;            /* or NULL */
	int64_t held_since_ms;   /* -1: its taker does not hold */
	struct data_write *turn; /* at the gate of writers; NULL: it is not there */
	bool told_since : 1;     /* the ensemble knows since when it is held, or will */
	bool dirty : 1;          /* it is to be written; */
	bool pending : 1;        /*   it is being written */
};

struct entry {
	struct table_link id; /* the second half of its UUID: lc->entries->by_id */
	struct lock *lock;
	struct record record;
	enum entry_state state : 3;
	enum lc_mode mode : 2;
	bool wanted : 1;   /* it shall exist */
	bool gone : 1;     /* PRESENT, but said to be gone: see entry_events */
	bool sent : 1;     /* DELETING: its delete is on its way */
	bool in_doubt : 1; /* a delete of it may have been done: an unchecked one was sent, or one
	                          * was not answered */
	bool alone : 1;    /* batch.c: its create or delete failed in a transaction */
	bool candidate_lost : 1; /* UNKNOWN: the owner of a node that may be it could not be read */
	bool repeated : 1;       /* it may become spare: grant/reuse.c */
	unsigned pending;        /* answers outstanding that name this entry */

	/* The node. */
	char name[NAME_MAX_WHOLE]; /* CREATING, UNKNOWN: without its digits; ABSENT: empty */
	int64_t number;
	int64_t czxid;       /* 0: not known, it was made in a transaction */
	int32_t version;     /* of its data */
	unsigned candidates; /* UNKNOWN: nodes that may be it, and are being read */
	struct watch watch;
	int64_t sent_us;          /* batch.c: its last create or delete */
	struct known_entry known; /* its place in the queue */
	uint64_t seen_in;         /* the era of the known queue in which it was seen last */
	struct entry_lists lists;
	struct entry_data data;
};

/* NULL: no entry has that id. */
struct entry *entry_find(const struct lc *lc, uint64_t id);
/* All entries, in an order that means nothing. One is not to be freed before the next was asked
 * for. NULL: the first; there are no more. */
static inline struct entry *entry_next(const struct lc *lc, const struct entry *entry)
{
	return (struct entry *)table_next(&lc->entries->by_id, entry ? &entry->id : NULL);
}

#define ENTRIES_FOREACH_SAFE(lc, entry, next)                                                   \
	for ((entry) = entry_next(lc, NULL); (entry) && ((next) = entry_next(lc, entry), true); \
	     (entry) = (next))

/* 0 or -ENOMEM. The entry frees its reason. */
int entry_init(struct lc *lc, struct entry *entry, struct lock *lock);
void entry_finish(struct entry *entry);

/* Enters an entry that was read from its record, with its id, name, number and state. 0 or
 * -ENOMEM. */
int entry_resume(struct lc *lc, struct entry *entry, struct lock *lock);

static inline const struct entry_events *entry_events(const struct entry *entry)
{
	return entry->lock->lc->entries->events;
}

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
struct entry *entry_named(struct lock *lock, const struct entry_name *name);
/* The entry that a node of the lock is, by its full name. NULL: none. */
struct entry *entry_of_node(struct lock *lock, const char *znode, const struct entry_name *name);
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
/* PRESENT <-> DELETING, before anything is sent. */
void entry_set_deleting(struct entry *entry, bool deleting);
/* The entry is gone: deleted, or with its lock or session. */
void entry_set_absent(struct entry *entry);
/* UNKNOWN, and the node may be it, by its name. */
bool entry_may_be(const struct entry *entry, const char *znode);
/* Listing number `number` shows such a node. A listing shows none. */
void entry_found(struct entry *entry, const char *znode, uint64_t number);
void entry_not_found(struct entry *entry);

#endif
