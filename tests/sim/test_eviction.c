/* SPDX-License-Identifier: MIT
 *
 * Evictions of entries, and how the mounts hear of them, with answers lost at every moment. Two
 * engines on an ensemble in memory.
 */
#include "unit_calls.h"

#include "mutation.h"
#include "pure/name.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* ---- eviction ---- */

static bool is_there(struct stage *stage, const char *znode)
{
	char path[512];

	snprintf(path, sizeof(path), BUILD "/%s", znode);
	return node_of(stage, path);
}

static void evicting_others(void **state)
{
	struct stage *stage = begin(6);
	struct host *host = &stage->hosts[0];
	int64_t session = world_foreign_session(&stage->world, 0);
	char znode[256];

	(void)state;
	put(stage, BUILD, "");
	/* An entry of another client, and one without a session, are deleted at once. */
	make_entry(stage, session, "other-lock-", "10.0.0.1", znode);
	assert_int_equal(evict(host, "build", znode), 0);
	assert_false(is_there(stage, znode));
	assert_int_equal(evict(host, "build", znode), -ENOENT);
	make_entry(stage, 0, OF_MOUNT, "", znode);
	assert_int_equal(evict(host, "build", znode), 0);
	assert_false(is_there(stage, znode));
	assert_int_equal(evict(host, "build", "no-number"), -ENOENT);
	/* A lock is not deleted in place of an entry. */
	put(stage, BUILD "/below", "");
	assert_int_equal(evict(host, "build", "below"), -ENOENT);
	assert_non_null(node_of(stage, BUILD "/below"));
	finish(stage);
}

/* The entry of a mount that does nothing is deleted after the session timeout in the
 * entry's data, or the evictor's own one, whichever is longer. */
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
		int64_t session = world_foreign_session(&stage->world, 0);
		char znode[256], path[512], data[512];
		const struct node *marked;

		put(stage, BUILD, "");
		make_entry(stage, session, OF_MOUNT, rows[i].data, znode);
		assert_int_equal(evict(&stage->hosts[0], "build", znode), 0);
		snprintf(path, sizeof(path), BUILD "/%s", znode);
		snprintf(data, sizeof(data), "evict: uid 0 pid 1 (sh) on m9\n%s", rows[i].data);
		assert_data(stage, path, data);
		/* A second eviction keeps the mark, and succeeds. */
		marked = node_of(stage, path);
		assert_int_equal(marked->stat.version, 1);
		assert_int_equal(evict(&stage->hosts[1], "build", znode), 0);
		assert_int_equal(evict(&stage->hosts[0], "build", znode), 0);
		assert_int_equal(marked->stat.version, 1);
		run(stage, rows[i].wait_us - 10 * SECOND);
		assert_true(is_there(stage, znode));
		run(stage, 2 * SECOND);
		assert_false(is_there(stage, znode));
		finish(stage);
	}
}

/* The caller does not wait for the answer. If the mark was made all the same, the engine deletes
 * the entry in the end. */
