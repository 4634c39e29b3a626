/* SPDX-License-Identifier: MIT
 *
 * Answers to the kernel: they are kept back, in order, and each leaves by one write. Too many bytes
 * leave at once. One that the kernel cannot read is told of.
 */
#include "host/log.h"
#include "request/answers.h"
#include "request/frontend.h"
#include "store/store.h"

#include "unit.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

static struct frontend front;
static uint64_t refused[8];
static unsigned refused_count;

struct open_file *open_file_find(const struct frontend *of, uint64_t fh)
{
	static struct open_file file;

	assert_ptr_equal(of, &front);
	file.fh = fh;
	return &file;
}

void open_file_close(struct open_file *file)
{
	refused[refused_count++] = file->fh;
}

struct open_file *open_file_next(const struct frontend *of, uint32_t *slot)
{
	(void)of;
	(void)slot;
	return NULL;
}

static unsigned told;

void log_line_of(uid_t uid, enum lc_level level, const char *format, ...)
{
	(void)uid, (void)format;
	assert_int_equal(level, LC_ERROR);
	told++;
}

static int begin(void **state)
{
	struct store *store;

	(void)state;
	refused_count = 0;
	front.answers = (struct answers){.fd = memfd_create("device", MFD_CLOEXEC)};
	if (front.answers.fd < 0 || store_create(&store, &(const char *){NULL}) < 0)
		return -1;
	front.records.store = store;
	return 0;
}

static int end(void **state)
{
	(void)state;
	if (front.answers.fd >= 0)
		close(front.answers.fd);
	answers_end(&front);
	store_close(front.records.store);
	return 0;
}

static void keep(uint64_t unique, bool opens, void *body, size_t len)
{
	struct fuse_out_header header = {.len = (uint32_t)(sizeof(header) + len), .unique = unique};

	answers_add(&front, opens, &header, body);
	header.unique = 0; /* the bytes are the caller's */
}

static size_t written(void)
{
	return (size_t)lseek(front.answers.fd, 0, SEEK_END);
}

static void check_written(size_t *at, uint64_t unique, const void *body, size_t len)
{
	struct fuse_out_header header;
	static char bytes[4096];

	assert_int_equal(pread(front.answers.fd, &header, sizeof(header), (off_t)*at),
	                 sizeof(header));
	assert_int_equal(header.unique, unique);
	assert_int_equal(header.len, sizeof(header) + len);
	assert_int_equal(pread(front.answers.fd, bytes, len, (off_t)(*at + sizeof(header))), len);
	assert_memory_equal(bytes, body, len);
	*at += header.len;
}

static void kept_until_the_end(void **state)
{
	char texts[][8] = {"", "a", "seven..", "eight"};
	size_t at = 0;

	(void)state;
	for (int turn = 0; turn < 3; turn++) {
		assert_int_equal(front.answers.len, 0);
		for (size_t i = 0; i < LENGTH(texts); i++)
			keep(i + 1, false, texts[i], strlen(texts[i]));
		assert_true(front.answers.len > 0);
		assert_int_equal(written(), at);
		answers_emit(&front, /* closes = */ true);
		for (size_t i = 0; i < LENGTH(texts); i++)
			check_written(&at, i + 1, texts[i], strlen(texts[i]));
		assert_int_equal(written(), at);
	}
	assert_int_equal(refused_count, 0);
}

static void open_files_that_nobody_took(void **state)
{
	struct fuse_open_out out = {.fh = 77};

	(void)state;
	close(front.answers.fd);
	front.answers.fd = open("/dev/null", O_RDONLY | O_CLOEXEC); /* takes nothing */
	keep(1, false, &out, sizeof(out));
	keep(2, true, &out, sizeof(out));
	out.fh = 78;
	keep(3, true, &out, sizeof(out));
	assert_int_equal(refused_count, 0);
	answers_emit(&front, /* closes = */ true);
	assert_int_equal(refused_count, 2);
	assert_int_equal(refused[0], 77);
	assert_int_equal(refused[1], 78);
	assert_int_equal(front.answers.len, 0);
}

/* Writing to a timer is EINVAL, as writing an answer of a wrong length is. */
static void an_answer_that_cannot_be_read(void **state)
{
	struct fuse_open_out out = {.fh = 79};

	(void)state;
	close(front.answers.fd);
	front.answers.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	told = 0;
	keep(1, false, &out, sizeof(out));
	keep(2, true, &out, sizeof(out));
	answers_emit(&front, /* closes = */ true);
	assert_int_equal(told, 2);
	assert_int_equal(refused_count, 1);
	close(front.answers.fd);
	front.answers.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	keep(3, false, &out, sizeof(out));
	answers_emit(&front, /* closes = */ true);
	assert_int_equal(told, 2); /* EBADF */
}

static void too_much_leaves_at_once(void **state)
{
	char text[4000];
	uint64_t count = 0;
	size_t at = 0;

	(void)state;
	memset(text, 'x', sizeof(text));
	while (written() == 0) {
		assert_in_range(front.answers.len, 0, ANSWERS_MAX);
		keep(++count, false, text, sizeof(text));
	}
	assert_in_range(count, ANSWERS_MAX / 4096, ANSWERS_MAX / 4000 + 1);
	assert_int_equal(front.answers.len, 0);
	assert_true(store_head(front.records.store)->spoilt);
	keep(++count, false, text, sizeof(text));
	answers_emit(&front, /* closes = */ true);
	for (uint64_t i = 1; i <= count; i++)
		check_written(&at, i, text, sizeof(text));
	assert_int_equal(written(), at);
}

/* The daemon dies before it sends the answers: the next daemon sends them. */
static void told_by_the_next_daemon(void **state)
{
	char text[] = "text", more[] = "more";
	struct store *left;
	const char *why;
	size_t at = 0;

	(void)state;
	keep(1, false, text, 4);
	keep(2, true, more, 4);
	answers_record(&front);
	assert_int_equal(store_commit(front.records.store), 0);
	assert_int_equal(written(), 0);
	assert_int_equal(store_open(dup(store_fd(front.records.store)), &left, &why), 0);
	store_close(front.records.store);
	front.records.store = left;
	answers_emit_again(&front);
	check_written(&at, 1, text, 4);
	check_written(&at, 2, more, 4);
	assert_int_equal(written(), at);
	assert_int_equal(refused_count, 0);
}

static void nobody_is_there(void **state)
{
	char text[] = "text";

	(void)state;
	close(front.answers.fd);
	keep(1, false, text, sizeof(text));
	answers_end(&front);
	keep(2, true, text, sizeof(text));
	assert_int_equal(front.answers.len, 0);
	answers_emit(&front, /* closes = */ true);
	assert_int_equal(refused_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(kept_until_the_end, begin, end),
		cmocka_unit_test_setup_teardown(open_files_that_nobody_took, begin, end),
		cmocka_unit_test_setup_teardown(an_answer_that_cannot_be_read, begin, end),
		cmocka_unit_test_setup_teardown(too_much_leaves_at_once, begin, end),
		cmocka_unit_test_setup_teardown(told_by_the_next_daemon, begin, end),
		cmocka_unit_test_setup_teardown(nobody_is_there, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
