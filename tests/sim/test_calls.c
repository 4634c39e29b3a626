/* SPDX-License-Identifier: MIT
 *
 * What changes a lock's data, takes entries away and looks at who waits: two engines on
 * an ensemble in memory, with answers lost at every moment. And waiters whom nobody wakes.
 */
#include "unit_stage.h"

#include "mutation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define MAGIC "zklockfs: 1\n"
#define CHANGE(...) ((struct lc_change){__VA_ARGS__})
#define EVICTOR(...) (&(struct lc_evictor){__VA_ARGS__})

static struct node *node_of(struct stage *stage, const char *path)
{
	return tree_find(&stage->world.committed, path);
}

/* As an operator, or another client. */
static void put_now(struct stage *stage, const char *path, const char *data)
{
	enum ensemble_kind kind =
		tree_find(&stage->world.proposed, path) ? ENSEMBLE_SET : ENSEMBLE_CREATE;

	assert_int_equal(
		world_do(&stage->world, 0,
	                 OP(.kind = kind, .path = path, .data = data, .data_len = (int)strlen(data),
	                    .version = ENSEMBLE_ANY_VERSION),
	                 1, NULL),
		ENSEMBLE_OK);
}

static void put(struct stage *stage, const char *path, const char *data)
{
	put_now(stage, path, data);
	run(stage, 10 * MS);
}

static void take_away(struct stage *stage, const char *path)
{
	assert_int_equal(
		world_do(&stage->world, 0,
	                 OP(.kind = ENSEMBLE_DELETE, .path = path, .version = ENSEMBLE_ANY_VERSION),
	                 1, NULL),
		ENSEMBLE_OK);
}

static void assert_data(struct stage *stage, const char *path, const char *data)
{
	const struct node *node = node_of(stage, path);

	assert_non_null(node);
	expect((size_t)node->data_len == strlen(data) &&
	               (node->data_len == 0 || memcmp(node->data, data, strlen(data)) == 0),
	       "%s holds '%.*s' instead of '%s'", path, node->data_len, (const char *)node->data,
	       data);
}

/* How much stands behind the empty line. */
static size_t value_len_of(struct stage *stage, const char *path)
{
	const struct node *node = node_of(stage, path);
	const char *data = node->data, *gap = memmem(data, (size_t)node->data_len, "\n\n", 2);

	return gap ? (size_t)(data + node->data_len - gap) - 2 : 0;
}

/* ---- questions ---- */

/* It ends the question. */
static int answer_of(struct question *question)
{
	int result;

	run(question->stage, 3 * SECOND);
	result = question->result;
	assert_int_not_equal(result, NONE);
	stage_forget(question);
	return result;
}

static struct question *ask_change(struct host *host, const char *lock, struct lc_change change)
{
	return stage_ask_change(host, lock, &change);
}

static struct lc_lock_info info_of(struct host *host, const char *lock)
{
	struct question *q = stage_ask_stat(host, lock, 0);
	struct lc_lock_info info;

	run(q->stage, 100 * MS);
	assert_int_equal(q->result, 0);
	info = q->info;
	stage_forget(q);
	return info;
}

static void assert_value(struct host *host, const char *lock, const char *value)
{
	struct question *q = stage_ask_value(host, lock, 0);

	run(q->stage, 100 * MS);
	assert_int_equal(q->result, 0);
	assert_int_equal(q->value_len, strlen(value));
	assert_memory_equal(q->value, value, q->value_len);
	stage_forget(q);
}

static int evict(struct host *host, const char *lock, const char *znode)
{
	return answer_of(
		stage_ask_evict(host, lock, znode, EVICTOR(.name = "uid 0 pid 1 (sh) on m9")));
}

/* ---- takers ---- */

/* By someone who means the lock with that czxid. */
static void begin_take_of(struct taker *taker, struct host *host, const char *lock,
                          enum lc_mode mode, int64_t czxid)
{
	struct lc_request request = {.lock = lock,
	                             .mode = mode,
	                             .wait_us = LC_FOREVER,
	                             .pid = 7,
	                             .command = "test",
	                             .czxid = czxid};

	stage_take(taker, host, &request);
	assert_int_equal(taker->result, NONE);
}

static void take(struct taker *taker, struct host *host, const char *lock, enum lc_mode mode)
{
	begin_take(taker, host, lock, mode);
	run(taker->stage, 200 * MS);
}

static void begin_try(struct taker *taker, struct host *host, enum lc_mode mode, struct taker *old)
{
	struct lc_request request = {.lock = "build",
	                             .mode = mode,
	                             .pid = 7,
	                             .command = "test",
	                             .replaces = old ? old->lc : NULL};

	stage_take(taker, host, &request);
	assert_int_equal(taker->result, NONE);
}

static struct question *ask_set_value(struct taker *taker, const char *value, bool append)
{
	return stage_ask_set_value(taker, value, strlen(value), append);
}

static const char *first_entry(struct stage *stage, const char *lock)
{
	static char znode[256];
	struct question *q = stage_ask_list(&stage->hosts[0], lock, 0);

	run(stage, 100 * MS);
	assert_int_equal(q->result, 0);
	assert_true(q->entries > 0);
	snprintf(znode, sizeof(znode), "%s", q->entry);
	stage_forget(q);
	return znode;
}

/* ---- attributes and slots ---- */

#define BUILD ROOT "/build"

static const struct lc_attributes defaults = {.uid = 1, .gid = 2, .mode = 0755, .door_mode = 0644};

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

/* What another client keeps in a lock's node is its own; what it left empty is not. */
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

/* Whoever asks is judged by what the lock says when it is changed. */
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

/* Whoever is its owner no more while it is asked for. */
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

/* Whose entry is gone does not write, even before it knows. */
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

