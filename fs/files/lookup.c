/* SPDX-License-Identifier: MIT
 *
 * lookup.c - which file has a name: in a directory of locks, in a lock, or in its queue.
 */
#include "files/lookup.h"

#include "files/attributes.h"
#include "files/sweep.h"
#include "host/log.h"
#include "tree/fixed.h"
#include "tree/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Answers with the node, and drops the caller's reference on it. */
static void reply_node(struct frontend *front, struct request *req, struct node *node)
{
	bool fixed = node->kind != NODE_LOCK && node->kind != NODE_ENTRY;
	int64_t left_us = attributes_timeout_us(front, node);
	struct fuse_attr attr = attributes(front, node);

	node_looked_up(front->nodes, node);
	reply_entry(req, &attr,
	            fixed         ? TIMEOUT_STATIC_US
	            : node->swept ? left_us
	                          : TIMEOUT_US,
	            left_us);
	node->swept = false;
	node_unref(front->nodes, node);
}

static void reply_child(struct frontend *front, struct request *req, struct node *parent,
                        const char *name, enum node_kind kind)
{
	struct node *node = node_get(front->nodes, parent, name, kind);

	if (node)
		reply_node(front, req, node);
	else
		reply_err(req, ENOMEM);
}

/* The lock as the mount remembers it, while the ensemble is away. */
static struct node *find_remembered(struct frontend *front, const struct node *parent,
                                    const char *name)
{
	struct node *node = node_child(front->nodes, parent, name);

	return node && node->kind == NODE_LOCK && node->known ? node : NULL;
}

struct named *lookup_park(struct frontend *front, struct request *req, struct node *parent,
                          const char *name)
{
	struct named *named = park(front, req, parent, sizeof(*named));

	if (!named)
		return NULL;
	snprintf(named->name, sizeof(named->name), "%s", name);
	named->begun_us = front->clock_us();
	return named;
}

static void reply_found(struct frontend *front, struct request *req, struct node *parent,
                        const char *name, const struct lc_lock_info *info)
{
	struct node *node = attributes_node(front, parent, name, info->czxid);

	if (!node) {
		reply_err(req, ENOMEM);
		return;
	}
	if (!node->known)
		absent_found(&front->lists->absents, parent->ino, name, front->clock_us());
	attributes_learn(front, node, info);
	reply_node(front, req, node);
}

void lookup_reply_lock(struct named *named, const struct lc_lock_info *info)
{
	struct parked *parked = &named->parked;

	reply_found(parked->front, parked->req, parked->node, named->name, info);
	parked_free(parked);
}

static void forget_lock(const struct frontend *front, struct node *node)
{
	if (node)
		attributes_unlearn(front, node);
}

static void lock_found(void *ctx, int err, const struct lc_lock_info *info)
{
	struct named *named = ctx;
	struct parked *parked = ctx;
	struct frontend *front = parked->front;
	struct node *node = find_remembered(front, parked->node, named->name);

	unpark(parked);
	if (err == 0) {
		lookup_reply_lock(named, info);
	} else if (err == -EHOSTUNREACH && node) {
		node_ref(node);
		reply_node(front, parked->req, node);
		parked_free(parked);
	} else {
		if (err == -ENOENT)
			forget_lock(front, node);
		if (err == -ENOENT || err == -EBUSY)
			absent_note(&front->lists->absents, parked->node->ino, parked_uid(parked),
			            front->clock_us(), front->clock_us() - named->begun_us);
		parked_error(parked, err);
	}
}

/* The lock of that name. */
static void ask_for_lock(struct named *named)
{
	struct parked *parked = &named->parked;
	char *path = node_path_below(parked->node->lock, named->name);
	/* sweep_ask() asks about its neighbours, too, and their answers come first. */
	bool listed = sweep_ask(parked->front, parked->node, named->name, parked_uid(parked));
	bool known = listed || find_remembered(parked->front, parked->node, named->name);

	park_call(parked,
	          path ? (known ? lc_stat : lc_seek)(parked->front->lc, path, parked_uid(parked),
	                                             lock_found, named, &parked->call)
	               : -ENOMEM);
	free(path);
}

