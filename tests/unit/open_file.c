/* SPDX-License-Identifier: MIT
 *
 * Numbers of open files: no number names two files, also for the next process; and the places of
 * closed files are used again, there, too.
 */
#include "request/open_file.h"

#include "refused.h"
#include "request/frontend.h"
#include "unit.h"

#include <string.h>

static const struct file_ops ops = {.size = sizeof(struct open_file)};

static struct open_file *open_one(struct frontend *front)
{
	struct open_file *file = open_file_new(front, &ops, NULL, 7);

	assert_non_null(file);
	assert_ptr_equal(open_file_find(front, file->fh), file);
	return file;
}

static void numbers(void **state)
{
	struct frontend front = {0};
	struct open_file *first = open_one(&front), *second = open_one(&front);
	uint64_t closed = second->fh;

	(void)state;
	open_file_close(second);
	assert_null(open_file_find(&front, closed));
	second = open_one(&front);
	assert_int_not_equal(second->fh, closed);
	assert_null(open_file_find(&front, closed));
	assert_null(open_file_find(&front, 0));
	assert_int_equal(front.open_files.count, 2);
	open_file_close(first);
	open_file_close(second);
	open_files_finish(&front.open_files);
	assert_int_equal(front.files.bytes, 0);
}

/* The file is ended in the process that goes, and returned as the next one has it. */
static struct open_file *hand_over(struct frontend *from, struct frontend *to,
                                   struct open_file *file)
{
	struct codec written = {0}, read = {.loads = true, .give_up = refuse};

	codec_begin(&written);
	open_files_save_load(&written, &from->open_files);
	open_file_save_load(&written, from, &ops, file);
	codec_read(&read, written.data, written.len);
	open_files_save_load(&read, &to->open_files);
	open_file_close(file);
	file = open_file_save_load(&read, to, &ops, NULL);
	codec_read_all(&read);
	open_files_loaded(&read, &to->open_files);
	codec_end(&written);
	return file;
}

static void next_process(void **state)
{
	struct frontend front = {0}, next = {0};
	struct open_file *first = open_one(&front), *middle = open_one(&front),
			 *last = open_one(&front);
	uint64_t closed[] = {first->fh, middle->fh}, kept = last->fh;

	(void)state;
	open_file_close(first);
	open_file_close(middle);
	last = hand_over(&front, &next, last);
	open_files_finish(&front.open_files);
	assert_int_equal(last->fh, kept);
	assert_int_equal(budget_uid(last), 7);
	assert_ptr_equal(open_file_find(&next, kept), last);
	first = open_one(&next);
	middle = open_one(&next);
	assert_int_equal(next.open_files.count, 3);
	for (int i = 0; i < 2; i++)
		assert_null(open_file_find(&next, closed[i]));
	open_file_close(first);
	open_file_close(middle);
	open_file_close(last);
	open_files_finish(&next.open_files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(next_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
