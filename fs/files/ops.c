/* SPDX-License-Identifier: MIT
 *
 * ops.c - the operations' table, and those that are about names: lookup, mkdir,
 * rmdir. All else that would change names is EPERM: users cannot make or remove the files in a
 * lock.
 *
 * Deliberately absent: create (the kernel then sends MKNOD and OPEN, and a waiting
 * open does not hold the directory's lock), xattrs but for the one that evicts (ENOSYS spares the
 * requests).
 */
#include "files/ops.h"

#include "files/attributes.h"
#include "files/dir.h"
#include "files/file.h"
#include "files/text.h"
#include "hold/hold.h"
#include "host/family.h"
#include "host/log.h"
#include "request/frontend.h"
#include "request/parked.h"
#include "tree/fixed.h"
#include "tree/snapshot.h"

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

/* Answers with the node, and drops the caller's reference on it. */
static void reply_entry(struct frontend *front, fuse_req_t req, struct node *node)
{
	struct fuse_entry_param entry = {.ino = node->ino};
	bool fixed = node->kind != NODE_LOCK && node->kind != NODE_ENTRY;

	entry.entry_timeout = fixed ? TIMEOUT_STATIC_S : TIMEOUT_S;
	attributes(front, node, &entry.attr);
	entry.attr_timeout = attributes_timeout(front, node);
	node_looked_up(front->nodes, node);
	fuse_reply_entry(req, &entry);
	node_unref(front->nodes, node);
}

static void reply_child(struct frontend *front, fuse_req_t req, struct node *parent,
                        const char *name, enum node_kind kind)
{
	struct node *node = node_get(front->nodes, parent, name, kind);

	if (node)
		reply_entry(front, req, node);
	else
		fuse_reply_err(req, ENOMEM);
}

/* The lock as the mount remembers it, while the ensemble is away. */
static struct node *find_remembered(struct frontend *front, const struct node *parent,
                                    const char *name)
{
	struct node *node = node_child(front->nodes, parent, name);

	return node && node->kind == NODE_LOCK && node->known ? node : NULL;
}

/* With one reference. A lock that was made anew is another lock: files opened in the former one do
 * not belong to it. */
static struct node *lock_node(struct frontend *front, struct node *parent, const char *name,
                              int64_t czxid)
{
	struct node *node = node_child(front->nodes, parent, name);

	if (node && node->kind == NODE_LOCK && node->czxid != czxid) {
		node_ref(node);
		attributes_unlearn(front, node);
		node_unname(front->nodes, node);
		node_unref(front->nodes, node);
	}
	node = node_get(front->nodes, parent, name, NODE_LOCK);
	if (node && node->czxid != czxid) {
		node->czxid = czxid;
		stored_touch(&node->stored);
	}
	return node;
}

/* A request for a name in the node. */
struct named {
	struct parked parked;
	char name[LC_NAME_MAX + 1];
};

static struct named *park_named(struct frontend *front, fuse_req_t req, struct node *parent,
                                const char *name)
{
	struct named *named = park(front, req, parent, sizeof(*named));

	if (named)
		snprintf(named->name, sizeof(named->name), "%s", name);
	return named;
}

/* Answers with the lock. */
static void reply_lock(struct named *named, const struct lc_lock_info *info)
{
	struct parked *parked = &named->parked;
	struct frontend *front = parked->front;
	struct node *node = lock_node(front, parked->node, named->name, info->czxid);

	if (!node) {
		parked_error(parked, -ENOMEM);
		return;
	}
	attributes_learn(front, node, info);
	reply_entry(front, parked->req, node);
	parked_free(parked);
}

static void lock_found(void *ctx, int err, const struct lc_lock_info *info)
{
	struct named *named = ctx;
	struct parked *parked = ctx;
	struct frontend *front = parked->front;
	struct node *node = find_remembered(front, parked->node, named->name);

	unpark(parked);
	if (err == 0) {
		reply_lock(named, info);
	} else if (err == -EHOSTUNREACH && node) {
		node_ref(node);
		reply_entry(front, parked->req, node);
		parked_free(parked);
	} else {
		if (err == -ENOENT && node)
			attributes_unlearn(front, node);
		parked_error(parked, err);
	}
}