static unsigned long status_requests(struct host *host)
{
	struct lc_status status;

	lc_status(host->lc, &status);
	return status.counters.requests;
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
		before = status_requests(host);
		assert_int_equal(entry_version(stage, &holder, &since), 0);
		assert_false(since);
		if (reason)
			assert_int_equal(lc_set_reason(holder.lc, "why", 3), 0);
		take(&waiter, &stage->hosts[1], "build", LC_EXCLUSIVE);
		assert_int_equal(entry_version(stage, &waiter, &since), 0);
		assert_false(since);
		assert_int_equal(entry_version(stage, &holder, &since), 1);
		assert_true(since);
		/* The write and the watch, which comes behind it; a reason comes before both. */
		assert_int_equal(status_requests(host) - before, 2);
		/* Who waits behind it hears of it, and only watches it anew. */
		woken = status_requests(waiter.host);
		assert_int_equal(lc_set_reason(holder.lc, "another", 7), 0);
		run(stage, 20 * MS);
		assert_int_equal(status_requests(waiter.host) - woken, 1);
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
	before = status_requests(host);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(lc_set_reason(many[i].lc, "why", 3), 0);
	assert_int_equal(lc_set_reason(one.lc, "why", 3), 0);
	assert_int_equal(status_requests(host) - before, LC_DATA_WRITES_MAX);
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

/* ---- eviction ---- */

static void make_entry(struct stage *stage, int64_t session, const char *prefix, const char *data,
                       char ret_znode[256])
{
	char path[256];
	const char *made = NULL;

	snprintf(path, sizeof(path), BUILD "/%s", prefix);
	assert_int_equal(world_do(&stage->world, session,
	                          OP(.kind = ENSEMBLE_CREATE, .path = path, .data = data,
	                             .data_len = (int)strlen(data), .ephemeral = session != 0,
	                             .sequence = true),
	                          1, &made),
	                 ENSEMBLE_OK);
	snprintf(ret_znode, 256, "%s", strrchr(made, '/') + 1);
	run(stage, 10 * MS);
}

static bool is_there(struct stage *stage, const char *znode)
{
	char path[512];

	snprintf(path, sizeof(path), BUILD "/%s", znode);
	return node_of(stage, path);
}

#define OURS "_c_01234567-89ab-cdef-0011-223344556677-web9.7-lock-"

static void evicting_others(void **state)
{
	struct stage *stage = begin(6);
	struct host *host = &stage->hosts[0];
	int64_t session = world_foreign_session(&stage->world, false);
	char znode[256];

	(void)state;
	put(stage, BUILD, "");
	/* Another client's, and one that no session looks after: at once. */
	make_entry(stage, session, "other-lock-", "10.0.0.1", znode);
	assert_int_equal(evict(host, "build", znode), 0);
	assert_false(is_there(stage, znode));
	assert_int_equal(evict(host, "build", znode), -ENOENT);
	make_entry(stage, 0, OURS, "", znode);
	assert_int_equal(evict(host, "build", znode), 0);
	assert_false(is_there(stage, znode));
	assert_int_equal(evict(host, "build", "no-number"), -ENOENT);
	/* No lock is deleted in an entry's stead. */
	put(stage, BUILD "/below", "");
	assert_int_equal(evict(host, "build", "below"), -ENOENT);
	assert_non_null(node_of(stage, BUILD "/below"));
	finish(stage);
}

/* One of a mount that does nothing is deleted after the session timeout that it tells,
 * or the evictor's own, whichever is longer. */
static void evicting_from_the_dead(void **state)
{
	static const struct {
		const char *data;
		int64_t wait_us;
	} rows[] = {
		{"host: web9\npid: 7\nsession_timeout: 25000\n", 25 * SECOND},
		{"host: web9\npid: 7\nsession_timeout: 4000\n", TIMEOUT_US},
		{"", TIMEOUT_US},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct stage *stage = begin(7);
		int64_t session = world_foreign_session(&stage->world, false);
		char znode[256], path[512], node[256], data[512];
		const struct node *marked;

		put(stage, BUILD, "");
		snprintf(node, sizeof(node), ROOT "/.zklockfs/0123456789abcdef");
		put(stage, node, "web9");
		make_entry(stage, session, OURS, rows[i].data, znode);
		assert_int_equal(evict(&stage->hosts[0], "build", znode), 0);
		snprintf(path, sizeof(path), BUILD "/%s", znode);
		snprintf(data, sizeof(data), "evict: uid 0 pid 1 (sh) on m9\n%s", rows[i].data);
		assert_data(stage, path, data);
		assert_data(stage, node, "web9");
		assert_int_equal(node_of(stage, node)->stat.version, 1);
		/* A second one changes nothing, and is told so. */
		marked = node_of(stage, path);
		assert_int_equal(marked->stat.version, 1);
		assert_int_equal(evict(&stage->hosts[1], "build", znode), 0);
		assert_int_equal(marked->stat.version, 1);
		assert_int_equal(node_of(stage, node)->stat.version, 2);
		assert_int_equal(evict(&stage->hosts[0], "build", znode), 0);
		assert_int_equal(node_of(stage, node)->stat.version, 3);
		run(stage, rows[i].wait_us - 10 * SECOND);
		assert_true(is_there(stage, znode));
		run(stage, 2 * SECOND);
		assert_false(is_there(stage, znode));
		finish(stage);
	}
}

/* The one who evicts does not wait for the answer. A mark that was made all the same is followed
 * up: the entry goes in the end. */
static void evicting_without_patience(void **state)
{
	static const struct lc_evictor root = {.uid = 0, .name = "root"};
	int marked_late = 0;

	(void)state;
	for (int i = 0; i < 60; i++) {
		struct stage *stage = begin(7);
		int64_t session = world_foreign_session(&stage->world, false);
		char znode[256], path[512];
		struct question *question;
		bool marked;

		put(stage, BUILD, "");
		make_entry(stage, session, OURS, "", znode);
		snprintf(path, sizeof(path), BUILD "/%s", znode);
		question = stage_ask_evict(&stage->hosts[0], "build", znode, &root);
		run(stage, i * 50);
		if (question->call)
			stage_cancel(question);
		else
			i = 60; /* it was answered */
		run(stage, SECOND);
		marked = node_of(stage, path)->stat.version > 0;
		marked_late += marked && i < 60;
		run(stage, TIMEOUT_US + 2 * SECOND);
		assert_int_equal(is_there(stage, znode), !marked);
		stage_forget(question);
		finish(stage);
	}
	assert_true(marked_late > 0);
}

/* Its mount goes on changing it meanwhile; the connection breaks; the engine ends. */
static void evicting_with_trouble(void **state)
{
	char znode[256], path[512];

	(void)state;
	for (int i = 0; i < 40; i++) {
		struct stage *stage = begin(8);
		struct host *host = &stage->hosts[0];
		int64_t session = world_foreign_session(&stage->world, false);
		struct question *q;

		put(stage, BUILD, "");
		make_entry(stage, session, OURS, "host: web9\n", znode);
		snprintf(path, sizeof(path), BUILD "/%s", znode);
		q = stage_ask_evict(host, "build", znode, EVICTOR(.name = "me"));
		run(stage, i * 200);
		if (i % 2)
			conn_break(host->wire.conn, -1);
		else
			world_do(&stage->world, 0,
			         OP(.kind = ENSEMBLE_SET, .path = path, .data = "reason: x\n",
			            .data_len = 10, .version = ENSEMBLE_ANY_VERSION),
			         1, NULL);
		assert_int_equal(answer_of(q), 0);
		/* The last to write may have been its mount, which then has seen the mark. */
		if (i % 2)
			assert_data(stage, path, "evict: me\nhost: web9\n");
		else if (node_of(stage, path)->data_len > 10)
			assert_data(stage, path, "evict: me\nreason: x\n");
		if (i % 4 < 2) {
			run(stage, TIMEOUT_US);
			assert_false(is_there(stage, znode));
		}
		finish(stage);
	}
}

/* An entry of another client is changed before its delete arrives: that is tried again. */
static void evicting_what_changes(void **state)
{
	char znode[256], path[512];
	int met = 0;

	(void)state;
	for (int i = 0; i < 60; i++) {
		struct stage *stage = begin(8);
		struct question *q;

		put(stage, BUILD, "");
		make_entry(stage, world_foreign_session(&stage->world, false), "other-lock-", "x",
		           znode);
		snprintf(path, sizeof(path), BUILD "/%s", znode);
		q = stage_ask_evict(&stage->hosts[0], "build", znode, EVICTOR(.name = "me"));
		run(stage, i * 50);
		if (tree_find(&stage->world.proposed, path)) {
			met++;
			put_now(stage, path, "y");
		}
		run(stage, 100 * MS); /* it does not wait for anything else */
		assert_int_equal(q->result, 0);
		assert_false(is_there(stage, znode));
		finish(stage);
	}
	assert_in_range(met, 10, 59);
}

/* Its taker, of an entry of a mount; the lock's owner, and root. */
static void who_may_evict(void **state)
{
	static const struct {
		bool ours;
		uid_t uid;
		int64_t other;
		int result;
	} rows[] = {
		{true, 0, 0, 0},       {true, 9, 0, 0},       {true, 7, 0, 0},
		{true, 8, 0, -EPERM},  {true, 9, 1, -ENOENT}, {false, 0, 0, 0},
		{false, 9, 0, -EPERM}, {false, 7, 0, 0},      {false, 0, 1, -ENOENT},
	};
	struct stage *stage = begin(13);
	struct host *host = &stage->hosts[0];

	(void)state;
	put(stage, BUILD, MAGIC "uid: 7\ngid: 2\nmode: 755\ndoor_mode: 644\n\n");
	for (size_t i = 0; i < LENGTH(rows); i++) {
		char znode[256], path[512];
		struct question *q;
		struct node *node;

		make_entry(stage, world_foreign_session(&stage->world, false),
		           rows[i].ours ? OURS : "other-lock-", "host: web9\nuid: 9\n", znode);
		snprintf(path, sizeof(path), BUILD "/%s", znode);
		node = node_of(stage, path);
		q = stage_ask_evict(host, "build", znode,
		                    EVICTOR(.uid = rows[i].uid, .name = "me",
		                            .token = node->stat.czxid + rows[i].other));
		assert_int_equal(answer_of(q), rows[i].result);
		node = node_of(stage, path);
		assert_int_equal(!node || node->stat.version > 0, rows[i].result == 0);
	}
	finish(stage);
}

/* Who is the lock's owner no more when it is to be done. */
static void evicted_by_the_former_owner(void **state)
{
	int done_in_time = 0, refused = 0;

	(void)state;
	for (int i = 0; i < 60; i++) {
		struct stage *stage = begin((uint64_t)i);
		char znode[256], path[512];
		struct question *q;
		bool in_time;

		put(stage, BUILD, MAGIC "uid: 7\ngid: 2\nmode: 755\ndoor_mode: 644\n\n");
		make_entry(stage, world_foreign_session(&stage->world, false),
		           i % 2 ? OURS : "other-lock-", "uid: 9\n", znode);
		snprintf(path, sizeof(path), BUILD "/%s", znode);
		q = stage_ask_evict(&stage->hosts[0], "build", znode,
		                    EVICTOR(.uid = 7, .name = "me"));
		run(stage, i / 2 * 400);
		in_time = !tree_find(&stage->world.proposed, path) ||
		          tree_find(&stage->world.proposed, path)->stat.version > 0;
		put_now(stage, BUILD, MAGIC "uid: 8\ngid: 2\nmode: 755\ndoor_mode: 644\n\n");
		assert_int_equal(answer_of(q), in_time ? 0 : -EPERM);
		assert_int_equal(!node_of(stage, path) || node_of(stage, path)->stat.version > 0,
		                 in_time);
		done_in_time += in_time;
		refused += !in_time;
		finish(stage);
	}
	assert_true(done_in_time > 0 && refused > 0);
}

/* ---- pokes ---- */

#define CROWD 80

/* One holds, and many wait behind it: nobody watches their entries but the first one's. */
static void crowd(struct taker takers[CROWD], struct host *host, const char *lock)
{
	for (int i = 0; i < CROWD; i++)
		begin_take(&takers[i], host, lock, LC_EXCLUSIVE);
	run(host->owner, SECOND);
	assert_int_equal(takers[0].result, 0);
}

static void disperse(struct taker takers[CROWD])
{
	for (int i = CROWD - 1; i >= 0; i--)
		stage_leave(&takers[i]);
	run(takers[0].host->owner, SECOND);
}

/* By that mount, which is not waited for. */
static struct question *begin_evict(struct host *host, const char *lock, const struct taker *victim)
{
	return stage_ask_evict(host, lock, lc_znode(victim->lc), EVICTOR(.name = "me"));
}

static void root_at(struct host *host, const char *root)
{
	stage_stop(host, true);
	assert_int_equal(stage_start(host, root, 0), 0);
	run(host->owner, SECOND);
	assert_true(lc_ready(host->lc));
}

static unsigned long requests(struct host *host)
{
	struct lc_status status;

	lc_status(host->lc, &status);
	return status.counters.requests;
}

/* At once, whoever stands before it, and wherever the two have their roots; and nobody else's
 * entry is read. */
static void poked_at_once(void **state)
{
	static const struct {
		const char *victim, *evictor;
	} roots[] = {
		{"/locks", "/locks"},          {"/locks/team", "/locks"},
		{"/locks", "/locks/team"},     {"/locks/team/one", "/locks"},
		{"/locks", "/locks/team/one"}, {"/locks/team/one", "/locks/team"},
	};
	static struct taker takers[CROWD];

	(void)state;
	for (size_t i = 0; i < LENGTH(roots); i++) {
		struct stage *stage = begin(i + 20);
		struct host *victim = &stage->hosts[0], *evictor = &stage->hosts[1];
		const char *lock = "/locks/team/one/build";
		struct question *q;
		unsigned long before;

		put(stage, "/locks/team", "");
		put(stage, "/locks/team/one", "");
		put(stage, lock, "");
		root_at(victim, roots[i].victim);
		root_at(evictor, roots[i].evictor);
		crowd(takers, victim, lock + strlen(roots[i].victim) + 1);
		before = requests(victim);
		q = begin_evict(evictor, lock + strlen(roots[i].evictor) + 1, &takers[40]);
		run(stage, 60 * MS);
		assert_int_equal(takers[40].result, -ECANCELED);
		expect(requests(victim) - before < 8, "a poke costs %lu requests",
		       requests(victim) - before);
		assert_int_equal(answer_of(q), 0);
		for (int k = 1; k < CROWD; k++)
			assert_int_equal(takers[k].result, k == 40 ? -ECANCELED : NONE);
		disperse(takers);
		finish(stage);
	}
}

/* Two mounts at the same time, one of them the victims' own; and more than the node names. */
static void poked_together(void **state)
{
	static struct taker takers[CROWD];
	struct question *questions[CROWD];

	(void)state;
	for (int many = 0; many < 3; many++) {
		struct stage *stage = begin(30);
		int last = many == 2 ? CROWD : 20;
		unsigned long before;

		put(stage, BUILD, "");
		crowd(takers, &stage->hosts[0], "build");
		if (many == 2)
			host_pause(&stage->hosts[0], SECOND);
		before = requests(&stage->hosts[0]);
		for (int i = 2; i < last; i++)
			questions[i] =
				begin_evict(&stage->hosts[many ? 1 : i % 2], "build", &takers[i]);
		run(stage, many == 2 ? 1200 * MS : 300 * MS);
		if (many == 1)
			expect(requests(&stage->hosts[0]) - before < 70,
			       "%d pokes cost %lu requests", last - 2,
			       requests(&stage->hosts[0]) - before);
		for (int i = 1; i < CROWD; i++)
			assert_int_equal(takers[i].result, i > 1 && i < last ? -ECANCELED : NONE);
		for (int i = 2; i < last; i++)
			assert_int_equal(answer_of(questions[i]), 0);
		disperse(takers);
		finish(stage);
	}
}

/* The node of that mount whose path ends so. */
static struct node *home_of(struct host *host, const char *suffix)
{
	struct node *home = node_of(host->owner, ROOT "/.zklockfs")->children;

	while (home->stat.ephemeral_owner != host->wire.session ||
	       strlen(home->name) != 16 + strlen(suffix))
		home = home->next;
	return home;
}

static void mark(struct stage *stage, const struct taker *victim)
{
	char path[512];

	snprintf(path, sizeof(path), BUILD "/%s", lc_znode(victim->lc));
	put_now(stage, path, "evict: me\nhost: m0\n");
}

/* Mounts that know nothing of pokes write to the heartbeats' node; and any node may vanish, with
 * what it tells. */
static void poked_otherwise(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct stage *stage = begin(11);
		struct host *host = &stage->hosts[0];
		struct node *home = home_of(host, i == 2 ? "-pokes" : "");
		struct taker holder, waiters[2];
		struct question *q;

		put(stage, BUILD, "");
		take(&holder, &stage->hosts[1], "build", LC_EXCLUSIVE);
		for (int k = 0; k < 2; k++)
			take(&waiters[k], host, "build", LC_EXCLUSIVE);
		mark(stage, &waiters[1]);
		run(stage, 4 * SECOND);
		assert_int_equal(waiters[1].result, NONE);
		if (i == 0)
			put(stage, home->path, "m0");
		else
			take_away(stage, home->path);
		run(stage, 4 * SECOND);
		assert_int_equal(waiters[1].result, -ECANCELED);
		assert_int_equal(waiters[0].result, NONE);
		leave(&waiters[1]);
		leave(&waiters[0]);
		/* What came in its place works as well. */
		take(&waiters[0], host, "build", LC_EXCLUSIVE);
		take(&waiters[1], host, "build", LC_EXCLUSIVE);
		q = begin_evict(&stage->hosts[1], "build", &waiters[1]);
		run(stage, 60 * MS);
		assert_int_equal(waiters[1].result, -ECANCELED);
		assert_int_equal(answer_of(q), 0);
		for (int k = 0; k < 2; k++)
			leave(&waiters[k]);
		leave(&holder);
		finish(stage);
	}
}

