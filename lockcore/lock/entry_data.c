/* SPDX-License-Identifier: MIT
 *
 * entry_data.c - what stands in an entry: who took it, why, and since when it is held. An evictor
 * adds a mark, a line of the data, by compare-and-set. So the data is written here only with the
 * version that was read last, or an unread mark could be overwritten; and each read of the data
 * looks for a mark. For a holder and the first waiter the watch reports a mark; for the others
 * there are letters (session/mailbox.c).
 */
#include "lock/known.h"
#include "pure/limits.h"
#include "pure/node_data.h"

#include <stdlib.h>

size_t entry_format(const struct entry *entry, char *ret_data)
{
	return node_data_format_entry(
		ret_data, &(struct node_data_entry){
				  .host = entry->lock->lc->host,
				  .pid = entry->data.pid,
				  .uid = entry->data.uid,
				  .command = entry->data.command,
				  .reason = entry->data.reason,
				  .timeout_ms = entry->lock->lc->session->granted_us / 1000,
				  .held_since_ms = entry->data.held_since_ms,
			  });
}

static bool is_same_node(const struct entry *entry, const struct ensemble_stat *stat)
{
	return stat->ephemeral_owner == entry->lock->lc->session->id &&
	       (entry->czxid == 0 || entry->czxid == stat->czxid);
}

bool entry_read(struct entry *entry, const struct ensemble_answer *answer)
{
	char by[NODE_DATA_BY_MAX + 1];

	if (entry->state == ENTRY_PRESENT && !is_same_node(entry, answer->stat)) {
		loss_of_node(taker_of(entry));
		return false;
	}
	entry->version = answer->stat->version;
	entry->czxid = answer->stat->czxid;
	entry_touch(entry);
	known_see(entry);
	if (node_data_is_evicted(answer->data, (size_t)answer->data_len, by))
		loss_by_mark(taker_of(entry), by);
	return true;
}

/* The ensemble has no such node: the entry is gone, though another node may have its name now. */
static void not_there(struct entry *entry)
{
	if (entry_is_queued(entry))
		loss_of_node(taker_of(entry));
}

static void look_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct entry *entry = ctx;
	struct lc *lc = entry->lock->lc;

	entry->pending--;
	lc->entries->looks--;
	switch (answer->result) {
	case ENSEMBLE_OK:
		entry_read(entry, answer);
		break;
	case ENSEMBLE_NONODE:
		not_there(entry);
		break;
	case ENSEMBLE_NOAUTH: /* whoever has closed the node could delete it as well */
		break;
	case ENSEMBLE_GONE:
		return;
	case ENSEMBLE_EXISTS:
	case ENSEMBLE_NOTEMPTY:
	case ENSEMBLE_BADVERSION:
	case ENSEMBLE_NOCHILDREN:
	case ENSEMBLE_INVALID:
	case ENSEMBLE_REFUSED:
		lc->ensemble->port->drop(lc->ensemble);
		/* fallthrough */
	case ENSEMBLE_UNKNOWN: /* the next connection finds the letter again */
		taker_step(taker_of(entry));
		return;
	}
	if (lc->entries->looks == 0)
		session_letters_done(lc);
	taker_step(taker_of(entry));
}

bool entry_look(struct entry *entry)
{
	struct lc *lc = entry->lock->lc;
	char *path;

	if (!entry->wanted || entry->state != ENTRY_PRESENT || entry_is_seen(entry))
		return true;
	path = entry_path(entry);
	if (!path)
		return false;
	entry->pending++;
	lc->entries->looks++;
	lc_submit(lc, ensemble_get(path), look_answered, entry);
	free(path);
	return true;
}

static void watch_was_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct entry *entry = ctx;
	bool good;

	entry->pending--;
	good = answer->result == ENSEMBLE_OK && entry_read(entry, answer);
	watch_answered(entry->lock->lc, &entry->watch, good);
	if (answer->result == ENSEMBLE_GONE)
		return;
	if (good) {
		if (entry->lock->grant.held_back) /* the delete was refused before this read */
			taker_proved(taker_of(entry));
		entry_write(entry);
	} else if (answer->result == ENSEMBLE_OK) {
		/* Another node has its name: entry_read() has said that the entry is gone. */
	} else if (answer->result == ENSEMBLE_NONODE) {
		not_there(entry);
	} else if (answer->result != ENSEMBLE_UNKNOWN) {
		taker_try_later(taker_of(entry));
	} else if (entry->wanted) {
		lock_want_list(entry->lock);
	}
	taker_step(taker_of(entry));
}

