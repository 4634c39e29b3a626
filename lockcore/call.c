/* SPDX-License-Identifier: MIT
 *
 * call.c - questions to the ensemble that are no takers: what is this lock, who
 * queues there, make one, remove one, is my entry still there.
 *
 * A call runs through stages, one request each. What only reads is asked again
 * on the next connection when its answer was lost; what writes is not, and says
 * that it does not know. Every call ends within LC_CALL_TIMEOUT_US.
 */
#include "engine.h"
#include "record.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES_MAX 16

/* What a question waits at least while the ensemble is away. */
#define AWAY_US 200000

struct lc_call {
	struct lc *lc;
	void (*ask)(struct lc_call *call);       /* sends the request of this stage */
	void (*fail)(struct lc_call *call, int error);
	struct timer limit;
	struct lc_call *prev, *next;             /* in lc->calls, until told */
	bool pending;                            /* an answer is outstanding */
	bool told;                               /* or cancelled: the face is done with it */
	bool writes;
	bool synced;                             /* "not there" was said after a sync */
	char *path;
	struct lc_taker *taker;                  /* lc_confirm(); keeps it from being freed */
	int error;                               /* to tell when the timer fires; 0: EHOSTUNREACH */
	int64_t sent_us;
	char data[RECORD_LOCK_MAX];
	size_t data_len;
	char *znode;                             /* lc_entries(): the one asked for */
	struct lc_entry_info *infos;
	char *names[ENTRIES_MAX];                /* what infos[].entry.znode points to */
	size_t count, asked;
	union {
		lc_stat_fn *stat;
		lc_list_fn *list;
		lc_entries_fn *entries;
		lc_done_fn *done;
	} tell;
	void *ctx;
};

/* ---- life ---- */

static void free_entries(struct lc_call *call)
{
	for (size_t i = 0; i < ENTRIES_MAX; i++)
		free(call->names[i]);
	memset(call->names, 0, sizeof(call->names));
	free(call->infos);
	call->infos = NULL;
}

static void settle(struct lc_call *call)
{
	if (!call->told || call->pending)
		return;
	if (call->taker) {
		call->taker->pending--;
		taker_step(call->taker);
	}
	free(call->path);
	free(call->znode);
	free_entries(call);
	free(call);
}

/* From here on the call is its own: the face is told right after. */
static void close_call(struct lc_call *call)
{
	assert(!call->told);
	call->told = true;
	timer_clear(call->lc, &call->limit);
	DL_DELETE(call->lc->calls, call);
}

static void fail(struct lc_call *call, int error)
{
	close_call(call);
	call->fail(call, error);
	settle(call);
}

void lc_cancel(struct lc_call *call)
{
	close_call(call);
	settle(call);
}

static void time_is_up(void *ctx)
{
	struct lc_call *call = ctx;

	call->lc->stalled |= call->pending;
	fail(call, call->error ? call->error : -EHOSTUNREACH);
}

/* From the timers, never from inside the call that asked. */
static void fail_soon(struct lc_call *call, int error)
{
	call->error = error;
	timer_set(call->lc, &call->limit, lc_now(call->lc));
}

static void ask(struct lc_call *call)
{
	if (session_ready(call->lc))
		call->ask(call);
	else if (call->lc->session.state == LC_UNUSABLE)
		fail_soon(call, call->lc->session.why == -EACCES ? -EACCES : -EHOSTUNREACH);
}

void calls_resume(struct lc *lc)
{
	struct lc_call *call, *next;

	DL_FOREACH_SAFE(lc->calls, call, next)
		if (!call->pending)
			call->ask(call);
}

void calls_finish(struct lc *lc)
{
	struct lc_call *call, *next;

	DL_FOREACH_SAFE(lc->calls, call, next)
		lc_cancel(call);
}

/* While the ensemble is away one question after the other may come, each of them only
 * when the one before has failed (the kernel looks a name up for one process at a
 * time): they share one time limit, from the moment contact was lost. None fails at
 * once, or whoever tries again would spin. */
