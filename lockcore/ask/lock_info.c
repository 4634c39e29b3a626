/* SPDX-License-Identifier: MIT
 *
 * lock_info.c - questions that only read: the attributes of a lock, its value, its queue.
 */
#include "ask/lock_info.h"

#include "ask/waiters.h"
#include "lock/lock_watch.h"
#include "pure/node_data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void lock_info_fill_entry(const struct queue *queue, size_t i, struct lc_entry *ret_entry)
{
	const struct queue_entry *entry = &queue->entries[i];

	*ret_entry = (struct lc_entry){
		.znode = entry->znode,
		.number = entry->name.number,
		.mode = entry->name.mode,
		.of_mount = entry->name.of_mount,
		.client = entry->name.client,
		.incompatible = entry->incompatible,
		.held = entry->blocker < 0,
		.pid = entry->name.pid,
	};
	strcpy(ret_entry->host, entry->name.host);
	while (i > 0 && queue->entries[i - 1].name.number == entry->name.number) {
		ret_entry->repeat++;
		i--;
	}
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Made for the first reader that asks for it. */
static bool make_list(const struct lc *lc, struct reading *reading)
{
	const struct queue *queue = &reading->queue;
	const char *why;

	if (reading->locks)
		return true;
	reading->entries = calloc(queue->count + 1, sizeof(*reading->entries));
	reading->locks = reading->entries
	                         ? malloc((reading->name_count + 1) * sizeof(*reading->locks))
	                         : NULL;
	if (!reading->locks) {
		free(reading->entries);
		reading->entries = NULL;
		return false;
	}
	for (size_t i = 0; i < queue->count; i++)
		lock_info_fill_entry(queue, i, &reading->entries[i]);
	for (size_t i = 0; i < reading->name_count; i++)
		if (lc_check_name(lc, reading->names[i], &why) == 0)
			reading->locks[reading->lock_count++] = reading->names[i];
	qsort(reading->locks, reading->lock_count, sizeof(*reading->locks), compare_names);
	return true;
}

static void read_answered(struct reader *reader, struct reading *reading)
{
	struct lc_call *call = call_of(reader);
	bool is_entry = reading->kind != READING_QUEUE && reading->stat.ephemeral_owner != 0;
	int error = reading->error == 0 && is_entry ? -ENOENT : reading->error;

	call_end(call, error, error < 0 ? NULL : reading);
}

static void read_ask(struct lc_call *call)
{
	call->reader.watch = call->taker && call->taker->waiters_changed;
	call_read(call, call->reader.kind, call->path, read_answered);
}

static void tell_stat(struct lc_call *call, int error, void *what)
{
	const struct reading *reading = what;
	struct lc_lock_info info = {0};

	if (!reading) {
		call->listener.stat(call->ctx, error, NULL);
		return;
	}
	lock_info_read_data(&info, reading->data, reading->data_len);
	lock_info_read_stat(&info, &reading->stat);
	asking_learn_slots(call->lc, &reading->stat, reading->data, reading->data_len);
	call->listener.stat(call->ctx, 0, &info);
}

static int stat_begin(struct lc *lc, const char *lock, enum reading_kind kind, uid_t uid,
                      lc_stat_fn *done, void *ctx, struct lc_call **ret_call)
{
	return call_begin(call_new(struct lc_call, .ask = read_ask, .tell = tell_stat,
	                           .reader.kind = kind, .path = lc_path(lc, lock), .uid = uid,
	                           .listener.stat = done, .ctx = ctx),
	                  lc, ret_call);
}

int lc_stat(struct lc *lc, const char *lock, uid_t uid, lc_stat_fn *done, void *ctx,
            struct lc_call **ret_call)
{
	return stat_begin(lc, lock, READING_LOCK, uid, done, ctx, ret_call);
}

int lc_seek(struct lc *lc, const char *lock, uid_t uid, lc_stat_fn *done, void *ctx,
            struct lc_call **ret_call)
{
	return stat_begin(lc, lock, READING_NEW, uid, done, ctx, ret_call);
}

/* The watch is good: an event would have come before anything that shows a change. */
bool lc_recall(struct lc *lc, const char *lock, struct lc_lock_info *ret_info)
{
	char *path = session_may_ask(lc) ? lc_path(lc, lock) : NULL;
	const struct lock *known = path ? lock_find(lc, path, strlen(path)) : NULL;
	bool good = known && lock_is_watched(known) && !known->node.is_entry;

	free(path);
	if (good) {
		*ret_info = known->node.info;
		/* The watch does not tell of new children. */
		ret_info->children = LC_CHILDREN_UNKNOWN;
	}
	return good;
}

static void tell_value(struct lc_call *call, int error, void *what)
{
	const struct reading *reading = what;
	const char *value = NULL;
	size_t len = 0;

	if (reading)
		node_data_value(reading->data, reading->data_len, &value, &len);
	call->listener.value(call->ctx, error, value, len);
}

int lc_value(struct lc *lc, const char *lock, uid_t uid, lc_value_fn *done, void *ctx,
             struct lc_call **ret_call)
{
	return call_begin(call_new(struct lc_call, .ask = read_ask, .tell = tell_value,
	                           .reader.kind = READING_LOCK, .path = lc_path(lc, lock),
	                           .uid = uid, .listener.value = done, .ctx = ctx),
	                  lc, ret_call);
}

static void tell_list(struct lc_call *call, int error, void *what)
{
	struct reading *reading = what;

	if (!reading || !make_list(call->lc, reading)) {
		call->listener.list(call->ctx, error ? error : -ENOMEM, NULL);
		return;
	}
	call->listener.list(call->ctx, 0,
	                    &(struct lc_listing){
				    .serial = reading->serial,
				    .entries = reading->entries,
				    .entry_count = reading->queue.count,
				    .locks = reading->locks,
				    .lock_count = reading->lock_count,
			    });
}

int lc_list(struct lc *lc, const char *lock, uid_t uid, lc_list_fn *done, void *ctx,
            struct lc_call **ret_call)
{
	return call_begin(call_new(struct lc_call, .ask = read_ask, .tell = tell_list,
	                           .reader.kind = READING_QUEUE, .path = lc_path(lc, lock),
	                           .uid = uid, .listener.list = done, .ctx = ctx),
	                  lc, ret_call);
}

static void tell_waiters(struct lc_call *call, int error, void *what)
{
	const struct reading *reading = what;

	if (reading && !taker_holds_entry(call->taker))
		error = -EIO;
	call->listener.waiters(call->ctx, error,
	                       error == 0 && waiters_behind(call->taker, &reading->queue));
}

int lc_has_waiters(struct lc_taker *taker, lc_waiters_fn *done, void *ctx,
                   struct lc_call **ret_call)
{
	const struct lock *lock = taker->entry.lock;

	if (!lc_holds(taker))
		return -EIO;
	return call_begin(call_new(struct lc_call, .ask = read_ask, .tell = tell_waiters,
	                           .reader.kind = READING_QUEUE, .path = strdup(lock->path),
	                           .taker = taker, .uid = taker->entry.data.uid,
	                           .listener.waiters = done, .ctx = ctx),
	                  lock->lc, ret_call);
}
