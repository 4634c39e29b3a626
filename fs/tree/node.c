/* SPDX-License-Identifier: MIT */
#include "tree/node.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <utlist.h>

/* The first number after the root's is any below 2 to the power of this. Programs of 32 bits may
 * not know larger numbers: stat(2) fails for them with EOVERFLOW. */
#define NUMBER_BITS 31
/* How many transient names are looked at, at most, when one comes. */
#define TRANSIENT_TRIES 4

struct nodes {
	struct records *records;
	struct node *by_ino, *by_name;
	struct node *root;
	struct node *cached; /* the one read longest ago is first */
	unsigned cached_count;
	struct node *transient; /* the one looked up longest ago is first */
	unsigned transient_count;
	struct node *snapped; /* the one listed longest ago is first */
	size_t snapped_entries;
	uint64_t last;
};

/* A key is the parent's number, and behind it the name. All numbers have the same size, so no two
 * children have the same key. */
static size_t make_key(char *ret_key, uint64_t parent, const char *name)
{
	memcpy(ret_key, &parent, sizeof(parent));
	strcpy(ret_key + sizeof(parent), name);
	return sizeof(parent) + strlen(name);
}

static bool owns_path(const struct node *node)
{
	return node->kind == NODE_LOCK || node->kind == NODE_ROOT;
}

char *node_path_below(const char *lock, const char *name)
{
	char *path;

	return asprintf(&path, "%s%s%s", lock, *lock ? "/" : "", name) < 0 ? NULL : path;
}

/* A node that is no lock shares the string of the lock that it is in, whose node lives longer. */
static char *path_of(const struct node *parent, const char *name, enum node_kind kind)
{
	if (!parent)
		return strdup("");
	if (kind != NODE_LOCK)
		return parent->lock;
	return node_path_below(parent->lock, name);
}

static void free_strings(struct node *node)
{
	free(node->name);
	if (owns_path(node))
		free(node->lock);
}

static struct node *new_node(struct nodes *nodes, struct node *parent, const char *name,
                             enum node_kind kind)
{
	uint64_t above = parent ? parent->ino : 0;
	size_t size = sizeof(above) + strlen(name) + 1;
	struct node *node = calloc(1, sizeof(*node) + size);

	if (!node)
		return NULL;
	node->kind = kind;
	node->parent = parent;
	node->name = strdup(name);
	node->lock = path_of(parent, name, kind);
	if (!node->name || !node->lock) {
		free_strings(node);
		free(node);
		return NULL;
	}
	node->ino = ++nodes->last;
	size = make_key(node->key, above, name);
	HASH_ADD(by_ino, nodes->by_ino, ino, sizeof(node->ino), node);
	if (node->by_ino.tbl)
		HASH_ADD(by_name, nodes->by_name, key, size, node);
	if (!node->by_name.tbl) {
		if (node->by_ino.tbl)
			HASH_DELETE(by_ino, nodes->by_ino, node);
		free_strings(node);
		free(node);
		return NULL;
	}
	if (parent)
		node_ref(parent);
	record_begin(nodes->records, &node->record, RECORD_NODE, node->ino);
	return node;
}

int nodes_create(struct records *records, struct nodes **ret_nodes)
{
	struct nodes *nodes;
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -errno;
	nodes = calloc(1, sizeof(*nodes));
	if (nodes) {
		nodes->records = records;
		nodes->root = new_node(nodes, NULL, "", NODE_ROOT);
	}
	if (!nodes || !nodes->root) {
		free(nodes);
		return -ENOMEM;
	}
	assert(nodes->root->ino == 1); /* FUSE_ROOT_ID */
	node_ref(nodes->root);
	nodes->last += number % (1U << NUMBER_BITS);
	*ret_nodes = nodes;
	return 0;
}

static bool is_transient(const struct node *node)
{
	return node->kind == NODE_ENTRY ||
	       (node->kind == NODE_LOCK_FILE && strchr(node->name, '@'));
}

static void unlist_transient(struct nodes *nodes, struct node *node)
{
	if (!node->listed || !is_transient(node))
		return;
	node->listed = false;
	record_touch(&node->record);
	DL_DELETE(nodes->transient, node);
	nodes->transient_count--;
}

static void drop_snapshot(struct nodes *nodes, struct node *queue)
{
	if (!queue->snapshot)
		return;
	nodes->snapped_entries -= snapshot_count(queue->snapshot);
	DL_DELETE(nodes->snapped, queue);
	snapshot_free(queue->snapshot);
	queue->snapshot = NULL;
}

