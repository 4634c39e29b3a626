/* SPDX-License-Identifier: MIT
 *
 * The data that a taker writes into its entry: since when it holds, and why.
 */
#include "pure/gate.h"
#include "pure/limits.h"
#include "unit_calls.h"

#include <stdio.h>
#include <string.h>

/* How often the taker's entry was written, and whether its data says since when it holds. */
static int entry_version(struct stage *stage, const struct taker *taker, bool *ret_since)
{
	const struct node *node;
	char path[512];

	snprintf(path, sizeof(path), BUILD "/%s", lc_znode(taker->lc));
	node = node_of(stage, path);
	*ret_since = memmem(node->data, (size_t)node->data_len, "\nheld_since: ", 13);
	return node->stat.version;
}

/* One more write for a taker that holds for longer than a moment, and none for the others, or
 * if the write of a reason has told the time already. */
static void since_when_it_holds(void **state)
{
	struct stage *stage = begin_build(18);
	struct host *host = &stage->hosts[0];
	struct taker holder, waiter;
	unsigned long before, woken;
	bool since;

	(void)state;
	for (int reason = 0; reason <= 1; reason++) {
		begin_try(&holder, host, LC_EXCLUSIVE, NULL);
		run(stage, 15 * MS);
		assert_int_equal(holder.result, 0);
		before = requests(host);
		assert_int_equal(entry_version(stage, &holder, &since), 0);
		assert_false(since);
		if (reason)
			assert_int_equal(lc_set_reason(holder.lc, "why", 3), 0);
		host_wake(host);
		take(&waiter, &stage->hosts[1], "build", LC_EXCLUSIVE);
		assert_int_equal(entry_version(stage, &waiter, &since), 0);
		assert_false(since);
		assert_int_equal(entry_version(stage, &holder, &since), 1);
		assert_true(since);
		/* The write, and after it the watch; the write may be that of a reason. */
		assert_int_equal(requests(host) - before, 2);
		/* The waiter hears of a new reason, and only watches the entry anew. */
		woken = requests(waiter.host);
		assert_int_equal(lc_set_reason(holder.lc, "another", 7), 0);
		host_wake(host);
		run(stage, 20 * MS);
		assert_int_equal(requests(waiter.host) - woken, 1);
		leave(&holder);
		assert_int_equal(waiter.result, 0);
		assert_int_equal(entry_version(stage, &waiter, &since), 1);
		assert_true(since);
		leave(&waiter);
	}
	finish(stage);
}

#define MANY (3 * DATA_WRITES_MAX)

static void take_shared(struct taker *taker, struct host *host, uid_t uid)
{
	struct lc_request request = {.lock = "build",
	                             .mode = LC_SHARED,
	                             .wait_us = LC_FOREVER,
	                             .uid = uid,
	                             .command = "test"};

	stage_take(taker, host, &request);
	run(taker->stage, 50 * MS);
	assert_int_equal(taker->result, 0);
}

/* Only some reasons are under way at a time, and users take turns. */
static void reasons_take_turns(void **state)
{
	struct stage *stage = begin_build(20);
	struct host *host = &stage->hosts[0];
	struct taker many[MANY], one;
	unsigned long before;
	bool since;

	(void)state;
	for (int i = 0; i < MANY; i++)
		take_shared(&many[i], host, 7);
	take_shared(&one, host, 8);
	before = requests(host);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(lc_set_reason(many[i].lc, "why", 3), 0);
	assert_int_equal(lc_set_reason(one.lc, "why", 3), 0);
	assert_int_equal(requests(host) - before,
	                 DATA_WRITES_MAX - DATA_WRITES_MAX / GATE_ROOT_PART);
	stage_leave(&many[MANY - 1]); /* its reason waits for its turn */
	while (entry_version(stage, &one, &since) == 1)
		run(stage, MS / 10);
	assert_int_equal(entry_version(stage, &many[MANY - 2], &since), 1);
	run(stage, 100 * MS);
	for (int i = 0; i < MANY - 1; i++) {
		assert_int_equal(entry_version(stage, &many[i], &since), 2);
		leave(&many[i]);
	}
	leave(&one);
	finish(stage);
}

/* A reason that is given when the taker begins to wait costs no write of its own. */
static void why_it_waits(void **state)
{
	struct stage *stage = begin_build(19);
	struct host *host = &stage->hosts[0];
	struct lc_request request = {.lock = "build",
	                             .wait_us = LC_FOREVER,
	                             .pid = 7,
	                             .command = "test",
	                             .reason = "for\tv42\nmore"};
	struct taker holder, waiter;
	const struct node *node;
	char path[512];

	(void)state;
	take(&holder, &stage->hosts[1], "build", LC_EXCLUSIVE);
	stage_take(&waiter, host, &request);
	run(stage, 100 * MS);
	snprintf(path, sizeof(path), BUILD "/%s", lc_znode(waiter.lc));
	node = node_of(stage, path);
	assert_int_equal(node->stat.version, 0);
	assert_non_null(memmem(node->data, (size_t)node->data_len, "\nreason: for?v42\n", 17));
	leave(&waiter);
	leave(&holder);
	finish(stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(since_when_it_holds),
		cmocka_unit_test(reasons_take_turns),
		cmocka_unit_test(why_it_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
