/* SPDX-License-Identifier: MIT */
#include "grant/grant.h"

#include "session/counters.h"

#include <assert.h>

/* False: the lease is over or in doubt. The frontend knows nothing of the grant yet, so
 * taker_lose() sets the taker waiting again. */
static bool may_tell_grant(struct lc_taker *taker)
{
	if (lc_doubted(taker->entry.lock->lc)) {
		taker_lose(taker);
		return false;
	}
	return lc_holds(taker);
}

static void tell(struct lc_taker *taker)
{
	struct lc *lc = taker->entry.lock->lc;

	taker_set_due(taker, /* due = */ false);
	switch (taker->state) {
	case TAKER_HELD:
		count_grant(lc, taker->asked_us);
		taker->taken(taker->ctx, 0);
		break;
	case TAKER_FAILED:
		count_failure(lc, taker->error);
		taker->taken(taker->ctx, taker->error);
		break;
	case TAKER_LOST:
		taker_guard(taker); /* the machine may have stood still since the loss */
		lc->counters.losses++;
		taker->lost(taker->ctx);
		break;
	case TAKER_WAITING:
	case TAKER_LEFT:
		assert(false);
	}
}

void takers_tell(struct lc *lc, unsigned *left)
{
	for (; lc->takers->due && *left > 0; --*left) {
		struct lc_taker *taker = lc->takers->due;

		if (taker->state != TAKER_HELD || may_tell_grant(taker))
			tell(taker);
	}
}
