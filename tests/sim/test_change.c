/* SPDX-License-Identifier: MIT
 *
 * Changes of a lock's data, the right to make them, and how many locks there may be below a lock:
 * two engines on an ensemble in memory, with answers lost at every moment.
 */
#include "pure/gate.h"
#include "pure/limits.h"
#include "unit_calls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- attributes and slots ---- */

static void attributes(void **state)
{
	struct stage *stage = begin(1);
	struct host *one = &stage->hosts[0], *two = &stage->hosts[1];
	struct lc_attributes set = {.uid = 7, .gid = 8, .mode = 02770, .lock_file_mode = 0660};
	struct lc_lock_info info;

	(void)state;
	put(stage, BUILD, MAGIC "uid: 1\ngid: 2\nmode: 755\ndoor_mode: 644\nfuture: x\n\nv42");
	assert_int_equal(
		answer_of(ask_change(one, "build", CHANGE(.set_mode = true, .attributes = set))),
		0);
	assert_data(stage, BUILD,
	            MAGIC "uid: 1\ngid: 2\nmode: 2770\ndoor_mode: 644\nfuture: x\n\nv42");
	assert_int_equal(
		answer_of(ask_change(one, "build",
	                             CHANGE(.set_uid = true, .set_gid = true, .attributes = set))),
		0);
	assert_int_equal(
		answer_of(ask_change(one, "build",
	                             CHANGE(.set_lock_file_mode = true, .attributes = set))),
		0);
	assert_data(stage, BUILD,
	            MAGIC "uid: 7\ngid: 8\nmode: 2770\ndoor_mode: 660\nfuture: x\n\nv42");
	assert_int_equal(answer_of(ask_change(two, "build", CHANGE(.slots = 5))), 0);
	assert_data(stage, BUILD,
	            MAGIC "uid: 7\ngid: 8\nmode: 2770\ndoor_mode: 660\nslots: 5\n"
	                  "future: x\n\nv42");
	info = info_of(two, "build");
	assert_true(info.has_attributes);
	assert_memory_equal(&info.attributes, &set, sizeof(set));
	assert_int_equal(info.slots, 5);
	assert_int_equal(answer_of(ask_change(two, "build", CHANGE(.slots = 1))), 0);
	assert_int_equal(info_of(one, "build").slots, 1);
	assert_int_equal(answer_of(ask_change(two, "build", CHANGE(.slots = 10001))), -EINVAL);
	finish(stage);
}

/* Data that another client keeps in a lock's node is not changed; an empty node gets data. */
static void data_of_others(void **state)
{
	static const char *const foreign[] = {"10.0.0.1", "\n", "zklockfs: 2\nuid: 1\n",
	                                      "zklockfs: 1"};
	struct stage *stage = begin_build(2);
	struct host *host = &stage->hosts[0];
	struct lc_change change = {.set_mode = true, .attributes = {.mode = 0700}};
	struct taker holder;

	(void)state;
	for (size_t i = 0; i < LENGTH(foreign); i++) {
		put(stage, BUILD, foreign[i]);
		assert_int_equal(answer_of(ask_change(host, "build", change)), -EPERM);
		assert_int_equal(answer_of(ask_change(host, "build", CHANGE(.slots = 2))), -EPERM);
		take(&holder, host, "build", LC_EXCLUSIVE);
		assert_int_equal(answer_of(ask_set_value(&holder, "v", false)), -EPERM);
		leave(&holder);
		assert_data(stage, BUILD, foreign[i]);
		assert_value(host, "build", foreign[i]);
	}
	put(stage, BUILD, "");
	assert_int_equal(answer_of(ask_change(host, "build", change)), 0);
	assert_data(stage, BUILD, MAGIC "uid: 5\ngid: 6\nmode: 700\ndoor_mode: 600\n\n");
	/* A value gives the lock no attributes. */
	put(stage, BUILD, "");
	take(&holder, host, "build", LC_EXCLUSIVE);
	assert_int_equal(answer_of(ask_set_value(&holder, "v", false)), 0);
	assert_data(stage, BUILD, MAGIC "\nv");
	assert_false(info_of(host, "build").has_attributes);
	/* An entry is no lock. */
	{
		char entry[512];

		snprintf(entry, sizeof(entry), "build/%s", first_entry(stage, "build"));
		assert_int_equal(answer_of(ask_change(host, entry, change)), -ENOENT);
	}
	leave(&holder);
	assert_int_equal(answer_of(ask_change(host, "nowhere", change)), -ENOENT);
	finish(stage);
}

