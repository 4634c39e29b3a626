/* SPDX-License-Identifier: MIT
 *
 * node.h - inode numbers: the files that the kernel knows, and how many references it has.
 *
 * A node lives while the kernel remembers it (lookup count), or a child or an open
 * file needs it. The number of a name stays the same as long. The kernel forgets when it
 * wants memory, so the locks that were read last are kept beyond that: their lock files can be
 * opened while the ensemble is away.
 *
 * Each mount begins at another, random number. The kernel gives the mount ID and the device of a
 * mount that is gone to the next mount, and somebody may still look for the open files of the
 * former: guardian.h.
 *
 * How much that is the kernel decides, and it remembers all names while there is memory.
 * Of locks and their files there are no more than the ensemble has. But names of lock files with
 * a time can be made up without end, and entries come and go. So of these no more are kept
 * than NODE_TRANSIENT_MAX: those looked up longest ago, and not open, go although the kernel
 * knows their numbers. When it sends such a number again, it gets ESTALE; for a path it then looks
 * the name up anew by itself.
 */
#ifndef FS_NODE_H
#define FS_NODE_H

#include "lockcore.h"
#include "store/record_kinds.h"
#include "tree/lock_file.h"
#include "tree/snapshot.h"

#include <stdint.h>
#define HASH_NONFATAL_OOM 1 /* an element's tbl stays NULL */
#include <uthash.h>

#define CACHED_LOCKS_MAX 4096
#define NODE_TRANSIENT_MAX 16384
/* Entries in all snapshots of queues; the oldest go first. */
#define NODE_SNAPSHOTS_MAX 65536

enum node_kind {
	NODE_ROOT,      /* the mount */
	NODE_LOCK,      /* a lock */
	NODE_LOCK_FILE, /* lock, try, lock@30s: in a lock */
	NODE_QUEUE,     /* queue/ */
	NODE_ENTRY,     /* queue/0000000042-... */
	NODE_HOLDER,    /* holder */
	NODE_VALUE,     /* value */
	NODE_SLOTS,     /* slots */
	NODE_ABOUT,     /* .zklockfs/ */
	NODE_STATUS,    /* .zklockfs/status */
	NODE_METRICS,   /* .zklockfs/metrics */
	NODE_LOCKS,     /* .zklockfs/locks */
	NODE_HISTORY,   /* .zklockfs/history */
	NODE_OPTIONS,   /* .zklockfs/options */
};
#define NODE_KIND_LAST NODE_OPTIONS

struct flock_claim; /* flock_claim.h */
struct ask;

struct node {
	uint64_t ino;
	enum node_kind kind;
	struct node *parent;
	char *name;
	char *lock;                 /* path of the lock it belongs to: the lock's own */
	uint64_t lookups;           /* the kernel's */
	unsigned references;        /* children, open files, requests under way */
	struct lock_file lock_file; /* NODE_LOCK_FILE */
	struct flock_claim *claims; /*   and flock: who has the lock by it, */
	struct flock_claim *claims_by_id;
	struct ask *asks;          /*   and who waits */
	int64_t czxid;             /* NODE_LOCK: which of those that have had that name */
	bool known;                /*   info was read once; it is the memory that */
	struct lc_lock_info info;  /*   answers while the ensemble is away */
	int64_t info_us;           /*   and when that was, */
	bool swept;                /*   together with another lock: sweep.c */
	bool listed;               /* in the list of cached locks, or of transient names */
	struct node *prev, *next;  /*   or of queues with a snapshot: the oldest is first */
	struct entry_facts entry;  /* NODE_ENTRY: as it was at lookup */
	char *znode;               /* NODE_ENTRY: what the file is bound to */
	struct snapshot *snapshot; /* NODE_QUEUE */
	struct record record;
	UT_hash_handle by_ino, by_name;
	char key[]; /* parent's number and name */
};

struct nodes;

/* Path of a lock by its name below another, or below the root, "". Malloced; NULL: no memory. */
char *node_path_below(const char *lock, const char *name);

int nodes_create(struct records *records, struct nodes **ret_nodes);
void nodes_destroy(struct nodes *nodes);
/* NULL: not known any more, ESTALE. Never of a directory, nor of what is open. */
struct node *node_by_ino(struct nodes *nodes, uint64_t ino);
/* NULL: not known. */
struct node *node_child(struct nodes *nodes, const struct node *parent, const char *name);
/* The child of that name, made if it is not known; with one reference. NULL: no memory. */
struct node *node_get(struct nodes *nodes, struct node *parent, const char *name,
                      enum node_kind kind);
/* Its name is free for another one, with a number of its own: the kernel finds nothing in
 * a directory that was removed as long as it knows that by its number. */
void node_unname(struct nodes *nodes, struct node *node);
/* The lock was read, or does not exist: it is cached, or no longer, independently of the kernel. */
void node_cache(struct nodes *nodes, struct node *lock);
void node_uncache(struct nodes *nodes, struct node *lock);
/* Remembers the queue as it is in the snapshot. Takes the snapshot, which may be NULL. */
void node_snapshot(struct nodes *nodes, struct node *queue, struct snapshot *snapshot);
void node_ref(struct node *node);
void node_unref(struct nodes *nodes, struct node *node);
void node_looked_up(struct nodes *nodes, struct node *node);
void node_forget(struct nodes *nodes, struct node *node, uint64_t lookups);

/* A node, with what the kernel knows of it, but without references and snapshots; the number
 * that was given last; the node of something else that is kept; and when all are read, those that
 * nobody needs go. */
void node_record_save_load(struct codec *codec, struct nodes *nodes, struct record *record);
void nodes_last_save_load(struct codec *codec, struct nodes *nodes);
struct node *node_save_load(struct codec *codec, const struct nodes *nodes,
                            const struct node *node);
void nodes_loaded(struct nodes *nodes);

#endif
