/* SPDX-License-Identifier: MIT
 *
 * sweep.c - entries that carry this session's mark and belong to no taker. There
 * should be none: every entry's taker is kept until it is known to be gone. One that
 * a listing shows all the same would block its lock as long as this mount lives.
 *
 * Nothing is concluded from the name alone: two containers may both be host `app`,
 * pid 7, and anybody may make entries with our mark, any number of them. The node must
 * belong to our session, and to no taker. Only so many are asked at a time: a lock that shows
 * more is looked at again where that one listing left off.
 */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

/* Asked at a time, of all locks. */
#define ORPHANS_MAX 64

struct orphan {
	struct lc *lc;
	char *path;
	size_t lock_len;             /* the lock's part of it */
	struct entry_name name;
	UT_hash_handle hh;           /* in lc->orphans, by path */
};

static struct lock *lock_of(const struct orphan *orphan)
{
	struct lock *lock;

	HASH_FIND(hh, orphan->lc->locks, orphan->path, orphan->lock_len, lock);
	return lock;
}

static void done(struct orphan *orphan)
{
	struct lock *lock = lock_of(orphan);

	if (lock && lock->swept > 0)
		lock_look_later(lock);
	HASH_DEL(orphan->lc->orphans, orphan);
	free(orphan->path);
	free(orphan);
}

/* Gone, or not; if it is still there the next listing finds it again. */
static void deleted(void *ctx, const struct ensemble_answer *answer)
{
	(void)answer;
	done(ctx);
}

/* Or it may be found to be one's. */
static bool is_ones(const struct orphan *orphan)
{
	struct lock *lock = lock_of(orphan);
	struct lc_taker *taker = lock ? lock_named(lock, &orphan->name) : NULL;

	return taker && (taker->znode == ZNODE_CREATING || taker->znode == ZNODE_UNKNOWN ||
	                 taker_owns(taker, orphan->path + orphan->lock_len + 1));
}

static void looked(void *ctx, const struct ensemble_answer *answer)
{
	struct orphan *orphan = ctx;
	struct lc *lc = orphan->lc;

	if (answer->result != ENSEMBLE_OK || answer->stat->ephemeral_owner != lc->session.id ||
	    is_ones(orphan)) {
		done(orphan);
		return;
	}
	lc_report(lc, LC_WARNING, "%s belongs to nobody here: deleting it", orphan->path);
	lc_submit(lc, &(struct ensemble_op){.kind = ENSEMBLE_DELETE, .path = orphan->path,
	                                    .version = ENSEMBLE_ANY_VERSION},
	          1, deleted, orphan);
}

/* The path becomes its own. */
static struct orphan *make_orphan(struct lock *lock, char *path, const struct entry_name *name)
{
	struct orphan *orphan = calloc(1, sizeof(*orphan));

	if (!orphan)
		return NULL;
	*orphan = (struct orphan){.lc = lock->lc, .path = path, .lock_len = strlen(lock->path),
	                          .name = *name};
	HASH_ADD_KEYPTR(hh, lock->lc->orphans, orphan->path, strlen(orphan->path), orphan);
	if (orphan->hh.tbl)
		return orphan;
	free(orphan);
	return NULL;
}

bool sweep(struct lock *lock, const struct queue_entry *entry)
{
	struct lc *lc = lock->lc;
	char *path = lc_join(lock->path, entry->znode);
	struct orphan *orphan = NULL;

	if (path)
		HASH_FIND_STR(lc->orphans, path, orphan);
	if (orphan) {
		free(path);
		return true;   /* it is being asked */
	}
	if (path && HASH_COUNT(lc->orphans) < ORPHANS_MAX)
		orphan = make_orphan(lock, path, &entry->name);
	if (!orphan) {
		free(path);
		return false;
	}
	lc_submit(lc, &(struct ensemble_op){.kind = ENSEMBLE_GET, .path = path}, 1, looked, orphan);
	return true;
}
