/* SPDX-License-Identifier: MIT
 *
 * attributes.c - what stat(2) says of each kind of node, and what chmod(2) and
 * chown(2) make of it.
 *
 * A lock has one owner and two modes: the directory's, and one for all its lock files. They are
 * kept in ZooKeeper. An answer is good for TIMEOUT_US, for all files of the lock together. So a
 * change shows on every host after that time. The engine remembers the locks that are used here,
 * and drops what it remembers when it hears of a change: it may answer as if it had asked the
 * ensemble right now.
 */
#include "files/attributes.h"

#include "files/lists.h"
#include "files/text.h"
#include "host/clock.h"
#include "request/parked.h"
#include "tree/fixed.h"

#include <errno.h>
#include <sys/stat.h>

static void set_times(struct fuse_attr *attr, int64_t ms)
{
	attr->atime = attr->mtime = attr->ctime = (uint64_t)(ms / 1000);
	attr->atimensec = attr->mtimensec = attr->ctimensec = (uint32_t)(ms % 1000 * 1000000);
}

/* The lock a file belongs to; the root if it belongs to none. */
static struct node *lock_of(const struct node *node)
{
	while (node->kind != NODE_LOCK && node->parent)
		node = node->parent;
	return (struct node *)node;
}

/* With w alone nobody but root could open `9<>` and read the token, nor flock(1) its file, and
 * tree tools would fail all the same. */
mode_t attributes_lock_file_mode(mode_t mode)
{
	mode_t write = mode & 0222;

	return write | write << 1;
}

struct lc_attributes attributes_of_lock(const struct frontend *front, const struct node *lock)
{
	if (lock->kind == NODE_LOCK && lock->info.has_attributes)
		return lock->info.attributes;
	return front->without;
}

void attributes_learn(const struct frontend *front, struct node *lock,
                      const struct lc_lock_info *info)
{
	lock->known = true;
	lock->info = *info;
	lock->info_us = front->clock_us();
	lock->swept = false;
	record_touch(&lock->record);
	node_cache(front->nodes, lock);
}

void attributes_unlearn(const struct frontend *front, struct node *lock)
{
	lock->known = lock->swept = false;
	front->lists->forgot_us = front->clock_us();
	record_touch(&lock->record);
	node_uncache(front->nodes, lock);
}

struct node *attributes_node(struct frontend *front, struct node *parent, const char *name,
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
		record_touch(&node->record);
	}
	return node;
}

/* A lock file has size 0: grep, tar and file(1) leave it alone. */
struct fuse_attr attributes(const struct frontend *front, const struct node *node)
{
	const struct node *lock = lock_of(node);
	const struct fixed_file *fixed = fixed_of(node->kind);
	struct lc_attributes owner = attributes_of_lock(front, lock);
	struct fuse_attr attr = {
		.ino = node->ino,
		.mode = fixed ? fixed->mode : S_IFDIR | 0755,
		.nlink = 1,
		.uid = owner.uid,
		.gid = owner.gid,
		.size = fixed ? (uint64_t)fixed->size : 0,
		.blksize = 4096,
	};

	if (lock->kind == NODE_LOCK) {
		set_times(&attr, lock->info.mtime_ms);
	} else {
		attr.uid = front->uid;
		attr.gid = front->gid;
	}
	/* Its text is made when it is opened. A collector of metrics does not believe one that is
	 * old. */
	if (fixed && fixed->in == NODE_ABOUT)
		set_times(&attr, clock_read_ns(CLOCK_REALTIME) / 1000000);
	if (node->kind == NODE_LOCK) {
		/* fusermount3 mounts for a user over each directory that the user may write to, but
		 * for sticky ones of others. Only the owners remove a lock anyhow. Where the kernel
		 * refuses O_CREAT in sticky directories (fs.protected_regular) it allows files of
		 * the directory's owner, as all lock files are. */
		attr.mode = S_IFDIR | owner.mode | (owner.mode & 0022 ? S_ISVTX : 0);
	} else if (node->kind == NODE_LOCK_FILE || node->kind == NODE_VALUE) {
		attr.mode = S_IFREG | owner.lock_file_mode;
	} else if (node->kind == NODE_ENTRY) {
		attr.mode = S_IFREG | 0666 | (node->entry.held ? 0111 : 0);
		/* Data that other clients wrote is not believed. */
		attr.uid =
			node->entry.of_mount && node->entry.uid >= 0 ? (uid_t)node->entry.uid : 0;
		attr.gid = attr.uid;
		attr.size = VIEW_SIZE;
		set_times(&attr, node->entry.since_ms);
	}
	/* wc -c and tail -c jump to near the end of a file that is larger than a block. */
	if (attr.size > attr.blksize)
		attr.blksize = (uint32_t)attr.size;
	return attr;
}

