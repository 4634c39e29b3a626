/* SPDX-License-Identifier: MIT
 *
 * The history of holds that have ended: the last holds, limited in number and bytes, and counts of
 * all holds; a user other than root sees only the user's own holds.
 */
#include "tree/history.h"

#include "refused.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct history_hold hold_of(const char *lock, uid_t uid, const char *reason)
{
	return (struct history_hold){
		.end = HISTORY_CLOSED,
		.pid = 42,
		.uid = uid,
		.command = "a b",
		.since_ms = 1700000000123,
		.ended_ms = 1700000012345,
		.waited_ms = 1500,
		.held_ms = 12222,
		.token = 9,
		.lock = lock,
		.by = "",
		.reason = reason,
	};
}

static unsigned count_lines(const struct history *history, uid_t uid)
{
	struct text text = {0};
	unsigned lines = 0;

	assert_int_equal(history_view(&(struct facts){.history = history, .reader = uid}, &text),
	                 0);
	for (size_t i = 0; i < text.len; i++)
		lines += text.data[i] == '\n';
	free(text.data);
	return lines - 1;
}

static void lines(void **state)
{
	static const char wanted[] =
		"ENDED LOCK MODE WAITED HELD END PID UID COMMAND SINCE TOKEN BY REASON\n"
		"2023-11-14T22:13:32.345Z a\\040b exclusive 1.5 12.2 closed 42 7 a\\040b "
		"2023-11-14T22:13:20.123Z 9 - -\n"
		"2023-11-14T22:13:32.345Z c shared 1.5 12.2 evicted - 7 - "
		"2023-11-14T22:13:20.123Z - uid\\0400 why\\040not\n";
	struct history history = {0};
	struct history_hold hold = hold_of("a b", 7, "");
	struct text text = {0};

	(void)state;
	history_add(&history, &hold, 0);
	hold = hold_of("c", 7, "why not");
	hold.pid = 0;
	hold.token = 0;
	hold.mode = LC_SHARED;
	hold.end = HISTORY_EVICTED;
	hold.by = "uid 0";
	history_add(&history, &hold, 0);
	assert_int_equal(history_view(&(struct facts){.history = &history}, &text), 0);
	assert_int_equal(text.len, sizeof(wanted) - 1);
	assert_memory_equal(text.data, wanted, text.len);
	free(text.data);
	history_finish(&history);
}

static void bounds(void **state)
{
	static char reason[LC_REASON_MAX + 1];
	struct history history = {0};
	struct history_hold hold = hold_of("build", 0, "");
	struct text text;

	(void)state;
	for (unsigned i = 0; i < 3 * HISTORY_HOLDS; i++)
		history_add(&history, &hold, 0);
	assert_int_equal(history.count, HISTORY_HOLDS);
	assert_int_equal(count_lines(&history, 0), HISTORY_HOLDS);
	assert_true(history.bytes < HISTORY_BYTES);

	/* Every byte of this reason takes four bytes in a line. */
	memset(reason, ' ', LC_REASON_MAX);
	hold.reason = reason;
	for (unsigned i = 0; i < HISTORY_HOLDS; i++)
		history_add(&history, &hold, 0);
	assert_true(history.bytes <= HISTORY_BYTES && history.bytes > HISTORY_BYTES / 2);
	assert_true(history.count < HISTORY_HOLDS);
	assert_int_equal(history_view(&(struct facts){.history = &history}, &text), 0);
	assert_int_equal(text.data[text.len - 1], '\n');
	free(text.data);
	assert_int_equal(count_lines(&history, 0), history.count);
	history_finish(&history);
	assert_int_equal(history.count + history.bytes, 0);
}

static void users(void **state)
{
	struct history history = {0};

	(void)state;
	for (uid_t uid = 0; uid < 10; uid++) {
		struct history_hold hold = hold_of("build", uid % 3, "");

		history_add(&history, &hold, 0);
	}
	assert_int_equal(count_lines(&history, 0), 10);
	assert_int_equal(count_lines(&history, 1), 3);
	assert_int_equal(count_lines(&history, 5), 0);
	history_finish(&history);
}

/* Who holds very often leaves the holds of others in it. */
static void nobody_hides_another(void **state)
{
	struct history history = {0};
	struct history_hold hold = hold_of("build", 7, "");

	(void)state;
	for (uid_t uid = 0; uid < 5; uid++) {
		hold.uid = uid;
		history_add(&history, &hold, 0);
	}
	for (unsigned i = 0; i < 2 * HISTORY_HOLDS; i++) {
		hold.uid = 7;
		history_add(&history, &hold, 0);
	}
	for (uid_t uid = 1; uid < 5; uid++)
		assert_int_equal(count_lines(&history, uid), 1);
	assert_int_equal(count_lines(&history, 7), HISTORY_HOLDS - 5);
	/* Nor do many users hide root's. */
	hold.uid = 0;
	for (unsigned i = 0; i < 20; i++)
		history_add(&history, &hold, 0);
	for (uid_t uid = 1000; uid < 1000 + 2 * HISTORY_HOLDS; uid++) {
		hold.uid = uid;
		history_add(&history, &hold, 0);
	}
	assert_int_equal(history.count, HISTORY_HOLDS);
	assert_int_equal(HASH_COUNT(history.users), HISTORY_HOLDS - 20); /* root has 21 */
	history_finish(&history);
	assert_null(history.users);
}

/* What the next process has of them. */
static void hand_over_counts(struct history *from, struct history *ret_to)
{
	struct codec written = {0}, read = {.loads = true, .give_up = refuse};

	codec_begin(&written);
	history_counts_save_load(&written, from);
	codec_read(&read, written.data, written.len);
	history_counts_save_load(&read, ret_to);
	codec_read_all(&read);
	codec_end(&written);
}

static void counts(void **state)
{
	struct history history = {0}, next = {0};
	struct history_hold hold = hold_of("build", 0, "");

	(void)state;
	history_add(&history, &hold, 0);
	history_add(&history, &hold, history_bounds_us[0]);
	history_add(&history, &hold, history_bounds_us[0] + 1);
	history_add(&history, &hold, INT64_C(1) << 40);
	history_add(&history, &hold, history_bounds_us[HISTORY_BUCKETS - 1] + 1);
	assert_int_equal(history.buckets[0], 2);
	assert_int_equal(history.buckets[1], 1);
	assert_int_equal(history.buckets[HISTORY_BUCKETS], 2);
	for (int i = 1; i < HISTORY_BUCKETS; i++)
		assert_true(history_bounds_us[i] > history_bounds_us[i - 1]);
	hand_over_counts(&history, &next);
	assert_memory_equal(next.buckets, history.buckets, sizeof(next.buckets));
	assert_int_equal(next.held_us, history.held_us);
	history_finish(&history);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),  cmocka_unit_test(bounds),
		cmocka_unit_test(users),  cmocka_unit_test(nobody_hides_another),
		cmocka_unit_test(counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
