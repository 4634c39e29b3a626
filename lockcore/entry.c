/* SPDX-License-Identifier: MIT
 *
 * entry.c - what stands in a taker's entry, and the watch on it: who took it, why, since when
 * it holds, and the mark of somebody who takes it away.
 *
 * The mark is a line in the data that the one who evicts has added, with
 * compare-and-set; so the data is written here with the version it is known to have, or
 * a mark could be wiped out unread. It is looked for each time the data is read. Who
 * holds or is the first to wait is told of it by the watch; who stands further behind, by a
 * poke (poke.c).
 */
#include "engine.h"
#include "record.h"

#include <errno.h>
#include <stdlib.h>

/* What found no memory is tried again. */
#define RETRY_US 1000000

size_t entry_format(const struct lc_taker *taker, char *ret_data)
{
	return record_format_entry(ret_data, &(struct record_entry){
		.host = taker->lc->host, .pid = taker->pid, .uid = taker->uid,
		.command = taker->command, .reason = taker->reason,
		.timeout_ms = taker->lc->session.granted_us / 1000,
		.held_since_ms = taker->state == TAKER_HELD ? taker->held_since_ms : -1,
	});
}

/* Not another one's, of the same name. */
static bool is_it(const struct lc_taker *taker, const struct ensemble_stat *stat)
{
	return stat->ephemeral_owner == taker->lc->session.id &&
	       (taker->czxid == 0 || taker->czxid == stat->czxid);
}

bool entry_read(struct lc_taker *taker, const struct ensemble_answer *answer)
{
	char by[RECORD_BY_MAX + 1];

	if (taker->znode == ZNODE_PRESENT && !is_it(taker, answer->stat)) {
		taker_gone(taker);
		return false;
	}
	taker->version = answer->stat->version;
	taker->czxid = answer->stat->czxid;
	if (record_is_evicted(answer->data, (size_t)answer->data_len, by))
		taker_evicted(taker, by);
	return true;
}

/* ---- looking ---- */

static void looked(void *ctx, const struct ensemble_answer *answer)
{
	struct lc_taker *taker = ctx;

	taker->pending--;
	if (answer->result == ENSEMBLE_GONE)
		return;
	if (answer->result == ENSEMBLE_OK)
		entry_read(taker, answer);
	else if (answer->result == ENSEMBLE_NONODE && taker_wants(taker))
		lock_want_list(taker->lock);
	taker_step(taker);
}

static void look(struct lc_taker *taker)
{
	char *path = taker_path(taker);

	if (!path)
		return;   /* who has evicted it deletes it in the end */
	taker->pending++;
	lc_submit_beside(taker->lc, &(struct ensemble_op){.kind = ENSEMBLE_GET, .path = path}, 1, looked,
	                 taker);
	free(path);
}

void taker_look(struct lc_taker *taker)
{
	if (taker_wants(taker) && taker->znode == ZNODE_PRESENT && !taker_proved(taker))
		look(taker);
}

void takers_look(struct lc *lc)
{
	struct lc_taker *taker, *next;

	HASH_ITER(hh, lc->takers, taker, next)
		taker_look(taker);
}

/* ---- watching ---- */

static void self_watched(void *ctx, const struct ensemble_answer *answer)
{
	struct lc_taker *taker = ctx;

	taker->pending--;
	taker->watch_pending = false;
	if (answer->result == ENSEMBLE_GONE)
		return;
	if (answer->result == ENSEMBLE_OK && entry_read(taker, answer)) {
		taker->watch_armed = true;
		taker->watch_connection = taker->lc->session.connections;
		lock_proved(taker->lock, taker);
		entry_write(taker);
	} else if (answer->result == ENSEMBLE_OK) {
		/* It is gone; the listing says so to all. */
	} else if (answer->result != ENSEMBLE_NONODE && answer->result != ENSEMBLE_UNKNOWN) {
		timer_set(taker->lc, &taker->settle, lc_now(taker->lc) + RETRY_US);
	} else if (answer->result == ENSEMBLE_NONODE && taker_wants(taker) &&
	           taker->znode == ZNODE_PRESENT) {
		taker_gone(taker);   /* though another one may have its name by now */
	} else if (taker_wants(taker)) {
		lock_want_list(taker->lock);
	}
	taker_step(taker);
}

