/* SPDX-License-Identifier: MIT
 *
 * facts.h - what is told of the mount, and does not change what it does; and the texts of
 * .zklockfs/status and metrics, which are made from one table of it. Pure.
 */
#ifndef FS_FACTS_H
#define FS_FACTS_H

#include "host/counts.h"
#include "tree/view.h"

/* The size of .zklockfs/metrics in stat(2). */
#define FACTS_METRICS_SIZE (256 * 1024)

/* Known from the start on, or when it changes. */
struct mount_facts {
	const char *host, *mountpoint;
	const struct servers *servers;
	const struct settings *settings; /* of the servers */
	const char *covered;     /* by which filesystem where: covers.h; NULL or "": by none */
	const char *on_lost;     /* guardian_on_lost_name() */
	int supervisor_up;       /* 1; 0: it is missing; -1: there is to be none */
	const char *options;     /* options_text() */
	unsigned refused;        /* so many reloads, since this program has taken over, */
	const char *why_refused; /*   and why the last one; NULL */
};

/* At the moment when a file is opened. */
struct facts {
	struct mount_facts mount;
	struct lc_status engine;
	struct counts counts;
	unsigned long terms, kills, spared, looks_ended; /* guardian_counts() */
	int guardian_up;                                 /* as supervisor_up */
	const char *addresses;                           /* of the servers: those in use */
	const char *left_out;         /* names without an address, and why; "": none */
	const char *tried;            /* what each server does, without contact; NULL: not known */
	const char *clock_watched_by; /* pause.h */
	const char *tick_time_by, *wrong_servers, *server_version; /* settings.h */
	int64_t away_since_ms;     /* wall clock: since when there is no contact; -1: there is */
	int64_t ensemble_ahead_ms; /* its wall clock, before this host's */
	uint64_t pid_namespace;    /* in which pids are told; 0: not known */
	size_t open_bytes;         /* what users have open: budget.h */
	const struct history *history;
	uid_t reader;                           /* who has opened the file */
	int64_t oldest_hold_us, oldest_wait_us; /* 0: none */
	unsigned kept;                          /* given back, but before their least time */
};

/* The text of a file of .zklockfs. 0 or -ENOMEM; the caller frees ret_text->data. */
typedef int view_fn(const struct facts *facts, struct text *ret_text);
view_fn view_status, view_metrics, view_options;

/* In one word. A mount that is suspended for longer than its lease is "lost", one that meets only
 * servers of another ensemble is at "another_ensemble". */
const char *view_state(const struct lc_status *status);

#endif
