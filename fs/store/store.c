/* SPDX-License-Identifier: MIT
 *
 * store.c - see store.h.
 *
 * For each record an entry in private memory says where its bytes are in the journal. What is put,
 * dropped or answered goes there at once, behind the last commit: the next commit makes it good, or
 * the store is spoilt, and nobody goes on with it.
 *
 * A half of the journal also has the old bytes of changed records. When it has become much longer
 * than the records that live, these are moved to the other half, some in each commit. Meanwhile
 * each change goes to both halves. The commit that moves the last record makes the other half the
 * good one.
 */
#include "store/store.h"

#include "pure/table.h"
#include "store/journal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A half may have one and a half times the bytes of the records, and so many more. */
#define SPARE ((size_t)256 * 1024)
/* So many bytes are moved in one commit. */
#define SLICE ((size_t)2 * 1024 * 1024)
/* How often a copy is tried while another process commits. */
#define READ_ATTEMPTS 5

/* Each record has one, so it is to be small. */
struct index_entry {
	struct table_link key;      /* in the table of its kind */
	const unsigned char *bytes; /* NULL: the record is being added */
	uint32_t len;
	uint8_t kind;
};
_Static_assert(sizeof(void *) != 8 || sizeof(struct index_entry) <= 32, "an entry has grown");

struct store {
	struct journal journal;
	struct table entries[STORE_KIND_MAX + 1]; /* by kind */
	size_t live;                              /* bytes that the records need in a half */
	const struct journal_batch *last;         /* of the last commit; NULL: it has no answers */
	bool moves;                               /* records are being moved to the other half, */
	struct {                                  /*   this row of the table of a kind next */
		unsigned kind;
		size_t row;
	} next;
	int error; /* of a change: the commit fails; 0 */
};

/* ---- the index ---- */

static struct index_entry *entry_of(struct table_link *key)
{
	return (struct index_entry *)key;
}

static struct index_entry *find_entry(const struct store *store, unsigned kind, uint64_t key)
{
	return entry_of(table_find(&store->entries[kind], key));
}

static struct index_entry *add_entry(struct store *store, unsigned kind, uint64_t key)
{
	struct index_entry *entry = malloc(sizeof(*entry));

	if (!entry)
		return NULL;
	*entry = (struct index_entry){.kind = (uint8_t)kind};
	if (table_add(&store->entries[kind], &entry->key, key))
		return entry;
	free(entry);
	return NULL;
}

static void learn_bytes(struct store *store, struct index_entry *entry, const unsigned char *bytes,
                        uint32_t len)
{
	if (entry->bytes)
		store->live -= journal_size(entry->len);
	entry->bytes = bytes;
	entry->len = len;
	store->live += journal_size(len);
}

static void forget_entry(struct store *store, struct index_entry *entry)
{
	if (entry->bytes)
		store->live -= journal_size(entry->len);
	table_remove(&store->entries[entry->kind], &entry->key);
	free(entry);
}

static void drop_index(struct store *store)
{
	for (unsigned kind = 0; kind <= STORE_KIND_MAX; kind++) {
		struct table_link *key = table_take_all(&store->entries[kind]), *next;

		for (; key; key = next) {
			next = key->next;
			free(entry_of(key));
		}
		table_finish(&store->entries[kind]);
	}
	store->live = 0;
}

/* ---- to make, to open ---- */

int store_create(struct store **ret, const char **ret_call)
{
	struct store *store = calloc(1, sizeof(*store));
	int r;

	*ret_call = "malloc";
	if (!store)
		return -ENOMEM;
	r = journal_create(&store->journal, ret_call);
	if (r < 0)
		free(store);
	else
		*ret = store;
	return r;
}

static const char *learn_item(struct store *store, const struct journal_item *item,
                              const unsigned char *bytes)
{
	struct index_entry *entry;

	if (item->kind == JOURNAL_ANSWER)
		return item->len == JOURNAL_GONE ? "the state has an invalid answer" : NULL;
	if (item->kind > STORE_KIND_MAX)
		return "the state has an invalid record";
	entry = find_entry(store, item->kind, item->key);
	if (item->len == JOURNAL_GONE) {
		if (entry)
			forget_entry(store, entry);
		return NULL;
	}
	if (!entry)
		entry = add_entry(store, item->kind, item->key);
	if (!entry)
		return strerror(ENOMEM);
	learn_bytes(store, entry, bytes, item->len);
	return NULL;
}

static const char *learn_batch(struct store *store, const struct journal_batch *batch)
{
	struct journal_item item;
	const unsigned char *bytes;
	const char *why = NULL;
	size_t at = 0;

	while (!why && at < batch->len - sizeof(*batch))
		why = journal_next_item(batch, &at, &item, &bytes)
		              ? learn_item(store, &item, bytes)
		              : "the state has a record that is cut off";
	store->last = batch;
	return why;
}