static void free_node(struct nodes *nodes, struct node *node)
{
	HASH_DELETE(by_ino, nodes->by_ino, node);
	node_unname(nodes, node);
	drop_snapshot(nodes, node);
	unlist_transient(nodes, node);
	record_end(&node->record);
	free(node->znode);
	free_strings(node);
	free(node);
}

void nodes_destroy(struct nodes *nodes)
{
	struct node *node, *next;

	if (!nodes)
		return;
	/* The kernel sends no FORGET for the nodes of a mount that is torn down. */
	HASH_ITER(by_ino, nodes->by_ino, node, next)
		free_node(nodes, node);
	free(nodes);
}

struct node *node_by_ino(struct nodes *nodes, uint64_t ino)
{
	struct node *node;

	HASH_FIND(by_ino, nodes->by_ino, &ino, sizeof(ino), node);
	return node;
}

struct node *node_child(struct nodes *nodes, const struct node *parent, const char *name)
{
	char key[sizeof(uint64_t) + LC_NAME_MAX + 1];
	struct node *node;

	if (strlen(name) > LC_NAME_MAX)
		return NULL;
	HASH_FIND(by_name, nodes->by_name, key, make_key(key, parent->ino, name), node);
	return node;
}

struct node *node_get(struct nodes *nodes, struct node *parent, const char *name,
                      enum node_kind kind)
{
	struct node *node = node_child(nodes, parent, name);

	if (!node)
		node = new_node(nodes, parent, name, kind);
	if (node)
		node_ref(node);
	return node;
}

void node_unname(struct nodes *nodes, struct node *node)
{
	if (!node->by_name.tbl)
		return;
	HASH_DELETE(by_name, nodes->by_name, node);
	node->by_name.tbl = NULL;
	record_touch(&node->record);
}

void node_cache(struct nodes *nodes, struct node *lock)
{
	if (!lock->by_name.tbl)
		return; /* nobody would find it */
	node_ref(lock);
	node_uncache(nodes, lock);
	lock->listed = true;
	record_touch(&lock->record);
	DL_APPEND(nodes->cached, lock);
	if (++nodes->cached_count > CACHED_LOCKS_MAX)
		node_uncache(nodes, nodes->cached);
}

void node_uncache(struct nodes *nodes, struct node *lock)
{
	if (!lock->listed)
		return;
	lock->listed = false;
	record_touch(&lock->record);
	DL_DELETE(nodes->cached, lock);
	nodes->cached_count--;
	node_unref(nodes, lock);
}

void node_ref(struct node *node)
{
	node->references++;
}

void node_unref(struct nodes *nodes, struct node *node)
{
	while (node) {
		struct node *parent = node->parent;

		assert(node->references > 0);
		node->references--;
		if (node->references > 0 || node->lookups > 0)
			return;
		free_node(nodes, node);
		node = parent; /* which has one child less */
	}
}

/* Puts the node at the end of the list, wherever it was before. */
static void list_transient(struct nodes *nodes, struct node *node)
{
	unlist_transient(nodes, node);
	node->listed = true;
	record_touch(&node->record);
	DL_APPEND(nodes->transient, node);
	nodes->transient_count++;
}

/* Forgets the first nodes of a list that has become too long. A node in use goes to the end of the
 * list instead. Other limits say how many can be in use: it is enough to look at some each time. */
static void trim_transient(struct nodes *nodes)
{
	for (int i = 0; i < TRANSIENT_TRIES && nodes->transient_count > NODE_TRANSIENT_MAX; i++) {
		struct node *first = nodes->transient;

		if (first->references == 0) {
			node_ref(first);
			first->lookups = 0;
			node_unref(nodes, first);
			continue;
		}
		DL_DELETE(nodes->transient, first);
		DL_APPEND(nodes->transient, first);
	}
}

void node_looked_up(struct nodes *nodes, struct node *node)
{
	node->lookups++;
	record_touch(&node->record);
	if (is_transient(node)) {
		list_transient(nodes, node);
		trim_transient(nodes);
	}
}

void node_snapshot(struct nodes *nodes, struct node *queue, struct snapshot *snapshot)
{
	drop_snapshot(nodes, queue);
	if (!snapshot)
		return;
	queue->snapshot = snapshot;
	DL_APPEND(nodes->snapped, queue);
	nodes->snapped_entries += snapshot_count(snapshot);
	while (nodes->snapped_entries > NODE_SNAPSHOTS_MAX && nodes->snapped != queue)
		drop_snapshot(nodes, nodes->snapped);
}

void node_forget(struct nodes *nodes, struct node *node, uint64_t lookups)
{
	assert(node->lookups >= lookups);
	node->lookups -= lookups;
	record_touch(&node->record);
	node_ref(node);
	node_unref(nodes, node);
}

/* ---- over a reload ---- */

