/* SPDX-License-Identifier: MIT
 *
 * Which entries are an engine's own, when another client makes entries with the same names, or
 * deletes the engine's entries and puts others in their place.
 */
#include "unit_stage.h"

#include "mutation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* The session of another client. */
static int64_t outsider;

/* A write of another client, at the leader; servers apply it before the writes that follow. */
static enum ensemble_result act(struct stage *stage, enum ensemble_kind kind, const char *path,
                                int64_t session, bool sequence)
{
	return world_do(&stage->world, session,
	                OP(.kind = kind, .path = path, .ephemeral = session != 0,
	                   .sequence = sequence, .version = ENSEMBLE_ANY_VERSION),
	                1, NULL);
}

static struct stage *begin_with_outsider(uint64_t seed)
{
	struct stage *stage = begin_build(seed);

	outsider = world_foreign_session(&stage->world, WORLD_FORGES);
	return stage;
}

/* Returns when the path of the taker's entry is known. */
static void take(struct taker *taker, struct host *host, enum lc_mode mode)
{
	begin_take(taker, host, "build", mode);
	run(host->owner, 200 * MS);
	assert_non_null(stage_path(taker));
}

/* The path with another number: its own one plus `by`. */
static const char *numbered(const char *path, int by)
{
	static char copy[300];
	size_t len = strlen(path) - 10;

	snprintf(copy, sizeof(copy), "%.*s%010d", (int)len, path, atoi(path + len) + by);
	return copy;
}

/* Another client makes an entry of the same name; the server gives it the next number. */
static const char *copy_of(struct stage *stage, const char *path)
{
	static char copy[300];
	const char *made = NULL;

	snprintf(copy, sizeof(copy), "%.*s", (int)strlen(path) - 10, path);
	assert_int_equal(world_do(&stage->world, outsider,
	                          OP(.kind = ENSEMBLE_CREATE, .path = copy, .ephemeral = true,
	                             .sequence = true),
	                          1, &made),
	                 ENSEMBLE_OK);
	snprintf(copy, sizeof(copy), "%s", made);
	run(stage, 10 * MS);
	return copy;
}

/* The node is deleted, and another client makes a node of that name. */
static void replace(struct stage *stage, const char *path)
{
	assert_int_equal(act(stage, ENSEMBLE_DELETE, path, 0, false), ENSEMBLE_OK);
	assert_int_equal(act(stage, ENSEMBLE_CREATE, path, outsider, false), ENSEMBLE_OK);
}

static unsigned entries_of(struct stage *stage, int64_t session)
{
	struct node *parent = tree_find(&stage->world.committed, BUILD), *node;
	unsigned count = 0;

	DL_FOREACH(parent->children, node)
		count += node->stat.ephemeral_owner == session;
	return count;
}

static void done(void *ctx, int err)
{
	*(int *)ctx = err;
}

/* The answer is 100 if there are waiters. */
static void waiters_told(void *ctx, int err, bool waiters)
{
	*(int *)ctx = waiters ? 100 : err;
}

/* ---- copies of names ---- */

/* A waiter is not granted the lock because a copy of its entry comes first. */
static void copied_in_front(void **state)
{
	struct stage *stage = begin_with_outsider(1);
	struct taker holder, waiter;
	char copy[300];

	(void)state;
	for (int i = 0; i < 4; i++) {
		take(&holder, &stage->hosts[1], LC_EXCLUSIVE);
		leave(&holder);
	}
	take(&holder, &stage->hosts[1], LC_EXCLUSIVE);
	take(&waiter, &stage->hosts[0], LC_EXCLUSIVE);
	snprintf(copy, sizeof(copy), "%s", numbered(waiter.path, -3));
	assert_int_equal(act(stage, ENSEMBLE_CREATE, copy, outsider, false), ENSEMBLE_OK);
	run(stage, 130 * SECOND);
	assert_true(lc_holds(holder.lc));
	assert_int_equal(waiter.result, NONE);
	leave(&holder);
	run(stage, SECOND);
	assert_int_equal(waiter.result, NONE);
	assert_int_equal(act(stage, ENSEMBLE_DELETE, copy, 0, false), ENSEMBLE_OK);
	run(stage, SECOND);
	assert_int_equal(waiter.result, 0);
	leave(&waiter);
	finish(stage);
}

