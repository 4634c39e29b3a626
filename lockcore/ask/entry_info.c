/* SPDX-License-Identifier: MIT
 *
 * entry_info.c - questions about single entries: what their takers wrote into them.
 */
#include "ask/lock_info.h"
#include "grant/grant.h"
#include "pure/node_data.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOLDERS_MAX 16

/* ---- entries: known from a listing, or listed first; then all are read at once ---- */

struct entries_call;

struct info_item {
	struct entries_call *of;
	struct reader reader;
	char *znode; /* what the info's points to */
	bool gone;
};

struct entries_call {
	struct lc_call call;
	char *znode;  /* the one asked for, or NULL: all holders */
	bool certain; /* some were asked for: none is an error */
	size_t count;
	struct info_item *items;
	struct lc_entry_info *infos;
};

static void entries_finish(struct lc_call *call)
{
	struct entries_call *entries = (struct entries_call *)call;

	for (size_t i = 0; i < entries->count; i++) {
		reader_cancel(&entries->items[i].reader);
		free(entries->items[i].znode);
	}
	free(entries->items);
	free(entries->infos);
	free(entries->znode);
}

/* Room for so many, none of them there yet. */
static bool make_items(struct entries_call *entries, size_t count)
{
	entries->items = calloc(count + 1, sizeof(*entries->items));
	entries->infos = calloc(count + 1, sizeof(*entries->infos));
	return entries->items && entries->infos;
}

/* Its name may be of any length: other clients choose theirs. */
static bool add_entry(struct entries_call *entries, const struct lc_entry *entry)
{
	struct info_item *item = &entries->items[entries->count];

	*item = (struct info_item){.of = entries, .znode = strdup(entry->znode)};
	if (!item->znode)
		return false;
	entries->infos[entries->count].entry = *entry;
	entries->infos[entries->count].entry.znode = item->znode;
	entries->count++;
	return true;
}

/* This mount knows when its own takers got the lock. */
static void add_own_knowledge(struct lc_call *call, struct lc_entry_info *info)
{
	struct lock *lock = lock_find(call->lc, call->path, strlen(call->path));
	struct entry_name name;
	struct entry *entry;

	if (!lock || info->session != call->lc->session->id ||
	    !name_parse(info->entry.znode, &name))
		return;
	entry = entry_of_node(lock, info->entry.znode, &name);
	if (entry && entry->repeated)
		reuse_end(lock); /* its token is shown */
	if (entry && entry->data.held_since_ms >= 0)
		info->held_since_ms = entry->data.held_since_ms;
}

/* All that are still there, when each has been read. */
static void tell_entries(struct lc_call *call, int error, void *what)
{
	const struct entries_call *entries = (struct entries_call *)call;
	size_t count = 0;

	(void)what;
	for (size_t i = 0; i < entries->count && error == 0; i++)
		if (!entries->items[i].gone)
			entries->infos[count++] = entries->infos[i];
	if (error == 0 && entries->certain && count == 0)
		error = -ENOENT;
	call->listener.entries(call->ctx, error, error < 0 ? NULL : entries->infos, count);
}

static void entry_answered(struct reader *reader, struct reading *reading)
{
	struct info_item *item =
		(struct info_item *)((char *)reader - offsetof(struct info_item, reader));
	struct entries_call *entries = item->of;
	struct lc_entry_info *info = &entries->infos[item - entries->items];

	if (reading->error < 0 && reading->error != -ENOENT) {
		call_fail(&entries->call, reading->error);
		return;
	}
	item->gone = reading->error < 0; /* since the listing */
	if (!item->gone) {
		info->token = reading->stat.czxid;
		info->session = reading->stat.ephemeral_owner;
		info->queued_since_ms = reading->stat.ctime_ms;
		node_data_parse_entry(reading->data, reading->data_len, info);
		if (!info->entry.of_mount && info->reason[0] == '\0')
			node_data_copy_line(info->reason, sizeof(info->reason), reading->data,
			                    reading->data_len);
		add_own_knowledge(&entries->call, info);
	}
	if (entries->call.reads == 0)
		call_end(&entries->call, 0, NULL);
}

static void entries_read(struct lc_call *call)
{
	struct entries_call *entries = (struct entries_call *)call;

	for (size_t i = 0; i < entries->count; i++) {
		struct info_item *item = &entries->items[i];
		char *path = path_join(call->path, item->znode);
		int r = -ENOMEM;

		item->reader.answer = entry_answered;
		if (path)
			r = reader_ask(&item->reader, call, READING_ENTRY, path);
		free(path);
		if (r < 0) {
			call_fail_soon(call, r);
			return;
		}
	}
}

