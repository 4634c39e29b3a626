/* SPDX-License-Identifier: MIT
 *
 * A store that a daemon has left is not trusted: some of its bytes are wrong, and the sums of its
 * batches are right again. It is refused, or all its contents can be read and it goes on.
 */
#include "fuzz.h"

#include "store/journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HEAD_BYTES 4096
#define LOG_BYTES (64 * 1024)
#define BATCHES_MAX 16
#define KINDS 4

/* ---- a store that was left ---- */

static unsigned char *memory;   /* of the store: head and requests; */
static unsigned char *log_half; /*   where the half in use begins */
static size_t batches[BATCHES_MAX], batch_count;

static size_t log_len(void)
{
	const struct journal_head *head = (const void *)memory;

	return (size_t)(head->commit & INT32_MAX) * 8;
}

static void fill(unsigned char *bytes, size_t len)
{
	memset(bytes, next_byte(), len);
}

static void take_turn(struct store *store)
{
	unsigned char bytes[255];
	unsigned what = next_byte();

	for (unsigned i = 0; i < (what & 3); i++) {
		size_t len = next_byte();

		fill(bytes, len);
		store_put(store, 1 + next_byte() % KINDS, next_byte() % 8, bytes, len);
	}
	if (what & 4)
		store_drop(store, 1 + next_byte() % KINDS, next_byte() % 8);
	for (unsigned i = 0; i < (what >> 3 & 3); i++)
		MUST(store_answer(store, i, bytes, next_byte()) == 0);
	batches[batch_count] = log_len();
	MUST(store_commit(store) == 0);
	batch_count += batches[batch_count] != log_len();
}

static void read_requests(struct store *store)
{
	for (unsigned i = next_byte() & 3; i > 0; i--) {
		uint32_t len = 40 + next_byte();
		unsigned char *room = store_request_room(store, 512);

		fill(room, len);
		memcpy(room, &len, sizeof(len));
		store_request_add(store, len);
	}
}

static struct store *make_store(void)
{
	struct store *store;

	MUST(store_create(&store, &(const char *){NULL}) == 0);
	memory = mmap(NULL, HEAD_BYTES + STORE_REQUESTS_BYTES + LOG_BYTES, PROT_READ | PROT_WRITE,
	              MAP_SHARED, store_fd(store), 0);
	MUST(memory != MAP_FAILED);
	log_half = memory + HEAD_BYTES + STORE_REQUESTS_BYTES;
	batch_count = 0;
	for (unsigned i = next_byte() % BATCHES_MAX; i > 0; i--)
		take_turn(store);
	read_requests(store);
	return store;
}

/* ---- spoiling it ---- */

static void seal(size_t at, size_t end)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325), part;

	for (size_t i = at + sizeof(sum); i + sizeof(part) <= end; i += sizeof(part)) {
		memcpy(&part, log_half + i, sizeof(part));
		sum = (sum ^ part) * UINT64_C(0x100000001b3);
	}
	memcpy(log_half + at, &sum, sizeof(sum));
}

static void spoil_bytes(unsigned char *bytes, size_t len)
{
	for (unsigned count = next_byte() & 7; count > 0 && len > 0; count--) {
		size_t at = (size_t)next_byte() << 8 | next_byte();

		bytes[at % len] = next_byte();
	}
}

static void spoil(void)
{
	size_t len = log_len();

	spoil_bytes(log_half, len);
	for (size_t i = 0; i < batch_count; i++)
		seal(batches[i], i + 1 < batch_count ? batches[i + 1] : len);
	spoil_bytes(memory + HEAD_BYTES, 1024);
	if (next_byte() & 1)
		spoil_bytes(memory + offsetof(struct journal_head, commit), sizeof(uint64_t));
}

/* ---- opening it ---- */

/* Reads each byte, so that a sanitizer checks its place. */
static uint64_t sum_of(const void *bytes, size_t len)
{
	uint64_t sum = len;

	for (size_t i = 0; i < len; i++)
		sum = sum * 31 + ((const unsigned char *)bytes)[i];
	return sum;
}

static uint64_t sum_of_kind(const struct store *store, unsigned kind)
{
	struct record_bytes *all;
	ssize_t count = store_list(store, kind, &all);
	uint64_t sum = (uint64_t)count;

	MUST(count >= 0);
	for (ssize_t i = 0; i < count; i++) {
		MUST(all[i].kind == kind && (i == 0 || all[i].key > all[i - 1].key));
		sum = sum * 31 + all[i].key + sum_of(all[i].bytes, all[i].len);
	}
	free(all);
	return sum;
}

static uint64_t sum_of_all(const struct store *store)
{
	uint64_t sum = 0;
	size_t at = 0, len;
	const void *bytes;
	unsigned tag;

	for (unsigned kind = 1; kind <= STORE_KIND_MAX; kind++)
		sum = sum * 31 + sum_of_kind(store, kind);
	while (store_next_answer(store, &at, &tag, &bytes, &len))
		sum = sum * 31 + tag + sum_of(bytes, len);
	for (at = 0; store_next_request(store, &at, &bytes, &len);)
		sum = sum * 31 + sum_of(bytes, len);
	return sum;
}

static struct store *open_again(struct store *store)
{
	int fd = dup(store_fd(store));
	const char *why;

	store_close(store);
	MUST(store_open(fd, &store, &why) == 0);
	return store;
}

static void go_on(struct store *store)
{
	uint64_t sum;

	input_left = input_left < 64 ? input_left : 64;
	batch_count = 0;
	for (int i = 0; i < 3; i++) {
		take_turn(store);
		batch_count = 0;
	}
	read_requests(store);
	sum = sum_of_all(store);
	store = open_again(store);
	MUST(sum_of_all(store) == sum);
	store_close(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct store *left, *copy, *store;
	const char *why;
	uint64_t sum;
	int fd;

	input = data;
	input_left = size;
	left = make_store();
	spoil();
	fd = dup(store_fd(left));
	store_close(left);
	if (store_read(fd, &copy, &why) == 0) {
		sum = sum_of_all(copy);
		store_close(copy);
		MUST(store_open(fd, &store, &why) == 0);
		MUST(sum_of_all(store) == sum);
		go_on(store);
	} else {
		MUST(store_open(fd, &store, &why) < 0 && *why);
		close(fd);
	}
	munmap(memory, HEAD_BYTES + STORE_REQUESTS_BYTES + LOG_BYTES);
	return 0;
}
