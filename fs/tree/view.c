/* SPDX-License-Identifier: MIT */
#include "tree/view.h"

#include "tree/snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *view_time(char buffer[VIEW_TIME_MAX], int64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;
	size_t n;

	if (ms < 0 || !gmtime_r(&seconds, &tm))
		return "-";
	n = strftime(buffer, VIEW_TIME_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(buffer + n, VIEW_TIME_MAX - n, ".%03dZ", (int)(ms % 1000));
	return buffer;
}

static const char *format_number(char buffer[VIEW_TIME_MAX], int64_t number, int64_t none)
{
	if (number == none)
		return "-";
	snprintf(buffer, VIEW_TIME_MAX, "%" PRId64, number);
	return buffer;
}

static const char *or_dash(const char *text)
{
	return text && *text ? text : "-";
}

/* As one word, so that it makes no other field. */
static const char *format_word(char buffer[LC_COMMAND_MAX + 1], const char *text)
{
	size_t len = strlen(text), n = 0;

	for (size_t at = 0, blank; at<len; at += blank> 0 ? blank : 1) {
		blank = lc_text_blank(text + at, len - at);
		buffer[n++] = (char)(blank > 0 ? '_' : text[at]);
	}
	buffer[n] = '\0';
	return or_dash(buffer);
}

const char *view_reason(const struct lc_entry_info *info)
{
	if (info->entry.incompatible)
		return "its client does not wait for zklockfs, so zklockfs does not take this lock";
	return info->entry.of_mount ? info->reason : "";
}

/* A stream in memory that cannot grow says so here, not by ferror(). */
#define PRINT(...) (ok &= fprintf(__VA_ARGS__) >= 0)

/* A node's name as others may have made it. */
static bool print_safe(FILE *file, const char *text)
{
	bool ok = true;

	for (size_t left = strlen(text); left > 0;) {
		size_t size = lc_text_shown(text, left);

		ok &= size > 0 ? fwrite(text, 1, size, file) == size : fputc('?', file) != EOF;
		text += size > 0 ? size : 1;
		left -= size > 0 ? size : 1;
	}
	return ok;
}

/* The last allocation is fclose()'s, which leaves NULL and says 0. */
static int finish(FILE *file, struct text *text, bool ok)
{
	if (fclose(file) == 0 && ok && text->data)
		return 0;
	free(text->data);
	return -ENOMEM;
}

int view_entry(const struct lc_entry_info *info, int64_t renewed_ago_ms, struct text *ret_text)
{
	char queued[VIEW_TIME_MAX], held[VIEW_TIME_MAX], pid[VIEW_TIME_MAX], uid[VIEW_TIME_MAX];
	const struct lc_entry *entry = &info->entry;
	FILE *file = open_memstream(&ret_text->data, &ret_text->len);
	bool ok = true;

	if (!file)
		return -ENOMEM;
	PRINT(file,
	      "mode: %s\nstate: %s\nhost: %s\npid: %s\nuid: %s\ncommand: %s\nqueued_since: %s\n"
	      "held_since: %s\ntoken: %" PRId64 "\nsession: 0x%" PRIx64 "\nznode: ",
	      entry->mode == LC_SHARED ? "shared" : "exclusive", entry->held ? "held" : "waiting",
	      entry->host, format_number(pid, entry->pid, 0), format_number(uid, info->uid, -1),
	      or_dash(info->command), view_time(queued, info->queued_since_ms),
	      entry->held ? view_time(held, info->held_since_ms) : "-", info->token,
	      (uint64_t)info->session);
	ok &= print_safe(file, entry->znode);
	PRINT(file, "\nrenewed_ago: %s%s\n", format_number(held, renewed_ago_ms, -1),
	      renewed_ago_ms < 0 ? "" : "ms");
	if (!entry->of_mount)
		PRINT(file, "client: %s\ndata: %s\n", entry->client, or_dash(info->reason));
	PRINT(file, "reason: %s\n", or_dash(view_reason(info)));
	return finish(file, ret_text, ok);
}

