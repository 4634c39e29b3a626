/* SPDX-License-Identifier: MIT */
#include "lock/lock_watch.h"

#include "lock/taker.h"
#include "pure/node_data.h"

#include <stdlib.h>
#include <string.h>

/* A read went wrong: look again. Nothing tells when a read that was refused will be good. */
static void look_again(struct lock *lock, enum ensemble_result result)
{
	if (result == ENSEMBLE_NONODE || result == ENSEMBLE_UNKNOWN)
		lock_want_list(lock);
	else
		lock_list_later(lock);
}

/* ---- the lock itself ---- */

void lock_see_czxid(struct lock *lock, int64_t czxid)
{
	struct lc_taker *taker;

	if (lock->node.czxid != czxid) {
		DL_FOREACH(lock->takers.all, taker) {
			taker->entry.place.adjacent = taker->entry.place.first = false;
			entry_set_ahead(&taker->entry, NULL, AHEAD_UNKNOWN);
		}
		lock->node.slots = 0;
		watch_fired(&lock->node.watch);
	}
	lock->node.czxid = czxid;
}

void lock_info_read_data(struct lc_lock_info *info, const char *data, size_t len)
{
	info->has_attributes = node_data_parse_lock(data, len, &info->attributes);
	info->slots = node_data_slots(data, len);
}

void lock_info_read_stat(struct lc_lock_info *info, const struct ensemble_stat *stat)
{
	info->czxid = stat->czxid;
	info->ctime_ms = stat->ctime_ms;
	info->mtime_ms = stat->mtime_ms;
	info->children = (unsigned)stat->children;
}

void lock_watch_answered(struct lock *lock, const struct ensemble_answer *answer)
{
	struct lc_lock_info *info = &lock->node.info;
	unsigned slots;

	if (answer->result == ENSEMBLE_OK) {
		*info = (struct lc_lock_info){0};
		lock_info_read_data(info, answer->data, (size_t)answer->data_len);
		lock_info_read_stat(info, answer->stat);
		lock->node.is_entry = answer->stat->ephemeral_owner != 0;
		slots = info->slots;
		lock_see_czxid(lock, answer->stat->czxid);
		lock->node.version = answer->stat->version;
		/* The last listing was judged for one slot if it was not known better. */
		if (slots != 1 || lock->node.slots > 1 || lock->lists.slots_asked)
			lock_want_list(lock);
		lock->node.slots = slots;
		lock->lists.slots_asked = false;
	} else if (answer->result != ENSEMBLE_UNKNOWN && answer->result != ENSEMBLE_GONE) {
		look_again(lock, answer->result);
	}
	watch_answered(lock->lc, &lock->node.watch, answer->result == ENSEMBLE_OK);
	lock_unuse(lock);
}

static void data_answered(void *ctx, const struct ensemble_answer *answer)
{
	lock_watch_answered(ctx, answer);
}

static bool wants_watch(const struct lock *lock)
{
	return !watch_is_pending(&lock->node.watch) && !lock_is_watched(lock) &&
	       session_is_ready(lock->lc);
}

struct lock *lock_watch_by_read(struct lc *lc, const char *path, uid_t uid)
{
	struct lock *lock = lock_find(lc, path, strlen(path));

	if (!lock || !wants_watch(lock))
		return NULL;
	watch_begin(&lock->node.watch);
	return lock_get_known(lc, path, uid);
}

void lock_watch(struct lock *lock)
{
	if (!wants_watch(lock))
		return;
	lock_use(lock);
	watch_ask(lock->lc, &lock->node.watch, lock->path, data_answered, lock);
}

/* ---- the entry that the front waits for ---- */

struct front_watch {
	struct lock *lock;
	struct watch watch;
	char *znode;
	bool gone; /* it was not there when it was to be watched */
};

static void free_front_watch(struct front_watch *front)
{
	struct lock *lock = front->lock;

	free(front->znode);
	free(front);
	lock_unuse(lock);
}

static void give_up_node(struct lock *lock, const char *znode)
{
	char *path = path_join(lock->path, znode);

	if (path)
		watches_give_up(lock->lc, path);
	free(path);
}

void lock_watch_none(struct lock *lock)
{
	struct front_watch *front = lock->front.watch;

	lock->front.watch = NULL;
	if (!front)
		return;
	if (watch_is_armed(&front->watch))
		give_up_node(lock, front->znode);
	if (!watch_is_pending(&front->watch))
		free_front_watch(front); /* or its answer frees it */
}

