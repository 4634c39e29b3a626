/* SPDX-License-Identifier: MIT
 *
 * dir.c - reading directories. A directory is listed when it is read from the
 * start, in one request however long it is, and then handed out piece by piece; open
 * directories of one user that read the same share it (content.h).
 */
#include "files/dir.h"

#include "files/sweep.h"
#include "request/parked.h"
#include "tree/fixed.h"
#include "tree/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The answers to all who waited for a listing leave in few turns, each recorded before; the kernel
 * asks for the rest of the names in requests that change nothing. */
#define FIRST_PAGE 4096

struct dir {
	struct open_file base;
	const struct content *content; /* NULL: not read yet */
};

static struct dir *dir_of(struct open_file *file)
{
	return (struct dir *)file;
}

/* Each name takes a letter for its type, the name and a byte 0. So an offset is where a name
 * begins, and can be told from others, which lseek(2) may have made up. */
static void add_name(struct dir_list *list, const char *name, mode_t type)
{
	size_t size = 1 + strlen(name) + 1;

	if (size > list->room - list->len) {
		size_t room = 2 * (list->room + size);
		char *data = realloc(list->data, room);

		if (!data) {
			list->failed = true;
			return;
		}
		list->data = data;
		list->room = room;
	}
	list->data[list->len] = type == S_IFDIR ? 'd' : 'f';
	memcpy(list->data + list->len + 1, name, size - 1);
	list->len += size;
}

static bool is_start(const struct content *content, off_t off)
{
	return content && off >= 0 && (size_t)off < content->len &&
	       (off == 0 || content->data[off - 1] == '\0');
}

static void reply_names(struct request *req, const struct dir *dir, size_t size, off_t off)
{
	const struct content *content = dir->content;
	char *buffer = malloc(size);
	size_t used = 0;

	if (!buffer) {
		reply_err(req, ENOMEM);
		return;
	}
	while (is_start(content, off)) {
		const char *name = content->data + off + 1;
		off_t next = off + 1 + (off_t)strlen(name) + 1;

		if (!reply_add_name(buffer, &used, size, name, name[-1] == 'd' ? S_IFDIR : S_IFREG,
		                    next))
			break;
		off = next;
	}
	reply_buf(req, buffer, used);
	free(buffer);
}

/* The list that was made of the lock, from its start. */
static void reply_list(struct frontend *front, struct request *req, const struct node *node,
                       struct dir *dir, const struct dir_list *list, size_t size)
{
	const struct content *content = NULL;

	errno = ENOMEM;
	if (!list->failed)
		content = content_get(&front->contents, node, req->in.uid, list->data, list->len);
	if (content) {
		content_drop(dir->content);
		dir->content = content;
		record_touch(&dir->base.record);
		reply_names(req, dir, size < FIRST_PAGE ? size : FIRST_PAGE, 0);
	} else {
		reply_err(req, errno);
	}
}

/* The files that every directory of this kind has. */
static void add_static(struct dir_list *list, const struct node *node)
{
	add_name(list, ".", S_IFDIR);
	add_name(list, "..", S_IFDIR);
	for (size_t i = 0; node->kind == NODE_LOCK && lock_file_names[i]; i++)
		add_name(list, lock_file_names[i], S_IFREG);
	for (const struct fixed_file *file = fixed_files; file->name; file++)
		if (file->in == node->kind)
			add_name(list, file->name, file->mode & S_IFMT);
}

static void add_listed(struct dir_list *list, const struct node *node,
                       const struct lc_listing *listing)
{
	char name[QUEUE_NAME_MAX + 1];

	add_static(list, node);
	for (size_t i = 0; node->kind == NODE_QUEUE && i < listing->entry_count; i++) {
		snapshot_name(name, &listing->entries[i]);
		add_name(list, name, S_IFREG);
	}
	for (size_t i = 0; node->kind != NODE_QUEUE && i < listing->lock_count; i++)
		add_name(list, listing->locks[i], S_IFDIR);
}

/* The names to show, of the lock or of its queue: many may have waited for the same listing. */
static const struct dir_list *list_of(struct frontend *front, const struct node *node,
                                      const struct lc_listing *listing)
{
	uint64_t serial = 2 * listing->serial + (node->kind == NODE_QUEUE);
	struct dir_list *list = &front->lists->directories[serial % DIR_LISTS_MAX];

	if (list->serial == serial)
		return list;
	free(list->data);
	*list = (struct dir_list){0};
	add_listed(list, node, listing);
	if (!list->failed) {
		list->serial = serial;
		list->ino = node->ino;
	}
	return list;
}

void dir_lists_finish(struct lists *lists)
{
	sweep_finish(lists);
	for (int i = 0; i < DIR_LISTS_MAX; i++)
		free(lists->directories[i].data);
}

/* A request for the names, of which it has none yet. */
struct dir_reading {
	struct parked parked;
	struct dir *dir;
	size_t size;
};

static void dir_listed(void *ctx, int err, const struct lc_listing *listing)
{
	const struct dir_reading *reading = ctx;
	struct parked *parked = ctx;
	struct frontend *front = parked->front;
	struct node *node = parked->node;

	if (!unpark_succeeded(parked, err))
		return;
	if (node->kind == NODE_QUEUE && !snapshot_is_of(node->snapshot, listing))
		node_snapshot(front->nodes, node, snapshot_take(listing, front->clock_us()));
	reply_list(front, parked->req, node, reading->dir, list_of(front, node, listing),
	           reading->size);
	parked_free(parked);
}

static void dir_read(struct open_file *file, struct request *req, uint64_t ino, size_t size,
                     off_t off)
{
	struct frontend *front = file->front;
	struct node *node = node_by_ino(front->nodes, ino);
	struct dir *dir = dir_of(file);
	struct dir_reading *reading;

	if (off > 0) {
		reply_names(req, dir, size, off);
		return;
	}
	if (node->kind == NODE_ABOUT) {
		struct dir_list list = {0};

		add_static(&list, node);
		reply_list(front, req, node, dir, &list, size);
		free(list.data);
		return;
	}
	reading = park(front, req, node, sizeof(*reading));
	if (!reading)
		return;
	reading->dir = dir;
	reading->size = size;
	park_call(&reading->parked, lc_list(front->lc, node->lock, parked_uid(&reading->parked),
	                                    dir_listed, reading, &reading->parked.call));
}

static void dir_close(struct open_file *file)
{
	content_drop(dir_of(file)->content);
}

static void dir_save_load(struct codec *codec, struct open_file *file)
{
	struct dir *dir = dir_of(file);

	dir->content = content_save_load(codec, &file->front->contents, dir->content);
}

static const struct file_ops dir_ops = {
	.size = sizeof(struct dir),
	.kind_of_record = RECORD_DIR,
	.readdir = dir_read,
	.close = dir_close,
	.save_load = dir_save_load,
};

void dir_open(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct request *req = request_of(fuse);
	struct open_file *file = open_file_new(req->front, &dir_ops, NULL, req->in.uid);

	(void)ino, (void)fi;
	reply_open(req, file, file ? 0 : -errno);
}

void dir_record_save_load(struct codec *codec, void *front, struct record *record)
{
	open_file_record_save_load(codec, front, &dir_ops, record);
}
