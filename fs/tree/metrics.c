/* SPDX-License-Identifier: MIT
 *
 * metrics.c - .zklockfs/metrics: the status and what was counted, in the text format of
 * Prometheus, version 0.0.4. Base units, counters that end in _total. Each series has the mount
 * point as a label: one collector may read the metrics of several mounts.
 */
#include "tree/view.h"

#include "tree/history.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS_MAX 32

/* Where the text goes; one that cannot grow says so here, not by ferror(). */
struct metrics_page {
	FILE *file;
	bool ok;
	const char *mount; /* the label of all series, as it is printed */
};

#define PRINT(page, ...) ((page)->ok &= fprintf((page)->file, __VA_ARGS__) >= 0)

/* ---- one series ---- */

static void begin_family(struct metrics_page *page, const char *name, const char *type,
                         const char *help)
{
	PRINT(page, "# HELP zklockfs_%s %s\n# TYPE zklockfs_%s %s\n", name, help, name, type);
}

static void print_label(struct metrics_page *page, const char *name, const char *value)
{
	size_t left = strlen(value);

	PRINT(page, "%s=\"", name);
	while (*value) {
		size_t length = lc_text_shown(value, left);

		if (length == 0)
			length = lc_text_harmful(value, left);
		if (length == 0)
			PRINT(page, "?");
		else if (*value == '\n')
			PRINT(page, "\\n");
		else if (*value == '"' || *value == '\\')
			PRINT(page, "\\%c", *value);
		else
			PRINT(page, "%.*s", (int)length, value);
		length += length == 0;
		value += length;
		left -= length;
	}
	PRINT(page, "\"");
}

/* Up to its first label. */
static void begin_series(struct metrics_page *page, const char *name)
{
	PRINT(page, "zklockfs_%s{%s", name, page->mount);
}

static void add_label(struct metrics_page *page, const char *name, const char *value)
{
	PRINT(page, ",");
	print_label(page, name, value);
}

static void end_series(struct metrics_page *page, uint64_t value)
{
	PRINT(page, "} %" PRIu64 "\n", value);
}

