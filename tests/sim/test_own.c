/* SPDX-License-Identifier: MIT
 *
 * Which entries are an engine's own, when somebody else makes entries with the names of
 * those, deletes its own and puts others in their place; which watches it leaves behind; and
 * holders whom nobody tells that they hold nothing any more.
 */
#include "unit.h"

#include "mutation.h"
#include "test_mount.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define BUILD ROOT "/build"
#define NONE 1 /* not answered; no error is positive */

struct bench {
	struct agenda agenda;
	struct world world;
	struct mount mounts[2];
	int64_t outsider; /* its session */
};

static void run(struct bench *bench, int64_t duration_us)
{
	int64_t until_us = bench->agenda.now_us + duration_us;

	while (bench->agenda.count && bench->agenda.heap[0].when_us <= until_us)
		agenda_step(&bench->agenda);
	bench->agenda.now_us = until_us;
}

/* As another client, at the leader; it is done when something else is. */
static enum ensemble_result act(struct bench *bench, enum ensemble_kind kind, const char *path,
                                int64_t session, bool sequence)
{
	return world_do(&bench->world, session,
	                OP(.kind = kind, .path = path, .ephemeral = session != 0,
	                   .sequence = sequence, .version = ENSEMBLE_ANY_VERSION),
	                1, NULL);
}

static struct bench *begin(uint64_t seed)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	struct world_config config = {
		.servers = 1, .tick_us = 2 * SECOND, .delay_max_us = 2000, .commit_max_us = 1000};

	assert_non_null(bench);
	agenda_init(&bench->agenda, 1000 * SECOND);
	world_init(&bench->world, &bench->agenda, (struct rng){seed}, &config);
	for (int i = 0; i < 2; i++) {
		mount_init(&bench->mounts[i], bench, &bench->world, i, seed);
		assert_int_equal(mount_start(&bench->mounts[i], 0), 0);
		run(bench, SECOND);
		assert_true(lc_ready(bench->mounts[i].lc));
	}
	bench->outsider = world_foreign_session(&bench->world, true);
	assert_int_equal(act(bench, ENSEMBLE_CREATE, BUILD, 0, false), ENSEMBLE_OK);
	run(bench, 10 * MS);
	return bench;
}

static void finish(struct bench *bench)
{
	for (int i = 0; i < 2; i++) {
		lc_destroy(bench->mounts[i].lc, true);
		wire_finish(&bench->mounts[i].wire);
	}
	world_finish(&bench->world);
	agenda_finish(&bench->agenda);
	free(bench);
}

/* ---- takers ---- */

struct taker {
	struct mount *mount;
	struct lc_taker *lc;
	int result;
	unsigned lost;
	char path[300]; /* of its entry, when that was looked for */
};

static void taken(void *ctx, int err)
{
	struct taker *taker = ctx;

	assert_int_equal(taker->result, NONE);
	taker->result = err;
}

static void lost(void *ctx)
{
	((struct taker *)ctx)->lost++;
}

static void begin_take(struct taker *taker, struct mount *mount, const char *lock,
                       enum lc_mode mode)
{
	struct lc_request request = {
		.lock = lock, .mode = mode, .wait_us = LC_FOREVER, .pid = 7, .command = "test"};

	*taker = (struct taker){.mount = mount, .result = NONE};
	assert_int_equal(lc_take(mount->lc, &request, taken, lost, taker, &taker->lc), 0);
	mount_wake(mount);
}

static void take(struct taker *taker, struct mount *mount, enum lc_mode mode)
{
	begin_take(taker, mount, "build", mode);
	run(mount->bench, 200 * MS);
	snprintf(taker->path, sizeof(taker->path), BUILD "/%s", lc_znode(taker->lc));
}

static void leave(struct taker *taker)
{
	lc_leave(taker->lc);
	mount_wake(taker->mount);
	run(taker->mount->bench, 200 * MS);
}

/* Its number, with another one. */
static const char *numbered(const char *path, int by)
{
	static char copy[300];
	size_t len = strlen(path) - 10;

	snprintf(copy, sizeof(copy), "%.*s%010d", (int)len, path, atoi(path + len) + by);
	return copy;
}

