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

#include "host/safe.h"
#include "lockcore.h"

#include <stdbool.h>
#include <stdio.h>

struct text {
	char *data;
	size_t len;
};

/* A text that is being written. */
struct view_page {
	FILE *file;
	bool ok;           /* a stream in memory that cannot grow says so here, not by ferror() */
	const char *mount; /* metrics: the label of all series, as it is printed */
};

#define PRINT(page, ...) ((page)->ok &= fprintf((page)->file, __VA_ARGS__) >= 0)

/* False: no memory. Otherwise page_end() follows: 0 or -ENOMEM; the caller frees ret_text->data. */
bool page_begin(struct view_page *page, struct text *ret_text);
void page_safe(struct view_page *page, const char *text, enum safe how);
int page_end(struct view_page *page, struct text *ret_text);

/* The size of text files in stat(2): more than they ever have, as in sysfs. With 0, as in /proc,
 * sendfile(2) and splice(2) give nothing here, and so do busybox cat and cp, Python's
 * shutil.copyfile, Java's Files.copy: a `holder` without a line, and no error. With more than
 * there is only archivers complain (tar, cpio, rsync), aloud. */
#define VIEW_SIZE 16384

/* All: 0 or -ENOMEM; the caller frees ret_text->data. */
/* `renewed_ago_ms`: since when its mount has not renewed its session; -1: not known. */
int view_entry(const struct lc_entry_info *info, int64_t renewed_ago_ms, struct text *ret_text);
/* 0: the next hold of the same process may get the same entry (rule 43). Its data says since when
 * it is held once that is over. */
int64_t view_token(const struct lc_entry_info *info);
int view_holders(const struct lc_entry_info *infos, size_t count, struct text *ret_text);

#define VIEW_TIME_MAX 40
/* RFC 3339 in UTC; "-" below 0. */
const char *view_time(char buffer[VIEW_TIME_MAX], int64_t ms);
/* The text that its taker wrote, or a note on its client; "" for nothing. */
const char *view_reason(const struct lc_entry_info *info);

#endif
