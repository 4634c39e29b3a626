/* SPDX-License-Identifier: MIT
 *
 * Many questions at a time: equal questions are sent once for all, and users take turns.
 */
#include "pure/limits.h"
#include "unit_calls.h"

#include <errno.h>
#include <stdio.h>

static void assert_count(struct question *question, size_t count)
{
	assert_int_equal(question->result, 0);
	assert_int_equal(question->entries, count);
	stage_forget(question);
}

/* One request answers the same question of all users. */
static void asked_once(void **state)
{
	struct stage *stage = begin(20);
	struct host *host = &stage->hosts[0];
	struct question *lists[50], *stats[50], *values[50];
	struct taker holder;
	unsigned long before;

	(void)state;
	put(stage, BUILD, MAGIC "\nv");
	take(&holder, &stage->hosts[1], "build", LC_EXCLUSIVE);
	before = requests(host);
	for (uid_t i = 0; i < 50; i++) {
		lists[i] = stage_ask_list(host, "build", i % 3);
		stats[i] = stage_ask_stat(host, "build", i % 3);
		values[i] = stage_ask_value(host, "build", i % 3);
	}
	run(stage, 100 * MS);
	for (int i = 0; i < 50; i++) {
		assert_count(lists[i], 1);
		assert_int_equal(stats[i]->result, 0);
		stage_forget(stats[i]);
		assert_memory_equal(values[i]->value, "v", 2);
		stage_forget(values[i]);
	}
	assert_int_equal(requests(host) - before, 2);
	leave(&holder);
	finish(stage);
}

/* A request that was sent before the question came does not answer it. */
static void answers_are_not_older_than_questions(void **state)
{
	struct stage *stage = begin_build(21);
	struct host *host = &stage->hosts[0];
	struct question *early, *late, *later;
	struct taker holder;

	(void)state;
	early = stage_ask_list(host, "build", 0);
	conn_stall(host->wire.conn, DOWN, stage->agenda.now_us + 300 * MS);
	run(stage, 20 * MS); /* the server has answered by then */
	take(&holder, &stage->hosts[1], "build", LC_EXCLUSIVE);
	late = stage_ask_list(host, "build", 0);
	later = stage_ask_list(host, "build", 7);
	run(stage, SECOND);
	assert_count(early, 0);
	assert_count(late, 1);
	assert_count(later, 1);
	leave(&holder);
	finish(stage);
}

static void asked_on_the_next_connection(void **state)
{
	struct stage *stage = begin_build(22);
	struct host *host = &stage->hosts[0];
	struct question *early, *late;

	(void)state;
	early = stage_ask_list(host, "build", 0);
	conn_stall(host->wire.conn, DOWN, stage->agenda.now_us + 300 * MS);
	run(stage, 20 * MS);
	late = stage_ask_list(host, "build", 0);
	conn_break(host->wire.conn, -1);
	run(stage, SECOND);
	assert_count(early, 0);
	assert_count(late, 0);
	finish(stage);
}

/* A question that nobody asks any more is not sent. */
static void not_asked_any_more(void **state)
{
	struct stage *stage = begin_build(23);
	struct host *host = &stage->hosts[0];
	struct question *early, *late, *stays;
	unsigned long before;

	(void)state;
	before = requests(host);
	early = stage_ask_list(host, "build", 0);
	stage_cancel(early);
	run(stage, 100 * MS);
	assert_int_equal(requests(host) - before, 0);
	stage_forget(early);
	early = stage_ask_list(host, "build", 0);
	stays = stage_ask_list(host, "build", 0);
	conn_stall(host->wire.conn, DOWN, stage->agenda.now_us + 50 * MS);
	run(stage, 20 * MS);
	late = stage_ask_list(host, "build", 0);
	stage_cancel(early);
	stage_cancel(late);
	run(stage, 100 * MS);
	assert_int_equal(requests(host) - before, 1);
	assert_int_equal(early->result, NONE);
	assert_int_equal(late->result, NONE);
	assert_count(stays, 0);
	stage_forget(early);
	stage_forget(late);
	finish(stage);
}

#define FLOOD 4000

static void ask_for_many(struct host *host,
                         struct question *(*ask)(struct host *, const char *, uid_t),
                         struct question **ret_questions)
{
	for (int i = 0; i < FLOOD; i++) {
		char name[16];

		snprintf(name, sizeof(name), "x%d", i);
		ret_questions[i] = ask(host, name, 7);
	}
}

static int count_and_free(struct question **questions, int result)
{
	int count = 0;

	for (int i = 0; i < FLOOD; i++) {
		count += questions[i]->result == result;
		stage_forget(questions[i]);
	}
	return count;
}