static void evicting_without_patience(void **state)
{
	static const struct lc_evictor root = {.uid = 0, .name = "root"};
	int marked_late = 0;

	(void)state;
	for (int i = 0; i < 60; i++) {
		struct stage *stage = begin(7);
		int64_t session = world_foreign_session(&stage->world, 0);
		char znode[256], path[512];
		struct question *question;
		bool marked;

		put(stage, BUILD, "");
		make_entry(stage, session, OF_MOUNT, "", znode);
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

/* Meanwhile the entry's mount changes the entry, the connection breaks, or the engine ends. */
static void evicting_with_trouble(void **state)
{
	char znode[256], path[512];

	(void)state;
	for (int i = 0; i < 120; i++) {
		struct stage *stage = begin(8);
		struct host *host = &stage->hosts[0];
		int64_t session = world_foreign_session(&stage->world, 0);
		struct question *q;

		put(stage, BUILD, "");
		make_entry(stage, session, OF_MOUNT, "host: web9\n", znode);
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
		/* The last write may be the mount's, which then has seen the mark. */
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

/* An entry of another client is changed before its delete arrives: the delete is tried again. */
static void evicting_what_changes(void **state)
{
	char znode[256], path[512];
	int met = 0;

	(void)state;
	for (int i = 0; i < 60; i++) {
		struct stage *stage = begin_build(2);
		struct question *q;

		make_entry(stage, world_foreign_session(&stage->world, 0), "other-lock-", "x",
		           znode);
		snprintf(path, sizeof(path), BUILD "/%s", znode);
		q = stage_ask_evict(&stage->hosts[0], "build", znode, EVICTOR(.name = "me"));
		run(stage, i * 50);
		if (tree_find(&stage->world.proposed, path)) {
			met++;
			put_now(stage, path, "y");
		}
		run(stage, 100 * MS); /* the eviction waits for nothing else */
		assert_int_equal(q->result, 0);
		assert_false(is_there(stage, znode));
		finish(stage);
	}
	assert_in_range(met, 5, 59);
}

/* The lock's owner and root may evict, and the user of the taker if the entry is of a mount. */
static void who_may_evict(void **state)
{
	static const struct {
		bool of_mount;
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

		make_entry(stage, world_foreign_session(&stage->world, 0),
		           rows[i].of_mount ? OF_MOUNT : "other-lock-", "host: web9\nuid: 9\n",
		           znode);
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

/* The evictor is not the lock's owner any more when the mark is written. */
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
		make_entry(stage, world_foreign_session(&stage->world, 0),
		           i % 2 ? OF_MOUNT : "other-lock-", "uid: 9\n", znode);
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

/* ---- letters ---- */

#define CROWD 80

/* One taker holds, and many wait behind it: of their entries only the first one's is watched. */
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

/* An eviction by that mount; nobody waits for the answer here. */
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

/* A waiter is told at once, however many entries stand before its own, and wherever the two mounts
 * have their roots; and no other entry is read. */
static void told_at_once(void **state)
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
		expect(requests(victim) - before < 8, "a letter costs %lu requests",
		       requests(victim) - before);
		assert_int_equal(answer_of(q), 0);
		for (int k = 1; k < CROWD; k++)
			assert_int_equal(takers[k].result, k == 40 ? -ECANCELED : NONE);
		disperse(takers);
		finish(stage);
	}
}

/* Two mounts evict at the same time, one of them the victims' own; and more than the mailbox has
 * room for. */
static void told_together(void **state)
{
	static struct taker takers[CROWD];
	struct question *questions[CROWD];

	(void)state;
	for (int many = 0; many < 3; many++) {
		struct stage *stage = begin_build(30);
		int last = many == 2 ? CROWD : 20;
		unsigned long before;

		crowd(takers, &stage->hosts[0], "build");
		if (many == 2)
			host_pause(&stage->hosts[0], SECOND);
		before = requests(&stage->hosts[0]);
		for (int i = 2; i < last; i++)
			questions[i] =
				begin_evict(&stage->hosts[many ? 1 : i % 2], "build", &takers[i]);
		run(stage, many == 2 ? 1200 * MS : 300 * MS);
		if (many == 1)
			expect(requests(&stage->hosts[0]) - before < 100,
			       "%d letters cost %lu requests", last - 2,
			       requests(&stage->hosts[0]) - before);
		for (int i = 1; i < CROWD; i++)
			assert_int_equal(takers[i].result, i > 1 && i < last ? -ECANCELED : NONE);
		for (int i = 2; i < last; i++)
			assert_int_equal(answer_of(questions[i]), 0);
		disperse(takers);
		finish(stage);
	}
}

static struct node *mailbox_of(struct host *host)
{
	struct node *home = node_of(host->owner, ROOT "/.zklockfs")->children;

	while (home->stat.ephemeral_owner != host->wire.session || !strstr(home->name, "-pokes"))
		home = home->next;
	return home;
}

static uint64_t letter_of(const struct taker *taker)
{
	struct entry_name name;

	assert_true(name_parse(lc_znode(taker->lc), &name));
	return name.taker_half;
}

static void mark(struct stage *stage, const struct taker *victim)
{
	char path[512];

	snprintf(path, sizeof(path), BUILD "/%s", lc_znode(victim->lc));
	put_now(stage, path, "evict: me\nhost: m0\n");
}

/* What a mount of the former version does: it marks the entry, then adds a line to the mailbox. Of
 * 64 lines it drops the first. Strangers may have left anything. */
static void by_a_former_version(void **state)
{
	static const struct {
		const char *before;
		int lines;
		bool named;
	} rows[] = {
		{"", 0, true}, {"", 63, true}, {"", 64, false}, {"no letter and\nmore", 0, true}};

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		struct stage *stage = begin_build(11);
		struct host *host = &stage->hosts[0];
		struct taker holder, waiters[2];
		char data[66 * 17 + 1];
		size_t len = (size_t)(stpcpy(data, rows[i].before) - data) / 17 * 17;

		take(&holder, &stage->hosts[1], "build", LC_EXCLUSIVE);
		for (int k = 0; k < 2; k++)
			take(&waiters[k], host, "build", LC_EXCLUSIVE);
		mark(stage, &waiters[1]);
		for (int k = 0; k < rows[i].lines; k++, len += 17)
			snprintf(data + len, 18, "%016x\n", k);
		if (rows[i].named)
			snprintf(data + len, 18, "%016" PRIx64 "\n", letter_of(&waiters[1]));
		run(stage, 4 * SECOND);
		assert_int_equal(waiters[1].result, NONE);
		put_now(stage, mailbox_of(host)->path, data);
		run(stage, 60 * MS);
		assert_int_equal(waiters[1].result, -ECANCELED);
		assert_int_equal(waiters[0].result, NONE);
		assert_int_equal(mailbox_of(host)->data_len, 0);
		for (int k = 0; k < 2; k++)
			leave(&waiters[k]);
		leave(&holder);
		finish(stage);
	}
}

/* The mailbox may vanish. Who evicts then marks the entry alone. */
static void without_a_mailbox(void **state)
{
	struct stage *stage = begin_build(11);
	struct host *host = &stage->hosts[0];
	struct taker holder, waiters[3];
	struct question *q;

	(void)state;
	take(&holder, &stage->hosts[1], "build", LC_EXCLUSIVE);
	for (int k = 0; k < 3; k++)
		take(&waiters[k], host, "build", LC_EXCLUSIVE);
	q = begin_evict(&stage->hosts[1], "build", &waiters[1]);
	take_away(stage, mailbox_of(host)->path);
	run(stage, SECOND);
	assert_int_equal(answer_of(q), 0);
	assert_int_equal(waiters[0].result, NONE);
	assert_int_equal(waiters[1].result, -ECANCELED);
	/* The one that was made in its place works as well. */
	q = begin_evict(&stage->hosts[1], "build", &waiters[2]);
	run(stage, 60 * MS);
	assert_int_equal(waiters[2].result, -ECANCELED);
	assert_int_equal(answer_of(q), 0);
	for (int k = 0; k < 3; k++)
		leave(&waiters[k]);
	leave(&holder);
	finish(stage);
}

/* The connection breaks at any moment between the mark and its being read. */
static void told_and_cut_off(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		struct stage *stage = begin_build((uint64_t)i);
		struct host *host = &stage->hosts[0];
		struct taker holder, waiters[2];
		struct question *q;

		take(&holder, &stage->hosts[1], "build", LC_EXCLUSIVE);
		for (int k = 0; k < 2; k++)
			take(&waiters[k], host, "build", LC_EXCLUSIVE);
		q = begin_evict(&stage->hosts[1], "build", &waiters[1]);
		run(stage, i * 50);
		conn_break(host->wire.conn, i % 2 ? -1 : 0);
		run(stage, 2 * SECOND);
		expect(waiters[1].result == -ECANCELED, "cut off after %d us", i * 50);
		assert_int_equal(waiters[0].result, NONE);
		assert_int_equal(answer_of(q), 0);
		for (int k = 0; k < 2; k++)
			leave(&waiters[k]);
		leave(&holder);
		finish(stage);
	}
}

/* No answer comes to that mount, and no request of it arrives, on whichever connection. */
static void keep_away(struct stage *stage, struct host *host, int64_t duration_us)
{
	int64_t until_us = stage->agenda.now_us + duration_us;

	while (stage->agenda.now_us < until_us) {
		if (host->wire.conn) {
			conn_stall(host->wire.conn, UP, until_us + 60 * SECOND);
			conn_stall(host->wire.conn, DOWN, until_us + 60 * SECOND);
		}
		run(stage, 50);
	}
}

/* The host of the first one, which was evicted, is away until the first one holds no more. */
static void no_two_hold(struct stage *stage, struct host *host, struct taker *evicted,
                        struct taker *next)
{
	int64_t until_us = stage->agenda.now_us + TIMEOUT_US + 2 * SECOND;

	while (evicted->phase == HELD && stage->agenda.now_us < until_us) {
		keep_away(stage, host, 10 * MS);
		assert_false(next->phase == HELD && lc_holds(evicted->lc) && lc_holds(next->lc));
	}
}

/* A waiter is marked while there is no contact. Shortly before the evictor deletes its entry there
 * is contact again, for so long that the waiter could be granted the lock by a listing. The mark
 * must be read before that: the next taker comes in when the entry is deleted. */
static void marked_while_away(void **state)
{
	(void)state;
	for (int i = 0; i < 8; i++) {
		struct stage *stage = begin_build((uint64_t)i);
		struct host *host = &stage->hosts[0];
		struct taker holder, waiter, next;
		struct question *q;
		int64_t until_us;

		take(&holder, &stage->hosts[1], "build", LC_EXCLUSIVE);
		take(&waiter, host, "build", LC_EXCLUSIVE);
		begin_take(&next, &stage->hosts[1], "build", LC_EXCLUSIVE);
		run(stage, SECOND);
		conn_break(host->wire.conn, 0);
		keep_away(stage, host, 5 * MS);
		q = begin_evict(&stage->hosts[1], "build", &waiter);
		keep_away(stage, host, 100 * MS);
		assert_null(q->call); /* it is answered */
		stage_leave(&holder);
		keep_away(stage, host, TIMEOUT_US - 1100 * MS);
		conn_break(host->wire.conn, 0);
		until_us = stage->agenda.now_us + 900 * MS;
		while (waiter.phase == WAITING && stage->agenda.now_us < until_us)
			run(stage, 10);
		no_two_hold(stage, host, &waiter, &next);
		assert_int_equal(answer_of(q), 0);
		stage_leave(&waiter);
		stage_leave(&next);
		finish(stage);
	}
}

/* The ensemble refuses the letter, as a server with too much to do may: the entry is not marked. */
static void refused(void **state)
{
	struct stage *stage = begin_build(31);
	struct host *host = &stage->hosts[0];
	struct taker holder, front, waiter;
	struct question *q;

	(void)state;
	take(&holder, host, "build", LC_EXCLUSIVE);
	take(&front, host, "build", LC_EXCLUSIVE);
	take(&waiter, host, "build", LC_EXCLUSIVE);
	run(stage, SECOND);
	stage->world.refuse_next = 1;
	q = begin_evict(&stage->hosts[1], "build", &waiter);
	run(stage, 60 * MS);
	assert_int_equal(stage->world.refuse_next, 0);
	assert_int_equal(answer_of(q), -ENOLCK);
	assert_int_equal(waiter.result, NONE);
	q = begin_evict(&stage->hosts[1], "build", &waiter);
	run(stage, 60 * MS);
	assert_int_equal(waiter.result, -ECANCELED);
	assert_int_equal(answer_of(q), 0);
	stage_leave(&waiter);
	stage_leave(&front);
	stage_leave(&holder);
	finish(stage);
}

/* A server that takes connections and never answers is left each time after a fifth of the session
 * timeout. */
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
	struct stage *stage = begin_build(30);
	struct host *host = &stage->hosts[0];
	struct taker holder;
	unsigned long before;

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(evicting_others),
		cmocka_unit_test(evicting_from_the_dead),
		cmocka_unit_test(evicting_without_patience),
		cmocka_unit_test(evicting_with_trouble),
		cmocka_unit_test(evicting_what_changes),
		cmocka_unit_test(who_may_evict),
		cmocka_unit_test(evicted_by_the_former_owner),
		cmocka_unit_test(told_at_once),
		cmocka_unit_test(told_together),
		cmocka_unit_test(by_a_former_version),
		cmocka_unit_test(without_a_mailbox),
		cmocka_unit_test(told_and_cut_off),
		cmocka_unit_test(marked_while_away),
		cmocka_unit_test(refused),
		cmocka_unit_test(a_server_that_says_nothing),
		cmocka_unit_test(beating_for_holders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
