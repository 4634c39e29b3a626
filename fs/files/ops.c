/* SPDX-License-Identifier: MIT
 *
 * ops.c - the operations' table, and those that change names: mkdir, rmdir. All else
 * that would change names is EPERM: users cannot make or remove the files in a lock.
 *
 * Deliberately absent: create (the kernel then sends MKNOD and OPEN, and a waiting
 * open does not hold the directory's lock), xattrs but for the one that evicts (ENOSYS spares the
 * requests).
 */
#include "files/ops.h"

#include "files/attributes.h"
#include "files/dir.h"
#include "files/file.h"
#include "files/lookup.h"
#include "files/text.h"
#include "hold/hold.h"
#include "host/log.h"
#include "host/process.h"
#include "request/parked.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* By this libfuse 3.18 and later take requests, and answer, in threads of their own, where
 * FUSE_URING_ENABLE is in the environment. The headers of 3.14 do not have it. */
#define CAP_OVER_IO_URING (1u << 31)

static void begin_connection(void *userdata, struct fuse_conn_info *conn)
{
	struct frontend *front = userdata;

	/* RELEASE is a background request: held back by a small limit, a close would
	 * be handled after the open that follows it. */
	conn->max_background = 65535;
	conn->max_write = MAX_WRITE;
	conn->want &=
		~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
	                    FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_READDIRPLUS | CAP_OVER_IO_URING);
	front->serving = true;
}

/* ---- lookup ---- */

static void forget_lookups(struct frontend *front, fuse_ino_t ino, uint64_t lookups)
{
	struct node *node = node_by_ino(front->nodes, ino);

	/* The root is never looked up, but forgotten at unmount by some kernels. */
	if (node && ino != FUSE_ROOT_ID)
		node_forget(front->nodes, node, lookups);
}

static void forget_inode(fuse_req_t fuse, fuse_ino_t ino, uint64_t lookups)
{
	struct request *req = request_of(fuse);
	forget_lookups(req->front, ino, lookups);
	request_end(req, 0);
}

static void forget_inodes(fuse_req_t fuse, size_t count, struct fuse_forget_data *forgets)
{
	struct request *req = request_of(fuse);
	struct frontend *front = req->front;

	for (size_t i = 0; i < count; i++)
		forget_lookups(front, forgets[i].ino, forgets[i].nlookup);
	request_end(req, 0);
}

/* ---- mkdir, rmdir ---- */

/* Another host may have removed it already. */
static void dir_made(void *ctx, int err, const struct lc_lock_info *info)
{
	if (unpark_succeeded(ctx, err))
		lookup_reply_lock(ctx, info);
}

/* What is made below a directory with setgid is its group's, as on other filesystems. */
static struct lc_attributes new_attributes(const struct frontend *front, const struct node *parent,
                                           const struct request *req, mode_t mode)
{
	struct lc_attributes attributes = {
		.uid = req->in.uid,
		.gid = req->in.gid,
		.mode = mode & 0777,
		.lock_file_mode = attributes_lock_file_mode(mode),
	};

	if (parent->kind == NODE_LOCK) {
		struct lc_attributes above = attributes_of_lock(front, parent);

		if (above.mode & S_ISGID) {
			attributes.gid = above.gid;
			attributes.mode |= S_ISGID;
		}
	}
	return attributes;
}

/* The look-up of the path has told of the lock. */
static bool is_seen(const struct frontend *front, const struct node *lock)
{
	return lock->known && attributes_timeout_us(front, lock) > 0;
}

/* What the look-up of the path has told of the lock above. NULL: nothing, or too long ago. The new
 * lock is counted, for the next ones that come before that lock is read again. */
static const struct lc_lock_info *seen_above(const struct frontend *front, struct node *parent)
{
	if (parent->kind != NODE_LOCK || !is_seen(front, parent))
		return NULL;
	parent->info.children++;
	record_touch(&parent->record);
	return &parent->info;
}

static void make_dir(fuse_req_t fuse, fuse_ino_t parent_ino, const char *name, mode_t mode)
{
	struct request *req = request_of(fuse);
	struct frontend *front = req->front;
	struct node *parent = node_by_ino(front->nodes, parent_ino);
	struct lc_attributes attributes = new_attributes(front, parent, req, mode);
	struct named *named;
	const char *why;
	char *path;
	int r;

	if (parent->kind != NODE_ROOT && parent->kind != NODE_LOCK) {
		reply_err(req, EPERM);
		return;
	}
	r = lc_check_name(front->lc, name, &why);
	if (r < 0) {
		log_line_of(req->in.uid, LC_NOTICE, "mkdir %s: %s", name, why);
		reply_err(req, -r);
		return;
	}
	named = lookup_park(front, req, parent, name);
	if (!named)
		return;
	path = node_path_below(parent->lock, name);
	park_change(&named->parked,
	            path ? lc_mkdir(front->lc, path, &attributes, seen_above(front, parent),
	                            dir_made, named, &named->parked.call)
	                 : -ENOMEM);
	free(path);
}