/* The lock of that name. */
static void ask_for_lock(struct named *named)
{
	struct parked *parked = &named->parked;
	char *path = node_path_below(parked->node->lock, named->name);

	park_call(parked, path ? lc_stat(parked->front->lc, path, parked_uid(parked), lock_found,
	                                 named, &parked->call)
	                       : -ENOMEM);
	free(path);
}

static void lookup_lock(struct frontend *front, fuse_req_t req, struct node *parent,
                        const char *name)
{
	struct node *node = find_remembered(front, parent, name);
	struct named *named;
	const char *why;

	if (lc_check_name(front->lc, name, &why) < 0) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	if (node && !lc_ready(front->lc)) {
		node_ref(node);
		reply_entry(front, req, node);
		return;
	}
	named = park_named(front, req, parent, name);
	if (named)
		ask_for_lock(named);
}

static void reply_queued(struct frontend *front, fuse_req_t req, struct node *queue,
                         const char *name, const char *znode, const struct entry_facts *facts)
{
	struct node *node = node_child(front->nodes, queue, name);

	/* An open file stays one of the entry that it was opened for. */
	if (node && (strcmp(node->znode, znode) != 0 || node->entry.token != facts->token))
		node_unname(front->nodes, node);
	node = node_get(front->nodes, queue, name, NODE_ENTRY);
	if (node && !node->znode)
		node->znode = strdup(znode);
	if (!node || !node->znode) {
		if (node) {
			node_unname(front->nodes, node);
			node_unref(front->nodes, node);
		}
		fuse_reply_err(req, ENOMEM);
		return;
	}
	node->entry = *facts;
	stored_touch(&node->stored);
	reply_entry(front, req, node);
}

static void list_queue(struct named *named);

/* The one that was asked for; and others, that will be. */
static void entries_found(void *ctx, int err, const struct lc_entry_info *infos, size_t count)
{
	struct named *named = ctx;
	struct parked *parked = ctx;
	struct snapshot *snapshot = parked->node->snapshot;
	const struct lc_entry *entry = NULL;
	const struct entry_facts *facts;

	unpark(parked);
	if (err == 0 && !snapshot) { /* others took its room */
		list_queue(named);
		return;
	}
	for (size_t i = 0; snapshot && i < count; i++)
		snapshot_learn(snapshot, &infos[i]);
	if (snapshot)
		entry = snapshot_find(snapshot, named->name);
	facts = entry ? snapshot_facts(snapshot, entry) : NULL;
	if (err < 0 || !facts) {
		parked_error(parked, err < 0 ? err : -ENOENT);
		return;
	}
	reply_queued(parked->front, parked->req, parked->node, named->name, entry->znode, facts);
	parked_free(parked);
}

/* The queue was listed: which entry has that name? */
static void lookup_listed(struct named *named)
{
	struct parked *parked = &named->parked;
	struct snapshot *snapshot = parked->node->snapshot;
	const struct lc_entry *entry = snapshot ? snapshot_find(snapshot, named->name) : NULL;

	if (!entry)
		park_call(parked, snapshot ? -ENOENT : -ENOMEM);
	else
		park_call(parked,
		          lc_known(parked->front->lc, parked->node->lock, parked_uid(parked), entry,
		                   snapshot_ahead(snapshot, entry), entries_found, named,
		                   &parked->call));
}

static void queue_listed(void *ctx, int err, const struct lc_listing *listing)
{
	struct parked *parked = ctx;
	struct node *queue = parked->node;

	if (!unpark_succeeded(parked, err))
		return;
	if (!snapshot_is_of(queue->snapshot, listing))
		node_snapshot(parked->front->nodes, queue,
		              snapshot_take(listing, parked->front->clock_us()));
	lookup_listed(ctx);
}

