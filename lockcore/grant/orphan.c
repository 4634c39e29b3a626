/* SPDX-License-Identifier: MIT
 *
 * orphan.c - entries that bear this session's mark and belong to no taker. There should be
 * none: a taker is kept until its entry is known to be gone. If a listing shows such an entry
 * all the same, it would block its lock as long as this mount lives.
 *
 * The name alone proves nothing: two containers may both be host `app`, pid 7, and anybody may
 * make entries with our mark, any number of them. The node must belong to our session, and to
 * no taker. Only ORPHANS_MAX are asked at a time. A lock that shows more is listed again, and
 * the check goes on where that listing left off.
 */
#include "grant/orphan.h"

#include <stdlib.h>
#include <string.h>

/* Asked at a time, of all locks. */
#define ORPHANS_MAX 64

struct orphan {
	struct lc *lc;
	char *path;
	size_t lock_len; /* the lock's part of it */
	struct entry_name name;
	UT_hash_handle hh; /* in lc->orphans->by_path, by path */
};

static struct lock *lock_of(const struct orphan *orphan)
{
	return lock_find(orphan->lc, orphan->path, orphan->lock_len);
}

static void finish_orphan(struct orphan *orphan)
{
	struct lock *lock = lock_of(orphan);

	if (lock && lock->orphans_seen > 0)
		lock_list_later(lock);
	HASH_DEL(orphan->lc->orphans->by_path, orphan);
	free(orphan->path);
	free(orphan);
}

/* Gone, or not; if it is still there the next listing finds it again. */
static void orphan_deleted(void *ctx, const struct ensemble_answer *answer)
{
	(void)answer;
	finish_orphan(ctx);
}

/* A taker's create was not answered, and this may be its entry; or it was found meanwhile. */
static bool may_be_owned(const struct orphan *orphan)
{
	struct lock *lock = lock_of(orphan);
	struct entry *entry = lock ? entry_named(lock, &orphan->name) : NULL;

	return entry && (entry->state == ENTRY_CREATING || entry->state == ENTRY_UNKNOWN ||
	                 entry_of_node(lock, orphan->path + orphan->lock_len + 1, &orphan->name));
}

static void orphan_read(void *ctx, const struct ensemble_answer *answer)
{
	struct orphan *orphan = ctx;
	struct lc *lc = orphan->lc;

	if (answer->result != ENSEMBLE_OK || answer->stat->ephemeral_owner != lc->session->id ||
	    may_be_owned(orphan)) {
		finish_orphan(orphan);
		return;
	}
	lc_report(lc, LC_WARNING, "%s has no taker on this mount: deleting it", orphan->path);
	batch_submit(lc, ensemble_delete(orphan->path, ENSEMBLE_ANY_VERSION), orphan_deleted,
	             orphan);
}

/* The path becomes its own. */
static struct orphan *make_orphan(struct lock *lock, char *path, const struct entry_name *name)
{
	struct orphan *orphan = calloc(1, sizeof(*orphan));

	if (!orphan)
		return NULL;
	*orphan = (struct orphan){
		.lc = lock->lc, .path = path, .lock_len = strlen(lock->path), .name = *name};
	HASH_ADD_KEYPTR(hh, lock->lc->orphans->by_path, orphan->path, strlen(orphan->path), orphan);
	if (orphan->hh.tbl)
		return orphan;
	free(orphan);
	return NULL;
}

bool orphan_check(struct lock *lock, const struct queue_entry *entry)
{
	struct lc *lc = lock->lc;
	char *path = path_join(lock->path, entry->znode);
	struct orphan *orphan = NULL;

	if (path)
		HASH_FIND_STR(lc->orphans->by_path, path, orphan);
	if (orphan) {
		free(path);
		return true; /* it is being asked */
	}
	if (path && HASH_COUNT(lc->orphans->by_path) < ORPHANS_MAX)
		orphan = make_orphan(lock, path, &entry->name);
	if (!orphan) {
		free(path);
		return false;
	}
	batch_submit(lc, ensemble_get(path), orphan_read, orphan);
	return true;
}
