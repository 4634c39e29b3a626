/* SPDX-License-Identifier: MIT
 *
 * share.c - how much of a session its takers use up, all together and by user: see
 * LC_ENTRY_BYTES_MAX and its neighbours in lockcore.h for what a session without limits
 * does to an ensemble. A taker weighs from lc_take() until it is freed, whether or not
 * its entry exists just now.
 */
#include "engine.h"

#include <stdlib.h>

struct share {
	uid_t uid;
	size_t bytes;          /* of its takers' entries */
	size_t watch_bytes;    /* of the locks that it was the first to take */
	UT_hash_handle hh;
};

static struct share *share_of(struct lc *lc, uid_t uid)
{
	struct share *share;

	HASH_FIND(hh, lc->shares, &uid, sizeof(uid), share);
	return share;
}

/* NULL: no memory. */
static struct share *share_get(struct lc *lc, uid_t uid)
{
	struct share *share = share_of(lc, uid);

	if (share)
		return share;
	share = calloc(1, sizeof(*share));
	if (!share)
		return NULL;
	share->uid = uid;
	HASH_ADD(hh, lc->shares, uid, sizeof(share->uid), share);
	if (!share->hh.tbl) {
		free(share);
		return NULL;
	}
	return share;
}

static void share_settle(struct lc *lc, struct share *share)
{
	if (share->bytes > 0 || share->watch_bytes > 0)
		return;
	HASH_DEL(lc->shares, share);
	free(share);
}

void share_take(struct lc_taker *taker)
{
	struct share *share = share_get(taker->lc, taker->uid);

	taker->lc->entry_bytes += taker->bytes;
	if (!share)
		return;   /* then it counts for all only */
	share->bytes += taker->bytes;
	taker->shared = true;
}

void share_return(struct lc_taker *taker)
{
	struct share *share = taker->shared ? share_of(taker->lc, taker->uid) : NULL;

	taker->lc->entry_bytes -= taker->bytes;
	if (!share)
		return;
	share->bytes -= taker->bytes;
	share_settle(taker->lc, share);
}

void share_take_lock(struct lock *lock, uid_t uid)
{
	struct share *share = share_get(lock->lc, uid);

	if (!share)
		return;
	lock->uid = uid;
	lock->shared = true;
	share->watch_bytes += lock->watch_bytes;
}

void share_return_lock(struct lock *lock)
{
	struct share *share = lock->shared ? share_of(lock->lc, lock->uid) : NULL;

	lock->shared = false;
	if (!share)
		return;
	share->watch_bytes -= lock->watch_bytes;
	share_settle(lock->lc, share);
}

bool share_is_full(const struct lc *lc, size_t bytes)
{
	return lc->entry_bytes + lc->watch_bytes + bytes > LC_ENTRY_BYTES_MAX ||
	       lc->watch_bytes > LC_WATCH_BYTES_MAX;
}

static bool has_room(struct lc *lc, uid_t uid, size_t bytes)
{
	const struct share *share = share_of(lc, uid);

	if (share_is_full(lc, bytes))
		return false;
	return uid == 0 || !share || (share->bytes + bytes <= LC_USER_BYTES_MAX &&
	                              share->watch_bytes <= LC_WATCH_BYTES_MAX / 2);
}

bool share_has_room(struct lc *lc, uid_t uid, size_t bytes)
{
	if (has_room(lc, uid, bytes))
		return true;
	if (lc_is_due(lc, &lc->full_said_us))
		lc_report(lc, LC_WARNING, "takers of uid %u are refused: there are too many here, "
		          "with entries of %zu bytes", (unsigned)uid, lc->entry_bytes);
	return false;
}
