/* SPDX-License-Identifier: MIT
 *
 * Another process finds the records of one process: all of a commit, or nothing of it.
 */
#include "store/store.h"

#include "store/journal.h"

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- to look at a store ---- */

static struct store *create(void)
{
	struct store *store;

	assert_int_equal(store_create(&store, &(const char *){NULL}), 0);
	return store;
}

static void put(struct store *store, unsigned kind, uint64_t key, const char *text)
{
	store_put(store, kind, key, text, strlen(text));
}

/* "key=text key=text", of a kind. */
static const char *list(const struct store *store, unsigned kind)
{
	static char text[4096];
	struct record_bytes *all;
	ssize_t count = store_list(store, kind, &all);
	size_t len = 0;

	assert_true(count >= 0);
	text[0] = '\0';
	for (ssize_t i = 0; i < count; i++) {
		assert_int_equal(all[i].kind, kind);
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%d=%.*s",
		                        i > 0 ? " " : "", (int)all[i].key, (int)all[i].len,
		                        (const char *)all[i].bytes);
	}
	free(all);
	return text;
}

static const char *answers(const struct store *store)
{
	static char text[4096];
	size_t at = 0, len = 0, bytes_len;
	const void *bytes;
	unsigned tag;

	text[0] = '\0';
	while (store_next_answer(store, &at, &tag, &bytes, &bytes_len))
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u:%.*s",
		                        len > 0 ? " " : "", tag, (int)bytes_len,
		                        (const char *)bytes);
	return text;
}

static void answer(struct store *store, unsigned tag, const char *text)
{
	assert_int_equal(store_answer(store, tag, text, strlen(text)), 0);
}

/* A copy of the store, as a successor finds it. */
static struct store *read_copy(const struct store *store)
{
	const char *why = NULL;
	struct store *copy;

	expect(store_read(store_fd(store), &copy, &why) == 0, "%s", why);
	return copy;
}

static struct store *reopen(struct store *store)
{
	int fd = dup(store_fd(store));
	const char *why = NULL;

	store_close(store);
	expect(store_open(fd, &store, &why) == 0, "%s", why);
	return store;
}

/* The records and answers that a process finds when it opens the store. */
static void expect_committed(const struct store *store, unsigned kind, const char *records,
                             const char *expected_answers)
{
	struct store *copy = read_copy(store);

	assert_string_equal(list(copy, kind), records);
	assert_string_equal(answers(copy), expected_answers);
	store_close(copy);
}

static uint64_t word(const struct store *store)
{
	return journal_commit_of(store_fd(store));
}

static size_t memory_of(const struct store *store)
{
	struct stat st;

	assert_int_equal(fstat(store_fd(store), &st), 0);
	return (size_t)st.st_blocks * 512;
}

/* ---- records ---- */

static void records_are_there_from_the_commit_on(void **state)
{
	struct store *store = create();
	struct record_bytes record;

	(void)state;
	put(store, 1, 7, "seven");
	put(store, 1, 3, "three");
	put(store, 2, 3, "other");
	assert_string_equal(list(store, 1), "3=three 7=seven");
	expect_committed(store, 1, "", "");
	assert_int_equal(store_commit(store), 0);
	expect_committed(store, 1, "3=three 7=seven", "");
	expect_committed(store, 2, "3=other", "");
	put(store, 1, 7, "SEVEN!");
	store_drop(store, 1, 3);
	assert_string_equal(list(store, 1), "7=SEVEN!");
	assert_false(store_get(store, 1, 3, &record));
	assert_true(store_get(store, 1, 7, &record));
	assert_int_equal(record.len, 6);
	assert_memory_equal(record.bytes, "SEVEN!", 6);
	expect_committed(store, 1, "3=three 7=seven", "");
	assert_int_equal(store_commit(store), 0);
	expect_committed(store, 1, "7=SEVEN!", "");
	assert_false(store_get(store, 3, 7, &record));
	store_close(store);
}

