/* SPDX-License-Identifier: MIT
 *
 * Inode numbers: one for each name while the name is known; no number is forgotten too early, or
 * kept for ever.
 */
#include "tree/node.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct node *nodes_root(struct nodes *nodes)
{
	return node_by_ino(nodes, 1);
}

static int set_up(void **state)
{
	return nodes_create(NULL, (struct nodes **)state);
}

static int tear_down(void **state)
{
	nodes_destroy(*state);
	return 0;
}

static void the_root(void **state)
{
	struct nodes *nodes = *state;
	struct node *root = nodes_root(nodes);

	assert_int_equal(root->ino, 1);
	assert_int_equal(root->kind, NODE_ROOT);
	assert_string_equal(root->lock, "");
	assert_ptr_equal(node_by_ino(nodes, 1), root);
	/* The kernel forgets the root when it unmounts; it is needed longer. */
	node_looked_up(nodes, root);
	node_forget(nodes, root, 1);
	assert_ptr_equal(node_by_ino(nodes, 1), root);
}

/* Two mounts have no number in common but the root's, and 32 bits hold each. */
static void numbers_of_another_mount(void **state)
{
	const struct node *own = node_get(*state, nodes_root(*state), "a", NODE_LOCK), *other;
	struct nodes *nodes;

	assert_int_equal(nodes_create(NULL, &nodes), 0);
	other = node_get(nodes, nodes_root(nodes), "a", NODE_LOCK);
	assert_true(own->ino > other->ino + 1000 || other->ino > own->ino + 1000);
	assert_in_range(own->ino, 2, UINT32_MAX);
	nodes_destroy(nodes);
}

static void which_lock_a_file_belongs_to(void **state)
{
	struct nodes *nodes = *state;
	struct node *root = nodes_root(nodes);
	struct node *team = node_get(nodes, root, "team", NODE_LOCK);
	struct node *deploy = node_get(nodes, team, "deploy", NODE_LOCK);
	struct node *lock_file = node_get(nodes, deploy, "lock@30s", NODE_LOCK_FILE);
	struct node *queue = node_get(nodes, deploy, "queue", NODE_QUEUE);
	struct node *entry = node_get(nodes, queue, "0000000001-exclusive-foreign", NODE_ENTRY);
	struct node *about = node_get(nodes, root, ".zklockfs", NODE_ABOUT);

	assert_string_equal(team->lock, "team");
	assert_string_equal(deploy->lock, "team/deploy");
	assert_string_equal(lock_file->lock, "team/deploy");
	assert_string_equal(queue->lock, "team/deploy");
	assert_string_equal(entry->lock, "team/deploy");
	assert_string_equal(about->lock, "");
	assert_string_equal(lock_file->name, "lock@30s");
	assert_ptr_equal(lock_file->parent, deploy);
}

static void one_number_for_one_name(void **state)
{
	struct nodes *nodes = *state;
	struct node *root = nodes_root(nodes);
	struct node *a = node_get(nodes, root, "a", NODE_LOCK);
	struct node *b = node_get(nodes, root, "b", NODE_LOCK);
	struct node *inner = node_get(nodes, a, "b", NODE_LOCK);

	assert_true(a->ino != b->ino && b->ino != inner->ino && a->ino != inner->ino);
	assert_ptr_equal(node_get(nodes, root, "a", NODE_LOCK), a);
	assert_int_equal(a->references, 3); /* two of ours, one of its child */
	assert_ptr_equal(node_child(nodes, root, "b"), b);
	assert_ptr_equal(node_child(nodes, a, "b"), inner);
	assert_ptr_equal(node_by_ino(nodes, inner->ino), inner);
	assert_null(node_child(nodes, b, "b"));
	assert_null(node_child(nodes, root, "A"));
	assert_null(node_child(nodes, root, ""));
	assert_null(node_by_ino(nodes, 0));
	assert_null(node_by_ino(nodes, 4711));
}

static void names_of_any_length(void **state)
{
	struct nodes *nodes = *state;
	struct node *root = nodes_root(nodes), *longest;
	char name[LC_NAME_MAX + 2];

	memset(name, 'x', sizeof(name));
	name[LC_NAME_MAX + 1] = '\0';
	assert_null(node_child(nodes, root, name));
	name[LC_NAME_MAX] = '\0';
	longest = node_get(nodes, root, name, NODE_LOCK);
	assert_ptr_equal(node_child(nodes, root, name), longest);
	name[LC_NAME_MAX - 1] = '\0';
	assert_null(node_child(nodes, root, name));
}

static void references_keep_a_node(void **state)
{
	struct nodes *nodes = *state;
	struct node *a = node_get(nodes, nodes_root(nodes), "a", NODE_LOCK);
	uint64_t ino = a->ino;

	node_ref(a);
	node_unref(nodes, a);
	assert_non_null(node_by_ino(nodes, ino));
	node_unref(nodes, a);
	assert_null(node_by_ino(nodes, ino));
	assert_null(node_child(nodes, nodes_root(nodes), "a"));
	/* A new node is a new file, never the old number. */
	assert_true(node_get(nodes, nodes_root(nodes), "a", NODE_LOCK)->ino > ino);
}

