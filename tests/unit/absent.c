/* SPDX-License-Identifier: MIT
 *
 * Names that are looked up in vain: when a directory is crowded, what a listing says, and what
 * makes it worthless.
 */
#include "tree/absent.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#define MS INT64_C(1000)
#define SECOND INT64_C(1000000)

static struct absents absents;

static int finish(void **state)
{
	(void)state;
	absents_finish(&absents);
	assert_int_equal(absents.count, 0);
	assert_int_equal(absents.bytes, 0);
	return 0;
}

static void learn(uint64_t ino, const char *const *locks, size_t count, int64_t asked_us)
{
	absent_learn(&absents, ino, &(struct lc_listing){.locks = locks, .lock_count = count},
	             asked_us);
}

static const char *const locks[] = {"a", "b", "build", "z"};

static enum absent_answer ask(const char *name, int64_t now_us)
{
	return absent_ask(&absents, 5, name, now_us);
}

/* Quick ones: more than about twenty in a second. */
static void many_make_a_crowd(void **state)
{
	int64_t now = 100 * SECOND;

	(void)state;
	assert_false(absent_is_crowded(&absents, 5, 7, now));
	for (int i = 0; i < 20; i++)
		absent_note(&absents, 5, 7, now, 0);
	assert_false(absent_is_crowded(&absents, 5, 7, now));
	absent_note(&absents, 5, 7, now, 0);
	assert_true(absent_is_crowded(&absents, 5, 7, now));
	assert_false(absent_is_crowded(&absents, 6, 7, now));
	assert_false(absent_is_crowded(&absents, 5, 7, now + 100 * MS));
}

/* One after the other, ten in a second, by a program that waits for a name. */
static void few_do_not(void **state)
{
	int64_t now = 100 * SECOND;

	(void)state;
	for (int i = 0; i < 1000; i++, now += 100 * MS) {
		absent_note(&absents, 5, 7, now, 10 * MS);
		assert_false(absent_is_crowded(&absents, 5, 7, now));
	}
}

/* However many there were, it is over two seconds later. */
static void it_is_over(void **state)
{
	int64_t now = 100 * SECOND;

	(void)state;
	for (int i = 0; i < 1000; i++)
		absent_note(&absents, 5, 7, now, 2 * SECOND);
	assert_true(absent_is_crowded(&absents, 5, 7, now + 999 * MS));
	assert_false(absent_is_crowded(&absents, 5, 7, now + SECOND));
}

/* One that waited for two seconds for its user's turn. */
static void a_slow_one_makes_a_crowd(void **state)
{
	(void)state;
	absent_note(&absents, 5, 7, 100 * SECOND, 2 * SECOND);
	assert_true(absent_is_crowded(&absents, 5, 7, 100 * SECOND));
}

static void root_is_no_crowd(void **state)
{
	(void)state;
	absent_note(&absents, 5, 0, 100 * SECOND, 2 * SECOND);
	assert_false(absent_is_crowded(&absents, 5, 7, 100 * SECOND));
	absent_note(&absents, 5, 7, 100 * SECOND, 2 * SECOND);
	assert_false(absent_is_crowded(&absents, 5, 0, 100 * SECOND));
}

static void what_a_listing_says(void **state)
{
	(void)state;
	assert_int_equal(ask("a", 0), ABSENT_UNKNOWN);
	learn(5, locks, LENGTH(locks), 10 * SECOND);
	for (size_t i = 0; i < LENGTH(locks); i++)
		assert_int_equal(ask(locks[i], 10 * SECOND), ABSENT_MAY_BE_THERE);
	assert_int_equal(ask("c", 11 * SECOND - 1), ABSENT_NOT_THERE);
	assert_int_equal(ask("c", 11 * SECOND), ABSENT_UNKNOWN);
	assert_int_equal(absent_ask(&absents, 6, "c", 10 * SECOND), ABSENT_UNKNOWN);
	learn(5, NULL, 0, 12 * SECOND);
	assert_int_equal(ask("a", 12 * SECOND), ABSENT_NOT_THERE);
}

/* A name that this mount has made, or found. */
static void what_is_there_is_seen(void **state)
{
	(void)state;
	learn(5, locks, LENGTH(locks), 10 * SECOND);
	absent_found(&absents, 5, "build", 10 * SECOND + 1); /* as it says */
	assert_int_equal(ask("c", 10 * SECOND + 2), ABSENT_NOT_THERE);
	absent_found(&absents, 5, "c", 10 * SECOND + 3);
	assert_int_equal(ask("c", 10 * SECOND + 4), ABSENT_UNKNOWN);
	learn(5, locks, LENGTH(locks), 10 * SECOND + 3); /* may have been asked for before */
	assert_int_equal(ask("c", 10 * SECOND + 4), ABSENT_UNKNOWN);
	learn(5, locks, LENGTH(locks), 10 * SECOND + 4);
	assert_int_equal(ask("d", 10 * SECOND + 4), ABSENT_NOT_THERE);
}

static void memory_is_bounded(void **state)
{
	static char texts[3000][200];
	static const char *many[LENGTH(texts)];

	(void)state;
	for (size_t i = 0; i < LENGTH(texts); i++) {
		snprintf(texts[i], sizeof(texts[i]), "%0199zu", i);
		many[i] = texts[i];
	}
	for (uint64_t ino = 0; ino < 2 * ABSENT_DIRECTORIES_MAX; ino++)
		absent_note(&absents, ino, 7, SECOND, 0);
	assert_int_equal(absents.count, ABSENT_DIRECTORIES_MAX);
	for (uint64_t ino = 0; ino < 20; ino++)
		learn(ino, many, LENGTH(many), SECOND);
	assert_in_range(absents.bytes, ABSENT_BYTES_MAX / 2, ABSENT_BYTES_MAX);
	assert_int_equal(absent_ask(&absents, 0, "c", SECOND), ABSENT_UNKNOWN);
	assert_int_equal(absent_ask(&absents, 19, "c", SECOND), ABSENT_NOT_THERE);
}

#define ABSENT_TEST(test) cmocka_unit_test_teardown(test, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ABSENT_TEST(many_make_a_crowd),
		ABSENT_TEST(few_do_not),
		ABSENT_TEST(it_is_over),
		ABSENT_TEST(a_slow_one_makes_a_crowd),
		ABSENT_TEST(root_is_no_crowd),
		ABSENT_TEST(what_a_listing_says),
		ABSENT_TEST(what_is_there_is_seen),
		ABSENT_TEST(memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