static int64_t patience(struct lc *lc)
{
	int64_t left = lc->session.away_us + LC_CALL_TIMEOUT_US - lc_now(lc);

	if (session_ready(lc))
		return lc->stalled ? AWAY_US : LC_CALL_TIMEOUT_US;
	return left > AWAY_US ? left : AWAY_US;
}

static int begin(struct lc *lc, char *path, const struct lc_call *model, struct lc_call **ret_call)
{
	struct lc_call *call = path ? malloc(sizeof(*call)) : NULL;

	if (!call) {
		free(path);
		free(model->znode);
		return -ENOMEM;
	}
	*call = *model;
	call->lc = lc;
	call->path = path;
	call->limit = (struct timer){.fire = time_is_up, .ctx = call};
	timer_set(lc, &call->limit, lc_now(lc) + patience(lc));
	DL_APPEND(lc->calls, call);
	*ret_call = call;
	ask(call);
	return 0;
}

static void send_op(struct lc_call *call, const struct ensemble_op *op, ensemble_answer_fn *answer)
{
	call->pending = true;
	call->sent_us = lc_now(call->lc);
	lc_submit(call->lc, op, 1, answer, call);
}

static int errno_of(enum ensemble_result result)
{
	switch (result) {
	case ENSEMBLE_OK: return 0;
	case ENSEMBLE_NONODE: return -ENOENT;
	case ENSEMBLE_EXISTS: return -EEXIST;
	case ENSEMBLE_NOTEMPTY: return -ENOTEMPTY;
	case ENSEMBLE_NOAUTH: return -EACCES;
	case ENSEMBLE_NOCHILDREN: return -EPERM;
	case ENSEMBLE_INVALID: return -EINVAL;
	case ENSEMBLE_BADVERSION:
	case ENSEMBLE_REFUSED: return -ENOLCK;
	case ENSEMBLE_UNKNOWN:
	case ENSEMBLE_GONE: return -EHOSTUNREACH;
	}
	return -EIO;
}

/* Common to all answers. True: it is OK and somebody waits for it. */
static bool answered(struct lc_call *call, const struct ensemble_answer *answer)
{
	call->pending = false;
	call->lc->stalled = false;
	if (answer->result == ENSEMBLE_OK && call->writes)
		session_wrote(call->lc, call->sent_us);
	if (call->told) {
		settle(call);
		return false;
	}
	if (answer->result == ENSEMBLE_OK)
		return true;
	if (answer->result == ENSEMBLE_UNKNOWN || answer->result == ENSEMBLE_GONE) {
		if (call->writes)
			fail(call, -EHOSTUNREACH);
		return false;   /* asked again by calls_resume() */
	}
	if (answer->result == ENSEMBLE_NONODE && !call->writes && !call->synced) {
		/* A follower may lag behind the host that has just made it. */
		call->synced = true;
		lc_submit(call->lc, &(struct ensemble_op){.kind = ENSEMBLE_SYNC, .path = call->path}, 1,
		          lc_ignore, NULL);
		call->ask(call);
		return false;
	}
	fail(call, errno_of(answer->result));
	return false;
}

/* ---- stat ---- */

static void stat_failed(struct lc_call *call, int error)
{
	call->tell.stat(call->ctx, error, NULL);
}

static void stat_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct lc_call *call = ctx;
	struct lc_lock_info info = {0};

	if (!answered(call, answer))
		return;
	info.czxid = answer->stat->czxid;
	info.ctime_ms = answer->stat->ctime_ms;
	info.mtime_ms = answer->stat->mtime_ms;
	info.has_attributes =
		record_parse_lock(answer->data, (size_t)answer->data_len, &info.attributes);
	close_call(call);
	if (answer->stat->ephemeral_owner != 0)
		call->tell.stat(call->ctx, -ENOENT, NULL);   /* an entry, not a lock */
	else
		call->tell.stat(call->ctx, 0, &info);
	settle(call);
}