static bool has_children(enum node_kind kind)
{
	return kind == NODE_ROOT || kind == NODE_LOCK || kind == NODE_QUEUE || kind == NODE_ABOUT;
}

/* Saves or loads the name of a node and its place in the tree. To load, it makes the node. */
static struct node *name_save_load(struct codec *codec, struct nodes *nodes, struct node *node)
{
	uint64_t ino = node ? node->ino : 0, above = node && node->parent ? node->parent->ino : 0;
	enum node_kind kind = node ? node->kind : NODE_ROOT;
	const char *name = node ? node->name : NULL;
	bool named = node && node->by_name.tbl;
	uint64_t last = nodes->last;
	struct node *parent;

	CODEC_64(codec, ino);
	CODEC_64(codec, above);
	CODEC_ENUM(codec, kind, NODE_KIND_LAST);
	name = codec_text(codec, name);
	CODEC_BOOL(codec, named);
	if (!codec->loads)
		return node;
	if (ino == nodes->root->ino)
		return nodes->root;
	parent = node_by_ino(nodes, above);
	if (!name || !*name || strlen(name) > LC_NAME_MAX || !parent ||
	    !has_children(parent->kind) || kind == NODE_ROOT || ino > last ||
	    node_by_ino(nodes, ino) || (named && node_child(nodes, parent, name)))
		codec->give_up("the state has an invalid name");
	nodes->last = ino - 1;
	node = new_node(nodes, parent, name, kind);
	nodes->last = last;
	if (!node)
		codec->give_up(strerror(ENOMEM));
	if (!named)
		node_unname(nodes, node);
	if (kind == NODE_LOCK_FILE && lock_file_parse(name, &node->lock_file) < 0)
		codec->give_up("the state has an invalid lock file");
	return node;
}

static void info_save_load(struct codec *codec, struct node *node)
{
	struct lc_lock_info *info = &node->info;

	CODEC_64(codec, node->czxid);
	CODEC_BOOL(codec, node->known);
	CODEC_64(codec, node->info_us);
	CODEC_64(codec, info->czxid);
	CODEC_64(codec, info->ctime_ms);
	CODEC_64(codec, info->mtime_ms);
	CODEC_BOOL(codec, info->has_attributes);
	CODEC_U32(codec, info->attributes.uid);
	CODEC_U32(codec, info->attributes.gid);
	CODEC_U32(codec, info->attributes.mode);
	CODEC_U32(codec, info->attributes.lock_file_mode);
	CODEC_U32(codec, info->slots);
	CODEC_U32(codec, info->children);
}

static void entry_save_load(struct codec *codec, struct node *node)
{
	const char *znode = codec_text(codec, node->znode);

	CODEC_BOOL(codec, node->entry.of_mount);
	CODEC_BOOL(codec, node->entry.held);
	CODEC_64(codec, node->entry.uid);
	CODEC_64(codec, node->entry.since_ms);
	CODEC_64(codec, node->entry.token);
	if (!codec->loads)
		return;
	node->znode = znode ? strdup(znode) : NULL;
	if (!node->znode)
		codec->give_up("the state has an invalid entry");
}

void node_record_save_load(struct codec *codec, struct nodes *nodes, struct record *record)
{
	struct node *node = name_save_load(codec, nodes, RECORD_IN(record, struct node));
	bool listed = node->listed;

	CODEC_RANGE(codec, node->lookups, 0, INT64_MAX);
	CODEC_BOOL(codec, listed);
	if (node->kind == NODE_LOCK)
		info_save_load(codec, node);
	if (node->kind == NODE_ENTRY)
		entry_save_load(codec, node);
	if (codec->loads && listed && node->kind == NODE_LOCK)
		node_cache(nodes, node);
	if (codec->loads && listed && is_transient(node))
		list_transient(nodes, node); /* who uses it is not known yet */
}

void nodes_last_save_load(struct codec *codec, struct nodes *nodes)
{
	CODEC_RANGE(codec, nodes->last, (int64_t)nodes->root->ino, INT64_MAX);
}

struct node *node_save_load(struct codec *codec, const struct nodes *nodes, const struct node *node)
{
	uint64_t ino = node ? node->ino : 0;
	struct node *found;

	CODEC_64(codec, ino);
	if (!codec->loads)
		return (struct node *)node;
	found = node_by_ino((struct nodes *)nodes, ino);
	if (!found)
		codec->give_up("the state has a file without a name");
	return found;
}

void nodes_loaded(struct nodes *nodes)
{
	struct node *node, *next;

	/* A node that is freed may free the nodes above it, too: they are before it in the list. */
	HASH_ITER(by_ino, nodes->by_ino, node, next)
		node_forget(nodes, node, 0);
}
