/* SPDX-License-Identifier: MIT
 *
 * facts.c - .zklockfs/status, a line for each fact; and .zklockfs/metrics: facts and what was
 * counted, in the text format of Prometheus, version 0.0.4. Units are base units, counters end in
 * _total. Each series has the mount point as a label: one collector may read the metrics of several
 * mounts.
 */
#include "tree/facts.h"

#include "tree/history.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS_MAX 32

/* ---- one series ---- */

static void begin_family(struct view_page *page, const char *name, const char *type,
                         const char *help)
{
	PRINT(page, "# HELP zklockfs_%s %s\n# TYPE zklockfs_%s %s\n", name, help, name, type);
}

static void print_label(struct view_page *page, const char *name, const char *value)
{
	PRINT(page, "%s=\"", name);
	page_safe(page, value, SAFE_LABEL);
	PRINT(page, "\"");
}

/* Up to its first label. */
static void begin_series(struct view_page *page, const char *name)
{
	PRINT(page, "zklockfs_%s{%s", name, page->mount);
}

static void add_label(struct view_page *page, const char *name, const char *value)
{
	PRINT(page, ",");
	print_label(page, name, value);
}

static void end_series(struct view_page *page, uint64_t value)
{
	PRINT(page, "} %" PRIu64 "\n", value);
}

static void print_series(struct view_page *page, const char *name, const char *label,
                         const char *of, uint64_t value)
{
	begin_series(page, name);
	add_label(page, label, of);
	end_series(page, value);
}

/* 2500 us is 0.0025. */
static const char *format_seconds(char text[SECONDS_MAX], int64_t us)
{
	int len =
		snprintf(text, SECONDS_MAX, "%" PRId64 ".%06d", us / 1000000, (int)(us % 1000000));

	while (text[len - 1] == '0')
		text[--len] = '\0';
	if (text[len - 1] == '.')
		text[--len] = '\0';
	return text;
}

static void end_seconds(struct view_page *page, int64_t us)
{
	char text[SECONDS_MAX];

	PRINT(page, "} %s\n", us < 0 ? "NaN" : format_seconds(text, us));
}

/* ---- families of several ---- */

static void print_info(struct view_page *page, const struct facts *facts)
{
	begin_family(page, "info", "gauge", "Version, host name and server of this mount.");
	begin_series(page, "info");
	add_label(page, "version", ZKLOCKFS_VERSION);
	add_label(page, "host", facts->mount.host);
	add_label(page, "server", facts->engine.server);
	end_series(page, 1);
}

static void print_state(struct view_page *page, const struct lc_status *status)
{
	static const char *const names[] = {"connecting",       "ready",   "suspended", "lost",
	                                    "another_ensemble", "unusable"};
	const char *now = view_state(status);

	begin_family(page, "state", "gauge",
	             "1 for the current state of the session, 0 for the others.");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		print_series(page, "state", "state", names[i], strcmp(names[i], now) == 0);
}

static void print_failures(struct view_page *page, const struct lc_counters *counters)
{
	begin_family(page, "failures_total", "counter",
	             "Requests that were refused or ran out of time, by error code.");
	for (int i = 0; i < LC_FAILURES; i++) {
		int code = lc_failure_codes[i];

		print_series(page, "failures_total", "errno",
		             code ? strerrorname_np(code) : "other", counters->failures[i]);
	}
}

/* `buckets`: one more than bounds. */
static void print_histogram(struct view_page *page, const char *name, const char *help, int count,
                            const int64_t *bounds_us, const unsigned long *buckets, int64_t sum_us)
{
	char bucket[32], bound[SECONDS_MAX];
	unsigned long sum = 0;

	begin_family(page, name, "histogram", help);
	snprintf(bucket, sizeof(bucket), "%s_bucket", name);
	for (int i = 0; i <= count; i++) {
		sum += buckets[i];
		print_series(page, bucket, "le",
		             i < count ? format_seconds(bound, bounds_us[i]) : "+Inf", sum);
	}
	snprintf(bucket, sizeof(bucket), "%s_sum", name);
	begin_series(page, bucket);
	end_seconds(page, sum_us);
	snprintf(bucket, sizeof(bucket), "%s_count", name);
	begin_series(page, bucket);
	end_series(page, sum);
}

