/* SPDX-License-Identifier: MIT */
#include "daemon/ledger.h"

#include "daemon/contact.h"
#include "files/dir.h"
#include "files/text.h"
#include "guard/guardian.h"
#include "hold/advisory.h"
#include "hold/hold.h"
#include "hold/hold_carry.h"
#include "host/clock.h"
#include "host/log.h"
#include "setup/servers.h"
#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* The version of the records. A release whose records have more fields than those of the release
 * before has the next number, which its new fields ask for: carry_has(). Tests set other numbers.
 *
 *   READS    the oldest version that this program reads
 *   READERS  the oldest version that reads these records. It passes over fields at the end of a
 *            record. Fields elsewhere, another meaning or a new kind of record need a new READERS.
 */
#ifndef LEDGER_VERSION
#define LEDGER_VERSION 6
#define LEDGER_READS 5
#define LEDGER_READERS 6
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

static void carry_node(struct carry *carry, struct frontend *front, struct stored *stored)
{
	node_stored_carry(carry, front->nodes, stored);
	later_carry(carry);
}

static void carry_content(struct carry *carry, struct frontend *front, struct stored *stored)
{
	content_stored_carry(carry, &front->contents, stored);
}

static void carry_hold(struct carry *carry, struct frontend *front, struct stored *stored)
{
	hold_stored_carry(carry, front, stored);
	later_carry(carry);
}

static void carry_history(struct carry *carry, struct frontend *front, struct stored *stored)
{
	history_stored_carry(carry, &front->holds->audit_log.history, stored);
}

/* A list that is half read goes on nowhere else. */
static void refuse_locks(struct carry *carry, struct frontend *front, struct stored *stored)
{
	(void)front, (void)stored;
	carry->refuse("somebody has .zklockfs/locks open: reload again when it is closed");
}

typedef void object_carry_fn(struct carry *carry, struct frontend *front, struct stored *stored);

static object_carry_fn *const carry_of[STORED_KINDS] = {
	[STORED_NODE] = carry_node,
	[STORED_CONTENT] = carry_content,
	[STORED_REQUEST] = request_stored_carry,
	[STORED_ADVISORY] = advisory_stored_carry,
	[STORED_TEXT] = text_stored_carry,
	[STORED_LOCKS] = refuse_locks,
	[STORED_DIR] = dir_stored_carry,
	[STORED_HOLD] = carry_hold,
	[STORED_HISTORY] = carry_history,
};

static void carry_object(struct carry *carry, void *front, struct stored *stored)
{
	carry_of[carry->kind](carry, front, stored);
}

void ledger_begin(struct frontend *front, struct store *store)
{
	front->stored.memory = &store_memory;
	front->stored.store = store;
	for (enum stored_kind kind = STORED_NODE; kind < STORED_KINDS; kind++)
		book_kind(&front->stored, kind, carry_object, front);
}

/* Only these objects have descriptors. */
static bool has_fds(struct stored *stored)
{
	return stored->kind == STORED_ADVISORY ||
	       (stored->kind == STORED_HOLD && !hold_stored_waits(stored));
}

/* ---- the mount as a whole ---- */

enum part { PART_HEAD = 1, PART_MOUNT, PART_NUMBERS, PART_TOTALS, PART_PAUSES, PARTS };

static void head_carry(struct carry *carry, const char **mountpoint)
{
	unsigned version = LEDGER_VERSION, readers = LEDGER_READERS;
	static char why[96];

	CARRY_U32(carry, version);
	CARRY_U32(carry, readers);
	snprintf(why, sizeof(why), "the state is of another version: %u, and not %d to %d", version,
	         LEDGER_READS, LEDGER_VERSION);
	if (version < LEDGER_READS || readers > LEDGER_VERSION)
		carry->refuse(why);
	carry->version = version;
	carry->more = version > LEDGER_VERSION;
	*mountpoint = carry_text(carry, *mountpoint);
	log_carry(carry);
	if (!*mountpoint)
		carry->refuse("the state belongs to no mount");
}

static void mount_carry(struct carry *carry, struct ledger *ledger)
{
	struct frontend *front = ledger->front;
	const char *version = carry_text(carry, ZKLOCKFS_VERSION);

	if (carry->loads)
		snprintf(ledger->from, sizeof(ledger->from), "%s", version ? version : "");
	CARRY_INT(carry, ledger->mount_id);
	carry_copy(carry, ledger->device, sizeof(ledger->device));
	init_carry(carry, front);
	servers_carry(carry, ledger->servers);
	guardian_carry(carry, &front->guardian);
}

/* Numbers that must never be given again; and how often the mount was taken over. */
static void numbers_carry(struct carry *carry, struct ledger *ledger)
{
	struct frontend *front = ledger->front;

	CARRY_64(carry, front->holds->grants);
	nodes_last_carry(carry, front->nodes);
	open_files_carry(carry, &front->open_files);
	if (!carry_has(carry, 6)) {
		CARRY_64(carry, counted.reloads);
		CARRY_64(carry, counted.adoptions);
	}
	later_carry(carry);
}

/* For log and metrics: after a crash the last second may be missing. */
static void totals_carry(struct carry *carry, struct ledger *ledger)
{
	struct frontend *front = ledger->front;

	CARRY_64(carry, ledger->stopped_us);
	contact_carry(carry, ledger->contact);
	history_counts_carry(carry, &front->holds->audit_log.history);
	CARRY_64(carry, front->holds->audit_log.stopped);
	CARRY_64(carry, ledger->contact->since_ms);
	if (carry_has(carry, 6))
		counts_carry(carry);
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
		pauses_carry(carry, &ledger->front->pauses);
		break;
	case PARTS:
		break;
	}
}

/* ---- writing ---- */