/* The right to change a lock is judged by the data that it has when it is changed. */
static void whose_it_is_now(void **state)
{
	static const struct {
		uid_t by;
		bool other;
		int result;
	} rows[] = {
		{0, false, 0},      {7, false, 0},      {8, false, -EPERM}, {5, false, -EPERM},
		{0, true, -ENOENT}, {7, true, -ENOENT}, {8, true, -ENOENT},
	};
	struct stage *stage = begin(4);
	struct host *host = &stage->hosts[0];
	struct lc_attributes given = {.uid = 8, .mode = 0700};

	(void)state;
	put(stage, BUILD, MAGIC "uid: 7\ngid: 2\nmode: 755\ndoor_mode: 644\n\n");
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct lc_change change = {.by = rows[i].by,
		                           .slots = (unsigned)i + 2,
		                           .czxid = info_of(host, "build").czxid + rows[i].other};

		assert_int_equal(answer_of(ask_change(host, "build", change)), rows[i].result);
		assert_int_equal(info_of(host, "build").slots == i + 2, rows[i].result == 0);
	}
	assert_int_equal(
		answer_of(ask_change(host, "build",
	                             CHANGE(.by = 7, .set_mode = true, .attributes = given))),
		0);
	assert_int_equal(
		answer_of(ask_change(host, "build",
	                             CHANGE(.by = 7, .set_uid = true, .attributes = given))),
		-EPERM);
	assert_int_equal(
		answer_of(ask_change(host, "build", CHANGE(.set_uid = true, .attributes = given))),
		0);
	assert_int_equal(
		answer_of(ask_change(host, "build",
	                             CHANGE(.by = 7, .set_mode = true, .attributes = given))),
		-EPERM);
	/* A lock without attributes has those that the mount is configured with. */
	put(stage, BUILD, "");
	assert_int_equal(answer_of(ask_change(host, "build", CHANGE(.by = 7, .slots = 2))), -EPERM);
	assert_int_equal(answer_of(ask_change(host, "build", CHANGE(.by = 5, .slots = 2))), 0);
	/* On another client's data a change succeeds only if it would change nothing. */
	put(stage, BUILD, "v");
	assert_int_equal(
		answer_of(ask_change(host, "build",
	                             CHANGE(.set_mode = true, .attributes = {.mode = 0755}))),
		0);
	finish(stage);
}

/* The lock is removed and made again between the read and the write, with the same version: then
 * the new lock is changed, but the answer is ENOENT. */
static void made_anew_meanwhile(void **state)
{
	static const char other[] = MAGIC "uid: 8\ngid: 2\nmode: 700\ndoor_mode: 600\n\n";
	int met = 0;

	(void)state;
	for (int i = 0; i < 40; i++) {
		struct stage *stage = begin((uint64_t)i);
		struct question *change;
		int result;

		put(stage, BUILD, MAGIC "uid: 7\ngid: 2\nmode: 755\ndoor_mode: 644\n\n");
		change = ask_change(&stage->hosts[0], "build", CHANGE(.by = 7, .slots = 9));
		run(stage, i * 200);
		take_away(stage, BUILD);
		put(stage, BUILD, other);
		result = answer_of(change);
		if (strcmp((const char *)node_of(stage, BUILD)->data, other) != 0) {
			met++;
			assert_int_equal(result, -ENOENT);
		} else {
			expect(result == 0 || result == -EPERM || result == -ENOENT,
			       "it is answered %d", result);
		}
		finish(stage);
	}
	assert_true(met > 0);
}

static int remove_lock(struct host *host, const char *lock, uid_t by)
{
	return answer_of(stage_ask_rmdir(host, lock, by));
}

static void who_may_remove(void **state)
{
	struct stage *stage = begin(5);
	struct host *host = &stage->hosts[0];

	(void)state;
	for (uid_t by = 0; by < 10; by++) {
		bool may = by == 0 || by == 7 || by == 8;

		put(stage, BUILD, MAGIC "uid: 7\ngid: 2\nmode: 755\ndoor_mode: 644\n\n");
		put(stage, BUILD "/below", MAGIC "uid: 8\ngid: 2\nmode: 755\ndoor_mode: 644\n\n");
		assert_int_equal(remove_lock(host, "build/below", by), may ? 0 : -EPERM);
		assert_int_equal(!node_of(stage, BUILD "/below"), may);
		assert_int_equal(remove_lock(host, "build", by), by == 0 || by == 7 ? 0 : -EPERM);
		assert_int_equal(!node_of(stage, BUILD), by == 0 || by == 7);
	}
	put(stage, BUILD "/other", "");
	assert_int_equal(remove_lock(host, "build/other", 9), -EPERM);
	assert_int_equal(remove_lock(host, "build/other", 5), 0);
	finish(stage);
}

