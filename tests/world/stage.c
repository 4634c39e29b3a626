/* SPDX-License-Identifier: MIT */
#include "stage.h"

#include "trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static void complain(struct stage *stage, const char *text)
{
	stage->hooks->complain(stage, text);
}

/* ---- the course ---- */

void stage_init(struct stage *stage, int64_t begin_us, uint64_t seed,
                const struct stage_hooks *hooks, void *owner)
{
	stage_init_servers(stage, 1, begin_us, seed, hooks, owner);
}

void stage_init_servers(struct stage *stage, int servers, int64_t begin_us, uint64_t seed,
                        const struct stage_hooks *hooks, void *owner)
{
	struct world_config config = {.servers = servers,
	                              .tick_us = 2 * SECOND,
	                              .delay_max_us = 2000,
	                              .commit_max_us = 1000};

	*stage = (struct stage){.owner = owner, .hooks = hooks};
	agenda_init(&stage->agenda, begin_us);
	world_init(&stage->world, &stage->agenda, (struct rng){seed}, &config);
}

void stage_run(struct stage *stage, int64_t duration_us)
{
	int64_t until_us = stage->agenda.now_us + duration_us;

	while (stage->agenda.count && stage->agenda.heap[0].when_us <= until_us) {
		agenda_step(&stage->agenda);
		if (stage->hooks->stepped)
			stage->hooks->stepped(stage);
	}
	stage->agenda.now_us = until_us;
}

void stage_finish(struct stage *stage)
{
	struct question *question, *next;

	for (int i = 0; i < stage->host_count; i++)
		host_finish(&stage->hosts[i]);
	DL_FOREACH_SAFE(stage->questions, question, next)
		stage_forget(question);
	world_finish(&stage->world);
	agenda_finish(&stage->agenda);
}

enum ensemble_result stage_act(struct stage *stage, int64_t session, struct ensemble_op op,
                               const char **ret_path)
{
	if (op.kind == ENSEMBLE_SET || op.kind == ENSEMBLE_DELETE)
		op.version = ENSEMBLE_ANY_VERSION;
	return world_do(&stage->world, session, &op, 1, ret_path);
}

/* ---- hosts ---- */

struct host *stage_host(struct stage *stage, uint64_t seed)
{
	int index = stage->host_count++;

	host_init(&stage->hosts[index], &stage->world, index, (struct rng){seed}, NULL, stage);
	return &stage->hosts[index];
}

static struct lc_config configure(struct host *host, const char *root, int64_t loss_lead_us)
{
	struct lc_config config = host_config(host, root);

	config.session_timeout_us = TIMEOUT_US;
	config.tick_time_us = 2 * SECOND;
	config.loss_lead_us = loss_lead_us;
	config.without =
		(struct lc_attributes){.uid = 5, .gid = 6, .mode = 0755, .lock_file_mode = 0600};
	return config;
}

int stage_start(struct host *host, const char *root, int64_t loss_lead_us)
{
	struct lc_config config = configure(host, root, loss_lead_us);

	return host_start(host, &config);
}

int stage_adopt(struct host *host, int64_t loss_lead_us)
{
	struct lc_config config = configure(host, ROOT, loss_lead_us);

	stage_stop(host, false);
	return host_adopt(host, &config);
}

void stage_stop(struct host *host, bool farewell)
{
	struct stage *stage = host->owner;
	struct question *question;

	host_stop(host, farewell);
	DL_FOREACH(stage->questions, question)
		if (question->host == host && question->call) {
			question->call = NULL;
			question->cancelled = true;
		}
}

/* ---- takers ---- */

static void expect_callback(struct taker *taker, enum phase phase)
{
	if (taker->stage->inside)
		complain(taker->stage, "a callback inside the call that caused it");
	if (taker->phase != phase)
		complain(taker->stage, "a callback that belongs to another taker");
}

static void tell(struct taker *taker)
{
	if (taker->stage->hooks->told)
		taker->stage->hooks->told(taker);
}

static void taken(void *ctx, int err)
{
	struct taker *taker = ctx;

	trace("%s: taken(%d)", taker->host->name, err);
	expect_callback(taker, WAITING);
	taker->result = err;
	taker->phase = err == 0 ? HELD : FAILED;
	tell(taker);
}

static void lost(void *ctx)
{
	struct taker *taker = ctx;

	trace("%s: lost()", taker->host->name);
	expect_callback(taker, HELD);
	taker->lost++;
	taker->phase = LOST;
	tell(taker);
}