/* ---- where many names are looked up in vain: absent.h ---- */

/* False: the ensemble has to be asked. */
static bool says_absent(struct frontend *front, struct request *req, const struct node *parent,
                        const char *name)
{
	struct absents *absents = &front->lists->absents;
	int64_t now_us = front->clock_us();

	if (absent_ask(absents, parent->ino, name, now_us) != ABSENT_NOT_THERE)
		return false;
	absent_note(absents, parent->ino, req->in.uid, now_us, 0);
	forget_lock(front, find_remembered(front, parent, name));
	return true;
}

static void directory_listed(void *ctx, int err, const struct lc_listing *listing)
{
	struct named *named = ctx;
	struct parked *parked = ctx;
	struct frontend *front = parked->front;

	unpark(parked);
	if (err == 0)
		absent_learn(&front->lists->absents, parked->node->ino, listing, named->begun_us);
	if (says_absent(front, parked->req, parked->node, named->name))
		parked_error(parked, -ENOENT);
	else if (err == -EBUSY || err == -EHOSTUNREACH)
		parked_error(parked, err);
	else
		ask_for_lock(named);
}

static void list_directory(struct named *named)
{
	struct parked *parked = &named->parked;

	park_call(parked, lc_list(parked->front->lc, parked->node->lock, ABSENT_UID,
	                          directory_listed, named, &parked->call));
}

static void lookup_lock(struct frontend *front, struct request *req, struct node *parent,
                        const char *name)
{
	struct node *node = find_remembered(front, parent, name);
	struct lc_lock_info info;
	struct named *named;
	const char *why;
	bool crowded;

	if (lc_check_name(front->lc, name, &why) < 0) {
		reply_err(req, ENOENT);
		return;
	}
	if (node && (!lc_ready(front->lc) || sweep_knows(front, node))) {
		node_ref(node);
		reply_node(front, req, node);
		return;
	}
	if (node && lc_recall(front->lc, node->lock, &info)) {
		reply_found(front, req, parent, name, &info);
		return;
	}
	crowded = absent_is_crowded(&front->lists->absents, parent->ino, req->in.uid,
	                            front->clock_us());
	if (crowded && says_absent(front, req, parent, name)) {
		reply_err(req, ENOENT);
		return;
	}
	named = lookup_park(front, req, parent, name);
	if (!named)
		return;
	if (crowded && absent_ask(&front->lists->absents, parent->ino, name, named->begun_us) ==
	                       ABSENT_UNKNOWN)
		list_directory(named);
	else
		ask_for_lock(named);
}

static void reply_queued(struct frontend *front, struct request *req, struct node *queue,
                         const char *name, const char *znode, const struct entry_facts *facts)
{
	struct node *node = node_child(front->nodes, queue, name);

	/* An open file stays one of the entry that it was opened for. */
	if (node && (strcmp(node->znode, znode) != 0 || node->entry.token != facts->token))
		node_unname(front->nodes, node);
	node = node_get(front->nodes, queue, name, NODE_ENTRY);
	if (node && !node->znode)
		node->znode = strdup(znode);
	if (!node || !node->znode) {
		if (node) {
			node_unname(front->nodes, node);
			node_unref(front->nodes, node);
		}
		reply_err(req, ENOMEM);
		return;
	}
	node->entry = *facts;
	record_touch(&node->record);
	reply_node(front, req, node);
}

static void list_queue(struct named *named);

/* The one that was asked for; and others, that will be. */
static void entries_found(void *ctx, int err, const struct lc_entry_info *infos, size_t count)
{
	struct named *named = ctx;
	struct parked *parked = ctx;
	struct snapshot *snapshot = parked->node->snapshot;
	const struct lc_entry *entry = NULL;
	const struct entry_facts *facts;

	unpark(parked);
	if (err == 0 && !snapshot) { /* others took its room */
		list_queue(named);
		return;
	}
	for (size_t i = 0; snapshot && i < count; i++)
		snapshot_learn(snapshot, &infos[i], named->begun_us);
	if (snapshot)
		entry = snapshot_find(snapshot, named->name);
	facts = entry ? snapshot_facts(snapshot, entry) : NULL;
	if (err < 0 || !facts) {
		parked_error(parked, err < 0 ? err : -ENOENT);
		return;
	}
	reply_queued(parked->front, parked->req, parked->node, named->name, entry->znode, facts);
	parked_free(parked);
}

