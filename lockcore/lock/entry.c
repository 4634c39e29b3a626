/* SPDX-License-Identifier: MIT
 *
 * entry.c - see entry.h.
 *
 * An entry's data says who took it, why, and since when it is held. An evictor adds a mark, a line
 * of the data, by compare-and-set. So the data is written here only with the version that was read
 * last, or an unread mark could be overwritten; and each read of the data looks for a mark. For a
 * holder and the first waiter the watch reports a mark; for the others there is a poke (poke.c).
 */
#include "lock/entry.h"

#include "pure/limits.h"
#include "pure/record.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct entry_events *events_of(const struct entry *entry)
{
	return entry->lock->lc->entries->events;
}

static struct entry *entry_of_link(struct table_link *link)
{
	return (struct entry *)link;
}

struct entry *entry_find(const struct lc *lc, uint64_t id)
{
	return entry_of_link(table_find(&lc->entries->by_id, id));
}

struct entry *entry_next(const struct lc *lc, const struct entry *entry)
{
	return entry_of_link(table_next(&lc->entries->by_id, entry ? &entry->id : NULL));
}

/* It has its id. 0 or -ENOMEM. */
static int enter_table(struct lc *lc, struct entry *entry, struct lock *lock)
{
	entry->lock = lock;
	if (!table_add(&lc->entries->by_id, &entry->id, entry->id.number))
		return -ENOMEM;
	stored_begin(lc->config.book, &entry->stored, LC_KIND_TAKER, 0);
	return 0;
}

int entry_init(struct lc *lc, struct entry *entry, struct lock *lock)
{
	entry->wanted = true;
	entry->data.held_since_ms = -1;
	entry->id.number = lc_random(lc);
	return enter_table(lc, entry, lock);
}

static void count_there(const struct entry *entry, int by)
{
	if (entry->state != ENTRY_ABSENT)
		entry->lock->lc->entries->there += (unsigned)by;
}

int entry_resume(struct lc *lc, struct entry *entry, struct lock *lock)
{
	int r = enter_table(lc, entry, lock);

	if (r < 0)
		return r;
	entry->place.follows = -1;
	lock->batch.unresolved |= entry->state == ENTRY_UNKNOWN;
	count_there(entry, +1);
	return 0;
}

/* Of an entry whose data is written, or waits for that. */
struct data_turn {
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

void entry_finish(struct entry *entry)
{
	assert(entry->state == ENTRY_ABSENT && entry->pending == 0);
	end_turn(entry);
	table_remove(&entry->lock->lc->entries->by_id, &entry->id);
	free(entry->data.reason);
}

void entry_set_ahead(struct entry *entry, const char *znode, enum entry_ahead is)
{
	if (!znode || !entry->place.ahead || strcmp(entry->place.ahead, znode) != 0) {
		free(entry->place.ahead);
		entry->place.ahead = znode ? strdup(znode) : NULL;
	}
	entry->place.ahead_is = is;
	if (!entry->place.ahead)
		entry->place.ahead_is = AHEAD_LATER;
}

bool entry_is_queued(const struct entry *entry)
{
	return entry->state == ENTRY_PRESENT || entry->state == ENTRY_DELETING;
}

bool entry_is_seen(const struct entry *entry)
{
	return watch_is_good(entry->lock->lc, &entry->watch);
}

struct entry *entry_named(struct lock *lock, const struct entry_name *name)
{
	struct entry *entry = NULL;

	if (name->of_mount && name->session_half == lock->lc->session->half)
		entry = entry_find(lock->lc, name->taker_half);
	return entry && entry->lock == lock ? entry : NULL;
}

/* Another client may make nodes with its UUID and, once it is gone, with its whole name. */
static bool is_node_of(const struct entry *entry, const char *znode)
{
	return entry_is_queued(entry) && !entry->gone && strcmp(entry->name, znode) == 0;
}

struct entry *entry_of_node(struct lock *lock, const char *znode, const struct entry_name *name)
{
	struct entry *entry = entry_named(lock, name);

	return entry && is_node_of(entry, znode) ? entry : NULL;
}

char *entry_path(const struct entry *entry)
{
	return path_join(entry->lock->path, entry->name);
}

/* ---- its state ---- */

/* The only place that changes it, but for taker_restore(). */
static void set_entry_state(struct entry *entry, enum entry_state state)
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
}

