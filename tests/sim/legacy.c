/* SPDX-License-Identifier: MIT
 *
 * legacy.c - the records of a mount's engine at the end of the last turn: when the mount dies,
 * another process goes on from them. And a judge: the changes that the engine has told, put
 * together, are equal to all of its records.
 */
#include "sim.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct legacy_record {
	uint64_t key;
	void *bytes;
	size_t len;
	bool seen;
	UT_hash_handle hh;
};

static struct legacy_record *find(struct mount *mount, uint64_t key)
{
	struct legacy_record *record;

	HASH_FIND(hh, mount->legacy, &key, sizeof(key), record);
	return record;
}

static void drop(struct mount *mount, struct legacy_record *record)
{
	if (!record)
		return;
	HASH_DEL(mount->legacy, record);
	free(record->bytes);
	free(record);
}

void legacy_forget(struct mount *mount)
{
	struct legacy_record *record, *next;

	HASH_ITER(hh, mount->legacy, record, next)
		drop(mount, record);
}

static void changed(void *ctx, uint64_t key, const void *bytes, size_t len)
{
	struct mount *mount = ctx;
	struct legacy_record *record;

	drop(mount, find(mount, key));
	if (!bytes)
		return;
	record = calloc(1, sizeof(*record));
	if (!record || !(record->bytes = malloc(len)))
		abort();
	record->key = key;
	record->len = len;
	memcpy(record->bytes, bytes, len);
	HASH_ADD(hh, mount->legacy, key, sizeof(record->key), record);
}

static void judge_record(void *ctx, uint64_t key, const void *bytes, size_t len)
{
	struct mount *mount = ctx;
	struct legacy_record *record = find(mount, key);

	if (!record || record->len != len || memcmp(record->bytes, bytes, len) != 0)
		sim_violation(mount->sim, "%s: record %" PRIx64 " has changed, which was not told",
		              mount->host.name, key);
	else
		record->seen = true;
}

static void judge_legacy(struct mount *mount)
{
	struct legacy_record *record;

	for (record = mount->legacy; record; record = record->hh.next)
		record->seen = false;
	if (lc_save_all(mount->host.lc, judge_record, mount) < 0)
		abort();
	for (record = mount->legacy; record; record = record->hh.next)
		if (!record->seen)
			sim_violation(mount->sim,
			              "%s: record %" PRIx64 " is gone, which was not told",
			              mount->host.name, record->key);
}

void legacy_keep(struct mount *mount)
{
	if (lc_save_changes(mount->host.lc, changed, mount) < 0)
		abort();
	judge_legacy(mount);
}

static int compare_keys(const struct legacy_record *a, const struct legacy_record *b)
{
	return a->key < b->key ? -1 : a->key > b->key;
}

void legacy_join(struct mount *mount, void **ret_state, size_t *ret_len)
{
	struct lc_record *records = calloc(HASH_COUNT(mount->legacy) + 1, sizeof(*records));
	struct legacy_record *record;
	size_t count = 0;
	int r;

	if (!records)
		abort();
	HASH_SORT(mount->legacy, compare_keys);
	for (record = mount->legacy; record; record = record->hh.next)
		records[count++] = (struct lc_record){record->key, record->bytes, record->len};
	r = lc_join_state(records, count, ret_state, ret_len);
	free(records);
	if (r == 0)
		r = lc_check_state(*ret_state, *ret_len);
	if (r < 0)
		sim_violation(mount->sim, "%s: refuses its own records: %d", mount->host.name, r);
}