bool taker_proved(const struct lc_taker *taker)
{
	return taker->watch_armed && taker->watch_connection == taker->lc->session.connections;
}

void taker_watch_self(struct lc_taker *taker)
{
	char *path;

	if (!session_ready(taker->lc) || taker->znode != ZNODE_PRESENT || taker_proved(taker) ||
	    taker->watch_pending)
		return;
	path = taker_path(taker);
	if (!path) {
		timer_set(taker->lc, &taker->settle, lc_now(taker->lc) + RETRY_US);
		return;
	}
	taker->watch_pending = true;
	taker->pending++;
	lc_submit_beside(taker->lc, &(struct ensemble_op){.kind = ENSEMBLE_GET, .path = path, .watch = true},
	                 1, self_watched, taker);
	free(path);
}

/* ---- since when, and why ---- */

static void entry_written(void *ctx, const struct ensemble_answer *answer)
{
	struct lc_taker *taker = ctx;

	taker->pending--;
	taker->data_pending = false;
	switch (answer->result) {
	case ENSEMBLE_OK:
		session_wrote(taker->lc, taker->data_sent_us);
		taker->version = answer->stat->version;
		break;
	case ENSEMBLE_UNKNOWN:
		taker->data_dirty = true;
		break;
	case ENSEMBLE_BADVERSION:
		/* Somebody has written to it: read that first. */
		taker->data_dirty = true;
		taker->watch_armed = false;
		taker_watch_self(taker);
		break;
	case ENSEMBLE_NONODE:
		lock_want_list(taker->lock);
		break;
	case ENSEMBLE_GONE:
		return;
	case ENSEMBLE_EXISTS:
	case ENSEMBLE_NOTEMPTY:
	case ENSEMBLE_NOCHILDREN:
	case ENSEMBLE_NOAUTH:
	case ENSEMBLE_INVALID:
	case ENSEMBLE_REFUSED:
		break;
	}
	if (!taker->watch_pending)
		entry_write(taker);
	taker_step(taker);
}

void entry_write(struct lc_taker *taker)
{
	char data[RECORD_ENTRY_MAX], *path;

	if (!taker->data_dirty || taker->data_pending || taker->state != TAKER_HELD ||
	    taker->znode != ZNODE_PRESENT || !session_ready(taker->lc))
		return;
	path = taker_path(taker);
	if (!path) {
		timer_set(taker->lc, &taker->settle, lc_now(taker->lc) + RETRY_US);
		return;
	}
	taker->data_dirty = false;
	taker->told_since = true;
	taker->data_pending = true;
	taker->data_sent_us = lc_now(taker->lc);
	taker->pending++;
	lc_submit(taker->lc, &(struct ensemble_op){.kind = ENSEMBLE_SET, .path = path, .data = data,
	                                           .data_len = (int)entry_format(taker, data),
	                                           .version = taker->version},
	          1, entry_written, taker);
	free(path);
}

void entry_write_since(struct lc_taker *taker)
{
	taker->data_dirty |= taker->state == TAKER_HELD && !taker->told_since;
	entry_write(taker);
}

int lc_set_reason(struct lc_taker *taker, const char *text, size_t len)
{
	char *reason;

	if (len > LC_REASON_MAX)
		return -EFBIG;
	if (!lc_holds(taker))
		return -EIO;
	reason = malloc(len + 1);
	if (!reason)
		return -ENOMEM;
	record_copy_line(reason, len + 1, text, len);
	free(taker->reason);
	taker->reason = reason;
	taker->data_dirty = true;
	entry_write(taker);
	return 0;
}