/* A waiter whose entry is deleted is told so, though a copy of the entry stays. */
static void copied_and_deleted(void **state)
{
	struct stage *stage = begin_with_outsider(2);
	struct taker holder, waiter;

	(void)state;
	take(&holder, &stage->hosts[1], LC_EXCLUSIVE);
	take(&waiter, &stage->hosts[0], LC_EXCLUSIVE);
	copy_of(stage, waiter.path);
	assert_int_equal(act(stage, ENSEMBLE_DELETE, waiter.path, 0, false), ENSEMBLE_OK);
	run(stage, SECOND);
	assert_int_equal(waiter.result, -ECANCELED);
	leave(&waiter);
	leave(&holder);
	finish(stage);
}

/* Facts about the real entry are not told of a copy. */
static void told_of_copies(void *ctx, int err, const struct lc_entry_info *infos, size_t count)
{
	assert_int_equal(err, 0);
	assert_int_equal(count, 1);
	*(int64_t *)ctx = infos[0].held_since_ms;
}

static void copies_are_strangers(void **state)
{
	struct stage *stage = begin_with_outsider(3);
	struct host *host = &stage->hosts[0];
	struct taker holder, waiter;
	struct lc_call *call;
	int64_t since_ms = 0;
	int answer = NONE;

	(void)state;
	take(&holder, host, LC_EXCLUSIVE);
	assert_int_equal(lc_entries(host->lc, "build", 0,
	                            strrchr(copy_of(stage, holder.path), '/') + 1, NULL, 0,
	                            told_of_copies, &since_ms, &call),
	                 0);
	host_wake(host);
	run(stage, SECOND);
	assert_int_equal(since_ms, -1);
	assert_int_equal(act(stage, ENSEMBLE_DELETE, numbered(holder.path, 1), 0, false),
	                 ENSEMBLE_OK);
	/* A taker that leaves does not wait any more; a copy of its entry does. */
	take(&waiter, host, LC_EXCLUSIVE);
	copy_of(stage, waiter.path);
	assert_int_equal(lc_has_waiters(holder.lc, waiters_told, &answer, &call), 0);
	host_wake(host);
	run(stage, 200); /* the question is read, and its answer is on its way */
	assert_int_equal(answer, NONE);
	stage_leave(&waiter);
	host_wake(host);
	run(stage, SECOND);
	assert_int_equal(answer, 100);
	leave(&holder);
	finish(stage);
}

/* Nor are they told of another node with the whole name, before an event has told of that node. */
static void strangers_by_its_name(void **state)
{
	struct stage *stage = begin_with_outsider(17);
	struct host *host = &stage->hosts[0];
	struct taker holder;
	struct lc_call *call;
	int64_t since_ms = 0;

	(void)state;
	take(&holder, host, LC_EXCLUSIVE);
	mutation = MUTATE_drop_changed;
	replace(stage, holder.path);
	run(stage, 10 * MS);
	assert_int_equal(lc_entries(host->lc, "build", 0, strrchr(holder.path, '/') + 1, NULL, 0,
	                            told_of_copies, &since_ms, &call),
	                 0);
	host_wake(host);
	run(stage, 100 * MS);
	assert_int_equal(since_ms, -1);
	mutation = MUTATE_none;
	leave(&holder);
	finish(stage);
}

/* The answer of a create is lost, and copies of the entry stand before and behind it: only the node
 * of the own session is the entry. If that node is gone, a new entry is made. */