static const char *learn_all(struct store *store)
{
	struct journal *journal = &store->journal;
	const struct journal_batch *batch;
	const char *why;
	uint64_t number = 0;
	size_t at = 0;

	while ((batch = journal_next_batch(journal, &at, &why))) {
		if (number != 0 && batch->number != number + 1)
			return "the state lacks a commit";
		number = batch->number;
		why = learn_batch(store, batch);
		if (why)
			return why;
	}
	if (!why && (uint32_t)number != (uint32_t)journal->number)
		why = "the state lacks its last commit";
	journal->number = number;
	return why;
}

static void free_store(struct store *store)
{
	drop_index(store);
	free(store);
}

static const char *open_journal(struct store *store, int fd, bool copies)
{
	struct journal *journal = &store->journal;
	const char *why = copies ? journal_copy(journal, fd) : journal_open(journal, fd);

	if (why)
		return why;
	why = learn_all(store);
	if (why)
		journal_leave(journal);
	return why;
}

static int open_store(int fd, bool copies, struct store **ret, const char **ret_why)
{
	struct store *store = calloc(1, sizeof(*store));

	*ret_why = store ? open_journal(store, fd, copies) : strerror(ENOMEM);
	if (!*ret_why) {
		*ret = store;
		return 0;
	}
	if (store)
		free_store(store);
	return -EINVAL;
}

int store_open(int fd, struct store **ret, const char **ret_why)
{
	int r = open_store(fd, /* copies = */ false, ret, ret_why);

	if (r == 0)
		journal_go_on(&(*ret)->journal);
	return r;
}

/* If the half was written over in the meantime, another commit was made. */
int store_read(int fd, struct store **ret, const char **ret_why)
{
	int r;

	for (int i = 0; i < READ_ATTEMPTS; i++) {
		uint64_t before = journal_commit_of(fd);

		r = open_store(fd, /* copies = */ true, ret, ret_why);
		if (r == 0 || before == journal_commit_of(fd))
			return r;
	}
	return -EAGAIN;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	journal_close(&store->journal);
	free_store(store);
}

int store_fd(const struct store *store)
{
	return store->journal.fd;
}

/* ---- records ---- */

/* Behind the last commit; in both halves while records are moved: then this one is. Returns the
 * bytes there. NULL: the commit fails. */
static const unsigned char *append(struct store *store, const struct journal_item *item,
                                   const void *bytes)
{
	struct journal *journal = &store->journal;
	const unsigned char *there = NULL;
	int r = store_head(store)->spoilt
	                ? -EIO
	                : journal_append(journal, journal->good, item, bytes, &there);

	if (r == 0 && store->moves)
		r = journal_append(journal, !journal->good, item, bytes, &there);
	if (r == 0)
		return there;
	store->error = r;
	return NULL;
}

void store_put(struct store *store, unsigned kind, uint64_t key, const void *bytes, size_t len)
{
	const struct journal_item item = {.kind = kind, .len = (uint32_t)len, .key = key};
	struct index_entry *entry = find_entry(store, kind, key);
	const unsigned char *there;

	assert(kind > 0 && kind <= STORE_KIND_MAX && !store->journal.copy);
	if (!entry && len <= STORE_RECORD_BYTES)
		entry = add_entry(store, kind, key);
	if (!entry || len > STORE_RECORD_BYTES) {
		store->error = -ENOMEM;
		return;
	}
	if (entry->bytes && entry->len == len &&
	    (len == 0 || memcmp(entry->bytes, bytes, len) == 0))
		return;
	there = append(store, &item, bytes);
	if (there)
		learn_bytes(store, entry, there, item.len);
	else if (!entry->bytes)
		forget_entry(store, entry);
}

void store_drop(struct store *store, unsigned kind, uint64_t key)
{
	const struct journal_item item = {.kind = kind, .len = JOURNAL_GONE, .key = key};
	struct index_entry *entry = find_entry(store, kind, key);

	if (entry && append(store, &item, NULL))
		forget_entry(store, entry);
}

static struct record_bytes record_of(const struct index_entry *entry)
{
	return (struct record_bytes){
		.kind = entry->kind,
		.key = entry->key.number,
		.bytes = entry->bytes,
		.len = entry->len,
	};
}

bool store_get(const struct store *store, unsigned kind, uint64_t key, struct record_bytes *ret)
{
	const struct index_entry *entry = find_entry(store, kind, key);

	if (entry)
		*ret = record_of(entry);
	return entry;
}

bool store_is_behind(const struct store *store)
{
	return store->error || journal_is_behind(&store->journal);
}

/* By one byte of the keys after the other; `room` is as long as `all`. Returns that of both which
 * has the sorted records. With 10,000 waiters qsort(3) took a tenth of the time for which a mount
 * waits for its next daemon. */
static struct record_bytes *sort_by_key(struct record_bytes *all, struct record_bytes *room,
                                        size_t count)
{
	uint64_t differs = 0;

	for (size_t i = 1; i < count; i++)
		differs |= all[i].key ^ all[0].key;
	for (unsigned shift = 0; shift < 64; shift += 8) {
		struct record_bytes *sorted = room;
		size_t ends[256] = {0};

		if ((differs >> shift & 0xff) == 0)
			continue;
		for (size_t i = 0; i < count; i++)
			ends[all[i].key >> shift & 0xff]++;
		for (size_t byte = 1; byte < 256; byte++)
			ends[byte] += ends[byte - 1];
		for (size_t i = count; i-- > 0;)
			sorted[--ends[all[i].key >> shift & 0xff]] = all[i];
		room = all;
		all = sorted;
	}
	return all;
}