/* The user stops being the owner while the lock is being removed. */
static void removed_when_it_is_anothers(void **state)
{
	int kept = 0, gone = 0;

	(void)state;
	for (int i = 0; i < 80; i++) {
		struct stage *stage = begin((uint64_t)i);
		const char *given = i % 2 ? BUILD : BUILD "/below";
		struct question *q;
		int result;

		/* The user owns the lock, or the lock above it. */
		put(stage, BUILD, MAGIC "uid: 7\ngid: 2\nmode: 755\ndoor_mode: 644\n\n");
		put(stage, BUILD "/below",
		    i % 2 ? MAGIC "uid: 9\ngid: 2\nmode: 755\ndoor_mode: 644\n\n"
		          : MAGIC "uid: 7\ngid: 2\nmode: 755\ndoor_mode: 644\n\n");
		if (i % 2 == 0)
			put(stage, BUILD, MAGIC "uid: 9\ngid: 2\nmode: 755\ndoor_mode: 644\n\n");
		q = stage_ask_rmdir(&stage->hosts[0], "build/below", 7);
		run(stage, i / 2 * 200);
		if (tree_find(&stage->world.proposed, BUILD "/below")) {
			kept++;
			put(stage, given, MAGIC "uid: 8\ngid: 2\nmode: 755\ndoor_mode: 644\n\n");
			result = answer_of(q);
			assert_int_equal(result, -EPERM);
			assert_non_null(node_of(stage, BUILD "/below"));
		} else {
			gone++;
			assert_int_equal(answer_of(q), 0);
		}
		finish(stage);
	}
	assert_true(kept > 0 && gone > 0);
}

/* Two engines read before either writes: no change is lost. */
static void at_the_same_time(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 40; seed++) {
		struct stage *stage = begin(seed);
		struct question *mode, *slots, *lock_files;
		struct lc_attributes set = {.mode = 0700, .lock_file_mode = 0600};

		put(stage, BUILD, MAGIC "uid: 1\ngid: 2\nmode: 755\ndoor_mode: 644\n\nv");
		mode = ask_change(&stage->hosts[0], "build",
		                  CHANGE(.set_mode = true, .attributes = set));
		slots = ask_change(&stage->hosts[1], "build", CHANGE(.slots = 3));
		lock_files = ask_change(&stage->hosts[1], "build",
		                        CHANGE(.set_lock_file_mode = true, .attributes = set));
		assert_int_equal(answer_of(mode), 0);
		assert_int_equal(answer_of(slots), 0);
		assert_int_equal(answer_of(lock_files), 0);
		assert_data(stage, BUILD,
		            MAGIC "uid: 1\ngid: 2\nmode: 700\ndoor_mode: 600\nslots: 3\n\nv");
		finish(stage);
	}
}

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

static void values(void **state)
{
	static char big[LC_VALUE_MAX + 1];
	struct stage *stage = begin(4);
	struct host *one = &stage->hosts[0], *two = &stage->hosts[1];
	struct taker holder, other;

	(void)state;
	put(stage, BUILD, MAGIC "uid: 1\ngid: 2\nmode: 755\ndoor_mode: 644\nslots: 1\n\n");
	take(&holder, one, "build", LC_EXCLUSIVE);
	assert_value(two, "build", "");
	assert_int_equal(answer_of(ask_set_value(&holder, "v42\n", false)), 0);
	assert_value(two, "build", "v42\n");
	assert_int_equal(answer_of(ask_set_value(&holder, "more", true)), 0);
	assert_value(two, "build", "v42\nmore");
	assert_int_equal(answer_of(ask_set_value(&holder, "\n\nv43", false)), 0);
	assert_value(one, "build", "\n\nv43");
	assert_data(stage, BUILD, MAGIC "uid: 1\ngid: 2\nmode: 755\ndoor_mode: 644\n\n\n\nv43");
	assert_int_equal(answer_of(ask_set_value(&holder, "", false)), 0);
	assert_value(one, "build", "");
	/* the longest, and a byte more */
	memset(big, 'x', sizeof(big));
	assert_int_equal(answer_of(stage_ask_set_value(&holder, big, LC_VALUE_MAX, false)), 0);
	assert_int_equal(answer_of(ask_set_value(&holder, "x", true)), -EFBIG);
	assert_int_equal(answer_of(ask_set_value(&holder, "", true)), 0);
	assert_int_equal(answer_of(stage_ask_set_value(&holder, big, LC_VALUE_MAX + 1, false)),
	                 -EFBIG);
	/* the next holder finds the written value */
	take(&other, two, "build", LC_EXCLUSIVE);
	assert_int_equal(other.result, NONE);
	assert_int_equal(answer_of(ask_set_value(&holder, "done", false)), 0);
	leave(&holder);
	assert_int_equal(other.result, 0);
	assert_value(two, "build", "done");
	leave(&other);
	finish(stage);
}

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