static void claimed_among_copies(void **state)
{
	(void)state;
	for (int deleted = 0; deleted <= 1; deleted++) {
		struct stage *stage = begin_with_outsider(4);
		struct host *host = &stage->hosts[0];
		struct taker waiter;
		char before[300], behind[300], own[300];
		int64_t czxid;

		for (int i = 0; i < 4; i++) {
			take(&waiter, host, LC_EXCLUSIVE);
			leave(&waiter);
		}
		conn_stall(host->wire.conn, DOWN, stage->agenda.now_us + 5 * SECOND);
		begin_take(&waiter, host, "build", LC_EXCLUSIVE);
		run(stage, 50 * MS);
		snprintf(own, sizeof(own), "%s",
		         tree_find(&stage->world.committed, BUILD)->children->path);
		czxid = tree_find(&stage->world.committed, own)->stat.czxid;
		snprintf(before, sizeof(before), "%s", numbered(own, -2));
		assert_int_equal(act(stage, ENSEMBLE_CREATE, before, outsider, false), ENSEMBLE_OK);
		snprintf(behind, sizeof(behind), "%s", copy_of(stage, own));
		if (deleted)
			assert_int_equal(act(stage, ENSEMBLE_DELETE, own, 0, false), ENSEMBLE_OK);
		conn_break(host->wire.conn, -1);
		run(stage, 3 * SECOND);
		assert_int_equal(waiter.result, NONE);
		assert_int_equal(entries_of(stage, host->wire.session), 1);
		assert_true(deleted || tree_find(&stage->world.committed, own));
		act(stage, ENSEMBLE_DELETE, before, 0, false);
		act(stage, ENSEMBLE_DELETE, behind, 0, false);
		run(stage, SECOND);
		assert_int_equal(waiter.result, 0);
		assert_int_equal(entries_of(stage, host->wire.session), 1);
		if (!deleted)
			assert_int_equal(lc_token(waiter.lc), czxid);
		leave(&waiter);
		finish(stage);
	}
}

/* A try is not refused because of an entry that may be an own one, and will be deleted. */
static void trying_before_the_outcome(void **state)
{
	struct stage *stage = begin_with_outsider(14);
	struct host *host = &stage->hosts[0];
	struct lc_request request = {.lock = "build", .pid = 7, .command = "test"};
	struct taker holder, leaver, eager;

	(void)state;
	take(&holder, &stage->hosts[1], LC_EXCLUSIVE);
	take(&leaver, host, LC_EXCLUSIVE); /* now the slots are known */
	leave(&leaver);
	leave(&holder);
	conn_stall(host->wire.conn, DOWN, stage->agenda.now_us + 5 * SECOND);
	begin_take(&leaver, host, "build", LC_EXCLUSIVE);
	run(stage, 50 * MS);
	stage_leave(&leaver);
	stage_take(&eager, host, &request);
	conn_break(host->wire.conn, -1);
	run(stage, 3 * SECOND);
	assert_int_equal(eager.result, 0);
	leave(&eager);
	finish(stage);
}

/* ---- entries that come late ---- */

/* A create of the own session that was given up is done all the same, at a server that stood still:
 * its entry is nobody's, and does not keep the lock from others. The taker has another entry by
 * then, or has left. */
static void done_late(void **state)
{
	(void)state;
	for (int left = 0; left <= 1; left++) {
		struct stage *stage = begin_with_outsider(18);
		struct host *host = &stage->hosts[0];
		struct taker taker, other;
		char late[300];

		take(&taker, host, LC_EXCLUSIVE);
		snprintf(late, sizeof(late), "%.*s", (int)strlen(taker.path) - 10, taker.path);
		leave(&taker);
		run(stage, SECOND);
		conn_stall(host->wire.conn, UP, stage->agenda.now_us + 5 * SECOND);
		begin_take(&taker, host, "build", LC_EXCLUSIVE);
		run(stage, 50 * MS);
		if (left)
			stage_leave(&taker);
		conn_break(host->wire.conn, -1);
		run(stage, 5 * SECOND);
		assert_int_equal(entries_of(stage, host->wire.session), !left);
		if (!left) {
			assert_non_null(stage_path(&taker));
			snprintf(late, sizeof(late), "%.*s", (int)strlen(taker.path) - 10,
			         taker.path);
		}
		assert_int_equal(act(stage, ENSEMBLE_CREATE, late, host->wire.session, true),
		                 ENSEMBLE_OK);
		if (!left)
			leave(&taker);
		begin_take(&other, &stage->hosts[1], "build", LC_EXCLUSIVE);
		run(stage, 5 * SECOND);
		assert_int_equal(other.result, NONE);
		run(stage, 60 * SECOND);
		assert_int_equal(other.result, 0);
		assert_int_equal(entries_of(stage, host->wire.session), 0);
		leave(&other);
		finish(stage);
	}
}

/* ---- others in their place ---- */