bool entry_watch(struct entry *entry)
{
	char *path;

	if (!lc_ready(entry->lock->lc) || entry->state != ENTRY_PRESENT || entry_is_seen(entry) ||
	    watch_is_pending(&entry->watch))
		return true;
	path = entry_path(entry);
	if (!path) {
		taker_try_later(taker_of(entry));
		return false;
	}
	entry->pending++;
	watch_ask(entry->lock->lc, &entry->watch, path, watch_was_answered, entry);
	free(path);
	return true;
}

/* ---- since when it is held, and why ---- */

/* The turn of an entry whose data is written, or waits to be written. */
struct data_write {
	struct gate_item item;
	struct entry *entry;
	int64_t sent_us; /* the write */
};

static void end_turn(struct entry *entry)
{
	if (!entry->data.turn)
		return;
	gate_leave(&entry->lock->lc->entries->writers, &entry->data.turn->item);
	free(entry->data.turn);
	entry->data.turn = NULL;
}

static void write_next(struct entries *entries);

static void entry_written(void *ctx, const struct ensemble_answer *answer)
{
	struct entry *entry = ctx;
	int64_t sent_us = entry->data.turn->sent_us;

	entry->pending--;
	entry_touch(entry);
	end_turn(entry);
	write_next(entry->lock->lc->entries);
	switch (answer->result) {
	case ENSEMBLE_OK:
		session_wrote(entry->lock->lc, sent_us);
		entry->version = answer->stat->version;
		break;
	case ENSEMBLE_UNKNOWN:
		entry->data.dirty = true;
		break;
	case ENSEMBLE_BADVERSION:
		/* Another client has written to the entry: that is read first. */
		entry->data.dirty = true;
		watch_fired(&entry->watch);
		entry_watch(entry);
		break;
	case ENSEMBLE_NONODE:
		not_there(entry);
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
	if (!watch_is_pending(&entry->watch))
		entry_write(entry);
	taker_step(taker_of(entry));
}

static bool may_be_written(const struct entry *entry)
{
	return entry->data.dirty && entry->data.held_since_ms >= 0 &&
	       entry->state == ENTRY_PRESENT && lc_ready(entry->lock->lc);
}

/* False: no memory. */
static bool wait_to_write(struct entry *entry)
{
	struct gate *gate = &entry->lock->lc->entries->writers;
	struct data_write *turn = calloc(1, sizeof(*turn));

	if (!turn || !gate_join(gate, entry->data.uid, &turn->item)) {
		free(turn);
		return false;
	}
	turn->entry = entry;
	entry->data.turn = turn;
	return true;
}

static void write_in_turn(struct entry *entry)
{
	char data[NODE_DATA_ENTRY_MAX], *path = may_be_written(entry) ? entry_path(entry) : NULL;

	if (!path) {
		end_turn(entry);
		if (may_be_written(entry))
			taker_try_later(taker_of(entry));
		return;
	}
	entry->data.dirty = false;
	entry->data.told_since = true;
	entry_touch(entry);
	entry->data.turn->sent_us = lc_now(entry->lock->lc);
	entry->pending++;
	lc_submit(entry->lock->lc,
	          ensemble_set(path, data, entry_format(entry, data), entry->version),
	          entry_written, entry);
	free(path);
}

static void write_next(struct entries *entries)
{
	static const struct gate_limits limits = {
		.all = DATA_WRITES_MAX,
		.of_root = DATA_WRITES_MAX,
		.of_user = DATA_WRITES_MAX,
	};
	struct gate_item *turn;

	while ((turn = gate_next(&entries->writers, &limits)))
		write_in_turn(((struct data_write *)turn)->entry);
}

void entry_write(struct entry *entry)
{
	if (!may_be_written(entry))
		return;
	if (entry->data.turn || wait_to_write(entry))
		write_next(entry->lock->lc->entries);
	else
		taker_try_later(taker_of(entry));
}

void entry_write_since(struct entry *entry)
{
	entry->data.dirty |= entry->data.held_since_ms >= 0 && !entry->data.told_since;
	entry_touch(entry);
	entry_write(entry);
}

void entry_data_finish(struct entry *entry)
{
	end_turn(entry);
	free(entry->data.reason);
}
