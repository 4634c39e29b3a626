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

const char *view_reason(const struct lc_entry_info *info)
{
	if (info->entry.incompatible)
		return "its client does not wait for zklockfs, so zklockfs does not take this lock";
	return info->entry.of_mount ? info->reason : "";
}

bool page_begin(struct view_page *page, struct text *ret_text)
{
	*page = (struct view_page){
		.file = open_memstream(&ret_text->data, &ret_text->len),
		.ok = true,
	};
	return page->file;
}

void page_safe(struct view_page *page, const char *text, enum safe how)
{
	char next[SAFE_MAX];

	while (*text) {
		size_t len = safe_next(&text, how, next);

		page->ok &= fwrite(next, 1, len, page->file) == len;
	}
}

int page_end(struct view_page *page, struct text *ret_text)
{
	/* The last allocation is fclose()'s, which leaves NULL and says 0. */
	if (fclose(page->file) == 0 && page->ok && ret_text->data)
		return 0;
	free(ret_text->data);
	return -ENOMEM;
}

int64_t view_token(const struct lc_entry_info *info)
{
	const struct lc_entry *entry = &info->entry;
	bool next_may_have_it = entry->of_mount && entry->held && entry->mode == LC_EXCLUSIVE &&
	                        info->held_since_ms < 0;

	return next_may_have_it ? 0 : info->token;
}

int view_entry(const struct lc_entry_info *info, int64_t renewed_ago_ms, struct text *ret_text)
{
	char queued[VIEW_TIME_MAX], held[VIEW_TIME_MAX], pid[VIEW_TIME_MAX], uid[VIEW_TIME_MAX];
	char token[VIEW_TIME_MAX];
	const struct lc_entry *entry = &info->entry;
	struct view_page page;

	if (!page_begin(&page, ret_text))
		return -ENOMEM;
	PRINT(&page,
	      "mode: %s\nstate: %s\nhost: %s\npid: %s\nuid: %s\ncommand: %s\nqueued_since: %s\n"
	      "held_since: %s\ntoken: %s\nsession: 0x%" PRIx64 "\nznode: ",
	      entry->mode == LC_SHARED ? "shared" : "exclusive", entry->held ? "held" : "waiting",
	      entry->host, format_number(pid, entry->pid, 0), format_number(uid, info->uid, -1),
	      or_dash(info->command), view_time(queued, info->queued_since_ms),
	      entry->held ? view_time(held, info->held_since_ms) : "-",
	      format_number(token, view_token(info), 0), (uint64_t)info->session);
	page_safe(&page, entry->znode, SAFE_LINE); /* a name as others may have made it */
	PRINT(&page, "\nrenewed_ago: %s%s\n", format_number(held, renewed_ago_ms, -1),
	      renewed_ago_ms < 0 ? "" : "ms");
	if (!entry->of_mount)
		PRINT(&page, "client: %s\ndata: %s\n", entry->client, or_dash(info->reason));
	PRINT(&page, "reason: %s\n", or_dash(view_reason(info)));
	return page_end(&page, ret_text);
}

int view_holders(const struct lc_entry_info *infos, size_t count, struct text *ret_text)
{
	struct view_page page;

	if (!page_begin(&page, ret_text))
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct lc_entry_info *info = &infos[i];
		char name[QUEUE_NAME_MAX + 1], command[LC_COMMAND_MAX + 1], client[80];
		char data[LC_REASON_MAX + 1];
		char queued[VIEW_TIME_MAX], held[VIEW_TIME_MAX], pid[VIEW_TIME_MAX],
			uid[VIEW_TIME_MAX], token[VIEW_TIME_MAX];

		snapshot_name(name, &info->entry);
		PRINT(&page,
		      "%s host=%s pid=%s uid=%s command=%s queued_since=%s held_since=%s "
		      "token=%s",
		      name, info->entry.host, format_number(pid, info->entry.pid, 0),
		      format_number(uid, info->uid, -1),
		      or_dash(safe_text(command, sizeof(command), info->command, SAFE_WORD)),
		      view_time(queued, info->queued_since_ms),
		      view_time(held, info->held_since_ms),
		      format_number(token, view_token(info), 0));
		if (!info->entry.of_mount)
			PRINT(&page, " client=%s data=%s",
			      or_dash(safe_text(client, sizeof(client), info->entry.client,
			                        SAFE_WORD)),
			      or_dash(safe_text(data, sizeof(data), info->reason, SAFE_WORD)));
		PRINT(&page, " reason=%s\n", or_dash(view_reason(info)));
	}
	return page_end(&page, ret_text);
}
