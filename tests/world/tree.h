/* SPDX-License-Identifier: MIT
 *
 * tree.h - one copy of the znodes: as the leader has proposed them, as they are
 * committed, or as one server has applied them. A tree follows ZooKeeper's rules
 * for nodes, and knows nothing of the ends of sessions, or of time.
 */
#ifndef WORLD_TREE_H
#define WORLD_TREE_H

#include <uthash.h>

#include "port/ensemble.h"
#include "arena.h"

/* For the judge: the pid of the taker that has made a node, and the kind of node, by its name. */
#define WHO_FOREIGN (-1)
enum shape {
	SHAPE_READ = 1,
	SHAPE_ENTRY = 2, /* numbered */
	SHAPE_SHARED = 4,
	SHAPE_OF_MOUNT = 8,
	SHAPE_INCOMPATIBLE = 16, /* its client does not wait for a mount's entry */
	SHAPE_STRAY = 32,        /* its client chose the number, which says nothing of its age */
	SHAPE_IN_ZONE = 64,      /* numbers repeat there */
};

/* A bit of a session's id: its nodes stand among their siblings by the last ten digits of their
 * names, and not by their age. */
#define TREE_BY_NUMBER (INT64_C(1) << 59)

struct node {
	const char *path;
	const char *name;
	struct node *parent, *children, *prev, *next;
	struct ensemble_stat stat;
	int64_t pzxid; /* of the last change of its children's names */
	const void *data;
	int data_len;
	bool behind; /* as in struct change */
	/* Notes of the judge: */
	int who;
	unsigned shape; /* 0: neither this nor `who` was read yet */
	unsigned slots; /* 0: not read yet */
	int64_t lone_since_us, could_since_us, late_since_us;
	int64_t marked_us, poked_us; /* 0: not */
	bool asked_away;
	/* A mount has promised that the node will go: when, which mount, in which of its lives. */
	int64_t promised_us;
	int promised_by, promised_life;
	UT_hash_handle hh;
};

struct tree {
	struct arena *arena;
	struct node *nodes;
};

enum change_kind { CHANGE_CREATE, CHANGE_DELETE, CHANGE_SET };

/* One change of a transaction, for every copy of the tree. Its outcome was decided when it was
 * proposed. */
struct change {
	enum change_kind kind;
	const char *path;
	const void *data;
	int data_len;
	int64_t owner;
	int op;      /* its place in the request */
	bool behind; /* CREATE: a write of a later connection of its session came before it */
};

void tree_init(struct tree *tree, struct arena *arena);
void tree_finish(struct tree *tree);
void tree_copy(struct tree *tree, const struct tree *from);
struct node *tree_find(const struct tree *tree, const char *path);
/* The change that `op` would make, or the error if it cannot. A CHECK makes no change. */
enum ensemble_result tree_judge(const struct tree *tree, const struct ensemble_op *op,
                                int64_t session, struct change *ret_change);
void tree_apply(struct tree *tree, const struct change *change, int64_t zxid, int64_t wall_ms);

#endif