/* All of the name but the number: as the server numbers them. */
static const char *copy_of(struct bench *bench, const char *path)
{
	static char copy[300];
	const char *made = NULL;

	snprintf(copy, sizeof(copy), "%.*s", (int)strlen(path) - 10, path);
	assert_int_equal(world_do(&bench->world, bench->outsider,
	                          OP(.kind = ENSEMBLE_CREATE, .path = copy, .ephemeral = true,
	                             .sequence = true),
	                          1, &made),
	                 ENSEMBLE_OK);
	snprintf(copy, sizeof(copy), "%s", made);
	run(bench, 10 * MS);
	return copy;
}

/* Deleted, and made again by another one. */
static void replace(struct bench *bench, const char *path)
{
	assert_int_equal(act(bench, ENSEMBLE_DELETE, path, 0, false), ENSEMBLE_OK);
	assert_int_equal(act(bench, ENSEMBLE_CREATE, path, bench->outsider, false), ENSEMBLE_OK);
}

static unsigned entries_of(struct bench *bench, int64_t session)
{
	struct node *parent = tree_find(&bench->world.committed, BUILD), *node;
	unsigned count = 0;

	DL_FOREACH(parent->children, node)
		count += node->stat.ephemeral_owner == session;
	return count;
}

static void done(void *ctx, int err)
{
	*(int *)ctx = err == 1 ? 100 : err;
}

/* ---- copies of names ---- */

/* It is no turn of the waiter's that a copy of its entry comes first. */
static void copied_in_front(void **state)
{
	struct bench *bench = begin(1);
	struct taker holder, waiter;
	char copy[300];

	(void)state;
	for (int i = 0; i < 4; i++) {
		take(&holder, &bench->mounts[1], LC_EXCLUSIVE);
		leave(&holder);
	}
	take(&holder, &bench->mounts[1], LC_EXCLUSIVE);
	take(&waiter, &bench->mounts[0], LC_EXCLUSIVE);
	snprintf(copy, sizeof(copy), "%s", numbered(waiter.path, -3));
	assert_int_equal(act(bench, ENSEMBLE_CREATE, copy, bench->outsider, false), ENSEMBLE_OK);
	run(bench, 130 * SECOND);
	assert_true(lc_holds(holder.lc));
	assert_int_equal(waiter.result, NONE);
	leave(&holder);
	run(bench, SECOND);
	assert_int_equal(waiter.result, NONE);
	assert_int_equal(act(bench, ENSEMBLE_DELETE, copy, 0, false), ENSEMBLE_OK);
	run(bench, SECOND);
	assert_int_equal(waiter.result, 0);
	leave(&waiter);
	finish(bench);
}

/* Nor does its own entry stay because a copy does. */
static void copied_and_deleted(void **state)
{
	struct bench *bench = begin(2);
	struct taker holder, waiter;

	(void)state;
	take(&holder, &bench->mounts[1], LC_EXCLUSIVE);
	take(&waiter, &bench->mounts[0], LC_EXCLUSIVE);
	copy_of(bench, waiter.path);
	assert_int_equal(act(bench, ENSEMBLE_DELETE, waiter.path, 0, false), ENSEMBLE_OK);
	run(bench, SECOND);
	assert_int_equal(waiter.result, -ECANCELED);
	leave(&waiter);
	leave(&holder);
	finish(bench);
}

/* What a copy is asked about and told is not what is known of the real one. */
static void told_of_copies(void *ctx, int err, const struct lc_entry_info *infos, size_t count)
{
	assert_int_equal(err, 0);
	assert_int_equal(count, 1);
	*(int64_t *)ctx = infos[0].held_since_ms;
}

static void copies_are_strangers(void **state)
{
	struct bench *bench = begin(3);
	struct mount *mount = &bench->mounts[0];
	struct taker holder, waiter;
	struct lc_call *call;
	int64_t since_ms = 0;
	int answer = NONE;

	(void)state;
	take(&holder, mount, LC_EXCLUSIVE);
	assert_int_equal(lc_entries(mount->lc, "build", 0,
	                            strrchr(copy_of(bench, holder.path), '/') + 1, told_of_copies,
	                            &since_ms, &call),
	                 0);
	mount_wake(mount);
	run(bench, SECOND);
	assert_int_equal(since_ms, -1);
	assert_int_equal(act(bench, ENSEMBLE_DELETE, numbered(holder.path, 1), 0, false),
	                 ENSEMBLE_OK);
	/* Who leaves does not wait any more; a copy of its entry does. */
	take(&waiter, mount, LC_EXCLUSIVE);
	copy_of(bench, waiter.path);
	assert_int_equal(lc_waited_for(holder.lc, done, &answer, &call), 0);
	mount_wake(mount);
	run(bench, 100); /* it is asked, and not answered */
	assert_int_equal(answer, NONE);
	lc_leave(waiter.lc);
	mount_wake(mount);
	run(bench, SECOND);
	assert_int_equal(answer, 100);
	leave(&holder);
	finish(bench);
}

