/* SPDX-License-Identifier: MIT */
#include "tree/fixed.h"

#include "tree/history.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define READ (S_IFREG | 0444)

const struct fixed_file fixed_files[] = {
	{NODE_ROOT, ".zklockfs", NODE_ABOUT, S_IFDIR | 0555, 0, NULL},
	/* Size 0, as in /proc: who reads as much as is shown would miss the end of a long one.
	 * And what is read depends on the user, while a mapping and splice(2) show memory that all
	 * share: the kernel fills none beyond the size. */
	{NODE_ABOUT, "history", NODE_HISTORY, READ, 0, history_view},
	{NODE_ABOUT, "locks", NODE_LOCKS, READ, 0, NULL},
	{NODE_ABOUT, "metrics", NODE_METRICS, READ, FACTS_METRICS_SIZE, view_metrics},
	{NODE_ABOUT, "options", NODE_OPTIONS, READ | 0200, VIEW_SIZE, view_options},
	{NODE_ABOUT, "status", NODE_STATUS, READ, VIEW_SIZE, view_status},
	{NODE_LOCK, "holder", NODE_HOLDER, READ, VIEW_SIZE, NULL},
	/* Nobody makes or removes a file there. Who may write could mount something over it. */
	{NODE_LOCK, "queue", NODE_QUEUE, S_IFDIR | 0555, 0, NULL},
	{NODE_LOCK, "slots", NODE_SLOTS, READ | 0200, VIEW_SIZE, NULL},
	/* with the mode of lock files */
	{NODE_LOCK, "value", NODE_VALUE, S_IFREG, LC_VALUE_MAX, NULL},
	{.name = NULL},
};

const struct fixed_file *fixed_find(enum node_kind in, const char *name)
{
	for (const struct fixed_file *file = fixed_files; file->name; file++)
		if (file->in == in && strcmp(name, file->name) == 0)
			return file;
	return NULL;
}

const struct fixed_file *fixed_of(enum node_kind kind)
{
	for (const struct fixed_file *file = fixed_files; file->name; file++)
		if (file->kind == kind)
			return file;
	return NULL;
}

const char *fixed_reserved(const char *name)
{
	struct lock_file lock_file;

	if (lock_file_parse(name, &lock_file) != -ENOENT && strchr(name, '@'))
		return "this would be a lock file with options";
	if (lock_file_parse(name, &lock_file) != -ENOENT || fixed_find(NODE_LOCK, name))
		return "this is the name of a file in every lock";
	return NULL;
}