static void list_queue(struct named *named)
{
	struct parked *parked = &named->parked;

	park_call(parked, lc_list(parked->front->lc, parked->node->lock, parked_uid(parked),
	                          queue_listed, named, &parked->call));
}

static void lookup_entry(struct frontend *front, fuse_req_t req, struct node *queue,
                         const char *name)
{
	bool fresh = snapshot_fresh(queue->snapshot, front->clock_us());
	const struct lc_entry *entry = fresh ? snapshot_find(queue->snapshot, name) : NULL;
	const struct entry_facts *facts = entry ? snapshot_facts(queue->snapshot, entry) : NULL;
	struct named *named;

	if (facts) {
		reply_queued(front, req, queue, name, entry->znode, facts);
		return;
	}
	if (!snapshot_is_name(name) || (fresh && snapshot_excludes(queue->snapshot, name))) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	named = park_named(front, req, queue, name);
	if (!named)
		return;
	if (entry)
		lookup_listed(named);
	else
		list_queue(named);
}

static void lookup_in_lock(struct frontend *front, fuse_req_t req, struct node *parent,
                           const char *name)
{
	struct door door;
	int r = door_parse(name, &door);

	if (r == -EINVAL) {
		log_line(LC_NOTICE,
		         "%s/%s: bad times after the @: use, for example, "
		         "lock@30s,most=1h,least=5m",
		         parent->lock, name);
		fuse_reply_err(req, EINVAL);
	} else if (r == 0) {
		struct node *node = node_get(front->nodes, parent, name, NODE_DOOR);

		if (!node) {
			fuse_reply_err(req, ENOMEM);
			return;
		}
		node->door = door;
		reply_entry(front, req, node);
	} else {
		lookup_lock(front, req, parent, name);
	}
}

static void lookup_name(fuse_req_t req, fuse_ino_t parent_ino, const char *name)
{
	struct frontend *front = frontend_of(req);
	struct node *parent = node_by_ino(front->nodes, parent_ino);
	const struct fixed_file *file = fixed_find(parent->kind, name);

	if (strlen(name) > LC_NAME_MAX) {
		fuse_reply_err(req, ENAMETOOLONG);
		return;
	}
	if (file)
		reply_child(front, req, parent, name, file->kind);
	else if (parent->kind == NODE_LOCK)
		lookup_in_lock(front, req, parent, name);
	else if (parent->kind == NODE_ROOT)
		lookup_lock(front, req, parent, name);
	else if (parent->kind == NODE_QUEUE)
		lookup_entry(front, req, parent, name);
	else
		fuse_reply_err(req, parent->kind == NODE_ABOUT ? ENOENT : ENOTDIR);
}

static void forget_lookups(struct frontend *front, fuse_ino_t ino, uint64_t lookups)
{
	struct node *node = node_by_ino(front->nodes, ino);

	/* The root is never looked up, but forgotten at unmount by some kernels. */
	if (node && ino != FUSE_ROOT_ID)
		node_forget(front->nodes, node, lookups);
}

static void forget_inode(fuse_req_t req, fuse_ino_t ino, uint64_t lookups)
{
	forget_lookups(frontend_of(req), ino, lookups);
	fuse_reply_none(req);
}

