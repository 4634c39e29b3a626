/* SPDX-License-Identifier: MIT
 *
 * unwatch.c - watches that nobody needs any more. The client would carry them from connection
 * to connection, all in one request, until what is watched changes, which may be never. So
 * each is taken back. Where that was not answered, or cannot be asked for want of contact, it
 * weighs with the others (lc->watch_bytes), and is asked for on the next connection.
 */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

struct unwatch {
	struct lc *lc;
	char *path;
	bool pending;                /* asked for, and not answered */
	UT_hash_handle hh;           /* in lc->unwatches, by path */
};

static void set_pending(struct unwatch *unwatch, bool pending)
{
	size_t len = strlen(unwatch->path);

	unwatch->pending = pending;
	unwatch->lc->watch_bytes += pending ? -len : len;
}

static void forget(struct unwatch *unwatch)
{
	struct lc *lc = unwatch->lc;

	HASH_DEL(lc->unwatches, unwatch);
	lc->watch_bytes -= unwatch->pending ? 0 : strlen(unwatch->path);
	free(unwatch->path);
	free(unwatch);
}

static void ask(struct unwatch *unwatch);

/* Whoever watches it again meanwhile does so behind this on the same connection. */
static void answered(void *ctx, const struct ensemble_answer *answer)
{
	struct unwatch *unwatch = ctx;

	set_pending(unwatch, false);
	if (answer->result == ENSEMBLE_UNKNOWN)
		ask(unwatch);   /* when there is contact again */
	else
		forget(unwatch);
}

static void ask(struct unwatch *unwatch)
{
	if (unwatch->pending || !session_ready(unwatch->lc))
		return;
	set_pending(unwatch, true);
	lc_submit_beside(unwatch->lc, &(struct ensemble_op){.kind = ENSEMBLE_UNWATCH, .path = unwatch->path},
	                 1, answered, unwatch);
}

/* NULL: no memory; then it goes with the session. */
static struct unwatch *make(struct lc *lc, const char *path)
{
	struct unwatch *unwatch = calloc(1, sizeof(*unwatch));

	if (!unwatch)
		return NULL;
	unwatch->lc = lc;
	unwatch->path = strdup(path);
	if (unwatch->path)
		HASH_ADD_KEYPTR(hh, lc->unwatches, unwatch->path, strlen(unwatch->path), unwatch);
	if (unwatch->hh.tbl)
		return unwatch;
	free(unwatch->path);
	free(unwatch);
	return NULL;
}

void watch_given_up(struct lc *lc, const char *path)
{
	struct unwatch *unwatch;

	HASH_FIND_STR(lc->unwatches, path, unwatch);
	if (unwatch)
		return;
	unwatch = make(lc, path);
	if (!unwatch)
		return;
	set_pending(unwatch, false);
	ask(unwatch);
}

void unwatches_resume(struct lc *lc)
{
	struct unwatch *unwatch, *next;

	HASH_ITER(hh, lc->unwatches, unwatch, next)
		ask(unwatch);
}

void unwatches_clear(struct lc *lc)
{
	struct unwatch *unwatch, *next;

	HASH_ITER(hh, lc->unwatches, unwatch, next)
		if (!unwatch->pending)
			forget(unwatch);
}
