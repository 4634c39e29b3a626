/* SPDX-License-Identifier: MIT
 *
 * store.c - see store.h.
 *
 * For each record an entry in private memory says where its bytes are. Changes are kept in private
 * memory, too, until the commit writes them as one batch. A half of the journal also has the old
 * bytes of changed records. When it has become much longer than the records that live, these are
 * moved to the other half, some in each commit. Meanwhile batches go to both halves. The commit
 * that moves the last record makes the other half the good one.
 */
#include "store/store.h"

#include "pure/table.h"
#include "store/journal.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A half may have one and a half times the bytes of the records, and so many more. */
#define SPARE ((size_t)256 * 1024)
/* So many bytes are moved in one commit. */
#define SLICE ((size_t)2 * 1024 * 1024)
/* Of making a copy, while another process commits. */
#define READ_ATTEMPTS 5

/* Of each record: so it is to be small. */
struct index_entry {
	struct table_link key;      /* in the table of its kind */
	const unsigned char *bytes; /* of the last commit; NULL: the record is new */
	uint32_t len;
	uint32_t change; /* its number among the changes, from 1; 0: it has not changed */
	uint8_t kind;
};
_Static_assert(sizeof(void *) != 8 || sizeof(struct index_entry) <= 40, "an entry has grown");

/* A change since the last commit. */
struct change {
	struct index_entry *entry;
	bool dropped;
	size_t staged; /* where in store->staged the new bytes are */
	uint32_t len;
	const unsigned char *written; /* in a commit: the new bytes in the half written last */
};

/* Private bytes, one behind the other. */
struct heap {
	unsigned char *bytes;
	size_t len, room;
};

struct store {
	struct journal journal;
	struct table entries[STORE_KIND_MAX + 1]; /* by kind */
	size_t live;                    /* bytes that the last commit's records need in a half */
	struct heap changes;            /* struct change, one behind the other */
	struct heap staged;             /* the bytes of these changes */
	struct heap answers;            /* until the commit: a row of items */
	const unsigned char *committed; /* answers of the last commit */
	size_t committed_len;
	bool moves; /* records are being moved to the other half, */
	struct {    /*   this row of the table of a kind next */
		unsigned kind;
		size_t row;
	} next;
	bool lacks; /* there was no memory for a change: the commit fails */
	bool spoilt;
};

/* ---- private memory ---- */

static unsigned char *heap_add(struct heap *heap, size_t len)
{
	unsigned char *bytes;

	if (!heap->bytes || len > heap->room - heap->len) {
		size_t room = 2 * (heap->room + len) + 4096;

		bytes = realloc(heap->bytes, room);
		if (!bytes)
			return NULL;
		heap->bytes = bytes;
		heap->room = room;
	}
	bytes = heap->bytes + heap->len;
	heap->len += len;
	return bytes;
}

/* The memory of one large turn is not kept for ever. */
static void heap_empty(struct heap *heap)
{
	heap->len = 0;
	if (heap->room <= SPARE)
		return;
	free(heap->bytes);
	*heap = (struct heap){0};
}

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

