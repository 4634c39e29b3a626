/* SPDX-License-Identifier: MIT
 *
 * node_data.h - the data of nodes: `key: value` lines. Pure.
 *
 * An entry's data tells who took it. A lock's data starts with the line `zklockfs: 1`
 * and tells owner, modes and slots; behind an empty line stands its value, any
 * bytes. Both are read as other clients, other versions and vandals may have left
 * them: unknown lines are passed over and kept, missing ones mean "unknown", control
 * bytes come out as '?'.
 */
#ifndef LOCKCORE_NODE_DATA_H
#define LOCKCORE_NODE_DATA_H

#include "lockcore.h"

/* The longest data of an entry. */
#define NODE_DATA_ENTRY_MAX (LC_REASON_MAX + 256)
/* A new lock's. */
#define NODE_DATA_LOCK_MAX 256
/* The longest data of a lock that is changed: with the data that others have left in it, a write
 * must stay far below the megabyte at which a server drops the connection. */
#define NODE_DATA_MAX (LC_VALUE_MAX + 16 * 1024)
/* Bytes of the name of who evicts. */
#define NODE_DATA_BY_MAX 127

struct node_data_entry {
	const char *host;
	pid_t pid;
	int64_t uid; /* -1: unknown */
	const char *command;
	int64_t timeout_ms;    /* of its session; 0: not written */
	int64_t held_since_ms; /* -1: not written */
	const char *reason;
};

/* Both return the length written. */
size_t node_data_format_entry(char ret_data[NODE_DATA_ENTRY_MAX],
                              const struct node_data_entry *entry);
size_t node_data_format_lock(char ret_data[NODE_DATA_LOCK_MAX],
                             const struct lc_attributes *attributes);

/* Fills in uid, command, held_since_ms and reason of an entry read back. */
void node_data_parse_entry(const void *data, size_t len, struct lc_entry_info *ret_info);

/* An entry that somebody wants to go is marked: its data, with a line in front that says
 * who. Returns the length written; a text that does not fit is cut. */
size_t node_data_format_evicted(char ret_data[NODE_DATA_ENTRY_MAX], const void *data, size_t len,
                                const char *by);
/* The time that its mount has to give it up: the timeout of a session that is cut off; 0: unknown.
 * */
int64_t node_data_timeout_ms(const void *data, size_t len);
/* Whether an entry is marked. `ret_by` may be NULL. */
bool node_data_is_evicted(const void *data, size_t len, char ret_by[NODE_DATA_BY_MAX + 1]);

/* ---- a lock's data ---- */

/* Another client's data, never to be overwritten, or too long. No data is free for ours. */
bool node_data_is_foreign(const void *data, size_t len);

/* False: no data of a mount, or no complete ones. */
bool node_data_parse_lock(const void *data, size_t len, struct lc_attributes *ret_attributes);
/* How many may hold the lock: 1 unless our data say otherwise. */
unsigned node_data_slots(const void *data, size_t len);
/* The beginning of its value; data that no mount has written is all value. */
void node_data_value(const void *data, size_t len, const char **ret_value, size_t *ret_len);
struct node_data_lock {
	const struct lc_attributes *attributes; /* NULL: as they are, if there are any */
	unsigned slots;
	const char *value;
	size_t value_len;
};
/* The data anew, as `lock` says, with all lines that this version does not know; malloced. 0,
 * -ENOMEM; -EFBIG: longer than NODE_DATA_MAX. */
int node_data_rewrite_lock(const void *data, size_t len, const struct node_data_lock *lock,
                           char **ret_data, size_t *ret_len);

/* Copy one line's worth of text: up to a newline, `size` - 1 or `len` bytes,
 * control characters and what is no UTF-8 as '?', byte by byte. */
void node_data_copy_line(char *ret_text, size_t size, const char *text, size_t len);

#endif
