/* SPDX-License-Identifier: MIT
 *
 * Servers that are not what they were: of another ensemble, without their data, or restored from a
 * backup. The simulation leads mounts astray as well, but has no backup.
 */
#include "unit_stage.h"

#include <errno.h>

#define DIR ROOT "/.zklockfs"

static struct world other;

static void begin_other(struct stage *stage)
{
	world_init(&other, &stage->agenda, (struct rng){99}, &stage->world.config);
}

static void finish_all(struct stage *stage)
{
	finish(stage);
	world_finish(&other);
}

static void make(const char *path)
{
	assert_int_equal(world_do(&other, 0, OP(.kind = ENSEMBLE_CREATE, .path = path), 1, NULL),
	                 ENSEMBLE_OK);
}

static void lead(struct host *host, struct world *world)
{
	host->world = host->wire.world = world;
	if (host->wire.conn)
		conn_break(host->wire.conn, 0);
}

static struct lc_status status_of(struct host *host)
{
	struct lc_status status;

	lc_status(host->lc, &status);
	return status;
}

static unsigned nodes_in(const struct world *world)
{
	return HASH_COUNT(world->committed.nodes);
}

/* The first host is led elsewhere, and the second one goes on. */
static void another_ensemble(bool newer, bool same_root)
{
	struct stage *stage = begin_build(newer ? 1 : 2);
	struct host *here = &stage->hosts[0], *there = &stage->hosts[1];
	struct taker holder, waiter, again;
	unsigned nodes;

	begin_other(stage);
	other.epoch += newer ? 1000 : 0;
	if (same_root) {
		make(ROOT);
		make(BUILD);
		make(DIR);
	}
	run(stage, 100 * MS);
	nodes = nodes_in(&other);
	begin_take(&holder, here, "build", LC_EXCLUSIVE);
	run(stage, SECOND);
	assert_int_equal(holder.phase, HELD);
	begin_take(&waiter, there, "build", LC_EXCLUSIVE);
	lead(here, &other);
	run(stage, 20 * SECOND);
	assert_int_equal(holder.phase, LOST);
	leave(&holder);
	assert_int_equal(waiter.phase, HELD);
	begin_take(&again, here, "build", LC_EXCLUSIVE);
	run(stage, 60 * SECOND);
	assert_int_equal(again.phase, WAITING);
	assert_int_equal(waiter.phase, HELD);
	assert_int_equal(status_of(here).state, LC_CONNECTING);
	assert_true(status_of(here).elsewhere);
	assert_int_equal(nodes_in(&other), nodes);
	lead(here, &stage->world);
	run(stage, 40 * SECOND);
	assert_true(lc_ready(here->lc));
	assert_false(status_of(here).elsewhere);
	assert_int_equal(again.phase, WAITING);
	leave(&waiter);
	assert_int_equal(again.phase, HELD);
	leave(&again);
	finish_all(stage);
}

static void another(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++)
		another_ensemble(i & 1, i & 2);
}

/* The ids of the hosts' sessions exist elsewhere, too, without their nodes. What is told there ends
 * no hold and no wait, whether it is found out there where it was told or not. */
static void twins(void **state)
{
	static const int64_t durations_us[] = {200, 2 * MS, 20 * MS, 300 * MS, 3 * SECOND};

	(void)state;
	for (size_t i = 0; i < 2 * LENGTH(durations_us); i++) {
		struct stage *stage = begin_build(5 + i);
		struct host *here = &stage->hosts[0];
		int64_t session = here->wire.session;
		struct taker holder, waiter;

		begin_other(stage);
		other.epoch += 1000;
		make(ROOT);
		if (i & 1)
			make(DIR);
		for (int twin = 0; twin < 4; twin++)
			world_twin_session(&other);
		run(stage, 100 * MS);
		begin_take(&holder, here, "build", LC_EXCLUSIVE);
		begin_take(&waiter, here, "build", LC_EXCLUSIVE);
		run(stage, SECOND);
		stage_watch_waiters(&holder, true);
		lead(here, &other);
		run(stage, durations_us[i / 2]);
		lead(here, &stage->world);
		run(stage, 3 * SECOND);
		assert_true(lc_ready(here->lc));
		assert_int_equal(status_of(here).session, session);
		assert_int_equal(holder.phase, HELD);
		assert_int_equal(holder.waiters_changed, 1);
		assert_int_equal(waiter.phase, WAITING);
		leave(&holder);
		assert_int_equal(waiter.phase, HELD);
		leave(&waiter);
		finish_all(stage);
	}
}

