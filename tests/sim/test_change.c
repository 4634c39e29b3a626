/* SPDX-License-Identifier: MIT
 *
 * Changes of a lock's data on an ensemble in memory: answers that are lost at every moment, and
 * the turns of users. Each change by itself: tests/layer/change.c, make.c and remove.c.
 */
#include "pure/gate.h"
#include "pure/limits.h"
#include "unit_calls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- lost answers ---- */

/* The connection breaks, later each time; requests under way are done, or some, or none. */
static void lost_answers(void **state)
{
	struct stage *stage = begin_build(3);
	struct host *host = &stage->hosts[0];
	char wanted[64] = "", chunk[2] = "a";
	struct taker holder;
	int both[2] = {0};

	(void)state;
	take(&holder, host, "build", LC_EXCLUSIVE);
	for (int i = 0; i < 60; i++) {
		struct question *mode = ask_change(
			host, "build",
			CHANGE(.set_mode = true, .attributes = {.mode = (mode_t)(0700 + i)}));
		struct question *value = ask_set_value(&holder, chunk, i > 0);

		strcat(wanted, chunk);
		run(stage, i * 40);
		if (host->wire.conn)
			conn_break(host->wire.conn, i % 3 - 1);
		run(stage, 2 * SECOND);
		both[mode->result == 0 && value->result == 0]++;
		assert_int_equal(answer_of(mode), 0);
		assert_int_equal(answer_of(value), 0);
		assert_int_equal(info_of(host, "build").attributes.mode, 0700 + i);
		assert_value(host, "build", wanted);
		*chunk = (char)('a' + i % 26);
	}
	assert_int_equal(both[1], 60);
	assert_true(lc_holds(holder.lc));
	leave(&holder);
	finish(stage);
}

/* The value is written, and the connection breaks before the answer is there: the engine looks for
 * the value, finds it, and does not write it again. */
static void lost_answer_of_a_value(void **state)
{
	struct stage *stage = begin(1);
	struct host *host = &stage->hosts[0];
	struct taker holder;
	char wanted[20] = "";
	int lost = 0;

	(void)state;
	put(stage, BUILD, MAGIC "\n");
	take(&holder, host, "build", LC_EXCLUSIVE);
	while (strlen(wanted) < 19) {
		struct question *value = ask_set_value(&holder, "x", true);

		strcat(wanted, "x");
		while (value_len_of(stage, BUILD) < strlen(wanted))
			run(stage, 10);
		lost += value->result == NONE;
		conn_break(host->wire.conn, 0);
		assert_int_equal(answer_of(value), 0);
		assert_value(host, "build", wanted);
	}
	assert_int_equal(lost, 19);
	leave(&holder);
	finish(stage);
}

/* ---- the value ---- */

/* A holder whose entry is gone cannot write, even before its mount knows that. */
static void value_of_a_loser(void **state)
{
	struct stage *stage = begin_build(5);
	struct taker holder;
	struct question *q;
	char entry[512];

	(void)state;
	take(&holder, &stage->hosts[0], "build", LC_EXCLUSIVE);
	assert_int_equal(answer_of(ask_set_value(&holder, "mine", false)), 0);
	snprintf(entry, sizeof(entry), BUILD "/%s", first_entry(stage, "build"));
	take_away(stage, entry);
	q = ask_set_value(&holder, "not mine", false);
	assert_int_equal(answer_of(q), -EIO);
	assert_value(&stage->hosts[0], "build", "mine");
	assert_int_equal(holder.lost, 1);
	assert_int_equal(answer_of(ask_set_value(&holder, "not mine", true)), -EIO);
	assert_value(&stage->hosts[0], "build", "mine");
	leave(&holder);
	finish(stage);
}

/* ---- turns ---- */

static unsigned long sent_since(struct stage *stage, unsigned long before)
{
	run(stage, 100); /* no answer yet */
	return requests(&stage->hosts[0]) - before;
}

/* Each user has a share, there is a limit for all, and users take turns. A change begins with two
 * requests: a sync and a get. */
static void changes_take_turns(void **state)
{
	enum { USERS = CHANGES_MAX / USER_CHANGES_MAX + 1, EACH = 30 };
	struct stage *stage = begin_build(2);
	struct host *host = &stage->hosts[0];
	struct question *of[USERS][EACH];
	unsigned long before = requests(host);

	(void)state;
	for (uid_t user = 0; user < USERS; user++) {
		for (int i = 0; i < EACH; i++)
			of[user][i] =
				ask_change(host, "build", CHANGE(.by = user + 11, .slots = 2));
		if (user == 0)
			assert_int_equal(sent_since(stage, before), 2 * USER_CHANGES_MAX);
	}
	assert_int_equal(sent_since(stage, before),
	                 2 * (CHANGES_MAX - CHANGES_MAX / GATE_ROOT_PART));
	while (of[USERS - 1][0]->result == NONE)
		run(stage, MS / 10);
	assert_int_equal(of[0][EACH / 2]->result, NONE);
	run(stage, 3 * SECOND);
	for (int i = 0; i < USERS * EACH; i++) {
		assert_int_equal(of[i / EACH][i % EACH]->result, -EPERM);
		stage_forget(of[i / EACH][i % EACH]);
	}
	finish(stage);
}

/* With more than can be sent in time the last ones fail, and not as if the ensemble were away. */
static void too_many_changes(void **state)
{
	enum { MANY = 4000 };
	struct stage *stage = begin_build(3);
	struct host *host = &stage->hosts[0];
	struct question *many[MANY];

	(void)state;
	for (int i = 0; i < MANY; i++)
		many[i] = ask_change(host, "build", CHANGE(.by = 1, .slots = 2));
	conn_stall(host->wire.conn, DOWN, stage->agenda.now_us + 1500 * MS);
	run(stage, 5 * SECOND);
	assert_int_not_equal(many[0]->result, -EBUSY);
	assert_int_equal(many[MANY - 1]->result, -EBUSY);
	for (int i = 0; i < MANY; i++)
		stage_forget(many[i]);
	assert_int_equal(info_of(host, "build").slots, 1);
	finish(stage);
}

/* None begins before another process takes over, if there is none in the end. */
static void none_while_it_settles(void **state)
{
	struct stage *stage = begin_build(4);
	struct host *host = &stage->hosts[0];
	struct question *change;

	(void)state;
	lc_settle(host->lc, true);
	change = ask_change(host, "build", CHANGE(.slots = 2));
	run(stage, 100 * MS);
	assert_int_equal(change->result, NONE);
	assert_true(lc_settled(host->lc));
	lc_settle(host->lc, false);
	assert_int_equal(answer_of(change), 0);
	finish(stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost_answers),     cmocka_unit_test(lost_answer_of_a_value),
		cmocka_unit_test(value_of_a_loser), cmocka_unit_test(changes_take_turns),
		cmocka_unit_test(too_many_changes), cmocka_unit_test(none_while_it_settles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