int view_holders(const struct lc_entry_info *infos, size_t count, struct text *ret_text)
{
	FILE *file = open_memstream(&ret_text->data, &ret_text->len);
	bool ok = true;

	if (!file)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct lc_entry_info *info = &infos[i];
		char name[QUEUE_NAME_MAX + 1], command[LC_COMMAND_MAX + 1], client[80];
		char data[LC_REASON_MAX + 1];
		char queued[VIEW_TIME_MAX], held[VIEW_TIME_MAX], pid[VIEW_TIME_MAX],
			uid[VIEW_TIME_MAX];

		snapshot_name(name, &info->entry);
		PRINT(file,
		      "%s host=%s pid=%s uid=%s command=%s queued_since=%s held_since=%s "
		      "token=%" PRId64,
		      name, info->entry.host, format_number(pid, info->entry.pid, 0),
		      format_number(uid, info->uid, -1), format_word(command, info->command),
		      view_time(queued, info->queued_since_ms),
		      view_time(held, info->held_since_ms), info->token);
		if (!info->entry.of_mount)
			PRINT(file, " client=%s data=%s", format_word(client, info->entry.client),
			      format_word(data, info->reason));
		PRINT(file, " reason=%s\n", or_dash(view_reason(info)));
	}
	return finish(file, ret_text, ok);
}

const char *view_state(const struct lc_status *status)
{
	if (status->state == LC_CONNECTING && status->elsewhere)
		return "another_ensemble";
	if (status->state == LC_SUSPENDED && status->lease_left_us == 0)
		return "lost";
	return lc_state_name(status->state);
}

int view_status(const struct lc_status *status, const struct view_mount *mount,
                struct text *ret_text)
{
	FILE *file = open_memstream(&ret_text->data, &ret_text->len);
	char away[VIEW_TIME_MAX], namespace[VIEW_TIME_MAX];
	bool ok = true;

	if (!file)
		return -ENOMEM;
	PRINT(file, "state: %s\n",
	      status->state == LC_READY && mount->guardian && !mount->has_guardian
	              ? "unguarded"
	              : view_state(status));
	if (status->session)
		PRINT(file, "session: 0x%" PRIx64 "\n", (uint64_t)status->session);
	else
		PRINT(file, "session: -\n");
	PRINT(file,
	      "session_timeout: %" PRId64 "ms\ntick_time: %" PRId64 "ms\ntick_time_by: %s\n"
	      "lease_left: %" PRId64 "ms\nserver: %s\nserver_version: %s",
	      status->session_timeout_us / 1000, status->tick_time_us / 1000, mount->tick_time_by,
	      status->lease_left_us / 1000, status->server, or_dash(mount->server_version));
	if (mount->safe_version)
		PRINT(file, ", which can forget answered writes: use %s or later",
		      mount->safe_version);
	PRINT(file,
	      "\nhost: %s\nholders: %u\nwaiters: %u\nkept: %u\nleaving: %u\nentry_bytes: %zu\n"
	      "connections: %lu\nsessions: %lu\n",
	      mount->host, status->holders, status->waiters, mount->kept, status->leaving,
	      status->entry_bytes, status->connections, status->sessions);
	if (mount->kernel_limit_s > 0)
		PRINT(file, "kernel_request_timeout: %" PRId64 "s\n", mount->kernel_limit_s);
	else
		PRINT(file, "kernel_request_timeout: -\n");
	PRINT(file, "clock_watched_by: %s\nclock_doubts: %lu\nopen_bytes: %zu\n",
	      mount->clock_watched_by, status->counters.clock_doubts, mount->open_bytes);
	PRINT(file, "no_contact_since: %s\nno_contact_why: %s\n",
	      view_time(away, mount->away_since_ms), or_dash(status->met));
	PRINT(file, "ensemble_clock: %+" PRId64 "ms\non_lost: %s\n", mount->ensemble_ahead_ms,
	      mount->on_lost);
	PRINT(file, "pid_namespace: %s\n",
	      format_number(namespace, (int64_t)mount->pid_namespace, 0));
	PRINT(file,
	      "addresses: %s\nnames_without_address: %s\nservers_wrong: %s\nservers_tried: %s\n"
	      "covered_by: %s\n",
	      or_dash(mount->addresses), or_dash(mount->left_out), or_dash(mount->wrong_servers),
	      or_dash(mount->tried), or_dash(mount->covered));
	return finish(file, ret_text, ok);
}
