/* SPDX-License-Identifier: MIT
 *
 * evict.c - taking an entry away from its taker.
 *
 * An entry of a zklockfs mount is not deleted at once, or the next taker would hold the lock before
 * the former holder is stopped. The entry is marked, and its mount is poked. The mount tells the
 * taker that the lock is lost, waits until the processes that worked under it are gone, and deletes
 * the entry. It has its session timeout for that, which is in the entry's data, from the answered
 * poke on. After that time the entry is deleted here. The entry of another client is deleted at
 * once, and so is an entry that is not ephemeral, since no session owns it.
 *
 * Not from the mark on: a waiter behind others is not watched. It may get the lock after the mark,
 * and its lease may be as new as the last write before the poke. A later write does not make the
 * lease longer before the mark is read: the lease counts from the second step before the newest
 * one (lease.h), and the event of the poke comes before the answer of the first step behind it.
 */
#include "ask/evict.h"

#include "ask/authority.h"
#include "ask/call.h"
#include "ask/poke.h"
#include "pure/node_data.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- after the mark ---- */

struct eviction {
	struct lc *lc;
	struct record record;
	char *path;
	int64_t due_us;
	int64_t wait_us; /* from the poke on; 0: its mount was poked */
	struct timer due;
	struct poke *poke;            /* not sent yet; NULL: it was */
	struct eviction *prev, *next; /* in evictions */
};

/* One that is not in the list; NULL: nothing. */
static void drop_eviction(struct eviction *eviction)
{
	if (!eviction)
		return;
	poke_free(eviction->poke);
	free(eviction->path);
	free(eviction);
}

static void free_eviction(struct eviction *eviction)
{
	timer_clear(&eviction->lc->timers, &eviction->due);
	DL_DELETE(eviction->lc->evictions->evictions, eviction);
	record_end(&eviction->record);
	drop_eviction(eviction);
}

static void set_time(struct eviction *eviction, int64_t due_us)
{
	eviction->due_us = due_us;
	timer_set(&eviction->lc->timers, &eviction->due, due_us);
	record_touch(&eviction->record);
}

static void eviction_deleted(void *ctx, const struct ensemble_answer *answer)
{
	struct eviction *eviction = ctx;
	struct lc *lc = eviction->lc;

	switch (answer->result) {
	case ENSEMBLE_OK:
		lc_report(lc, LC_WARNING, "%s: its mount did not delete it in time: deleted now",
		          eviction->path);
		free_eviction(eviction);
		return;
	case ENSEMBLE_NONODE: /* as it should be */
		free_eviction(eviction);
		return;
	case ENSEMBLE_EXISTS:
	case ENSEMBLE_NOTEMPTY:
	case ENSEMBLE_BADVERSION:
	case ENSEMBLE_NOCHILDREN:
	case ENSEMBLE_NOAUTH:
	case ENSEMBLE_INVALID:
		lc_report(lc, LC_WARNING, "%s: cannot be deleted", eviction->path);
		free_eviction(eviction);
		return;
	case ENSEMBLE_REFUSED:
	case ENSEMBLE_UNKNOWN:
	case ENSEMBLE_GONE:
		set_time(eviction, lc_now(lc) + RETRY_US);
		return;
	}
}

static void eviction_fired(void *ctx)
{
	struct eviction *eviction = ctx;
	struct lc *lc = eviction->lc;

	if (!session_is_ready(lc)) {
		set_time(eviction, lc_now(lc) + RETRY_US);
		return;
	}
	batch_submit(lc, ensemble_delete(eviction->path, ENSEMBLE_ANY_VERSION), eviction_deleted,
	             eviction);
}

void evictions_finish(struct lc *lc)
{
	while (lc->evictions->evictions)
		free_eviction(lc->evictions->evictions);
}

/* The mount has its time from now on. */
static void is_poked(void *ctx)
{
	struct eviction *eviction = ctx;

	if (eviction->wait_us > 0)
		eviction->due_us = lc_now(eviction->lc) + eviction->wait_us;
	eviction->wait_us = 0;
	set_time(eviction, eviction->due_us);
}

static struct eviction *make_eviction(struct lc *lc, const char *path,
                                      const struct entry_name *name)
{
	struct eviction *eviction = calloc(1, sizeof(*eviction));

	if (!eviction)
		return NULL;
	eviction->lc = lc;
	eviction->due = (struct timer){.fire = eviction_fired, .ctx = eviction};
	eviction->path = strdup(path);
	eviction->poke = poke_make(lc, path, name, is_poked, eviction);
	if (eviction->path && eviction->poke)
		return eviction;
	drop_eviction(eviction);
	return NULL;
}