void entry_set_absent(struct entry *entry)
{
	events_of(entry)->absent(entry);
	set_entry_state(entry, ENTRY_ABSENT);
	entry->place.adjacent = entry->place.first = entry->gone = entry->look_failed = false;
	entry_set_ahead(entry, NULL, AHEAD_LATER);
	watch_fired(&entry->watch);
	entry->name[0] = '\0';
}

void entry_set_deleting(struct entry *entry, bool deleting)
{
	set_entry_state(entry, deleting ? ENTRY_DELETING : ENTRY_PRESENT);
}

/* `stat`: NULL if a transaction has made it. */
static void set_present(struct entry *entry, const char *znode, const struct ensemble_stat *stat,
                        bool made)
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
	set_entry_state(entry, ENTRY_PRESENT);
	events_of(entry)->present(entry, made);
}

void entry_begin(struct entry *entry)
{
	name_format(entry->name, entry->lock->lc->session->half, entry->id.number,
	            entry->lock->lc->host, entry->data.pid, entry->mode);
	set_entry_state(entry, ENTRY_CREATING);
}

static void not_made(struct entry *entry, const struct ensemble_answer *answer)
{
	struct lc *lc = entry->lock->lc;

	if (answer->result == ENSEMBLE_REFUSED &&
	    lc_may_say_again(lc, &lc->entries->refused_said_us))
		lc_report(lc, LC_WARNING, "%s: the ensemble refuses entries: %s", entry->lock->path,
		          lc_why_refused(answer));
	entry_set_absent(entry);
	events_of(entry)->not_made(entry, answer->result);
}

void entry_created(struct entry *entry, const struct ensemble_answer *answer)
{
	assert(entry->state == ENTRY_CREATING);
	entry->pending--;
	entry->lock->batch.last_write_ok = answer->result == ENSEMBLE_OK;
	if (answer->result == ENSEMBLE_GONE)
		return; /* the session's end follows */
	if (answer->result == ENSEMBLE_OK) {
		session_wrote(entry->lock->lc, entry->sent_us);
		set_present(entry, strrchr(answer->path, '/') + 1, answer->stat, true);
	} else if (answer->result == ENSEMBLE_UNKNOWN) {
		set_entry_state(entry, ENTRY_UNKNOWN);
		entry->lock->batch.unresolved = true;
		lock_want_list(entry->lock); /* the connection may live */
	} else {
		not_made(entry, answer);
	}
	events_of(entry)->changed(entry);
}

void entry_deleted(struct entry *entry, const struct ensemble_answer *answer)
{
	enum ensemble_result result = answer->result;

	assert(entry->state == ENTRY_DELETING && !entry->wanted);
	entry->pending--;
	entry->lock->batch.last_write_ok = result == ENSEMBLE_OK;
	if (result == ENSEMBLE_GONE)
		return;
	if (result == ENSEMBLE_OK)
		session_wrote(entry->lock->lc, entry->sent_us);
	if (result == ENSEMBLE_OK || result == ENSEMBLE_NONODE)
		entry_set_absent(entry);
	else
		set_entry_state(entry, ENTRY_PRESENT); /* as far as we know: delete it again */
	if (entry->state == ENTRY_PRESENT && result != ENSEMBLE_UNKNOWN) {
		lc_report(entry->lock->lc, LC_WARNING, "%s/%s: cannot be deleted, trying again",
		          entry->lock->path, entry->name);
		events_of(entry)->later(entry);
	}
	if (entry->state == ENTRY_ABSENT && entry->lock->front.obstacle == OBSTACLE_LEAVER)
		lock_want_list(entry->lock);
	events_of(entry)->changed(entry);
}

void entry_unsent(struct entry *entry)
{
	entry->pending--;
	entry->lock->batch.last_write_ok = false;
	if (entry->state == ENTRY_CREATING)
		entry_set_absent(entry);
	else
		set_entry_state(entry, ENTRY_PRESENT);
	events_of(entry)->changed(entry);
}

/* ---- a create of unknown outcome ---- */

/* A node with all of the name that the create was sent with. It may be the entry; and it may
 * be a copy, which another client has made. The session that the node belongs to tells. */
struct entry_claim {
	struct entry *entry;
	char *znode;
};

/* Whether the answer says whose node it is, and whether there is one. */
static bool tells_whose(enum ensemble_result result)
{
	return result == ENSEMBLE_OK || result == ENSEMBLE_NONODE || result == ENSEMBLE_NOAUTH;
}

