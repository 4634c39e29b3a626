/* SPDX-License-Identifier: MIT */
#include "daemon/mount_records.h"

#include "daemon/contact.h"
#include "files/dir.h"
#include "files/text.h"
#include "guard/guardian.h"
#include "hold/advisory.h"
#include "hold/hold.h"
#include "hold/hold_record.h"
#include "host/clock.h"
#include "host/log.h"
#include "setup/servers.h"
#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* The version of the records. A release whose records have more fields than those of the release
 * before has the next number, which its new fields ask for: codec_has(). Tests set other numbers.
 *
 *   READS    the oldest version that this program reads
 *   READERS  the oldest version that reads these records. It passes over fields at the end of a
 *            record. Fields elsewhere, another meaning or a new kind of record need a new READERS.
 */
#ifndef RECORDS_VERSION
#define RECORDS_VERSION 7
#define RECORDS_READS 5
#define RECORDS_READERS 6
#endif

/* Parts that change all the time are written once in this time at most. */
#define SELDOM_NS 1000000000

/* Tests build a later version: it has one more number in the records of the mount, and of each node
 * and hold. */
static void later_save_load(struct codec *codec)
{
#ifdef RECORDS_LATER
	unsigned later = RECORDS_LATER;

	if (codec_has(codec, RECORDS_VERSION))
		CODEC_U32(codec, later);
	if (later != RECORDS_LATER)
		codec->give_up("the state of a later version cannot be read");
#endif
	(void)codec;
}

/* ---- objects ---- */

static void save_load_node(struct codec *codec, void *ctx, struct record *record)
{
	struct frontend *front = ctx;

	node_record_save_load(codec, front->nodes, record);
	later_save_load(codec);
}

static void save_load_hold(struct codec *codec, void *front, struct record *record)
{
	hold_record_save_load(codec, front, record);
	later_save_load(codec);
}

/* Refuses the record of a list that is half read: another process cannot go on with it. */
static void refuse_locks(struct codec *codec, void *ctx, struct record *record)
{
	(void)ctx, (void)record;
	codec->give_up("somebody has .zklockfs/locks open: reload again when it is closed");
}

void mount_records_begin(struct frontend *front, struct store *store)
{
	struct records *records = &front->records;

	records->memory = &store_memory;
	records->store = store;
	records_kind(records, RECORD_NODE, save_load_node, front);
	records_kind(records, RECORD_CONTENT, content_record_save_load, &front->contents);
	records_kind(records, RECORD_REQUEST, request_record_save_load, front);
	records_kind(records, RECORD_ADVISORY, advisory_record_save_load, front);
	records_kind(records, RECORD_TEXT, text_record_save_load, front);
	records_kind(records, RECORD_LOCKS, refuse_locks, NULL);
	records_kind(records, RECORD_DIR, dir_record_save_load, front);
	records_kind(records, RECORD_HOLD, save_load_hold, front);
	records_kind(records, RECORD_HISTORY, history_record_save_load,
	             &front->holds->audit_log.history);
}

/* Only these objects have descriptors. */
static bool has_fds(struct record *record)
{
	return record->kind == RECORD_ADVISORY ||
	       (record->kind == RECORD_HOLD && !hold_record_waits(record));
}

/* ---- the mount as a whole ---- */

enum part { PART_HEAD = 1, PART_MOUNT, PART_NUMBERS, PART_TOTALS, PART_PAUSES, PARTS };

static void head_save_load(struct codec *codec, struct mount_records *mount_records)
{
	unsigned version = RECORDS_VERSION, readers = RECORDS_READERS;
	static char why[96];

	CODEC_U32(codec, version);
	CODEC_U32(codec, readers);
	snprintf(why, sizeof(why), "the state is of another version: %u, and not %d to %d", version,
	         RECORDS_READS, RECORDS_VERSION);
	if (version < RECORDS_READS || readers > RECORDS_VERSION)
		codec->give_up(why);
	codec->version = version;
	codec->more = version > RECORDS_VERSION;
	mount_records->mountpoint = codec_text(codec, mount_records->mountpoint);
	log_save_load(codec);
	if (codec_has(codec, 7))
		mount_records->args =
			codec_bytes(codec, mount_records->args, &mount_records->args_len);
	if (!mount_records->mountpoint)
		codec->give_up("the state belongs to no mount");
}

