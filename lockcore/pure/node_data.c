/* SPDX-License-Identifier: MIT */
#include "pure/node_data.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "zklockfs: 1\n"
/* Longer ones nobody configures. */
#define TIMEOUT_MAX_MS (60 * 60 * 1000)

void node_data_copy_line(char *ret_text, size_t size, const char *text, size_t len)
{
	size_t n = 0;

	if (len > size - 1)
		len = size - 1;
	while (n < len && text[n] != '\n' && text[n] != '\0') {
		size_t whole = lc_text_shown(text + n, len - n);

		if (whole == 0)
			ret_text[n++] = '?';
		for (; whole > 0; whole--, n++)
			ret_text[n] = text[n];
	}
	ret_text[n] = '\0';
}

/* The lines of the head, up to an empty line. Begin with line NULL; the rest follows the last line.
 * */
struct head_lines {
	const char *rest;
	size_t rest_len;
	const char *line;
	size_t line_len; /* without the newline */
};

static bool next_line(struct head_lines *head)
{
	const char *end = head->rest_len > 0 ? memchr(head->rest, '\n', head->rest_len) : NULL;
	size_t taken;

	if (head->rest_len == 0 || *head->rest == '\n')
		return false;
	head->line = head->rest;
	head->line_len = end ? (size_t)(end - head->rest) : head->rest_len;
	taken = head->line_len + (end ? 1 : 0);
	head->rest += taken;
	head->rest_len -= taken;
	return true;
}

static bool has_key(const struct head_lines *head, const char *key)
{
	size_t len = strlen(key);

	return head->line_len >= len + 2 && memcmp(head->line, key, len) == 0 &&
	       memcmp(head->line + len, ": ", 2) == 0;
}

/* The value of the first line with that key. */
static bool find_line(const char *data, size_t len, const char *key, const char **ret_value,
                      size_t *ret_len)
{
	struct head_lines head = {.rest = data, .rest_len = len};

	while (next_line(&head))
		if (has_key(&head, key)) {
			*ret_value = head.line + strlen(key) + 2;
			*ret_len = head.line_len - strlen(key) - 2;
			return true;
		}
	return false;
}

/* Digits only, in the given base, up to a maximum. */
static bool find_number(const char *data, size_t len, const char *key, unsigned base, int64_t max,
                        int64_t *ret_number)
{
	const char *value;
	size_t value_len;
	int64_t number = 0;

	if (!find_line(data, len, key, &value, &value_len) || value_len == 0)
		return false;
	for (size_t i = 0; i < value_len; i++) {
		unsigned digit = (unsigned)(value[i] - '0');

		if (digit >= base || number > (max - digit) / base)
			return false;
		number = number * base + digit;
	}
	*ret_number = number;
	return true;
}

static char *put_text(char *end, const char *key, const char *text, size_t max)
{
	end = stpcpy(stpcpy(end, key), ": ");
	node_data_copy_line(end, max + 1, text, strlen(text));
	return stpcpy(end + strlen(end), "\n");
}

static char *put_number(char *end, const char *key, int64_t number)
{
	char digits[20];
	uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
	int n = 0;

	end = stpcpy(stpcpy(end, key), number < 0 ? ": -" : ": ");
	do {
		digits[n++] = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest > 0);
	while (n > 0)
		*end++ = digits[--n];
	return stpcpy(end, "\n");
}

size_t node_data_format_entry(char ret_data[NODE_DATA_ENTRY_MAX],
                              const struct node_data_entry *entry)
{
	const char *reason = entry->reason ? entry->reason : "";
	char *end = ret_data;

	/* By hand: this is done for each take. */
	end = put_text(end, "host", entry->host, LC_HOST_MAX);
	end = put_number(end, "pid", entry->pid);
	end = put_number(end, "uid", entry->uid);
	end = put_text(end, "command", entry->command ? entry->command : "", LC_COMMAND_MAX);
	if (entry->timeout_ms > 0)
		end = put_number(end, "session_timeout", entry->timeout_ms);
	if (entry->held_since_ms >= 0)
		end = put_number(end, "held_since", entry->held_since_ms);
	if (*reason != '\0' && *reason != '\n')
		end = put_text(end, "reason", reason, LC_REASON_MAX);
	assert(end < ret_data + NODE_DATA_ENTRY_MAX);
	return (size_t)(end - ret_data);
}

size_t node_data_format_lock(char ret_data[NODE_DATA_LOCK_MAX],
                             const struct lc_attributes *attributes)
{
	return (size_t)snprintf(
		ret_data, NODE_DATA_LOCK_MAX, MAGIC "uid: %u\ngid: %u\nmode: %o\ndoor_mode: %o\n\n",
		(unsigned)attributes->uid, (unsigned)attributes->gid,
		(unsigned)attributes->mode & 02777, (unsigned)attributes->lock_file_mode & 0666);
}

void node_data_parse_entry(const void *data, size_t len, struct lc_entry_info *ret_info)
{
	const char *value;
	size_t value_len;
	int64_t number;

	ret_info->uid = find_number(data, len, "uid", 10, UINT32_MAX - 1, &number) ? number : -1;
	ret_info->held_since_ms =
		find_number(data, len, "held_since", 10, INT64_MAX, &number) ? number : -1;
	ret_info->command[0] = ret_info->reason[0] = '\0';
	if (find_line(data, len, "command", &value, &value_len))
		node_data_copy_line(ret_info->command, sizeof(ret_info->command), value, value_len);
	if (find_line(data, len, "reason", &value, &value_len))
		node_data_copy_line(ret_info->reason, sizeof(ret_info->reason), value, value_len);
}