/* ---- how many locks below a lock ---- */

static int make(struct host *host, const char *lock, uid_t uid)
{
	struct lc_attributes attributes = {
		.uid = uid, .gid = 2, .mode = 0755, .lock_file_mode = 0644};

	return answer_of(stage_ask_mkdir(host, lock, &attributes));
}

/* Makes locks as another host does, with the numbers `first` to `end` - 1 in their names. */
static void fill(struct stage *stage, const char *lock, int first, int end, const char *format)
{
	for (int i = first; i < end; i++) {
		char path[64], name[32];

		snprintf(name, sizeof(name), format, i);
		snprintf(path, sizeof(path), ROOT "/%s/%s", lock, name);
		assert_int_equal(world_do(&stage->world, 0,
		                          OP(.kind = ENSEMBLE_CREATE, .path = path, .data = "",
		                             .data_len = 0),
		                          1, NULL),
		                 ENSEMBLE_OK);
	}
	run(stage, 10 * MS);
}

static void so_many_below(void **state)
{
	struct stage *stage = begin(1);
	struct host *one = &stage->hosts[0], *two = &stage->hosts[1];

	(void)state;
	put(stage, BUILD, MAGIC "uid: 1\ngid: 2\nmode: 777\ndoor_mode: 666\n\n");
	assert_int_equal(make(one, "build/one", 7), 0);
	assert_int_equal(make(one, "build/one", 7), -EEXIST);
	assert_int_equal(make(one, "nobody/one", 7), -ENOENT);
	fill(stage, "build", 1, LC_BELOW_MAX - 1, "below-%d");
	assert_int_equal(make(two, "build/the last", 7), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(make(&stage->hosts[i], "build/one more", 7 + (uid_t)i), -EDQUOT);
	/* The owner and root may make more; a lock further down has a limit of its own. */
	assert_int_equal(make(one, "build/of the owner", 1), 0);
	assert_int_equal(make(one, "build/of root", 0), 0);
	assert_int_equal(make(one, "build/one/deeper", 7), 0);
	for (int i = 1; i < 4; i++) {
		char path[64];

		snprintf(path, sizeof(path), BUILD "/below-%d", i);
		take_away(stage, path);
	}
	run(stage, 10 * MS);
	assert_int_equal(make(two, "build/there is room", 7), 0);
	assert_int_equal(make(two, "build/none now", 7), -EDQUOT);
	fill(stage, "build", LC_BELOW_MAX, LC_BELOW_OWNER_MAX, "below-%d");
	assert_int_equal(make(one, "build/too much for the owner", 1), -EDQUOT);
	assert_int_equal(make(one, "build/never for root", 0), 0);
	finish(stage);
}

/* Entries do not count. Another client has made the lock: the mount's options name its owner. */
static void entries_are_no_locks_below(void **state)
{
	struct stage *stage = begin(1);
	struct host *one = &stage->hosts[0];

	(void)state;
	put(stage, BUILD, "another client's");
	fill(stage, "build", 0, LC_BELOW_MAX, "x-lock-%010d");
	assert_int_equal(make(one, "build/one", 7), 0);
	fill(stage, "build", 1, LC_BELOW_MAX, "below-%d");
	assert_int_equal(make(one, "build/two", 7), -EDQUOT);
	assert_int_equal(make(one, "build/two", 5), 0);
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
		cmocka_unit_test(attributes),
		cmocka_unit_test(data_of_others),
		cmocka_unit_test(whose_it_is_now),
		cmocka_unit_test(made_anew_meanwhile),
		cmocka_unit_test(who_may_remove),
		cmocka_unit_test(removed_when_it_is_anothers),
		cmocka_unit_test(at_the_same_time),
		cmocka_unit_test(lost_answers),
		cmocka_unit_test(lost_answer_of_a_value),
		cmocka_unit_test(values),
		cmocka_unit_test(value_of_a_loser),
		cmocka_unit_test(so_many_below),
		cmocka_unit_test(entries_are_no_locks_below),
		cmocka_unit_test(changes_take_turns),
		cmocka_unit_test(too_many_changes),
		cmocka_unit_test(none_while_it_settles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
