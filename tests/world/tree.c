/* SPDX-License-Identifier: MIT
 *
 * tree.c - znodes by path, children in order of creation, or of their numbers.
 */
#include "tree.h"

#include "mutation.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

void tree_init(struct tree *tree, struct arena *arena)
{
	struct node *root = arena_zalloc(arena, sizeof(*root));

	*tree = (struct tree){.arena = arena};
	root->path = "/";
	root->name = "";
	HASH_ADD_KEYPTR(hh, tree->nodes, root->path, strlen(root->path), root);
}

void tree_finish(struct tree *tree)
{
	HASH_CLEAR(hh, tree->nodes);
}

struct node *tree_find(const struct tree *tree, const char *path)
{
	struct node *node;

	HASH_FIND(hh, tree->nodes, path, strlen(path), node);
	return node;
}

static struct node *find_parent(const struct tree *tree, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct node *node;

	if (slash == path)
		return tree_find(tree, "/");
	HASH_FIND(hh, tree->nodes, path, (size_t)(slash - path), node);
	return node;
}

static const char *number_of(const struct node *node)
{
	size_t len = strlen(node->name);

	return node->name + (len < 10 ? len : len - 10);
}

/* NULL: it comes last. */
static struct node *find_next(struct node *parent, const struct node *node)
{
	struct node *next = parent->children;

	if (!(node->stat.ephemeral_owner & TREE_BY_NUMBER))
		return NULL;
	while (next && strcmp(number_of(next), number_of(node)) <= 0)
		next = next->next;
	return next;
}

static void attach(struct tree *tree, struct node *node, struct node *parent)
{
	struct node *next;

	node->parent = parent;
	node->children = node->prev = node->next = NULL;
	node->stat.children = 0;
	node->name = strrchr(node->path, '/') + 1;
	next = find_next(parent, node);
	if (next)
		DL_PREPEND_ELEM(parent->children, next, node);
	else
		DL_APPEND(parent->children, node);
	parent->stat.children++;
	HASH_ADD_KEYPTR(hh, tree->nodes, node->path, strlen(node->path), node);
}

void tree_copy(struct tree *tree, const struct tree *from)
{
	struct node *root;

	/* A parent was always added before its children, and the hash keeps that order. */
	tree_init(tree, from->arena);
	root = tree_find(tree, "/");
	for (const struct node *node = from->nodes; node; node = node->hh.next) {
		struct node *copy;

		if (!node->parent) {
			root->stat = node->stat;
			root->stat.children = 0;
			root->pzxid = node->pzxid;
			continue;
		}
		copy = arena_copy(from->arena, node, sizeof(*node));
		attach(tree, copy, find_parent(tree, node->path));
	}
}

static bool path_valid(const char *path)
{
	size_t len = strlen(path);

	if (path[0] != '/' || (len > 1 && path[len - 1] == '/') || strstr(path, "//"))
		return false;
	if (strstr(path, "/./") || strstr(path, "/../"))
		return false;
	for (const char *c = path; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return false;
	return true;
}

static enum ensemble_result judge_create(const struct tree *tree, const struct ensemble_op *op,
                                         int64_t session, struct change *ret_change)
{
	/* "/a/" is a path only with a number behind it */
	size_t len = strlen(op->path);
	bool open_end = op->sequence && len > 1 && op->path[len - 1] == '/';
	struct node *parent;
	const char *path;

	if (!open_end && !path_valid(op->path))
		return ENSEMBLE_INVALID;
	parent = find_parent(tree, op->path);
	if (!parent)
		return ENSEMBLE_NONODE;
	path = op->sequence ? arena_printf(tree->arena, "%s%010d", op->path, (int)parent->stat.made)
	                    : op->path;
	if (tree_find(tree, path))
		return ENSEMBLE_EXISTS;
	if (parent->stat.ephemeral_owner)
		return ENSEMBLE_NOCHILDREN;
	*ret_change = (struct change){.kind = CHANGE_CREATE,
	                              .path = path,
	                              .data = op->data,
	                              .data_len = op->data_len,
	                              .owner = op->ephemeral ? session : 0};
	return ENSEMBLE_OK;
}

enum ensemble_result tree_judge(const struct tree *tree, const struct ensemble_op *op,
                                int64_t session, struct change *ret_change)
{
	struct node *node;

	if (op->kind == ENSEMBLE_CREATE)
		return judge_create(tree, op, session, ret_change);
	if (!path_valid(op->path))
		return ENSEMBLE_INVALID;
	node = tree_find(tree, op->path);
	if (!node)
		return ENSEMBLE_NONODE;
	if (op->version != ENSEMBLE_ANY_VERSION && op->version != node->stat.version)
		return ENSEMBLE_BADVERSION;
	switch (op->kind) {
	case ENSEMBLE_CHECK:
		return ENSEMBLE_OK;
	case ENSEMBLE_DELETE:
		if (node->children)
			return ENSEMBLE_NOTEMPTY;
		*ret_change = (struct change){.kind = CHANGE_DELETE, .path = op->path};
		return ENSEMBLE_OK;
	case ENSEMBLE_SET:
		*ret_change = (struct change){.kind = CHANGE_SET,
		                              .path = op->path,
		                              .data = op->data,
		                              .data_len = op->data_len};
		return ENSEMBLE_OK;
	case ENSEMBLE_CREATE:
	case ENSEMBLE_GET:
	case ENSEMBLE_CHILDREN:
	case ENSEMBLE_SYNC:
	case ENSEMBLE_UNWATCH:
		break;
	}
	abort();
}

static void apply_create(struct tree *tree, const struct change *change, int64_t zxid,
                         int64_t wall_ms)
{
	struct node *node = arena_zalloc(tree->arena, sizeof(*node));
	struct node *parent = find_parent(tree, change->path);

	node->path = change->path;
	node->data = change->data;
	node->data_len = change->data_len;
	node->behind = change->behind;
	node->stat = (struct ensemble_stat){.czxid = zxid,
	                                    .mzxid = zxid,
	                                    .ctime_ms = wall_ms,
	                                    .mtime_ms = wall_ms,
	                                    .ephemeral_owner = change->owner};
	if (mutation == MUTATE_falling_token)
		node->stat.czxid = ((int64_t)1 << 60) - zxid;
	node->pzxid = parent->pzxid = zxid;
	attach(tree, node, parent);
	/* The servers do not store a number above 2^31 - 1: the number repeats. */
	if (parent->stat.made < INT32_MAX)
		parent->stat.made++;
}

void tree_apply(struct tree *tree, const struct change *change, int64_t zxid, int64_t wall_ms)
{
	struct node *node;

	if (change->kind == CHANGE_CREATE) {
		apply_create(tree, change, zxid, wall_ms);
		return;
	}
	node = tree_find(tree, change->path);
	if (change->kind == CHANGE_DELETE) {
		DL_DELETE(node->parent->children, node);
		node->parent->pzxid = zxid;
		node->parent->stat.children--;
		HASH_DELETE(hh, tree->nodes, node);
		return;
	}
	node->data = change->data;
	node->data_len = change->data_len;
	node->slots = 0;
	node->stat.version++;
	node->stat.mzxid = zxid;
	node->stat.mtime_ms = wall_ms;
}