static void stat_ask(struct lc_call *call)
{
	send_op(call, &(struct ensemble_op){.kind = ENSEMBLE_GET, .path = call->path}, stat_answered);
}

int lc_stat(struct lc *lc, const char *lock, lc_stat_fn *done, void *ctx, struct lc_call **ret_call)
{
	return begin(lc, lc_path(lc, lock), &(struct lc_call){
		.ask = stat_ask, .fail = stat_failed, .tell.stat = done, .ctx = ctx}, ret_call);
}

/* ---- list ---- */

static void fill_entry(const struct queue *queue, size_t i, struct lc_entry *ret_entry)
{
	const struct queue_entry *entry = &queue->entries[i];

	*ret_entry = (struct lc_entry){
		.znode = entry->znode, .number = entry->name.number, .mode = entry->name.mode,
		.ours = entry->name.ours, .deaf = entry->name.deaf, .held = queue_blocker(queue, i) < 0, .pid = entry->name.pid,
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
	call->tell.list(call->ctx, error, NULL);
}

static void list_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct lc_call *call = ctx;
	struct lc_listing listing = {0};
	struct lc_entry *entries;
	const char **locks;
	struct queue queue;
	size_t count;

	if (!answered(call, answer))
		return;
	count = (size_t)answer->name_count;
	if (queue_build(answer->names, count, &queue) < 0) {
		fail(call, -ENOMEM);
		return;
	}
	entries = calloc(queue.count + 1, sizeof(*entries));
	locks = calloc(count + 1, sizeof(*locks));
	if (!entries || !locks) {
		fail(call, -ENOMEM);
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
		close_call(call);
		call->tell.list(call->ctx, 0, &listing);
		settle(call);
	}
	free(entries);
	free(locks);
	queue_finish(&queue);
}

static void list_ask(struct lc_call *call)
{
	send_op(call, &(struct ensemble_op){.kind = ENSEMBLE_CHILDREN, .path = call->path}, list_answered);
}

int lc_list(struct lc *lc, const char *lock, lc_list_fn *done, void *ctx, struct lc_call **ret_call)
{
	return begin(lc, lc_path(lc, lock), &(struct lc_call){
		.ask = list_ask, .fail = list_failed, .tell.list = done, .ctx = ctx}, ret_call);
}

/* ---- entries: list, then read one after the other ---- */

static void entries_failed(struct lc_call *call, int error)
{
	call->tell.entries(call->ctx, error, NULL, 0);
}

/* The next one to read, or all are there. */
static void entries_next(struct lc_call *call);

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

static void entry_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct lc_call *call = ctx;
	struct lc_entry_info *info = &call->infos[call->asked];

	if (answer->result == ENSEMBLE_NONODE && !call->told) {
		/* Gone since the listing. */
		call->pending = false;
		call->count--;
		memmove(info, info + 1, (call->count - call->asked) * sizeof(*info));
		entries_next(call);
		return;
	}
	if (!answered(call, answer))
		return;
	info->token = answer->stat->czxid;
	info->session = answer->stat->ephemeral_owner;
	info->since_ms = answer->stat->ctime_ms;
	record_parse_entry(answer->data, (size_t)answer->data_len, info);
	add_own_knowledge(call, info);
	call->asked++;
	entries_next(call);
}

static void entry_ask(struct lc_call *call)
{
	char *path = lc_join(call->path, call->infos[call->asked].entry.znode);

	if (!path) {
		fail_soon(call, -ENOMEM);
		return;
	}
	send_op(call, &(struct ensemble_op){.kind = ENSEMBLE_GET, .path = path}, entry_answered);
	free(path);
}

static void entries_next(struct lc_call *call)
{
	if (call->asked < call->count) {
		call->ask = entry_ask;
		ask(call);
		return;
	}
	close_call(call);
	if (call->znode && call->count == 0)
		call->tell.entries(call->ctx, -ENOENT, NULL, 0);
	else
		call->tell.entries(call->ctx, 0, call->infos, call->count);
	settle(call);
}