static void lookups_keep_a_node(void **state)
{
	struct nodes *nodes = *state;
	struct node *a = node_get(nodes, nodes_root(nodes), "a", NODE_LOCK);
	uint64_t ino = a->ino;

	for (int i = 0; i < 3; i++)
		node_looked_up(nodes, a);
	node_unref(nodes, a);
	assert_non_null(node_by_ino(nodes, ino));
	node_forget(nodes, a, 2);
	assert_non_null(node_by_ino(nodes, ino));
	node_forget(nodes, a, 0);
	assert_non_null(node_by_ino(nodes, ino));
	node_forget(nodes, a, 1);
	assert_null(node_by_ino(nodes, ino));
}

/* An open file keeps its node when the kernel has forgotten it. */
static void an_open_file_keeps_a_forgotten_node(void **state)
{
	struct nodes *nodes = *state;
	struct node *a = node_get(nodes, nodes_root(nodes), "a", NODE_LOCK);
	uint64_t ino = a->ino;

	node_looked_up(nodes, a);
	node_forget(nodes, a, 1);
	assert_ptr_equal(node_by_ino(nodes, ino), a);
	node_unref(nodes, a);
	assert_null(node_by_ino(nodes, ino));
}

static void a_child_keeps_its_parents(void **state)
{
	struct nodes *nodes = *state;
	struct node *a = node_get(nodes, nodes_root(nodes), "a", NODE_LOCK);
	struct node *b = node_get(nodes, a, "b", NODE_LOCK);
	struct node *lock_file = node_get(nodes, b, "lock", NODE_LOCK_FILE);
	uint64_t inos[] = {a->ino, b->ino, lock_file->ino};

	node_unref(nodes, a);
	node_unref(nodes, b);
	for (size_t i = 0; i < 3; i++)
		assert_non_null(node_by_ino(nodes, inos[i]));
	/* With the last child go the parents that only it needed. */
	node_unref(nodes, lock_file);
	for (size_t i = 0; i < 3; i++)
		assert_null(node_by_ino(nodes, inos[i]));
	assert_non_null(node_by_ino(nodes, 1));
}

/* The locks that were read last are kept, with the locks above, whatever the kernel forgets. */
static void locks_are_kept(void **state)
{
	struct nodes *nodes = *state;
	struct node *team = node_get(nodes, nodes_root(nodes), "team", NODE_LOCK), *build, *lock;
	uint64_t ino;
	char name[16];

	build = node_get(nodes, team, "build", NODE_LOCK);
	node_unref(nodes, team);
	ino = build->ino;
	for (int i = 0; i < 2; i++)
		node_cache(nodes, build);
	node_unref(nodes, build);
	for (int i = 0; i < 2 * CACHED_LOCKS_MAX; i++) {
		snprintf(name, sizeof(name), "%d", i);
		lock = node_get(nodes, nodes_root(nodes), name, NODE_LOCK);
		node_cache(nodes, lock);
		node_unref(nodes, lock);
		if (i == CACHED_LOCKS_MAX)
			assert_null(node_child(nodes, nodes_root(nodes), "1"));
		if (i % 1000 == 0)
			node_cache(nodes, build);
	}
	assert_ptr_equal(node_child(nodes, node_child(nodes, nodes_root(nodes), "team"), "build"),
	                 build);
	node_uncache(nodes, build);
	assert_null(node_by_ino(nodes, ino));
	assert_null(node_child(nodes, nodes_root(nodes), "team"));
	/* A lock that has lost its name is not kept. */
	node_unname(nodes, lock);
	node_uncache(nodes, lock);
	lock = node_get(nodes, nodes_root(nodes), "gone", NODE_LOCK);
	ino = lock->ino;
	node_unname(nodes, lock);
	node_cache(nodes, lock);
	node_unref(nodes, lock);
	assert_null(node_by_ino(nodes, ino));
}

/* Names that can be made up without end: the oldest are dropped, whatever the kernel remembers, but
 * not open files, nor the files that every lock has. */