/* All servers have the data of an earlier moment; their sessions are over. */
static void restore(struct stage *stage)
{
	struct server *server = &other.servers[0];

	begin_other(stage);
	other.session_count = 1000; /* ids are made of the time */
	for (const struct node *node = stage->world.committed.nodes; node; node = node->hh.next)
		if (node->parent && !node->stat.ephemeral_owner) {
			world_do(&other, 0,
			         OP(.kind = ENSEMBLE_CREATE, .path = node->path, .data = node->data,
			            .data_len = node->data_len),
			         1, NULL);
			tree_find(&other.proposed, node->path)->stat = node->stat;
		}
	run(stage, 100 * MS);
	for (const struct node *node = stage->world.committed.nodes; node; node = node->hh.next)
		if (node->parent && !node->stat.ephemeral_owner) {
			tree_find(&other.committed, node->path)->stat = node->stat;
			tree_find(&server->tree, node->path)->stat = node->stat;
		}
}

static void backup(void **state)
{
	struct stage *stage = begin_build(3);
	struct host *here = &stage->hosts[0];
	struct taker holder, again;

	(void)state;
	restore(stage);
	begin_take(&holder, here, "build", LC_EXCLUSIVE);
	run(stage, 10 * SECOND);
	assert_int_equal(holder.phase, HELD);
	for (int i = 0; i < HOSTS_MAX; i++)
		lead(&stage->hosts[i], &other);
	run(stage, TIMEOUT_US - 2 * SECOND);
	assert_int_equal(status_of(here).session, here->wire.session);
	assert_int_equal(holder.phase, LOST);
	run(stage, 2 * SECOND + 10 * SECOND);
	for (int i = 0; i < HOSTS_MAX; i++) {
		assert_string_equal(status_of(&stage->hosts[i]).met, "");
		assert_true(lc_ready(stage->hosts[i].lc));
	}
	leave(&holder);
	begin_take(&again, here, "build", LC_EXCLUSIVE);
	run(stage, SECOND);
	assert_int_equal(again.phase, HELD);
	leave(&again);
	finish_all(stage);
}

/* Servers without a quorum close connections, too. Then the session goes on, and the waiter has its
 * place. */
static void without_a_quorum(void **state)
{
	struct stage *stage = begin_build(4);
	struct host *here = &stage->hosts[0];
	struct taker first, second;
	int64_t session = status_of(here).session;
	uint64_t connections, scouts;

	(void)state;
	begin_take(&first, &stage->hosts[1], "build", LC_EXCLUSIVE);
	run(stage, SECOND);
	assert_int_equal(first.phase, HELD);
	begin_take(&second, here, "build", LC_EXCLUSIVE);
	run(stage, SECOND);
	stage->world.servers[0].cut = false;
	stage->world.leader = -1;
	for (int i = 0; i < HOSTS_MAX; i++)
		lead(&stage->hosts[i], &stage->world);
	run(stage, TIMEOUT_US + 5 * SECOND);
	assert_true(strstr(status_of(here).met, "closes each connection"));
	connections = here->wire.conn_count;
	scouts = here->wire.scout_count;
	run(stage, 60 * SECOND);
	/* The waiter's session goes nowhere until a scout was granted. */
	assert_int_equal(here->wire.conn_count, connections);
	assert_in_range(here->wire.scout_count - scouts, 15, 240);
	stage->world.leader = 0;
	for (struct session *s = stage->world.sessions; s; s = s->next)
		s->expiry_us = stage->agenda.now_us + TIMEOUT_US;
	run(stage, 8 * SECOND);
	assert_true(lc_ready(here->lc));
	assert_int_equal(status_of(here).session, session);
	assert_string_equal(status_of(here).met, "");
	leave(&first);
	run(stage, SECOND);
	assert_int_equal(second.phase, HELD);
	leave(&second);
	finish(stage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another),
		cmocka_unit_test(twins),
		cmocka_unit_test(backup),
		cmocka_unit_test(without_a_quorum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
