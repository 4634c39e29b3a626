/* SPDX-License-Identifier: MIT */
#include "store/journal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x65726f7453746f4c)
#define VERSION 2

#define HEAD_BYTES 4096
#define ALL_BYTES (HEAD_BYTES + STORE_REQUESTS_BYTES + 2 * JOURNAL_HALF_BYTES)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
/* So much is populated at a time. A half keeps as much when its memory is given back. */
#define CHUNK ((size_t)256 * 1024)
/* So much is given back at a time: more would stop the loop for too long. */
#define GIVEN_BACK (16 * CHUNK)

/* The commit word: the lower 32 bits of the commit's number, the half, its length in units. */
#define UNIT 8
#define WORD_HALF (UINT64_C(1) << 31)
#define WORD_LEN (WORD_HALF - 1)

/* A request among those of the journal. It counts if the last commit is the one of number
 * `follows`, behind which it was read. */
struct room {
	_Atomic uint64_t follows;
	uint32_t len; /* these are the request's own first bytes */
};

static_assert(sizeof(struct journal_head) <= HEAD_BYTES, "the head has its page");
static_assert(JOURNAL_HALF_BYTES / UNIT <= WORD_LEN, "a length has its place in the word");
static_assert(sizeof(struct journal_item) % UNIT == 0, "items begin at units");
static_assert(sizeof(struct journal_batch) % UNIT == 0, "batches begin at units");

static size_t up_to(size_t len, size_t unit)
{
	return (len + unit - 1) / unit * unit;
}

size_t journal_size(size_t len)
{
	return sizeof(struct journal_item) + up_to(len, UNIT);
}

/* FNV-1a, of 8 bytes at a time. */
static uint64_t batch_sum(const struct journal_batch *batch)
{
	const unsigned char *bytes = (const unsigned char *)batch;
	uint64_t sum = UINT64_C(0xcbf29ce484222325), part;

	for (size_t i = sizeof(batch->sum); i < batch->len; i += sizeof(part)) {
		memcpy(&part, bytes + i, sizeof(part));
		sum = (sum ^ part) * UINT64_C(0x100000001b3);
	}
	return sum;
}

/* ---- the memory ---- */

static off_t place_of(const struct journal *journal, const unsigned char *bytes)
{
	return bytes - (const unsigned char *)journal->head;
}

static unsigned char *requests_of(const struct journal *journal)
{
	return (unsigned char *)journal->head + HEAD_BYTES;
}

/* Gets the memory on Linux before 5.14. Once fallocate(2) has it, writing to it is no error. */
static int populate_by_hand(const struct journal *journal, unsigned char *bytes, size_t len)
{
	if (fallocate(journal->fd, FALLOC_FL_KEEP_SIZE, place_of(journal, bytes), (off_t)len) < 0)
		return -1;
	for (size_t i = 0; i < len; i += HEAD_BYTES) { /* no page is smaller */
		volatile unsigned char *byte = bytes + i;

		*byte = *byte;
	}
	return 0;
}

/* Populates the first `wanted` bytes, of which the first `*room` are populated already. They are
 * then in the page tables too, so that read(2) copies a request to them even while the process is
 * being killed. */
static int populate(const struct journal *journal, unsigned char *bytes, size_t *room,
                    size_t wanted, size_t most)
{
	size_t more;

	if (wanted <= *room)
		return 0;
	if (wanted > most)
		return -ENOSPC;
	more = up_to(wanted - *room, CHUNK);
	if (madvise(bytes + *room, more, MADV_POPULATE_WRITE) < 0) {
		if (errno != EINVAL)
			return errno == EFAULT ? -ENOMEM : -errno;
		if (populate_by_hand(journal, bytes + *room, more) < 0)
			return -errno;
	}
	*room += more;
	return 0;
}