/* From now on it goes by itself. */
static void begin_eviction(struct eviction *eviction)
{
	struct lc *lc = eviction->lc;
	struct poke *poke = eviction->poke;

	eviction->poke = NULL;
	DL_APPEND(lc->evictions->evictions, eviction);
	record_begin(lc->config.records, &eviction->record, LC_KIND_EVICTION, 0);
	poke_send(poke, eviction->due_us);
}

/* Of an entry anywhere below the root: another client's locks may be deeper than ours. */
static bool is_entry_path(const struct lc *lc, const char *path, struct entry_name *ret_name)
{
	size_t root_len = strlen(lc->root);

	return strncmp(path, lc->root, root_len) == 0 && path[root_len] == '/' &&
	       name_parse(strrchr(path, '/') + 1, ret_name);
}

static void save_load_times(struct codec *codec, struct eviction *eviction)
{
	CODEC_RANGE(codec, eviction->due_us, 0, LC_FOREVER / 4);
	CODEC_RANGE(codec, eviction->wait_us, 0, LC_FOREVER / 4);
}

static void restore_eviction(struct codec *codec, struct lc *lc)
{
	const char *path = codec_text(codec, NULL);
	struct eviction *eviction, times = {0};
	struct entry_name name;

	save_load_times(codec, &times);
	if (codec->bad)
		return;
	/* It costs no other record. */
	if (!path || !is_entry_path(lc, path, &name)) {
		lc_report(lc, LC_ERROR, "the record of an eviction cannot be read: %s",
		          path ? path : "");
		return;
	}
	eviction = make_eviction(lc, path, &name);
	if (!eviction) {
		codec_fail(codec, strerror(ENOMEM));
		return;
	}
	eviction->due_us = times.due_us;
	eviction->wait_us = times.wait_us;
	begin_eviction(eviction);
}

void eviction_save_load(struct codec *codec, void *ctx, struct record *record)
{
	struct eviction *eviction;

	if (codec->loads) {
		restore_eviction(codec, ctx);
		return;
	}
	eviction = RECORD_IN(record, struct eviction);
	(void)codec_text(codec, eviction->path);
	save_load_times(codec, eviction);
}

/* ---- the question ---- */

struct evict_call {
	struct lc_call call;
	char *by;
	int64_t token; /* of the entry that is meant; 0: any */
	char *lock;    /* its path */
	bool owner;    /* the lock's, as of this version */
	int32_t lock_version;
	bool maybe_done; /* a delete was sent, or a mark that was not answered */
	struct entry_name name;
	struct eviction *eviction; /* made beforehand: a marked entry must go */
};

static void evict_finish(struct lc_call *call)
{
	struct evict_call *evict = (struct evict_call *)call;

	free(evict->by);
	free(evict->lock);
	drop_eviction(evict->eviction);
}

/* Its mount gets a poke and deletes it, or it is deleted here in the end. */
static void follow_up(struct evict_call *evict)
{
	struct lc *lc = evict->call.lc;
	struct eviction *eviction;

	DL_FOREACH(lc->evictions->evictions, eviction)
		if (strcmp(eviction->path, evict->call.path) == 0)
			break;
	if (eviction) /* it was evicted from here already */
		return;
	eviction = evict->eviction;
	evict->eviction = NULL;
	eviction->due_us = lc_now(lc) + eviction->wait_us;
	begin_eviction(eviction);
}

static void is_marked(struct evict_call *evict)
{
	follow_up(evict);
	call_succeed(&evict->call);
}

static void mark_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct evict_call *evict = ctx;
	struct lc_call *call = ctx;

	/* Its mount may delete the entry before this is asked again. */
	evict->maybe_done |= answer->result == ENSEMBLE_UNKNOWN;
	/* The call is gone, but the entry is marked. */
	if (answer->result == ENSEMBLE_OK && call->told)
		follow_up(ctx);
	if (call_meant(call, answer, ENSEMBLE_BADVERSION))
		call_ask(call);
	else if (call_answered(call, answer))
		is_marked(ctx);
}

static void delete_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct lc_call *call = ctx;

	if (call_meant(call, answer, ENSEMBLE_NONODE))
		call_succeed(call);
	else if (call_meant(call, answer, ENSEMBLE_BADVERSION))
		call_ask(call);
	else
		call_done_answered(ctx, answer);
}