/* The answer of a create is lost, and copies of the entry stand before and behind it: the one
 * of our session is it, or, if that is gone, none. */
static void claimed_among_copies(void **state)
{
	(void)state;
	for (int deleted = 0; deleted <= 1; deleted++) {
		struct bench *bench = begin(4);
		struct mount *mount = &bench->mounts[0];
		struct taker waiter;
		char before[300], behind[300], own[300];
		int64_t czxid;

		for (int i = 0; i < 4; i++) {
			take(&waiter, mount, LC_EXCLUSIVE);
			leave(&waiter);
		}
		conn_stall(mount->wire.conn, DOWN, bench->agenda.now_us + 5 * SECOND);
		begin_take(&waiter, mount, "build", LC_EXCLUSIVE);
		run(bench, 50 * MS);
		snprintf(own, sizeof(own), "%s",
		         tree_find(&bench->world.committed, BUILD)->children->path);
		czxid = tree_find(&bench->world.committed, own)->stat.czxid;
		snprintf(before, sizeof(before), "%s", numbered(own, -2));
		assert_int_equal(act(bench, ENSEMBLE_CREATE, before, bench->outsider, false),
		                 ENSEMBLE_OK);
		snprintf(behind, sizeof(behind), "%s", copy_of(bench, own));
		if (deleted)
			assert_int_equal(act(bench, ENSEMBLE_DELETE, own, 0, false), ENSEMBLE_OK);
		conn_break(mount->wire.conn, -1);
		run(bench, 3 * SECOND);
		assert_int_equal(waiter.result, NONE);
		assert_int_equal(entries_of(bench, mount->wire.session), 1);
		assert_true(deleted || tree_find(&bench->world.committed, own));
		act(bench, ENSEMBLE_DELETE, before, 0, false);
		act(bench, ENSEMBLE_DELETE, behind, 0, false);
		run(bench, SECOND);
		assert_int_equal(waiter.result, 0);
		assert_int_equal(entries_of(bench, mount->wire.session), 1);
		if (!deleted)
			assert_int_equal(lc_token(waiter.lc), czxid);
		leave(&waiter);
		finish(bench);
	}
}

/* Nor is anybody refused because of an entry that may be one of ours, on its way out. */
static void trying_before_the_outcome(void **state)
{
	struct bench *bench = begin(14);
	struct mount *mount = &bench->mounts[0];
	struct lc_request request = {.lock = "build", .pid = 7, .command = "test"};
	struct taker holder, leaver, eager = {.mount = mount, .result = NONE};

	(void)state;
	take(&holder, &bench->mounts[1], LC_EXCLUSIVE);
	take(&leaver, mount, LC_EXCLUSIVE); /* the slots are known then */
	leave(&leaver);
	leave(&holder);
	conn_stall(mount->wire.conn, DOWN, bench->agenda.now_us + 5 * SECOND);
	begin_take(&leaver, mount, "build", LC_EXCLUSIVE);
	run(bench, 50 * MS);
	lc_leave(leaver.lc);
	assert_int_equal(lc_take(mount->lc, &request, taken, lost, &eager, &eager.lc), 0);
	conn_break(mount->wire.conn, -1);
	run(bench, 3 * SECOND);
	assert_int_equal(eager.result, 0);
	leave(&eager);
	finish(bench);
}

/* ---- others in their place ---- */

/* With contact, and without: when that is back, something of that name is there. */
static void replaced_while_held(void **state)
{
	(void)state;
	for (int away = 0; away <= 1; away++) {
		struct bench *bench = begin(5);
		struct taker holder;

		take(&holder, &bench->mounts[0], LC_EXCLUSIVE);
		assert_int_equal(holder.result, 0);
		if (away)
			conn_break(bench->mounts[0].wire.conn, -1);
		replace(bench, holder.path);
		run(bench, 2 * SECOND);
		assert_int_equal(holder.lost, 1);
		assert_false(lc_holds(holder.lc));
		leave(&holder);
		/* That is another's, and bars the way. */
		assert_non_null(tree_find(&bench->world.committed, holder.path));
		finish(bench);
	}
}