/* Keys that differ in one byte, in some or in all bytes; and keys of many records. */
static void records_come_by_their_keys(void **state)
{
	const uint64_t high = UINT64_C(1) << 63;
	struct store *store = create();
	struct record_bytes *all;
	uint64_t key = 1;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		key = key * 6364136223846793005U + 1442695040888963407U;
		put(store, 1, key >> (i % 8) * 8, "x");
		put(store, 2, high | (unsigned)i << 3, "y");
	}
	put(store, 3, 256, "z");
	for (unsigned kind = 1; kind <= 3; kind++) {
		ssize_t count = store_list(store, kind, &all);

		assert_true(kind == 1 ? count > 2000 : count == (kind == 2 ? 3000 : 1));
		for (ssize_t i = 0; i < count; i++) {
			struct record_bytes record;

			assert_true(i == 0 || all[i - 1].key < all[i].key);
			assert_true(store_get(store, kind, all[i].key, &record));
			assert_ptr_equal(record.bytes, all[i].bytes);
		}
		free(all);
	}
	store_close(store);
}

static void what_is_as_it_was_is_no_change(void **state)
{
	struct store *store = create();
	uint64_t before;

	(void)state;
	assert_int_equal(store_commit(store), 0);
	assert_int_equal(word(store), 0);
	put(store, 1, 1, "one");
	put(store, 1, 2, "");
	assert_int_equal(store_commit(store), 0);
	before = word(store);
	assert_int_not_equal(before, 0);
	put(store, 1, 1, "one");
	put(store, 1, 2, "");
	store_drop(store, 1, 4); /* never there */
	assert_false(store_is_behind(store));
	assert_int_equal(store_commit(store), 0);
	assert_int_equal(word(store), before);
	assert_string_equal(list(store, 1), "1=one 2=");
	store_close(store);
}

static void gone_and_there_again(void **state)
{
	struct store *store = create();

	(void)state;
	put(store, 1, 1, "one");
	assert_int_equal(store_commit(store), 0);
	store_drop(store, 1, 1);
	put(store, 1, 1, "uno");
	assert_int_equal(store_commit(store), 0);
	expect_committed(store, 1, "1=uno", "");
	put(store, 1, 1, "eins");
	store_drop(store, 1, 1);
	assert_int_equal(store_commit(store), 0);
	expect_committed(store, 1, "", "");
	put(store, 1, 1, "one");
	assert_int_equal(store_commit(store), 0);
	store = reopen(store);
	assert_string_equal(list(store, 1), "1=one");
	store_close(store);
}

static void a_successor_goes_on(void **state)
{
	struct store *store = create();

	(void)state;
	put(store, 1, 1, "one");
	answer(store, 1, "a");
	assert_int_equal(store_commit(store), 0);
	put(store, 1, 1, "not committed");
	store = reopen(store);
	assert_string_equal(list(store, 1), "1=one");
	assert_string_equal(answers(store), "1:a");
	put(store, 1, 2, "two");
	store_drop(store, 1, 1);
	assert_int_equal(store_commit(store), 0);
	store = reopen(store);
	assert_string_equal(list(store, 1), "2=two");
	assert_string_equal(answers(store), "");
	store_close(store);
}

/* ---- answers ---- */

static void answers_are_those_of_the_last_commit(void **state)
{
	struct store *store = create();

	(void)state;
	answer(store, 5, "hello");
	answer(store, 4, "");
	assert_string_equal(answers(store), "");
	assert_int_equal(store_commit(store), 0);
	assert_string_equal(answers(store), "5:hello 4:");
	expect_committed(store, 1, "", "5:hello 4:");
	answer(store, 6, "next one");
	assert_string_equal(answers(store), "5:hello 4:");
	put(store, 1, 1, "x");
	assert_int_equal(store_commit(store), 0);
	expect_committed(store, 1, "1=x", "6:next one");
	put(store, 1, 1, "y");
	assert_int_equal(store_commit(store), 0);
	expect_committed(store, 1, "1=y", "");
	store_close(store);
}

static void a_long_answer(void **state)
{
	enum { LEN = 128 * 1024 + 16 };
	struct store *store = create(), *copy;
	char *bytes = malloc(LEN);
	size_t at = 0, len;
	const void *read;
	unsigned tag;

	(void)state;
	for (size_t i = 0; i < LEN; i++)
		bytes[i] = (char)(i * 7 >> 3);
	for (int i = 0; i < 64; i++)
		assert_int_equal(store_answer(store, (unsigned)i, bytes, LEN), 0);
	assert_int_equal(store_commit(store), 0);
	copy = read_copy(store);
	for (unsigned i = 0; i < 64; i++) {
		assert_true(store_next_answer(copy, &at, &tag, &read, &len));
		assert_int_equal(tag, i);
		assert_int_equal(len, LEN);
		assert_memory_equal(read, bytes, LEN);
	}
	assert_false(store_next_answer(copy, &at, &tag, &read, &len));
	store_close(copy);
	store_close(store);
	free(bytes);
}