static void entries_listed(void *ctx, const struct ensemble_answer *answer)
{
	struct lc_call *call = ctx;
	struct queue queue;

	if (!answered(call, answer))
		return;
	if (queue_build(answer->names, (size_t)answer->name_count, &queue) < 0) {
		fail(call, -ENOMEM);
		return;
	}
	for (size_t i = 0; i < ENTRIES_MAX; i++) {
		free(call->names[i]);
		call->names[i] = NULL;
	}
	call->count = call->asked = 0;
	for (size_t i = 0; i < queue.count && call->count < ENTRIES_MAX; i++) {
		const char *znode = queue.entries[i].znode;
		struct lc_entry *entry = &call->infos[call->count].entry;

		if (call->znode ? strcmp(znode, call->znode) != 0 : queue_blocker(&queue, i) >= 0)
			continue;
		fill_entry(&queue, i, entry);
		/* Of any length: other clients may choose it. */
		entry->znode = call->names[call->count] = strdup(znode);
		if (!entry->znode) {
			queue_finish(&queue);
			fail(call, -ENOMEM);
			return;
		}
		call->count++;
	}
	queue_finish(&queue);
	entries_next(call);
}

static void entries_ask(struct lc_call *call)
{
	send_op(call, &(struct ensemble_op){.kind = ENSEMBLE_CHILDREN, .path = call->path}, entries_listed);
}

static int begin_entries(struct lc *lc, const char *lock, const char *znode,
                         const struct lc_entry *known, lc_entries_fn *done, void *ctx,
                         struct lc_call **ret_call)
{
	struct lc_call model = {
		.ask = known ? entry_ask : entries_ask, .fail = entries_failed, .tell.entries = done,
		.ctx = ctx, .infos = calloc(ENTRIES_MAX, sizeof(*model.infos)),
		.znode = znode ? strdup(znode) : NULL,
	};
	bool ok = model.infos && (model.znode || !znode);
	int r = -ENOMEM;

	if (ok && known) {
		model.count = 1;
		model.infos[0].entry = *known;
		model.infos[0].entry.znode = model.names[0] = strdup(known->znode);
		ok = model.names[0];
	}
	if (ok)
		r = begin(lc, lc_path(lc, lock), &model, ret_call);
	else
		free(model.znode);
	if (r < 0)
		free_entries(&model);
	return r;
}

int lc_entries(struct lc *lc, const char *lock, const char *znode, lc_entries_fn *done, void *ctx,
               struct lc_call **ret_call)
{
	return begin_entries(lc, lock, znode, NULL, done, ctx, ret_call);
}

int lc_entry(struct lc *lc, const char *lock, const struct lc_entry *known, lc_entries_fn *done,
             void *ctx, struct lc_call **ret_call)
{
	return begin_entries(lc, lock, known->znode, known, done, ctx, ret_call);
}

/* ---- mkdir, rmdir ---- */

static void done_failed(struct lc_call *call, int error)
{
	call->tell.done(call->ctx, error);
}

static void succeed(struct lc_call *call)
{
	close_call(call);
	call->tell.done(call->ctx, 0);
	settle(call);
}

static void done_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct lc_call *call = ctx;

	if (answered(call, answer))
		succeed(call);
}

static void mkdir_ask(struct lc_call *call)
{
	send_op(call, &(struct ensemble_op){.kind = ENSEMBLE_CREATE, .path = call->path,
	                                    .data = call->data, .data_len = (int)call->data_len},
	        done_answered);
}

int lc_mkdir(struct lc *lc, const char *lock, const struct lc_attributes *attributes, lc_done_fn *done,
             void *ctx, struct lc_call **ret_call)
{
	const char *name = strrchr(lock, '/'), *why;
	struct lc_call model = {
		.ask = mkdir_ask, .fail = done_failed, .writes = true, .tell.done = done, .ctx = ctx,
	};
	int r = lc_check_name(name ? name + 1 : lock, &why);

	if (r == 0 && strlen(lc->root) + 1 + strlen(lock) > LC_PATH_MAX)
		r = -ENAMETOOLONG;
	if (r < 0)
		return r;
	model.data_len = record_format_lock(model.data, attributes);
	return begin(lc, lc_path(lc, lock), &model, ret_call);
}

