/* SPDX-License-Identifier: MIT
 *
 * ledger.c - see ledger.h.
 */
#include "daemon/ledger.h"

#include "daemon/contact.h"
#include "files/dir.h"
#include "files/locks.h"
#include "files/text.h"
#include "guard/guardian.h"
#include "hold/advisory.h"
#include "hold/flock_claim.h"
#include "hold/handle.h"
#include "hold/hold.h"
#include "hold/hold_carry.h"
#include "host/clock.h"
#include "host/log.h"
#include "setup/servers.h"
#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A new number says that a record has one more part at its end (carry_has()), which older versions
 * pass over. A new order or meaning also needs a new LEAST: then this version and versions older
 * than LEAST cannot take over from each other. Tests set other numbers. */
#ifndef LEDGER_VERSION
#define LEDGER_VERSION 4
#define LEDGER_LEAST 3
#endif

/* Parts that change with time are written no more often. */
#define SELDOM_NS 1000000000

/* For tests: a later version, which has one more number in the records of the mount, and of each
 * node and hold. */
static void later_carry(struct carry *carry)
{
#ifdef LEDGER_LATER
	unsigned later = LEDGER_LATER;

	if (carry_has(carry, LEDGER_VERSION))
		CARRY_U32(carry, later);
	if (later != LEDGER_LATER)
		carry->refuse("the state of a later version cannot be read");
#endif
	(void)carry;
}

/* ---- objects ---- */

static void carry_node(struct carry *carry, struct face *face, struct stored *stored)
{
	node_stored_carry(carry, face->nodes, stored);
	later_carry(carry);
}

static void carry_content(struct carry *carry, struct face *face, struct stored *stored)
{
	content_stored_carry(carry, &face->contents, stored);
}

static void carry_hold(struct carry *carry, struct face *face, struct stored *stored)
{
	static const struct hold_kind *const kinds[HOLD_KINDS] = {&handle_kind,
	                                                          &flock_claim_hold_kind};

	hold_stored_carry(carry, face, stored, kinds);
	later_carry(carry);
}

static void carry_history(struct carry *carry, struct face *face, struct stored *stored)
{
	history_stored_carry(carry, &face->holds->stories.history, stored);
}

static stored_carry_fn *const carry_of[STORED_KINDS] = {
	[STORED_NODE] = carry_node,
	[STORED_CONTENT] = carry_content,
	[STORED_REQUEST] = request_stored_carry,
	[STORED_ADVISORY] = advisory_stored_carry,
	[STORED_TEXT] = text_stored_carry,
	[STORED_LOCKS] = locks_stored_carry,
	[STORED_DIR] = dir_stored_carry,
	[STORED_HOLD] = carry_hold,
	[STORED_HISTORY] = carry_history,
};

static void carry_fds_of_hold(struct carry *carry, struct face *face, struct stored *stored)
{
	if (!hold_stored_waits(stored))
		carry_hold(carry, face, stored);
}

/* Only those objects have descriptors. */
static stored_carry_fn *const carry_fds_of[STORED_KINDS] = {
	[STORED_ADVISORY] = advisory_stored_carry,
	[STORED_HOLD] = carry_fds_of_hold,
};

/* ---- the mount as a whole ---- */

enum part { PART_HEAD = 1, PART_MOUNT, PART_NUMBERS, PART_TOTALS, PART_PAUSES, PARTS };

static void head_carry(struct carry *carry, const char **mountpoint)
{
	unsigned version = LEDGER_VERSION, least = LEDGER_LEAST;

	CARRY_U32(carry, version);
	CARRY_U32(carry, least);
	if (version < LEDGER_LEAST || least > LEDGER_VERSION)
		carry->refuse("the state is of another version");
	carry->version = version;
	carry->more = version > LEDGER_VERSION;
	*mountpoint = carry_text(carry, *mountpoint);
	log_carry(carry);
	if (!*mountpoint)
		carry->refuse("the state belongs to no mount");
}

static void mount_carry(struct carry *carry, struct ledger *ledger)
{
	struct face *face = ledger->face;
	const char *version = carry_text(carry, ZKLOCKFS_VERSION);

	if (carry->loads)
		snprintf(ledger->from, sizeof(ledger->from), "%s", version ? version : "");
	CARRY_INT(carry, ledger->mount_id);
	carry_copy(carry, ledger->device, sizeof(ledger->device));
	greeting_carry(carry, face);
	servers_carry(carry, ledger->servers);
	guardian_carry(carry, &face->guardian);
}

