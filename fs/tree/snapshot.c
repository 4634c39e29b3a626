/* SPDX-License-Identifier: MIT */
#include "tree/snapshot.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From here on a number may be there again. */
#define NUMBER_ZONE (INT64_C(2147483648) - 65536)

struct snapshot_item {
	bool read;
	struct entry_facts facts;
	struct lc_entry_info *info; /* for who opens it; or NULL */
	int64_t asked_us;           /*   it is not older than that */
};

struct snapshot {
	int64_t taken_us;
	uint64_t serial; /* of the listing */
	size_t count;
	struct lc_entry *entries;    /* sorted by number, as listed */
	char *names;                 /* what their znode points to */
	struct snapshot_item *items; /* one for each of them */
	size_t next, window;         /* where the last reading ended, and how long it was */
	size_t first;                /* where it began: those before have no info */
};

void snapshot_name(char ret_name[QUEUE_NAME_MAX + 1], const struct lc_entry *entry)
{
	const char *mode = entry->mode == LC_SHARED ? "shared" : "exclusive";
	char repeat[12] = "";

	if (entry->repeat > 0)
		snprintf(repeat, sizeof(repeat), ".%u", entry->repeat);
	if (entry->of_mount)
		snprintf(ret_name, QUEUE_NAME_MAX + 1, "%010" PRId64 "-%s-%d-%s%s", entry->number,
		         mode, (int)entry->pid, entry->host, repeat);
	else
		snprintf(ret_name, QUEUE_NAME_MAX + 1, "%010" PRId64 "-%s-foreign%s", entry->number,
		         mode, repeat);
}

struct snapshot *snapshot_take(const struct lc_listing *listing, int64_t now_us)
{
	struct snapshot *snapshot = calloc(1, sizeof(*snapshot));
	size_t bytes = 1;
	char *name;

	for (size_t i = 0; i < listing->entry_count; i++)
		bytes += strlen(listing->entries[i].znode) + 1;
	if (!snapshot)
		return NULL;
	snapshot->taken_us = now_us;
	snapshot->serial = listing->serial;
	snapshot->count = listing->entry_count;
	snapshot->entries = calloc(listing->entry_count + 1, sizeof(*snapshot->entries));
	snapshot->items = calloc(listing->entry_count + 1, sizeof(*snapshot->items));
	snapshot->names = name = malloc(bytes);
	if (!snapshot->entries || !snapshot->items || !name) {
		snapshot_free(snapshot);
		return NULL;
	}
	for (size_t i = 0; i < listing->entry_count; i++) {
		snapshot->entries[i] = listing->entries[i];
		snapshot->entries[i].znode = name;
		name = stpcpy(name, listing->entries[i].znode) + 1;
	}
	return snapshot;
}

/* Frees what was asked about the items of the last reading. */
static void forget_infos(struct snapshot *snapshot)
{
	for (size_t i = snapshot->first; i < snapshot->next; i++) {
		free(snapshot->items[i].info);
		snapshot->items[i].info = NULL;
	}
}

void snapshot_free(struct snapshot *snapshot)
{
	if (!snapshot)
		return;
	forget_infos(snapshot);
	free(snapshot->entries);
	free(snapshot->items);
	free(snapshot->names);
	free(snapshot);
}

size_t snapshot_count(const struct snapshot *snapshot)
{
	return snapshot->count;
}

bool snapshot_is_of(const struct snapshot *snapshot, const struct lc_listing *listing)
{
	return snapshot && snapshot->serial == listing->serial;
}

bool snapshot_fresh(const struct snapshot *snapshot, int64_t now_us)
{
	return snapshot && now_us - snapshot->taken_us < SNAPSHOT_US;
}

static int compare_number(const void *key, const void *element)
{
	int64_t a = *(const int64_t *)key, b = ((const struct lc_entry *)element)->number;

	return a < b ? -1 : a > b;
}

const struct lc_entry *snapshot_find(const struct snapshot *snapshot, const char *name)
{
	int64_t number = strtoll(name, NULL, 10);
	const struct lc_entry *entry = bsearch(&number, snapshot->entries, snapshot->count,
	                                       sizeof(*entry), compare_number);
	const struct lc_entry *end = snapshot->entries + snapshot->count;
	char expected[QUEUE_NAME_MAX + 1];

	while (entry && entry > snapshot->entries && entry[-1].number == number)
		entry--;
	for (; entry && entry < end && entry->number == number; entry++) {
		snapshot_name(expected, entry);
		if (strcmp(name, expected) == 0)
			return entry;
	}
	return NULL;
}