static void mount_save_load(struct codec *codec, struct mount_records *mount_records)
{
	struct frontend *front = mount_records->front;
	const char *version = codec_text(codec, ZKLOCKFS_VERSION);

	if (codec->loads)
		snprintf(mount_records->from, sizeof(mount_records->from), "%s",
		         version ? version : "");
	CODEC_INT(codec, mount_records->mount_id);
	codec_copy(codec, mount_records->device, sizeof(mount_records->device));
	init_save_load(codec, front);
	servers_save_load(codec, mount_records->servers);
	guardian_save_load(codec, &front->guardian);
}

/* Saves or loads the numbers that must never be given again, and how often the mount was taken
 * over. */
static void numbers_save_load(struct codec *codec, struct mount_records *mount_records)
{
	struct frontend *front = mount_records->front;

	CODEC_64(codec, front->holds->grants);
	nodes_last_save_load(codec, front->nodes);
	open_files_save_load(codec, &front->open_files);
	if (!codec_has(codec, 6)) {
		CODEC_64(codec, counted.reloads);
		CODEC_64(codec, counted.adoptions);
	}
	later_save_load(codec);
}

/* Log and metrics read these totals. After a crash the last second may be missing. */
static void totals_save_load(struct codec *codec, struct mount_records *mount_records)
{
	struct frontend *front = mount_records->front;

	CODEC_64(codec, mount_records->stopped_us);
	contact_save_load(codec, mount_records->contact);
	history_counts_save_load(codec, &front->holds->audit_log.history);
	CODEC_64(codec, front->holds->audit_log.stopped);
	CODEC_64(codec, mount_records->contact->since_ms);
	if (codec_has(codec, 6))
		counts_save_load(codec);
}

static void pauses_part_save_load(struct codec *codec, struct mount_records *mount_records)
{
	pauses_save_load(codec, &mount_records->front->pauses);
}

static void (*const parts[PARTS])(struct codec *codec, struct mount_records *mount_records) = {
	[PART_HEAD] = head_save_load,          [PART_MOUNT] = mount_save_load,
	[PART_NUMBERS] = numbers_save_load,    [PART_TOTALS] = totals_save_load,
	[PART_PAUSES] = pauses_part_save_load,
};

/* ---- writing ---- */

static void write_part(struct mount_records *mount_records, enum part part)
{
	struct records *records = &mount_records->front->records;

	codec_begin(&records->codec);
	parts[part](&records->codec, mount_records);
	records_put(records, RECORD_MOUNT, part);
}

static void write_parts(struct mount_records *mount_records, bool all)
{
	int64_t now = clock_read_ns(CLOCK_MONOTONIC_COARSE);

	write_part(mount_records, PART_NUMBERS);
	if (!all && !mount_records->servers->unrecorded &&
	    now - mount_records->looked_ns < SELDOM_NS)
		return;
	mount_records->looked_ns = now;
	mount_records->servers->unrecorded = false;
	write_part(mount_records, PART_HEAD);
	write_part(mount_records, PART_MOUNT);
	write_part(mount_records, PART_TOTALS);
	write_part(mount_records, PART_PAUSES);
}

int mount_records_write(struct mount_records *mount_records, bool all)
{
	struct frontend *front = mount_records->front;
	struct records *records = &front->records;

	if (!front->pending.init)
		return 0; /* no INIT has come */
	inbox_record(front);
	lc_record(front->lc);
	write_parts(mount_records, all);
	records_write(records);
	if (records->codec.failed)
		store_spoil(records->store);
	return store_commit(records->store);
}

bool mount_records_is_behind(const struct mount_records *mount_records)
{
	const struct records *records = &mount_records->front->records;

	/* A question to the engine may have made it see that a lock is lost. */
	return records->touched || store_is_behind(records->store);
}

static void gather_fds(struct mount_records *mount_records, struct codec *codec,
                       bool (*wanted)(struct record *record))
{
	codec->gathers = true;
	for (enum part part = PART_HEAD; part < PARTS; part++) {
		codec_begin(codec);
		parts[part](codec, mount_records);
	}
	records_visit(&mount_records->front->records, codec, wanted);
}

#ifdef ZKLOCKFS_CHECK_RECORDS

#define CHECKED_OBJECTS 200