static void waiters_changed(void *ctx)
{
	struct taker *taker = ctx;

	expect_callback(taker, HELD);
	taker->waiters_changed++;
}

void stage_take(struct taker *taker, struct host *host, const struct lc_request *request)
{
	struct stage *stage = host->owner;

	*taker = (struct taker){.stage = stage,
	                        .host = host,
	                        .lock = request->lock,
	                        .mode = request->mode,
	                        .result = -ENOMEM};
	if (!host->lc)
		return;
	stage->inside = true;
	taker->result = lc_take(host->lc, request, taken, lost, taker, &taker->lc);
	stage->inside = false;
	trace("%s: lc_take -> %d", host->name, taker->result);
	if (taker->result == 0) {
		taker->id = lc_taker_id(taker->lc);
		taker->result = NONE;
		taker->phase = WAITING;
	}
	host_wake(host);
}

void stage_claim(struct taker *taker)
{
	taker->lc = lc_claim(taker->host->lc, taker->id, taken, lost, taker);
	if (!taker->lc)
		complain(taker->stage, "a taker is not there to be claimed");
}

const char *stage_path(struct taker *taker)
{
	const char *znode =
		taker->phase == NEVER || taker->phase == LEFT ? NULL : lc_znode(taker->lc);

	if (!znode)
		return NULL;
	snprintf(taker->path, sizeof(taker->path), ROOT "/%s/%s", taker->lock, znode);
	return taker->path;
}

void stage_watch_waiters(struct taker *taker, bool watch)
{
	lc_watch_waiters(taker->lc, watch ? waiters_changed : NULL);
}

void stage_leave(struct taker *taker)
{
	struct stage *stage = taker->stage;
	bool was_inside;

	if (taker->phase == NEVER || taker->phase == LEFT)
		return;
	was_inside = stage->inside;
	taker->phase = LEFT;
	stage->inside = true;
	lc_leave(taker->lc);
	stage->inside = was_inside;
	host_wake(taker->host); /* as the loop does after requests */
}

/* ---- questions ---- */

static void answered(struct question *question, int err, size_t count)
{
	struct stage *stage = question->stage;

	trace("question %d: answered %d, %zu", question->number, err, count);
	if (stage->inside)
		complain(stage, "an answer inside the call that asked");
	if (question->result != NONE || question->cancelled)
		complain(stage, "a question is answered again");
	if (stage->agenda.now_us - question->asked_us > LC_CALL_TIMEOUT_US + SECOND)
		complain(stage, "a question is answered late");
	question->call = NULL;
	question->result = err;
	question->count = count;
}

static void done(void *ctx, int err)
{
	answered(ctx, err, 0);
}

static void stat_done(void *ctx, int err, const struct lc_lock_info *info)
{
	struct question *question = ctx;

	if (err == 0)
		question->info = *info;
	answered(question, err, err == 0 && info->has_attributes);
}

/* Of the lock as it was made, or as it is after the change. */
static void change_done(void *ctx, int err, const struct lc_lock_info *info)
{
	if (err == 0)
		((struct question *)ctx)->info = *info;
	answered(ctx, err, 0);
}

static void list_done(void *ctx, int err, const struct lc_listing *listing)
{
	struct question *question = ctx;

	if (err == 0) {
		question->entries = listing->entry_count;
		for (size_t i = 0; i < listing->entry_count; i++)
			question->held += listing->entries[i].held;
		if (listing->entry_count > 0)
			strncpy(question->entry, listing->entries[0].znode,
			        sizeof(question->entry) - 1);
	}
	answered(question, err, err == 0 ? listing->entry_count * 1000 + listing->lock_count : 0);
}

static void entries_done(void *ctx, int err, const struct lc_entry_info *infos, size_t count)
{
	size_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += strlen(infos[i].entry.znode);
	answered(ctx, err, count * 1000 + bytes);
}

static void value_done(void *ctx, int err, const char *value, size_t len)
{
	struct question *question = ctx;

	if (err == 0) {
		question->value = malloc(len + 1);
		if (!question->value)
			abort();
		memcpy(question->value, value, len);
		question->value[len] = '\0';
		question->value_len = len;
	}
	answered(question, err, len);
}

static void waiters_told(void *ctx, int err, bool waiters)
{
	answered(ctx, err, waiters);
}

/* The engine is called between begin() and end(). */
static struct question *begin(struct host *host)
{
	struct question *question = calloc(1, sizeof(*question));
	struct stage *stage = host->owner;

