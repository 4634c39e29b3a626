/* SPDX-License-Identifier: MIT
 *
 * Changes of a lock's data, the right to make them, and questions about it: two engines on an
 * ensemble in memory, with answers lost at every moment; and many questions at a time.
 */
#include "unit_calls.h"

#include "mutation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* ---- attributes and slots ---- */

static void attributes(void **state)
{
	struct stage *stage = begin(1);
	struct host *one = &stage->hosts[0], *two = &stage->hosts[1];
	struct lc_attributes set = {.uid = 7, .gid = 8, .mode = 02770, .door_mode = 0660};
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
	assert_int_equal(answer_of(ask_change(one, "build",
	                                      CHANGE(.set_door_mode = true, .attributes = set))),
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

/* Data that another client keeps in a lock's node is its own; a node that it left empty is not. */
static void data_of_others(void **state)
{
	static const char *const foreign[] = {"10.0.0.1", "\n", "zklockfs: 2\nuid: 1\n",
	                                      "zklockfs: 1"};
	struct stage *stage = begin(2);
	struct host *host = &stage->hosts[0];
	struct lc_change change = {.set_mode = true, .attributes = {.mode = 0700}};
	struct taker holder;

	(void)state;
	put(stage, BUILD, "");
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
	/* A value does not settle whose it is. */
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
	/* Of nobody's the mount says whose it is. */
	put(stage, BUILD, "");
	assert_int_equal(answer_of(ask_change(host, "build", CHANGE(.by = 7, .slots = 2))), -EPERM);
	assert_int_equal(answer_of(ask_change(host, "build", CHANGE(.by = 5, .slots = 2))), 0);
	/* There is nothing to change in another client's. */
	put(stage, BUILD, "v");
	assert_int_equal(
		answer_of(ask_change(host, "build",
	                             CHANGE(.set_mode = true, .attributes = {.mode = 0755}))),
		0);
	finish(stage);
}

/* It is removed and made again between the reading and the writing, and has the same version:
 * then it cannot be helped, but it is said. */
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

/* The user is the owner no more while the lock is being removed. */
static void removed_when_it_is_anothers(void **state)
{
	int kept = 0, gone = 0;

	(void)state;
	for (int i = 0; i < 80; i++) {
		struct stage *stage = begin((uint64_t)i);
		const char *given = i % 2 ? BUILD : BUILD "/below";
		struct question *q;
		int result;

		/* By the lock's owner; or by that of the lock above. */
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

/* Both read before either writes: nobody's change is lost. */
static void at_the_same_time(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 40; seed++) {
		struct stage *stage = begin(seed);
		struct question *mode, *slots, *doors;
		struct lc_attributes set = {.mode = 0700, .door_mode = 0600};

		put(stage, BUILD, MAGIC "uid: 1\ngid: 2\nmode: 755\ndoor_mode: 644\n\nv");
		mode = ask_change(&stage->hosts[0], "build",
		                  CHANGE(.set_mode = true, .attributes = set));
		slots = ask_change(&stage->hosts[1], "build", CHANGE(.slots = 3));
		doors = ask_change(&stage->hosts[1], "build",
		                   CHANGE(.set_door_mode = true, .attributes = set));
		assert_int_equal(answer_of(mode), 0);
		assert_int_equal(answer_of(slots), 0);
		assert_int_equal(answer_of(doors), 0);
		assert_data(stage, BUILD,
		            MAGIC "uid: 1\ngid: 2\nmode: 700\ndoor_mode: 600\nslots: 3\n\nv");
		finish(stage);
	}
}

/* A connection that breaks at every moment, the request done or not. */
static void lost_answers(void **state)
{
	struct stage *stage = begin(3);
	struct host *host = &stage->hosts[0];
	char wanted[64] = "", chunk[2] = "a";
	struct taker holder;
	int both[2] = {0};

	(void)state;
	put(stage, BUILD, "");
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

/* The value is written, and the connection breaks before the answer is there: it is looked for,
 * found, and not written again. */
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
	/* what was written is there for the next holder */
	take(&other, two, "build", LC_EXCLUSIVE);
	assert_int_equal(other.result, NONE);
	assert_int_equal(answer_of(ask_set_value(&holder, "done", false)), 0);
	leave(&holder);
	assert_int_equal(other.result, 0);
	assert_value(two, "build", "done");
	leave(&other);
	finish(stage);
}

/* A holder whose entry is gone does not write, even before it knows. */
static void value_of_a_loser(void **state)
{
	struct stage *stage = begin(5);
	struct taker holder;
	struct question *q;
	char entry[512];

	(void)state;
	put(stage, BUILD, "");
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

/* ---- since when ---- */

/* How often its entry was written, and whether that says since when it holds. */
static int entry_version(struct stage *stage, const struct taker *taker, bool *ret_since)
{
	const struct node *node;
	char path[512];

	snprintf(path, sizeof(path), BUILD "/%s", lc_znode(taker->lc));
	node = node_of(stage, path);
	*ret_since = memmem(node->data, (size_t)node->data_len, "\nheld_since: ", 13);
	return node->stat.version;
}

/* One more write for those who hold for longer than a moment, and none for the others, or if
 * a reason said so already. */
static void since_when_it_holds(void **state)
{
	struct stage *stage = begin(18);
	struct host *host = &stage->hosts[0];
	struct taker holder, waiter;
	unsigned long before, woken;
	bool since;

	(void)state;
	put(stage, BUILD, "");
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
		/* The write and the watch, which comes behind it; a reason comes before both. */
		assert_int_equal(requests(host) - before, 2);
		/* The waiter behind it hears of it, and only watches it anew. */
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

#define MANY (3 * LC_DATA_WRITES_MAX)

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

/* Of reasons only some are under way, and users take turns. */
static void reasons_take_turns(void **state)
{
	struct stage *stage = begin(20);
	struct host *host = &stage->hosts[0];
	struct taker many[MANY], one;
	unsigned long before;
	bool since;

	(void)state;
	put(stage, BUILD, "");
	for (int i = 0; i < MANY; i++)
		take_shared(&many[i], host, 7);
	take_shared(&one, host, 8);
	before = requests(host);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(lc_set_reason(many[i].lc, "why", 3), 0);
	assert_int_equal(lc_set_reason(one.lc, "why", 3), 0);
	assert_int_equal(requests(host) - before, LC_DATA_WRITES_MAX);
	stage_leave(&many[MANY - 1]); /* one that waits for its turn */
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

/* A reason that is there before the lock is costs no write of its own. */
static void why_it_waits(void **state)
{
	struct stage *stage = begin(19);
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
	put(stage, BUILD, "");
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

/* ---- how many locks below a lock ---- */

static int make(struct host *host, const char *lock, uid_t uid)
{
	struct lc_attributes attributes = {.uid = uid, .gid = 2, .mode = 0755, .door_mode = 0644};

	return answer_of(stage_ask_mkdir(host, lock, &attributes));
}

/* As another host does, from the name of that number on. */
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
	/* The owner and root may; deeper down it is another lock. */
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

/* Entries take no room. Another client has made it: it is whose the mount says. */
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

/* ---- many who ask ---- */

static void assert_count(struct question *question, size_t count)
{
	assert_int_equal(question->result, 0);
	assert_int_equal(question->entries, count);
	stage_forget(question);
}

/* One request for all, whoever they are. */
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
	struct stage *stage = begin(21);
	struct host *host = &stage->hosts[0];
	struct question *early, *late, *later;
	struct taker holder;

	(void)state;
	put(stage, BUILD, "");
	early = stage_ask_list(host, "build", 0);
	conn_stall(host->wire.conn, DOWN, stage->agenda.now_us + 300 * MS);
	run(stage, 20 * MS); /* it was listed by then */
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
	struct stage *stage = begin(22);
	struct host *host = &stage->hosts[0];
	struct question *early, *late;

	(void)state;
	put(stage, BUILD, "");
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
	struct stage *stage = begin(23);
	struct host *host = &stage->hosts[0];
	struct question *early, *late, *stays;
	unsigned long before;

	(void)state;
	put(stage, BUILD, "");
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

/* Each user has a share, and they take turns. */
static void shares(void **state)
{
	struct stage *stage = begin(24);
	struct host *host = &stage->hosts[0];
	struct question *many[FLOOD], *one;
	struct taker taker;
	unsigned long before;

	(void)state;
	put(stage, BUILD, "");
	before = requests(host);
	ask_for_many(host, stage_ask_stat, many);
	run(stage, 100); /* no answer yet */
	assert_int_equal(requests(host) - before, LC_USER_READS_MAX);
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

/* Of lists there is one at a time. Who asks for so many that they cannot even be asked in time
 * is told so, and nobody else is. */
static void one_list_at_a_time(void **state)
{
	struct stage *stage = begin(25);
	struct host *host = &stage->hosts[0];
	struct question *many[FLOOD], *one;
	unsigned long before;

	(void)state;
	put(stage, BUILD, "");
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
	/* It is no sign that the ensemble is away. */
	one = stage_ask_list(host, "build", 7);
	run(stage, 50 * MS);
	assert_count(one, 0);
	finish(stage);
}

#define LONG 5000

/* After a long list there is time for others. */
static void rest_after_a_list(void **state)
{
	struct stage *stage = begin(26);
	struct host *host = &stage->hosts[0];
	struct question *list;
	unsigned long before;

	(void)state;
	put(stage, BUILD, "");
	for (int i = 0; i < LONG; i++)
		assert_int_equal(
			world_do(&stage->world, 0,
		                 OP(.kind = ENSEMBLE_CREATE, .path = BUILD "/n-", .sequence = true),
		                 1, NULL),
			ENSEMBLE_OK);
	run(stage, 10 * MS);
	list = stage_ask_list(host, "build", 0);
	while (list->result == NONE)
		run(stage, MS / 10);
	assert_count(list, LONG);
	before = requests(host);
	list = stage_ask_list(host, "build", 0);
	run(stage, LONG * LC_LIST_REST_US - MS);
	assert_int_equal(requests(host) - before, 0);
	run(stage, 20 * MS);
	assert_count(list, LONG);
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
		cmocka_unit_test(since_when_it_holds),
		cmocka_unit_test(reasons_take_turns),
		cmocka_unit_test(why_it_waits),
		cmocka_unit_test(so_many_below),
		cmocka_unit_test(entries_are_no_locks_below),
		cmocka_unit_test(asked_once),
		cmocka_unit_test(answers_are_not_older_than_questions),
		cmocka_unit_test(asked_on_the_next_connection),
		cmocka_unit_test(not_asked_any_more),
		cmocka_unit_test(shares),
		cmocka_unit_test(one_list_at_a_time),
		cmocka_unit_test(rest_after_a_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