/* ---- requests ---- */

/* A request as the kernel writes it: its first bytes are its length. */
static void *fill_request(struct store *store, uint32_t len, char c)
{
	unsigned char *room = store_request_room(store, 132 * 1024);

	assert_non_null(room);
	assert_memory_equal(room, "\0\0\0\0\0\0\0", 8);
	memset(room, c, len);
	memcpy(room, &len, sizeof(len));
	return room;
}

static void read_request(struct store *store, uint32_t len, char c)
{
	fill_request(store, len, c);
	store_request_add(store, len);
}

static const char *requests(const struct store *store)
{
	static char text[4096];
	size_t at = 0, len = 0, bytes_len;
	const void *bytes;

	text[0] = '\0';
	while (store_next_request(store, &at, &bytes, &bytes_len))
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%zu%c",
		                        len > 0 ? " " : "", bytes_len, ((const char *)bytes)[8]);
	return text;
}

static void requests_are_kept_until_the_commit(void **state)
{
	struct store *store = create();

	(void)state;
	assert_string_equal(requests(store), "");
	read_request(store, 41, 'a');
	read_request(store, 100, 'b');
	store = reopen(store);
	assert_string_equal(requests(store), "41a 100b");
	/* New requests come behind those that are there. */
	read_request(store, 60, 'c');
	fill_request(store, 50, 'd'); /* its reader died before it was added */
	store = reopen(store);
	assert_string_equal(requests(store), "41a 100b 60c 50d");
	(void)store_request_room(store, 4096); /* nothing came */
	store = reopen(store);
	assert_string_equal(requests(store), "41a 100b 60c 50d");
	/* The commit ends the requests, though nothing else has changed. */
	assert_int_equal(store_commit(store), 0);
	assert_string_equal(requests(store), "");
	store = reopen(store);
	assert_string_equal(requests(store), "");
	read_request(store, 48, 'e');
	store = reopen(store);
	assert_string_equal(requests(store), "48e");
	store_close(store);
}

/* The bytes of a longer request may look like one more request behind a short one, after the commit
 * of that number. */
static void forge_request(struct store *store, uint32_t behind, uint64_t commit)
{
	unsigned char *room = store_request_room(store, 4096);
	const uint32_t len = 40;

	memcpy(room + behind, &commit, sizeof(commit));
	memcpy(room + behind + sizeof(commit), &len, sizeof(len));
}

static void bytes_of_an_older_request_are_no_request(void **state)
{
	struct store *store = create();

	(void)state;
	forge_request(store, 48, 1);
	store_request_add(store, 4096);
	assert_int_equal(store_commit(store), 0); /* the first */
	read_request(store, 48, 'a');
	store = reopen(store);
	assert_string_equal(requests(store), "48a");
	store_close(store);

	store = create();
	forge_request(store, 48, 0); /* as if the process was killed while it forgot the request */
	store = reopen(store);
	read_request(store, 48, 'b');
	store = reopen(store);
	assert_string_equal(requests(store), "48b");
	store_close(store);
}

static void there_is_room_for_a_turn_of_long_requests(void **state)
{
	enum { LEN = 132 * 1024 };
	struct store *store = create();
	unsigned count = 0;

	(void)state;
	for (; count < 64; count++)
		read_request(store, LEN, 'x');
	while (store_request_room(store, LEN)) {
		read_request(store, LEN, 'y');
		count++;
	}
	assert_in_range(count, 100, 130);
	assert_int_equal(store_commit(store), 0);
	read_request(store, LEN, 'z');
	store = reopen(store);
	assert_string_equal(requests(store), "135168z");
	store_close(store);
}

/* ---- the half that gets too long ---- */

static void the_same_after_any_number_of_commits(void **state)
{
	struct store *store = create();
	char text[600];

	(void)state;
	memset(text, 'x', sizeof(text));
	for (int i = 0; i < 20000; i++) {
		store_put(store, 1, (uint64_t)(i % 50), text, (size_t)(i % 600));
		if (i % 3 == 0)
			store_drop(store, 1, (uint64_t)(i % 49));
		assert_int_equal(store_commit(store), 0);
		if (i % 997 == 0)
			store = reopen(store);
	}
	assert_in_range(memory_of(store), 1, 3 * 1024 * 1024);
	store_close(store);
}

