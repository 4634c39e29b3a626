/* SPDX-License-Identifier: MIT */
#include "lock/lock_watch.h"

#include "lock/known.h"
#include "pure/node_data.h"

#include <stdlib.h>
#include <string.h>

/* A read has failed: the lock is listed. No event tells when a read that was refused will be
 * allowed. */
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
	if (lock->node.info.czxid != czxid) {
		known_forget(lock);
		lock->lists.watching = 0; /* that watch went with the other lock */
		lock->node.info.slots = 0;
		watch_fired(&lock->node.watch);
	}
	lock->node.info.czxid = czxid;
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

void lock_watch_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct lock *lock = ctx;
	struct lc_lock_info *info = &lock->node.info;

	if (answer->result == ENSEMBLE_OK) {
		lock_see_czxid(lock, answer->stat->czxid);
		*info = (struct lc_lock_info){0};
		lock_info_read_data(info, answer->data, (size_t)answer->data_len);
		lock_info_read_stat(info, answer->stat);
		lock->node.is_entry = answer->stat->ephemeral_owner != 0;
		lock->node.version = answer->stat->version;
		known_other_slots(lock);
	} else if (answer->result != ENSEMBLE_UNKNOWN && answer->result != ENSEMBLE_GONE) {
		look_again(lock, answer->result);
	}
	watch_answered(lock->lc, &lock->node.watch, answer->result == ENSEMBLE_OK);
	lock_unuse(lock);
}

static bool wants_watch(const struct lock *lock)
{
	return !watch_is_pending(&lock->node.watch) && !lock_is_watched(lock) && lc_ready(lock->lc);
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
	watch_ask(lock->lc, &lock->node.watch, lock->path, lock_watch_answered, lock);
}

/* ---- entries of other clients ---- */

struct other_watch {
	struct lock *lock;
	struct watch watch;
	struct lc_ahead *ahead; /* as it was read last; NULL: not yet */
	char znode[];
};

static void free_other(struct other_watch *other)
{
	struct lock *lock = other->lock;

	free(other->ahead);
	free(other);
	lock_unuse(lock);
}

/* The place of the watch of that entry, or NULL. */
static struct other_watch **find_other(struct lock *lock, const char *znode)
{
	for (int i = 0; i < OTHERS_WATCHED; i++)
		if (lock->others.watches[i] && strcmp(lock->others.watches[i]->znode, znode) == 0)
			return &lock->others.watches[i];
	return NULL;
}

static void give_up_node(struct lock *lock, const char *znode)
{
	char *path = path_join(lock->path, znode);

	if (path)
		watches_give_up(lock->lc, path);
	free(path);
}

static void drop_other(struct other_watch **place)
{
	struct other_watch *other = *place;

	*place = NULL;
	if (!other)
		return;
	if (watch_is_armed(&other->watch))
		give_up_node(other->lock, other->znode);
	if (!watch_is_pending(&other->watch))
		free_other(other); /* else its answer frees it */
}

void lock_watch_none(struct lock *lock)
{
	for (int i = 0; i < OTHERS_WATCHED; i++)
		drop_other(&lock->others.watches[i]);
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

static void remember_ahead(struct other_watch *other, const struct ensemble_answer *answer)
{
	struct lc_entry_info info = {0};
	struct entry_name name;

	free(other->ahead);
	other->ahead = NULL;
	if (!name_parse(other->znode, &name) || !name.of_mount)
		return;
	node_data_parse_entry(answer->data, (size_t)answer->data_len, &info);
	other->ahead = make_ahead(other->znode, &name, &info);
}

/* Only the frontend uses what is remembered of the entry that went last. */
struct lc_ahead *lc_take_ahead(struct lc_taker *taker)
{
	struct lc_ahead *ahead = taker->entry.lock->others.ahead;

	taker->entry.lock->others.ahead = NULL;
	return ahead;
}

/* The watched entry is gone for certain: no taker waits for it any more. */
static void other_gone(struct other_watch **place)
{
	struct other_watch *other = *place;
	struct lock *lock = other->lock;

	if (other->ahead) {
		free(lock->others.ahead);
		lock->others.ahead = other->ahead;
		other->ahead = NULL;
	}
	known_other_gone(lock, other->znode);
	drop_other(place);
}

static void other_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct other_watch *other = ctx;
	struct lock *lock = other->lock;
	struct other_watch **place = find_other(lock, other->znode);

	watch_answered(lock->lc, &other->watch, answer->result == ENSEMBLE_OK);
	if (!place || *place != other) {
		/* The watch was given up meanwhile. */
		if (answer->result == ENSEMBLE_OK && !place)
			give_up_node(lock, other->znode);
		free_other(other);
	} else if (answer->result == ENSEMBLE_OK) {
		remember_ahead(other, answer);
	} else if (answer->result == ENSEMBLE_NONODE) {
		other_gone(place);
	} else if (answer->result != ENSEMBLE_GONE) {
		/* The read was refused, or its answer was lost. */
		look_again(lock, answer->result);
	}
}

