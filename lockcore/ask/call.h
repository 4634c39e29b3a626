/* SPDX-License-Identifier: MIT
 *
 * call.h - the common part of all questions: see call.c for their life.
 *
 *   lock_info   stat, value, list, waiters: what only reads
 *   entry_info  what takers wrote into their entries
 *   make        mkdir
 *   change      attributes, slots, value, confirm: what writes
 *   remove      rmdir
 *   evict       taking an entry away
 *   waiters     who waits behind a holder, by a listing
 */
#ifndef LOCKCORE_CALL_H
#define LOCKCORE_CALL_H

#include "ask/asking.h"
#include "pure/gate.h"
#include "lock/taker.h"

struct calls {
	struct lc_call *calls; /* not told yet */
	struct gate changes;   /* which of those that change something are asked now, */
	bool settles;          /*   if any */
};

/* Goes on with an answer that is OK, or of a result that is meant. Somebody waits for the call. */
typedef void call_stage_fn(struct lc_call *call, const struct ensemble_answer *answer);
#define MEANT(result) (1U << (result))

/* Who is told; tell() knows which. */
union listener {
	lc_done_fn *done;
	lc_stat_fn *stat;
	lc_list_fn *list;
	lc_value_fn *value;
	lc_waiters_fn *waiters;
	lc_entries_fn *entries;
	lc_renewed_fn *renewed;
};

/* Each kind embeds this as its first member. */
struct lc_call {
	struct lc *lc;
	void (*ask)(struct lc_call *call); /* sends the first request, also when it begins anew */
	/* Tells the frontend. `what`: the kind's own; NULL, if there is an error. */
	void (*tell)(struct lc_call *call, int error, void *what);
	void (*finish)(struct lc_call *call); /* frees what the kind has of its own, or NULL */
	int64_t begun_us;
	struct timer limit;
	struct lc_call *prev, *next; /* in lc->calls->calls, until told */
	call_stage_fn *stage;        /* gets the answer that is outstanding; NULL: none is */
	unsigned meant;              /*   results that are no errors there, by MEANT() */
	uid_t uid;                   /* the user whose share it uses */
	bool changes;                /* it is to write, in its turn */
	struct gate_item turn;       /*   until told */
	unsigned reads, waiting;     /* readers that are not told; and not asked for yet */
	struct reader reader;        /* of those that need but one */
	bool told;                   /* or cancelled: the frontend is done with it */
	bool writes;                 /* the request that is outstanding does */
	bool written;                /* something was sent that may have been done, */
	bool maybe_done;             /*   and its answer was lost; */
	bool done_late;              /*   it was done after the call was told */
	bool repeatable;             /* asked again when unanswered, though it writes */
	bool synced;                 /* "not there" was said after a sync */
	char *path;
	struct lc_taker *taker; /* NULL, or kept from being freed */
	int error;              /* to tell when the timer fires; 0: EHOSTUNREACH */
	int64_t sent_us;        /* the last request */
	union listener listener;
	void *ctx;
};

/* A new `type`, which begins with a struct lc_call of these members. It takes the path. NULL: no
 * memory. */
#define call_new(type, ...) ((type *)call_alloc(sizeof(type), &(struct lc_call){__VA_ARGS__}))
void *call_alloc(size_t size, const struct lc_call *model);
/* Takes the call. Without a call or its path: -ENOMEM. */
int call_begin(struct lc_call *call, struct lc *lc, struct lc_call **ret_call);
/* Its next stage: now, or when there is contact again. */
void call_ask(struct lc_call *call);
/* One request, or a transaction. A write whose version has changed begins the call anew. */
void call_send(struct lc_call *call, const struct ensemble_op *ops, int count, call_stage_fn *stage,
               unsigned meant);
void call_get(struct lc_call *call, const char *path, call_stage_fn *stage, unsigned meant);
/* The operation, in one transaction with the check of the taker's entry. */
void call_send_held(struct lc_call *call, struct ensemble_op op, call_stage_fn *stage,
                    unsigned meant);
/* By the call's reader, which asks again on the next connection. */
void call_read(struct lc_call *call, enum reading_kind kind, const char *path, reader_fn *answer);
struct lc_call *call_of(struct reader *reader);
/* Ends the call, and tells the frontend. */
void call_end(struct lc_call *call, int error, void *what);
void call_fail(struct lc_call *call, int error);
/* From the timers, never from inside the call that asked. */
void call_fail_soon(struct lc_call *call, int error);

/* Tells `done`, and `stat`. */
void call_tell_done(struct lc_call *call, int error, void *what);
void call_tell_stat(struct lc_call *call, int error, void *info);
/* Ends a call that answers no more than an error. */
void call_done(struct lc_call *call, const struct ensemble_answer *answer);

/* A heartbeat was answered. Requests that were not answered are sent again. */
void calls_resume(struct lc *lc);
void calls_finish(struct lc *lc);

#endif