	if (!question)
		abort();
	question->stage = stage;
	question->host = host;
	question->number = stage->question_count++;
	question->asked_us = stage->agenda.now_us;
	question->result = NONE;
	DL_APPEND(stage->questions, question);
	stage->inside = true;
	return question;
}

static struct question *end(struct question *question, int r)
{
	question->stage->inside = false;
	trace("question %d: asked -> %d", question->number, r);
	if (r < 0) {
		question->result = r;
		question->call = NULL;
	}
	if (question->host->lc)
		host_wake(question->host);
	return question;
}

struct question *stage_refused(struct host *host)
{
	return end(begin(host), -ENOMEM);
}

struct question *stage_ask_stat(struct host *host, const char *lock, uid_t uid)
{
	struct question *q = begin(host);

	return end(q, host->lc ? lc_stat(host->lc, lock, uid, stat_done, q, &q->call) : -ENOMEM);
}

struct question *stage_ask_list(struct host *host, const char *lock, uid_t uid)
{
	struct question *q = begin(host);

	return end(q, host->lc ? lc_list(host->lc, lock, uid, list_done, q, &q->call) : -ENOMEM);
}

struct question *stage_ask_entries(struct host *host, const char *lock, const char *znode)
{
	struct question *q = begin(host);

	return end(q, host->lc ? lc_entries(host->lc, lock, 0, znode, NULL, 0, entries_done, q,
	                                    &q->call)
	                       : -ENOMEM);
}

struct question *stage_ask_known(struct host *host, const char *lock, const char *znode)
{
	struct question *q = begin(host);
	struct lc_entry known = {.znode = znode, .number = 0, .host = "-"};

	return end(q, host->lc ? lc_entries(host->lc, lock, 0, NULL, &known, 1, entries_done, q,
	                                    &q->call)
	                       : -ENOMEM);
}

struct question *stage_ask_mkdir(struct host *host, const char *lock,
                                 const struct lc_attributes *attributes)
{
	struct question *q = begin(host);

	return end(q, host->lc
	                      ? lc_mkdir(host->lc, lock, attributes, NULL, change_done, q, &q->call)
	                      : -ENOMEM);
}

struct question *stage_ask_rmdir(struct host *host, const char *lock, uid_t by)
{
	struct question *q = begin(host);

	return end(q, host->lc ? lc_rmdir(host->lc, lock, by, NULL, done, q, &q->call) : -ENOMEM);
}

/* A taker that was refused, or has left, has nothing to ask about. */
static bool may_ask(const struct taker *taker)
{
	return taker->phase != NEVER && taker->phase != LEFT;
}

struct question *stage_ask_confirm(struct taker *taker)
{
	struct question *q = begin(taker->host);

	return end(q, may_ask(taker) ? lc_confirm(taker->lc, done, q, &q->call) : -ENOMEM);
}

struct question *stage_ask_waiters(struct taker *taker)
{
	struct question *q = begin(taker->host);

	return end(q,
	           may_ask(taker) ? lc_has_waiters(taker->lc, waiters_told, q, &q->call) : -ENOMEM);
}

struct question *stage_ask_value(struct host *host, const char *lock, uid_t uid)
{
	struct question *q = begin(host);

	return end(q, host->lc ? lc_value(host->lc, lock, uid, value_done, q, &q->call) : -ENOMEM);
}

struct question *stage_ask_change(struct host *host, const char *lock,
                                  const struct lc_change *change)
{
	struct question *q = begin(host);

	return end(q, host->lc ? lc_change(host->lc, lock, change, change_done, q, &q->call)
	                       : -ENOMEM);
}

struct question *stage_ask_set_value(struct taker *taker, const char *value, size_t len,
                                     bool append)
{
	struct question *q = begin(taker->host);

	return end(q, may_ask(taker)
	                      ? lc_set_value(taker->lc, value, len, append, done, q, &q->call)
	                      : -ENOMEM);
}

struct question *stage_ask_evict(struct host *host, const char *lock, const char *znode,
                                 const struct lc_evictor *evictor)
{
	struct question *q = begin(host);

	return end(q, host->lc ? lc_evict(host->lc, lock, znode, evictor, done, q, &q->call)
	                       : -ENOMEM);
}

void stage_cancel(struct question *question)
{
	if (!question->call)
		return;
	question->cancelled = true;
	lc_cancel(question->call);
	question->call = NULL;
}

void stage_forget(struct question *question)
{
	DL_DELETE(question->stage->questions, question);
	free(question->value);
	free(question);
}
