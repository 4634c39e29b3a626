/* SPDX-License-Identifier: MIT
 *
 * metrics.c - .zklockfs/metrics: the status and what was counted, in the text format of
 * Prometheus, version 0.0.4. Base units, counters that end in _total.
 */
#include "view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS_MAX 32

/* Where the text goes; one that cannot grow says so here, not by ferror(). */
struct page {
	FILE *file;
	bool ok;
};

#define PRINT(page, ...) ((page)->ok &= fprintf((page)->file, __VA_ARGS__) >= 0)

static void begin(struct page *page, const char *name, const char *type, const char *help)
{
	PRINT(page, "# HELP zklockfs_%s %s\n# TYPE zklockfs_%s %s\n", name, help, name, type);
}

static void print_number(struct page *page, const char *name, const char *type, uint64_t value,
                         const char *help)
{
	begin(page, name, type, help);
	PRINT(page, "zklockfs_%s %" PRIu64 "\n", name, value);
}

static void gauge(struct page *page, const char *name, uint64_t value, const char *help)
{
	print_number(page, name, "gauge", value, help);
}

static void counter(struct page *page, const char *name, uint64_t value, const char *help)
{
	print_number(page, name, "counter", value, help);
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

static void seconds(struct page *page, const char *name, int64_t us, const char *help)
{
	char text[SECONDS_MAX];

	begin(page, name, "gauge", help);
	PRINT(page, "zklockfs_%s %s\n", name, format_seconds(text, us));
}

static void print_label(struct page *page, const char *name, const char *value)
{
	PRINT(page, "%s=\"", name);
	for (; *value; value++)
		PRINT(page,
		      *value == '\n'                    ? "\\n"
		      : *value == '"' || *value == '\\' ? "\\%c"
		                                        : "%c",
		      *value);
	PRINT(page, "\"");
}

static void print_info(struct page *page, const struct lc_status *status, const char *host)
{
	begin(page, "info", "gauge", "What this mount is.");
	PRINT(page, "zklockfs_info{");
	print_label(page, "version", ZKLOCKFS_VERSION);
	PRINT(page, ",");
	print_label(page, "host", host);
	PRINT(page, ",");
	print_label(page, "server", status->server);
	PRINT(page, "} 1\n");
}

static void print_state(struct page *page, const struct lc_status *status)
{
	static const char *const names[] = {"connecting", "ready", "suspended", "lost", "unusable"};
	const char *now = view_state(status);

	begin(page, "state", "gauge", "1 for the state of the session, 0 for the others.");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		PRINT(page, "zklockfs_state{state=\"%s\"} %d\n", names[i],
		      strcmp(names[i], now) == 0);
}

static void print_failures(struct page *page, const struct lc_counters *counters)
{
	begin(page, "failures_total", "counter", "Takes that were refused or gave up, by errno.");
	for (int i = 0; i < LC_FAILURES; i++) {
		int code = lc_failure_codes[i];

		PRINT(page, "zklockfs_failures_total{errno=\"%s\"} %lu\n",
		      code ? strerrorname_np(code) : "other", counters->failures[i]);
	}
}

static void print_waits(struct page *page, const struct lc_counters *counters)
{
	unsigned long sum = 0;
	char text[SECONDS_MAX];

	begin(page, "wait_seconds", "histogram", "How long those waited that got the lock.");
	for (int i = 0; i < LC_WAIT_BUCKETS; i++) {
		sum += counters->waits[i];
		PRINT(page, "zklockfs_wait_seconds_bucket{le=\"%s\"} %lu\n",
		      format_seconds(text, lc_wait_bounds_us[i]), sum);
	}
	sum += counters->waits[LC_WAIT_BUCKETS];
	PRINT(page, "zklockfs_wait_seconds_bucket{le=\"+Inf\"} %lu\n", sum);
	PRINT(page, "zklockfs_wait_seconds_sum %s\nzklockfs_wait_seconds_count %lu\n",
	      format_seconds(text, counters->waited_us), sum);
}

static void print_all(struct page *page, const struct lc_status *status,
                      const struct view_mount *mount)
{
	const struct lc_counters *counters = &status->counters;

	print_info(page, status, mount->host);
	print_state(page, status);
	seconds(page, "lease_left_seconds", status->lease_left_us,
	        "How long held locks are good without new contact.");
	seconds(page, "session_timeout_seconds", status->session_timeout_us,
	        "Granted by the ensemble; 0 without a session.");
	seconds(page, "tick_time_seconds", status->tick_time_us,
	        "Of the servers, as given by the option.");
	seconds(page, "kernel_request_timeout_seconds", mount->kernel_limit_s * 1000000,
	        "fs.fuse.max_request_timeout; 0 for none.");
	gauge(page, "holders", status->holders, "Takers of this mount that hold their lock.");
	gauge(page, "waiters", status->waiters, "Takers of this mount that wait.");
	gauge(page, "losing", status->losing,
	      "Takers that have lost their lock and may still be at work.");
	gauge(page, "leaving", status->leaving, "Entries that are still to be deleted.");
	gauge(page, "entries", status->entries, "Entries of this mount in the ensemble.");
	gauge(page, "entry_bytes", status->entry_bytes, "Length of their paths.");
	gauge(page, "open_bytes", mount->open_bytes, "Memory for what users have open.");
	counter(page, "sessions_total", status->sessions, "ZooKeeper sessions so far.");
	counter(page, "connections_total", status->connections, "Connections to servers so far.");
	counter(page, "requests_total", counters->requests,
	        "Requests to the ensemble; a transaction is one.");
	counter(page, "takes_total", counters->takes, "Takers that came.");
	counter(page, "grants_total", counters->grants, "Takers that got their lock.");
	counter(page, "hand_offs_total", counters->hand_offs,
	        "Grants by a holder of this mount, without asking the ensemble.");
	counter(page, "losses_total", counters->losses, "Takers that lost the lock they held.");
	counter(page, "evictions_total", counters->evictions, "Entries that somebody took away.");
	counter(page, "abandoned_total", counters->abandoned,
	        "Takers that went before they got the lock: by a signal, or killed.");
	counter(page, "clock_doubts_total", counters->doubts,
	        "How often the clock may have stood still, so that held locks were in doubt.");
	print_failures(page, counters);
	print_waits(page, counters);
}

int view_metrics(const struct lc_status *status, const struct view_mount *mount,
                 struct text *ret_text)
{
	struct page page = {.file = open_memstream(&ret_text->data, &ret_text->len), .ok = true};

	if (!page.file)
		return -ENOMEM;
	print_all(&page, status, mount);
	/* The last allocation is fclose()'s, which leaves NULL and says 0. */
	if (fclose(page.file) == 0 && page.ok && ret_text->data)
		return 0;
	free(ret_text->data);
	return -ENOMEM;
}