static struct other_watch *make_other(struct lock *lock, const char *znode)
{
	struct other_watch *other = calloc(1, sizeof(*other) + strlen(znode) + 1);

	if (!other)
		return NULL;
	other->lock = lock;
	strcpy(other->znode, znode);
	lock_use(lock);
	return other;
}

/* Sends a get, not an exists, whose watch on a name that is gone would stay for ever. False: no
 * memory. */
static bool ask_other(struct other_watch *other)
{
	struct lock *lock = other->lock;
	char *path;

	if (watch_is_pending(&other->watch) || watch_is_good(lock->lc, &other->watch) ||
	    !lc_ready(lock->lc))
		return true;
	path = path_join(lock->path, other->znode);
	if (!path)
		return false;
	watch_ask(lock->lc, &other->watch, path, other_answered, other);
	free(path);
	return true;
}

static void watch_other(struct lock *lock, const char *znode)
{
	struct other_watch **place = find_other(lock, znode);

	if (!place && strlen(znode) >= NAME_MAX_WHOLE) {
		/* A watch of so long a name would cost more than the lock is charged. */
		lock_list_later(lock);
		return;
	}
	for (int i = 0; i < OTHERS_WATCHED && !place; i++)
		if (!lock->others.watches[i])
			place = &lock->others.watches[i];
	if (!*place)
		*place = make_other(lock, znode);
	if (!*place) {
		lock_list_later(lock);
	} else if (!ask_other(*place)) {
		drop_other(place);
		lock_list_later(lock);
	}
}

void lock_watch_others(struct lock *lock, const char *const znodes[OTHERS_WATCHED])
{
	for (int i = 0; i < OTHERS_WATCHED; i++) {
		const struct other_watch *other = lock->others.watches[i];
		bool wanted = false;

		for (int k = 0; k < OTHERS_WATCHED && other; k++)
			wanted |= znodes[k] && strcmp(znodes[k], other->znode) == 0;
		if (!wanted)
			drop_other(&lock->others.watches[i]);
	}
	for (int k = 0; k < OTHERS_WATCHED; k++)
		if (znodes[k])
			watch_other(lock, znodes[k]);
}

void lock_watches_gone(struct lock *lock)
{
	watch_fired(&lock->node.watch);
	for (int i = 0; i < OTHERS_WATCHED; i++)
		if (lock->others.watches[i])
			watch_fired(&lock->others.watches[i]->watch);
	lock_watch_none(lock);
}

void lock_other_changed(struct lock *lock, const char *znode, enum ensemble_change change)
{
	struct other_watch **place = find_other(lock, znode);
	bool good;

	if (!place)
		return;
	/* A new connection repeats events: such an event may be of a node that was made since. */
	good = watch_is_good(lock->lc, &(*place)->watch);
	watch_fired(&(*place)->watch);
	if (change == ENSEMBLE_DELETED && good)
		other_gone(place);
	else
		lock_touch(lock); /* an entry that still bars the way is watched anew */
}