/* With contact, and without: when contact is back, another node of that name is there. */
static void replaced_while_held(void **state)
{
	(void)state;
	for (int away = 0; away <= 1; away++) {
		struct stage *stage = begin_with_outsider(5);
		struct taker holder;

		take(&holder, &stage->hosts[0], LC_EXCLUSIVE);
		assert_int_equal(holder.result, 0);
		if (away)
			conn_break(stage->hosts[0].wire.conn, -1);
		replace(stage, holder.path);
		run(stage, 2 * SECOND);
		assert_int_equal(holder.lost, 1);
		assert_false(lc_holds(holder.lc));
		leave(&holder);
		/* The node is another client's, and stays. */
		assert_non_null(tree_find(&stage->world.committed, holder.path));
		finish(stage);
	}
}

/* The entry is replaced before it is watched: a holder that asks is told that it lost the lock. */
static void replaced_and_confirmed(void **state)
{
	struct stage *stage = begin_with_outsider(6);
	struct host *host = &stage->hosts[0];
	struct taker holder;
	struct lc_call *call;
	int answer = NONE;

	(void)state;
	begin_take(&holder, host, "build", LC_EXCLUSIVE);
	while (holder.result == NONE)
		run(stage, MS);
	snprintf(holder.path, sizeof(holder.path), BUILD "/%s", lc_znode(holder.lc));
	replace(stage, holder.path);
	assert_int_equal(lc_confirm(holder.lc, done, &answer, &call), 0);
	host_wake(host);
	run(stage, SECOND);
	assert_int_equal(answer, -EIO);
	assert_int_equal(holder.lost, 1);
	leave(&holder);
	finish(stage);
}

/* The lock and all entries were removed and made again, with the same names. */
static void all_made_again(void **state)
{
	struct stage *stage = begin_with_outsider(7);
	struct host *host = &stage->hosts[0];
	struct taker holder, first, second;

	(void)state;
	take(&holder, host, LC_EXCLUSIVE);
	take(&first, host, LC_EXCLUSIVE);
	take(&second, host, LC_EXCLUSIVE);
	conn_break(host->wire.conn, -1);
	assert_int_equal(act(stage, ENSEMBLE_DELETE, holder.path, 0, false), ENSEMBLE_OK);
	assert_int_equal(act(stage, ENSEMBLE_DELETE, first.path, 0, false), ENSEMBLE_OK);
	assert_int_equal(act(stage, ENSEMBLE_DELETE, second.path, 0, false), ENSEMBLE_OK);
	assert_int_equal(act(stage, ENSEMBLE_DELETE, BUILD, 0, false), ENSEMBLE_OK);
	assert_int_equal(act(stage, ENSEMBLE_CREATE, BUILD, 0, false), ENSEMBLE_OK);
	assert_int_equal(act(stage, ENSEMBLE_CREATE, holder.path, outsider, false), ENSEMBLE_OK);
	assert_int_equal(act(stage, ENSEMBLE_CREATE, first.path, outsider, false), ENSEMBLE_OK);
	assert_int_equal(act(stage, ENSEMBLE_CREATE, second.path, outsider, false), ENSEMBLE_OK);
	run(stage, 2 * SECOND);
	assert_int_equal(holder.lost, 1);
	assert_int_equal(first.result, -ECANCELED);
	assert_int_equal(second.result, -ECANCELED);
	leave(&second);
	leave(&first);
	leave(&holder);
	finish(stage);
}

/* Two waiters are deleted while there is no contact. On the new connection nothing is watched. */
static void waiters_deleted_while_away(void **state)
{
	struct stage *stage = begin_with_outsider(7);
	struct host *host = &stage->hosts[0];
	struct taker holder, first, second;

	(void)state;
	take(&holder, &stage->hosts[1], LC_EXCLUSIVE);
	take(&first, host, LC_EXCLUSIVE);
	take(&second, host, LC_EXCLUSIVE);
	conn_break(host->wire.conn, -1);
	assert_int_equal(act(stage, ENSEMBLE_DELETE, first.path, 0, false), ENSEMBLE_OK);
	assert_int_equal(act(stage, ENSEMBLE_DELETE, second.path, 0, false), ENSEMBLE_OK);
	run(stage, 2 * SECOND);
	assert_int_equal(first.result, -ECANCELED);
	assert_int_equal(second.result, -ECANCELED);
	leave(&second);
	leave(&first);
	leave(&holder);
	finish(stage);
}

/* The next taker's number follows the holder's, but in a lock that was made again meanwhile,
 * where another client stands before it: this must be no hand-off. */
