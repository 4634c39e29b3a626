/* SPDX-License-Identifier: MIT
 *
 * look.c - questions that only read: what is this lock, which value does it have, who
 * queues there.
 */
#include "call.h"
#include "record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

void look_fill_entry(const struct queue *queue, size_t i, struct lc_entry *ret_entry)
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
			look_fill_entry(&queue, i, &entries[i]);
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