/* ---- reading them ---- */

/* The attributes of a lock, which may change; those of an entry do not. */
static bool may_change(const struct node *node)
{
	return node->kind != NODE_ENTRY && lock_of(node)->kind == NODE_LOCK;
}

int64_t attributes_timeout_us(const struct frontend *front, const struct node *node)
{
	int64_t left_us;

	if (!may_change(node))
		return TIMEOUT_US;
	left_us = TIMEOUT_US - (front->clock_us() - lock_of(node)->info_us);
	return left_us > 0 ? left_us : 0;
}

static void reply_attributes(struct frontend *front, struct request *req, const struct node *node)
{
	struct fuse_attr attr = attributes(front, node);

	reply_attr(req, &attr, attributes_timeout_us(front, node));
}

/* A request for a file of the lock is answered from memory if need be: the file of a held
 * descriptor is there, whatever became of the lock. */
static void lock_read(void *ctx, int err, const struct lc_lock_info *info)
{
	struct parked *parked = ctx;
	struct node *lock = lock_of(parked->node);

	unpark(parked);
	if (err == -ENOENT)
		attributes_unlearn(parked->front, lock);
	if (err == 0) {
		attributes_learn(parked->front, lock, info);
	} else if (parked->node->kind == NODE_LOCK && (err != -EHOSTUNREACH || !lock->known)) {
		parked_error(parked, err);
		return;
	}
	reply_attributes(parked->front, parked->req, parked->node);
	parked_free(parked);
}

void attributes_get(fuse_req_t fuse, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct request *req = request_of(fuse);
	struct frontend *front = req->front;
	struct node *node = node_asked(req, ino);
	uid_t uid = req->in.uid;
	struct lc_lock_info info;
	struct parked *parked;
	bool crowded;

	(void)fi;
	if (!node)
		return;
	crowded = absent_is_crowded(&front->lists->absents, ino, uid, front->clock_us());
	if (!may_change(node) || !lc_ready(front->lc) ||
	    ((node->kind != NODE_LOCK || crowded) && attributes_timeout_us(front, node) > 0)) {
		reply_attributes(front, req, node);
		return;
	}
	if (lc_recall(front->lc, node->lock, &info)) {
		attributes_learn(front, lock_of(node), &info);
		reply_attributes(front, req, node);
		return;
	}
	parked = park(front, req, node, sizeof(*parked));
	if (parked)
		park_call(parked, lc_stat(front->lc, node->lock, crowded ? ABSENT_UID : uid,
		                          lock_read, parked, &parked->call));
}

/* ---- changing them ---- */

static void lock_changed(void *ctx, int err, const struct lc_lock_info *info)
{
	struct parked *parked = ctx;

	if (!unpark_succeeded(parked, err))
		return;
	attributes_learn(parked->front, lock_of(parked->node), info);
	reply_attributes(parked->front, parked->req, parked->node);
	parked_free(parked);
}

/* The engine checks whether the user may: the kernel has checked with attributes that it saw
 * before, and the lock may belong to another user by now. */