/* The queue was listed: which entry has that name? */
static void lookup_listed(struct named *named)
{
	struct parked *parked = &named->parked;
	struct snapshot *snapshot = parked->node->snapshot;
	const struct lc_entry *entry = snapshot ? snapshot_find(snapshot, named->name) : NULL;

	if (!entry)
		park_call(parked, snapshot ? -ENOENT : -ENOMEM);
	else
		park_call(parked,
		          lc_entries(parked->front->lc, parked->node->lock, parked_uid(parked),
		                     NULL, entry, snapshot_ahead(snapshot, entry), entries_found,
		                     named, &parked->call));
}

static void queue_listed(void *ctx, int err, const struct lc_listing *listing)
{
	struct parked *parked = ctx;
	struct node *queue = parked->node;

	if (!unpark_succeeded(parked, err))
		return;
	if (!snapshot_is_of(queue->snapshot, listing))
		node_snapshot(parked->front->nodes, queue,
		              snapshot_take(listing, parked->front->clock_us()));
	lookup_listed(ctx);
}

static void list_queue(struct named *named)
{
	struct parked *parked = &named->parked;

	park_call(parked, lc_list(parked->front->lc, parked->node->lock, parked_uid(parked),
	                          queue_listed, named, &parked->call));
}

static void lookup_entry(struct frontend *front, struct request *req, struct node *queue,
                         const char *name)
{
	bool fresh = snapshot_fresh(queue->snapshot, front->clock_us());
	const struct lc_entry *entry = fresh ? snapshot_find(queue->snapshot, name) : NULL;
	const struct entry_facts *facts = entry ? snapshot_facts(queue->snapshot, entry) : NULL;
	struct named *named;

	if (facts) {
		reply_queued(front, req, queue, name, entry->znode, facts);
		return;
	}
	if (!snapshot_is_name(name) || (fresh && snapshot_excludes(queue->snapshot, name))) {
		reply_err(req, ENOENT);
		return;
	}
	named = lookup_park(front, req, queue, name);
	if (!named)
		return;
	if (entry)
		lookup_listed(named);
	else
		list_queue(named);
}

static void lookup_in_lock(struct frontend *front, struct request *req, struct node *parent,
                           const char *name)
{
	struct lock_file lock_file;
	int r = lock_file_parse(name, &lock_file);

	if (r == -EINVAL) {
		log_line(LC_NOTICE,
		         "%s/%s: not understood after the @: use, for example, "
		         "lock@30s,most=1h,least=5m",
		         parent->lock, name);
		reply_err(req, EINVAL);
	} else if (r == 0) {
		struct node *node = node_get(front->nodes, parent, name, NODE_LOCK_FILE);

		if (!node) {
			reply_err(req, ENOMEM);
			return;
		}
		node->lock_file = lock_file;
		reply_node(front, req, node);
	} else {
		lookup_lock(front, req, parent, name);
	}
}

void lookup_name(fuse_req_t fuse, fuse_ino_t parent_ino, const char *name)
{
	struct request *req = request_of(fuse);
	struct frontend *front = req->front;
	struct node *parent = node_by_ino(front->nodes, parent_ino);
	const struct fixed_file *file = fixed_find(parent->kind, name);

	if (strlen(name) > LC_NAME_MAX) {
		reply_err(req, ENAMETOOLONG);
		return;
	}
	if (file)
		reply_child(front, req, parent, name, file->kind);
	else if (parent->kind == NODE_LOCK)
		lookup_in_lock(front, req, parent, name);
	else if (parent->kind == NODE_ROOT)
		lookup_lock(front, req, parent, name);
	else if (parent->kind == NODE_QUEUE)
		lookup_entry(front, req, parent, name);
	else
		reply_err(req, parent->kind == NODE_ABOUT ? ENOENT : ENOTDIR);
}
