/* SPDX-License-Identifier: MIT */
#include "files/sweep.h"

#include "files/attributes.h"
#include "tree/fixed.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Names that are asked about together: the engine asks about 24 of root's at a time, and 16 of
 * another user's. And those of all users. */
#define SWEEP_MAX 48
#define SWEEP_ALL_MAX 96
/* The kernel may know so many names in between. */
#define SWEEP_SKIP 1024

struct swept {
	struct frontend *front;
	struct node *directory;
	struct lc_call *call;
	int64_t asked_us;
	struct swept *prev, *next; /* in lists->swept */
	char name[];
};

static void drop(struct lists *lists, struct swept *swept)
{
	DL_DELETE(lists->swept, swept);
	lists->swept_count--;
	free(swept);
}

void sweep_finish(struct lists *lists)
{
	while (lists->swept)
		drop(lists, lists->swept);
}

/* What was found since, or removed here, is newer. */
static bool is_news(const struct swept *swept)
{
	const struct frontend *front = swept->front;
	const struct node *node = node_child(front->nodes, swept->directory, swept->name);

	return swept->asked_us > front->lists->forgot_us &&
	       !(node && node->info_us >= swept->asked_us);
}

static void learn(const struct swept *swept, const struct lc_lock_info *info)
{
	struct frontend *front = swept->front;
	struct node *node = attributes_node(front, swept->directory, swept->name, info->czxid);

	if (!node)
		return;
	attributes_learn(front, node, info);
	node->info_us = swept->asked_us;
	node->swept = true;
	node_unref(front->nodes, node);
}

static void found(void *ctx, int err, const struct lc_lock_info *info)
{
	struct swept *swept = ctx;
	struct frontend *front = swept->front;
	struct node *directory = swept->directory;

	if (err == 0 && is_news(swept))
		learn(swept, info);
	drop(front->lists, swept);
	node_unref(front->nodes, directory);
}

/* The name is that of no lock, or what is known of the lock is still good. */
static bool is_needless(const struct frontend *front, const struct node *directory,
                        const char *name)
{
	const struct node *node = node_child(front->nodes, directory, name);
	struct lc_lock_info info;

	return fixed_find(directory->kind, name) || (node && node->known &&
	                                             (attributes_timeout_us(front, node) > 0 ||
	                                              lc_recall(front->lc, node->lock, &info)));
}

/* False: no memory. */
static bool ask_ahead(struct frontend *front, struct node *directory, const char *name, uid_t uid)
{
	size_t size = strlen(name) + 1;
	struct swept *swept = calloc(1, sizeof(*swept) + size);
	char *path = node_path_below(directory->lock, name);
	bool asked = false;

	if (swept && path) {
		*swept = (struct swept){
			.front = front, .directory = directory, .asked_us = front->clock_us()};
		memcpy(swept->name, name, size);
		asked = lc_stat(front->lc, path, uid, found, swept, &swept->call) == 0;
	}
	free(path);
	if (!asked) {
		free(swept);
		return false;
	}
	node_ref(directory);
	DL_APPEND(front->lists->swept, swept);
	front->lists->swept_count++;
	return true;
}

/* The listing in which that name is the next one, or NULL. */
static struct dir_list *find_list(struct lists *lists, uint64_t ino, const char *name)
{
	for (int i = 0; i < DIR_LISTS_MAX; i++) {
		struct dir_list *list = &lists->directories[i];
		size_t at = list->swept;

		for (int n = 0; list->ino == ino && n < SWEEP_SKIP && at < list->len; n++) {
			const char *shown = list->data + at + 1;

			at += 1 + strlen(shown) + 1;
			if (strcmp(shown, name) != 0)
				continue;
			list->swept = at;
			return list;
		}
	}
	return NULL;
}

bool sweep_ask(struct frontend *front, struct node *directory, const char *name, uid_t uid)
{
	struct lists *lists = front->lists;
	struct dir_list *list = find_list(lists, directory->ino, name);
	unsigned asked = 0;

	if (!list)
		return false;
	while (asked < list->ahead && lists->swept_count < SWEEP_ALL_MAX &&
	       list->swept < list->len) {
		const char *shown = list->data + list->swept + 1;

		if (shown[-1] == 'd' && !is_needless(front, directory, shown) &&
		    !ask_ahead(front, directory, shown, uid))
			break;
		list->swept += 1 + strlen(shown) + 1;
		asked++;
	}
	list->ahead = list->ahead < SWEEP_MAX / 2 ? 2 * list->ahead + 1 : SWEEP_MAX - 1;
	return true;
}

bool sweep_knows(const struct frontend *front, const struct node *lock)
{
	return lock->swept && attributes_timeout_us(front, lock) > 0;
}