/* Why it could not be deleted. */
static void rmdir_listed(void *ctx, const struct ensemble_answer *answer)
{
	struct lc_call *call = ctx;
	bool busy = false;

	if (!answered(call, answer))
		return;
	for (int i = 0; i < answer->name_count; i++)
		busy |= name_is_numbered(answer->names[i]);
	fail(call, busy ? -EBUSY : -ENOTEMPTY);
}

static void rmdir_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct lc_call *call = ctx;

	if (answer->result != ENSEMBLE_NOTEMPTY || call->told) {
		done_answered(ctx, answer);
		return;
	}
	call->writes = false;
	send_op(call, &(struct ensemble_op){.kind = ENSEMBLE_CHILDREN, .path = call->path}, rmdir_listed);
}

static void rmdir_ask(struct lc_call *call)
{
	call->writes = true;
	send_op(call, &(struct ensemble_op){.kind = ENSEMBLE_DELETE, .path = call->path,
	                                    .version = ENSEMBLE_ANY_VERSION},
	        rmdir_answered);
}

int lc_rmdir(struct lc *lc, const char *lock, lc_done_fn *done, void *ctx, struct lc_call **ret_call)
{
	return begin(lc, lc_path(lc, lock), &(struct lc_call){
		.ask = rmdir_ask, .fail = done_failed, .writes = true, .tell.done = done, .ctx = ctx},
		ret_call);
}

/* ---- confirm ---- */

/* One transaction that writes: a read could be answered by a follower that is cut
 * off, seconds after the lock was given away. */
static void confirm_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct lc_call *call = ctx;
	bool lost = call->taker->state != TAKER_HELD;

	if (answer->result == ENSEMBLE_OK)
		session_node_written(call->lc);
	if (answer->result == ENSEMBLE_NONODE && !call->told && !lost) {
		/* The entry, or our heartbeat node: the listing tells the first, the
		 * next heartbeat makes the second again, then we ask again. */
		call->pending = false;
		lock_want_list(call->taker->lock);
		session_node_lost(call->lc);
		return;
	}
	call->writes = answer->result == ENSEMBLE_OK;
	if (!answered(call, answer))
		return;
	if (lc_holds(call->taker))
		succeed(call);
	else
		fail(call, -EIO);
}

static void confirm_ask(struct lc_call *call)
{
	struct lc_taker *taker = call->taker;
	char *path;

	if (!lc_holds(taker) || taker->znode != ZNODE_PRESENT) {
		fail_soon(call, -EIO);
		return;
	}
	path = lc_join(taker->lock->path, taker->name);
	if (!path) {
		fail_soon(call, -ENOMEM);
		return;
	}
	call->pending = true;
	call->sent_us = lc_now(call->lc);
	lc_submit(call->lc, (struct ensemble_op[]){
		{.kind = ENSEMBLE_CHECK, .path = path, .version = ENSEMBLE_ANY_VERSION},
		{.kind = ENSEMBLE_SET, .path = call->lc->session.node, .data = call->lc->host,
		 .data_len = (int)strlen(call->lc->host), .version = ENSEMBLE_ANY_VERSION},
	}, 2, confirm_answered, call);
	free(path);
}

int lc_confirm(struct lc_taker *taker, lc_done_fn *done, void *ctx, struct lc_call **ret_call)
{
	struct lc_call model = {
		.ask = confirm_ask, .fail = done_failed, .taker = taker, .tell.done = done, .ctx = ctx,
	};
	int r;

	if (!lc_holds(taker))
		return -EIO;
	taker->pending++;
	r = begin(taker->lc, strdup(taker->lock->path), &model, ret_call);
	if (r < 0)
		taker->pending--;
	return r;
}
