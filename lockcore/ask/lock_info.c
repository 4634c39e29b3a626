/* SPDX-License-Identifier: MIT
 *
 * lock_info.c - questions that only read: the attributes of a lock, its value, its queue.
 */
#include "ask/lock_info.h"

#include "pure/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An entry is no lock. */
static int lock_error(const struct reading *reading)
{
	if (reading->error == 0 && reading->stat.ephemeral_owner != 0)
		return -ENOENT;
	return reading->error;
}

/* ---- stat ---- */

struct stat_call {
	struct lc_call call;
	lc_stat_fn *tell;
};

static void stat_failed(struct lc_call *call, int error)
{
	((struct stat_call *)call)->tell(call->ctx, error, NULL);
}

static void stat_answered(struct reader *reader, struct reading *reading)
{
	struct lc_call *call = call_of(reader);
	struct lc_lock_info info = {0};
	int error = lock_error(reading);

	if (error < 0) {
		call_fail(call, error);
		return;
	}
	info.czxid = reading->stat.czxid;
	info.ctime_ms = reading->stat.ctime_ms;
	info.mtime_ms = reading->stat.mtime_ms;
	info.has_attributes = record_parse_lock(reading->data, reading->data_len, &info.attributes);
	info.slots = record_slots(reading->data, reading->data_len);
	info.children = (unsigned)reading->stat.children;
	reading_learn_slots(call->lc, &reading->stat, reading->data, reading->data_len);
	call_close(call);
	((struct stat_call *)call)->tell(call->ctx, 0, &info);
	call_free_if_done(call);
}

static void stat_ask(struct lc_call *call)
{
	call_read(call, READING_LOCK, call->path, stat_answered);
}

int lc_stat(struct lc *lc, const char *lock, uid_t uid, lc_stat_fn *done, void *ctx,
            struct lc_call **ret_call)
{
	struct stat_call *stat = call_new(struct stat_call, .ask = stat_ask, .fail = stat_failed,
	                                  .uid = uid, .ctx = ctx);

	if (!stat)
		return -ENOMEM;
	stat->tell = done;
	return call_begin(&stat->call, lc, lc_path(lc, lock), ret_call);
}

/* ---- value ---- */

struct value_call {
	struct lc_call call;
	lc_value_fn *tell;
};

static void value_failed(struct lc_call *call, int error)
{
	((struct value_call *)call)->tell(call->ctx, error, NULL, 0);
}

static void value_answered(struct reader *reader, struct reading *reading)
{
	struct lc_call *call = call_of(reader);
	int error = lock_error(reading);
	const char *value;
	size_t len;

	if (error < 0) {
		call_fail(call, error);
		return;
	}
	record_value(reading->data, reading->data_len, &value, &len);
	call_close(call);
	((struct value_call *)call)->tell(call->ctx, 0, value, len);
	call_free_if_done(call);
}

static void value_ask(struct lc_call *call)
{
	call_read(call, READING_LOCK, call->path, value_answered);
}

int lc_value(struct lc *lc, const char *lock, uid_t uid, lc_value_fn *done, void *ctx,
             struct lc_call **ret_call)
{
	struct value_call *value = call_new(struct value_call, .ask = value_ask,
	                                    .fail = value_failed, .uid = uid, .ctx = ctx);

	if (!value)
		return -ENOMEM;
	value->tell = done;
	return call_begin(&value->call, lc, lc_path(lc, lock), ret_call);
}

/* ---- list ---- */

struct list_call {
	struct lc_call call;
	lc_list_fn *tell;
};

void lock_info_fill_entry(const struct queue *queue, size_t i, struct lc_entry *ret_entry)
{
	const struct queue_entry *entry = &queue->entries[i];

	*ret_entry = (struct lc_entry){
		.znode = entry->znode,
		.number = entry->name.number,
		.mode = entry->name.mode,
		.of_mount = entry->name.of_mount,
		.client = entry->name.client,
		.incompatible = entry->name.incompatible,
		.held = queue_blocker(queue, i) < 0,
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

static void list_failed(struct lc_call *call, int error)
{
	((struct list_call *)call)->tell(call->ctx, error, NULL);
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

static void list_answered(struct reader *reader, struct reading *reading)
{
	struct lc_call *call = call_of(reader);

	if (reading->error < 0 || !make_list(call->lc, reading)) {
		call_fail(call, reading->error < 0 ? reading->error : -ENOMEM);
		return;
	}
	call_close(call);
	((struct list_call *)call)
		->tell(call->ctx, 0,
	               &(struct lc_listing){
			       .serial = reading->serial,
			       .entries = reading->entries,
			       .entry_count = reading->queue.count,
			       .locks = reading->locks,
			       .lock_count = reading->lock_count,
		       });
	call_free_if_done(call);
}

static void list_ask(struct lc_call *call)
{
	call_read(call, READING_QUEUE, call->path, list_answered);
}

int lc_list(struct lc *lc, const char *lock, uid_t uid, lc_list_fn *done, void *ctx,
            struct lc_call **ret_call)
{
	struct list_call *list = call_new(struct list_call, .ask = list_ask, .fail = list_failed,
	                                  .uid = uid, .ctx = ctx);

	if (!list)
		return -ENOMEM;
	list->tell = done;
	return call_begin(&list->call, lc, lc_path(lc, lock), ret_call);
}