ssize_t store_list(const struct store *store, unsigned kind, struct record_bytes **ret)
{
	const struct table *entries = &store->entries[kind];
	struct record_bytes *all = calloc(entries->count + 1, sizeof(*all));
	struct record_bytes *room = calloc(entries->count + 1, sizeof(*room));
	size_t count = 0;

	if (!all || !room) {
		free(all);
		free(room);
		return -ENOMEM;
	}
	for (struct table_link *key = NULL; (key = table_next(entries, key));)
		all[count++] = record_of(entry_of(key));
	*ret = sort_by_key(all, room, count);
	free(*ret == all ? room : all);
	return (ssize_t)count;
}

const struct records_memory store_memory = {store_put, store_drop, store_get, store_list};

/* ---- moving to the other half ---- */

static bool is_in_half(const struct store *store, const struct index_entry *entry, unsigned half)
{
	const unsigned char *bytes = store->journal.halves[half].bytes;

	return entry->bytes >= bytes && entry->bytes < bytes + JOURNAL_HALF_BYTES;
}

static int move_row(struct store *store, unsigned half, struct table_link *row, size_t *moved)
{
	int r = 0;

	for (; r == 0 && row; row = row->next) {
		struct index_entry *entry = entry_of(row);
		const struct journal_item item = {
			.kind = entry->kind, .len = entry->len, .key = entry->key.number};

		if (is_in_half(store, entry, half))
			continue;
		r = journal_append(&store->journal, half, &item, entry->bytes, &entry->bytes);
		*moved += journal_size(entry->len);
	}
	return r;
}

static bool all_moved(const struct store *store)
{
	return store->next.kind > STORE_KIND_MAX;
}

static int move_slice(struct store *store, unsigned half)
{
	size_t moved = 0;
	int r = 0;

	while (r == 0 && !all_moved(store) && moved < SLICE) {
		struct table_link *row =
			table_row(&store->entries[store->next.kind], &store->next.row);

		r = move_row(store, half, row, &moved);
		store->next.row++;
		if (row)
			continue;
		store->next.kind++;
		store->next.row = 0;
	}
	return r;
}

/* ---- the commit ---- */

static int commit_changes(struct store *store)
{
	struct journal *journal = &store->journal;
	unsigned good = journal->good, other = !good;
	bool arrives = false;
	int r = store->error;

	if (r == 0 && store->moves) {
		r = move_slice(store, other);
		arrives = all_moved(store);
	}
	if (r == 0 && !arrives)
		r = journal_end(journal, good, &store->last);
	if (r == 0 && store->moves)
		r = journal_end(journal, other,
		                arrives ? &store->last : &(const struct journal_batch *){NULL});
	if (r < 0)
		return r;
	journal_commit(journal, arrives ? other : good);
	store->moves &= !arrives;
	if (store->moves)
		return 0;
	journal_give_back(journal);
	if (journal->halves[journal->good].len > store->live + store->live / 2 + SPARE) {
		store->moves = true;
		store->next.kind = 0;
		store->next.row = 0;
	}
	return 0;
}

void store_spoil(struct store *store)
{
	store_head(store)->spoilt = true;
}

int store_commit(struct store *store)
{
	int r;

	if (store_head(store)->spoilt)
		return -EIO;
	if (!store_is_behind(store) && store->journal.requests == 0)
		return 0;
	r = commit_changes(store);
	if (r < 0)
		store_spoil(store);
	return r;
}

/* ---- answers and requests ---- */

int store_answer(struct store *store, unsigned tag, const void *bytes, size_t len)
{
	const struct journal_item item = {.kind = JOURNAL_ANSWER, .len = (uint32_t)len, .key = tag};

	assert(len <= STORE_RECORD_BYTES);
	return append(store, &item, bytes) ? 0 : store->error;
}

bool store_next_answer(const struct store *store, size_t *at, unsigned *ret_tag,
                       const void **ret_bytes, size_t *ret_len)
{
	struct journal_item item;
	const unsigned char *bytes;

	while (store->last && journal_next_item(store->last, at, &item, &bytes)) {
		if (item.kind != JOURNAL_ANSWER)
			continue;
		*ret_tag = (unsigned)item.key;
		*ret_bytes = bytes;
		*ret_len = item.len;
		return true;
	}
	return false;
}

void *store_request_room(struct store *store, size_t size)
{
	return journal_request_room(&store->journal, size);
}

void store_request_add(struct store *store, size_t len)
{
	journal_request_add(&store->journal, len);
}

bool store_next_request(const struct store *store, size_t *at, const void **ret_bytes,
                        size_t *ret_len)
{
	return journal_next_request(&store->journal, at, ret_bytes, ret_len);
}

struct store_head *store_head(const struct store *store)
{
	return &store->journal.head->of_store;
}
