/* SPDX-License-Identifier: MIT
 *
 * sweep.c - entries that carry this session's mark and belong to no taker. There
 * should be none: every entry's taker is kept until it is known to be gone. One that
 * a listing shows all the same would block its lock as long as this mount lives.
 *
 * Nothing is concluded from the name alone: two containers may both be host `app`,
 * pid 7. The mark must be ours, the node must belong to our session, and no taker
 * may have its number.
 */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

struct orphan {
	struct lc *lc;
	char *path;
	uint64_t id;
	struct orphan *prev, *next;
};

static void done(struct orphan *orphan)
{
	DL_DELETE(orphan->lc->orphans, orphan);
	free(orphan->path);
	free(orphan);
}

/* Gone, or not; if it is still there the next listing finds it again. */
static void deleted(void *ctx, const struct ensemble_answer *answer)
{
	(void)answer;
	done(ctx);
}

static void looked(void *ctx, const struct ensemble_answer *answer)
{
	struct orphan *orphan = ctx;
	struct lc *lc = orphan->lc;
	struct lc_taker *taker;

	HASH_FIND(hh, lc->takers, &orphan->id, sizeof(orphan->id), taker);
	if (answer->result != ENSEMBLE_OK || answer->stat->ephemeral_owner != lc->session.id || taker) {
		done(orphan);
		return;
	}
	lc_report(lc, LC_WARNING, "%s belongs to nobody here: deleting it", orphan->path);
	lc_submit(lc, &(struct ensemble_op){.kind = ENSEMBLE_DELETE, .path = orphan->path,
	                                    .version = ENSEMBLE_ANY_VERSION},
	          1, deleted, orphan);
}

void sweep(struct lock *lock, const struct queue_entry *entry)
{
	struct lc *lc = lock->lc;
	struct orphan *orphan;

	DL_FOREACH(lc->orphans, orphan)
		if (orphan->id == entry->name.taker_half)
			return;
	orphan = calloc(1, sizeof(*orphan));
	if (!orphan)
		return;
	orphan->lc = lc;
	orphan->id = entry->name.taker_half;
	orphan->path = lc_join(lock->path, entry->znode);
	if (!orphan->path) {
		free(orphan);
		return;
	}
	DL_APPEND(lc->orphans, orphan);
	lc_submit(lc, &(struct ensemble_op){.kind = ENSEMBLE_GET, .path = orphan->path}, 1, looked, orphan);
}