/* A heartbeat that was not answered, and was done or not, is no poke; what came besides is one. */
static void poked_in_a_gap(void **state)
{
	static struct taker takers[CROWD];

	(void)state;
	for (int i = 0; i < 60; i++) {
		struct stage *stage = begin((uint64_t)i);
		struct host *host = &stage->hosts[0];
		bool poked = i % 3 == 2;
		unsigned long before;
		int32_t version;
		struct node *home;

		put(stage, BUILD, "");
		crowd(takers, host, "build");
		home = home_of(host, "");
		version = tree_find(&stage->world.proposed, home->path)->stat.version;
		while (tree_find(&stage->world.proposed, home->path)->stat.version == version)
			run(stage, 100);
		before = requests(host);
		run(stage, i * 50);
		if (poked) {
			mark(stage, &takers[40]);
			put_now(stage, home->path, "m0");
		}
		conn_break(host->wire.conn, i % 2 ? 1 : 0);
		run(stage, 4 * SECOND);
		assert_int_equal(takers[40].result, poked ? -ECANCELED : NONE);
		if (!poked)
			expect(requests(host) - before < CROWD / 2,
			       "after %d us a connection costs %lu requests", i * 50,
			       requests(host) - before);
		disperse(takers);
		finish(stage);
	}
}