/* Before it is watched: who asks whether it holds is told so. */
static void replaced_and_confirmed(void **state)
{
	struct bench *bench = begin(6);
	struct mount *mount = &bench->mounts[0];
	struct taker holder;
	struct lc_call *call;
	int answer = NONE;

	(void)state;
	begin_take(&holder, mount, "build", LC_EXCLUSIVE);
	while (holder.result == NONE)
		run(bench, MS);
	snprintf(holder.path, sizeof(holder.path), BUILD "/%s", lc_znode(holder.lc));
	replace(bench, holder.path);
	assert_int_equal(lc_confirm(holder.lc, done, &answer, &call), 0);
	mount_wake(mount);
	run(bench, SECOND);
	assert_int_equal(answer, -EIO);
	assert_int_equal(holder.lost, 1);
	leave(&holder);
	finish(bench);
}

/* The lock and all in it was removed and made again, under the same names. */
static void all_made_again(void **state)
{
	struct bench *bench = begin(7);
	struct mount *mount = &bench->mounts[0];
	struct taker holder, first, second;

	(void)state;
	take(&holder, mount, LC_EXCLUSIVE);
	take(&first, mount, LC_EXCLUSIVE);
	take(&second, mount, LC_EXCLUSIVE);
	conn_break(mount->wire.conn, -1);
	assert_int_equal(act(bench, ENSEMBLE_DELETE, holder.path, 0, false), ENSEMBLE_OK);
	assert_int_equal(act(bench, ENSEMBLE_DELETE, first.path, 0, false), ENSEMBLE_OK);
	assert_int_equal(act(bench, ENSEMBLE_DELETE, second.path, 0, false), ENSEMBLE_OK);
	assert_int_equal(act(bench, ENSEMBLE_DELETE, BUILD, 0, false), ENSEMBLE_OK);
	assert_int_equal(act(bench, ENSEMBLE_CREATE, BUILD, 0, false), ENSEMBLE_OK);
	assert_int_equal(act(bench, ENSEMBLE_CREATE, holder.path, bench->outsider, false),
	                 ENSEMBLE_OK);
	assert_int_equal(act(bench, ENSEMBLE_CREATE, first.path, bench->outsider, false),
	                 ENSEMBLE_OK);
	assert_int_equal(act(bench, ENSEMBLE_CREATE, second.path, bench->outsider, false),
	                 ENSEMBLE_OK);
	run(bench, 2 * SECOND);
	assert_int_equal(holder.lost, 1);
	assert_int_equal(first.result, -ECANCELED);
	assert_int_equal(second.result, -ECANCELED);
	leave(&second);
	leave(&first);
	leave(&holder);
	finish(bench);
}

/* Where numbers repeat the entries are read after the listing: one of ours may be gone by then. */
static void deleted_before_it_is_read(void **state)
{
	(void)state;
	for (int i = 0; i < 60; i++) {
		struct bench *bench = begin(16);
		struct mount *mount = &bench->mounts[0];
		struct taker holder, waiter;
		struct node *node;

		world_set_counter(&bench->world, BUILD, INT32_MAX - 10);
		take(&holder, &bench->mounts[1], LC_EXCLUSIVE);
		begin_take(&waiter, mount, "build", LC_EXCLUSIVE);
		run(bench, i * 100);
		node = tree_find(&bench->world.proposed, BUILD)->children;
		while (node && node->stat.ephemeral_owner != mount->wire.session)
			node = node->next;
		if (node) {
			assert_int_equal(act(bench, ENSEMBLE_DELETE, node->path, 0, false),
			                 ENSEMBLE_OK);
			run(bench, 3 * SECOND);
			assert_int_equal(waiter.result, -ECANCELED);
		}
		leave(&waiter);
		leave(&holder);
		finish(bench);
	}
}