/* Numbers that must never be given again; and how often the mount was taken over. */
static void numbers_carry(struct carry *carry, struct ledger *ledger)
{
	struct face *face = ledger->face;

	CARRY_64(carry, face->holds->grants);
	nodes_last_carry(carry, face->nodes);
	open_files_carry(carry, &face->open_files);
	CARRY_64(carry, face->facts.reloads);
	CARRY_64(carry, face->facts.adoptions);
	later_carry(carry);
}

/* For log and metrics: after a crash the last second may be missing. */
static void totals_carry(struct carry *carry, struct ledger *ledger)
{
	struct face *face = ledger->face;

	CARRY_64(carry, ledger->stopped_us);
	contact_carry(carry, ledger->contact);
	history_counts_carry(carry, &face->holds->stories.history);
	if (carry_has(carry, 4)) {
		CARRY_64(carry, face->holds->stories.stopped);
		CARRY_64(carry, ledger->contact->since_ms);
	}
}

static void part_carry(struct carry *carry, struct ledger *ledger, enum part part)
{
	switch (part) {
	case PART_HEAD:
		head_carry(carry, &ledger->mountpoint);
		break;
	case PART_MOUNT:
		mount_carry(carry, ledger);
		break;
	case PART_NUMBERS:
		numbers_carry(carry, ledger);
		break;
	case PART_TOTALS:
		totals_carry(carry, ledger);
		break;
	case PART_PAUSES:
		pauses_carry(carry, &ledger->face->pauses);
		break;
	case PARTS:
		break;
	}
}

/* ---- writing ---- */

static void write_part(struct ledger *ledger, enum part part)
{
	struct carry *carry = &ledger->carry;

	carry_begin(carry);
	part_carry(carry, ledger, part);
	store_put(ledger->face->stored.store, STORED_MOUNT, part, carry->data, carry->len);
}

static void write_parts(struct ledger *ledger, bool all)
{
	int64_t now = clock_read_ns(CLOCK_MONOTONIC_COARSE);

	write_part(ledger, PART_NUMBERS);
	if (!all && !ledger->servers->unrecorded && now - ledger->looked_ns < SELDOM_NS)
		return;
	ledger->looked_ns = now;
	ledger->servers->unrecorded = false;
	write_part(ledger, PART_HEAD);
	write_part(ledger, PART_MOUNT);
	write_part(ledger, PART_TOTALS);
	write_part(ledger, PART_PAUSES);
}

static void write_engine_record(void *ctx, uint64_t key, const void *bytes, size_t len)
{
	struct store *store = ctx;

	if (bytes)
		store_put(store, STORED_ENGINE, key, bytes, len);
	else
		store_drop(store, STORED_ENGINE, key);
}

int ledger_write(struct ledger *ledger, bool all)
{
	struct face *face = ledger->face;
	struct store *store = face->stored.store;

	if (!face->pending.greeting)
		return 0; /* the kernel has not greeted */
	inbox_record(face);
	if (lc_save_changes(face->lc, write_engine_record, store) < 0)
		store_spoil(store);
	write_parts(ledger, all);
	stored_write(&face->stored, &ledger->carry, carry_of, face);
	if (ledger->carry.lacks)
		store_spoil(store);
	return store_commit(store);
}

bool ledger_is_behind(const struct ledger *ledger)
{
	const struct stored_objects *objects = &ledger->face->stored;

	/* A question to the engine may have made it see that a lock is lost. */
	return objects->touched || store_is_behind(objects->store) ||
	       lc_has_changed(ledger->face->lc);
}

#ifdef ZKLOCKFS_CHECK_LEDGER

#define CHECKED_OBJECTS 200

struct engine_check {
	const struct store *store;
	size_t count;
};

static void check_engine_record(void *ctx, uint64_t key, const void *bytes, size_t len)
{
	struct engine_check *check = ctx;
	struct store_record record;

	if (!store_get(check->store, STORED_ENGINE, key, &record) || record.len != len ||
	    memcmp(record.bytes, bytes, len) != 0)
		abort(); /* lc_save_changes() has missed it */
	check->count++;
}

static void check_engine(const struct ledger *ledger)
{
	const struct stored_objects *objects = &ledger->face->stored;
	struct engine_check check = {.store = objects->store};

	if (lc_save_all(ledger->face->lc, check_engine_record, &check) == 0 &&
	    check.count != stored_count(objects, STORED_ENGINE))
		abort();
}

