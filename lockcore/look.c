/* SPDX-License-Identifier: MIT
 *
 * look.c - questions that only read: what is this lock, who queues there, what did
 * they write, which value does it have.
 */
#include "call.h"
#include "record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HOLDERS_MAX 16

/* ---- stat ---- */

struct stat_call {
	struct lc_call call;
	lc_stat_fn *tell;
};

static void stat_failed(struct lc_call *call, int error)
{
	((struct stat_call *)call)->tell(call->ctx, error, NULL);
}

static void stat_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct lc_call *call = ctx;
	struct lc_lock_info info = {0};

	if (!call_answered(call, answer))
		return;
	if (answer->stat->ephemeral_owner != 0) {   /* an entry, not a lock */
		call_fail(call, -ENOENT);
		return;
	}
	info.czxid = answer->stat->czxid;
	info.ctime_ms = answer->stat->ctime_ms;
	info.mtime_ms = answer->stat->mtime_ms;
	info.has_attributes =
		record_parse_lock(answer->data, (size_t)answer->data_len, &info.attributes);
	info.slots = record_slots(answer->data, (size_t)answer->data_len);
	look_learn_slots(call->lc, answer);
	call_close(call);
	((struct stat_call *)call)->tell(call->ctx, 0, &info);
	call_settle(call);
}

static void stat_ask(struct lc_call *call)
{
	call_send(call, &(struct ensemble_op){.kind = ENSEMBLE_GET, .path = call->path}, 1,
	          stat_answered, call);
}

int lc_stat(struct lc *lc, const char *lock, lc_stat_fn *done, void *ctx, struct lc_call **ret_call)
{
	struct stat_call *stat = call_new(sizeof(*stat), &(struct lc_call){
		.ask = stat_ask, .fail = stat_failed, .ctx = ctx});

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

static void value_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct lc_call *call = ctx;
	const char *value;
	size_t len;

	if (!call_answered(call, answer))
		return;
	if (answer->stat->ephemeral_owner != 0) {
		call_fail(call, -ENOENT);
		return;
	}
	record_value(answer->data, (size_t)answer->data_len, &value, &len);
	call_close(call);
	((struct value_call *)call)->tell(call->ctx, 0, value, len);
	call_settle(call);
}

static void value_ask(struct lc_call *call)
{
	call_send(call, &(struct ensemble_op){.kind = ENSEMBLE_GET, .path = call->path}, 1,
	          value_answered, call);
}

int lc_value(struct lc *lc, const char *lock, lc_value_fn *done, void *ctx, struct lc_call **ret_call)
{
	struct value_call *value = call_new(sizeof(*value), &(struct lc_call){
		.ask = value_ask, .fail = value_failed, .ctx = ctx});

	if (!value)
		return -ENOMEM;
	value->tell = done;
	return call_begin(&value->call, lc, lc_path(lc, lock), ret_call);
}

/* ---- a queue ---- */

static struct known_slots *slots_of(struct lc *lc, const struct ensemble_stat *stat)
{
	return &lc->known_slots[(uint64_t)stat->czxid % LC_KNOWN_SLOTS];
}

void look_learn_slots(struct lc *lc, const struct ensemble_answer *answer)
{
	*slots_of(lc, answer->stat) = (struct known_slots){
		.czxid = answer->stat->czxid, .mzxid = answer->stat->mzxid,
		.slots = record_slots(answer->data, (size_t)answer->data_len),
	};
}

/* Whatever is wrong with the lock, the answer to the listing says it too. */
static void data_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct lc_call *call = ctx;

	call_heard(call);
	if (answer->result == ENSEMBLE_OK)
		look_learn_slots(call->lc, answer);
	call_settle(call);
}

void look_at_queue(struct queue_call *queue, bool watch, ensemble_answer_fn *listed)
{
	struct lc_call *call = &queue->call;

	if (queue->with_data)
		call_send(call, &(struct ensemble_op){.kind = ENSEMBLE_GET, .path = call->path}, 1,
		          data_answered, call);
	call_send(call, &(struct ensemble_op){.kind = ENSEMBLE_CHILDREN, .path = call->path,
	                                      .watch = watch},
	          1, listed, call);
}

