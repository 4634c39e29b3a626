/* SPDX-License-Identifier: MIT
 *
 * dir.c - reading directories. A directory is listed when it is read from the
 * start, in one request however long it is, and then handed out piece by piece.
 */
#include "face.h"

#include "snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct item {
	char *name;
	mode_t type;
};

struct dir {
	struct item *items;
	size_t count, room;
	bool failed;        /* no memory for one of them */
};

static struct dir *dir_of(const struct fuse_file_info *fi)
{
	return (struct dir *)(uintptr_t)fi->fh;
}

static void empty(struct dir *dir)
{
	for (size_t i = 0; i < dir->count; i++)
		free(dir->items[i].name);
	dir->count = 0;
	dir->failed = false;
}

static void add(struct dir *dir, const char *name, mode_t type)
{
	if (dir->count == dir->room) {
		size_t room = dir->room ? 2 * dir->room : 16;
		struct item *items = realloc(dir->items, room * sizeof(*items));

		if (!items) {
			dir->failed = true;
			return;
		}
		dir->items = items;
		dir->room = room;
	}
	dir->items[dir->count] = (struct item){.name = strdup(name), .type = type};
	dir->failed |= !dir->items[dir->count].name;
	dir->count++;
}

static void reply(fuse_req_t req, const struct dir *dir, size_t size, off_t off)
{
	char *buffer = dir->failed ? NULL : malloc(size);
	size_t used = 0;

	if (!buffer) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	for (size_t i = (size_t)off; i < dir->count; i++) {
		struct stat st = {.st_mode = dir->items[i].type, .st_ino = UINT32_MAX};
		size_t need = fuse_add_direntry(req, buffer + used, size - used, dir->items[i].name, &st,
		                                (off_t)i + 1);

		if (need > size - used)
			break;
		used += need;
	}
	fuse_reply_buf(req, buffer, used);
	free(buffer);
}

/* What every directory of this kind has. */
static void add_static(struct dir *dir, const struct node *node)
{
	add(dir, ".", S_IFDIR);
	add(dir, "..", S_IFDIR);
	if (node->kind == NODE_ROOT)
		add(dir, ".zklockfs", S_IFDIR);
	if (node->kind == NODE_ABOUT) {
		add(dir, "metrics", S_IFREG);
		add(dir, "status", S_IFREG);
	}
	if (node->kind == NODE_LOCK) {
		for (size_t i = 0; door_names[i]; i++)
			add(dir, door_names[i], S_IFREG);
		add(dir, "holder", S_IFREG);
		add(dir, "queue", S_IFDIR);
		add(dir, "slots", S_IFREG);
		add(dir, "value", S_IFREG);
	}
}

static void listed(void *ctx, int err, const struct lc_listing *listing)
{
	struct parked *parked = ctx;
	struct node *node = parked->node;
	struct dir *dir = parked->open;

	unpark(parked);
	if (err < 0) {
		parked_error(parked, err);
		return;
	}
	if (node->kind == NODE_QUEUE) {
		snapshot_free(node->snapshot);
		node->snapshot = snapshot_take(listing, parked->face->clock_us());
		for (size_t i = 0; i < listing->entry_count; i++) {
			char name[QUEUE_NAME_MAX + 1];

			snapshot_name(name, &listing->entries[i]);
			add(dir, name, S_IFREG);
		}
	} else {
		for (size_t i = 0; i < listing->lock_count; i++)
			add(dir, listing->locks[i], S_IFDIR);
	}
	reply(parked->req, dir, parked->size, parked->off);
	parked_free(parked);
}

void dir_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct dir *dir = calloc(1, sizeof(*dir));

	(void)ino;
	if (!dir) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	fi->fh = (uint64_t)(uintptr_t)dir;
	if (fuse_reply_open(req, fi) < 0)
		free(dir);
}

void dir_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct face *face = fuse_req_userdata(req);
	struct node *node = node_by_ino(face->nodes, ino);
	struct dir *dir = dir_of(fi);
	struct parked *parked;

	if (off > 0) {
		reply(req, dir, size, off);
		return;
	}
	empty(dir);
	add_static(dir, node);
	if (node->kind == NODE_ABOUT) {
		reply(req, dir, size, off);
		return;
	}
	parked = park(face, req, node, NULL);
	if (!parked)
		return;
	parked->open = dir;
	parked->size = size;
	park_call(parked, lc_list(face->lc, node->lock, listed, parked, &parked->call));
}

void dir_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct dir *dir = dir_of(fi);

	(void)ino;
	empty(dir);
	free(dir->items);
	free(dir);
	fuse_reply_err(req, 0);
}