static void print_series(struct metrics_page *page, const char *name, const char *label,
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

static void end_seconds(struct metrics_page *page, int64_t us)
{
	char text[SECONDS_MAX];

	PRINT(page, "} %s\n", format_seconds(text, us));
}

/* ---- families of one ---- */

static void print_number(struct metrics_page *page, const char *name, const char *type,
                         uint64_t value, const char *help)
{
	begin_family(page, name, type, help);
	begin_series(page, name);
	end_series(page, value);
}

static void gauge(struct metrics_page *page, const char *name, uint64_t value, const char *help)
{
	print_number(page, name, "gauge", value, help);
}

static void counter(struct metrics_page *page, const char *name, uint64_t value, const char *help)
{
	print_number(page, name, "counter", value, help);
}

static void seconds(struct metrics_page *page, const char *name, int64_t us, const char *help)
{
	begin_family(page, name, "gauge", help);
	begin_series(page, name);
	end_seconds(page, us);
}

/* ---- families of several ---- */

static void print_info(struct metrics_page *page, const struct lc_status *status, const char *host)
{
	begin_family(page, "info", "gauge", "Version, host name and server of this mount.");
	begin_series(page, "info");
	add_label(page, "version", ZKLOCKFS_VERSION);
	add_label(page, "host", host);
	add_label(page, "server", status->server);
	end_series(page, 1);
}

static void print_state(struct metrics_page *page, const struct lc_status *status)
{
	static const char *const names[] = {"connecting",       "ready",   "suspended", "lost",
	                                    "another_ensemble", "unusable"};
	const char *now = view_state(status);

	begin_family(page, "state", "gauge",
	             "1 for the current state of the session, 0 for the others.");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		print_series(page, "state", "state", names[i], strcmp(names[i], now) == 0);
}

static void print_failures(struct metrics_page *page, const struct lc_counters *counters)
{
	begin_family(page, "failures_total", "counter",
	             "Takers that were refused or ran out of time, by error code.");
	for (int i = 0; i < LC_FAILURES; i++) {
		int code = lc_failure_codes[i];

		print_series(page, "failures_total", "errno",
		             code ? strerrorname_np(code) : "other", counters->failures[i]);
	}
}

/* `buckets`: one more than bounds. */
static void print_histogram(struct metrics_page *page, const char *name, const char *help,
                            int count, const int64_t *bounds_us, const unsigned long *buckets,
                            int64_t sum_us)
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

static void print_longest(struct metrics_page *page, const struct view_mount *mount)
{
	if (mount->longest_count == 0)
		return;
	begin_family(page, "lock_held_seconds", "gauge",
	             "Duration of the current hold, for the locks held longest on this mount.");
	for (size_t i = 0; i < mount->longest_count; i++) {
		begin_series(page, "lock_held_seconds");
		add_label(page, "lock", mount->longest[i].lock);
		end_seconds(page, mount->longest[i].held_us);
	}
}

/* ---- the page ---- */

static void print_session(struct metrics_page *page, const struct lc_status *status,
                          const struct view_mount *mount)
{
	print_info(page, status, mount->host);
	print_state(page, status);
	seconds(page, "lease_left_seconds", status->lease_left_us,
	        "Time for which held locks stay good without new contact with the servers.");
	seconds(page, "session_timeout_seconds", status->session_timeout_us,
	        "Session timeout that the servers have granted; 0 without a session.");
	seconds(page, "tick_time_seconds", status->tick_time_us,
	        "Tick time of the servers that the lease is computed from.");
	seconds(page, "kernel_request_timeout_seconds", mount->kernel_limit_s * 1000000,
	        "Longest time that the kernel lets a request wait; 0 for no limit.");
	counter(page, "sessions_total", status->sessions, "Sessions begun.");
	counter(page, "connections_total", status->connections, "Connections made to servers.");
	counter(page, "reloads_total", mount->reloads,
	        "Reloads: another program took over this mount without a restart.");
	counter(page, "adoptions_total", mount->adoptions,
	        "Crashes of the daemon after which this mount went on.");
}

static void print_now(struct metrics_page *page, const struct lc_status *status,
                      const struct view_mount *mount)
{
	gauge(page, "holders", status->holders, "Takers on this mount that hold their lock now.");
	gauge(page, "waiters", status->waiters, "Takers on this mount that wait for a lock now.");
	gauge(page, "kept", mount->kept,
	      "Holders that have given back a lock which least= keeps for some more time.");
	seconds(page, "oldest_hold_seconds", mount->oldest_hold_us,
	        "Duration of the longest current hold on this mount; 0 without a holder.");
	seconds(page, "oldest_wait_seconds", mount->oldest_wait_us,
	        "Duration of the longest current wait on this mount; 0 without a waiter.");
	print_longest(page, mount);
	gauge(page, "losing", status->losing,
	      "Takers that have lost their lock and may still be at work.");
	gauge(page, "leaving", status->leaving,
	      "Takers whose entry is still to be deleted, or whose lost lock's file is open.");
	gauge(page, "entries", status->entries, "Entries of this mount on the servers.");
	gauge(page, "entry_bytes", status->entry_bytes,
	      "Total length of the paths of this mount's entries.");
	gauge(page, "entry_bytes_limit", LC_ENTRY_BYTES_MAX,
	      "Limit of entry_bytes plus watch_bytes; beyond it takers are refused.");
	gauge(page, "watch_bytes", status->watch_bytes,
	      "Total length of the paths that this mount watches.");
	gauge(page, "watch_bytes_limit", LC_WATCH_BYTES_MAX,
	      "Limit of watch_bytes; beyond it takers are refused.");
	gauge(page, "open_bytes", mount->open_bytes,
	      "Memory of the daemon for files and directories that users have open.");
}

static void print_counts(struct metrics_page *page, const struct lc_counters *counters,
                         const struct history *history)
{
#define PRINT_COUNTER(field, help) counter(page, #field "_total", counters->field, help);
	LC_COUNTERS(PRINT_COUNTER)
	print_failures(page, counters);
	print_histogram(page, "wait_seconds", "Waiting time of takers that got the lock.",
	                LC_WAIT_BUCKETS, lc_wait_bounds_us, counters->waits, counters->waited_us);
	print_histogram(page, "hold_seconds", "Duration of holds that have ended.", HISTORY_BUCKETS,
	                history_bounds_us, history->buckets, history->held_us);
}

/* on_lost, and the processes beside the daemon. */
static void print_processes(struct metrics_page *page, const struct view_mount *mount)
{
	begin_family(page, "stopped_total", "counter",
	             "Processes that on_lost has sent a signal, by signal.");
	print_series(page, "stopped_total", "signal", "SIGTERM", mount->terms);
	print_series(page, "stopped_total", "signal", "SIGKILL", mount->kills);
	counter(page, "not_stopped_total", mount->spared,
	        "Processes that on_lost was to stop, and may not signal.");
	begin_family(
		page, "helper_up", "gauge",
		"0 for a process of this mount that was killed, and is missing until a restart.");
	if (mount->guardian)
		print_series(page, "helper_up", "helper", "guardian", mount->has_guardian);
	if (mount->keeper)
		print_series(page, "helper_up", "helper", "keeper", mount->has_keeper);
	begin_family(page, "helper_restarts_total", "counter",
	             "Processes of this mount that were killed, and started again.");
	print_series(page, "helper_restarts_total", "helper", "log", mount->log_ended);
	print_series(page, "helper_restarts_total", "helper", "look", mount->looks_ended);
	gauge(page, "covered", mount->covered && *mount->covered,
	      "1 while another filesystem hides a part of this mount, 0 otherwise.");
	counter(page, "log_lines_not_written_total", mount->lines_not_written,
	        "Lines that the log had no room for.");
}

static bool begin_page(struct metrics_page *page, struct text *ret_text)
{
	*page = (struct metrics_page){
		.file = open_memstream(&ret_text->data, &ret_text->len),
		.ok = true,
	};
	return page->file;
}

static int end_page(struct metrics_page *page, struct text *ret_text)
{
	/* The last allocation is fclose()'s, which leaves NULL and says 0. */
	if (fclose(page->file) == 0 && page->ok && ret_text->data)
		return 0;
	free(ret_text->data);
	return -ENOMEM;
}

/* Character by character, so only once: anybody may read the metrics as often as he likes. */
static int format_mount(const struct view_mount *mount, struct text *ret_label)
{
	struct metrics_page page;

	if (!begin_page(&page, ret_label))
		return -ENOMEM;
	print_label(&page, "mount", mount->mountpoint);
	return end_page(&page, ret_label);
}

int view_metrics(const struct lc_status *status, const struct view_mount *mount,
                 struct text *ret_text)
{
	struct metrics_page page;
	struct text label;
	int r = format_mount(mount, &label);

	if (r < 0)
		return r;
	if (begin_page(&page, ret_text)) {
		page.mount = label.data;
		print_session(&page, status, mount);
		print_now(&page, status, mount);
		print_counts(&page, &status->counters, mount->history);
		print_processes(&page, mount);
		r = end_page(&page, ret_text);
	} else {
		r = -ENOMEM;
	}
	free(label.data);
	return r;
}