/* It bars the way of those behind it, who share, only as long as its entry is there. */
static void deleted_among_readers(void **state)
{
	struct bench *bench = begin(8);
	struct mount *mount = &bench->mounts[0];
	struct taker reader, writer, other;

	(void)state;
	take(&reader, &bench->mounts[1], LC_EXCLUSIVE);
	take(&writer, mount, LC_EXCLUSIVE); /* the slots are known then */
	leave(&writer);
	leave(&reader);
	take(&reader, mount, LC_SHARED);
	take(&writer, mount, LC_EXCLUSIVE);
	take(&other, mount, LC_SHARED);
	assert_int_equal(other.result, NONE);
	assert_int_equal(act(bench, ENSEMBLE_DELETE, writer.path, 0, false), ENSEMBLE_OK);
	run(bench, 2 * SECOND);
	assert_int_equal(writer.result, -ECANCELED);
	assert_int_equal(other.result, 0);
	leave(&other);
	leave(&writer);
	leave(&reader);
	finish(bench);
}

/* ---- holders look again ---- */

/* Whatever it was that should have told it. */
static void holding_without_events(void **state)
{
	struct bench *bench = begin(9);
	struct taker holder;

	(void)state;
	take(&holder, &bench->mounts[0], LC_EXCLUSIVE);
	run(bench, 130 * SECOND); /* not only once */
	mutation = MUTATE_drop_changed;
	assert_int_equal(act(bench, ENSEMBLE_DELETE, holder.path, 0, false), ENSEMBLE_OK);
	run(bench, 61 * SECOND);
	assert_int_equal(holder.lost, 1);
	mutation = MUTATE_none;
	leave(&holder);
	finish(bench);
}

/* Whatever its watch has told while there was no contact. */
static void deleted_while_away(void **state)
{
	struct bench *bench = begin(15);
	struct taker holder;

	(void)state;
	take(&holder, &bench->mounts[0], LC_EXCLUSIVE);
	mutation = MUTATE_drop_changed;
	conn_break(bench->mounts[0].wire.conn, -1);
	assert_int_equal(act(bench, ENSEMBLE_DELETE, holder.path, 0, false), ENSEMBLE_OK);
	run(bench, 3 * SECOND);
	assert_int_equal(holder.lost, 1);
	mutation = MUTATE_none;
	leave(&holder);
	finish(bench);
}

/* A lock that may not be read for a while: who waits is refused, who holds is looked at when
 * that is over, and knows at once what an event has told. */
static void holding_what_is_closed(void **state)
{
	(void)state;
	for (int told = 0; told <= 1; told++) {
		struct bench *bench = begin(10);
		struct taker holder, waiter;

		take(&holder, &bench->mounts[0], LC_EXCLUSIVE);
		take(&waiter, &bench->mounts[0], LC_EXCLUSIVE);
		bench->world.list_error = told ? ENSEMBLE_REFUSED : ENSEMBLE_NOAUTH;
		mutation = told ? MUTATE_none : MUTATE_drop_changed;
		run(bench, 61 * SECOND);
		assert_int_equal(waiter.result, told ? -ENOLCK : -EACCES);
		assert_true(lc_holds(holder.lc));
		leave(&waiter);
		assert_int_equal(act(bench, ENSEMBLE_DELETE, holder.path, 0, false), ENSEMBLE_OK);
		if (told) {
			run(bench, 100 * MS);
		} else {
			run(bench, 61 * SECOND);
			assert_int_equal(holder.lost, 0);
			bench->world.list_error = ENSEMBLE_OK;
			run(bench, 61 * SECOND);
		}
		assert_int_equal(holder.lost, 1);
		mutation = MUTATE_none;
		bench->world.list_error = ENSEMBLE_OK;
		leave(&holder);
		finish(bench);
	}
}

/* ---- entries of nobody ---- */

/* One of our session's, with the UUID of a taker that has another one, among many that others
 * have made: those stay, it does not, and we do not ask for all of them at once. */
static void swept_among_copies(void **state)
{
	struct bench *bench = begin(11);
	struct mount *mount = &bench->mounts[0];
	struct taker holder, waiter;
	struct lc_status before, after;
	char path[300];
	const char *orphan = NULL;

	(void)state;
	take(&holder, mount, LC_EXCLUSIVE);
	for (int i = 0; i < 300; i++)
		copy_of(bench, holder.path);
	snprintf(path, sizeof(path), "%.*s", (int)strlen(holder.path) - 10, holder.path);
	assert_int_equal(world_do(&bench->world, mount->wire.session,
	                          OP(.kind = ENSEMBLE_CREATE, .path = path, .ephemeral = true,
	                             .sequence = true),
	                          1, &orphan),
	                 ENSEMBLE_OK);
	snprintf(path, sizeof(path), "%s", orphan);
	run(bench, SECOND);
	lc_status(mount->lc, &before);
	begin_take(&waiter, mount, "build", LC_SHARED);
	run(bench, 100 * MS);
	lc_status(mount->lc, &after);
	assert_in_range(after.counters.requests - before.counters.requests, 1, 80);
	run(bench, 10 * SECOND);
	assert_null(tree_find(&bench->world.committed, path));
	assert_int_equal(entries_of(bench, bench->outsider), 300);
	assert_non_null(tree_find(&bench->world.committed, holder.path));
	leave(&waiter);
	leave(&holder);
	finish(bench);
}