int look_build_queue(struct queue_call *call, const struct ensemble_answer *answer,
                     struct queue *ret_queue)
{
	const struct known_slots *known = slots_of(call->call.lc, answer->stat);
	int r = queue_build(answer->names, (size_t)answer->name_count, ret_queue);

	if (r < 0 || ret_queue->count <= 1)
		return r;
	if (known->czxid != answer->stat->czxid || known->mzxid != answer->stat->mzxid) {
		queue_finish(ret_queue);
		call->with_data = true;
		return -EAGAIN;
	}
	queue_judge(ret_queue, known->slots);
	return 0;
}

/* It was not built. */
void look_again_or_fail(struct lc_call *call, int r)
{
	if (r == -EAGAIN)
		call_ask(call);
	else
		call_fail(call, r);
}

/* ---- list ---- */

struct list_call {
	struct queue_call queue;
	lc_list_fn *tell;
};

static void fill_entry(const struct queue *queue, size_t i, struct lc_entry *ret_entry)
{
	const struct queue_entry *entry = &queue->entries[i];

	*ret_entry = (struct lc_entry){
		.znode = entry->znode, .number = entry->name.number, .mode = entry->name.mode,
		.ours = entry->name.ours, .deaf = entry->name.deaf,
		.held = queue_blocker(queue, i) < 0, .pid = entry->name.pid,
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

static void tell_listing(struct lc_call *call, const struct lc_listing *listing)
{
	call_close(call);
	((struct list_call *)call)->tell(call->ctx, 0, listing);
	call_settle(call);
}

static void list_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct lc_call *call = ctx;
	struct lc_listing listing = {0};
	struct lc_entry *entries;
	const char **locks;
	struct queue queue;
	size_t count;
	int r;

	if (!call_answered(call, answer))
		return;
	r = look_build_queue(ctx, answer, &queue);
	if (r < 0) {
		look_again_or_fail(call, r);
		return;
	}
	count = (size_t)answer->name_count;
	entries = calloc(queue.count + 1, sizeof(*entries));
	locks = calloc(count + 1, sizeof(*locks));
	if (!entries || !locks) {
		call_fail(call, -ENOMEM);
	} else {
		const char *why;

		for (size_t i = 0; i < queue.count; i++)
			fill_entry(&queue, i, &entries[i]);
		for (size_t i = 0; i < count; i++)
			if (lc_check_name(answer->names[i], &why) == 0)
				locks[listing.lock_count++] = answer->names[i];
		qsort(locks, listing.lock_count, sizeof(*locks), compare_names);
		listing.entries = entries;
		listing.entry_count = queue.count;
		listing.locks = locks;
		tell_listing(call, &listing);
	}
	free(entries);
	free(locks);
	queue_finish(&queue);
}

static void list_ask(struct lc_call *call)
{
	look_at_queue((struct queue_call *)call, false, list_answered);
}

int lc_list(struct lc *lc, const char *lock, lc_list_fn *done, void *ctx, struct lc_call **ret_call)
{
	struct list_call *list = call_new(sizeof(*list), &(struct lc_call){
		.ask = list_ask, .fail = list_failed, .ctx = ctx});

	if (!list)
		return -ENOMEM;
	list->tell = done;
	return call_begin(&list->queue.call, lc, lc_path(lc, lock), ret_call);
}

/* ---- entries: known from a listing, or listed first; then all are read at once ---- */

struct entries_call;

struct item {
	struct entries_call *of;
	char *znode;                 /* what the info's points to */
	enum { ITEM_WANTED, ITEM_ASKED, ITEM_READ, ITEM_GONE } state;
};

struct entries_call {
	struct queue_call queue;
	lc_entries_fn *tell;
	char *znode;                 /* the one asked for, or NULL: all holders */
	bool certain;                /* some were asked for: none is an error */
	size_t count;
	struct item *items;
	struct lc_entry_info *infos;
};

static void forget_entries(struct entries_call *entries)
{
	for (size_t i = 0; i < entries->count; i++)
		free(entries->items[i].znode);
	free(entries->items);
	free(entries->infos);
	entries->items = NULL;
	entries->infos = NULL;
	entries->count = 0;
}

static void entries_finish(struct lc_call *call)
{
	struct entries_call *entries = (struct entries_call *)call;

	forget_entries(entries);
	free(entries->znode);
}

static void entries_failed(struct lc_call *call, int error)
{
	((struct entries_call *)call)->tell(call->ctx, error, NULL, 0);
}

/* Room for so many, none of them there yet. */
static bool make_room(struct entries_call *entries, size_t count)
{
	forget_entries(entries);
	entries->items = calloc(count + 1, sizeof(*entries->items));
	entries->infos = calloc(count + 1, sizeof(*entries->infos));
	return entries->items && entries->infos;
}

/* Its name may be of any length: other clients choose theirs. */
static bool add_entry(struct entries_call *entries, const struct lc_entry *entry)
{
	struct item *item = &entries->items[entries->count];

	*item = (struct item){.of = entries, .znode = strdup(entry->znode)};
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
	struct entry_name name;
	struct lc_taker *taker = NULL;

	if (!name_parse(info->entry.znode, &name) || !name.ours ||
	    name.session_half != call->lc->session.half)
		return;
	HASH_FIND(hh, call->lc->takers, &name.taker_half, sizeof(name.taker_half), taker);
	if (taker && taker->state == TAKER_HELD)
		info->held_since_ms = taker->held_since_ms;
}

/* All that are still there, when each has been read. */
static void tell_entries(struct entries_call *entries)
{
	struct lc_call *call = &entries->queue.call;
	size_t count = 0;

	for (size_t i = 0; i < entries->count; i++) {
		if (entries->items[i].state == ITEM_WANTED || entries->items[i].state == ITEM_ASKED)
			return;
		if (entries->items[i].state == ITEM_READ)
			entries->infos[count++] = entries->infos[i];
	}
	call_close(call);
	if (entries->certain && count == 0)
		entries->tell(call->ctx, -ENOENT, NULL, 0);
	else
		entries->tell(call->ctx, 0, entries->infos, count);
	call_settle(call);
}

static void entry_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct item *item = ctx;
	struct entries_call *entries = item->of;
	struct lc_call *call = &entries->queue.call;
	struct lc_entry_info *info = &entries->infos[item - entries->items];

	if (answer->result == ENSEMBLE_NONODE && !call->told) {
		call_heard(call);
		item->state = ITEM_GONE;   /* since the listing */
		tell_entries(entries);
		return;
	}
	item->state = ITEM_WANTED;
	if (!call_answered(call, answer))
		return;
	item->state = ITEM_READ;
	info->token = answer->stat->czxid;
	info->session = answer->stat->ephemeral_owner;
	info->since_ms = answer->stat->ctime_ms;
	record_parse_entry(answer->data, (size_t)answer->data_len, info);
	add_own_knowledge(call, info);
	tell_entries(entries);
}

