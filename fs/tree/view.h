/* SPDX-License-Identifier: MIT
 *
 * view.h - what the text files read as. Pure: from what was learnt to text.
 *
 * Nothing that anybody wrote can make a second line or a second field: control
 * characters are '?', and the reason, the only free text, stands last. Unknown values are '-'.
 * Times are RFC 3339 in UTC. Users are numbers: names would need a look-up that may wait.
 */
#ifndef FS_VIEW_H
#define FS_VIEW_H

#include "lockcore.h"

#include <stdbool.h>

struct text {
	char *data;
	size_t len;
};

/* The size of text files in stat(2): more than they ever have, as in sysfs. With 0, as in /proc,
 * sendfile(2) and splice(2) give nothing here, and so do busybox cat and cp, Python's
 * shutil.copyfile, Java's Files.copy: a `holder` without a line, and no error. With more than
 * there is only archivers complain (tar, cpio, rsync), aloud. */
#define VIEW_SIZE 16384
/* Of .zklockfs/metrics, with VIEW_LONGEST_MAX locks of long names. */
#define VIEW_METRICS_SIZE (256 * 1024)

/* All: 0 or -ENOMEM; the caller frees ret_text->data. */
/* `renewed_ago_ms`: since when its mount has not renewed its session; -1: not known. */
int view_entry(const struct lc_entry_info *info, int64_t renewed_ago_ms, struct text *ret_text);
int view_holders(const struct lc_entry_info *infos, size_t count, struct text *ret_text);

struct history;

/* A lock that is held on this mount. */
struct view_held {
	const char *lock;
	int64_t held_us;
};
#define VIEW_LONGEST_MAX 100

/* Facts of the mount that the engine does not know. */
struct view_mount {
	const char *host, *mountpoint;
	int64_t away_since_ms;        /* wall clock: since when there is no contact; -1: there is */
	const char *addresses;        /* of the servers: those in use */
	const char *covered;          /* by which filesystem where; NULL or "": by none */
	const char *left_out;         /* names without an address, and why; "": none */
	const char *tried;            /* what each server does, without contact; NULL: not known */
	int64_t kernel_limit_s;       /* 0: none */
	const char *clock_watched_by; /* pause.h */
	int64_t ensemble_ahead_ms;    /* its wall clock, before this host's */
	const char *on_lost;
	uint64_t pid_namespace;                   /* in which pids are told; 0: not known */
	const char *tick_time_by, *wrong_servers; /* settings.h */
	const char *server_version;               /*   the same; "": not known */
	const char *safe_version; /*   it can forget writes: this one cannot; or NULL */
	unsigned long reloads, adoptions;
	size_t open_bytes; /* what users have open: budget.h */
	const struct history *history;
	uid_t reader;                           /* who has opened the file */
	int64_t oldest_hold_us, oldest_wait_us; /* 0: none */
	unsigned kept;                          /* given back, but before their least time */
	const struct view_held *longest;        /* for the metrics, each lock once */
	size_t longest_count;
	/* Processes that were sent SIGTERM, SIGKILL, and that could not be signalled: on_lost. */
	unsigned long terms, kills, spared;
	/* Processes beside the daemon: */
	bool guardian, has_guardian, keeper, has_keeper; /* there is to be one; there is */
	unsigned long log_ended, looks_ended; /* children that others have killed; new ones came */
	unsigned long lines_not_written;      /* of the log */
};

/* The text of a file of .zklockfs. */
typedef int view_fn(const struct lc_status *status, const struct view_mount *mount,
                    struct text *ret_text);
view_fn view_status, view_metrics;

#define VIEW_TIME_MAX 40
/* RFC 3339 in UTC; "-" below 0. */
const char *view_time(char buffer[VIEW_TIME_MAX], int64_t ms);
/* The text that its taker wrote, or a note on its client; "" for nothing. */
const char *view_reason(const struct lc_entry_info *info);

/* In one word. A mount that is suspended for longer than its lease is "lost", one that meets only
 * servers of another ensemble is at "another_ensemble". */
const char *view_state(const struct lc_status *status);

#endif
