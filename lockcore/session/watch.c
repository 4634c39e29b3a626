/* SPDX-License-Identifier: MIT
 *
 * watch.c - see watch.h. The client carries a watch that nobody needs from connection to
 * connection, all of them in one request, until the node changes, which may be never. So each
 * such watch is taken back. If the connection ends before the removal is answered, the path counts
 * with the other watched paths (quota.h), and the next connection removes the watch.
 */
#include "session/watch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- one watch ---- */

void watch_begin(struct watch *watch)
{
	assert(watch->state == WATCH_IDLE || watch->state == WATCH_ARMED);
	watch->state = watch->state == WATCH_ARMED ? WATCH_RENEWING : WATCH_PENDING;
}

void watch_ask(struct lc *lc, struct watch *watch, const char *path, ensemble_answer_fn *answer,
               void *ctx)
{
	watch_begin(watch);
	lc_submit(lc, ensemble_watch(path), answer, ctx);
}

void watch_answered(struct lc *lc, struct watch *watch, bool good)
{
	assert(watch_is_pending(watch));
	if (good)
		watch->connection = (uint32_t)lc->session->connections;
	watch->state = good || watch->state == WATCH_RENEWING ? WATCH_ARMED : WATCH_IDLE;
}

void watch_fired(struct watch *watch)
{
	watch->state = watch_is_pending(watch) ? WATCH_PENDING : WATCH_IDLE;
}

void watch_drop(struct lc *lc, struct watch *watch, const char *path)
{
	if (watch_is_armed(watch))
		watches_give_up(lc, path);
	watch_fired(watch);
}

bool watch_is_good(const struct lc *lc, const struct watch *watch)
{
	return watch_is_armed(watch) && watch->connection == (uint32_t)lc->session->connections;
}

/* ---- taking watches back ---- */

struct unwatch {
	struct lc *lc;
	char *path;
	bool pending;      /* asked for, and not answered */
	UT_hash_handle hh; /* in lc->watches->unwatches, by path */
};

static void set_pending(struct unwatch *unwatch, bool pending)
{
	size_t len = strlen(unwatch->path);

	unwatch->pending = pending;
	unwatch->lc->quota->watch_bytes += pending ? -len : len;
}

static void free_unwatch(struct unwatch *unwatch)
{
	struct lc *lc = unwatch->lc;

	HASH_DEL(lc->watches->unwatches, unwatch);
	lc->quota->watch_bytes -= unwatch->pending ? 0 : strlen(unwatch->path);
	free(unwatch->path);
	free(unwatch);
}

static void ask_unwatch(struct unwatch *unwatch);

/* A new watch of the same path stays: it was asked for after the removal, on the same
 * connection. */
static void unwatch_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct unwatch *unwatch = ctx;

	set_pending(unwatch, /* pending = */ false);
	if (answer->result == ENSEMBLE_UNKNOWN)
		ask_unwatch(unwatch); /* when there is contact again */
	else
		free_unwatch(unwatch);
}

static void ask_unwatch(struct unwatch *unwatch)
{
	if (unwatch->pending || !lc_ready(unwatch->lc))
		return;
	set_pending(unwatch, /* pending = */ true);
	lc_submit(unwatch->lc, ensemble_unwatch(unwatch->path), unwatch_answered, unwatch);
}

/* NULL: no memory. Then the watch stays until the session ends. */
static struct unwatch *make_unwatch(struct lc *lc, const char *path)
{
	struct unwatch *unwatch = calloc(1, sizeof(*unwatch));

	if (!unwatch)
		return NULL;
	unwatch->lc = lc;
	unwatch->path = strdup(path);
	if (unwatch->path)
		HASH_ADD_KEYPTR(hh, lc->watches->unwatches, unwatch->path, strlen(unwatch->path),
		                unwatch);
	if (unwatch->hh.tbl)
		return unwatch;
	free(unwatch->path);
	free(unwatch);
	return NULL;
}

void watches_give_up(struct lc *lc, const char *path)
{
	struct unwatch *unwatch;

	HASH_FIND_STR(lc->watches->unwatches, path, unwatch);
	if (unwatch)
		return;
	unwatch = make_unwatch(lc, path);
	if (!unwatch)
		return;
	set_pending(unwatch, /* pending = */ false);
	ask_unwatch(unwatch);
}

void watches_resume(struct lc *lc)
{
	struct unwatch *unwatch, *next;

	HASH_ITER(hh, lc->watches->unwatches, unwatch, next)
		ask_unwatch(unwatch);
}

void watches_clear(struct lc *lc)
{
	struct unwatch *unwatch, *next;

	HASH_ITER(hh, lc->watches->unwatches, unwatch, next)
		if (!unwatch->pending)
			free_unwatch(unwatch);
}