void mount_records_check(struct mount_records *mount_records)
{
	struct records *records = &mount_records->front->records;
	static unsigned turns;
	const char *why;
	unsigned kind;

	if (!mount_records->front->pending.init || mount_records_is_behind(mount_records) ||
	    store_head(records->store)->spoilt ||
	    (records->count >= CHECKED_OBJECTS && ++turns % CHECKED_OBJECTS != 0))
		return;
	if (records_check(records, &kind, &why))
		return;
	fprintf(stderr, "%s: kind %u\n", why, kind);
	abort();
}

static bool is_any(struct record *record)
{
	(void)record;
	return true;
}

static void check_gathered(struct mount_records *mount_records, const struct codec *gathered)
{
	struct codec all = {0};

	gather_fds(mount_records, &all, is_any);
	if (!all.failed && !gathered->failed && all.fd_count != gathered->fd_count)
		abort(); /* the successor would lack a descriptor */
	codec_end(&all);
}

#endif

int mount_records_pass(struct mount_records *mount_records, bool pass)
{
	struct codec codec = {0};
	int r;

	gather_fds(mount_records, &codec, has_fds);
#ifdef ZKLOCKFS_CHECK_RECORDS
	check_gathered(mount_records, &codec);
#endif
	r = codec.failed ? -ENOMEM : 0;
	if (r == 0)
		codec_pass(&codec, pass);
	codec_end(&codec);
	return r;
}

/* ---- reading ---- */

static void read_part(struct codec *codec, const struct records *records, enum part part)
{
	if (!records_find(records, codec, RECORD_MOUNT, part))
		codec_refuse(codec, "the state lacks the mount");
}

const char *mount_records_explain(const struct codec *codec, const char *why)
{
	static const char *const names[RECORD_KINDS] = {
		[RECORD_MOUNT] = "the mount",
		[LC_KIND_SESSION] = "the session",
		[LC_KIND_COUNTERS] = "the counters",
		[LC_KIND_TAKER] = "a taker",
		[LC_KIND_EVICTION] = "an eviction",
		[RECORD_NODE] = "a name",
		[RECORD_CONTENT] = "the content of a file",
		[RECORD_REQUEST] = "a request",
		[RECORD_ADVISORY] = "an open file of flock/",
		[RECORD_TEXT] = "an open text",
		[RECORD_LOCKS] = "an open list of locks",
		[RECORD_DIR] = "an open directory",
		[RECORD_HOLD] = "a hold",
		[RECORD_HISTORY] = "the history",
	};
	static char text[256];
	const char *name = codec->kind < RECORD_KINDS ? names[codec->kind] : NULL;

	if (!name || codec->version == 0)
		return why;
	snprintf(text, sizeof(text), "%s (the record of %s, of version %u; this program has %d)",
	         why, name, codec->version, RECORDS_VERSION);
	return text;
}

void mount_records_read_mount(struct codec *codec, struct store *store,
                              struct mount_records *mount_records)
{
	const struct records records = {.memory = &store_memory, .store = store};

	read_part(codec, &records, PART_HEAD);
	head_save_load(codec, mount_records);
	codec_read_all(codec);
}

void mount_records_read_parts(struct mount_records *mount_records, struct codec *codec)
{
	struct records *records = &mount_records->front->records;

	for (enum part part = PART_MOUNT; part < PARTS; part++) {
		read_part(codec, records, part);
		parts[part](codec, mount_records);
		codec_read_all(codec);
	}
	records->as_recorded = codec->version == RECORDS_VERSION;
}

void mount_records_read_objects(struct mount_records *mount_records, struct codec *codec)
{
	struct frontend *front = mount_records->front;
	struct records *records = &front->records;

	records->as_recorded = false;
	front->files.restores = true;
	contents_expect(codec, &front->contents, records_count(records, RECORD_CONTENT));
	for (enum record_kind kind = RECORD_NODE; kind < RECORD_KINDS; kind++)
		records_read(records, codec, kind);
	holds_loaded(codec, front);
	open_files_loaded(codec, &front->open_files);
	contents_loaded(&front->contents);
	nodes_loaded(front->nodes);
	front->files.restores = false;
	if (!codec->checks)
		guardian_loaded(front->guardian);
	/* Otherwise some objects are not as their records: they have other descriptors after a
	 * crash, and another version may have written the records. */
	if (!codec->crashed && codec->version == RECORDS_VERSION)
		records_read_all(records, RECORD_NODE);
}