/* ---- watches that are left behind ---- */

static unsigned watched(const struct mount *mount, const char *part)
{
	unsigned count = 0;

	for (int i = 0; i < mount->wire.data_watches.count; i++)
		count += strstr(mount->wire.data_watches.paths[i], part) != NULL;
	return count;
}

/* Who does not wait any more does not watch any more, whether or not there is contact. */
static void given_up(void **state)
{
	(void)state;
	for (int cut = 0; cut <= 2; cut++) {
		struct bench *bench = begin(12);
		struct mount *mount = &bench->mounts[0];
		struct taker holder, waiter;

		take(&holder, &bench->mounts[1], LC_EXCLUSIVE);
		take(&waiter, mount, LC_EXCLUSIVE);
		assert_int_equal(watched(mount, strrchr(holder.path, '/')), 1);
		lc_leave(waiter.lc);
		mount_wake(mount);
		run(bench, cut == 2 ? 3 * MS : 0);
		if (cut)
			conn_break(mount->wire.conn, 0);
		run(bench, 3 * SECOND);
		assert_int_equal(watched(mount, strrchr(holder.path, '/')), 0);
		/* And does again, when it waits again. */
		take(&waiter, mount, LC_EXCLUSIVE);
		assert_int_equal(watched(mount, strrchr(holder.path, '/')), 1);
		leave(&holder);
		assert_int_equal(waiter.result, 0);
		leave(&waiter);
		finish(bench);
	}
}

/* Of many locks that were taken once few stay watched, also if contact was lost meanwhile. */
static void forgotten(void **state)
{
	struct bench *bench = begin(13);
	struct mount *mount = &bench->mounts[0];
	struct taker holders[400];
	char path[64];

	(void)state;
	for (int i = 0; i < 400; i++) {
		snprintf(path, sizeof(path), ROOT "/many%d", i);
		assert_int_equal(act(bench, ENSEMBLE_CREATE, path, 0, false), ENSEMBLE_OK);
	}
	run(bench, 100 * MS);
	for (int i = 0; i < 400; i++) {
		struct taker waiter;

		snprintf(path, sizeof(path), "many%d", i);
		begin_take(&holders[i], mount, path, LC_EXCLUSIVE);
		begin_take(&waiter, mount, path, LC_EXCLUSIVE); /* so the lock is watched */
		run(bench, 50 * MS);
		assert_int_equal(holders[i].result, 0);
		lc_leave(waiter.lc);
		mount_wake(mount);
		run(bench, 50 * MS);
	}
	assert_true(watched(mount, "/many") >= 400);
	for (int i = 0; i < 400; i++)
		lc_leave(holders[i].lc);
	mount_wake(mount);
	run(bench, 4 * MS);
	conn_break(mount->wire.conn, 0); /* what was asked for last is not done */
	run(bench, 3 * SECOND);
	assert_in_range(watched(mount, "/many"), 1, 256);
	finish(bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copied_in_front),
		cmocka_unit_test(copied_and_deleted),
		cmocka_unit_test(copies_are_strangers),
		cmocka_unit_test(claimed_among_copies),
		cmocka_unit_test(trying_before_the_outcome),
		cmocka_unit_test(replaced_while_held),
		cmocka_unit_test(replaced_and_confirmed),
		cmocka_unit_test(all_made_again),
		cmocka_unit_test(deleted_before_it_is_read),
		cmocka_unit_test(deleted_among_readers),
		cmocka_unit_test(holding_without_events),
		cmocka_unit_test(deleted_while_away),
		cmocka_unit_test(holding_what_is_closed),
		cmocka_unit_test(swept_among_copies),
		cmocka_unit_test(given_up),
		cmocka_unit_test(forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