static void forget_inodes(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	struct frontend *front = frontend_of(req);

	for (size_t i = 0; i < count; i++)
		forget_lookups(front, forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}

/* ---- mkdir, rmdir ---- */

/* Another host may have removed it already. */
static void dir_made(void *ctx, int err, const struct lc_lock_info *info)
{
	if (unpark_succeeded(ctx, err))
		reply_lock(ctx, info);
}

/* As it is on other filesystems: below a directory with setgid everything is its group's. */
static struct lc_attributes new_attributes(const struct frontend *front, const struct node *parent,
                                           const struct fuse_ctx *who, mode_t mode)
{
	struct lc_attributes attributes = {
		.uid = who->uid,
		.gid = who->gid,
		.mode = mode & 0777,
		.door_mode = attributes_door_mode(mode),
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

static void make_dir(fuse_req_t req, fuse_ino_t parent_ino, const char *name, mode_t mode)
{
	struct frontend *front = frontend_of(req);
	struct node *parent = node_by_ino(front->nodes, parent_ino);
	struct lc_attributes attributes = new_attributes(front, parent, fuse_req_ctx(req), mode);
	struct named *named;
	const char *why;
	char *path;
	int r;

	if (parent->kind != NODE_ROOT && parent->kind != NODE_LOCK) {
		fuse_reply_err(req, EPERM);
		return;
	}
	if (mode & S_ISVTX) { /* which protected_regular would close the doors of */
		fuse_reply_err(req, EINVAL);
		return;
	}
	r = lc_check_name(front->lc, name, &why);
	if (r < 0) {
		log_line(LC_NOTICE, "mkdir %s: %s", name, why);
		fuse_reply_err(req, -r);
		return;
	}
	named = park_named(front, req, parent, name);
	if (!named)
		return;
	path = node_path_below(parent->lock, name);
	park_change(&named->parked, path ? lc_mkdir(front->lc, path, &attributes, dir_made, named,
	                                            &named->parked.call)
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
static void remove_dir(fuse_req_t req, fuse_ino_t parent_ino, const char *name)
{
	struct frontend *front = frontend_of(req);
	struct node *parent = node_by_ino(front->nodes, parent_ino);
	struct node *node = node_child(front->nodes, parent, name);
	struct parked *parked;
	pid_t process;

	if (!node || node->kind != NODE_LOCK) {
		fuse_reply_err(req, EPERM);
		return;
	}
	process = family_process(fuse_req_ctx(req)->pid);
	if (process > 0)
		holds_drop(front, process, node->lock);
	parked = park(front, req, node, sizeof(*parked));
	if (parked)
		park_change(parked, lc_rmdir(front->lc, node->lock, parked_uid(parked), dir_removed,
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

/* As if `evict` were written to the entry. But an open for writing waits for whoever has a lease on
 * the file (F_SETLEASE), and no tool that walks through a tree does this by accident. */
static void set_xattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
                      size_t size, int flags)
{
	struct frontend *front = frontend_of(req);
	struct node *node = node_asked(req, ino);
	struct parked *parked;

	(void)value, (void)size, (void)flags;
	if (!node)
		return;
	if (node->kind != NODE_ENTRY || strcmp(name, EVICT_XATTR) != 0) {
		fuse_reply_err(req, EOPNOTSUPP);
		return;
	}
	parked = park(front, req, node, sizeof(*parked));
	if (parked)
		park_change(parked, evict_entry(parked, entry_evicted));
}

/* ---- what is not to be done here ---- */

/* A recursive removal comes by here: it evicts nobody. */
static void refuse_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct frontend *front = frontend_of(req);
	const struct node *node = node_child(front->nodes, node_by_ino(front->nodes, parent), name);

	fuse_reply_err(req, node && node->kind == NODE_ENTRY ? EBUSY : EPERM);
}

static void refuse_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                         dev_t rdev)
{
	(void)parent, (void)name, (void)mode, (void)rdev;
	fuse_reply_err(req, EPERM);
}

static void refuse_symlink(fuse_req_t req, const char *link, fuse_ino_t parent, const char *name)
{
	(void)link, (void)parent, (void)name;
	fuse_reply_err(req, EPERM);
}

static void refuse_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	(void)ino, (void)parent, (void)name;
	fuse_reply_err(req, EPERM);
}

static void refuse_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
                          fuse_ino_t new_parent, const char *new_name, unsigned flags)
{
	(void)parent, (void)name, (void)new_parent, (void)new_name, (void)flags;
	fuse_reply_err(req, EPERM);
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
