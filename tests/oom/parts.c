/* SPDX-License-Identifier: MIT
 *
 * parts.c - node.c, snapshot.c, view.c and facts.c of fs/. Whatever fails, earlier objects are
 * still right, and a result is whole or is ENOMEM.
 */
#include "parts.h"

#include "memory.h"
#include "tree/facts.h"
#include "tree/history.h"
#include "tree/node.h"
#include "tree/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CROWD 600

static const char *play_nodes(void)
{
	struct nodes *nodes;
	struct node *root, *lock, *below, *lock_file;
	const char *wrong = NULL;

	if (nodes_create(NULL, &nodes) < 0)
		return NULL;
	root = node_by_ino(nodes, 1);
	lock = node_get(nodes, root, "a", NODE_LOCK);
	below = lock ? node_get(nodes, lock, "b", NODE_LOCK) : NULL;
	lock_file = below ? node_get(nodes, below, "lock@30s", NODE_LOCK_FILE) : NULL;
	if (root->ino != 1 || node_by_ino(nodes, 1) != root)
		wrong = "the root is lost";
	if (below && (strcmp(below->lock, "a/b") != 0 || node_child(nodes, lock, "b") != below))
		wrong = "a node is lost";
	if (lock_file && node_get(nodes, below, "lock@30s", NODE_LOCK_FILE) != lock_file)
		wrong = "a node is made again";
	if (lock_file) {
		node_unref(nodes, lock_file);
		node_looked_up(nodes, lock_file);
		node_unref(nodes, lock_file);
		node_forget(nodes, lock_file, 1);
	}
	if (below)
		node_unref(nodes, below);
	if (lock) {
		node_unref(nodes, lock);
		if (node_child(nodes, root, "a"))
			wrong = "a node outlives its references";
	}
	nodes_destroy(nodes);
	return wrong;
}

/* So many nodes that the tables grow; the numbers of refused nodes stay unused. */
static const char *play_many_nodes(void)
{
	static struct node *made[CROWD];
	struct nodes *nodes;
	const char *wrong = NULL;
	char name[16];

	if (nodes_create(NULL, &nodes) < 0)
		return NULL;
	for (int i = 0; i < CROWD; i++) {
		snprintf(name, sizeof(name), "lock%d", i);
		made[i] = node_get(nodes, node_by_ino(nodes, 1), name, NODE_LOCK);
	}
	for (int i = 0; i < CROWD; i++) {
		snprintf(name, sizeof(name), "lock%d", i);
		if (node_child(nodes, node_by_ino(nodes, 1), name) != made[i] ||
		    (made[i] && node_by_ino(nodes, made[i]->ino) != made[i]))
			wrong = "a node is lost";
		if (made[i] && i % 2)
			node_unref(nodes, made[i]);
	}
	nodes_destroy(nodes);
	return wrong;
}

static const char *play_snapshot(void)
{
	struct lc_entry entries[3] = {
		{.znode = "other-lock-0000000003", .number = 3, .host = "-"},
		{.znode = "other-lock-0000000003", .number = 3, .repeat = 1, .host = "-"},
		{.znode = "_c_x-web.7-lock-0000000004",
	         .number = 4,
	         .of_mount = true,
	         .host = "web",
	         .pid = 7},
	};
	struct lc_listing listing = {.entries = entries, .entry_count = 3};
	const char *wrong = NULL;
	struct snapshot *snapshot = snapshot_take(&listing, 5);
	char name[QUEUE_NAME_MAX + 1];

	if (!snapshot)
		return NULL;
	for (int i = 0; i < 3; i++) {
		const struct lc_entry *found;

		snapshot_name(name, &entries[i]);
		found = snapshot_find(snapshot, name);
		if (!found || strcmp(found->znode, entries[i].znode) != 0 ||
		    found->repeat != entries[i].repeat)
			wrong = "an entry is lost";
	}
	snapshot_free(snapshot);
	return wrong;
}

/* The text is whole, or the error is ENOMEM. */
static const char *judge_text(int r, struct text *text, const char *end, size_t len)
{
	const char *wrong = NULL;

	if (r == 0 && (!text->data || text->len < strlen(end) || (len && text->len != len) ||
	               text->data[text->len] != '\0' ||
	               strcmp(text->data + text->len - strlen(end), end) != 0))
		wrong = "success, and the text is not whole";
	else if (r != 0 && r != -ENOMEM)
		wrong = "another error than ENOMEM";
	if (r == 0)
		free(text->data);
	memory_libc(false);
	return wrong;
}

static struct lc_entry_info *infos(void)
{
	static struct lc_entry_info made[16];

	for (int i = 0; i < 16; i++) {
		made[i] = (struct lc_entry_info){
			.entry = {.znode = "_c_x-web.7-lock-0000000004",
		                  .number = 4,
		                  .of_mount = true,
		                  .held = true,
		                  .host = "web",
		                  .pid = 7},
			.token = 9,
			.session = 8,
			.queued_since_ms = 1,
			.held_since_ms = 2,
			.uid = 3,
			.command = "make",
		};
		memset(made[i].reason, 'r', LC_REASON_MAX);
	}
	return made;
}

/* libc's allocations count from where the stream is opened (memory.c) to judge_text(). */
static const char *play_view_entry(void)
{
	struct lc_entry_info *info = infos();
	struct text text = {.data = (char *)info, .len = 12345}; /* must not be used */

	return judge_text(view_entry(info, -1, &text), &text, "rrrr\n", 0);
}

static const char *play_view_holders(void)
{
	struct lc_entry_info *info = infos();
	struct text text = {.data = (char *)info, .len = 12345};
	static size_t len;
	int r = view_holders(info, 16, &text);
	const char *wrong;
	size_t now = r == 0 ? text.len : 0;

	wrong = judge_text(r, &text, "rrrr\n", len);
	if (len == 0)
		len = now; /* the first run has enough memory */
	return wrong;
}

static const struct history no_history;
static const struct facts play_facts = {
	.mount = {.host = "web", .mountpoint = "/mnt", .on_lost = "none"},
	.engine = {.state = LC_READY, .session = 7, .server = "10.0.0.1:2181"},
	.away_since_ms = -1,
	.addresses = "10.0.0.1:2181",
	.clock_watched_by = "realtime",
	.history = &no_history,
};

static const char *play_view_status(void)
{
	struct text text = {.data = (char *)&play_facts, .len = 12345};

	return judge_text(view_status(&play_facts, &text), &text, "keeper: 0\n", 0);
}

static const char *play_view_metrics(void)
{
	struct text text = {.data = (char *)&play_facts, .len = 12345};

	return judge_text(view_metrics(&play_facts, &text), &text,
	                  "zklockfs_hold_seconds_count{mount=\"/mnt\"} 0\n", 0);
}

const struct part parts[] = {
	{"nodes", play_nodes},
	{"many-nodes", play_many_nodes},
	{"snapshot", play_snapshot},
	{"view-entry", play_view_entry},
	{"view-holders", play_view_holders},
	{"view-status", play_view_status},
	{"view-metrics", play_view_metrics},
};
const int part_count = sizeof(parts) / sizeof(parts[0]);
