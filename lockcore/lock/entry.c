/* SPDX-License-Identifier: MIT */
#include "lock/known.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void count_there(const struct entry *entry, int by)
{
	if (entry->state != ENTRY_ABSENT)
		entry->lock->lc->entries->there += (unsigned)by;
	if (entry->state == ENTRY_UNKNOWN)
		entry->lock->batch.unknown += (unsigned)by;
}

int entry_resume(struct lc *lc, struct entry *entry, struct lock *lock)
{
	entry->lock = lock;
	if (!table_add(&lc->entries->by_id, &entry->id, entry->id.number))
		return -ENOMEM;
	record_begin(lc->config.records, &entry->record, LC_KIND_TAKER, 0);
	count_there(entry, +1);
	return 0;
}

int entry_init(struct lc *lc, struct entry *entry, struct lock *lock)
{
	entry->wanted = true;
	entry->data.held_since_ms = -1;
	entry->id.number = lc_random(lc);
	return entry_resume(lc, entry, lock);
}

void entry_finish(struct entry *entry)
{
	assert(entry->state == ENTRY_ABSENT && entry->pending == 0);
	entry_data_finish(entry);
	table_remove(&entry->lock->lc->entries->by_id, &entry->id);
}

/* ---- its state ---- */

/* The only place that changes an entry's state, but for taker_record.c. */
void entry_set_state(struct entry *entry, enum entry_state state)
{
	switch (entry->state) {
	case ENTRY_ABSENT:
		assert(state == ENTRY_CREATING);
		break;
	case ENTRY_CREATING:
		assert(state == ENTRY_PRESENT || state == ENTRY_UNKNOWN || state == ENTRY_ABSENT);
		break;
	case ENTRY_UNKNOWN:
		assert(state == ENTRY_PRESENT || state == ENTRY_ABSENT);
		break;
	case ENTRY_PRESENT:
		assert(state == ENTRY_DELETING || state == ENTRY_ABSENT);
		break;
	case ENTRY_DELETING:
		assert(state == ENTRY_PRESENT || state == ENTRY_ABSENT);
		break;
	}
	count_there(entry, -1);
	entry->state = state;
	count_there(entry, +1);
	entry_touch(entry);
	lock_touch(entry->lock);
}

void entry_set_absent(struct entry *entry)
{
	known_gone(entry);
	entry_set_state(entry, ENTRY_ABSENT);
	entry->sent = entry->in_doubt = false;
	watch_fired(&entry->watch);
	entry->name[0] = '\0';
}

/* `stat`: NULL if a transaction has made it. */
static void set_present(struct entry *entry, const char *znode, const struct ensemble_stat *stat)
{
	struct entry_name name;
	bool parsed = name_parse(znode, &name);

	(void)parsed;
	assert(parsed && name.taker_half == entry->id.number);
	assert(!stat || stat->ephemeral_owner == entry->lock->lc->session->id);
	assert(strlen(znode) < sizeof(entry->name)); /* nobody else makes nodes of this session */
	snprintf(entry->name, sizeof(entry->name), "%s", znode);
	entry->number = name.number;
	entry->czxid = stat ? stat->czxid : 0;
	entry->version = stat ? stat->version : 0;
	entry_set_state(entry, ENTRY_PRESENT);
}

void entry_begin(struct entry *entry)
{
	struct lc *lc = entry->lock->lc;

	name_format(entry->name, lc->clients, lc->session->half, entry->id.number, lc->host,
	            entry->data.pid, entry->mode);
	entry->shown_in = 0;
	entry_set_state(entry, ENTRY_CREATING);
}

static void not_made(struct entry *entry, const struct ensemble_answer *answer)
{
	struct lc *lc = entry->lock->lc;

	if (answer->result == ENSEMBLE_REFUSED &&
	    lc_may_say_again(lc, &lc->entries->refused_said_us))
		lc_report(lc, LC_WARNING, "%s: the ensemble refuses entries: %s", entry->lock->path,
		          lc_why_refused(answer));
	entry_set_absent(entry);
	taker_not_made(taker_of(entry), answer->result);
}

static void note_time(const struct entry *entry)
{
	struct entries *entries = entry->lock->lc->entries;
	int64_t us = lc_now(entry->lock->lc) - entry->sent_us;

	entries->create_us += entries->create_us ? (us - entries->create_us) / 8 : us;
}

void entry_created(struct entry *entry, const struct ensemble_answer *answer)
{
	assert(entry->state == ENTRY_CREATING);
	entry->pending--;
	entry->lock->batch.last_write_ok = answer->result == ENSEMBLE_OK;
	if (answer->result == ENSEMBLE_GONE)
		return; /* the session's end follows */
	if (answer->result == ENSEMBLE_OK) {
		if (entry->lock->lc->config.reuse)
			note_time(entry);
		session_wrote(entry->lock->lc, entry->sent_us);
		set_present(entry, strrchr(answer->path, '/') + 1, answer->stat);
		known_made(entry);
	} else if (answer->result == ENSEMBLE_UNKNOWN) {
		entry_set_state(entry, ENTRY_UNKNOWN);
		lock_want_list(entry->lock); /* the connection may still live */
	} else {
		not_made(entry, answer);
	}
	taker_step(taker_of(entry));
}

void entry_deleted(struct entry *entry, const struct ensemble_answer *answer)
{
	enum ensemble_result result = answer->result;

	assert(entry->state == ENTRY_DELETING && !entry->wanted);
	entry->pending--;
	entry->sent = false;
	entry->in_doubt |= result == ENSEMBLE_UNKNOWN;
	entry->lock->batch.last_write_ok = result == ENSEMBLE_OK;
	if (result == ENSEMBLE_GONE)
		return;
	if (result == ENSEMBLE_OK)
		session_wrote(entry->lock->lc, entry->sent_us);
	if (result == ENSEMBLE_OK || result == ENSEMBLE_NONODE)
		entry_set_absent(entry);
	else
		entry_set_state(entry, ENTRY_PRESENT); /* as far as we know: delete it again */
	if (entry->state == ENTRY_PRESENT && result != ENSEMBLE_UNKNOWN) {
		lc_report(entry->lock->lc, LC_WARNING, "%s/%s: cannot be deleted, trying again",
		          entry->lock->path, entry->name);
		taker_try_later(taker_of(entry));
	}
	taker_step(taker_of(entry));
}

void entry_unsent(struct entry *entry)
{
	entry->pending--;
	entry->sent = false;
	entry->lock->batch.last_write_ok = false;
	if (entry->state == ENTRY_CREATING)
		entry_set_absent(entry);
	else
		entry_set_state(entry, ENTRY_PRESENT);
	taker_step(taker_of(entry));
}

/* ---- a create of unknown outcome ---- */

void entry_found(struct entry *entry, const char *znode, const struct ensemble_answer *answer)
{
	assert(entry->state == ENTRY_UNKNOWN);
	known_forget(entry->lock); /* the node stands there as another client's */
	set_present(entry, znode, answer->stat);
	entry_read(entry, answer);
	taker_step(taker_of(entry));
}

void entry_not_found(struct entry *entry)
{
	assert(entry->state == ENTRY_UNKNOWN && entry->data.held_since_ms < 0);
	lock_expect_late(entry->lock);
	entry_set_absent(entry);
}