static void next_in_another_lock(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		struct stage *stage = begin_with_outsider(17);
		struct host *host = &stage->hosts[0];
		struct taker holder, next;
		const char *other = NULL;

		begin_take(&holder, host, "build", LC_EXCLUSIVE);
		run(stage, 5 * MS); /* the taker holds, and watches nothing yet */
		assert_int_equal(holder.result, 0);
		assert_int_equal(act(stage, ENSEMBLE_DELETE, stage_path(&holder), 0, false),
		                 ENSEMBLE_OK);
		assert_int_equal(act(stage, ENSEMBLE_DELETE, BUILD, 0, false), ENSEMBLE_OK);
		assert_int_equal(act(stage, ENSEMBLE_CREATE, BUILD, 0, false), ENSEMBLE_OK);
		assert_int_equal(world_do(&stage->world, outsider,
		                          OP(.kind = ENSEMBLE_CREATE, .path = BUILD "/x-lock-",
		                             .ephemeral = true, .sequence = true),
		                          1, &other),
		                 ENSEMBLE_OK);
		begin_take(&next, host, "build", LC_EXCLUSIVE);
		run(stage, i * 50);
		leave(&holder);
		run(stage, 100 * MS);
		assert_int_equal(next.result, NONE);
		assert_int_equal(act(stage, ENSEMBLE_DELETE, BUILD "/x-lock-0000000000", 0, false),
		                 ENSEMBLE_OK);
		run(stage, SECOND);
		assert_int_equal(next.result, 0);
		leave(&next);
		finish(stage);
	}
}

/* Where numbers repeat entries are read after the listing: an own one may be gone by then. */
static void deleted_before_it_is_read(void **state)
{
	(void)state;
	for (int i = 0; i < 60; i++) {
		struct stage *stage = begin_with_outsider(16);
		struct host *host = &stage->hosts[0];
		struct taker holder, waiter;
		struct node *node;

		world_set_counter(&stage->world, BUILD, INT32_MAX - 10);
		take(&holder, &stage->hosts[1], LC_EXCLUSIVE);
		begin_take(&waiter, host, "build", LC_EXCLUSIVE);
		run(stage, i * 100);
		node = tree_find(&stage->world.proposed, BUILD)->children;
		while (node && node->stat.ephemeral_owner != host->wire.session)
			node = node->next;
		if (node) {
			assert_int_equal(act(stage, ENSEMBLE_DELETE, node->path, 0, false),
			                 ENSEMBLE_OK);
			run(stage, 3 * SECOND);
			assert_int_equal(waiter.result, -ECANCELED);
		}
		leave(&waiter);
		leave(&holder);
		finish(stage);
	}
}

/* A writer keeps the readers behind it waiting only as long as its entry is there. */
static void deleted_among_readers(void **state)
{
	struct stage *stage = begin_with_outsider(8);
	struct host *host = &stage->hosts[0];
	struct taker reader, writer, other;

	(void)state;
	take(&reader, &stage->hosts[1], LC_EXCLUSIVE);
	take(&writer, host, LC_EXCLUSIVE); /* now the slots are known */
	leave(&writer);
	leave(&reader);
	take(&reader, host, LC_SHARED);
	take(&writer, host, LC_EXCLUSIVE);
	take(&other, host, LC_SHARED);
	assert_int_equal(other.result, NONE);
	assert_int_equal(act(stage, ENSEMBLE_DELETE, writer.path, 0, false), ENSEMBLE_OK);
	run(stage, 2 * SECOND);
	assert_int_equal(writer.result, -ECANCELED);
	assert_int_equal(other.result, 0);
	leave(&other);
	leave(&writer);
	leave(&reader);
	finish(stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copied_in_front),
		cmocka_unit_test(copied_and_deleted),
		cmocka_unit_test(copies_are_strangers),
		cmocka_unit_test(strangers_by_its_name),
		cmocka_unit_test(claimed_among_copies),
		cmocka_unit_test(trying_before_the_outcome),
		cmocka_unit_test(done_late),
		cmocka_unit_test(replaced_while_held),
		cmocka_unit_test(replaced_and_confirmed),
		cmocka_unit_test(all_made_again),
		cmocka_unit_test(waiters_deleted_while_away),
		cmocka_unit_test(next_in_another_lock),
		cmocka_unit_test(deleted_before_it_is_read),
		cmocka_unit_test(deleted_among_readers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
