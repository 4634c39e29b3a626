/* SPDX-License-Identifier: MIT
 *
 * record.h - what stands in the data of nodes: `key: value` lines. Pure.
 *
 * An entry's data tells who took it; a lock's data starts with the line
 * `zklockfs: 1` and tells owner and modes. Both are read as other clients, other
 * versions and vandals may have left them: unknown lines are passed over,
 * missing ones mean "unknown", control bytes come out as '?'.
 */
#ifndef LOCKCORE_RECORD_H
#define LOCKCORE_RECORD_H

#include "lockcore.h"

/* The longest record of an entry. */
#define RECORD_ENTRY_MAX (LC_REASON_MAX + 256)
#define RECORD_LOCK_MAX 256

struct record_entry {
	const char *host;
	pid_t pid;
	int64_t uid;              /* -1: unknown */
	const char *command;
	int64_t held_since_ms;    /* -1: not written */
	const char *reason;
};

/* Both return the length written. */
size_t record_format_entry(char ret_data[RECORD_ENTRY_MAX], const struct record_entry *entry);
size_t record_format_lock(char ret_data[RECORD_LOCK_MAX], const struct lc_attributes *attributes);

/* Fills in uid, command, held_since_ms and reason of an entry read back. */
void record_parse_entry(const void *data, size_t len, struct lc_entry_info *ret_info);
/* False: no record of ours. */
bool record_parse_lock(const void *data, size_t len, struct lc_attributes *ret_attributes);

/* Copy one line's worth of text: up to a newline, `size` - 1 or `len` bytes,
 * control bytes as '?'. */
void record_copy_line(char *ret_text, size_t size, const char *text, size_t len);

#endif