static void claim_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct entry_claim *claim = ctx;
	struct entry *entry = claim->entry;

	entry->pending--;
	entry->claims--;
	entry->claim_lost |= !tells_whose(answer->result);
	if (answer->result == ENSEMBLE_OK && entry->state == ENTRY_UNKNOWN &&
	    answer->stat->ephemeral_owner == entry->lock->lc->session->id) {
		set_present(entry, claim->znode, answer->stat, false);
		entry_read(entry, answer);
	}
	free(claim->znode);
	free(claim);
	if (answer->result == ENSEMBLE_GONE || entry->claims > 0)
		return;
	/* A listing judges the entry that was found, and what is not known is looked for again. */
	if (entry->claim_lost && answer->result != ENSEMBLE_UNKNOWN)
		lock_list_later(entry->lock);
	else
		lock_want_list(entry->lock);
	if (entry->state == ENTRY_UNKNOWN && !entry->claim_lost)
		entry_not_found(entry);
	events_of(entry)->changed(entry);
}

static struct entry_claim *make_claim(struct entry *entry, const char *znode)
{
	struct entry_claim *claim = malloc(sizeof(*claim));

	if (claim)
		*claim = (struct entry_claim){.entry = entry, .znode = strdup(znode)};
	if (claim && claim->znode)
		return claim;
	free(claim);
	return NULL;
}

static void send_claim(struct entry *entry, const char *znode)
{
	struct entry_claim *claim = make_claim(entry, znode);
	char *path = path_join(entry->lock->path, znode);

	if (claim && path) {
		entry->pending++;
		entry->claims++;
		lc_submit(entry->lock->lc, ensemble_get(path), claim_answered, claim);
	} else {
		entry->claim_lost = true;
		lock_list_later(entry->lock);
		if (claim)
			free(claim->znode);
		free(claim);
	}
	free(path);
}

bool entry_may_be(const struct entry *entry, const char *znode)
{
	return entry->state == ENTRY_UNKNOWN &&
	       strncmp(znode, entry->name, strlen(entry->name)) == 0;
}

void entry_found(struct entry *entry, const char *znode, uint64_t number)
{
	assert(entry_may_be(entry, znode));
	entry->lists.last = number;
	if (entry->claims > 0 && entry->lists.claimed != number)
		return; /* those of an earlier listing are being asked */
	if (entry->claims == 0)
		entry->claim_lost = false;
	entry->lists.claimed = number;
	send_claim(entry, znode);
}

void entry_not_found(struct entry *entry)
{
	assert(entry->state == ENTRY_UNKNOWN && entry->data.held_since_ms < 0);
	entry_set_absent(entry);
}

/* ---- what stands in it ---- */