/* A server that takes connections and says nothing is not waited for: each time for a fifth of
 * the session's time. */
static void a_server_that_says_nothing(void **state)
{
	struct stage *stage = begin(29);
	struct host *host = &stage->hosts[0];
	uint64_t before = host->wire.conn_count;

	(void)state;
	world_hang(&stage->world, 0, 25 * SECOND);
	run(stage, 24 * SECOND);
	assert_in_range(host->wire.conn_count - before, 8, 13);
	run(stage, 10 * SECOND);
	assert_true(lc_ready(host->lc));
	finish(stage);
}

/* Heartbeats: the lease of an idle mount may get older than that of one whose locks are held. */
static void beating_for_holders(void **state)
{
	struct stage *stage = begin(30);
	struct host *host = &stage->hosts[0];
	struct taker holder;
	unsigned long before;

	(void)state;
	put(stage, BUILD, "");
	before = requests(host);
	run(stage, 20 * SECOND);
	assert_in_range(requests(host) - before, 11, 13);
	take(&holder, host, "build", LC_EXCLUSIVE);
	run(stage, SECOND);
	before = requests(host);
	run(stage, 20 * SECOND);
	assert_in_range(requests(host) - before, 15, 17);
	leave(&holder);
	before = requests(host);
	run(stage, 20 * SECOND);
	assert_in_range(requests(host) - before, 11, 13);
	finish(stage);
}