static struct lc_change wanted_change(struct request *req, const struct node *node,
                                      const struct stat *wanted, int to_set)
{
	bool mode = to_set & FUSE_SET_ATTR_MODE;
	const struct lc_attributes attributes = {
		.uid = wanted->st_uid,
		.gid = wanted->st_gid,
		.mode = wanted->st_mode & 02777,
		.lock_file_mode = attributes_lock_file_mode(wanted->st_mode),
	};

	return (struct lc_change){
		.by = req->in.uid,
		.set_uid = to_set & FUSE_SET_ATTR_UID,
		.set_gid = to_set & FUSE_SET_ATTR_GID,
		.set_mode = mode && node->kind == NODE_LOCK,
		.set_lock_file_mode = mode && node->kind == NODE_LOCK_FILE,
		.attributes = attributes,
	};
}

static void set_of_lock(struct frontend *front, struct request *req, struct node *node,
                        const struct stat *wanted, int to_set)
{
	mode_t none = node->kind == NODE_LOCK ? S_ISUID : S_ISUID | S_ISGID | S_ISVTX;
	struct lc_change change = wanted_change(req, node, wanted, to_set);
	struct parked *parked;

	if ((to_set & FUSE_SET_ATTR_MODE) && (wanted->st_mode & none)) {
		reply_err(req, EINVAL);
		return;
	}
	parked = park(front, req, node, sizeof(*parked));
	if (!parked)
		return;
	park_change(parked,
	            lc_change(front->lc, node->lock, &change, lock_changed, parked, &parked->call));
}

static void value_truncated(void *ctx, int err)
{
	struct parked *parked = ctx;

	if (!unpark_succeeded(parked, err))
		return;
	reply_attributes(parked->front, parked->req, parked->node);
	parked_free(parked);
}

/* A user who may write `value` may empty it. Its length cannot be set in another way. `file`: by
 * which it is done, or NULL. */
static void truncate_value(struct frontend *front, struct request *req, struct node *node,
                           const struct open_file *file, off_t size)
{
	struct parked *parked;

	if (size != 0) {
		reply_err(req, EINVAL);
		return;
	}
	parked = file ? park_by(front, req, node, sizeof(*parked), budget_uid(file))
	              : park(front, req, node, sizeof(*parked));
	if (parked)
		park_change(parked, value_empty(parked, value_truncated));
}

/* By itself: a truncation brings the time along. */
static bool sets_times(int to_set)
{
	return !(to_set & FUSE_SET_ATTR_SIZE) &&
	       (to_set & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW |
	                  FUSE_SET_ATTR_MTIME_NOW));
}

/* Times are the ensemble's. A program that locks by mkdir(2) and keeps the directory's time
 * fresh has to be told that it cannot: it would rely on its lock, while others see it grow stale.
 * Truncation changes nothing but `value`. */
void attributes_set(fuse_req_t fuse, fuse_ino_t ino, struct stat *wanted, int to_set,
                    struct fuse_file_info *fi)
{
	struct request *req = request_of(fuse);
	struct frontend *front = req->front;
	struct node *node = node_asked(req, ino);
	struct fuse_attr is;

	if (!node)
		return;
	is = attributes(front, node);
	if (sets_times(to_set))
		reply_err(req, EPERM);
	else if (node->kind == NODE_VALUE && (to_set & FUSE_SET_ATTR_SIZE))
		truncate_value(front, req, node, fi ? open_file_find(front, fi->fh) : NULL,
		               wanted->st_size);
	else if ((node->kind == NODE_LOCK || node->kind == NODE_LOCK_FILE) &&
	         (to_set & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)))
		set_of_lock(front, req, node, wanted, to_set);
	else if (((to_set & FUSE_SET_ATTR_MODE) &&
	          (wanted->st_mode & 07777) != (is.mode & 07777)) ||
	         ((to_set & FUSE_SET_ATTR_UID) && wanted->st_uid != is.uid) ||
	         ((to_set & FUSE_SET_ATTR_GID) && wanted->st_gid != is.gid))
		reply_err(req, EPERM);
	else
		reply_attributes(front, req, node);
}
