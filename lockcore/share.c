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
	size_t bytes;
	UT_hash_handle hh;
};

static struct share *share_of(struct lc *lc, uid_t uid)
{
	struct share *share;

	HASH_FIND(hh, lc->shares, &uid, sizeof(uid), share);
	return share;
}

void share_take(struct lc_taker *taker)
{
	struct share *share = share_of(taker->lc, taker->uid);

	taker->lc->entry_bytes += taker->bytes;
	if (!share) {
		share = calloc(1, sizeof(*share));
		if (!share)
			return;   /* then it counts for all only */
		share->uid = taker->uid;
		HASH_ADD(hh, taker->lc->shares, uid, sizeof(share->uid), share);
		if (!share->hh.tbl) {
			free(share);
			return;
		}
	}
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
	if (share->bytes == 0) {
		HASH_DEL(taker->lc->shares, share);
		free(share);
	}
}

bool share_has_room(struct lc *lc, uid_t uid, size_t bytes)
{
	const struct share *share = share_of(lc, uid);

	return lc->entry_bytes + bytes <= LC_ENTRY_BYTES_MAX &&
	       lc->watch_bytes <= LC_WATCH_BYTES_MAX &&
	       (uid == 0 || !share || share->bytes + bytes <= LC_USER_BYTES_MAX);
}