static void names_that_pass(void **state)
{
	struct nodes *nodes = *state;
	struct node *build = node_get(nodes, nodes_root(nodes), "build", NODE_LOCK);
	struct node *queue = node_get(nodes, build, "queue", NODE_QUEUE);
	struct node *flock = node_get(nodes, build, "flock", NODE_LOCK_FILE), *open, *again, *one,
		    *lock_file;
	uint64_t first;
	char name[16];

	node_looked_up(nodes, flock);
	node_unref(nodes, flock);
	open = node_get(nodes, queue, "0000000001-open", NODE_ENTRY);
	node_looked_up(nodes, open);
	one = node_get(nodes, queue, "0000000002", NODE_ENTRY);
	again = node_get(nodes, build, "lock@30s", NODE_LOCK_FILE);
	for (int i = 0; i < 2; i++) {
		node_looked_up(nodes, one);
		node_looked_up(nodes, again);
	}
	node_unref(nodes, one);
	node_unref(nodes, again);
	first = one->ino;
	for (int i = 0; i < NODE_TRANSIENT_MAX - 3; i++) {
		snprintf(name, sizeof(name), "lock@%dms", i);
		lock_file = node_get(nodes, build, name, NODE_LOCK_FILE);
		node_looked_up(nodes, lock_file);
		node_unref(nodes, lock_file);
	}
	assert_ptr_equal(node_by_ino(nodes, first), one);
	node_looked_up(nodes, again);
	for (int i = 0; i < NODE_TRANSIENT_MAX - 2; i++) {
		snprintf(name, sizeof(name), "shared@%dms", i);
		lock_file = node_get(nodes, build, name, NODE_LOCK_FILE);
		node_looked_up(nodes, lock_file);
		node_unref(nodes, lock_file);
		assert_true(i > 0 || !node_by_ino(nodes, first));
	}
	assert_null(node_child(nodes, build, "lock@7ms"));
	assert_ptr_equal(node_child(nodes, build, "lock@30s"), again);
	assert_ptr_equal(node_child(nodes, build, "flock"), flock);
	assert_ptr_equal(node_child(nodes, queue, "0000000001-open"), open);
	node_looked_up(nodes, node_child(nodes, build, "shared@0ms"));
	lock_file = node_get(nodes, build, "try@", NODE_LOCK_FILE);
	node_looked_up(nodes, lock_file);
	node_unref(nodes, lock_file);
	assert_null(node_child(nodes, build, "lock@30s"));
	/* Until the file is closed, and forgotten by the kernel. */
	first = open->ino;
	node_unref(nodes, open);
	node_forget(nodes, open, 1);
	assert_null(node_by_ino(nodes, first));
	node_forget(nodes, node_child(nodes, build, "shared@0ms"), 2);
	assert_null(node_child(nodes, build, "shared@0ms"));
}

static struct snapshot *snapshot_of(size_t count)
{
	struct lc_entry *entries = calloc(count, sizeof(*entries));
	struct snapshot *snapshot;

	for (size_t i = 0; i < count; i++)
		entries[i] = (struct lc_entry){.znode = "x-lock-0000000001", .number = 1};
	snapshot = snapshot_take(&(struct lc_listing){.entries = entries, .entry_count = count}, 0);
	assert_non_null(snapshot);
	free(entries);
	return snapshot;
}

/* Listings are kept up to a number of entries, and the last listing is kept in any case. */
static void what_is_remembered_of_queues(void **state)
{
	struct nodes *nodes = *state;
	struct node *queues[4];

	for (int i = 0; i < 4; i++) {
		struct node *lock =
			node_get(nodes, nodes_root(nodes), (char[]){(char)('a' + i), 0}, NODE_LOCK);

		queues[i] = node_get(nodes, lock, "queue", NODE_QUEUE);
	}
	for (int i = 0; i < 3; i++)
		node_snapshot(nodes, queues[i], snapshot_of(NODE_SNAPSHOTS_MAX / 3));
	node_snapshot(nodes, queues[0], snapshot_of(NODE_SNAPSHOTS_MAX / 3));
	assert_non_null(queues[1]->snapshot);
	node_snapshot(nodes, queues[3], snapshot_of(NODE_SNAPSHOTS_MAX / 2));
	assert_null(queues[1]->snapshot);
	assert_null(queues[2]->snapshot);
	assert_non_null(queues[0]->snapshot);
	node_snapshot(nodes, queues[0], NULL);
	assert_null(queues[0]->snapshot);
	node_snapshot(nodes, queues[1], snapshot_of(NODE_SNAPSHOTS_MAX + 1));
	assert_null(queues[3]->snapshot);
	assert_non_null(queues[1]->snapshot);
}

/* All nodes are freed while they are still known: a sanitizer would see a leak. */
static void destroyed_with_all_known(void **state)
{
	struct nodes *nodes;

	(void)state;
	assert_int_equal(nodes_create(NULL, &nodes), 0);
	for (int i = 0; i < 100; i++) {
		char name[] = {(char)('a' + i % 26), (char)('a' + i / 26), '\0'};
		struct node *lock = node_get(nodes, nodes_root(nodes), name, NODE_LOCK);
		struct node *entry = node_get(nodes, lock, "queue", NODE_QUEUE);

		node_looked_up(nodes, lock);
		node_cache(nodes, lock);
		entry->znode = strdup("x-0000000001");
	}
	nodes_destroy(nodes);
	nodes_destroy(NULL);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_root),
		TEST(numbers_of_another_mount),
		TEST(which_lock_a_file_belongs_to),
		TEST(one_number_for_one_name),
		TEST(names_of_any_length),
		TEST(references_keep_a_node),
		TEST(lookups_keep_a_node),
		TEST(an_open_file_keeps_a_forgotten_node),
		TEST(a_child_keeps_its_parents),
		TEST(locks_are_kept),
		TEST(names_that_pass),
		TEST(what_is_remembered_of_queues),
		cmocka_unit_test(destroyed_with_all_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