/* ---- a lock that is removed and made again ---- */

/* An operator removes a lock with all entries, and it is not made again: the holder has lost it,
 * and all that wait, the first of their mount or not, are told that it is not there. */
static void removed_for_good(void **state)
{
	struct stage *stage = begin(4);
	struct taker holder, waiters[4];
	struct node *entry, *next;

	(void)state;
	put(stage, BUILD, "");
	take(&holder, &stage->hosts[0], "build", LC_EXCLUSIVE);
	assert_int_equal(holder.result, 0);
	for (int i = 0; i < 4; i++)
		take(&waiters[i], &stage->hosts[i % 2], "build", LC_EXCLUSIVE);
	DL_FOREACH_SAFE(tree_find(&stage->world.proposed, BUILD)->children, entry, next)
		take_away(stage, entry->path);
	take_away(stage, BUILD);
	run(stage, SECOND);
	assert_int_equal(holder.lost, 1);
	leave(&holder);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(waiters[i].result, -ENOENT);
		leave(&waiters[i]);
	}
	assert_true(lc_idle(stage->hosts[0].lc) && lc_idle(stage->hosts[1].lc));
	finish(stage);
}

/* What was refused is tried again, and not at once. */
static void refused_for_a_while(void **state)
{
	struct stage *stage = begin(28);
	struct host *host = &stage->hosts[0];
	struct taker taker;

	(void)state;
	put(stage, BUILD, "");
	take(&taker, host, "build", LC_EXCLUSIVE);
	stage->world.refuse_next = 2;
	leave(&taker);
	assert_int_equal(stage->world.refuse_next, 1);
	run(stage, 5 * SECOND);
	assert_int_equal(stage->world.refuse_next, 0);
	assert_null(node_of(stage, BUILD)->children);
	finish(stage);
}

/* One that waited behind an entry whose delete was refused is gone with the lock; one that
 * came in between finds the new lock free. */
static void removed_behind_a_leaver(void **state)
{
	(void)state;
	for (int i = 0; i < 60; i++) {
		struct stage *stage = begin(12);
		struct host *host = &stage->hosts[0];
		struct lc_request request = {.lock = "build",
		                             .mode = LC_EXCLUSIVE,
		                             .wait_us = LC_FOREVER,
		                             .pid = 7,
		                             .command = "test"};
		struct taker leaver, waiter, late = {.host = host, .result = NONE};
		struct node *lock, *entry, *next;

		put(stage, BUILD, "");
		take(&leaver, host, "build", LC_EXCLUSIVE);
		take(&waiter, host, "build", LC_SHARED);
		stage->world.refuse_next = 1;
		leave(&leaver);
		assert_int_equal(waiter.result, NONE);
		lock = tree_find(&stage->world.proposed, BUILD);
		DL_FOREACH_SAFE(lock->children, entry, next)
			take_away(stage, entry->path);
		take_away(stage, BUILD);
		run(stage, i * 50);
		stage_take(&late, host, &request);
		run(stage, i % 7 * 200);
		assert_int_equal(world_do(&stage->world, 0,
		                          OP(.kind = ENSEMBLE_CREATE, .path = BUILD), 1, NULL),
		                 ENSEMBLE_OK);
		run(stage, 5 * SECOND);
		assert_int_not_equal(waiter.result, NONE);
		assert_int_not_equal(late.result, NONE);
		leave(&waiter);
		leave(&late);
		finish(stage);
	}
}

/* ---- at once or not at all ---- */

/* Who shares is not in its own way; another one is. */
static void upgrading_at_once(void **state)
{
	struct stage *stage = begin(14);
	struct host *host = &stage->hosts[0];
	struct taker own, other, upgrade;

	(void)state;
	put(stage, BUILD, "");
	take(&own, host, "build", LC_SHARED);
	take(&other, &stage->hosts[1], "build", LC_SHARED);
	begin_try(&upgrade, host, LC_EXCLUSIVE, &own);
	run(stage, 200 * MS);
	assert_int_equal(upgrade.result, -EAGAIN);
	leave(&upgrade);
	leave(&other);
	begin_try(&upgrade, host, LC_EXCLUSIVE, &own);
	run(stage, 200 * MS);
	assert_int_equal(upgrade.result, 0);
	leave(&own);
	leave(&upgrade);
	finish(stage);
}

/* Who waits behind one of its own that shares need not wait for that: for others it does. */
static void replacing_later(void **state)
{
	struct stage *stage = begin(14);
	struct host *host = &stage->hosts[0];
	struct taker holder, own, other, waiter;

	(void)state;
	put(stage, BUILD, "");
	take(&holder, host, "build", LC_EXCLUSIVE);
	take(&other, &stage->hosts[1], "build", LC_SHARED);
	take(&own, host, "build", LC_SHARED);
	take(&waiter, host, "build", LC_EXCLUSIVE);
	leave(&holder);
	assert_int_equal(own.result, 0);
	assert_int_equal(other.result, 0);
	assert_false(lc_replace(own.lc, waiter.lc));
	assert_true(lc_replace(waiter.lc, own.lc));
	assert_false(lc_replace(waiter.lc, own.lc));
	host_wake(host);
	run(stage, 200 * MS);
	assert_int_equal(waiter.result, NONE);
	leave(&other);
	assert_int_equal(waiter.result, 0);
	leave(&own);
	leave(&waiter);
	finish(stage);
}