size_t entry_format(const struct entry *entry, char *ret_data)
{
	return record_format_entry(
		ret_data, &(struct record_entry){
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
	char by[RECORD_BY_MAX + 1];

	if (entry->state == ENTRY_PRESENT && !is_same_node(entry, answer->stat)) {
		events_of(entry)->gone(entry);
		return false;
	}
	entry->version = answer->stat->version;
	entry->czxid = answer->stat->czxid;
	entry_touch(entry);
	if (record_is_evicted(answer->data, (size_t)answer->data_len, by))
		events_of(entry)->marked(entry, by);
	return true;
}

static void note_failed_look(struct entry *entry)
{
	entry->look_failed = entry->lock->lc->entries->look_failed = true;
}

static void look_answered(void *ctx, const struct ensemble_answer *answer)
{
	struct entry *entry = ctx;
	struct entries *entries = entry->lock->lc->entries;
	bool last = entries->awaited == 1; /* they are answered in order */

	entry->pending--;
	entries->looks--;
	if (entries->awaited > 0)
		entries->awaited--;
	if (answer->result == ENSEMBLE_GONE)
		return;
	if (answer->result == ENSEMBLE_OK)
		entry_read(entry, answer);
	else if (answer->result != ENSEMBLE_NONODE)
		note_failed_look(entry);
	else if (entry->wanted)
		lock_want_list(entry->lock);
	if (last && answer->result != ENSEMBLE_UNKNOWN)
		session_marks_read(entry->lock->lc);
	events_of(entry)->changed(entry);
}

void entry_check_mark(struct entry *entry)
{
	char *path;

	entry->look_failed = false;
	if (!entry->wanted || entry->state != ENTRY_PRESENT || entry_is_seen(entry))
		return;
	path = entry_path(entry);
	if (!path) {
		note_failed_look(entry);
		return;
	}
	entry->pending++;
	entry->lock->lc->entries->looks++;
	lc_submit(entry->lock->lc, ensemble_get(path), look_answered, entry);
	free(path);
}

void entries_check_marks(struct lc *lc)
{
	struct entry *entry, *next;

	lc->entries->look_failed = false;
	ENTRIES_FOREACH_SAFE(lc, entry, next)
		entry_check_mark(entry);
}

void entries_await_marks(struct lc *lc)
{
	if (lc->entries->awaited > 0)
		return; /* those before are enough */
	lc->entries->awaited = lc->entries->looks;
	if (lc->entries->awaited == 0)
		session_marks_read(lc);
}

void entries_check_marks_again(struct lc *lc)
{
	struct entry *entry, *next;

	if (!lc->entries->look_failed)
		return;
	lc->entries->look_failed = false;
	ENTRIES_FOREACH_SAFE(lc, entry, next)
		if (entry->look_failed)
			entry_check_mark(entry);
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
		if (entry->lock->handoff.held_back) /* asked behind the write that was refused */
			events_of(entry)->seen(entry);
		entry_write(entry);
	} else if (answer->result == ENSEMBLE_OK) {
		/* It is gone; a listing says so to all. */
	} else if (answer->result != ENSEMBLE_NONODE && answer->result != ENSEMBLE_UNKNOWN) {
		events_of(entry)->later(entry);
	} else if (answer->result == ENSEMBLE_NONODE && entry->wanted &&
	           entry->state == ENTRY_PRESENT) {
		events_of(entry)->gone(entry); /* though another node may have its name by now */
	} else if (entry->wanted) {
		lock_want_list(entry->lock);
	}
	events_of(entry)->changed(entry);
}

void entry_watch(struct entry *entry)
{
	char *path;

	if (!session_is_ready(entry->lock->lc) || entry->state != ENTRY_PRESENT ||
	    entry_is_seen(entry) || watch_is_pending(&entry->watch))
		return;
	path = entry_path(entry);
	if (!path) {
		events_of(entry)->later(entry);
		return;
	}
	entry->pending++;
	watch_ask(entry->lock->lc, &entry->watch, path, watch_was_answered, entry);
	free(path);
}

/* ---- since when it is held, and why ---- */

static void write_next(struct entries *entries);

static void entry_written(void *ctx, const struct ensemble_answer *answer)
{
	struct entry *entry = ctx;
	int64_t sent_us = entry->data.turn->sent_us;

	entry->pending--;
	entry->data.pending = false;
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
		/* Somebody has written to it: read that first. */
		entry->data.dirty = true;
		watch_fired(&entry->watch);
		entry_watch(entry);
		break;
	case ENSEMBLE_NONODE:
		lock_want_list(entry->lock);
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
	events_of(entry)->changed(entry);
}

static bool may_be_written(const struct entry *entry)
{
	return entry->data.dirty && !entry->data.pending && entry->data.held_since_ms >= 0 &&
	       entry->state == ENTRY_PRESENT && session_is_ready(entry->lock->lc);
}

/* False: no memory. */
static bool wait_to_write(struct entry *entry)
{
	struct gate *gate = &entry->lock->lc->entries->writers;
	struct data_turn *turn = calloc(1, sizeof(*turn));

	if (!turn || !gate_join(gate, entry->data.uid, &turn->item)) {
		free(turn);
		return false;
	}
	turn->entry = entry;
	entry->data.turn = turn;
	gate_wait(gate, &turn->item);
	return true;
}

static void write_in_turn(struct entry *entry)
{
	char data[RECORD_ENTRY_MAX], *path = may_be_written(entry) ? entry_path(entry) : NULL;

	if (!path) {
		end_turn(entry);
		if (may_be_written(entry))
			events_of(entry)->later(entry);
		return;
	}
	entry->data.dirty = false;
	entry->data.told_since = true;
	entry->data.pending = true;
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
		write_in_turn(((struct data_turn *)turn)->entry);
}

void entry_write(struct entry *entry)
{
	if (!may_be_written(entry))
		return;
	if (entry->data.turn || wait_to_write(entry))
		write_next(entry->lock->lc->entries);
	else
		events_of(entry)->later(entry);
}

void entry_write_since(struct entry *entry)
{
	entry->data.dirty |= entry->data.held_since_ms >= 0 && !entry->data.told_since;
	entry_touch(entry);
	entry_write(entry);
}
