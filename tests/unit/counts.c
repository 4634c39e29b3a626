/* SPDX-License-Identifier: MIT
 *
 * Counts go on in the next daemon by their names: what it does not count is passed over, and what
 * the one before did not count begins at 0.
 */
#include "host/counts.h"

#include "refused.h"

static void read_counts(struct codec *written)
{
	struct codec read = {.loads = true, .give_up = refuse};

	counted = (struct counts){0};
	codec_read(&read, written->data, written->len);
	counts_save_load(&read);
	codec_read_all(&read);
	codec_end(written);
}

static void written_and_read(void **state)
{
	struct codec written = {0};

	(void)state;
	counted = (struct counts){.reloads = 3, .adoptions = 1, .logs_ended = 7};
	codec_begin(&written);
	counts_save_load(&written);
	read_counts(&written);
	assert_int_equal(counted.reloads, 3);
	assert_int_equal(counted.adoptions, 1);
	assert_int_equal(counted.log_lines_not_written, 0);
	assert_int_equal(counted.logs_ended, 7);
}

static void of_another_version(void **state)
{
	struct codec written = {0};

	(void)state;
	codec_begin(&written);
	(void)codec_count(&written, 2);
	(void)codec_text(&written, "what nobody counts");
	(void)codec_number(&written, 9, INT64_MIN, INT64_MAX);
	(void)codec_text(&written, "adoptions");
	(void)codec_number(&written, 4, INT64_MIN, INT64_MAX);
	read_counts(&written);
	assert_int_equal(counted.adoptions, 4);
	assert_int_equal(counted.reloads, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_and_read),
		cmocka_unit_test(of_another_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