static void entries_read(struct lc_call *call)
{
	struct entries_call *entries = (struct entries_call *)call;

	for (size_t i = 0; i < entries->count; i++) {
		struct item *item = &entries->items[i];
		char *path;

		if (item->state != ITEM_WANTED)
			continue;
		path = lc_join(call->path, item->znode);
		if (!path) {
			call_fail_soon(call, -ENOMEM);
			return;
		}
		item->state = ITEM_ASKED;
		call_send(call, &(struct ensemble_op){.kind = ENSEMBLE_GET, .path = path}, 1,
		          entry_answered, item);
		free(path);
	}
}

/* Who of the queue is asked for. */
static bool choose(struct entries_call *entries, const struct queue *queue)
{
	size_t room = entries->znode ? 1 : HOLDERS_MAX;

	if (!make_room(entries, room))
		return false;
	for (size_t i = 0; i < queue->count && entries->count < room; i++) {
		struct lc_entry entry;

		if (entries->znode ? strcmp(queue->entries[i].znode, entries->znode) != 0
		                   : queue_blocker(queue, i) >= 0)
			continue;
		fill_entry(queue, i, &entry);
		if (!add_entry(entries, &entry))
			return false;
	}
	return true;
}

static void entries_listed(void *ctx, const struct ensemble_answer *answer)
{
	struct entries_call *entries = ctx;
	struct lc_call *call = ctx;
	struct queue queue;
	bool ok;
	int r;

	if (!call_answered(call, answer))
		return;
	r = look_build_queue(ctx, answer, &queue);
	if (r < 0) {
		look_again_or_fail(call, r);
		return;
	}
	ok = choose(entries, &queue);
	queue_finish(&queue);
	if (!ok) {
		call_fail(call, -ENOMEM);
	} else if (entries->count == 0) {
		tell_entries(entries);
	} else {
		call->ask = entries_read;
		call_ask(call);
	}
}