static unsigned below(unsigned most)
{
	static uint64_t state = 1;

	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(state >> 33) % most;
}

/* While many records are moved, some of them change, come or go. */
static void what_is_moved_is_the_same(void **state)
{
	enum { RECORDS = 30000, LEN = 500, COMMITS = 600 };
	struct store *store = create(), *copy;
	unsigned char text[LEN];
	unsigned *versions = calloc(RECORDS, sizeof(*versions)); /* 0: it is not there */
	unsigned flips = 0;
	uint64_t half = 0;
	size_t live = 0;

	(void)state;
	memset(text, 1, sizeof(text));
	for (unsigned i = 0; i < RECORDS; i++) {
		versions[i] = 1;
		store_put(store, 1, i, text, LEN);
	}
	assert_int_equal(store_commit(store), 0);
	for (unsigned i = 0; i < COMMITS; i++) {
		char said[8];

		for (int k = 0; k < 200; k++) {
			unsigned key = below(RECORDS);

			versions[key] = below(8) > 0 ? versions[key] % 250 + 1 : 0;
			memset(text, (int)versions[key], LEN);
			if (versions[key])
				store_put(store, 1, key, text, LEN);
			else
				store_drop(store, 1, key);
		}
		snprintf(said, sizeof(said), "%u", i);
		answer(store, i, said);
		assert_int_equal(store_commit(store), 0);
		flips += half != (word(store) >> 31 & 1);
		half = word(store) >> 31 & 1;
		if (i % 7 != 0)
			continue;
		if (i % 70 == 0)
			store = reopen(store);
		copy = read_copy(store);
		snprintf((char *)text, LEN, "%u:%s", i, said);
		assert_string_equal(answers(copy), (char *)text);
		for (unsigned k = 0; k < RECORDS; k++) {
			struct record_bytes record;
			bool there = store_get(copy, 1, k, &record);

			expect(there == (versions[k] != 0), "record %u in commit %u", k, i);
			if (there)
				expect(((const char *)record.bytes)[LEN - 1] == (char)versions[k],
				       "record %u in commit %u", k, i);
		}
		store_close(copy);
	}
	assert_in_range(flips, 2, COMMITS);
	for (unsigned k = 0; k < RECORDS; k++)
		live += versions[k] ? LEN : 0;
	while (flips-- > 0)
		assert_int_equal(store_commit(store), 0);
	assert_in_range(memory_of(store), live, live * 5 / 2);
	store_close(store);
	free(versions);
}

/* ---- the head ---- */

static void the_head_is_seen_at_once(void **state)
{
	struct store *store = create();
	int status;

	(void)state;
	assert_int_equal(store_head(store)->deadline_us, INT64_MIN);
	assert_int_equal(store_head(store)->serving, 0);
	assert_false(store_head(store)->spoilt);
	if (fork() == 0) {
		store_head(store)->deadline_us = -5;
		store_head(store)->serving = 77;
		_exit(0);
	}
	assert_true(wait(&status) > 0 && status == 0);
	assert_int_equal(store_head(store)->deadline_us, -5);
	assert_int_equal(store_head(store)->serving, 77);
	store = reopen(store);
	assert_int_equal(store_head(store)->deadline_us, -5);
	assert_int_equal(store_head(store)->serving, 77);
	store_close(store);
}

/* ---- what goes wrong ---- */

static void refused(int fd, const char *expected)
{
	const char *why = NULL;
	struct store *store = NULL;

	assert_int_equal(store_open(fd, &store, &why), -EINVAL);
	assert_string_equal(why, expected);
	assert_int_equal(store_read(fd, &store, &why), -EINVAL);
	assert_string_equal(why, expected);
	assert_null(store);
	assert_true(fcntl(fd, F_GETFD) >= 0);
}

static void without_room_it_is_spoilt(void **state)
{
	struct store *store = create();
	char *big = calloc(1, STORE_RECORD_BYTES + 1);

	(void)state;
	put(store, 1, 1, "one");
	assert_int_equal(store_commit(store), 0);
	store_put(store, 1, 2, big, STORE_RECORD_BYTES + 1);
	answer(store, 1, "said");
	assert_int_equal(store_commit(store), -ENOMEM);
	assert_true(store_head(store)->spoilt);
	refused(store_fd(store), "the state was given up");
	put(store, 1, 1, "two");
	assert_int_equal(store_commit(store), -EIO);
	assert_int_equal(store_answer(store, 1, NULL, 0), -EIO);
	store_close(store);
	free(big);
}