static void write_part(struct ledger *ledger, enum part part)
{
	struct book *book = &ledger->front->stored;

	carry_begin(&book->carry);
	part_carry(&book->carry, ledger, part);
	book_put(book, STORED_MOUNT, part);
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

int ledger_write(struct ledger *ledger, bool all)
{
	struct frontend *front = ledger->front;
	struct book *book = &front->stored;

	if (!front->pending.init)
		return 0; /* no INIT has come */
	inbox_record(front);
	lc_record(front->lc);
	write_parts(ledger, all);
	book_write(book);
	if (book->carry.failed)
		store_spoil(book->store);
	return store_commit(book->store);
}

bool ledger_is_behind(const struct ledger *ledger)
{
	const struct book *book = &ledger->front->stored;

	/* A question to the engine may have made it see that a lock is lost. */
	return book->touched || store_is_behind(book->store);
}

static void gather_fds(struct ledger *ledger, struct carry *carry,
                       bool (*wanted)(struct stored *stored))
{
	carry->gathers = true;
	for (enum part part = PART_HEAD; part < PARTS; part++) {
		carry_begin(carry);
		part_carry(carry, ledger, part);
	}
	book_visit(&ledger->front->stored, carry, wanted);
}

#ifdef ZKLOCKFS_CHECK_LEDGER

#define CHECKED_OBJECTS 200

void ledger_check(struct ledger *ledger)
{
	struct book *book = &ledger->front->stored;
	static unsigned turns;
	const char *why;
	unsigned kind;

	if (!ledger->front->pending.init || ledger_is_behind(ledger) || store_spoilt(book->store) ||
	    (book->count >= CHECKED_OBJECTS && ++turns % CHECKED_OBJECTS != 0))
		return;
	if (book_check(book, &kind, &why))
		return;
	fprintf(stderr, "%s: kind %u\n", why, kind);
	abort();
}

static bool is_any(struct stored *stored)
{
	(void)stored;
	return true;
}

static void check_gathered(struct ledger *ledger, const struct carry *gathered)
{
	struct carry all = {0};

	gather_fds(ledger, &all, is_any);
	if (!all.failed && !gathered->failed && all.fd_count != gathered->fd_count)
		abort(); /* the successor would lack a descriptor */
	carry_end(&all);
}

#endif

int ledger_pass(struct ledger *ledger, bool pass)
{
	struct carry carry = {0};
	int r;

	gather_fds(ledger, &carry, has_fds);
#ifdef ZKLOCKFS_CHECK_LEDGER
	check_gathered(ledger, &carry);
#endif
	r = carry.failed ? -ENOMEM : 0;
	if (r == 0)
		carry_pass(&carry, pass);
	carry_end(&carry);
	return r;
}

/* ---- reading ---- */

static void read_part(struct carry *carry, const struct book *book, enum part part)
{
	if (!book_find(book, carry, STORED_MOUNT, part))
		carry_refuse(carry, "the state lacks the mount");
}

const char *ledger_explain(const struct carry *carry, const char *why)
{
	static const char *const names[STORED_KINDS] = {
		[STORED_MOUNT] = "the mount",
		[LC_KIND_SESSION] = "the session",
		[LC_KIND_COUNTERS] = "the counters",
		[LC_KIND_TAKER] = "a taker",
		[LC_KIND_EVICTION] = "an eviction",
		[STORED_NODE] = "a name",
		[STORED_CONTENT] = "the content of a file",
		[STORED_REQUEST] = "a request",
		[STORED_ADVISORY] = "an open file of flock/",
		[STORED_TEXT] = "an open text",
		[STORED_LOCKS] = "an open list of locks",
		[STORED_DIR] = "an open directory",
		[STORED_HOLD] = "a hold",
		[STORED_HISTORY] = "the history",
	};
	static char text[256];
	const char *name = carry->kind < STORED_KINDS ? names[carry->kind] : NULL;

	if (!name || carry->version == 0)
		return why;
	snprintf(text, sizeof(text), "%s (the record of %s, of version %u; this program has %d)",
	         why, name, carry->version, LEDGER_VERSION);
	return text;
}

void ledger_read_mount(struct carry *carry, struct store *store, const char **ret_mountpoint)
{
	const struct book book = {.memory = &store_memory, .store = store};

	*ret_mountpoint = NULL;
	read_part(carry, &book, PART_HEAD);
	head_carry(carry, ret_mountpoint);
	carry_read_all(carry);
}

void ledger_read_parts(struct ledger *ledger, struct carry *carry)
{
	struct book *book = &ledger->front->stored;

	for (enum part part = PART_MOUNT; part < PARTS; part++) {
		read_part(carry, book, part);
		part_carry(carry, ledger, part);
		carry_read_all(carry);
	}
	book->as_recorded = carry->version == LEDGER_VERSION;
}

void ledger_read_objects(struct ledger *ledger, struct carry *carry)
{
	struct frontend *front = ledger->front;
	struct book *book = &front->stored;

	book->as_recorded = false;
	front->files.restores = true;
	contents_expect(carry, &front->contents, book_count(book, STORED_CONTENT));
	for (enum stored_kind kind = STORED_NODE; kind < STORED_KINDS; kind++)
		book_read(book, carry, kind);
	holds_carried(carry, front);
	open_files_carried(carry, &front->open_files);
	contents_carried(&front->contents);
	nodes_carried(front->nodes);
	front->files.restores = false;
	if (!carry->checks)
		guardian_carried(front->guardian);
	/* Otherwise some objects are not as their records: they have other descriptors after a
	 * crash, and another version may have written the records. */
	if (!carry->crashed && carry->version == LEDGER_VERSION)
		book_read_all(book, STORED_NODE);
}