static void dir_removed(void *ctx, int err)
{
	struct parked *parked = ctx;

	if (err == 0)
		node_unname(parked->front->nodes, parked->node);
	if (err == 0 || err == -ENOENT)
		attributes_unlearn(parked->front, parked->node);
	parked_done(parked, err);
}

/* Write permission on the parent, which the kernel has checked, is not enough: the engine checks
 * the owners of the lock and of the lock above. */
static void remove_dir(fuse_req_t fuse, fuse_ino_t parent_ino, const char *name)
{
	struct request *req = request_of(fuse);
	struct frontend *front = req->front;
	struct node *parent = node_by_ino(front->nodes, parent_ino);
	struct node *node = node_child(front->nodes, parent, name);
	struct parked *parked;

	if (!node || node->kind != NODE_LOCK) {
		reply_err(req, EPERM);
		return;
	}
	holds_drop(front, process_of((pid_t)req->in.pid), node->lock);
	parked = park(front, req, node, sizeof(*parked));
	if (parked)
		park_change(parked, lc_rmdir(front->lc, node->lock, parked_uid(parked),
		                             is_seen(front, node) ? &node->info : NULL, dir_removed,
		                             parked, &parked->call));
}

/* ---- eviction ---- */

#define EVICT_XATTR "user.evict"

static void entry_evicted(void *ctx, int err)
{
	struct parked *parked = ctx;

	if (err == 0)
		node_unname(parked->front->nodes, parked->node);
	parked_done(parked, err);
}

/* Setting the attribute does what writing `evict` to the entry does. But an open for writing waits
 * for whoever has a lease on the file (F_SETLEASE), and no tool that walks through a tree sets an
 * attribute by accident. */
static void set_xattr(fuse_req_t fuse, fuse_ino_t ino, const char *name, const char *value,
                      size_t size, int flags)
{
	struct request *req = request_of(fuse);
	struct frontend *front = req->front;
	struct node *node = node_asked(req, ino);
	struct parked *parked;

	(void)value, (void)size, (void)flags;
	if (!node)
		return;
	if (node->kind != NODE_ENTRY || strcmp(name, EVICT_XATTR) != 0) {
		reply_err(req, EOPNOTSUPP);
		return;
	}
	parked = park(front, req, node, sizeof(*parked));
	if (parked)
		park_change(parked, evict_entry(parked, entry_evicted));
}

/* ---- what is not to be done here ---- */

/* A recursive removal comes by here: it evicts nobody. */
static void refuse_unlink(fuse_req_t fuse, fuse_ino_t parent, const char *name)
{
	struct request *req = request_of(fuse);
	struct frontend *front = req->front;
	const struct node *node = node_child(front->nodes, node_by_ino(front->nodes, parent), name);

	reply_err(req, node && node->kind == NODE_ENTRY ? EBUSY : EPERM);
}

static void refuse_mknod(fuse_req_t fuse, fuse_ino_t parent, const char *name, mode_t mode,
                         dev_t rdev)
{
	struct request *req = request_of(fuse);
	(void)parent, (void)name, (void)mode, (void)rdev;
	reply_err(req, EPERM);
}

static void refuse_symlink(fuse_req_t fuse, const char *link, fuse_ino_t parent, const char *name)
{
	struct request *req = request_of(fuse);
	(void)link, (void)parent, (void)name;
	reply_err(req, EPERM);
}

static void refuse_link(fuse_req_t fuse, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	struct request *req = request_of(fuse);
	(void)ino, (void)parent, (void)name;
	reply_err(req, EPERM);
}

static void refuse_rename(fuse_req_t fuse, fuse_ino_t parent, const char *name,
                          fuse_ino_t new_parent, const char *new_name, unsigned flags)
{
	struct request *req = request_of(fuse);
	(void)parent, (void)name, (void)new_parent, (void)new_name, (void)flags;
	reply_err(req, EPERM);
}

const struct fuse_lowlevel_ops ops = {
	.init = begin_connection,
	.lookup = lookup_name,
	.forget = forget_inode,
	.forget_multi = forget_inodes,
	.getattr = attributes_get,
	.setattr = attributes_set,
	.mknod = refuse_mknod,
	.mkdir = make_dir,
	.unlink = refuse_unlink,
	.rmdir = remove_dir,
	.symlink = refuse_symlink,
	.rename = refuse_rename,
	.link = refuse_link,
	.open = file_open,
	.read = file_read,
	.write = file_write,
	.flush = file_flush,
	.release = file_release,
	.fsync = file_fsync,
	.opendir = dir_open,
	.readdir = file_readdir,
	.releasedir = file_release,
	.getlk = file_getlk,
	.setlk = file_setlk,
	.flock = file_flock,
	.poll = file_poll,
	.setxattr = set_xattr,
};
