/* SPDX-License-Identifier: MIT
 *
 * Counts go on in the next daemon by their names: what it does not count is passed over, and what
 * the one before did not count begins at 0.
 */
#include "host/counts.h"

#include "carried.h"

static void read_counts(struct carry *written)
{
	struct carry read = {.loads = true, .refuse = refuse};

	counted = (struct counts){0};
	carry_read(&read, written->data, written->len);
	counts_carry(&read);
	carry_read_all(&read);
	carry_end(written);
}

static void written_and_read(void **state)
{
	struct carry written = {0};

	(void)state;
	counted = (struct counts){.reloads = 3, .adoptions = 1, .logs_ended = 7};
	carry_begin(&written);
	counts_carry(&written);
	read_counts(&written);
	assert_int_equal(counted.reloads, 3);
	assert_int_equal(counted.adoptions, 1);
	assert_int_equal(counted.log_lines_not_written, 0);
	assert_int_equal(counted.logs_ended, 7);
}

static void of_another_version(void **state)
{
	struct carry written = {0};

	(void)state;
	carry_begin(&written);
	(void)carry_count(&written, 2);
	(void)carry_text(&written, "what nobody counts");
	(void)carry_number(&written, 9, INT64_MIN, INT64_MAX);
	(void)carry_text(&written, "adoptions");
	(void)carry_number(&written, 4, INT64_MIN, INT64_MAX);
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