/* ---- families of one, and lines ---- */

enum fact_type {
	FACT_COUNTER,
	FACT_GAUGE,
	FACT_CONSTANT, /* `at` is the number */
	FACT_UP,       /* an int; below 0: not shown */
	FACT_TEXT,     /* as a metric whether there is one */
	FACT_US,       /* a line in ms, a metric in seconds; below 0: there is none */
	FACT_SINCE_MS, /* view_time() */
	FACT_AHEAD_MS,
	FACT_SESSION,
	FACT_ID, /* 0: not known */
};

static const struct fact {
	const char *line;   /* its name in status; NULL: it is not there */
	const char *metric; /* its name in metrics; NULL: it is not there */
	const char *label;  /* if it is one of several of that metric, which stand together */
	enum fact_type type;
	size_t at, size; /* in struct facts */
	const char *help;
} facts_table[] = {
#define AT(field) offsetof(struct facts, field), sizeof(((struct facts *)0)->field)
	{"session", NULL, "", FACT_SESSION, AT(engine.session), NULL},
	{"session_timeout", "session_timeout_seconds", "", FACT_US, AT(engine.session_timeout_us),
         "Session timeout that the servers have granted; 0 without a session."},
	{"tick_time", "tick_time_seconds", "", FACT_US, AT(engine.tick_time_us),
         "Tick time of the servers that the lease is computed from."},
	{"tick_time_by", NULL, "", FACT_TEXT, AT(tick_time_by), NULL},
	{"lease_left", "lease_left_seconds", "", FACT_US, AT(engine.lease_left_us),
         "Time for which held locks stay good without new contact with the servers."},
	{"resting", "resting", "", FACT_GAUGE, AT(engine.resting),
         "1 while nobody uses the mount, which then writes no heartbeats and needs no lease."},
	{"server", NULL, "", FACT_TEXT, AT(engine.server), NULL},
	{"server_version", NULL, "", FACT_TEXT, AT(server_version), NULL},
	{"host", NULL, "", FACT_TEXT, AT(mount.host), NULL},
	{"holders", "holders", "", FACT_GAUGE, AT(engine.holders),
         "Requests on this mount that hold their lock now."},
	{"waiters", "waiters", "", FACT_GAUGE, AT(engine.waiters),
         "Requests on this mount that wait for a lock now."},
	{"kept", "kept", "", FACT_GAUGE, AT(kept),
         "Holders that have given back a lock which least= keeps for some more time."},
	{NULL, "losing", "", FACT_GAUGE, AT(engine.losing),
         "Requests that have lost their lock and may still be at work."},
	{"leaving", "leaving", "", FACT_GAUGE, AT(engine.leaving),
         "Requests whose entry is still to be deleted, or whose lost lock's file is open."},
	{NULL, "oldest_hold_seconds", "", FACT_US, AT(oldest_hold_us),
         "Duration of the longest current hold on this mount; 0 without a holder."},
	{NULL, "oldest_wait_seconds", "", FACT_US, AT(oldest_wait_us),
         "Duration of the longest current wait on this mount; 0 without a waiter."},
	{NULL, "entries", "", FACT_GAUGE, AT(engine.entries),
         "Entries of this mount on the servers."},
	{"entry_bytes", "entry_bytes", "", FACT_GAUGE, AT(engine.entry_bytes),
         "Total length of the paths of this mount's entries."},
	{NULL, "entry_bytes_limit", "", FACT_CONSTANT, LC_ENTRY_BYTES_MAX, 0,
         "Limit of entry_bytes plus watch_bytes; beyond it requests are refused."},
	{NULL, "watch_bytes", "", FACT_GAUGE, AT(engine.watch_bytes),
         "Total length of the paths that this mount watches."},
	{NULL, "watch_bytes_limit", "", FACT_CONSTANT, LC_WATCH_BYTES_MAX, 0,
         "Limit of watch_bytes; beyond it requests are refused."},
	{"connections", "connections_total", "", FACT_COUNTER, AT(engine.connections),
         "Connections made to servers."},
	{"sessions", "sessions_total", "", FACT_COUNTER, AT(engine.sessions), "Sessions begun."},
	{"clock_watched_by", NULL, "", FACT_TEXT, AT(clock_watched_by), NULL},
	{"clock_doubts", NULL, "", FACT_COUNTER, AT(engine.counters.clock_doubts), NULL},
	{"open_bytes", "open_bytes", "", FACT_GAUGE, AT(open_bytes),
         "Memory of the daemon for files and directories that users have open."},
	{"no_contact_since", NULL, "", FACT_SINCE_MS, AT(away_since_ms), NULL},
	{"no_contact_why", NULL, "", FACT_TEXT, AT(engine.met), NULL},
	{"ensemble_clock", NULL, "", FACT_AHEAD_MS, AT(ensemble_ahead_ms), NULL},
	{"on_lost", NULL, "", FACT_TEXT, AT(mount.on_lost), NULL},
	{"pid_namespace", NULL, "", FACT_ID, AT(pid_namespace), NULL},
	{"addresses", NULL, "", FACT_TEXT, AT(addresses), NULL},
	{"names_without_address", NULL, "", FACT_TEXT, AT(left_out), NULL},
	{"servers_wrong", NULL, "", FACT_TEXT, AT(wrong_servers), NULL},
	{"servers_tried", NULL, "", FACT_TEXT, AT(tried), NULL},
	{"covered_by", "covered", "", FACT_TEXT, AT(mount.covered),
         "1 while another filesystem hides a part of this mount, 0 otherwise."},
#define COUNTER(field, help) \
	{NULL, #field "_total", "", FACT_COUNTER, AT(engine.counters.field), help},
	LC_COUNTERS(COUNTER)
#undef COUNTER
		{NULL, "stopped_total", "signal=\"SIGTERM\"", FACT_COUNTER, AT(terms),
                 "Processes that on_lost has sent a signal, by signal."},
	{NULL, "stopped_total", "signal=\"SIGKILL\"", FACT_COUNTER, AT(kills), NULL},
	{NULL, "not_stopped_total", "", FACT_COUNTER, AT(spared),
         "Processes that on_lost was to stop, and may not signal."},
	{NULL, "helper_up", "helper=\"guardian\"", FACT_UP, AT(guardian_up),
         "0 for a process of this mount that was killed, and is missing until a restart."},
	{"keeper", "helper_up", "helper=\"keeper\"", FACT_UP, AT(mount.supervisor_up),
         "0 for a process of this mount that was killed, and is missing until a restart."},
#define COUNT(field, metric, label, help) \
	{NULL, metric, label, FACT_COUNTER, AT(counts.field), help},
	COUNTS(COUNT)
#undef COUNT
		{NULL, "helper_restarts_total", "helper=\"look\"", FACT_COUNTER, AT(looks_ended),
                 NULL},
};

#define FACTS (sizeof(facts_table) / sizeof(facts_table[0]))

static const char *fact_text(const struct fact *fact, const struct facts *facts)
{
	const char *const *text = (const void *)((const char *)facts + fact->at);

	return *text ? *text : "";
}

/* Below 0: of a signed type. */
static int64_t fact_number(const struct fact *fact, const struct facts *facts)
{
	const void *at = (const char *)facts + fact->at;

	if (fact->type == FACT_CONSTANT)
		return (int64_t)fact->at;
	if (fact->type == FACT_TEXT)
		return *fact_text(fact, facts) != '\0';
	if (fact->size == sizeof(int64_t))
		return *(const int64_t *)at;
	return fact->type == FACT_UP ? *(const int *)at : (int64_t) * (const unsigned *)at;
}

static void print_fact(struct view_page *page, const struct fact *fact, int64_t number)
{
	begin_series(page, fact->metric);
	if (*fact->label)
		PRINT(page, ",%s", fact->label);
	if (fact->type == FACT_US)
		end_seconds(page, number);
	else
		end_series(page, (uint64_t)number);
}

static void print_facts(struct view_page *page, const struct facts *facts)
{
	const char *family = "";

	for (const struct fact *fact = facts_table; fact < facts_table + FACTS; fact++) {
		int64_t number = fact_number(fact, facts);

		if (!fact->metric || (fact->type == FACT_UP && number < 0))
			continue;
		if (strcmp(fact->metric, family) != 0)
			begin_family(page, fact->metric,
			             fact->type == FACT_COUNTER ? "counter" : "gauge", fact->help);
		family = fact->metric;
		print_fact(page, fact, number);
	}
}

static void print_line(struct view_page *page, const struct fact *fact, const struct facts *facts)
{
	int64_t number = fact_number(fact, facts);
	const char *text = fact->type == FACT_TEXT ? fact_text(fact, facts) : NULL;
	char time[VIEW_TIME_MAX];

	if (fact->type == FACT_SINCE_MS)
		text = view_time(time, number);
	if ((number == 0 && (fact->type == FACT_SESSION || fact->type == FACT_ID)) ||
	    (number < 0 && (fact->type == FACT_US || fact->type == FACT_UP)))
		text = "-";
	if (text)
		PRINT(page, "%s: %s\n", fact->line, *text ? text : "-");
	else
		PRINT(page,
		      fact->type == FACT_SESSION    ? "%s: 0x%" PRIx64 "\n"
		      : fact->type == FACT_US       ? "%s: %" PRId64 "ms\n"
		      : fact->type == FACT_AHEAD_MS ? "%s: %+" PRId64 "ms\n"
		                                    : "%s: %" PRIu64 "\n",
		      fact->line, fact->type == FACT_US ? number / 1000 : number);
}

/* ---- the pages ---- */

/* Character by character, so only once: anybody may read the metrics as often as he likes. */
static int format_mount(const char *mountpoint, struct text *ret_label)
{
	struct view_page page;

	if (!page_begin(&page, ret_label))
		return -ENOMEM;
	print_label(&page, "mount", mountpoint);
	return page_end(&page, ret_label);
}

int view_metrics(const struct facts *facts, struct text *ret_text)
{
	const struct lc_counters *counters = &facts->engine.counters;
	const struct history *history = facts->history;
	struct view_page page;
	struct text label;
	int r = format_mount(facts->mount.mountpoint, &label);

	if (r < 0)
		return r;
	if (page_begin(&page, ret_text)) {
		page.mount = label.data;
		print_info(&page, facts);
		print_state(&page, &facts->engine);
		print_facts(&page, facts);
		print_failures(&page, counters);
		print_histogram(&page, "wait_seconds",
		                "Waiting time of requests that got the lock.", LC_WAIT_BUCKETS,
		                lc_wait_bounds_us, counters->waits, counters->waited_us);
		print_histogram(&page, "hold_seconds", "Duration of holds that have ended.",
		                HISTORY_BUCKETS, history_bounds_us, history->buckets,
		                history->held_us);
		r = page_end(&page, ret_text);
	} else {
		r = -ENOMEM;
	}
	free(label.data);
	return r;
}

const char *view_state(const struct lc_status *status)
{
	if (status->state == LC_CONNECTING && status->elsewhere)
		return "another_ensemble";
	if (status->state == LC_SUSPENDED && status->lease_left_us == 0 && !status->leaseless)
		return "lost";
	return lc_state_name(status->state);
}

int view_status(const struct facts *facts, struct text *ret_text)
{
	bool unguarded = facts->engine.state == LC_READY && facts->guardian_up == 0;
	struct view_page page;

	if (!page_begin(&page, ret_text))
		return -ENOMEM;
	PRINT(&page, "state: %s\n", unguarded ? "unguarded" : view_state(&facts->engine));
	for (const struct fact *fact = facts_table; fact < facts_table + FACTS; fact++)
		if (fact->line)
			print_line(&page, fact, facts);
	return page_end(&page, ret_text);
}

/* ---- .zklockfs/options ---- */

int view_options(const struct facts *facts, struct text *ret_text)
{
	const char *why = facts->mount.why_refused;
	struct view_page page;

	if (!page_begin(&page, ret_text))
		return -ENOMEM;
	PRINT(&page,
	      "%ssession_timeout_in_force: %" PRId64
	      "ms\nreloads: %lu\nadoptions: %lu\nrefused: %u\nwhy: %s\n",
	      facts->mount.options, facts->engine.session_timeout_us / 1000, facts->counts.reloads,
	      facts->counts.adoptions, facts->mount.refused, why ? why : "-");
	return page_end(&page, ret_text);
}
