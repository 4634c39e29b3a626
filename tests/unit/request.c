/* SPDX-License-Identifier: MIT
 *
 * The records of requests that wait: one that no kernel can have sent is refused. It would be
 * served, and read beyond its end.
 */
#include "request/request.h"

#include "request/frontend.h"
#include "unit.h"

#include <linux/fuse.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

static struct frontend front;
static jmp_buf refused;
static const char *why_refused;

static __attribute__((noreturn)) void refuse(const char *why)
{
	why_refused = why;
	longjmp(refused, 1);
}

/* NULL: the request is taken from its record. */
static const char *read_record(const void *request, size_t len)
{
	struct codec written = {0}, read = {.loads = true, .give_up = refuse};
	bool begun = false;

	codec_begin(&written);
	(void)codec_bytes(&written, request, &len);
	CODEC_BOOL(&written, begun);
	codec_read(&read, written.data, written.len);
	why_refused = NULL;
	if (setjmp(refused) == 0)
		request_record_save_load(&read, &front, NULL);
	codec_end(&written);
	return why_refused;
}

static void requests(void **state)
{
	enum { HEADER = sizeof(struct fuse_in_header), POLL = sizeof(struct fuse_poll_in) };
	static const struct {
		uint32_t opcode;
		size_t len, said; /* the length of the record, and that in the header */
		bool good;
	} rows[] = {
		{FUSE_GETATTR, HEADER, HEADER, true},
		{FUSE_GETATTR, HEADER - 1, HEADER - 1, false},
		{FUSE_GETATTR, 0, 0, false},
		{FUSE_GETATTR, HEADER, HEADER + 1, false},
		{FUSE_GETATTR, HEADER + 1, HEADER, false},
		{FUSE_GETATTR, HEADER + 9, HEADER + 9, true},
		{FUSE_WRITE, REQUEST_BYTES, REQUEST_BYTES, true},
		{FUSE_WRITE, REQUEST_BYTES + 1, REQUEST_BYTES + 1, false},
		{FUSE_POLL, HEADER, HEADER, false},
		{FUSE_POLL, HEADER + POLL - 1, HEADER + POLL - 1, false},
		{FUSE_POLL, HEADER + POLL, HEADER + POLL, true},
	};
	unsigned char *bytes = calloc(1, REQUEST_BYTES + 1);

	(void)state;
	assert_non_null(bytes);
	for (size_t i = 0; i < LENGTH(rows); i++) {
		const struct fuse_in_header header = {
			.opcode = rows[i].opcode, .len = (uint32_t)rows[i].said, .unique = i + 1};
		const char *why;

		memcpy(bytes, &header, sizeof(header));
		why = read_record(bytes, rows[i].len);
		expect(!why == rows[i].good, "row %zu: %s", i, why ? why : "it is taken");
		expect(!request_find(&front, i + 1) != rows[i].good, "row %zu", i);
	}
	requests_finish(&front);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