/* The entries that are asked for: one, or all that wait for nobody, which come first. */
static bool choose(struct entries_call *entries, const struct queue *queue)
{
	size_t first = 0, count = 0;
	ssize_t place;

	if (entries->znode) {
		place = queue_find(queue, entries->znode);
		first = place >= 0 ? (size_t)place : 0;
		count = place >= 0;
	} else {
		while (count < queue->count && count < HOLDERS_MAX &&
		       queue->entries[count].blocker < 0)
			count++;
	}
	if (!make_items(entries, count))
		return false;
	for (size_t i = first; i < first + count; i++) {
		struct lc_entry entry;

		lock_info_fill_entry(queue, i, &entry);
		if (!add_entry(entries, &entry))
			return false;
	}
	return true;
}

static void entries_listed(struct reader *reader, struct reading *reading)
{
	struct lc_call *call = call_of(reader);
	struct entries_call *entries = (struct entries_call *)call;

	if (reading->error < 0)
		call_fail(call, reading->error);
	else if (!choose(entries, &reading->queue))
		call_fail(call, -ENOMEM);
	else if (entries->count == 0)
		call_end(call, 0, NULL);
	else
		entries_read(call);
}

static void entries_list(struct lc_call *call)
{
	call_read(call, READING_QUEUE, call->path, entries_listed);
}

int lc_entries(struct lc *lc, const char *lock, uid_t uid, const char *znode,
               const struct lc_entry *known, size_t count, lc_entries_fn *done, void *ctx,
               struct lc_call **ret_call)
{
	struct entries_call *entries =
		call_new(struct entries_call, .ask = known ? entries_read : entries_list,
	                 .tell = tell_entries, .finish = entries_finish, .uid = uid,
	                 .listener.entries = done, .ctx = ctx);
	bool ok;

	if (!entries)
		return -ENOMEM;
	entries->certain = znode || known;
	if (znode)
		entries->znode = strdup(znode);
	ok = (!znode || entries->znode) && (!known || make_items(entries, count));
	for (size_t i = 0; ok && i < count; i++)
		ok = add_entry(entries, &known[i]);
	if (ok)
		entries->call.path = lc_path(lc, lock);
	return call_begin(&entries->call, lc, ret_call);
}

/* ---- the last sign of life of an entry's mount ---- */

struct renewed_call {
	struct lc_call call; /* its path: the mount's root is above it */
	uint64_t session_half;
};

static void tell_renewed(struct lc_call *call, int error, void *mtime_ms)
{
	call->listener.renewed(call->ctx, error, mtime_ms ? *(int64_t *)mtime_ms : -1);
}

/* The mount may have another root than this one: any node above the lock. */
static void renewed_answered(struct reader *reader, struct reading *reading)
{
	struct lc_call *call = call_of(reader);

	if (reading->error == -ENOENT && *call->path) {
		*strrchr(call->path, '/') = '\0';
		call_ask(call);
		return;
	}
	call_end(call, reading->error, reading->error < 0 ? NULL : &reading->stat.mtime_ms);
}

static void renewed_ask(struct lc_call *call)
{
	uint64_t half = ((struct renewed_call *)call)->session_half;
	char *path;

	if (asprintf(&path, "%s/" ROOT_DIR "/%016" PRIx64, call->path, half) < 0) {
		call_fail_soon(call, -ENOMEM);
		return;
	}
	call_read(call, READING_ENTRY, path, renewed_answered);
	free(path);
}

int lc_renewed(struct lc *lc, const char *lock, uid_t uid, const char *znode, lc_renewed_fn *done,
               void *ctx, struct lc_call **ret_call)
{
	struct renewed_call *renewed;
	struct entry_name name;

	if (!name_parse(znode, &name) || !name.of_mount)
		return -EINVAL;
	renewed = call_new(struct renewed_call, .ask = renewed_ask, .tell = tell_renewed,
	                   .path = lc_path_above(lc, lock), .uid = uid, .listener.renewed = done,
	                   .ctx = ctx);
	if (!renewed)
		return -ENOMEM;
	renewed->session_half = name.session_half;
	return call_begin(&renewed->call, lc, ret_call);
}

/* ---- the token of an entry that was made in a transaction ---- */

static void token_answered(struct lc_call *call, const struct ensemble_answer *answer)
{
	struct entry *entry = &call->taker->entry;
	bool there = answer->result == ENSEMBLE_OK;

	if (!there)
		lock_want_list(entry->lock);
	call_end(call, there && entry_read(entry, answer) ? 0 : -EIO, NULL);
}

static void token_ask(struct lc_call *call)
{
	bool holds = lc_holds(call->taker) && taker_holds_entry(call->taker);
	char *path = holds ? entry_path(&call->taker->entry) : NULL;

	if (path)
		call_get(call, path, token_answered, MEANT(ENSEMBLE_NONODE));
	else
		call_fail_soon(call, holds ? -ENOMEM : -EIO);
	free(path);
}

int lc_fetch_token(struct lc_taker *taker, lc_done_fn *done, void *ctx, struct lc_call **ret_call)
{
	const struct lock *lock = taker->entry.lock;

	return call_begin(call_new(struct lc_call, .ask = token_ask, .tell = call_tell_done,
	                           .path = strdup(lock->path), .taker = taker,
	                           .listener.done = done, .ctx = ctx),
	                  lock->lc, ret_call);
}
