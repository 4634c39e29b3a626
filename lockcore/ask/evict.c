/* SPDX-License-Identifier: MIT
 *
 * evict.c - taking an entry away from its taker.
 *
 * An entry of a zklockfs mount is not deleted at once, or the next taker would hold the lock before
 * the former holder is stopped. One transaction marks the entry, and puts a letter into the mailbox
 * of its mount (session/mailbox.c). The mount tells the taker that the lock is lost, waits until
 * the processes that worked under it are gone, and deletes the entry. It has its session timeout
 * for that, which is in the entry's data, from the answered transaction on. After that time the
 * entry is deleted here. The entry of another client is deleted at once, and so is an entry that is
 * not ephemeral, since no session owns it.
 *
 * The mount's lease is no newer then than the transaction: it counts from the second step before
 * the newest one (lease.h), and the event of the mailbox comes before the answer of the first step
 * behind it. On a new connection the mailbox is read before the write that proves the connection.
 *
 *   get entry -> get mailbox: below our root, then below each node on the way to the lock, since
 *      the other mount's root may be another one
 *        -> set entry, set mailbox, each by its version; or all again, if one has changed
 *
 * The entry alone is marked where there is no mailbox: its mount is gone, or has not made it yet.
 */
#include "ask/evict.h"

#include "ask/authority.h"
#include "ask/call.h"
#include "pure/letters.h"
#include "pure/node_data.h"
#include "session/mailbox.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Roots that are tried: a mount whose root is further down gets no letter. */
#define ROOTS_MAX 16

/* ---- afterwards ---- */

struct eviction {
	struct lc *lc;
	struct record record;
	char *path;
	int64_t due_us;
	struct timer due;
	struct eviction *prev, *next; /* in evictions */
};

/* Frees an eviction that is not in the list. NULL: does nothing. */
static void drop_eviction(struct eviction *eviction)
{
	if (!eviction)
		return;
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

	if (ensemble_unanswered(answer) || answer->result == ENSEMBLE_REFUSED) {
		set_time(eviction, lc_now(lc) + RETRY_US);
		return;
	}
	if (answer->result == ENSEMBLE_OK)
		lc_report(lc, LC_WARNING, "%s: its mount did not delete it in time: deleted now",
		          eviction->path);
	else if (answer->result != ENSEMBLE_NONODE)
		lc_report(lc, LC_WARNING, "%s: cannot be deleted", eviction->path);
	free_eviction(eviction);
}