/* One for one, of one lock. */
static void replacing_in_vain(void **state)
{
	struct stage *stage = begin(14);
	struct host *host = &stage->hosts[0];
	struct taker own, also, elsewhere, waiter, second;

	(void)state;
	put(stage, BUILD, "");
	put(stage, ROOT "/other", "");
	take(&own, host, "build", LC_SHARED);
	take(&also, host, "build", LC_SHARED);
	take(&elsewhere, host, "other", LC_SHARED);
	take(&waiter, host, "build", LC_EXCLUSIVE);
	take(&second, host, "build", LC_EXCLUSIVE);
	assert_true(lc_replace(waiter.lc, own.lc));
	assert_false(lc_replace(waiter.lc, also.lc));
	assert_false(lc_replace(second.lc, own.lc));
	assert_false(lc_replace(second.lc, elsewhere.lc));
	leave(&second);
	leave(&also);
	assert_int_equal(waiter.result, 0);
	leave(&elsewhere);
	leave(&own);
	leave(&waiter);
	finish(stage);
}

/* What was read before it asked says nothing to it. */
static void trying_after_a_release(void **state)
{
	struct stage *stage = begin(15);
	struct host *host = &stage->hosts[0];
	struct taker holder, first, second;

	(void)state;
	put(stage, BUILD, "");
	take(&holder, &stage->hosts[1], "build", LC_EXCLUSIVE);
	take(&first, host, "build", LC_EXCLUSIVE); /* the slots are known then */
	leave(&first);
	conn_stall(host->wire.conn, DOWN, stage->agenda.now_us + 500 * MS);
	begin_try(&first, host, LC_EXCLUSIVE, NULL);
	run(stage, 10 * MS);
	leave(&holder);
	assert_null(node_of(stage, BUILD)->children);
	begin_try(&second, host, LC_EXCLUSIVE, NULL);
	run(stage, SECOND);
	assert_int_equal(first.result, -EAGAIN);
	assert_int_equal(second.result, 0);
	leave(&first);
	leave(&second);
	finish(stage);
}

/* That a lock is not free only the ensemble says; who leaves takes no more. */
static void trying_in_vain(void **state)
{
	struct stage *stage = begin(17);
	struct host *host = &stage->hosts[0];
	struct lc_request request = {.lock = "build", .pid = 7, .command = "test"};
	struct taker try;

	(void)state;
	put(stage, BUILD, "");
	conn_stall(host->wire.conn, DOWN, stage->agenda.now_us + 4 * SECOND);
	begin_try(&try, host, LC_EXCLUSIVE, NULL);
	run(stage, 3 * SECOND);
	assert_int_equal(try.result, -EHOSTUNREACH);
	leave(&try);
	begin_try(&try, host, LC_EXCLUSIVE, NULL);
	lc_drain(host->lc);
	host_wake(host);
	run(stage, SECOND);
	assert_int_equal(try.result, -ESHUTDOWN);
	leave(&try);
	stage_take(&try, host, &request);
	assert_int_equal(try.result, -ESHUTDOWN);
	finish(stage);
}

/* Where numbers repeat the entries are read after the listing. One may be gone by then, and there
 * may be fewer slots: the number of slots that there were does not go with what is there. */
static void fewer_slots_where_numbers_repeat(void **state)
{
	char znode[256], path[512];

	(void)state;
	for (int i = 0; i < 100; i++) {
		struct stage *stage = begin(31);
		int64_t session = world_foreign_session(&stage->world, false);
		struct taker holder, waiter;

		put(stage, BUILD, MAGIC "uid: 1\ngid: 2\nmode: 755\ndoor_mode: 644\nslots: 2\n\n");
		world_set_counter(&stage->world, BUILD, INT32_MAX - 10);
		make_entry(stage, session, OURS, "host: web9\n", znode);
		snprintf(path, sizeof(path), BUILD "/%s", znode);
		take(&holder, &stage->hosts[1], "build", LC_EXCLUSIVE);
		assert_int_equal(holder.result, 0);
		take(&waiter, &stage->hosts[0], "build", LC_EXCLUSIVE);
		/* Somebody comes, so all look. */
		assert_int_equal(world_do(&stage->world, session,
		                          OP(.kind = ENSEMBLE_CREATE, .path = BUILD "/" OURS,
		                             .ephemeral = true, .sequence = true),
		                          1, NULL),
		                 ENSEMBLE_OK);
		run(stage, i * 20);
		put_now(stage, BUILD,
		        MAGIC "uid: 1\ngid: 2\nmode: 755\ndoor_mode: 644\nslots: 1\n\n");
		take_away(stage, path);
		run(stage, 2 * SECOND);
		assert_int_equal(waiter.result, NONE);
		leave(&holder);
		run(stage, SECOND);
		assert_int_equal(waiter.result, 0);
		leave(&waiter);
		finish(stage);
	}
}

/* ---- handing over ---- */

/* Who has the lock from one of its own mount, and has no entry any more, is guarded by the
 * former one's until that is known, whatever becomes of the request that asks. */
static void guarded_without_contact(void **state)
{
	(void)state;
	for (int delivered = -1; delivered <= 0; delivered++) {
		struct stage *stage = begin(13);
		struct host *host = &stage->hosts[0];
		struct taker takers[3];
		char path[512];

		put(stage, BUILD, "");
		for (int i = 0; i < 3; i++)
			take(&takers[i], host, "build", LC_EXCLUSIVE);
		snprintf(path, sizeof(path), BUILD "/%s", lc_znode(takers[2].lc));
		take_away(stage, path);
		stage_leave(&takers[0]);
		run(stage, 100);
		assert_int_equal(takers[1].result, 0);
		stage_leave(&takers[1]);
		run(stage, 100);
		assert_int_equal(takers[2].result, 0);
		conn_break(host->wire.conn, delivered);
		for (int ms = 0; ms < 50000 && takers[2].lost == 0; ms++) {
			assert_true(node_of(stage, BUILD)->children || !lc_holds(takers[2].lc));
			run(stage, MS / 10);
		}
		assert_int_equal(takers[2].lost, 1);
		leave(&takers[2]);
		assert_null(node_of(stage, BUILD)->children);
		finish(stage);
	}
}

