/* SPDX-License-Identifier: MIT
 *
 * attributes.c - what stat(2) says of each kind of node.
 */
#include "face.h"

#include <string.h>
#include <sys/stat.h>

static struct timespec to_timespec(int64_t ms)
{
	return (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
}

/* The lock a file belongs to. */
static const struct node *lock_of(const struct node *node)
{
	while (node->kind != NODE_LOCK && node->parent)
		node = node->parent;
	return node;
}

static struct lc_attributes owner_of(const struct face *face, const struct node *lock)
{
	if (lock->kind == NODE_LOCK && lock->info.has_attributes)
		return lock->info.attributes;
	return (struct lc_attributes){
		.uid = face->uid, .gid = face->gid, .mode = 0755, .door_mode = 0600,
	};
}

void attributes(const struct face *face, const struct node *node, struct stat *ret_stat)
{
	const struct node *lock = lock_of(node);
	struct lc_attributes owner = owner_of(face, lock);
	struct stat st = {
		.st_ino = node->ino, .st_nlink = 1, .st_uid = owner.uid, .st_gid = owner.gid,
		.st_blksize = 4096,
	};

	if (lock->kind == NODE_LOCK) {
		st.st_ctim = st.st_mtim = st.st_atim = to_timespec(lock->info.mtime_ms);
	}
	switch (node->kind) {
	case NODE_ROOT:
		st.st_mode = S_IFDIR | 0755;
		break;
	case NODE_LOCK:
		st.st_mode = S_IFDIR | owner.mode;
		break;
	case NODE_DOOR:   /* size 0: grep, tar and file(1) leave it alone */
		st.st_mode = S_IFREG | owner.door_mode;
		break;
	case NODE_QUEUE:
	case NODE_ABOUT:
		st.st_mode = S_IFDIR | 0555;
		break;
	case NODE_ENTRY:
		st.st_mode = S_IFREG | 0644 | (node->entry->entry.held ? 0111 : 0);
		st.st_uid = node->entry->uid >= 0 ? (uid_t)node->entry->uid : 0;
		st.st_gid = st.st_uid;
		st.st_size = VIEW_SIZE;
		st.st_ctim = st.st_mtim = st.st_atim = to_timespec(node->entry->since_ms);
		break;
	case NODE_HOLDER:
	case NODE_STATUS:
	case NODE_METRICS:
		st.st_mode = S_IFREG | 0444;
		st.st_size = VIEW_SIZE;
		break;
	}
	*ret_stat = st;
}
