/* SPDX-License-Identifier: MIT
 *
 * hold.c - what the frontend asks of a taker that holds: is it so, its token, its reason.
 */
#include "lock/taker.h"
#include "pure/node_data.h"

#include <errno.h>
#include <stdlib.h>

bool lc_holds(struct lc_taker *taker)
{
	struct lc *lc = taker->entry.lock->lc;
	const struct lease *lease = &lc->session->lease;
	int64_t now;

	if (taker->state != TAKER_HELD)
		return false;
	now = lc_now(lc);
	if (now >= taker->hold_until_us) {
		loss_by_limit(taker); /* the timer is late */
		return false;
	}
	if (lease_left(lease, now) > 0)
		return !lease_doubted(lease, now);
	loss_of_lease(lc); /* for ever: a later answer revives no lock */
	return false;
}

void lc_limit(struct lc_taker *taker, int64_t until_us)
{
	if (taker->state != TAKER_HELD)
		return;
	taker->hold_until_us = until_us;
	entry_touch(&taker->entry);
	timer_set(&taker->entry.lock->lc->timers, &taker->limit, until_us);
}

int64_t lc_token(const struct lc_taker *taker)
{
	return taker->entry.repeated && !taker->told_token ? 0 : taker->entry.czxid;
}

int64_t lc_give_token(struct lc_taker *taker)
{
	taker->told_token |= taker->entry.czxid != 0;
	return taker->entry.czxid;
}

const char *lc_znode(const struct lc_taker *taker)
{
	return entry_is_queued(&taker->entry) ? taker->entry.name : NULL;
}

int lc_set_reason(struct lc_taker *taker, const char *text, size_t len)
{
	struct entry *entry = &taker->entry;
	char *reason;

	if (len > LC_REASON_MAX)
		return -EFBIG;
	if (!lc_holds(taker))
		return -EIO;
	reason = malloc(len + 1);
	if (!reason)
		return -ENOMEM;
	node_data_copy_line(reason, len + 1, text, len);
	free(entry->data.reason);
	entry->data.reason = reason;
	entry->data.dirty = true;
	entry_touch(entry);
	entry_write(entry);
	return 0;
}

const char *lc_reason(const struct lc_taker *taker)
{
	return taker->entry.data.reason ? taker->entry.data.reason : "";
}