/* As soon as it is told that the lock is gone nothing is handed over any more. */
static void nothing_handed_over_in_a_new_lock(void **state)
{
	(void)state;
	for (uint64_t seed = 100; seed < 140; seed++) {
		struct stage *stage = begin(seed);
		struct host *host = &stage->hosts[0];
		struct taker holder, waiter;
		char paths[2][512];
		const struct ensemble_op ops[] = {
			{.kind = ENSEMBLE_DELETE,
		         .path = paths[0],
		         .version = ENSEMBLE_ANY_VERSION},
			{.kind = ENSEMBLE_DELETE,
		         .path = paths[1],
		         .version = ENSEMBLE_ANY_VERSION},
			{.kind = ENSEMBLE_DELETE, .path = BUILD, .version = ENSEMBLE_ANY_VERSION},
			{.kind = ENSEMBLE_CREATE, .path = BUILD},
		};

		put(stage, BUILD, "");
		take(&holder, host, "build", LC_EXCLUSIVE);
		take(&waiter, host, "build", LC_EXCLUSIVE);
		snprintf(paths[0], sizeof(paths[0]), BUILD "/%s", lc_znode(holder.lc));
		snprintf(paths[1], sizeof(paths[1]), BUILD "/%s", lc_znode(waiter.lc));
		assert_int_equal(world_do(&stage->world, 0, ops, 4, NULL), ENSEMBLE_OK);
		run(stage, 28 * MS / 10); /* the events are there, the list may be not */
		leave(&holder);
		assert_int_not_equal(waiter.result, 0);
		leave(&waiter);
		finish(stage);
	}
}

/* Who means the lock of that name that was there before gets ENOENT at once, however the new
 * one would have come to him: by a listing, by a holder who leaves at this moment. */
static void meaning_another_lock(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		struct stage *stage = begin((uint64_t)i);
		struct host *host = &stage->hosts[0];
		struct taker holder, misled, right;
		int64_t former, now;

		put(stage, BUILD, "");
		former = info_of(host, "build").czxid;
		take_away(stage, BUILD);
		put(stage, BUILD, "");
		now = node_of(stage, BUILD)->stat.czxid;
		if (i < 20) {
			begin_take_of(&misled, host, "build", i % 2 ? LC_EXCLUSIVE : LC_SHARED,
			              former);
			run(stage, 200 * MS);
			assert_int_equal(misled.result, -ENOENT);
			leave(&misled);
			assert_null(node_of(stage, BUILD)->children);
		}
		begin_take_of(&holder, host, "build", LC_EXCLUSIVE, now);
		run(stage, i < 40 ? 200 * MS : i % 23 * 300);
		begin_take_of(&misled, host, "build", LC_EXCLUSIVE, former);
		begin_take_of(&right, host, "build", LC_EXCLUSIVE, now);
		run(stage, i % 29 * 200);
		stage_leave(&holder);
		run(stage, 200 * MS);
		assert_int_equal(misled.result, -ENOENT);
		assert_int_equal(right.result, 0);
		leave(&misled);
		leave(&right);
		assert_null(node_of(stage, BUILD)->children);
		finish(stage);
	}
}

/* ---- who waits behind a holder ---- */

/* 1: somebody waits behind it. */
static int has_waiters(struct taker *taker)
{
	struct question *q = stage_ask_waiters(taker);
	bool waited;
	int result;

	run(taker->stage, 100 * MS);
	waited = q->count > 0;
	result = answer_of(q);
	return result < 0 ? result : waited;
}

static void waiting_behind(void **state)
{
	struct stage *stage = begin(9);
	struct host *one = &stage->hosts[0], *two = &stage->hosts[1];
	struct taker first, second, third;

	(void)state;
	put(stage, BUILD, "");
	take(&first, one, "build", LC_EXCLUSIVE);
	assert_int_equal(first.result, 0);
	assert_int_equal(has_waiters(&first), 0);
	take(&second, two, "build", LC_SHARED);
	assert_int_equal(has_waiters(&first), 1);
	leave(&second);
	assert_int_equal(has_waiters(&first), 0);
	take(&second, one, "build", LC_EXCLUSIVE);
	assert_int_equal(has_waiters(&first), 1);
	leave(&first);
	assert_int_equal(second.result, 0);
	assert_int_equal(has_waiters(&second), 0);
	leave(&second);
	/* Who shares does not wait; who would have it alone does. */
	take(&first, one, "build", LC_SHARED);
	take(&second, two, "build", LC_SHARED);
	assert_int_equal(second.result, 0);
	assert_int_equal(has_waiters(&first), 0);
	take(&third, two, "build", LC_EXCLUSIVE);
	assert_int_equal(has_waiters(&first), 1);
	assert_int_equal(has_waiters(&second), 1);
	leave(&third);
	assert_int_equal(has_waiters(&first), 0);
	leave(&second);
	leave(&first);
	/* Nor does one of several at a time. */
	assert_int_equal(
		answer_of(ask_change(one, "build", CHANGE(.slots = 2, .attributes = defaults))), 0);
	take(&first, one, "build", LC_EXCLUSIVE);
	take(&second, two, "build", LC_EXCLUSIVE);
	assert_int_equal(first.result, 0);
	assert_int_equal(second.result, 0);
	assert_int_equal(has_waiters(&first), 0);
	{
		struct question *q = stage_ask_list(one, "build", 0);

		run(stage, 100 * MS);
		assert_int_equal(q->entries, 2);
		assert_int_equal(q->held, 2);
		stage_forget(q);
	}
	take(&third, one, "build", LC_EXCLUSIVE);
	assert_int_equal(third.result, NONE);
	assert_int_equal(has_waiters(&first), 1);
	leave(&third);
	leave(&second);
	leave(&first);
	finish(stage);
}

