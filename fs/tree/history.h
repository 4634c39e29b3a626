/* SPDX-License-Identifier: MIT
 *
 * history.h - the holds of this mount that have ended, the last of them, for
 * .zklockfs/history; and how long all of them were, for .zklockfs/metrics.
 */
#ifndef FS_HISTORY_H
#define FS_HISTORY_H

#include "pure/per_user.h"
#include "store/record_kinds.h"
#include "tree/facts.h"

/* So many are remembered, or fewer if they take more bytes than this. Those of the user with the
 * most bytes are forgotten first; so many of root's do not count. */
#define HISTORY_HOLDS 1000
#define HISTORY_BYTES (1024 * 1024)
#define HISTORY_ROOT_BYTES (64 * 1024)

/* Bounds of the histogram of hold times; the last bucket is for all above. */
#define HISTORY_BUCKETS 13
extern const int64_t history_bounds_us[HISTORY_BUCKETS];

enum history_end {
	HISTORY_CLOSED, /* given back: closed, unlocked */
	HISTORY_EXITED, /* its process has ended, or was killed */
	HISTORY_LOST,
	HISTORY_EVICTED,
	HISTORY_STOPPED, /* on_lost has stopped its processes, before the lock was lost */
};

struct history_hold {
	enum history_end end;
	enum lc_mode mode;
	pid_t pid; /* 0: not visible */
	uid_t uid;
	char command[LC_COMMAND_MAX + 1];
	int64_t since_ms, ended_ms; /* wall clock */
	int64_t waited_ms, held_ms;
	int64_t token;                  /* 0: not known */
	const char *lock, *by, *reason; /* `by`: who has evicted it, or why it was lost or
	                                 * stopped; or "" */
};

struct history {
	struct records *records;
	struct history_item *first; /* the oldest */
	struct per_user *users;     /* who have any */
	unsigned count;
	size_t bytes;
	unsigned long buckets[HISTORY_BUCKETS + 1];
	int64_t held_us; /* the sum of all */
};

/* A copy of it; without the memory for it, it is only counted. */
void history_add(struct history *history, const struct history_hold *hold, int64_t held_us);
void history_finish(struct history *history);
const char *history_end_name(enum history_end end);
/* The part that the reader may see: the own lines, and all of them for root. */
view_fn history_view;

/* One hold that has ended; and what is counted of all. */
record_save_load_fn history_record_save_load; /* of struct history */
void history_counts_save_load(struct codec *codec, struct history *history);

#endif