size_t node_data_format_evicted(char ret_data[NODE_DATA_ENTRY_MAX], const void *data, size_t len,
                                const char *by)
{
	char line[NODE_DATA_BY_MAX + 1];
	size_t head;

	node_data_copy_line(line, sizeof(line), by, strlen(by));
	head = (size_t)snprintf(ret_data, NODE_DATA_ENTRY_MAX, "evict: %s\n", line);
	if (len > NODE_DATA_ENTRY_MAX - head)
		len = NODE_DATA_ENTRY_MAX - head;
	if (len > 0)
		memcpy(ret_data + head, data, len);
	return head + len;
}

int64_t node_data_timeout_ms(const void *data, size_t len)
{
	int64_t timeout_ms;

	return find_number(data, len, "session_timeout", 10, TIMEOUT_MAX_MS, &timeout_ms)
	               ? timeout_ms
	               : 0;
}

bool node_data_is_evicted(const void *data, size_t len, char ret_by[NODE_DATA_BY_MAX + 1])
{
	const char *value;
	size_t value_len;

	if (!find_line(data, len, "evict", &value, &value_len))
		return false;
	if (ret_by)
		node_data_copy_line(ret_by, NODE_DATA_BY_MAX + 1, value, value_len);
	return true;
}

/* ---- a lock's data ---- */

static bool has_magic(const void *data, size_t len)
{
	return len >= strlen(MAGIC) && memcmp(data, MAGIC, strlen(MAGIC)) == 0;
}

bool node_data_is_foreign(const void *data, size_t len)
{
	return len > 0 && (!has_magic(data, len) || len > NODE_DATA_MAX);
}

unsigned node_data_slots(const void *data, size_t len)
{
	int64_t slots;

	if (!has_magic(data, len) || !find_number(data, len, "slots", 10, LC_SLOTS_MAX, &slots) ||
	    slots < 1)
		return 1;
	return (unsigned)slots;
}

void node_data_value(const void *data, size_t len, const char **ret_value, size_t *ret_len)
{
	struct head_lines head = {.rest = data, .rest_len = len};

	if (has_magic(data, len)) {
		while (next_line(&head))
			;
		if (head.rest_len > 0) { /* the empty line */
			head.rest++;
			head.rest_len--;
		}
	}
	*ret_value = head.rest;
	*ret_len = head.rest_len;
}

static bool is_attribute(const struct head_lines *head)
{
	return has_key(head, "uid") || has_key(head, "gid") || has_key(head, "mode") ||
	       has_key(head, "door_mode");
}

/* The lines behind the first that are not written anew, as they are. */
static size_t copy_others(char *ret_text, const void *data, size_t len, bool with_attributes)
{
	struct head_lines head = {.rest = data, .rest_len = len};
	char *end = ret_text;

	if (!has_magic(data, len) || !next_line(&head))
		return 0;
	while (next_line(&head))
		if (!has_key(&head, "slots") && (with_attributes || !is_attribute(&head))) {
			memcpy(end, head.line, head.line_len);
			end[head.line_len] = '\n';
			end += head.line_len + 1;
		}
	return (size_t)(end - ret_text);
}

int node_data_rewrite_lock(const void *data, size_t len, const struct node_data_lock *lock,
                           char **ret_data, size_t *ret_len)
{
	/* One byte more: the last line may lack its newline. */
	char *text = malloc(NODE_DATA_LOCK_MAX + len + 1 + lock->value_len);
	size_t n;

	if (!text)
		return -ENOMEM;
	if (lock->attributes)
		/* the empty line comes last */
		n = node_data_format_lock(text, lock->attributes) - 1;
	else
		n = (size_t)(stpcpy(text, MAGIC) - text);
	if (lock->slots != 1)
		n += (size_t)snprintf(text + n, 24, "slots: %u\n", lock->slots);
	n += copy_others(text + n, data, len, !lock->attributes);
	text[n++] = '\n';
	if (n + lock->value_len > NODE_DATA_MAX) {
		free(text);
		return -EFBIG;
	}
	if (lock->value_len > 0)
		memcpy(text + n, lock->value, lock->value_len);
	*ret_data = text;
	*ret_len = n + lock->value_len;
	return 0;
}

bool node_data_parse_lock(const void *data, size_t len, struct lc_attributes *ret_attributes)
{
	int64_t uid, gid, mode, lock_file_mode;

	if (!has_magic(data, len) || !find_number(data, len, "uid", 10, UINT32_MAX - 1, &uid) ||
	    !find_number(data, len, "gid", 10, UINT32_MAX - 1, &gid) ||
	    !find_number(data, len, "mode", 8, 07777, &mode) ||
	    !find_number(data, len, "door_mode", 8, 0666, &lock_file_mode))
		return false;
	*ret_attributes = (struct lc_attributes){
		.uid = (uid_t)uid,
		.gid = (gid_t)gid,
		/* A sticky bit is none of a lock's own: the mount shows one where it has to. */
		.mode = (mode_t)mode & 02777,
		.lock_file_mode = (mode_t)lock_file_mode & 0666,
	};
	return true;
}