static struct lc_ahead *make_ahead(const char *znode, const struct entry_name *name,
                                   const struct lc_entry_info *info)
{
	size_t znode_size = strlen(znode) + 1, reason_size = strlen(info->reason) + 1;
	struct lc_ahead *ahead = malloc(sizeof(*ahead) + znode_size + reason_size);
	char *text = (char *)(ahead + 1);

	if (!ahead)
		return NULL;
	*ahead = (struct lc_ahead){
		.pid = name->pid,
		.znode = memcpy(text, znode, znode_size),
		.reason = memcpy(text + znode_size, info->reason, reason_size),
	};
	strcpy(ahead->host, name->host);
	strcpy(ahead->command, info->command);
	return ahead;
}

/* The engine itself makes no use of it. */
static void remember_ahead(struct lock *lock, const char *znode,
                           const struct ensemble_answer *answer)
{
	struct lc_entry_info info = {0};
	struct entry_name name;

	free(lock->front.ahead);
	lock->front.ahead = NULL;
	if (!name_parse(znode, &name) || !name.of_mount)
		return;
	node_data_parse_entry(answer->data, (size_t)answer->data_len, &info);
	lock->front.ahead = make_ahead(znode, &name, &info);
}

struct lc_ahead *lc_take_ahead(struct lc_taker *taker)
{
	struct lc_ahead *ahead = taker->entry.lock->front.ahead;

	taker->entry.lock->front.ahead = NULL;
	return ahead;
}

static void front_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct front_watch *front = ctx;
	struct lock *lock = front->lock;

	if (front == lock->front.watch && answer->result == ENSEMBLE_OK)
		remember_ahead(lock, front->znode, answer);
	watch_answered(lock->lc, &front->watch, answer->result == ENSEMBLE_OK);
	if (front != lock->front.watch) {
		/* It was given up meanwhile, or another entry is waited for. */
		if (answer->result == ENSEMBLE_OK &&
		    (!lock->front.watch || strcmp(lock->front.watch->znode, front->znode) != 0))
			give_up_node(lock, front->znode);
		free_front_watch(front);
	} else if (answer->result == ENSEMBLE_NONODE) {
		front->gone = true;
		lock_touch(lock);
	} else if (answer->result != ENSEMBLE_OK && answer->result != ENSEMBLE_GONE) {
		/* Whatever was found instead of the entry: look again. */
		look_again(lock, answer->result);
	}
}

static struct front_watch *make_front_watch(struct lock *lock, const char *znode)
{
	struct front_watch *front = calloc(1, sizeof(*front));

	if (!front)
		return NULL;
	front->lock = lock;
	front->znode = strdup(znode);
	if (!front->znode) {
		free(front);
		return NULL;
	}
	lock_use(lock);
	return front;
}

/* A get, not an exists: a watch on a name that is gone would stay for ever. */
static void ask_front(struct front_watch *front)
{
	struct lock *lock = front->lock;
	char *path = path_join(lock->path, front->znode);

	if (path) {
		watch_ask(lock->lc, &front->watch, path, front_answered, front);
	} else {
		lock_watch_none(lock);
		lock_list_later(lock);
	}
	free(path);
}

void lock_watch_front(struct lock *lock, const char *znode)
{
	struct front_watch *front = lock->front.watch;

	if (front && strcmp(front->znode, znode) == 0) {
		if (!watch_is_pending(&front->watch) && !lock_front_is_watched(lock))
			ask_front(front);
		return;
	}
	lock_watch_none(lock);
	if (strlen(znode) >= NAME_MAX_WHOLE) {
		/* Another client's, and longer than what the lock is charged for. */
		lock_list_later(lock);
		return;
	}
	front = lock->front.watch = make_front_watch(lock, znode);
	if (front)
		ask_front(front);
	else
		lock_list_later(lock);
}

void lock_watches_gone(struct lock *lock)
{
	watch_fired(&lock->node.watch);
	if (lock->front.watch)
		watch_fired(&lock->front.watch->watch);
	lock_watch_none(lock);
}

const char *lock_front_gone(const struct lock *lock)
{
	return lock->front.watch && lock->front.watch->gone ? lock->front.watch->znode : NULL;
}

bool lock_front_is(const struct lock *lock, const char *znode)
{
	return lock->front.watch && strcmp(lock->front.watch->znode, znode) == 0;
}

bool lock_front_is_watched(const struct lock *lock)
{
	return watch_is_good(lock->lc, &lock->front.watch->watch);
}

void lock_front_fired(struct lock *lock)
{
	watch_fired(&lock->front.watch->watch);
}