/* A descriptor, or -errno and the call that failed. */
static int make_memory(const char **ret_call)
{
	struct rlimit limit;
	int fd, r;

	*ret_call = "a limit of file sizes (ulimit -f)";
	/* Otherwise SIGXFSZ would come. */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < ALL_BYTES)
		return -EFBIG;
	*ret_call = "memfd_create";
	fd = memfd_create("zklockfs-store", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	*ret_call = "ftruncate";
	r = ftruncate(fd, (off_t)ALL_BYTES);
	if (r == 0) {
		*ret_call = "fcntl";
		r = fcntl(fd, F_ADD_SEALS, SEALS);
	}
	if (r == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

static int map(struct journal *journal, int fd, int protection)
{
	void *memory = mmap(NULL, ALL_BYTES, protection, MAP_SHARED | MAP_NORESERVE, fd, 0);
	unsigned char *halves = (unsigned char *)memory + HEAD_BYTES + STORE_REQUESTS_BYTES;

	if (memory == MAP_FAILED)
		return -errno;
	*journal = (struct journal){
		.fd = fd,
		.head = memory,
		.halves = {{.bytes = halves}, {.bytes = halves + JOURNAL_HALF_BYTES}},
	};
	return 0;
}

int journal_create(struct journal *journal, const char **ret_call)
{
	size_t head_room = 0;
	int fd = make_memory(ret_call), r;

	if (fd < 0)
		return fd;
	*ret_call = "mmap";
	r = map(journal, fd, PROT_READ | PROT_WRITE);
	if (r < 0) {
		close(fd);
		return r;
	}
	*ret_call = "madvise";
	r = populate(journal, (unsigned char *)journal->head, &head_room, CHUNK, CHUNK);
	if (r < 0) {
		journal_close(journal);
		return r;
	}
	*journal->head = (struct journal_head){
		.magic = MAGIC,
		.version = VERSION,
		.of_store.deadline_us = INT64_MIN,
	};
	return 0;
}

void journal_close(struct journal *journal)
{
	if (!journal->copy)
		close(journal->fd);
	journal_leave(journal);
}

void journal_leave(struct journal *journal)
{
	munmap(journal->head, ALL_BYTES);
	free(journal->copy);
}

/* ---- reading ---- */

static const char *check_memory(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (fstat(fd, &st) < 0 || seals < 0 || (seals & SEALS) != SEALS)
		return "there is no state";
	return st.st_size == (off_t)ALL_BYTES ? NULL : "the state has another size";
}

static const char *check_head(const struct journal *journal)
{
	if (journal->head->magic != MAGIC)
		return "this is not the state of a zklockfs";
	if (journal->head->version != VERSION)
		return "the state is of another version";
	return journal->head->of_store.spoilt ? "the state was given up" : NULL;
}

/* How many bytes of a half were ever written to, from its beginning on. */
static size_t filled_bytes(const struct journal *journal, const struct journal_half *half)
{
	off_t begin = place_of(journal, half->bytes), end = lseek(journal->fd, begin, SEEK_HOLE);
	size_t len = end > begin ? (size_t)(end - begin) : 0;

	return len < JOURNAL_HALF_BYTES ? len : JOURNAL_HALF_BYTES;
}

/* What the commit word says of the last commit; all of its bytes must have been written. */
static const char *look_at_commit(struct journal *journal)
{
	uint64_t word = atomic_load_explicit(&journal->head->commit, memory_order_acquire);
	struct journal_half *half;

	journal->good = (word & WORD_HALF) != 0;
	journal->number = word >> 32;
	half = &journal->halves[journal->good];
	half->len = half->batch = (size_t)(word & WORD_LEN) * UNIT;
	if (half->len == 0)
		return NULL;
	return half->len <= filled_bytes(journal, half) ? NULL : "the state is cut off";
}

static const char *map_checked(struct journal *journal, int fd, int protection)
{
	const char *why = check_memory(fd);

	if (!why && map(journal, fd, protection) < 0)
		return "the state cannot be mapped";
	if (why)
		return why;
	why = check_head(journal);
	if (!why)
		why = look_at_commit(journal);
	if (why)
		munmap(journal->head, ALL_BYTES);
	return why;
}

const char *journal_open(struct journal *journal, int fd)
{
	const char *why = map_checked(journal, fd, PROT_READ | PROT_WRITE);
	struct journal_half *half;

	if (why)
		return why;
	half = &journal->halves[journal->good];
	if (populate(journal, half->bytes, &half->room, half->len, JOURNAL_HALF_BYTES) == 0)
		return NULL;
	munmap(journal->head, ALL_BYTES);
	return strerror(ENOMEM);
}

const char *journal_copy(struct journal *journal, int fd)
{
	const char *why = map_checked(journal, fd, PROT_READ);
	struct journal_half *half;

	if (why)
		return why;
	half = &journal->halves[journal->good];
	journal->copy = malloc(half->len + UNIT);
	if (!journal->copy) {
		munmap(journal->head, ALL_BYTES);
		return strerror(ENOMEM);
	}
	memcpy(journal->copy, half->bytes, half->len);
	half->bytes = journal->copy;
	return NULL;
}

/* Zeroes what stands behind the requests that count: the process before may have died in
 * journal_commit(), after the commit and before it wiped what was read before. */
static void wipe_requests_from(const struct journal *journal, size_t at)
{
	(void)fallocate(journal->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
	                place_of(journal, requests_of(journal) + at),
	                (off_t)(STORE_REQUESTS_BYTES - at));
}

void journal_go_on(struct journal *journal)
{
	struct journal_half *other = &journal->halves[!journal->good];
	const void *bytes;
	size_t len;

	while (journal_next_request(journal, &journal->requests, &bytes, &len))
		;
	wipe_requests_from(journal, journal->requests);
	journal->requests_room = journal->requests / CHUNK * CHUNK;
	other->room = filled_bytes(journal, other) / CHUNK * CHUNK;
}

uint64_t journal_commit_of(int fd)
{
	uint64_t word = 0;

	(void)!pread(fd, &word, sizeof(word), offsetof(struct journal_head, commit));
	return word;
}

const struct journal_batch *journal_next_batch(struct journal *journal, size_t *at,
                                               const char **ret_why)
{
	const struct journal_half *half = &journal->halves[journal->good];
	const struct journal_batch *batch = (const void *)(half->bytes + *at);
	size_t left = half->len - *at;

	*ret_why = NULL;
	if (left == 0)
		return NULL;
	if (left < sizeof(*batch) || batch->len < sizeof(*batch) || batch->len > left ||
	    batch->len % UNIT != 0)
		*ret_why = "the state is cut off";
	else if (batch->sum != batch_sum(batch))
		*ret_why = "the state is damaged";
	if (*ret_why)
		return NULL;
	*at += batch->len;
	return batch;
}

bool journal_next_item(const struct journal_batch *batch, size_t *at, struct journal_item *ret_item,
                       const unsigned char **ret_bytes)
{
	const unsigned char *item = (const unsigned char *)(batch + 1) + *at;
	size_t left = batch->len - sizeof(*batch) - *at, bytes;

	if (left < sizeof(*ret_item))
		return false;
	memcpy(ret_item, item, sizeof(*ret_item));
	bytes = ret_item->len == JOURNAL_GONE ? 0 : ret_item->len;
	if (bytes > STORE_RECORD_BYTES || journal_size(bytes) > left)
		return false;
	*ret_bytes = item + sizeof(*ret_item);
	*at += journal_size(bytes);
	return true;
}

static size_t room_size(size_t len)
{
	return offsetof(struct room, len) + up_to(len, UNIT);
}

bool journal_next_request(const struct journal *journal, size_t *at, const void **ret_bytes,
                          size_t *ret_len)
{
	const struct room *room = (const void *)(requests_of(journal) + *at);
	size_t left = STORE_REQUESTS_BYTES - *at;
	uint32_t len;

	if (left < sizeof(*room) || room->follows != journal->number)
		return false;
	len = room->len;
	if (len == 0 || room_size(len) > left)
		return false;
	*ret_bytes = &room->len;
	*ret_len = len;
	*at += room_size(len);
	return true;
}

/* ---- writing ---- */

static int widen_half(const struct journal *journal, struct journal_half *half, size_t len)
{
	return populate(journal, half->bytes, &half->room, half->len + len, JOURNAL_HALF_BYTES);
}

static int begin_batch(const struct journal *journal, struct journal_half *half)
{
	int r;

	if (half->len > half->batch)
		return 0;
	r = widen_half(journal, half, sizeof(struct journal_batch));
	if (r == 0)
		half->len += sizeof(struct journal_batch);
	return r;
}

int journal_append(struct journal *journal, unsigned number, const struct journal_item *item,
                   const void *bytes, const unsigned char **ret_bytes)
{
	struct journal_half *half = &journal->halves[number];
	size_t len = item->len == JOURNAL_GONE ? 0 : item->len, size = journal_size(len);
	unsigned char *to;
	int r = begin_batch(journal, half);

	if (r == 0)
		r = widen_half(journal, half, size);
	if (r < 0)
		return r;
	to = half->bytes + half->len;
	memset(to + size - UNIT, 0, UNIT);
	memcpy(to, item, sizeof(*item));
	if (len > 0)
		memcpy(to + sizeof(*item), bytes, len);
	half->len += size;
	*ret_bytes = to + sizeof(*item);
	return 0;
}

bool journal_is_behind(const struct journal *journal)
{
	const struct journal_half *half = &journal->halves[journal->good];

	return half->len > half->batch;
}

int journal_end(struct journal *journal, unsigned number, const struct journal_batch **ret_batch)
{
	struct journal_half *half = &journal->halves[number];
	struct journal_batch *batch = (void *)(half->bytes + half->batch);
	int r = begin_batch(journal, half);

	if (r < 0)
		return r;
	batch->len = half->len - half->batch;
	batch->number = journal->number + 1;
	batch->sum = batch_sum(batch);
	half->batch = half->len;
	*ret_batch = batch;
	return 0;
}

void journal_commit(struct journal *journal, unsigned number)
{
	uint64_t word = journal->halves[number].len / UNIT;

	journal->good = number;
	journal->number++;
	word |= journal->number << 32 | (number ? WORD_HALF : 0);
	atomic_store_explicit(&journal->head->commit, word, memory_order_release);
	/* A request has bytes that a process chose. Behind a shorter request they would be taken
	 * for a request of its own. They are needed until the commit, but not after it. */
	atomic_thread_fence(memory_order_release);
	memset(requests_of(journal), 0, journal->requests);
	journal->requests = 0;
}

void journal_give_back(struct journal *journal)
{
	struct journal_half *half = &journal->halves[!journal->good];
	size_t end = half->room;

	half->len = half->batch = 0;
	if (end <= CHUNK)
		return;
	half->room = end > GIVEN_BACK + CHUNK ? end - GIVEN_BACK : CHUNK;
	(void)fallocate(journal->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
	                place_of(journal, half->bytes + half->room), (off_t)(end - half->room));
}

void *journal_request_room(struct journal *journal, size_t size)
{
	struct room *room = (void *)(requests_of(journal) + journal->requests);
	size_t end = journal->requests + room_size(size) + sizeof(*room);

	assert(!journal->copy && size >= UNIT);
	if (populate(journal, requests_of(journal), &journal->requests_room, end,
	             STORE_REQUESTS_BYTES) < 0)
		return NULL;
	memset(&room->len, 0, UNIT);
	atomic_store_explicit(&room->follows, journal->number, memory_order_release);
	return &room->len;
}

void journal_request_add(struct journal *journal, size_t len)
{
	journal->requests += room_size(len);
	assert(journal->requests <= journal->requests_room);
}