/* A holder that has more slots behind it than there are now does not wait behind itself. */
static void waiting_where_slots_were(void **state)
{
	struct stage *stage = begin(26);
	struct taker first, second, third;

	(void)state;
	put(stage, BUILD, MAGIC "uid: 1\ngid: 2\nmode: 755\ndoor_mode: 644\nslots: 2\n\n");
	take(&first, &stage->hosts[0], "build", LC_EXCLUSIVE);
	take(&second, &stage->hosts[0], "build", LC_EXCLUSIVE);
	assert_int_equal(second.result, 0);
	put(stage, BUILD, MAGIC "uid: 1\ngid: 2\nmode: 755\ndoor_mode: 644\n\n");
	run(stage, SECOND);
	assert_int_equal(has_waiters(&second), 0);
	take(&third, &stage->hosts[1], "build", LC_EXCLUSIVE);
	assert_int_equal(has_waiters(&second), 1);
	leave(&third);
	leave(&second);
	leave(&first);
	finish(stage);
}

/* A holder that loses the lock before the answer comes is told that; one whose entry is gone,
 * which nothing else has told, hears of it by the question. */
static void asked_by_losers(void **state)
{
	struct stage *stage = begin(27);
	struct host *host = &stage->hosts[0];
	struct taker holder;
	struct question *q;

	(void)state;
	put(stage, BUILD, "");
	take(&holder, host, "build", LC_EXCLUSIVE);
	mutation = MUTATE_drop_changed;
	take_away(stage, node_of(stage, BUILD)->children->path);
	run(stage, SECOND);
	assert_int_equal(holder.lost, 0);
	assert_int_equal(has_waiters(&holder), 0);
	assert_int_equal(holder.lost, 1);
	mutation = MUTATE_none;
	leave(&holder);
	take(&holder, host, "build", LC_EXCLUSIVE);
	conn_stall(host->wire.conn, DOWN, stage->agenda.now_us + 100 * MS);
	q = stage_ask_waiters(&holder);
	run(stage, 10 * MS);
	lc_forfeit(host->lc);
	host_wake(host);
	assert_int_equal(answer_of(q), -EIO);
	assert_int_equal(holder.lost, 1);
	leave(&holder);
	finish(stage);
}

static void watching_waiters(void **state)
{
	struct stage *stage = begin(10);
	struct host *one = &stage->hosts[0], *two = &stage->hosts[1];
	struct taker holder, waiter;

	(void)state;
	put(stage, BUILD, "");
	take(&holder, one, "build", LC_EXCLUSIVE);
	/* Nobody watches: nobody is told. */
	assert_int_equal(has_waiters(&holder), 0);
	take(&waiter, two, "build", LC_EXCLUSIVE);
	assert_int_equal(holder.waiters_changed, 0);
	leave(&waiter);
	stage_watch_waiters(&holder, true);
	assert_int_equal(has_waiters(&holder), 0);
	assert_int_equal(holder.waiters_changed, 0);
	take(&waiter, two, "build", LC_EXCLUSIVE);
	assert_int_equal(holder.waiters_changed, 1);
	assert_int_equal(has_waiters(&holder), 1);
	/* Once: whoever wants to know more says so. */
	leave(&waiter);
	assert_int_equal(holder.waiters_changed, 1);
	stage_watch_waiters(&holder, true);
	assert_int_equal(has_waiters(&holder), 0);
	/* It does not need the connection that it was asked on. */
	conn_break(one->wire.conn, -1);
	run(stage, 100 * MS);
	take(&waiter, two, "build", LC_EXCLUSIVE);
	run(stage, 2 * SECOND);
	assert_int_equal(holder.waiters_changed, 2);
	leave(&waiter);
	stage_watch_waiters(&holder, true);
	assert_int_equal(has_waiters(&holder), 0);
	stage_watch_waiters(&holder, false);
	take(&waiter, two, "build", LC_EXCLUSIVE);
	assert_int_equal(holder.waiters_changed, 2);
	/* Who has left is not told either. */
	stage_watch_waiters(&holder, true);
	assert_int_equal(has_waiters(&holder), 1);
	stage_leave(&holder);
	leave(&waiter);
	assert_int_equal(holder.waiters_changed, 2);
	finish(stage);
}

/* Whatever it was that should have woken them. */
static void waiting_without_events(void **state)
{
	struct stage *stage = begin(11);
	struct taker holder, waiter;

	(void)state;
	put(stage, BUILD, "");
	take(&holder, &stage->hosts[0], "build", LC_EXCLUSIVE);
	take(&waiter, &stage->hosts[1], "build", LC_EXCLUSIVE);
	mutation = MUTATE_drop_changed;
	leave(&holder);
	assert_int_equal(waiter.result, NONE);
	run(stage, 61 * SECOND);
	assert_int_equal(waiter.result, 0);
	mutation = MUTATE_none;
	leave(&waiter);
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

/* What was asked for before the question came is no answer to it. */
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

/* What nobody wants to know any more is not asked. */
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
		cmocka_unit_test(evicting_others),
		cmocka_unit_test(evicting_from_the_dead),
		cmocka_unit_test(evicting_without_patience),
		cmocka_unit_test(evicting_with_trouble),
		cmocka_unit_test(evicting_what_changes),
		cmocka_unit_test(who_may_evict),
		cmocka_unit_test(evicted_by_the_former_owner),
		cmocka_unit_test(poked_at_once),
		cmocka_unit_test(poked_together),
		cmocka_unit_test(poked_otherwise),
		cmocka_unit_test(poked_in_a_gap),
		cmocka_unit_test(a_server_that_says_nothing),
		cmocka_unit_test(beating_for_holders),
		cmocka_unit_test(removed_for_good),
		cmocka_unit_test(refused_for_a_while),
		cmocka_unit_test(removed_behind_a_leaver),
		cmocka_unit_test(upgrading_at_once),
		cmocka_unit_test(replacing_later),
		cmocka_unit_test(replacing_in_vain),
		cmocka_unit_test(fewer_slots_where_numbers_repeat),
		cmocka_unit_test(trying_after_a_release),
		cmocka_unit_test(trying_in_vain),
		cmocka_unit_test(guarded_without_contact),
		cmocka_unit_test(nothing_handed_over_in_a_new_lock),
		cmocka_unit_test(meaning_another_lock),
		cmocka_unit_test(waiting_behind),
		cmocka_unit_test(waiting_where_slots_were),
		cmocka_unit_test(asked_by_losers),
		cmocka_unit_test(watching_waiters),
		cmocka_unit_test(so_many_below),
		cmocka_unit_test(entries_are_no_locks_below),
		cmocka_unit_test(waiting_without_events),
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