bool snapshot_is_name(const char *name)
{
	size_t digits = strspn(name + (*name == '-'), "0123456789");
	const char *mode = name + (*name == '-') + digits;

	return digits >= 9 &&
	       (strncmp(mode, "-exclusive-", 11) == 0 || strncmp(mode, "-shared-", 8) == 0);
}

bool snapshot_excludes(const struct snapshot *snapshot, const char *name)
{
	int64_t number = strtoll(name, NULL, 10);

	return snapshot->count > 0 && number >= 0 && number < NUMBER_ZONE &&
	       number <= snapshot->entries[snapshot->count - 1].number &&
	       !snapshot_find(snapshot, name);
}

/* ---- reading ahead ---- */

const struct entry_facts *snapshot_facts(const struct snapshot *snapshot,
                                         const struct lc_entry *entry)
{
	const struct snapshot_item *item = &snapshot->items[entry - snapshot->entries];

	return item->read ? &item->facts : NULL;
}

size_t snapshot_ahead(struct snapshot *snapshot, const struct lc_entry *entry)
{
	size_t first = (size_t)(entry - snapshot->entries), count = 1;

	if (first != snapshot->next || snapshot->window == 0)
		snapshot->window = 1;
	else if (snapshot->window < SNAPSHOT_AHEAD)
		snapshot->window *= 2;
	while (count < snapshot->window && first + count < snapshot->count &&
	       !snapshot->items[first + count].read)
		count++;
	forget_infos(snapshot);
	snapshot->first = first;
	snapshot->next = first + count;
	return count;
}

static bool is_of_last_reading(const struct snapshot *snapshot, const struct snapshot_item *item)
{
	size_t i = (size_t)(item - snapshot->items);

	return i >= snapshot->first && i < snapshot->next;
}

/* NULL: its reason is long, or there is no memory. */
static struct lc_entry_info *copy_info(const struct lc_entry_info *info)
{
	size_t len = strlen(info->reason);
	size_t size = offsetof(struct lc_entry_info, reason) + len + 1;
	struct lc_entry_info *copy = len <= SNAPSHOT_REASON_MAX ? malloc(size) : NULL;

	return copy ? memcpy(copy, info, size) : NULL;
}

void snapshot_learn(struct snapshot *snapshot, const struct lc_entry_info *info, int64_t asked_us)
{
	char name[QUEUE_NAME_MAX + 1];
	const struct lc_entry *entry;
	struct snapshot_item *item;

	snapshot_name(name, &info->entry);
	entry = snapshot_find(snapshot, name);
	/* The snapshot may be a later one than that which the entry was known from. */
	if (!entry || strcmp(entry->znode, info->entry.znode) != 0)
		return;
	item = &snapshot->items[entry - snapshot->entries];
	item->read = true;
	item->facts = (struct entry_facts){
		.token = info->token,
		.of_mount = entry->of_mount,
		.held = entry->held,
		.uid = info->uid,
		.since_ms = entry->held && info->held_since_ms >= 0 ? info->held_since_ms
	                                                            : info->queued_since_ms,
	};
	free(item->info);
	item->info = is_of_last_reading(snapshot, item) ? copy_info(info) : NULL;
	item->asked_us = asked_us;
	if (item->info)
		item->info->entry.znode = entry->znode;
}

static struct snapshot_item *item_of(const struct snapshot *snapshot, const char *name)
{
	const struct lc_entry *entry = snapshot_find(snapshot, name);

	return entry ? &snapshot->items[entry - snapshot->entries] : NULL;
}

const struct lc_entry_info *snapshot_info(const struct snapshot *snapshot, const char *name,
                                          int64_t now_us)
{
	const struct snapshot_item *item = item_of(snapshot, name);

	return item && now_us - item->asked_us < SNAPSHOT_OPEN_US ? item->info : NULL;
}

void snapshot_told(struct snapshot *snapshot, const char *name)
{
	struct snapshot_item *item = item_of(snapshot, name);

	if (!item)
		return;
	free(item->info);
	item->info = NULL;
}