static void a_half_has_an_end(void **state)
{
	struct journal journal;
	const struct journal_item item = {.kind = 1, .len = 8};
	const struct journal_batch *batch;
	const unsigned char *bytes;

	(void)state;
	assert_int_equal(journal_create(&journal, &(const char *){NULL}), 0);
	journal.halves[0].len = JOURNAL_HALF_BYTES - journal_size(item.len);
	journal.halves[0].room = JOURNAL_HALF_BYTES - 256 * 1024;
	assert_int_equal(journal_append(&journal, 0, &item, "12345678", &bytes), 0);
	assert_int_equal(journal_append(&journal, 0, &item, "12345678", &bytes), -ENOSPC);
	journal.halves[0].batch = journal.halves[0].len;
	assert_int_equal(journal_end(&journal, 0, &batch), -ENOSPC);
	journal_close(&journal);
}

static void a_limit_is_no_signal(void **state)
{
	struct rlimit was, limit;
	struct store *store;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	limit = was;
	limit.rlim_cur = 1024 * 1024;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(store_create(&store, &(const char *){NULL}), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
}

static void what_is_no_store_is_refused(void **state)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int empty = memfd_create("empty", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	(void)state;
	refused(null, "there is no state");
	refused(empty, "there is no state"); /* it might be cut off later */
	assert_int_equal(fcntl(empty, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	refused(empty, "the state has another size");
	close(empty);
	close(null);
}

/* Where the halves begin in the memory: behind head and requests. */
#define HALF_AT (4096 + STORE_REQUESTS_BYTES)

static void whatever_is_damaged_is_refused(void **state)
{
	struct store *store = create(), *other = NULL;
	int fd = store_fd(store);
	const char *why;
	size_t len;

	(void)state;
	put(store, 1, 1, "one");
	put(store, 2, 2, "two, and some more");
	assert_int_equal(store_commit(store), 0);
	put(store, 1, 1, "");
	answer(store, 1, "said so");
	assert_int_equal(store_commit(store), 0);
	len = (size_t)(word(store) & INT32_MAX) * 8;
	assert_in_range(len, 100, 1000);
	for (size_t i = 0; i < 16 + 8 + len; i++) {
		size_t at = i < 16   ? i
		            : i < 24 ? offsetof(struct journal_head, commit) + i - 16
		                     : HALF_AT + i - 24;
		unsigned char byte, other_byte;

		assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
		for (unsigned bit = 0; bit < 8; bit++) {
			other_byte = (unsigned char)(byte ^ 1U << bit);
			assert_int_equal(pwrite(fd, &other_byte, 1, (off_t)at), 1);
			expect(store_read(fd, &other, &why) == -EINVAL, "byte %zu, bit %u", at,
			       bit);
			expect(store_open(fd, &other, &why) == -EINVAL, "byte %zu, bit %u", at,
			       bit);
		}
		assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
	}
	expect_committed(store, 1, "1=", "1:said so");
	store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_are_there_from_the_commit_on),
		cmocka_unit_test(records_come_by_their_keys),
		cmocka_unit_test(what_is_as_it_was_is_no_change),
		cmocka_unit_test(gone_and_there_again),
		cmocka_unit_test(a_successor_goes_on),
		cmocka_unit_test(answers_are_those_of_the_last_commit),
		cmocka_unit_test(a_long_answer),
		cmocka_unit_test(requests_are_kept_until_the_commit),
		cmocka_unit_test(bytes_of_an_older_request_are_no_request),
		cmocka_unit_test(there_is_room_for_a_turn_of_long_requests),
		cmocka_unit_test(the_same_after_any_number_of_commits),
		cmocka_unit_test(what_is_moved_is_the_same),
		cmocka_unit_test(the_head_is_seen_at_once),
		cmocka_unit_test(without_room_it_is_spoilt),
		cmocka_unit_test(a_half_has_an_end),
		cmocka_unit_test(a_limit_is_no_signal),
		cmocka_unit_test(what_is_no_store_is_refused),
		cmocka_unit_test(whatever_is_damaged_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