/* The owner of the lock may evict, if still the owner when the mark is written. */
static void send_change(struct evict_call *evict, struct ensemble_op change,
                        ensemble_answer_fn *answered)
{
	struct ensemble_op ops[] = {
		change,
		ensemble_check(evict->lock, evict->lock_version),
	};
	bool owner = evict->owner;

	evict->owner = false; /* it is looked at again before anything else is sent */
	call_send_all(&evict->call, ops, owner ? 2 : 1, answered, evict);
}

/* Data that another client wrote into its entry is not believed. */
static bool may_evict(const struct evict_call *evict, const struct ensemble_answer *answer)
{
	struct lc_entry_info info;

	if (evict->call.uid == 0 || evict->owner)
		return true;
	node_data_parse_entry(answer->data, (size_t)answer->data_len, &info);
	return evict->name.of_mount && answer->stat->ephemeral_owner != 0 &&
	       info.uid == (int64_t)evict->call.uid;
}

static void check_lock_owner(void *ctx, const struct ensemble_answer *answer)
{
	struct evict_call *evict = ctx;
	struct lc_attributes now;

	if (!call_answered(&evict->call, answer))
		return;
	authority_read(evict->call.lc, answer, &now);
	evict->owner = authority_owns(&now, evict->call.uid);
	evict->lock_version = answer->stat->version;
	if (evict->owner)
		call_ask(&evict->call);
	else
		call_fail(&evict->call, -EPERM);
}

static void mark_read(void *ctx, const struct ensemble_answer *answer)
{
	struct evict_call *evict = ctx;
	struct lc_call *call = ctx;
	char data[NODE_DATA_ENTRY_MAX];
	int64_t wait_us;
	size_t len;

	if (evict->maybe_done && call_meant(call, answer, ENSEMBLE_NONODE)) {
		call_succeed(call);
		return;
	}
	if (!call_answered(call, answer))
		return;
	if (evict->token && answer->stat->czxid != evict->token) {
		call_fail(call, -ENOENT); /* another one of that name */
		return;
	}
	if (!may_evict(evict, answer)) {
		call_send(call, ensemble_get(evict->lock), check_lock_owner, evict);
		return;
	}
	if (!evict->name.of_mount || answer->stat->ephemeral_owner == 0) {
		lc_report(call->lc, LC_NOTICE, "%s: evicted by %s", call->path, evict->by);
		evict->maybe_done = true;
		send_change(evict, ensemble_delete(call->path, answer->stat->version),
		            delete_answered);
		return;
	}
	wait_us = node_data_timeout_ms(answer->data, (size_t)answer->data_len) * 1000;
	if (wait_us < call->lc->session->granted_us)
		wait_us = call->lc->session->granted_us;
	evict->eviction->wait_us = wait_us;
	if (node_data_is_evicted(answer->data, (size_t)answer->data_len, NULL)) {
		is_marked(evict);
		return;
	}
	lc_report(call->lc, LC_NOTICE,
	          "%s: marked for eviction by %s; deleted at the latest %" PRId64
	          " s after its mount was told",
	          call->path, evict->by, wait_us / 1000000);
	len = node_data_format_evicted(data, answer->data, (size_t)answer->data_len, evict->by);
	send_change(evict, ensemble_set(call->path, data, len, answer->stat->version),
	            mark_answered);
}

static void evict_ask(struct lc_call *call)
{
	call_send(call, ensemble_get(call->path), mark_read, call);
}

/* All memory for the eviction is allocated before anything is done. */
static bool prepare_eviction(struct evict_call *evict, struct lc *lc, const char *path,
                             const struct lc_evictor *by)
{
	evict->token = by->token;
	evict->by = strdup(by->name);
	evict->eviction = path ? make_eviction(lc, path, &evict->name) : NULL;
	return evict->eviction && evict->by && evict->lock;
}

int lc_evict(struct lc *lc, const char *lock, const char *znode, const struct lc_evictor *by,
             lc_done_fn *done, void *ctx, struct lc_call **ret_call)
{
	struct evict_call *evict;
	struct entry_name name;
	char *path;

	if (!name_parse(znode, &name))
		return -ENOENT; /* no entry */
	evict = call_new(struct evict_call, .ask = evict_ask, .fail = call_done_failed,
	                 .finish = evict_finish, .repeatable = true, .uid = by->uid,
	                 .changes = true, .done = done, .ctx = ctx);
	if (!evict)
		return -ENOMEM;
	evict->name = name;
	evict->lock = lc_path(lc, lock);
	path = evict->lock ? path_join(evict->lock, znode) : NULL;
	if (!prepare_eviction(evict, lc, path, by)) {
		evict_finish(&evict->call);
		free(evict);
		free(path);
		return -ENOMEM;
	}
	return call_begin(&evict->call, lc, path, ret_call);
}