void ledger_check(struct ledger *ledger)
{
	struct stored_objects *objects = &ledger->face->stored;
	static unsigned turns;

	if (ledger->face->pending.greeting && !ledger_is_behind(ledger) &&
	    !store_spoilt(objects->store) &&
	    (objects->count < CHECKED_OBJECTS || ++turns % CHECKED_OBJECTS == 0)) {
		stored_check(objects, &ledger->carry, carry_of, ledger->face);
		check_engine(ledger);
	}
}

#endif

static void gather_fds(struct ledger *ledger, struct carry *carry, stored_carry_fn *const of[])
{
	carry->gathers = true;
	for (enum part part = PART_HEAD; part < PARTS; part++) {
		carry_begin(carry);
		part_carry(carry, ledger, part);
	}
	stored_visit(&ledger->face->stored, carry, of, ledger->face);
}

#ifdef ZKLOCKFS_CHECK_LEDGER

static void check_gathered(struct ledger *ledger, const struct carry *gathered)
{
	struct carry all = {0};

	gather_fds(ledger, &all, carry_of);
	if (!all.lacks && !gathered->lacks && all.fd_count != gathered->fd_count)
		abort(); /* the successor would lack a descriptor */
	carry_end(&all);
}

#endif

int ledger_pass(struct ledger *ledger, bool pass)
{
	struct carry carry = {0};
	int r;

	gather_fds(ledger, &carry, carry_fds_of);
#ifdef ZKLOCKFS_CHECK_LEDGER
	check_gathered(ledger, &carry);
#endif
	r = carry.lacks ? -ENOMEM : 0;
	if (r == 0)
		carry_pass(&carry, pass);
	carry_end(&carry);
	return r;
}

void ledger_finish(struct ledger *ledger)
{
	carry_end(&ledger->carry);
}

/* ---- reading ---- */

static void read_part(struct carry *carry, const struct store *store, enum part part)
{
	struct store_record record;

	if (!store_get(store, STORED_MOUNT, part, &record))
		carry->refuse("the state lacks the mount");
	carry_read(carry, record.bytes, record.len);
}

void ledger_read_mount(struct carry *carry, struct store *store, const char **ret_mountpoint)
{
	*ret_mountpoint = NULL;
	read_part(carry, store, PART_HEAD);
	head_carry(carry, ret_mountpoint);
	carry_read_all(carry);
}

/* The engine's state, for free(3); or -errno. */
static int join_engine(const struct store *store, void **ret_state, size_t *ret_len)
{
	struct store_record *found = NULL;
	ssize_t count = store_list(store, STORED_ENGINE, &found);
	struct lc_record *records;
	int r = -ENOMEM;

	records = count >= 0 ? calloc((size_t)count + 1, sizeof(*records)) : NULL;
	for (ssize_t i = 0; records && i < count; i++)
		records[i] = (struct lc_record){
			.key = found[i].key,
			.bytes = found[i].bytes,
			.len = found[i].len,
		};
	if (records)
		r = lc_join_state(records, (size_t)count, ret_state, ret_len);
	free(found);
	free(records);
	return r;
}

static void read_engine(struct ledger *ledger, struct carry *carry)
{
	void *state = NULL;
	size_t len = 0;
	int r = join_engine(ledger->face->stored.store, &state, &len);

	if (r == 0)
		r = carry->checks ? lc_check_state(state, len)
		                  : ledger->adopt_engine(ledger->ctx, state, len);
	free(state);
	if (r < 0)
		carry->refuse(r == -ENOTSUP  ? "the state of the locks is of another version"
		              : r == -ENOMEM ? strerror(ENOMEM)
		                             : "the state of the locks is damaged");
}

void ledger_read(struct ledger *ledger, struct carry *carry)
{
	struct face *face = ledger->face;
	struct stored_objects *objects = &face->stored;

	for (enum part part = PART_MOUNT; part < PARTS; part++) {
		read_part(carry, objects->store, part);
		part_carry(carry, ledger, part);
		carry_read_all(carry);
	}
	read_engine(ledger, carry);
	contents_expect(carry, &face->contents, stored_count(objects, STORED_CONTENT));
	for (enum stored_kind kind = STORED_NODE; kind < STORED_KINDS; kind++)
		stored_read(objects, carry, kind, carry_of[kind], face);
	holds_carried(carry, face);
	open_files_carried(carry, &face->open_files);
	contents_carried(&face->contents);
	nodes_carried(face->nodes);
	if (!carry->checks)
		guardian_carried(face->guardian);
	/* Otherwise some objects are not as their records: they have other descriptors after a
	 * crash, and another version may have written the records. */
	if (!carry->crashed && carry->version == LEDGER_VERSION)
		stored_read_all(objects);
}