static void eviction_fired(void *ctx)
{
	struct eviction *eviction = ctx;
	struct lc *lc = eviction->lc;

	if (!lc_ready(lc)) {
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

static struct eviction *make_eviction(struct lc *lc, const char *path)
{
	struct eviction *eviction = calloc(1, sizeof(*eviction));

	if (!eviction)
		return NULL;
	eviction->lc = lc;
	eviction->due = (struct timer){.fire = eviction_fired, .ctx = eviction};
	eviction->path = strdup(path);
	if (eviction->path)
		return eviction;
	drop_eviction(eviction);
	return NULL;
}

/* From now on the eviction is in the list, and its timer deletes the entry when it is due. */
static void begin_eviction(struct eviction *eviction, int64_t due_us)
{
	struct lc *lc = eviction->lc;

	DL_APPEND(lc->evictions->evictions, eviction);
	record_begin(lc->config.records, &eviction->record, LC_KIND_EVICTION, 0);
	set_time(eviction, due_us);
}

void eviction_save_load(struct codec *codec, void *ctx, struct record *record)
{
	struct lc *lc = ctx;
	struct eviction *eviction = RECORD_IN(record, struct eviction);
	const char *path = codec_text(codec, eviction ? eviction->path : NULL);
	int64_t due_us = eviction ? eviction->due_us : 0;
	int64_t untold_us = 0; /* more in an old record: of an entry whose mount was not told */

	CODEC_RANGE(codec, due_us, 0, LC_FOREVER / 4);
	CODEC_RANGE(codec, untold_us, 0, LC_FOREVER / 4);
	if (!codec->loads || codec->bad)
		return;
	if (!path) {
		codec_refuse(codec, "the record of an eviction has no path");
		return;
	}
	if (untold_us > 0) {
		lc_report(lc, LC_ERROR, "the record of an eviction cannot be read: %s", path);
		return;
	}
	eviction = make_eviction(lc, path);
	if (eviction)
		begin_eviction(eviction, due_us);
	else
		codec_fail(codec, strerror(ENOMEM));
}

/* ---- the question ---- */

struct evict_call {
	struct lc_call call;
	char *by;
	int64_t token; /* of the entry that is meant; 0: any */
	char *lock;    /* its path */
	bool owner;    /* the lock's, as of this version */
	int32_t lock_version;
	struct entry_name name;
	struct eviction *eviction; /* made before the mark: without memory nothing is marked */
	/* The entry as it was read: */
	int32_t version;
	bool marked;
	char data[NODE_DATA_ENTRY_MAX]; /* with the mark */
	size_t len;
	int64_t wait_us;
	/* The mailbox that is looked for: */
	char *mailbox;
	size_t root_len; /* of the root that is tried, in call.path */
	unsigned roots;  /* tried, without the own one */
};

/* The entry is marked: its mount deletes it in time, or the eviction deletes it from here. */
static void follow_up(struct evict_call *evict)
{
	struct lc *lc = evict->call.lc;
	struct eviction *eviction;

	DL_FOREACH(lc->evictions->evictions, eviction)
		if (strcmp(eviction->path, evict->call.path) == 0)
			break;
	if (eviction) /* it was evicted from here already */
		return;
	begin_eviction(evict->eviction, lc_now(lc) + evict->wait_us);
	evict->eviction = NULL;
}

static void evict_finish(struct lc_call *call)
{
	struct evict_call *evict = (struct evict_call *)call;

	/* Nobody waits for the call any more, but the entry is marked. */
	if (call->done_late && evict->wait_us > 0)
		follow_up(evict);
	free(evict->by);
	free(evict->lock);
	free(evict->mailbox);
	drop_eviction(evict->eviction);
}

static void is_marked(struct evict_call *evict)
{
	follow_up(evict);
	call_end(&evict->call, 0, NULL);
}

static void letter_answered(struct lc_call *call, const struct ensemble_answer *answer)
{
	if (answer->result == ENSEMBLE_NONODE) /* the entry, or the mailbox */
		call_ask(call);
	else
		is_marked((struct evict_call *)call);
}

/* The owner of the lock may evict, if still the owner when the change is made. */
static void send_change(struct evict_call *evict, struct ensemble_op ops[3], int count,
                        call_stage_fn *stage)
{
	if (evict->owner)
		ops[count++] = ensemble_check(evict->lock, evict->lock_version);
	evict->owner = false; /* it is looked at again before anything else is sent */
	call_send(&evict->call, ops, count, stage, MEANT(ENSEMBLE_NONODE));
}

/* ---- the letter ---- */

/* `mailbox`: NULL: there is none. */
static void send_letter(struct evict_call *evict, const struct ensemble_answer *mailbox)
{
	char letters[LETTERS_SIZE];
	struct lc_call *call = &evict->call;
	struct ensemble_op ops[3];
	size_t len;

	if (evict->marked && !mailbox) {
		is_marked(evict);
		return;
	}
	if (evict->marked) { /* its mount may have had no mailbox then */
		ops[0] = ensemble_check(call->path, evict->version);
	} else {
		lc_report(call->lc, LC_NOTICE,
		          "%s: marked for eviction by %s; deleted at the latest %" PRId64
		          " s after its mount was told",
		          call->path, evict->by, evict->wait_us / 1000000);
		ops[0] = ensemble_set(call->path, evict->data, evict->len, evict->version);
	}
	if (mailbox) {
		len = letters_add(letters, mailbox->data, (size_t)mailbox->data_len,
		                  evict->name.taker_half);
		ops[1] = ensemble_set(evict->mailbox, letters, len, mailbox->stat->version);
	}
	send_change(evict, ops, mailbox ? 2 : 1, letter_answered);
}

/* True: there is another one. Roots are in the entry's path, from the top; the own one, which is
 * the likeliest, comes first. */
static bool next_root(struct evict_call *evict)
{
	size_t own = strlen(evict->call.lc->root);

	if (evict->roots == 0)
		evict->root_len = 0; /* where the others begin */
	do {
		const char *slash = strchr(evict->call.path + evict->root_len + 1, '/');

		if (!slash || evict->roots++ >= ROOTS_MAX)
			return false;
		evict->root_len = (size_t)(slash - evict->call.path);
	} while (evict->root_len == own);
	return true;
}

static void find_mailbox(struct evict_call *evict);

static void mailbox_answered(struct lc_call *call, const struct ensemble_answer *answer)
{
	struct evict_call *evict = (struct evict_call *)call;

	if (answer->result == ENSEMBLE_OK)
		send_letter(evict, answer);
	else if (next_root(evict))
		find_mailbox(evict);
	else
		send_letter(evict, NULL);
}

static void find_mailbox(struct evict_call *evict)
{
	free(evict->mailbox);
	if (asprintf(&evict->mailbox, "%.*s/" ROOT_DIR "/%016" PRIx64 MAILBOX_SUFFIX,
	             (int)evict->root_len, evict->call.path, evict->name.session_half) < 0) {
		evict->mailbox = NULL;
		call_fail_soon(&evict->call, -ENOMEM);
		return;
	}
	/* The first time a sync follows: the mount may have made it right now. */
	call_get(&evict->call, evict->mailbox, mailbox_answered,
	         MEANT(ENSEMBLE_NOAUTH) | (evict->call.synced ? MEANT(ENSEMBLE_NONODE) : 0));
}

/* ---- the entry ---- */

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

static void check_lock_owner(struct lc_call *call, const struct ensemble_answer *answer)
{
	struct evict_call *evict = (struct evict_call *)call;
	struct lc_attributes now;

	authority_read(evict->call.lc, answer, &now);
	evict->owner = authority_owns(&now, evict->call.uid);
	evict->lock_version = answer->stat->version;
	if (evict->owner)
		call_ask(call);
	else
		call_fail(call, -EPERM);
}

static void mark_it(struct evict_call *evict, const void *data, size_t len)
{
	struct lc *lc = evict->call.lc;

	evict->wait_us = node_data_timeout_ms(data, len) * 1000;
	if (evict->wait_us < lc->session->granted_us)
		evict->wait_us = lc->session->granted_us;
	evict->marked = node_data_is_evicted(data, len, NULL);
	evict->len = node_data_format_evicted(evict->data, data, len, evict->by);
	evict->roots = 0;
	evict->root_len = strlen(lc->root);
	find_mailbox(evict);
}

static void entry_was_read(struct lc_call *call, const struct ensemble_answer *answer)
{
	struct evict_call *evict = (struct evict_call *)call;
	struct ensemble_op ops[3];

	if (answer->result == ENSEMBLE_NONODE) {
		call_end(call, 0, NULL);
		return;
	}
	if (evict->token && answer->stat->czxid != evict->token) {
		call_fail(call, -ENOENT); /* another one of that name */
		return;
	}
	if (!may_evict(evict, answer)) {
		call_get(call, evict->lock, check_lock_owner, 0);
		return;
	}
	evict->version = answer->stat->version;
	if (evict->name.of_mount && answer->stat->ephemeral_owner != 0) {
		mark_it(evict, answer->data, (size_t)answer->data_len);
		return;
	}
	lc_report(call->lc, LC_NOTICE, "%s: evicted by %s", call->path, evict->by);
	call->maybe_done = true;
	ops[0] = ensemble_delete(call->path, evict->version);
	send_change(evict, ops, 1, call_done);
}

static void evict_ask(struct lc_call *call)
{
	/* Its mount may have deleted it, if it was marked. */
	call_get(call, call->path, entry_was_read, call->maybe_done ? MEANT(ENSEMBLE_NONODE) : 0);
}

int lc_evict(struct lc *lc, const char *lock, const char *znode, const struct lc_evictor *by,
             lc_done_fn *done, void *ctx, struct lc_call **ret_call)
{
	struct evict_call *evict;
	struct entry_name name;
	char *path;

	if (!name_parse(znode, &name))
		return -ENOENT; /* no entry */
	evict = call_new(struct evict_call, .ask = evict_ask, .tell = call_tell_done,
	                 .finish = evict_finish, .repeatable = true, .uid = by->uid,
	                 .changes = true, .listener.done = done, .ctx = ctx);
	if (!evict)
		return -ENOMEM;
	evict->name = name;
	evict->token = by->token;
	evict->lock = lc_path(lc, lock);
	/* All memory for the eviction is allocated before anything is done. */
	path = evict->lock ? path_join(evict->lock, znode) : NULL;
	evict->by = strdup(by->name);
	evict->eviction = path ? make_eviction(lc, path) : NULL;
	if (evict->eviction && evict->by)
		evict->call.path = path;
	else
		free(path);
	return call_begin(&evict->call, lc, ret_call);
}