/* Each user has a share of the questions, and users take turns. */
static void shares(void **state)
{
	struct stage *stage = begin_build(24);
	struct host *host = &stage->hosts[0];
	struct question *many[FLOOD], *one;
	struct taker taker;
	unsigned long before;

	(void)state;
	before = requests(host);
	ask_for_many(host, stage_ask_stat, many);
	run(stage, 100); /* no answer yet */
	assert_int_equal(requests(host) - before, USER_READS_MAX);
	one = stage_ask_stat(host, "build", 8);
	run(stage, 10 * MS);
	assert_int_equal(one->result, 0);
	stage_forget(one);
	assert_int_equal(many[FLOOD / 2]->result, NONE);
	take(&taker, host, "build", LC_EXCLUSIVE);
	assert_int_equal(taker.result, 0);
	run(stage, 3 * SECOND);
	assert_int_equal(count_and_free(many, -ENOENT), FLOOD);
	leave(&taker);
	finish(stage);
}

/* There is one list at a time. A user with more questions than can be sent in time is told EBUSY
 * for the last ones, and other users notice nothing. */
static void one_list_at_a_time(void **state)
{
	struct stage *stage = begin_build(25);
	struct host *host = &stage->hosts[0];
	struct question *many[FLOOD], *one;
	unsigned long before;

	(void)state;
	before = requests(host);
	ask_for_many(host, stage_ask_list, many);
	run(stage, 100);
	assert_int_equal(requests(host) - before, 1);
	one = stage_ask_list(host, "build", 8);
	run(stage, 50 * MS);
	assert_count(one, 0);
	run(stage, 3 * SECOND);
	assert_int_equal(many[0]->result, -ENOENT);
	assert_int_equal(many[FLOOD - 1]->result, -EBUSY);
	assert_true(count_and_free(many, -EBUSY) > FLOOD / 10);
	/* The engine does not take this for a sign that the ensemble is away. */
	one = stage_ask_list(host, "build", 7);
	run(stage, 50 * MS);
	assert_count(one, 0);
	finish(stage);
}

#define LONG 6000

static void put_many(struct stage *stage)
{
	for (int i = 0; i < LONG; i++)
		assert_int_equal(
			world_do(&stage->world, 0,
		                 OP(.kind = ENSEMBLE_CREATE, .path = BUILD "/n-", .sequence = true),
		                 1, NULL),
			ENSEMBLE_OK);
	run(stage, 10 * MS);
}

/* After a long list there is some time for other questions. */
static void rest_after_a_list(void **state)
{
	struct stage *stage = begin_build(26);
	struct host *host = &stage->hosts[0];
	struct question *list;
	unsigned long before;

	(void)state;
	put_many(stage);
	list = stage_ask_list(host, "build", 0);
	while (list->result == NONE)
		run(stage, MS / 10);
	assert_count(list, LONG);
	before = requests(host);
	list = stage_ask_list(host, "build", 0);
	run(stage, LONG * LIST_REST_US - MS);
	assert_int_equal(requests(host) - before, 0);
	run(stage, 20 * MS);
	assert_count(list, LONG);
	finish(stage);
}

/* A user that asks for one list after the other keeps no other user from a list. */
static void lists_take_turns(void **state)
{
	static const char *const locks[] = {"build", "a", "b", "c", "d"};
	struct stage *stage = begin_build(27);
	struct host *host = &stage->hosts[0];
	struct question *lists[5], *other;

	(void)state;
	put_many(stage);
	for (int i = 1; i < 5; i++) {
		char path[16];

		snprintf(path, sizeof(path), "/locks/%s", locks[i]);
		put(stage, path, "");
	}
	put(stage, "/locks/short", "");
	for (int i = 0; i < 5; i++)
		lists[i] = stage_ask_list(host, locks[i], 5);
	run(stage, MS / 10);
	other = stage_ask_list(host, "short", 6);
	while (other->result == NONE)
		run(stage, MS / 10);
	assert_count(other, 0);
	assert_count(lists[0], LONG);
	assert_int_equal(lists[2]->result, NONE);
	run(stage, SECOND);
	for (int i = 1; i < 5; i++)
		assert_count(lists[i], 0);
	finish(stage);
}

/* Those who asked are told nothing when the engine is stopped, with contact or without. */
static void stopped_meanwhile(void **state)
{
	(void)state;
	for (int away = 0; away <= 1; away++) {
		struct stage *stage = begin_build(30);
		struct host *host = &stage->hosts[0];
		struct question *stat, *list, *change;

		if (away)
			world_hang(&stage->world, 0, 60 * SECOND);
		run(stage, away * 10 * SECOND);
		stat = stage_ask_stat(host, "build", 0);
		list = stage_ask_list(host, "build", 0);
		change = ask_change(host, "build", CHANGE(.slots = 3));
		stage_stop(host, true);
		assert_int_equal(stat->result, NONE);
		assert_int_equal(list->result, NONE);
		assert_int_equal(change->result, NONE);
		finish(stage);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asked_once),
		cmocka_unit_test(answers_are_not_older_than_questions),
		cmocka_unit_test(asked_on_the_next_connection),
		cmocka_unit_test(not_asked_any_more),
		cmocka_unit_test(shares),
		cmocka_unit_test(one_list_at_a_time),
		cmocka_unit_test(rest_after_a_list),
		cmocka_unit_test(lists_take_turns),
		cmocka_unit_test(stopped_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