static void entries_list(struct lc_call *call)
{
	look_at_queue((struct queue_call *)call, false, entries_listed);
}

static int begin_entries(struct lc *lc, const char *lock, const char *znode,
                         const struct lc_entry *known, size_t count, lc_entries_fn *done, void *ctx,
                         struct lc_call **ret_call)
{
	struct entries_call *entries = call_new(sizeof(*entries), &(struct lc_call){
		.ask = known ? entries_read : entries_list, .fail = entries_failed,
		.finish = entries_finish, .ctx = ctx});
	bool ok;

	if (!entries)
		return -ENOMEM;
	entries->tell = done;
	entries->certain = znode || known;
	if (znode)
		entries->znode = strdup(znode);
	ok = (!znode || entries->znode) && (!known || make_room(entries, count));
	for (size_t i = 0; ok && i < count; i++)
		ok = add_entry(entries, &known[i]);
	if (!ok) {
		entries_finish(&entries->queue.call);
		free(entries);
		return -ENOMEM;
	}
	return call_begin(&entries->queue.call, lc, lc_path(lc, lock), ret_call);
}

int lc_entries(struct lc *lc, const char *lock, const char *znode, lc_entries_fn *done, void *ctx,
               struct lc_call **ret_call)
{
	return begin_entries(lc, lock, znode, NULL, 0, done, ctx, ret_call);
}

int lc_known(struct lc *lc, const char *lock, const struct lc_entry *known, size_t count,
             lc_entries_fn *done, void *ctx, struct lc_call **ret_call)
{
	return begin_entries(lc, lock, NULL, known, count, done, ctx, ret_call);
}

/* ---- the token of an entry that was made in a transaction ---- */

static void token_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct lc_call *call = ctx;

	if (answer->result == ENSEMBLE_NONODE && !call->told) {
		call_heard(call);
		lock_want_list(call->taker->lock);
		call_fail(call, -EIO);
		return;
	}
	if (!call_answered(call, answer))
		return;
	entry_read(call->taker, answer);
	call_succeed(call, 0);
}

static void token_ask(struct lc_call *call)
{
	char *path;

	if (!lc_holds(call->taker) || call->taker->znode != ZNODE_PRESENT) {
		call_fail_soon(call, -EIO);
		return;
	}
	path = taker_path(call->taker);
	if (path)
		call_send(call, &(struct ensemble_op){.kind = ENSEMBLE_GET, .path = path}, 1, token_answered,
		          call);
	else
		call_fail_soon(call, -ENOMEM);
	free(path);
}

int lc_fetch_token(struct lc_taker *taker, lc_done_fn *done, void *ctx, struct lc_call **ret_call)
{
	struct lc_call *call = call_new(sizeof(*call), &(struct lc_call){
		.ask = token_ask, .fail = call_done_failed, .taker = taker, .done = done, .ctx = ctx});

	return call ? call_begin(call, taker->lc, strdup(taker->lock->path), ret_call) : -ENOMEM;
}