static void forget_entry(struct store *store, struct index_entry *entry)
{
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

/* The record is as a commit has it. */
static void learn_bytes(struct store *store, struct index_entry *entry, const unsigned char *bytes,
                        uint32_t len)
{
	if (entry->bytes)
		store->live -= journal_size(entry->len);
	entry->bytes = bytes;
	entry->len = len;
	if (bytes)
		store->live += journal_size(len);
}

/* ---- to make, to open ---- */

int store_create(struct store **ret)
{
	struct store *store = calloc(1, sizeof(*store));
	int r;

	if (!store)
		return -ENOMEM;
	r = journal_create(&store->journal);
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

	if (item->kind == 0 || item->kind > STORE_KIND_MAX)
		return "the state has an invalid record";
	entry = find_entry(store, item->kind, item->key);
	if (item->len == JOURNAL_GONE) {
		if (!entry)
			return NULL;
		learn_bytes(store, entry, NULL, 0);
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
	const unsigned char *row = (const unsigned char *)(batch + 1), *bytes;
	size_t len = batch->len - sizeof(*batch) - batch->answers, at = 0;
	struct journal_item item;
	const char *why = NULL;

	while (!why && at < len)
		why = journal_next_item(row, len, &at, &item, &bytes)
		              ? learn_item(store, &item, bytes)
		              : "the state has a record that is cut off";
	for (at = 0; !why && at < batch->answers;)
		if (!journal_next_item(row + len, batch->answers, &at, &item, &bytes) ||
		    item.kind != 0 || item.len == JOURNAL_GONE)
			why = "the state has an invalid answer";
	store->committed = row + len;
	store->committed_len = batch->answers;
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
	free(store->changes.bytes);
	free(store->staged.bytes);
	free(store->answers.bytes);
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
	int r = open_store(fd, false, ret, ret_why);

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

		r = open_store(fd, true, ret, ret_why);
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

static size_t count_changes(const struct store *store)
{
	return store->changes.len / sizeof(struct change);
}

/* The change of that number, from 1. */
static struct change *change_at(const struct store *store, size_t number)
{
	return (struct change *)(void *)store->changes.bytes + number - 1;
}

/* NULL: none. */
static struct change *change_of(const struct store *store, const struct index_entry *entry)
{
	return entry->change ? change_at(store, entry->change) : NULL;
}

static void mark_changed(struct store *store, struct index_entry *entry,
                         const struct change *change)
{
	if (entry->change == 0) {
		if (!heap_add(&store->changes, sizeof(*change))) {
			store->lacks = true;
			return;
		}
		entry->change = (uint32_t)count_changes(store);
	}
	*change_of(store, entry) = *change;
}

static bool same_bytes(const void *a, size_t a_len, const void *b, size_t b_len)
{
	return a_len == b_len && (a_len == 0 || memcmp(a, b, a_len) == 0);
}

static bool was_committed(const struct index_entry *entry, const void *bytes, size_t len)
{
	return entry->bytes && same_bytes(entry->bytes, entry->len, bytes, len);
}

static const unsigned char *staged_bytes(const struct store *store, const struct change *change)
{
	return store->staged.bytes + change->staged;
}

static bool has_bytes(const struct store *store, const struct index_entry *entry, const void *bytes,
                      size_t len)
{
	const struct change *change = change_of(store, entry);

	if (!change)
		return was_committed(entry, bytes, len);
	return !change->dropped && same_bytes(staged_bytes(store, change), change->len, bytes, len);
}

static void stage(struct store *store, struct index_entry *entry, const void *bytes, size_t len)
{
	unsigned char *staged = heap_add(&store->staged, len);

	if (!staged) {
		store->lacks = true;
		return;
	}
	if (len > 0)
		memcpy(staged, bytes, len);
	mark_changed(store, entry,
	             &(struct change){
			     .entry = entry,
			     .staged = (size_t)(staged - store->staged.bytes),
			     .len = (uint32_t)len,
		     });
}

void store_put(struct store *store, unsigned kind, uint64_t key, const void *bytes, size_t len)
{
	struct index_entry *entry = find_entry(store, kind, key);

	assert(kind > 0 && kind <= STORE_KIND_MAX && !store->journal.copy);
	if (!entry && len <= STORE_RECORD_BYTES)
		entry = add_entry(store, kind, key);
	if (!entry || len > STORE_RECORD_BYTES)
		store->lacks = true;
	else if (!has_bytes(store, entry, bytes, len))
		stage(store, entry, bytes, len);
}

void store_drop(struct store *store, unsigned kind, uint64_t key)
{
	struct index_entry *entry = find_entry(store, kind, key);

	if (entry)
		mark_changed(store, entry, &(struct change){.entry = entry, .dropped = true});
}

static bool fill_record(const struct store *store, const struct index_entry *entry,
                        struct book_record *ret)
{
	const struct change *change = change_of(store, entry);

	*ret = (struct book_record){
		.kind = entry->kind,
		.key = entry->key.number,
		.bytes = change ? staged_bytes(store, change) : entry->bytes,
		.len = change ? change->len : entry->len,
	};
	return ret->bytes && !(change && change->dropped);
}

bool store_get(const struct store *store, unsigned kind, uint64_t key, struct book_record *ret)
{
	const struct index_entry *entry = find_entry(store, kind, key);

	return entry && fill_record(store, entry, ret);
}

bool store_is_behind(const struct store *store)
{
	return store->changes.len > 0;
}

/* By one byte of the keys after the other; `room` is as long as `all`. Returns that of both which
 * has the sorted records. With 10,000 waiters qsort(3) took a tenth of the time for which a mount
 * waits for its next daemon. */
static struct book_record *sort_by_key(struct book_record *all, struct book_record *room,
                                       size_t count)
{
	uint64_t differs = 0;

	for (size_t i = 1; i < count; i++)
		differs |= all[i].key ^ all[0].key;
	for (unsigned shift = 0; shift < 64; shift += 8) {
		struct book_record *sorted = room;
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

size_t store_count(const struct store *store)
{
	size_t count = 0;

	for (unsigned kind = 0; kind <= STORE_KIND_MAX; kind++)
		count += store->entries[kind].count;
	return count;
}

ssize_t store_list(const struct store *store, unsigned kind, struct book_record **ret)
{
	const struct table *entries = &store->entries[kind];
	struct book_record *all = calloc(entries->count + 1, sizeof(*all));
	struct book_record *room = calloc(entries->count + 1, sizeof(*room));
	size_t count = 0;

	if (!all || !room) {
		free(all);
		free(room);
		return -ENOMEM;
	}
	for (struct table_link *key = NULL; (key = table_next(entries, key));)
		if (fill_record(store, entry_of(key), &all[count]))
			count++;
	*ret = sort_by_key(all, room, count);
	free(*ret == all ? room : all);
	return (ssize_t)count;
}

static void memory_put(void *memory, unsigned kind, uint64_t key, const void *bytes, size_t len)
{
	store_put(memory, kind, key, bytes, len);
}

static void memory_drop(void *memory, unsigned kind, uint64_t key)
{
	store_drop(memory, kind, key);
}

static bool memory_get(const void *memory, unsigned kind, uint64_t key, struct book_record *ret)
{
	return store_get(memory, kind, key, ret);
}

static ssize_t memory_list(const void *memory, unsigned kind, struct book_record **ret)
{
	return store_list(memory, kind, ret);
}

const struct book_memory store_memory = {memory_put, memory_drop, memory_get, memory_list};

/* ---- moving to the other half ---- */

static unsigned other_half(const struct store *store)
{
	return !store->journal.good;
}

static bool is_too_long(const struct store *store)
{
	return store->journal.halves[store->journal.good].len >
	       store->live + store->live / 2 + SPARE;
}

static bool is_in_half(const struct store *store, const struct index_entry *entry, unsigned half)
{
	const unsigned char *bytes = store->journal.halves[half].bytes;

	return entry->bytes >= bytes && entry->bytes < bytes + JOURNAL_HALF_BYTES;
}

static int append_record(struct store *store, unsigned half, const struct index_entry *entry,
                         const void *bytes, size_t len, const unsigned char **ret_bytes)
{
	const struct journal_item item = {
		.kind = entry->kind, .len = (uint32_t)len, .key = entry->key.number};

	return journal_append(&store->journal, half, &item, bytes, ret_bytes);
}

/* Records that change in this commit are not moved: it writes them there in any case. */
static int move_row(struct store *store, unsigned half, struct table_link *row, size_t *moved)
{
	int r = 0;

	for (; r == 0 && row; row = row->next) {
		struct index_entry *entry = entry_of(row);

		if (entry->change || is_in_half(store, entry, half))
			continue;
		r = append_record(store, half, entry, entry->bytes, entry->len, &entry->bytes);
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

/* A record that is as it was at the last commit has not changed. */
static void drop_equal_changes(struct store *store)
{
	size_t count = count_changes(store), left = 0;

	for (size_t i = 1; i <= count; i++) {
		const struct change change = *change_at(store, i);
		struct index_entry *entry = change.entry;

		if (change.dropped
		            ? entry->bytes != NULL
		            : !was_committed(entry, staged_bytes(store, &change), change.len)) {
			*change_at(store, ++left) = change;
			entry->change = (uint32_t)left;
			continue;
		}
		entry->change = 0;
		if (!entry->bytes)
			forget_entry(store, entry);
	}
	store->changes.len = left * sizeof(struct change);
}

static int write_changes(struct store *store, unsigned half)
{
	size_t count = count_changes(store);
	int r = 0;

	for (size_t i = 1; r == 0 && i <= count; i++) {
		struct change *change = change_at(store, i);
		const unsigned char *gone;

		if (change->dropped)
			r = append_record(store, half, change->entry, NULL, JOURNAL_GONE, &gone);
		else
			r = append_record(store, half, change->entry, staged_bytes(store, change),
			                  change->len, &change->written);
	}
	return r;
}

static int write_answers(struct store *store, unsigned half)
{
	int r = journal_append_row(&store->journal, half, store->answers.bytes, store->answers.len,
	                           &store->committed);

	store->committed_len = store->answers.len;
	return r;
}

static int write_batch(struct store *store, unsigned half, bool with_answers)
{
	int r = write_changes(store, half);

	if (r == 0 && with_answers)
		r = write_answers(store, half);
	if (r == 0)
		journal_end(&store->journal, half, with_answers ? store->answers.len : 0);
	return r;
}

/* To the good half; and to the other one while records are being moved there. */
static int write_halves(struct store *store, unsigned *ret_half)
{
	unsigned good = store->journal.good, other = other_half(store);
	bool arrives = false;
	int r = 0;

	if (store->moves) {
		r = journal_begin(&store->journal, other);
		if (r == 0)
			r = move_slice(store, other);
		arrives = all_moved(store);
	}
	if (r == 0 && !arrives) {
		r = journal_begin(&store->journal, good);
		if (r == 0)
			r = write_batch(store, good, true);
	}
	if (r == 0 && store->moves)
		r = write_batch(store, other, arrives);
	*ret_half = arrives ? other : good;
	return r;
}

static void learn_changes(struct store *store)
{
	size_t count = count_changes(store);

	for (size_t i = 1; i <= count; i++) {
		const struct change *change = change_at(store, i);
		struct index_entry *entry = change->entry;

		learn_bytes(store, entry, change->dropped ? NULL : change->written, change->len);
		entry->change = 0;
		if (change->dropped)
			forget_entry(store, entry);
	}
	heap_empty(&store->changes);
	heap_empty(&store->staged);
	heap_empty(&store->answers);
}

static int commit_changes(struct store *store)
{
	unsigned half, before = store->journal.good;
	int r;

	if (store->lacks)
		return -ENOMEM;
	if (!store->moves && is_too_long(store)) {
		store->moves = true;
		store->next.kind = 0;
		store->next.row = 0;
	}
	r = write_halves(store, &half);
	if (r < 0)
		return r;
	journal_commit(&store->journal, half);
	learn_changes(store);
	store->moves = store->moves && half == before;
	if (!store->moves)
		journal_give_back(&store->journal);
	return 0;
}

void store_spoil(struct store *store)
{
	store->spoilt = true;
	atomic_store_explicit(&store->journal.head->spoilt, 1, memory_order_release);
	store->committed = store->answers.bytes;
	store->committed_len = store->answers.len;
}

int store_commit(struct store *store)
{
	int r;

	if (store->spoilt)
		return -EIO;
	drop_equal_changes(store);
	if (store->changes.len == 0 && !store->lacks && store->answers.len == 0 &&
	    store->journal.requests == 0) {
		heap_empty(&store->staged);
		return 0;
	}
	r = commit_changes(store);
	if (r < 0)
		store_spoil(store);
	return r;
}

/* ---- answers and requests ---- */

int store_answer(struct store *store, unsigned tag, const struct iovec *iov, int count)
{
	struct journal_item item = {.key = tag};
	size_t len = 0, size;
	unsigned char *to;

	for (int i = 0; i < count; i++)
		len += iov[i].iov_len;
	assert(len <= STORE_RECORD_BYTES);
	item.len = (uint32_t)len;
	size = journal_size(len);
	to = store->spoilt ? NULL : heap_add(&store->answers, size);
	if (!to) {
		store->lacks = true;
		return store->spoilt ? -EIO : -ENOMEM;
	}
	memset(to + size - sizeof(uint64_t), 0, sizeof(uint64_t));
	memcpy(to, &item, sizeof(item));
	to += sizeof(item);
	for (int i = 0; i < count; i++)
		to = mempcpy(to, iov[i].iov_base, iov[i].iov_len);
	return 0;
}

bool store_next_answer(const struct store *store, size_t *at, unsigned *ret_tag,
                       const void **ret_bytes, size_t *ret_len)
{
	struct journal_item item;
	const unsigned char *bytes;

	if (!journal_next_item(store->committed, store->committed_len, at, &item, &bytes))
		return false;
	*ret_tag = (unsigned)item.key;
	*ret_bytes = bytes;
	*ret_len = item.len;
	return true;
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

/* ---- the head ---- */

void store_set_deadline(struct store *store, int64_t us)
{
	atomic_store_explicit(&store->journal.head->deadline_us, us, memory_order_release);
}

int64_t store_deadline(const struct store *store)
{
	return atomic_load_explicit(&store->journal.head->deadline_us, memory_order_acquire);
}

void store_set_serving(struct store *store, uint64_t unique)
{
	atomic_store_explicit(&store->journal.head->serving, unique, memory_order_release);
}

uint64_t store_serving(const struct store *store)
{
	return atomic_load_explicit(&store->journal.head->serving, memory_order_acquire);
}

bool store_spoilt(const struct store *store)
{
	return atomic_load_explicit(&store->journal.head->spoilt, memory_order_acquire);
}
